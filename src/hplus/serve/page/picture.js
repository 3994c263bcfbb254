// the rate on a canvas that moves and zooms: a map, or a curve with its band; events on top

import { floatsOf } from "./events.js";
import { inkOf, ramp, shading } from "./colours.js";
import { hourWords, lengthWords, niceStep, number, shortCount } from "./words.js";

const FRESH = 2500; // milliseconds in which a new event is marked
const CLOSEST = 1e-5; // of the window
const HOURS = [0.25, 0.5, 1, 2, 3, 6, 12, 24, 48]; // between marks of a cycle
const FEW = 1500, MANY = 20000; // events that are drawn as discs, and fainter

export class Picture {
  constructor(canvas, events) {
    this.canvas = canvas;
    this.events = events;
    this.context = canvas.getContext("2d");
    this.dots = document.createElement("canvas");
    this.whole = null;
    this.part = null;
    this.boxes = [];
    this.until = Infinity;
    this.span = 86400;
    this.dirty = true;
    this.hover = null;
    this.frames = [];
    this.onmove = () => {};
    this.onread = () => {};
    this.oncolour = () => {};
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.listen();
  }

  begin(axes) {
    this.axes = axes.slice(0, 2);
    this.flat = this.axes.length === 1;
    const [a, b] = this.axes;
    this.low = this.axes.map((axis) => axis.low);
    this.high = this.axes.map((axis) => axis.high);
    // the same scale on both axes if they have the same unit
    this.square = !this.flat && a.unit === b.unit && (a.unit !== "" || ratio(a, b) < 8);
    this.resize();
    this.reset();
    const loop = (now) => {
      requestAnimationFrame(loop);
      this.frame(now);
    };
    requestAnimationFrame(loop);
  }

  resize() {
    const box = this.canvas.getBoundingClientRect(), scale = Math.min(devicePixelRatio || 1, 2);
    const across = Math.max(1, Math.round(box.width * scale));
    const up = Math.max(1, Math.round(box.height * scale));
    if (this.canvas.width === across && this.canvas.height === up) return;
    const middle = this.view && this.middle();
    this.canvas.width = this.dots.width = across;
    this.canvas.height = this.dots.height = up;
    this.scale = scale;
    if (middle) this.look(middle, this.size);
    this.changed();
  }

  // the view: a middle, and how large the window is shown, 1 for all of it
  reset() {
    const middle = this.low.map((a, i) => 0.5 * (a + this.high[i]));
    this.look(middle, 1);
  }

  middle() {
    return this.low.map((_, i) => 0.5 * (this.view[0][i] + this.view[1][i]));
  }

  look(middle, size) {
    this.size = Math.min(Math.max(size, CLOSEST), 1);
    const sides = this.sides().map((side) => side * this.size);
    const held = middle.map((m, i) => {
      const slack = Math.max(0, this.high[i] - this.low[i] - 0.5 * sides[i]);
      const least = Math.min(this.low[i] + 0.5 * sides[i], this.high[i] - 0.5 * sides[i]);
      const most = Math.max(this.low[i] + 0.5 * sides[i], this.high[i] - 0.5 * sides[i]);
      return slack >= 0 ? Math.min(Math.max(m, least), most) : m;
    });
    this.view = [held.map((m, i) => m - 0.5 * sides[i]), held.map((m, i) => m + 0.5 * sides[i])];
    this.changed();
    this.onmove();
  }

  // how much of each axis the canvas shows at size 1
  sides() {
    const sides = this.low.map((a, i) => this.high[i] - a);
    if (!this.square) return sides;
    const [w, h] = [this.canvas.width, this.canvas.height];
    const unit = Math.max(sides[0] / w, sides[1] / h);
    return [unit * w, unit * h];
  }

  changed() {
    this.dirty = true;
  }

  across(x) {
    return ((x - this.view[0][0]) / (this.view[1][0] - this.view[0][0])) * this.canvas.width;
  }

  down(y) {
    return (1 - (y - this.view[0][1]) / (this.view[1][1] - this.view[0][1])) * this.canvas.height;
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const u = (event.clientX - box.left) / box.width, v = 1 - (event.clientY - box.top) / box.height;
    return this.low.map((_, i) => this.view[0][i] + [u, v][i] * (this.view[1][i] - this.view[0][i]));
  }

  zoom(factor, about) {
    const around = about || this.middle();
    const size = Math.min(Math.max(this.size * factor, CLOSEST), 1), real = size / this.size;
    const middle = this.middle().map((m, i) => around[i] + (m - around[i]) * real);
    this.look(middle, size);
  }

  move(across, up) {
    const [low, high] = this.view;
    const middle = this.middle();
    middle[0] += across * (high[0] - low[0]);
    if (!this.flat) middle[1] += up * (high[1] - low[1]);
    this.look(middle, this.size);
  }

