// the lists of alerts and of hot spots; all that comes from the data is set as text

import { count, moment, number, plural, rarely } from "./words.js";

function element(name, className, text) {
  const found = document.createElement(name);
  if (className) found.className = className;
  if (text !== undefined) found.textContent = text;
  return found;
}

function link(text, act) {
  const found = element("button", "link", text);
  found.type = "button";
  found.addEventListener("click", act);
  return found;
}

export function placeWords(place) {
  return Object.entries(place)
    .map(([name, [low, high]]) => {
      // as many decimals as tell a twentieth of the side
      const decimals = Math.min(9, Math.max(0, Math.ceil(-Math.log10((high - low) / 20))));
      return `${name} ${low.toFixed(decimals)} to ${high.toFixed(decimals)}`.replace(/-(?=\d)/g, "−");
    })
    .join(", ");
}

function alertRow(alert, show, acknowledge) {
  const row = element("li", [alert.kind, alert.end ? "ended" : "", alert.acknowledged ? "seen" : ""].join(" "));
  row.dataset.id = alert.id;
  const sign = element("span", "sign", alert.kind === "more" ? "▲" : "▼");
  sign.setAttribute("aria-hidden", "true");
  const said = `${plural(alert.observed, "event")} where ${number(alert.expected, 2)} ${alert.expected === 1 ? "was" : "were"} expected`;
  const head = element("strong", "", said);
  const where = element("p", "note");
  if (alert.whole) where.textContent = "In the whole window";
  else where.append(link(placeWords(alert.place), () => show(alert)));
  const until = alert.end ? ` to ${moment(alert.end)}` : ", still going on";
  const since = element("p", "note", `${moment(alert.start)}${until}. By chance about ${rarely(alert.weeks)}.`);
  row.append(sign, head, where, since);
  if (alert.acknowledged) {
    row.append(element("p", "note", `Acknowledged ${moment(alert.acknowledged)}`));
  } else {
    const box = element("div", "act"), button = element("button", "", "Acknowledge");
    button.type = "button";
    button.setAttribute("aria-label", `Acknowledge: ${said}`);
    button.addEventListener("click", () => {
      button.disabled = true;
      acknowledge(alert.id);
    });
    box.append(button);
    row.append(box);
  }
  return row;
}

let drawn = "";

// draws the list anew if it has changed, and leaves the focus where it was
export function drawAlerts(list, alerts, show, acknowledge) {
  const waiting = alerts.filter((a) => !a.acknowledged), seen = alerts.filter((a) => a.acknowledged);
  const now = JSON.stringify(alerts);
  if (now === drawn) return waiting.length;
  drawn = now;
  const active = document.activeElement, row = active?.closest?.("#alerts li");
  const at = row ? [...row.querySelectorAll("button")].indexOf(active) : -1;
  list.replaceChildren(...[...waiting.slice(0, 60), ...seen.slice(0, 20)].map((a) => alertRow(a, show, acknowledge)));
  if (row) {
    const buttons = list.querySelectorAll(`li[data-id="${CSS.escape(row.dataset.id)}"] button`);
    (buttons[at] || buttons[0] || list).focus();
  }
  document.getElementById("no-alerts").hidden = alerts.length > 0;
  return waiting.length;
}

export function drawSpots(list, answer, show) {
  const rows = answer.spots.map((spot, i) => {
    const row = element("li");
    const mark = element("span", "number", `${number(spot.expected)} `);
    mark.append(element("small", "", `${count(spot.below)}–${count(spot.above)}`));
    row.append(element("span", "rank", String(i + 1)), link(spot.name.replace(/-(?=\d)/g, "−"), () => show(spot)), mark);
    return row;
  });
  list.replaceChildren(...rows);
  document.getElementById("no-spots").hidden = rows.length > 0;
  document.getElementById("spots-note").textContent = answer.per ? `events per ${answer.per}, 90 % interval` : "events, 90 % interval";
}
