
// The charts of an opened case: values under the pointer, series to switch on and off, logarithmic or linear axes.
const SVG = "http://www.w3.org/2000/svg";
const BOX = { width: 403, height: 252, left: 56, right: 395, top: 31, bottom: 219 };
const UNITS = {
  seconds: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"], [1e-12, "ps"]],
  bytes: [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
};
const whole = (n) => n.toLocaleString("en").replaceAll(",", "\u202f");
const sizeLabel = (n) => (/^10{4,}$/.test(n) ? `10${[...String(String(n).length - 1)].map((k) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[k]).join("")}` : whole(n));
function element(tag, attributes, ...children) {
  const made = tag in { svg: 1, g: 1, path: 1, polygon: 1, line: 1, text: 1, rect: 1 }
    ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
function figure(value, bytes, digits = 3) {
  const units = UNITS[bytes ? "bytes" : "seconds"];
  const [scale, unit] = units.find(([least]) => Math.abs(value) >= least * 0.9995) ?? units.at(-1);
  return `${Number((value / scale).toPrecision(digits)).toLocaleString("en")} ${value ? unit : ""}`.trim();
}

function logTicks(low, high, most) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  const decades = (step) => Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, k) => 10 ** (first + k * step));
  const fine = [first - 1, first, first + 1].flatMap((k) => [1, 2, 5].map((m) => m * 10 ** k)).filter((t) => t >= low * 0.999 && t <= high * 1.001);
  if ((last - first < 2 && fine.length <= most) || first === last) return fine;
  return decades(Math.ceil((last - first) / (most - 1)));
}
function linearTicks(high, most) {
  const rough = high / (most - 1), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, k) => k * step);
}
// A scale from figures to places: `at` maps, `ticks` are where the axis is marked.
function scale(values, log, from, to, own, most = 8) {
  let low = log ? Math.min(...values) : 0, high = Math.max(...values);
  if (log && !own) {
    low = 10 ** (Math.floor(Math.log10(low) * 3) / 3);
    high = 10 ** (Math.ceil(Math.log10(high) * 3) / 3);
    if (high / low < 10) [low, high] = [low / Math.sqrt(10 * low / high), high * Math.sqrt(10 * low / high)];
  } else if (log) [low, high] = [low / 1.15, high * 1.15];
  else high *= 1.04;
  const f = log ? Math.log : (x) => x;
  const at = (x) => from + ((f(x) - f(low)) / (f(high) - f(low))) * (to - from);
  return { at, ticks: log ? logTicks(low, high, most) : linearTicks(high, Math.min(most, 6)) };
}
// The sizes themselves, as far as their labels do not touch.
function sizeTicks(sizes, x) {
  const kept = [], half = (n) => 3.6 * sizeLabel(n).length + 3;
  for (const n of sizes) if (!kept.length || x.at(n) - x.at(kept.at(-1)) > half(n) + half(kept.at(-1))) kept.push(n);
  return kept;
}