  // show a box with some of its surroundings
  show(low, high) {
    const sides = this.sides();
    const size = Math.max(...low.map((a, i) => (high[i] - a) / sides[i])) * 4;
    this.look(low.map((a, i) => 0.5 * (a + high[i])), size);
  }

  listen() {
    const canvas = this.canvas, held = new Map();
    let apart = 0;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, event);
      apart = 0;
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.view) return;
      this.hover = this.at(event);
      this.onread(this.hover);
      if (!held.has(event.pointerId)) return;
      const before = held.get(event.pointerId), box = canvas.getBoundingClientRect();
      held.set(event.pointerId, event);
      if (held.size === 1) {
        this.move((before.clientX - event.clientX) / box.width, (event.clientY - before.clientY) / box.height);
      } else {
        const [a, b] = [...held.values()];
        const distance = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
        if (apart) this.zoom(apart / distance, this.hover);
        apart = distance;
      }
    });
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, (event) => held.delete(event.pointerId));
    }
    canvas.addEventListener("pointerleave", () => this.onread(null));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (this.view) this.zoom(Math.exp(0.0016 * event.deltaY), this.at(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const steps = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, 0.15], ArrowDown: [0, -0.15] };
    if (event.ctrlKey || event.metaKey || event.altKey || !this.view) return;
    if (steps[event.key]) this.move(...steps[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(0.7);
    else if (event.key === "-" || event.key === "_") this.zoom(1 / 0.7);
    else if (event.key === "0" || event.key === "Home") this.reset();
    else return;
    event.preventDefault();
    this.onread(this.middle());
  }

  // takes an answer of v1/page/picture, of the whole window or of the part in view
  take(answer, isWhole) {
    if (answer.x) {
      this.part = answer;
      if (isWhole) this.whole = answer;
      this.changed();
      return;
    }
    const values = floatsOf(answer.values);
    if (isWhole) {
      this.shading = shading(values);
      this.oncolour(this.shading.top, answer.rates);
    }
    const { width, height } = answer, image = document.createElement("canvas");
    image.width = width;
    image.height = height;
    const context = image.getContext("2d"), pixels = context.createImageData(width, height);
    const colours = new Uint32Array(pixels.data.buffer), { top, power } = this.shading;
    for (let i = 0; i < values.length; i++) {
      const v = values[i];
      if (v >= 0) colours[i] = ramp[Math.round(255 * Math.min(v / top, 1) ** power)];
    }
    context.putImageData(pixels, 0, 0);
    const found = { image, low: answer.low, high: answer.high, values, width, height, rates: answer.rates };
    if (isWhole) this.whole = found;
    else this.part = found;
    this.changed();
  }

  // the rate at a point, if it is known
  rate(point) {
    for (const known of [this.part, this.whole]) {
      if (!known) continue;
      if (known.x) {
        const i = Math.round(((point[0] - known.low[0]) / (known.high[0] - known.low[0])) * (known.x.length - 1));
        if (i >= 0 && i < known.x.length) return known.rate[i];
        continue;
      }
      const [i, j] = [0, 1].map((k) =>
        Math.floor(((point[k] - known.low[k]) / (known.high[k] - known.low[k])) * [known.width, known.height][k]));
      if (i < 0 || j < 0 || i >= known.width || j >= known.height) continue;
      const value = known.values[(known.height - 1 - j) * known.width + i];
      return value >= 0 ? value : null;
    }
    return null;
  }

  frame(now) {
    if (!this.view) return;
    const active = this.events.next > 0 && now - (this.lastNew || -1e9) < FRESH;
    if (!this.dirty && !active) return;
    const began = performance.now();
    if (this.dirty) this.drawDots();
    this.dirty = false;
    const c = this.context;
    c.clearRect(0, 0, this.canvas.width, this.canvas.height);
    if (this.flat) this.drawCurve(c);
    else this.drawMap(c);
    c.drawImage(this.dots, 0, 0);
    this.drawFresh(c, now);
    if (!this.flat) this.drawScale(c);
    this.drawBoxes(c);
    this.frames.push(performance.now() - began);
    if (this.frames.length > 240) this.frames.shift();
  }

  drawMap(c) {
    c.imageSmoothingEnabled = false;
    for (const known of [this.whole, this.part]) {
      if (!known) continue;
      const [x, y] = [this.across(known.low[0]), this.down(known.high[1])];
      c.drawImage(known.image, x, y, this.across(known.high[0]) - x, this.down(known.low[1]) - y);
    }
  }

  drawCurve(c) {
    const known = this.part;
    if (!known) return;
    const shownTo = Math.max(...(this.whole || known).above, ...known.above, 1e-12) * 1.06;
    const foot = this.canvas.height - 44 * this.scale;
    const up = (v) => foot * (1 - v / shownTo);
    this.drawRates(c, up, foot, shownTo);
    if (known.rates) c.fillText(known.rates, 8 * this.scale, 15 * this.scale);
    c.fillStyle = inkOf("--band");
    c.beginPath();
    known.x.forEach((x, i) => c.lineTo(this.across(x), up(known.above[i])));
    for (let i = known.x.length - 1; i >= 0; i--) c.lineTo(this.across(known.x[i]), up(known.below[i]));
    c.fill();
    c.strokeStyle = inkOf("--accent");
    c.lineWidth = 2.2 * this.scale;
    c.lineJoin = "round";
    c.beginPath();
    known.x.forEach((x, i) => c.lineTo(this.across(x), up(known.rate[i])));
    c.stroke();
    this.drawTicks(c, inkOf("--soft"));
  }

  // lines at round rates, and the rates beside them
  drawRates(c, up, foot, shownTo) {
    const s = this.scale, step = niceStep((shownTo / foot) * 56 * s);
    c.font = `${11.5 * s}px ui-sans-serif, system-ui, sans-serif`;
    c.textAlign = "left";
    c.strokeStyle = inkOf("--line");
    c.fillStyle = inkOf("--soft");
    c.lineWidth = s;
    for (let k = 0; up(k * step) > 34 * s; k++) {
      const y = Math.round(up(k * step));
      c.beginPath();
      c.moveTo(0, y);
      c.lineTo(this.canvas.width, y);
      c.stroke();
      c.fillText(k * step < 1e4 ? number(k * step, 4) : shortCount(k * step), 8 * s, y - 4 * s);
    }
  }

  // events as squares of a few pixels, written straight into an image: quick for any number
  drawDots() {
    const { width, height } = this.dots, c = this.dots.getContext("2d"), s = this.scale;
    if (this.image?.width !== width || this.image?.height !== height) this.image = c.createImageData(width, height);
    const [x0, y0] = this.view[0], [x1, y1] = [this.view[1][0], this.flat ? 1 : this.view[1][1]];
    const many = this.events.kept > MANY;
    const side = Math.max(2, Math.round((many ? 1 : 1.6) * s * Math.min(2, this.size ** -0.25)));
    const recent = this.until - this.span / 24, from = this.until - this.span;
    const place = {
      fx: ((this.high[0] - this.low[0]) / (x1 - x0)) * width,
      ox: ((this.low[0] - x0) / (x1 - x0)) * width,
      fy: this.flat ? 0 : (-(this.high[1] - this.low[1]) / (y1 - y0)) * height,
      oy: this.flat ? height - 32 * s : height - ((this.low[1] - y0) / (y1 - y0)) * height,
      wide: this.flat ? Math.round(s) : side,
      tall: this.flat ? Math.round(9 * s) : side,
    };
    const white = (alpha) => (Math.round(255 * alpha) << 24) | (this.flat ? 0x808080 : 0xffffff);
    const colours = many ? [white(0.3), white(0.5)] : [white(0.45), white(0.95)];
    this.shown = stamped(this.image, this.events, place, [from, recent, this.until], colours);
    c.putImageData(this.image, 0, 0);
    if (!this.flat && this.shown < FEW) this.drawDiscs(c, from, recent);
  }

  // few events: discs with an outline, the older the fainter
  drawDiscs(c, from, recent) {
    const s = this.scale;
    c.lineWidth = 1.2 * s;
    c.strokeStyle = "rgba(16, 15, 55, .9)";
    this.events.forEach((x, y, t) => {
      if (t > this.until || t < from) return;
      c.globalAlpha = t >= recent ? 1 : 0.5;
      c.fillStyle = t >= recent ? "#ffffff" : "#d9e4ff";
      c.beginPath();
      const across = this.across(this.low[0] + x * (this.high[0] - this.low[0]));
      const down = this.down(this.low[1] + y * (this.high[1] - this.low[1]));
      c.arc(across, down, (t >= recent ? 3.6 : 2.7) * s, 0, 2 * Math.PI);
      c.fill();
      c.stroke();
    });
    c.globalAlpha = 1;
  }

  // rings around events that have just come
  drawFresh(c, now) {
    const e = this.events, MOST = e.x.length;
    for (let n = e.next - 1, k = 0; n >= e.next - e.kept && k < 300; n--, k++) {
      const i = n % MOST, age = now - e.arrived[i];
      if (age > FRESH) break;
      if (e.seconds[i] > this.until) continue;
      const x = this.across(this.low[0] + e.x[i] * (this.high[0] - this.low[0]));
      const y = this.flat ? this.canvas.height - 32 * this.scale
        : this.down(this.low[1] + e.y[i] * (this.high[1] - this.low[1]));
      const share = age / FRESH;
      c.globalAlpha = (1 - share) ** 1.5;
      c.strokeStyle = this.flat ? inkOf("--accent") : "#ffffff";
      c.lineWidth = 1.6 * this.scale;
      c.beginPath();
      c.arc(x, y, (3 + 11 * share) * this.scale, 0, 2 * Math.PI);
      c.stroke();
    }
    c.globalAlpha = 1;
  }

  drawBoxes(c) {
    for (const { low, high, colour, label } of this.boxes) {
      if (low.length < 1) continue;
      const x = this.across(low[0]), w = this.across(high[0]) - x;
      const y = this.flat ? 0 : this.down(high[1]);
      const h = this.flat ? this.canvas.height : this.down(low[1]) - y;
      c.strokeStyle = colour;
      c.lineWidth = 2 * this.scale;
      c.strokeRect(x, y, w, h);
      this.label(c, label, x + 5 * this.scale, y + 16 * this.scale, colour);
    }
  }

  label(c, text, x, y, colour) {
    c.font = `700 ${13 * this.scale}px ui-sans-serif, system-ui, sans-serif`;
    c.textAlign = "left";
    c.lineWidth = 3 * this.scale;
    c.lineJoin = "round";
    c.strokeStyle = this.flat ? inkOf("--wash") : "#10102f";
    c.strokeText(text, x, y);
    c.fillStyle = colour;
    c.fillText(text, x, y);
  }

  drawScale(c) {
    const [axis] = this.axes, s = this.scale;
    if (axis.kind === "number" && !axis.unit) {
      this.drawTicks(c, "rgba(255,255,255,.8)");
      return;
    }
    const perPixel = (this.view[1][0] - this.view[0][0]) / this.canvas.width;
    const length = niceStep(70 * s * perPixel), wide = length / perPixel;
    const x = 14 * s, y = this.canvas.height - 14 * s;
    c.strokeStyle = "#fff";
    c.lineWidth = 2 * s;
    c.beginPath();
    c.moveTo(x, y - 5 * s);
    c.lineTo(x, y);
    c.lineTo(x + wide, y);
    c.lineTo(x + wide, y - 5 * s);
    c.stroke();
    this.label(c, lengthWords(length, axis.unit), x + 6 * s, y - 7 * s, "#fff");
  }

  drawTicks(c, colour) {
    const s = this.scale;
    c.font = `${11.5 * s}px ui-sans-serif, system-ui, sans-serif`;
    c.fillStyle = colour;
    for (let k = 0; k < this.axes.length; k++) {
      const [a, b] = [this.view[0][k], this.view[1][k]];
      const pixels = k ? this.canvas.height : this.canvas.width;
      const isCycle = this.axes[k].kind === "cycle", rough = ((b - a) / pixels) * 90 * s;
      const step = isCycle ? HOURS.find((h) => h >= rough) || 168 : niceStep(rough);
      for (let v = Math.ceil(a / step) * step; v < b; v += step) {
        const text = isCycle ? hourWords(v, this.high[k]) : number(Math.abs(v) < step * 1e-6 ? 0 : v, 4);
        const at = k ? this.down(v) : this.across(v);
        if (at < 24 * s || at > pixels - 24 * s || v < this.low[k] || v > this.high[k]) continue;
        c.textAlign = k ? "left" : "center";
        c.fillText(text, k ? 8 * s : at, k ? at + 4 * s : this.canvas.height - 8 * s);
      }
    }
  }
}

