// numbers and times in words

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const digits = [2, 3, 4, 6].map((n) => new Intl.NumberFormat("en", { maximumSignificantDigits: n }));
let zone = undefined;

// times of events are those of their file; without any, they are those of this clock
export function useFileTimes(timed) {
  zone = timed ? "UTC" : undefined;
  formats.clear();
}

const formats = new Map();
function dated(seconds, name, options) {
  if (!formats.has(name)) {
    formats.set(name, new Intl.DateTimeFormat("en-GB", { ...options, timeZone: zone }));
  }
  return formats.get(name).format(new Date(1000 * seconds));
}

export const count = (x) => whole.format(x).replace("-", "−");
export function number(x, n = 3) {
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1000 && size < 1e9) return count(x);
  if (size < 1e-4 || size >= 1e9) {
    const power = Math.floor(Math.log10(size));
    const raised = String(power).replace(/[-\d]/g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));
    return `${digits[0].format(x / 10 ** power)} × 10${raised}`.replace("-", "−");
  }
  return (digits[[2, 3, 4, 6].indexOf(n)] || digits[1]).format(x).replace("-", "−");
}
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
export const shortCount = (x) => (x < 10000 ? count(x) : compact.format(x));
export const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
export const hourOf = (t) => dated(t, "hour", { hour: "2-digit", minute: "2-digit" });
export const dayOf = (t) => dated(t, "day", { weekday: "short", day: "numeric", month: "short" });
export const when = (t) =>
  dated(t, "when", { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
export const dateOf = (t) => dated(t, "date", { day: "numeric", month: "short", year: "numeric" });

const DAYS = { weekday: "short", day: "numeric", month: "short", year: "numeric" };

// "2026-01-31T14:05" as it was written, or in the time of this clock if it ends in Z
export function moment(text) {
  const found = /^\d{4,}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?)?(Z?)$/.exec(text || "");
  if (!found) return text || "";
  const bare = text.replace("Z", "");
  const at = new Date(bare.includes("T") ? `${bare}Z` : `${bare}T00:00:00Z`);
  const zoned = { timeZone: found[1] ? undefined : "UTC" };
  const day = new Intl.DateTimeFormat("en-GB", { ...DAYS, ...zoned }).format(at).replace(",", "");
  if (!bare.includes("T") && !found[1]) return day;
  return `${day}, ${new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", ...zoned }).format(at)}`;
}

// how often something happens by chance, from weeks between
export function rarely(weeks) {
  if (weeks < 1.5) return "once a week";
  if (weeks < 8) return `once in ${count(weeks)} weeks`;
  if (weeks < 104) return `once in ${count(weeks / 4.345)} months`;
  if (weeks < 52 * 1000) return `once in ${count(weeks / 52.18)} years`;
  return "less than once in 1,000 years";
}

// an hour of a day, or of a week that begins on Monday
export function hourWords(h, period) {
  const minutes = Math.round(60 * h), pad = (n) => String(n).padStart(2, "0");
  const clock = `${pad(Math.floor(minutes / 60) % 24)}:${pad(minutes % 60)}`;
  if (period <= 24) return clock;
  const day = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"][Math.floor(h / 24) % 7];
  return clock === "00:00" ? day : `${day} ${clock}`;
}

export function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= rough * 0.999);
}

const SMALLER = { km: "m", m: "mm" };
export const lengthWords = (x, unit) =>
  x < 1 && SMALLER[unit] ? `${number(1000 * x, 2)} ${SMALLER[unit]}` : `${number(x, 2)} ${unit}`.trim();
