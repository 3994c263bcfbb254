// maps that zoom: the rate in cells of every size, drawn on a canvas over the map of the page
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const floatsOf = (text) => new Float32Array(bytesOf(text || "").buffer);
const numbersOf = (text) => (text ? text.split(" ").map(Number) : []);
const inflated = async (text) => {
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
};
const digits = (x, n) => {
  const shown = new Intl.NumberFormat("en", { maximumSignificantDigits: n });
  if (x === 0 || (Math.abs(x) >= 1e-5 && Math.abs(x) < 1e9)) return shown.format(x).replace("-", "−");
  const power = Math.floor(Math.log10(Math.abs(x)));
  const raised = String(power).replace(/[-\d]/g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));
  return `${shown.format(x / 10 ** power)} × 10${raised}`;
};
const niceStep = (rough) => {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= rough * 0.999);
};
const SMALLER = { km: "m", m: "mm" };
const lengthWords = (x, unit) =>
  x < 1 && SMALLER[unit] ? `${digits(1000 * x, 2)} ${SMALLER[unit]}` : `${digits(x, 2)} ${unit}`.trim();

// cells of a quadtree, the largest first; the i-th that is divided has children 4i + 1 to 4i + 4
function quadtree(bytes, count) {
  const values = bytes.subarray(0, count);
  const children = new Int32Array(count);
  for (let i = 0, divided = 0; i < count; i++) {
    if (!((bytes[count + (i >> 3)] >> (7 - (i & 7))) & 1)) continue;
    const first = 4 * divided++ + 1;
    children[i] = first;
    // what is stored is the difference from the cell around
    for (let c = first; c < first + 4; c++) values[c] = (values[c] + values[i]) & 255;
  }
  return { values, children };
}