// writes events of a time into an image, the recent ones in another colour; how many are inside
function stamped(image, events, { fx, ox, fy, oy, wide, tall }, [from, recent, until], [old, now]) {
  const pixels = new Int32Array(image.data.buffer), width = image.width | 0, height = image.height | 0;
  const { x, y, seconds, kept, next } = events, most = x.length | 0;
  const [right, bottom] = [width - wide, height - tall], [left, up] = [0.5 * wide, 0.5 * tall];
  pixels.fill(0);
  let shown = 0, i = (next - kept) % most | 0;
  for (let n = 0; n < kept; n++, i = i + 1 === most ? 0 : i + 1) {
    const t = seconds[i];
    if (t > until || t < from) continue;
    const px = (ox + fx * x[i] - left) | 0, py = (oy + fy * y[i] - up) | 0;
    if (px < 0 || py < 0 || px >= right || py >= bottom) continue;
    shown++;
    const colour = t >= recent ? now : old;
    for (let v = 0, row = py * width + px; v < tall; v++, row += width) {
      for (let u = 0; u < wide; u++) pixels[row + u] = colour;
    }
  }
  return shown;
}

const ratio = (a, b) => {
  const q = (a.high - a.low) / (b.high - b.low);
  return Math.max(q, 1 / q);
};
