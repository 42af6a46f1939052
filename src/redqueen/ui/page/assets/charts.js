// Lines over steps, or over the seconds of one. A chart is told what it shows; when it is out of sight it waits.
"use strict";
{
// Told apart by people who see colours otherwise (Okabe and Ito), and by dashes.
const COLOURS = {
  light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d00", "#7b61c4"],
  dark: ["#4aa3df", "#ff8a3d", "#2fc79d", "#e6a1c7", "#f2b93f", "#9ad4f7", "#c8a834", "#ab98ec"],
};
const DASHES = ["solid", "dash", "dot", "dashdot"];
RQ.colour = (number) => COLOURS[document.documentElement.dataset.theme || "light"][number % 8];
RQ.dash = (number) => DASHES[Math.floor(number / 8) % DASHES.length];
RQ.smoothing = 1;

// The mean over the last steps, of those that have a value.
RQ.smooth = (values, width = RQ.smoothing) => width <= 1 ? values : values.map((value, at) => {
  if (value == null) return null;
  const some = values.slice(Math.max(0, at - width + 1), at + 1).filter((each) => each != null);
  return some.reduce((sum, each) => sum + each, 0) / some.length;
});

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const faint = (colour, alpha) => `rgba(${[1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)).join(",")},${alpha})`;

const layout = (about) => ({
  margin: {l: 46, r: 10, t: 8, b: 34}, autosize: true, showlegend: about.lines.length > 1,
  paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
  font: {family: "system-ui, sans-serif", size: 11, color: css("--quiet")},
  legend: {orientation: "h", y: -0.16, yanchor: "top", font: {size: 11}, itemwidth: 30},
  hovermode: "x unified", hoverlabel: {bgcolor: css("--card"), bordercolor: css("--line"), font: {color: css("--ink")}},
  xaxis: {title: {text: about.unit ?? "step", standoff: 4}, tickformat: about.unit ? undefined : "d", dtick: about.unit || (about.steps ?? Math.max(0, ...about.lines.map((line) => line.y.length))) > 8 ? undefined : 1, gridcolor: css("--grid"), zeroline: false, rangemode: "tozero", fixedrange: false},
  yaxis: {gridcolor: css("--grid"), zerolinecolor: css("--line"), rangemode: about.fromZero ? "tozero" : "normal", range: about.range,
    tickformat: about.share ? ".0%" : undefined},
  shapes: about.bands && about.bands.flatMap((band) => band.spans.map(([from, to], at) => ({type: "rect", name: band.name, legendgroup: band.name, showlegend: at === 0, xref: "x", yref: "paper", x0: from, x1: to, y0: 0, y1: 1,
    line: {width: 0}, fillcolor: faint(band.colour, .3), layer: "below"}))),
});

// A line that ends at some steps and begins anew: nothing joins what is on both sides.
const parted = (values, ends, between) => values.flatMap((value, at) => ends && ends.has(at) ? [value, between == null ? null : at + between] : [value]);

// The room between both edges, a closed piece for every stretch without a gap, as far as there can be values.
const band = (x, y, half, [least, most]) => {
  const pieces = [[]];
  x.forEach((step, at) => {
    if (y[at] == null || half[at] == null) pieces.push([]);
    else pieces[pieces.length - 1].push([step, y[at], half[at]]);
  });
  const closed = pieces.filter((piece) => piece.length > 1).map((piece) => [...piece.map(([step, mid, more]) => [step, Math.min(mid + more, most)]),
    ...piece.slice().reverse().map(([step, mid, more]) => [step, Math.max(mid - more, least)]), [null, null]]).flat();
  return {x: closed.map(([step]) => step), y: closed.map(([, value]) => value)};
};

const traces = (about) => about.lines.flatMap((line) => {
  const steps = line.x ?? about.x ?? line.y.map((_, at) => at + 1);
  const y = parted(about.raw ? line.y : RQ.smooth(line.y), line.ends);
  const x = parted(steps, line.ends, 1.5);
  const text = line.text && parted(line.text, line.ends);
  const main = {type: "scatter", mode: y.filter((each) => each != null).length < 2 ? "markers" : "lines", name: RQ.plain(line.name), x, y,
    line: {color: line.colour, dash: line.dash, width: 1.8}, marker: {color: line.colour, size: 6}, connectgaps: Boolean(line.gaps),
    text, hovertemplate: `%{y:.4~g}${text ? " %{text}" : ""}`};
  if (about.stack) return [{...main, mode: "lines", stackgroup: "one", fillcolor: faint(line.colour, .55), line: {...main.line, width: .5, ...about.x && {shape: "hvh"}}}];
  if (!line.half) return [main];
  const known = (values) => line.gaps ? values.filter((_, at) => y[at] != null) : values;
  return [{type: "scatter", mode: "lines", line: {width: 0}, hoverinfo: "skip", showlegend: false, legendgroup: main.name, fill: "toself",
    fillcolor: faint(line.colour, .12), ...band(known(x), known(y), known(parted(line.half, line.ends)), about.within ?? [-Infinity, Infinity])}, {...main, legendgroup: main.name}];
});

// Nothing but zooming by the mouse: what a chart has for the keyboard is its table.
const CONFIG = {displaylogo: false, responsive: true, displayModeBar: false, plotlyServerURL: ""};

// The live page shows its words and tables first: plotly's script is long, and nothing else happens while it starts.
let script = null;
const loaded = (draw) => {
  if (window.Plotly) { draw(); return; }
  if (!script) {
    script = RQ.el("script", {src: "plotly.js"});
    requestAnimationFrame(() => setTimeout(() => document.head.append(script)));
  }
  script.addEventListener("load", draw, {once: true});
};

// Until then a chart is its lines alone.
const sketch = (plot, about) => {
  if (window.Plotly || about.stack || about.traces || about.lines.some((line) => line.x)) return;
  const known = about.lines.flatMap((line) => line.y).filter((value) => value != null);
  const [least, most] = [Math.min(...known, about.fromZero ? 0 : Infinity), Math.max(...known)];
  const steps = Math.max(...about.lines.map((line) => line.y.length));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "-6 -4 108 122");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "sketch");
  for (const line of about.lines) {
    const path = document.createElementNS(svg.namespaceURI, "path");
    const at = (step, value) => `${(100 * step / steps).toFixed(1)} ${(100 * (most - value) / (most - least || 1)).toFixed(1)}`;
    path.setAttribute("d", line.y.map((value, step) => value == null ? "" :
      `${step && line.y[step - 1] != null && !(line.ends && line.ends.has(step - 1)) ? "L" : "M"}${at(step + 1, value)}`).join(""));
    path.setAttribute("stroke", line.colour);
    svg.append(path);
  }
  plot.replaceChildren(svg);
};

