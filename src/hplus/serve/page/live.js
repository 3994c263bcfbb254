// the live page: asks the service, listens to its news, and shows both

import { Chart } from "./chart.js";
import { inkOf, ramp } from "./colours.js";
import { Events } from "./events.js";
import { drawAlerts, drawSpots } from "./lists.js";
import { ask, listen, send } from "./net.js";
import { Picture } from "./picture.js";
import { count, hourOf, hourWords, number, plural, shortCount, useFileTimes, when } from "./words.js";

const by = (id) => document.getElementById(id);
const events = new Events();
const picture = new Picture(by("picture"), events);
const chart = new Chart(by("chart"), (text) => (by("readout").textContent = text));
let view = null, history = null, span = "day", unit = "", spots = [], alerts = null, total = 0;

// each question is asked once at a time, and once more if it was wanted meanwhile
function paced(work, least) {
  let running = false, wanted = false, last = -1e9;
  return async function run() {
    if (running) {
      wanted = true;
      return;
    }
    running = true;
    const rest = last + least - performance.now();
    if (rest > 0) await new Promise((resolve) => setTimeout(resolve, rest));
    last = performance.now();
    wanted = false;
    try {
      await work();
    } catch { /* the state says if the service is gone */ }
    running = false;
    if (wanted) run();
  };
}

const loadEvents = paced(async () => {
  const fresh = events.take(await ask(`v1/page/recent?after=${events.next}`), performance.now());
  if (!fresh) return;
  picture.lastNew = performance.now();
  picture.changed();
  beat();
}, 200);

const loadHistory = paced(async () => {
  history = await ask(`v1/page/history?span=${span}`);
  chart.take(history);
  showFigures();
  moveSlider();
}, 1000);

const loadPicture = paced(async () => {
  const answer = await ask("v1/page/picture?width=160&height=160");
  if (answer.empty) {
    by("readout").textContent = total > 0 ? "The first model is being learned …" : "";
    return;
  }
  if (!picture.whole) by("readout").textContent = "";
  unit = answer.rates;
  picture.take(answer, true);
  loadPart();
}, 4000);

const loadPart = paced(async () => {
  if (!picture.whole || !picture.view) return;
  if (picture.size > 0.999) {
    if (picture.part !== picture.whole) picture.part = picture.flat ? picture.whole : null;
    picture.changed();
    return;
  }
  const [low, high] = picture.view.map((corner) => corner.map((x) => x.toPrecision(12)).join(","));
  const answer = await ask(`v1/page/picture?low=${low}&high=${high}&width=180&height=130`);
  if (!answer.empty) picture.take(answer, false);
}, 150);

const loadSpots = paced(async () => {
  const answer = await ask("v1/page/spots");
  if (answer.empty) return;
  spots = answer.spots;
  drawSpots(by("spots"), answer, show);
  drawBoxes();
}, 15000);

const loadAlerts = paced(async () => {
  const answer = await ask("v1/alerts");
  const known = new Set((alerts || []).map((a) => a.id)), first = alerts === null;
  const fresh = answer.alerts.filter((a) => !known.has(a.id) && !a.acknowledged);
  alerts = answer.alerts;
  const waiting = drawAlerts(by("alerts"), alerts, show, acknowledge);
  const asked = `At most about ${plural(answer.alarms_per_week, "false alarm")} a week.`;
  by("alarm-rate").textContent = answer.state || asked;
  document.title = `${waiting ? `(${waiting}) ` : ""}${view.title} – hplus live`;
  if (fresh.length && !first) {
    const a = fresh[0];
    tell(`New alert: ${count(a.observed)} events where ${number(a.expected, 2)} were expected.`);
  }
  drawBoxes();
}, 500);

async function acknowledge(id) {
  try {
    await send(`v1/alerts/${encodeURIComponent(id)}/acknowledge`);
    tell("Alert acknowledged.");
  } catch (error) {
    by("alarm-rate").textContent = `Not acknowledged: ${error.message}`;
    tell(by("alarm-rate").textContent);
    return;
  }
  await loadAlerts();
}