function draw(chart, state, data) {
  const shown = chart.series.filter(([number]) => state.on.has(number));
  const points = shown.flatMap(([, at]) => at.filter(Boolean).flatMap((p) => p.slice(0, p.length > 2 ? 3 : 1)));
  const svg = element("svg", { class: "plot", viewBox: `0 0 ${BOX.width} ${BOX.height}`, role: "group", tabindex: 0,
    "aria-label": `${chart.title}. Left and right arrow keys read the values at each n.` });
  svg.append(element("g", { class: "heading" }, element("text", { x: 0, y: 15 }, data.sizes.length > 1 ? chart.title : `${chart.title}, n = ${whole(data.sizes[0])}`)));
  if (!points.length) return { svg };
  if (data.sizes.length === 1) return { svg: dots(chart, shown, points, state, data, svg) };
  const sizes = data.sizes, x = scale(sizes, state.logX, BOX.left, BOX.right, true), y = scale(points, state.logY, BOX.bottom, BOX.top);
  for (const tick of y.ticks)
    svg.append(element("path", { class: "grid-lines", d: `M${BOX.left} ${y.at(tick)}H${BOX.right}`, stroke: "currentColor", "stroke-width": 0.7 }),
      element("text", { x: BOX.left - 5, y: y.at(tick) + 3, "text-anchor": "end" }, figure(tick, chart.bytes)));
  for (const n of sizeTicks(sizes, x))
    svg.append(element("text", { x: x.at(n), y: BOX.bottom + 14, "text-anchor": "middle" }, sizeLabel(n)));
  svg.append(element("g", { class: "axis-name" }, element("text", { x: BOX.right, y: BOX.bottom + 29, "text-anchor": "end" }, "n")));
  for (const [number, at] of shown) svg.append(line(number, at, sizes, x, y, data));
  const guide = element("line", { class: "guide", y1: BOX.top, y2: BOX.bottom, visibility: "hidden" });
  svg.append(guide);
  return { svg, guide, x, sizes, shown };
}
// A case at one size: a row for each backend, the least figure at the top.
function dots(chart, shown, points, state, data, svg) {
  const rows = shown.filter(([, at]) => at[0]).sort(([, [a]], [, [b]]) => a[0] - b[0]);
  const top = 30, bottom = top + 21 * rows.length, x = scale(points, state.logY, 141, 335, false, 4);
  svg.setAttribute("viewBox", `0 0 ${BOX.width} ${bottom + 26}`);
  svg.setAttribute("aria-label", chart.title);
  for (const tick of x.ticks)
    svg.append(element("path", { class: "grid-lines", d: `M${x.at(tick)} ${top}V${bottom}`, stroke: "currentColor", "stroke-width": 0.7 }),
      element("text", { x: x.at(tick), y: bottom + 14, "text-anchor": "middle" }, figure(tick, chart.bytes)));
  rows.forEach(([number, [p]], k) => {
    const y = top + 21 * (k + 0.5), name = names.backends[number], ranked = p.length % 2 === 1;
    const group = element("g", { class: `series s${data.looks[number][0]}`, fill: "none", stroke: "currentColor" });
    if (p.length > 2) group.append(element("path", { d: `M${x.at(p[1])} ${y}H${x.at(p[2])}` }));
    group.append(marker(number, ranked, x.at(p[0]), y, data));
    svg.append(element("g", { class: "row" }, element("text", { x: 0, y: y + 3 }, name.length > 18 ? `${name.slice(0, 9)}…${name.slice(-8)}` : name),
      element("text", { x: BOX.width, y: y + 3, "text-anchor": "end" }, figure(p[0], chart.bytes))), group);
  });
  return svg;
}
function marker(number, ranked, x, y, data) {
  return element("polygon", { class: ranked ? "solid" : "hollow", stroke: ranked ? "none" : "currentColor", transform: `translate(${x} ${y}) scale(.8)`, points: data.markers[data.looks[number][1]] });
}
function line(number, at, sizes, x, y, data) {
  const [colour, , dashes] = data.looks[number];
  const group = element("g", { class: `series s${colour}`, fill: "none", stroke: "currentColor" });
  const stretches = [];
  at.forEach((p, k) => {
    if (!p) return;
    const ranked = p.length % 2 === 1, last = stretches.at(-1);
    const here = { x: x.at(sizes[k]), y: y.at(p[0]), low: p.length > 2 && y.at(p[1]), high: p.length > 2 && y.at(p[2]), k };
    if (last && last.ranked === ranked && last.points.at(-1).k === k - 1) last.points.push(here);
    else stretches.push({ ranked, points: [here] });
  });
  for (const { ranked, points } of stretches) {
    const path = (edge) => points.map((p) => `${p.x.toFixed(1)} ${p[edge].toFixed(1)}`);
    if (points.every((p) => p.low !== false))
      group.append(element("path", { d: `M${[...path("low"), ...path("high").reverse()].join("L")}Z`, fill: "currentColor", "fill-opacity": 0.1, stroke: "none" }));
    group.append(element("path", { d: `M${path("y").join("L")}`, class: ranked ? `d${dashes}` : "loose", "stroke-width": 1.6 }));
    for (const p of points) {
      if (p.low !== false) group.append(element("path", { d: `M${p.x} ${p.low}V${p.high}` }));
      group.append(marker(number, ranked, p.x, p.y, data));
    }
  }
  return group;
}
function swatch(number, data) {
  const [colour, marker, dashes] = data.looks[number];
  return element("svg", { class: `swatch series s${colour}`, viewBox: "-15 -5.5 30 11", "aria-hidden": "true" },
    element("path", { class: `d${dashes}`, d: "M-14 0H14" }), element("polygon", { class: "solid", points: data.markers[marker] }));
}