// Charts are drawn one at a time, those in sight first; between two the browser can answer the reader.
const waiting = new Set();
let drawing = false;
const next = () => {
  const plot = [...waiting].find((each) => each.near) || null;
  drawing = plot != null;
  if (!plot) { performance.mark("charts"); return; }
  waiting.delete(plot);
  setTimeout(next);
  plot.draw();
};
const wanted = (plot) => {
  waiting.add(plot);
  if (!drawing && plot.near) { drawing = true; loaded(() => setTimeout(next)); }
};
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    entry.target.near = entry.isIntersecting;
    if (entry.isIntersecting && waiting.has(entry.target)) wanted(entry.target);
  }
}, {rootMargin: "100px"});

// about: {id, title, note, lines: [{name, y, colour, dash?, half?, text?, ends?}], share?, fromZero?, within?, stack?, extra?,
// x?, unit?: what it is over instead of steps, of each line where it has an x of its own; bands?: [{name, colour, spans: [[from, to]]}] behind the lines}
RQ.chart = (place, about) => {
  let figure = document.getElementById(`chart-${about.id}`);
  if (!figure) {
    const plot = RQ.el("div", {class: "plot", role: "img"});
    const table = RQ.el("details", {}, RQ.el("summary", {}, "as a table"));
    figure = RQ.el("figure", {id: `chart-${about.id}`}, RQ.el("figcaption"), plot, table);
    table.addEventListener("toggle", () => { if (table.open) figure.list(); });
    place.append(figure);
    seen.observe(plot);
  }
  const [caption, plot, table] = figure.children;
  RQ.fill(caption, about.title, about.note ? RQ.el("small", {}, about.note) : null);
  plot.setAttribute("aria-label", `Chart: ${about.title}. ${about.x ? about.note : about.lines.map((line) => {
    const known = line.y.filter((each) => each != null);
    return known.length ? `${RQ.visible(line.name)} from ${RQ.short(known[0])} to ${RQ.short(known[known.length - 1])}` : "";
  }).filter(Boolean).join("; ")}.`);
  figure.list = () => {
    const heads = [[about.x ? about.unit : "step", ""], ...about.lines.map((line) => [RQ.visible(line.name), ""])];
    const length = Math.max(0, ...about.lines.map((line) => line.y.length));
    const rows = Array.from({length}, (_, at) => [about.x ? RQ.short(about.x[at]) : at + 1, ...about.lines.map((line) => RQ.short(line.y[at]))]);
    if (!about.x) rows.reverse();
    const body = RQ.table(RQ.el("table"), heads, rows);
    const scrolled = table.lastChild.scrollTop;
    RQ.fill(table, table.firstChild, RQ.el("div", {class: "wide", tabindex: "0", role: "region", "aria-label": `${about.title}, step by step`}, body));
    table.lastChild.scrollTop = scrolled;
  };
  if (table.open) figure.list();
  sketch(plot, about);
  plot.draw = () => {
    if (!plot.data) plot.replaceChildren();
    Plotly.react(plot, about.traces || traces(about), {...layout(about), ...about.extra && about.extra(css)}, CONFIG);
  };
  wanted(plot);
  return figure;
};

// After a change of what all charts depend on; for the printer at once, in sight or not.
RQ.redraw = (at_once = false) => {
  for (const plot of document.querySelectorAll(".plot")) {
    if (!at_once) { wanted(plot); continue; }
    waiting.delete(plot);
    plot.draw();
  }
};
// Paper is light.
let chosen = null;
window.addEventListener("beforeprint", () => {
  chosen = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  RQ.redraw(true);
});
window.addEventListener("afterprint", () => {
  document.documentElement.dataset.theme = chosen;
  RQ.redraw();
});
// Charts that go for good.
RQ.drop = (node) => {
  for (const plot of node.querySelectorAll(".plot")) {
    waiting.delete(plot);
    seen.unobserve(plot);
    if (window.Plotly) Plotly.purge(plot);
  }
};
}