function zoomMap(box, bytes) {
  const given = box.dataset;
  const svg = box.querySelector("svg");
  const figure = box.closest("figure");
  const readout = figure.querySelector(".readout");
  const { values, children } = quadtree(bytes, Number(given.count));
  const [lowest, highest] = numbersOf(given.range);
  const rates = Float64Array.from({ length: 256 }, (_, b) =>
    b ? lowest * (highest / lowest) ** ((b - 1) / 254) : 0);
  // shares of the map: x to the right, y down
  const [rootX, rootY, rootWidth, rootHeight] = numbersOf(given.root);
  const axes = JSON.parse(given.axes);
  const spots = (given.spots || "").split(";").filter(Boolean).map(numbersOf);
  const points = floatsOf(given.dots);
  const depth = Number(given.depth);
  const ramp = given.ramp.match(/.{6}/g).map((hex) => parseInt(hex, 16));
  const reversed = (c) => (255 << 24) | ((c & 255) << 16) | (c & 0xff00) | (c >> 16);
  const colours = Uint32Array.from(ramp, reversed);
  const outline = new Path2D();
  let at = 0;
  const vertices = floatsOf(given.outline);
  for (const n of numbersOf(given.rings)) {
    for (let i = 0; i < n; i++, at += 2) outline[i ? "lineTo" : "moveTo"](vertices[at], vertices[at + 1]);
    outline.closePath();
  }
  const [left, top, width, height] = numbersOf(given.inner);
  const [, , svgWidth, svgHeight] = numbersOf(svg.getAttribute("viewBox"));

  const canvas = document.createElement("canvas");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-label", `${svg.getAttribute("aria-label")}. Plus and minus zoom, arrow keys move, 0 shows the whole map.`);
  canvas.style.cssText = `left:${(100 * left) / svgWidth}%;top:${(100 * top) / svgHeight}%;width:${(100 * width) / svgWidth}%;height:${(100 * height) / svgHeight}%`;
  box.append(canvas);
  svg.setAttribute("aria-hidden", "true");
  box.classList.add("live");
  const context = canvas.getContext("2d");
  const buffer = document.createElement("canvas");
  const view = { x: 0, y: 0, zoom: 1 };
  let W = 1, H = 1, density = 1, pending = false;
  // at the greatest zoom, the smallest cells are 24 pixels wide
  const greatest = () => Math.max(1, (24 * 2 ** depth) / (rootWidth * W));

  // the cells in view as pixels of a buffer, and how much of the view has which value
  function cellsInView() {
    const wanted = Math.log2((rootWidth * view.zoom * W * density) / 1.5);
    const level = Math.max(0, Math.min(depth, Math.ceil(wanted)));
    const side = 2 ** level, cellWidth = rootWidth / side, cellHeight = rootHeight / side;
    const clip = (i) => Math.max(0, Math.min(side - 1, i));
    const i0 = clip(Math.floor((view.x - rootX) / cellWidth));
    const i1 = clip(Math.ceil((view.x + 1 / view.zoom - rootX) / cellWidth) - 1);
    // rows count up from the bottom
    const j0 = clip(Math.floor((rootY - view.y - 1 / view.zoom) / cellHeight));
    const j1 = clip(Math.ceil((rootY - view.y) / cellHeight) - 1);
    const columns = i1 - i0 + 1, rows = j1 - j0 + 1;
    const found = new Uint8Array(columns * rows);
    const amounts = new Float64Array(256);
    const visit = (cell, up, i, j) => {
      // the cell covers 2^up by 2^up of those that are drawn
      const size = 2 ** up, a = Math.max(i0, i * size), b = Math.min(i1 + 1, (i + 1) * size);
      const c = Math.max(j0, j * size), d = Math.min(j1 + 1, (j + 1) * size);
      if (a >= b || c >= d) return;
      if (up && children[cell]) {
        for (let n = 0; n < 4; n++) visit(children[cell] + n, up - 1, 2 * i + (n & 1), 2 * j + (n >> 1));
        return;
      }
      amounts[values[cell]] += (b - a) * (d - c);
      for (let row = c; row < d; row++) {
        const start = (j1 - row) * columns - i0;
        found.fill(values[cell], start + a, start + b);
      }
    };
    visit(0, level, 0, 0);
    return { found, amounts, columns, rows, i0, j1, cellWidth, cellHeight };
  }

  // colours that tell quiet cells apart: a root of the rate, up to where 98 % of the events are
  function shadingOf(amounts) {
    let total = 0, peak = 0;
    for (let b = 1; b < 256; b++) {
      total += amounts[b] * rates[b];
      if (amounts[b]) peak = rates[b];
    }
    const reached = (share) => {
      let sum = 0, b = 0;
      while (b < 255 && sum < share * total) sum += amounts[++b] * rates[b];
      return rates[b];
    };
    const typical = reached(0.5);
    let most = reached(0.98);
    most = (peak > 2 * most ? most : peak) || 1;
    const power = 0.5 ** [2.5, 16].filter((steep) => most > steep * typical).length;
    return { peak, top: most, power };
  }

  const toX = (x) => (x - view.x) * view.zoom * W;
  const toY = (y) => (y - view.y) * view.zoom * H;
  const inMapUnits = () => context.setTransform(
    view.zoom * W * density, 0, 0, view.zoom * H * density,
    -view.x * view.zoom * W * density, -view.y * view.zoom * H * density);

  function draw() {
    pending = false;
    const cells = cellsInView(), shade = shadingOf(cells.amounts);
    buffer.width = cells.columns;
    buffer.height = cells.rows;
    const image = new ImageData(cells.columns, cells.rows);
    const pixels = new Uint32Array(image.data.buffer);
    const table = Uint32Array.from(rates, (rate) =>
      colours[Math.round(255 * Math.min(1, rate / shade.top) ** shade.power)]);
    for (let i = 0; i < pixels.length; i++) pixels[i] = table[cells.found[i]];
    buffer.getContext("2d").putImageData(image, 0, 0);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.save();
    inMapUnits();
    context.clip(outline, "evenodd");
    context.imageSmoothingEnabled = given.smooth === "1" || cells.cellWidth * view.zoom * W < 3;
    context.drawImage(buffer, rootX + cells.i0 * cells.cellWidth, rootY - (cells.j1 + 1) * cells.cellHeight,
      cells.columns * cells.cellWidth, cells.rows * cells.cellHeight);
    context.restore();
    // the path is scaled, not the line, which is as wide on both axes
    const across = new Path2D();
    across.addPath(outline, new DOMMatrix([view.zoom * W, 0, 0, view.zoom * H, -view.x * view.zoom * W, -view.y * view.zoom * H]));
    context.setTransform(density, 0, 0, density, 0, 0);
    context.strokeStyle = "rgba(128,128,128,.9)";
    context.lineWidth = 0.8;
    context.stroke(across);
    drawDots();
    drawSpots();
    drawScale();
    drawAxes();
    drawLegend(shade);
    minus.disabled = whole.disabled = view.zoom <= 1;
    plus.disabled = view.zoom >= greatest() * 0.999;
    canvas.style.touchAction = view.zoom > 1 ? "none" : "pan-x pan-y";
  }
  const redraw = () => {
    if (!pending) requestAnimationFrame(draw);
    pending = true;
  };

  function drawDots() {
    let seen = 0;
    const inView = [];
    for (let i = 0; i < points.length; i += 2) {
      const x = toX(points[i]), y = toY(points[i + 1]);
      if (x >= 0 && x <= W && y >= 0 && y <= H) inView.push(x, y);
    }
    seen = Math.max(1, inView.length / 2);
    const size = Math.min(4, Math.max(0.9, 45 / Math.sqrt(seen)));
    context.fillStyle = `rgba(255,255,255,${Math.min(0.8, Math.max(0.22, 14 / Math.sqrt(seen)))})`;
    context.strokeStyle = "rgba(16,16,47,.5)";
    context.lineWidth = 0.5;
    context.beginPath();
    for (let i = 0; i < inView.length; i += 2) {
      context.moveTo(inView[i] + size / 2, inView[i + 1]);
      context.arc(inView[i], inView[i + 1], size / 2, 0, 7);
    }
    context.fill();
    if (size > 2) context.stroke();
  }

  const halo = (text, x, y, anchor, font) => {
    context.font = font;
    context.textAlign = anchor;
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = 3;
    context.strokeStyle = "#10102f";
    context.fillStyle = "#fff";
    context.strokeText(text, x, y);
    context.fillText(text, x, y);
  };
  function drawSpots() {
    const font = `700 ${W < 400 ? 12 : 13}px ${getComputedStyle(document.body).fontFamily}`;
    spots.forEach(([x, y, width_, height_], i) => {
      const a = toX(x), b = toX(x + width_), c = toY(y), d = toY(y + height_);
      if (b < 0 || a > W || d < 0 || c > H) return;
      context.lineWidth = 1.3;
      context.strokeStyle = "#fff";
      context.strokeRect(a, c, b - a, d - c);
      if (a < 0 && b > W) return;
      const room = b < W - 18;
      const row = Math.min(H - 9, Math.max(9, (c + d) / 2));
      halo(String(i + 1), room ? b + 4 : Math.max(10, a - 4), row, room ? "left" : "right", font);
    });
  }

  // a bar of round length, if both axes have the same unit
  function drawScale() {
    if (given.scale !== "1") return;
    const perPixel = (axes[0].high - axes[0].low) / (view.zoom * W);
    const length = niceStep(70 * perPixel), pixels = length / perPixel;
    const y = H - 12, x = 12;
    for (const [style, lineWidth] of [["#10102f", 4.5], ["#fff", 2]]) {
      context.strokeStyle = style;
      context.lineWidth = lineWidth;
      context.lineCap = "square";
      context.beginPath();
      context.moveTo(x, y - 5);
      context.lineTo(x, y);
      context.lineTo(x + pixels, y);
      context.lineTo(x + pixels, y - 5);
      context.stroke();
    }
    halo(lengthWords(length, axes[0].unit), x + pixels / 2, y - 11, "center", `600 11.5px ${getComputedStyle(document.body).fontFamily}`);
  }

  // ticks of both axes as the page has them, at round numbers of the view
  const drawn = svg.querySelector(".axes");
  const drawnTicks = drawn.innerHTML;
  const element = (name, attributes, text) => {
    const found = document.createElementNS(svg.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
    if (text !== undefined) found.textContent = text;
    return found;
  };
  function ticksOf(axis, low, high) {
    if (axis.ticks.length) return axis.ticks.filter(([place]) => place >= low && place <= high);
    const step = niceStep((high - low) / 5), found = [];
    const decimals = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; n++) {
      const text = (n * step + 0).toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals, useGrouping: Math.abs(high) >= 1e4 });
      found.push([n * step, text.replace("-", "−")]);
    }
    return found;
  }
  function drawAxes() {
    if (view.zoom === 1) {
      drawn.innerHTML = drawnTicks;
      return;
    }
    const names = [...drawn.querySelectorAll(".axis-name")];
    drawn.replaceChildren();
    const spans = axes.map((axis) => axis.high - axis.low), base = top + height;
    const from = axes[0].low + view.x * spans[0];
    ticksOf(axes[0], from, from + spans[0] / view.zoom).forEach(([place, text]) => {
      const x = left + ((place - from) / spans[0]) * view.zoom * width;
      drawn.append(element("path", { class: "tick", d: `M${x} ${base}V${base + 4}` }),
        element("text", { x, y: base + 18, "text-anchor": "middle" }, text));
    });
    const until = axes[1].high - view.y * spans[1];
    ticksOf(axes[1], until - spans[1] / view.zoom, until).forEach(([place, text]) => {
      const y = top + ((until - place) / spans[1]) * view.zoom * height;
      drawn.append(element("path", { class: "tick", d: `M${left - 4} ${y}H${left}` }),
        element("text", { x: left - 7, y: y + 4, "text-anchor": "end" }, text));
    });
    drawn.append(...names);
  }

  // the rates under the colours of the view
  const legend = figure.querySelector(".bar");
  const legendTicks = legend.querySelector(".ticks"), legendName = legend.querySelector(".axis-name");
  const ROOTS = { 1: "", 0.5: ", square-root colours", 0.25: ", fourth-root colours" };
  function drawLegend({ peak, top: most, power }) {
    const wanted = [0, 0.2, 0.4, 0.6, 0.8, 1].map((share) => Number((most * share ** (1 / power)).toPrecision(power === 1 ? 2 : 1)));
    let ticks = wanted.filter((rate) => rate <= most * 1.0001).map((rate) => [rate, digits(rate, 2)]);
    if (peak > most * 1.0001) {
      ticks = ticks.filter(([rate]) => (rate / most) ** power < 0.78);
      ticks.push([most, `over ${digits(most, 2)}`]);
    }
    legendTicks.replaceChildren();
    let before = -1;
    for (const [rate, text] of ticks) {
      const share = (rate / most) ** power;
      if (share - before < 0.08) continue;
      before = share;
      const x = left + share * width;
      const anchor = share > 0.97 && text.length > 3 ? "end" : "middle";
      legendTicks.append(element("path", { class: "tick", d: `M${x} 30V34` }),
        element("text", { x, y: 48, "text-anchor": anchor }, text));
    }
    legendName.textContent = given.unit + ROOTS[power];
  }

  function place(x, y) {
    const [a, b] = [axes[0].low + x * (axes[0].high - axes[0].low), axes[1].high - y * (axes[1].high - axes[1].low)];
    const step = (axes[0].high - axes[0].low) / (view.zoom * W);
    const shown = (value, by) => value.toFixed(Math.min(8, Math.max(0, Math.ceil(-Math.log10(by))))).replace("-", "−");
    const names = JSON.parse(given.names);
    if (!given.lonlat) return names.length ? `${names[0]} ${shown(a, step)}, ${names[1]} ${shown(b, step)}` : "";
    const [west, south, parallel, radius] = numbersOf(given.lonlat), degree = Math.PI / 180;
    const scale = Math.cos(parallel * degree);
    const lon = west + a / (radius * scale) / degree;
    const sine = (b * scale) / radius + Math.sin(south * degree);
    const lat = Math.asin(Math.max(-1, Math.min(1, sine))) / degree;
    return `${names[0]} ${shown(lon, step / 111)}, ${names[1]} ${shown(lat, step / 111)}`;
  }

  // the rate at a place, and the count of the smallest cell there that is known
  function told(x, y) {
    context.setTransform(1, 0, 0, 1, 0, 0);
    if (!context.isPointInPath(outline, x, y, "evenodd")) return "";
    let cell = 0, level = 0, i = (x - rootX) / rootWidth, j = (rootY - y) / rootHeight;
    for (; children[cell]; level++) {
      i *= 2;
      j *= 2;
      const [a, b] = [i, j].map((u) => Math.max(0, Math.min(1, Math.floor(u))));
      i -= a;
      j -= b;
      cell = children[cell] + a + 2 * b;
    }
    const spans = axes.map((axis) => axis.high - axis.low);
    const sides = [(rootWidth * spans[0]) / 2 ** level, (rootHeight * spans[1]) / 2 ** level];
    const rate = rates[values[cell]];
    const [w, h] = [rootWidth / 2 ** level, rootHeight / 2 ** level];
    let inside = 0;
    for (let n = 0; n < 64; n++) {
      inside += context.isPointInPath(outline, x + (((n & 7) + 0.5) / 8 - i) * w, y + (j - ((n >> 3) + 0.5) / 8) * h, "evenodd");
    }
    const count = rate * Number(given.perArea) * sides[0] * sides[1] * (inside / 64);
    const size = given.scale === "1" ? lengthWords(sides[0], axes[0].unit) + (Math.abs(sides[0] - sides[1]) > 1e-6 * sides[0] ? ` × ${lengthWords(sides[1], axes[1].unit)}` : "")
      : `${lengthWords(sides[0], axes[0].unit)} × ${lengthWords(sides[1], axes[1].unit)}`;
    return `${digits(rate, 2)} ${given.unit}; ${digits(count, 2)} ${given.counts} in this cell of ${size}`;
  }
  const tell = (x, y, before, live) => {
    const text = told(x, y), where = place(x, y);
    readout.setAttribute("aria-live", live ? "polite" : "off");
    readout.textContent = text ? `${before}${where && ` (${where})`}: about ${text}` : "";
  };
  const tellMiddle = () => tell(view.x + 0.5 / view.zoom, view.y + 0.5 / view.zoom, "In the middle", true);

  function go(x, y, zoom) {
    view.zoom = Math.min(greatest(), Math.max(1, zoom));
    view.x = Math.min(1 - 1 / view.zoom, Math.max(0, x));
    view.y = Math.min(1 - 1 / view.zoom, Math.max(0, y));
    box.dataset.view = `${view.x} ${view.y} ${view.zoom}`;
    redraw();
  }
  // the place under (x, y), in shares of the canvas, stays where it is
  const zoomBy = (factor, x = 0.5, y = 0.5) => {
    const zoom = Math.min(greatest(), Math.max(1, view.zoom * factor));
    go(view.x + x / view.zoom - x / zoom, view.y + y / view.zoom - y / zoom, zoom);
  };
  const moveBy = (x, y) => go(view.x + x / view.zoom, view.y + y / view.zoom, view.zoom);
  function goToSpot(i) {
    const [x, y, w, h] = spots[i];
    const zoom = Math.min(greatest(), Math.max(1, 0.5 / Math.max(w, h)));
    go(x + w / 2 - 0.5 / zoom, y + h / 2 - 0.5 / zoom, zoom);
    tellMiddle();
  }

  const buttons = document.createElement("div");
  buttons.className = "zoom-buttons";
  const button = (text, label, run) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.title = label;
    made.setAttribute("aria-label", label);
    made.addEventListener("click", () => { run(); tellMiddle(); });
    buttons.append(made);
    return made;
  };
  const plus = button("+", "Zoom in", () => zoomBy(2));
  const minus = button("−", "Zoom out", () => zoomBy(0.5));
  const whole = button("0", "Show the whole map", () => go(0, 0, 1));
  buttons.style.cssText = `right:${(100 * (svgWidth - left - width)) / svgWidth}%;top:${(100 * top) / svgHeight}%`;
  box.append(buttons);

  const keys = {
    "+": () => zoomBy(2), "=": () => zoomBy(2), "-": () => zoomBy(0.5), "−": () => zoomBy(0.5), 0: () => go(0, 0, 1),
    ArrowLeft: () => moveBy(-0.2, 0), ArrowRight: () => moveBy(0.2, 0),
    ArrowUp: () => moveBy(0, -0.2), ArrowDown: () => moveBy(0, 0.2),
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
    tellMiddle();
  });

  const share = (event) => {
    const frame = canvas.getBoundingClientRect();
    return [(event.clientX - frame.left) / frame.width, (event.clientY - frame.top) / frame.height];
  };
  // a wheel that began to turn elsewhere goes on scrolling the page
  let scrolled = -1e9;
  addEventListener("wheel", (event) => {
    if (event.target !== canvas) scrolled = event.timeStamp;
  }, { passive: true });
  canvas.addEventListener("wheel", (event) => {
    if (event.timeStamp - scrolled < 250) {
      scrolled = event.timeStamp;
      return;
    }
    if (event.deltaY > 0 && view.zoom <= 1) return;
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 33 : 1;
    zoomBy(Math.exp(-Math.max(-300, Math.min(300, event.deltaY * lines)) / 300), ...share(event));
  }, { passive: false });

  // one finger or the mouse moves the map, two fingers zoom
  const fingers = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    fingers.set(event.pointerId, share(event));
    moved = 0;
    if (canvas.setPointerCapture && event.isTrusted) canvas.setPointerCapture(event.pointerId);
  });
  const middleOf = (all) => [0, 1].map((k) => all.reduce((sum, p) => sum + p[k], 0) / all.length);
  const spread = (all) => (all.length < 2 ? 1 : Math.hypot((all[0][0] - all[1][0]) * W, (all[0][1] - all[1][1]) * H));
  canvas.addEventListener("pointermove", (event) => {
    const now = share(event);
    if (fingers.has(event.pointerId)) {
      const all = [...fingers.values()], [x, y] = middleOf(all), apart = spread(all);
      fingers.set(event.pointerId, now);
      const after = [...fingers.values()], [u, v] = middleOf(after);
      moved += Math.hypot((u - x) * W, (v - y) * H) + Math.abs(spread(after) - apart);
      if (view.zoom > 1 || all.length > 1) {
        moveBy(x - u, y - v);
        if (all.length > 1) zoomBy(spread(after) / apart, u, v);
      }
    }
    tell(view.x + now[0] / view.zoom, view.y + now[1] / view.zoom, "At the pointer", false);
    canvas.style.cursor = spotAt(...now) >= 0 ? "pointer" : "";
  });
  const spotAt = (u, v) => spots.findIndex(([x, y, w, h]) => {
    const [a, b] = [(u * W) - toX(x), (v * H) - toY(y)];
    return a >= -3 && b >= -3 && a <= w * view.zoom * W + 18 && b <= h * view.zoom * H + 3;
  });
  const lift = (event) => {
    if (fingers.delete(event.pointerId) && event.type === "pointerup" && moved < 4) {
      const i = spotAt(...share(event));
      if (i >= 0 && spots[i][2] * view.zoom < 0.4) goToSpot(i);
    }
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", () => (readout.textContent = ""));
  canvas.addEventListener("dblclick", (event) => zoomBy(event.shiftKey ? 0.5 : 2, ...share(event)));

  // ranks in the table of hot spots lead to the map
  document.querySelectorAll("#spots .rank").forEach((rank, i) => {
    if (i >= spots.length) return;
    const link = document.createElement("button");
    link.type = "button";
    link.title = `Show hot spot ${i + 1} on the map`;
    link.setAttribute("aria-label", link.title);
    link.append(...rank.childNodes);
    rank.append(link);
    link.addEventListener("click", () => {
      goToSpot(i);
      canvas.scrollIntoView({ block: "nearest" });
      canvas.focus({ preventScroll: true });
    });
  });

  const fit = () => {
    const frame = canvas.getBoundingClientRect();
    if (!frame.width) return;
    [W, H, density] = [frame.width, frame.height, Math.min(2, devicePixelRatio || 1)];
    canvas.width = Math.round(W * density);
    canvas.height = Math.round(H * density);
    draw();
  };
  fit();
  new ResizeObserver(fit).observe(canvas);
}

for (const box of document.querySelectorAll(".zoom")) {
  if (!window.DecompressionStream || !window.ResizeObserver) break;
  inflated(box.dataset.cells).then((bytes) => zoomMap(box, bytes));
}