function drawBoxes() {
  const going = (alerts || []).filter((a) => !a.end && !a.whole);
  picture.boxes = [
    ...spots.slice(0, 3).map((s, i) => ({ low: s.low, high: s.high, colour: picture.flat ? inkOf("--soft") : "#ffffff", label: String(i + 1) })),
    ...going.map((a) => ({ low: a.low, high: a.high, colour: a.kind === "more" ? "#63e6ff" : "#b9f0c0", label: a.kind === "more" ? "▲" : "▼" })),
  ];
  picture.changed();
}

function show(place) {
  picture.show(place.low, place.high);
  by("picture").scrollIntoView({ block: "nearest" });
}

// what screen readers say: seldom, and only what matters
let told = 0;
function tell(text) {
  told = performance.now();
  by("news").textContent = text;
}

function showFigures() {
  figure("hour", history.hour);
  figure("day", history.day);
  const box = by("total");
  box.querySelector(".big").textContent = count(total);
  box.querySelector(".note").textContent = history.latest === null ? "" : `newest ${when(history.latest)}`;
  if (performance.now() - told > 60000 && history.hour) {
    tell(`${plural(history.hour.observed, "event")} in the last hour${history.hour.expected === null ? "" : `, ${number(history.hour.expected)} expected`}.`);
  }
}

function figure(id, now) {
  const box = by(id), gauge = box.querySelector(".gauge"), note = box.querySelector(".note");
  box.querySelector(".big").textContent = count(now.observed);
  box.classList.remove("more", "fewer");
  gauge.classList.toggle("known", now.expected !== null);
  if (now.expected === null) {
    const none = history.latest === null && total > 0 ? "since the service started" : "";
    note.textContent = now.since === null ? none : `since ${hourOf(now.since)}`;
    return;
  }
  const { observed, below, above } = now;
  const kind = observed > above ? "more" : observed < below ? "fewer" : "";
  if (kind) box.classList.add(kind);
  const verdict = { more: "more than the ", fewer: "fewer than the ", "": "" }[kind];
  const since = now.since === null ? "" : ` since ${hourOf(now.since)}`;
  note.textContent = `${verdict}${shortCount(below)} to ${shortCount(above)} expected${since}`;
  const most = Math.max(above * 1.5, observed * 1.1, 1), share = (x) => `${Math.min(100, (100 * x) / most)}%`;
  const [band, mark] = gauge.children;
  band.style.left = share(below);
  band.style.width = share(Math.max(above - below, most * 0.01));
  mark.style.left = share(observed);
}

let latest = null;
function moveSlider() {
  const slider = by("until"), now = history.now, length = span === "day" ? 86400 : 604800;
  const at = Number(slider.value) / 1000, isNow = at >= 1;
  latest = isNow ? Infinity : latest ?? now - (1 - at) * length;
  picture.until = isNow ? Infinity : latest;
  picture.span = length;
  if (isNow) {
    // the newest events have the time of the service, which may not be that of this clock
    picture.until = Math.max(now, events.kept ? events.seconds[(events.next - 1) % events.seconds.length] : now) + 1;
  }
  const words = isNow ? "now" : when(latest);
  by("until-words").textContent = words;
  slider.setAttribute("aria-valuetext", words);
  by("to-now").hidden = isNow;
  chart.at(isNow ? Infinity : latest);
  picture.changed();
}

let beating = 0;
function beat() {
  const dot = by("dot");
  if (performance.now() - beating < 900) return;
  beating = performance.now();
  dot.classList.remove("beat");
  void dot.offsetWidth; // to start the animation again
  dot.classList.add("beat");
}

function setTheme(theme) {
  const words = { "": "Auto", light: "Light", dark: "Dark" };
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  by("theme").textContent = words[theme];
  by("theme").setAttribute("aria-label", `Theme: ${theme || "as the system"}`);
  localStorage.setItem("hplus-theme", theme);
  chart.draw();
  picture.changed();
}