// The values at one size, least first; nothing without a size.
function readout(chart, drawn, k, data) {
  if (k === null) return [element("span", { class: "quiet" }, "Point at the chart to read values.")];
  const found = drawn.shown.map(([number, at]) => [number, at[k]]).filter(([, p]) => p).sort(([, a], [, b]) => a[0] - b[0]);
  const parts = found.map(([number, p]) => {
    const spread = p.length > 2 ? ` (${figure(p[1], chart.bytes)}–${figure(p[2], chart.bytes)})` : "";
    const ranked = p.length % 2 ? "" : ", not ranked";
    return element("span", {}, swatch(number, data), ` ${names.backends[number]} ${figure(p[0], chart.bytes)}${spread}${ranked}`);
  });
  return [element("span", { class: "quiet" }, `n = ${whole(drawn.sizes[k])}`), ...parts];
}
function panel(chart, state, data) {
  const drawn = draw(chart, state, data);
  if (!drawn.guide) return element("div", { class: "panel" }, drawn.svg);
  const told = element("output", { class: "readout" });
  let at = null;
  const show = (k) => {
    at = k;
    if (k !== null) for (const end of ["x1", "x2"]) drawn.guide.setAttribute(end, drawn.x.at(drawn.sizes[k]));
    drawn.guide.setAttribute("visibility", k === null ? "hidden" : "visible");
    told.replaceChildren(...readout(chart, drawn, k, data));
  };
  drawn.svg.addEventListener("pointermove", (event) => {
    const box = drawn.svg.getBoundingClientRect(), here = ((event.clientX - box.left) / box.width) * BOX.width;
    const away = drawn.sizes.map((n) => Math.abs(drawn.x.at(n) - here));
    show(away.indexOf(Math.min(...away)));
  });
  drawn.svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    show(at === null ? (step > 0 ? 0 : drawn.sizes.length - 1) : Math.max(0, Math.min(drawn.sizes.length - 1, at + step)));
  });
  drawn.svg.addEventListener("pointerleave", () => show(null));
  show(null);
  return element("div", { class: "panel" }, drawn.svg, told);
}

function toggle(label, pressed, change, ...icon) {
  const button = element("button", { type: "button", "aria-pressed": String(pressed) }, ...icon, label);
  button.addEventListener("click", () => button.setAttribute("aria-pressed", String(change())));
  return button;
}
async function enliven(fold) {
  const all = JSON.parse(await unpack("charts")), found = all.cases[fold.dataset.curves];
  const data = { ...all, sizes: found.sizes };
  const lead = found.charts[0].series.slice(0, all.shown).map(([number]) => number);
  const state = { on: new Set(lead), logX: true, logY: true };
  const every = [...new Set(found.charts.flatMap((chart) => chart.series.map(([number]) => number)))].sort((a, b) => a - b);
  const panels = element("div", { class: "panels" });
  const redraw = () => panels.replaceChildren(...found.charts.map((chart) => panel(chart, state, data)));
  const flip = (number) => () => { const on = !state.on.delete(number); if (on) state.on.add(number); redraw(); return on; };
  const axis = (name) => () => { state[name] = !state[name]; redraw(); return state[name]; };
  const buttons = every.map((number) => toggle(names.backends[number], state.on.has(number), flip(number), swatch(number, data), " "));
  const live = element("div", { class: "live-charts" },
    element("div", { class: "series-buttons", role: "group", "aria-label": "Backends in the charts" }, ...buttons),
    element("div", { class: "axes", role: "group", "aria-label": "Axes" }, "Logarithmic:",
      ...(data.sizes.length > 1 ? [toggle("n", true, axis("logX"))] : []), toggle("value", true, axis("logY"))),
    panels);
  redraw();
  fold.querySelector("summary").after(live);
  fold.closest(".card").classList.add("live");
  fold.addEventListener("toggle", () => fold.closest(".card").classList.toggle("live", fold.open));
}
if ("DecompressionStream" in window)
  for (const fold of document.querySelectorAll("details[data-curves]")) {
    const start = () => { if (fold.open) { fold.removeEventListener("toggle", start); enliven(fold); } };
    fold.addEventListener("toggle", start);
    start();
  }
