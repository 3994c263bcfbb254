// questions to the service, with a token if it needs one, and the stream of its news

const KEY = "hplus-token";
const address = (path) => new URL(path, document.baseURI);

function headers(more = {}) {
  const token = sessionStorage.getItem(KEY);
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

let asking = null;

// opens the dialog once, whoever asks, and resolves when a token was given
function askForToken(refused) {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("ask");
    const input = document.getElementById("token");
    document.getElementById("ask-why").textContent = refused
      ? "That token was not accepted."
      : "It is kept until this tab is closed.";
    document.getElementById("ask-form").onsubmit = () => {
      sessionStorage.setItem(KEY, input.value.trim());
      input.value = "";
      asking = null;
      resolve();
    };
    dialog.oncancel = (event) => event.preventDefault();
    if (!dialog.open) dialog.showModal();
  });
  return asking;
}

async function request(path, options = {}) {
  for (;;) {
    const sent = sessionStorage.getItem(KEY);
    const answer = await fetch(address(path), { ...options, headers: headers(options.headers) });
    // a token that may only read still shows the page
    if (answer.status !== 401 && (answer.status !== 403 || options.method)) return answer;
    // another question may have been given a token meanwhile
    if (sent === sessionStorage.getItem(KEY)) {
      sessionStorage.removeItem(KEY);
      await askForToken(sent !== null);
    }
  }
}

export async function ask(path) {
  const answer = await request(path);
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error || `status ${answer.status}`);
  return found;
}

export async function send(path) {
  const answer = await request(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: "{}",
  });
  if (!answer.ok) throw new Error((await answer.json()).error || `status ${answer.status}`);
  return answer.json();
}

// calls `hear(event, data)` for all news, and `state(connected)` when that changes; for ever
export async function listen(hear, state) {
  let last = "", wait = 500;
  for (;;) {
    try {
      const answer = await request("v1/stream", last ? { headers: { "Last-Event-ID": last } } : {});
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      state(true);
      wait = 500;
      for await (const news of messages(answer.body)) {
        last = news.id || last;
        hear(news.event, JSON.parse(news.data));
      }
    } catch { /* which is said by the state */ }
    state(false);
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(2 * wait, 10000);
  }
}

// server-sent events, as they come
async function* messages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const found = {};
      for (const line of part.split("\n")) {
        const at = line.indexOf(": ");
        if (at > 0) found[line.slice(0, at)] = line.slice(at + 2);
      }
      if (found.data) yield found;
    }
  }
}