const axisWords = (axis, x) => axis.kind === "cycle" ? hourWords(x, axis.high)
  : `${axis.name} ${number(x, 4)}${axis.unit ? ` ${axis.unit}` : ""}`;

function wire() {
  const themes = ["", "light", "dark"];
  by("theme").addEventListener("click", () => {
    const now = document.documentElement.dataset.theme || "";
    setTheme(themes[(themes.indexOf(now) + 1) % 3]);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    chart.draw();
    picture.changed();
  });
  by("closer").addEventListener("click", () => picture.zoom(0.6));
  by("farther").addEventListener("click", () => picture.zoom(1 / 0.6));
  by("whole").addEventListener("click", () => picture.reset());
  by("until").addEventListener("input", () => {
    latest = null;
    moveSlider();
  });
  by("to-now").addEventListener("click", () => {
    by("until").value = "1000";
    moveSlider();
    by("until").focus();
  });
  for (const input of document.querySelectorAll("input[name=span]")) {
    input.addEventListener("change", () => {
      span = input.value;
      latest = null;
      loadHistory();
    });
  }
  let settling = 0;
  picture.onmove = () => {
    clearTimeout(settling);
    settling = setTimeout(loadPart, 180);
  };
  picture.onread = (point) => {
    const rate = point && picture.rate(point);
    const named = point && picture.axes.map((axis, i) => axisWords(axis, point[i])).join(", ");
    by("readout").textContent = rate === null || rate === undefined ? "" : `${named}: ${number(rate)} ${unit}`;
  };
  picture.oncolour = (top, words) => {
    by("most").textContent = `${number(top, 2)}+`;
    by("unit").textContent = words;
  };
  const bar = by("ramp").getContext("2d"), pixels = bar.createImageData(256, 1);
  new Uint32Array(pixels.data.buffer).set(ramp);
  bar.putImageData(pixels, 0, 0);
}

function begin() {
  by("title").textContent = view.title;
  document.title = `${view.title} – hplus live`;
  useFileTimes(view.timed);
  if (view.axes.length === 1) document.querySelector(".frame").classList.add("line");
  by("picture-title").textContent = view.axes[0].kind === "cycle" || view.axes[0].kind === "time" ? "When events happen" : "Where events happen";
  by("picture").setAttribute("aria-label", `${by("picture-title").textContent}: the rate of events by ${view.axes.map((a) => a.name).join(" and ")}`);
  const address = new URL("v1/events", document.baseURI).href;
  by("example").textContent = `curl ${address} -H 'Content-Type: application/x-ndjson' -d '${JSON.stringify(view.example)}'`;
  picture.begin(view.axes);
  showTotal(view.events);
}

function showTotal(n) {
  total = n;
  by("empty").hidden = n > 0;
  by("total").querySelector(".big").textContent = count(n);
}

function hear(event, data) {
  if (event === "status") {
    showTotal(data.events);
    by("version").textContent = data.versions?.hplus || "";
    loadEvents();
    loadHistory();
    loadPicture();
    loadSpots();
    loadAlerts();
  } else if (event === "events") {
    showTotal(data.events);
    loadEvents();
    loadHistory();
  } else if (event === "model") {
    loadPicture();
    loadSpots();
  } else if (event === "alert") {
    loadAlerts();
  }
}

function showState(connected) {
  by("dot").classList.toggle("live", connected);
  by("state").textContent = connected ? "Live" : "Connection lost. Trying again …";
}

const kept = localStorage.getItem("hplus-theme") || "";
if (kept) document.documentElement.dataset.theme = kept;
wire();
setTheme(kept);
view = await ask("v1/page/view");
begin();
listen(hear, showState);
setInterval(loadHistory, 15000);
setInterval(loadAlerts, 20000);
// for who measures the page
window.hplusFrames = () => picture.frames;
window.hplusSeen = () => events.next;
window.hplusShown = () => picture.shown;
window.hplusPicture = picture;
window.hplusView = () => JSON.stringify(picture.view);
