// counts over time against what was expected, with uPlot

import { inkOf } from "./colours.js";
import { count, dayOf, hourOf, number, shortCount, when } from "./words.js";

const WHOLE = [0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap((k) => [1, 2, 5].map((m) => m * 10 ** k));

export class Chart {
  constructor(box, readout) {
    this.box = box;
    this.readout = readout;
    this.plot = null;
    this.data = null;
    this.until = Infinity;
    new ResizeObserver(() => this.resize()).observe(box);
  }

  // takes an answer of v1/page/history
  take(answer) {
    this.step = answer.step;
    const none = answer.seconds.map(() => null);
    const began = answer.began === null ? Infinity : answer.began - answer.step;
    const seen = answer.observed.map((n, i) => (answer.seconds[i] < began ? null : n));
    const last = answer.seconds.length - 1, expected = answer.expected || none;
    // the last step ends where it would be followed by another
    const ended = (values) => [...values, values[last]];
    this.data = [
      [...answer.seconds, answer.seconds[last] + answer.step],
      ended(answer.above || none), ended(answer.below || none), ended(expected), [...seen, null],
    ];
    if (this.plot) this.plot.setData(this.data);
    else this.draw();
    this.describe();
  }

  describe() {
    const [t, , , expected, seen] = this.data, last = t.length - 2;
    const usual = expected[last] === null ? "" : `, ${number(expected[last])} expected`;
    this.box.setAttribute("aria-label",
      `Counts over time. Since ${when(t[last])}: ${count(seen[last] || 0)}${usual}.`);
  }

  draw() {
    if (!this.data) return;
    this.plot?.destroy();
    const soft = inkOf("--soft"), line = inkOf("--line"), ink = inkOf("--ink");
    const accent = inkOf("--accent"), band = inkOf("--band");
    const steps = uPlot.paths.stepped({ align: 1 });
    const axis = { stroke: soft, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "12px ui-sans-serif, system-ui, sans-serif" };
    this.plot = new uPlot({
      ...this.size(),
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      legend: { show: false },
      scales: { x: { time: false, range: (_, low, high) => [low, high] }, y: { range: (_, low, high) => [0, Math.max(high * 1.08, 1)] } },
      axes: [
        { ...axis, grid: { show: false }, space: 70, incrs: [3600, 10800, 21600, 43200, 86400, 172800, 604800], values: (_, at) => at.map((t) => this.tick(t)) },
        { ...axis, size: 44, space: 34, incrs: WHOLE, values: (_, at) => at.map(shortCount) },
      ],
      drawOrder: ["axes", "series"],
      series: [
        {},
        { stroke: "transparent", paths: steps, points: { show: false } },
        { stroke: "transparent", paths: steps, points: { show: false } },
        { stroke: accent, width: 1.6, paths: steps, points: { show: false } },
        { stroke: ink, width: 0, fill: ink, paths: uPlot.paths.bars({ size: [0.6, 40], align: 1, radius: 0.12 }), points: { show: false } },
      ],
      bands: [{ series: [1, 2], fill: band }],
      hooks: {
        setCursor: [(plot) => this.tell(plot.cursor.idx)],
        draw: [(plot) => this.mark(plot)],
      },
    }, this.data, this.box);
  }

  // hours of a day, days of a week
  tick(t) {
    const [seconds] = this.data, hour = hourOf(t);
    const isDay = seconds[seconds.length - 1] - seconds[0] < 2 * 86400;
    return isDay && hour !== "00:00" ? hour : dayOf(t);
  }

  tell(i) {
    if (i === null || i === undefined || !this.data || i > this.data[0].length - 2) {
      this.readout("");
      return;
    }
    const [t, above, below, expected, seen] = this.data;
    const usual = expected[i] === null ? "" : `, expected ${number(expected[i])} (${count(below[i])} to ${count(above[i])})`;
    this.readout(`${when(t[i])}: ${seen[i] === null ? "not seen" : count(seen[i])}${usual}`);
  }

  // a line at the time that the slider is at
  mark(plot) {
    if (!Number.isFinite(this.until)) return;
    const x = plot.valToPos(this.until, "x", true), c = plot.ctx;
    c.save();
    c.strokeStyle = inkOf("--accent");
    c.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
    c.lineWidth = 1.5 * devicePixelRatio;
    c.beginPath();
    c.moveTo(x, plot.bbox.top);
    c.lineTo(x, plot.bbox.top + plot.bbox.height);
    c.stroke();
    c.restore();
  }

  at(until) {
    this.until = until;
    this.plot?.redraw(false, false);
  }

  size() {
    return { width: Math.max(this.box.clientWidth, 120), height: window.innerWidth >= 1900 ? 260 : 190 };
  }

  resize() {
    this.plot?.setSize(this.size());
  }
}
