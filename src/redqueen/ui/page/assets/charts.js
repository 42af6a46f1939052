// Figures: a title, what it says, a chart, its names and the same as a table. A chart that is out of sight waits.
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
RQ.GRAY = "#8a8a8a";
RQ.smoothing = 1;

// The mean over the last steps, of those that have a value.
RQ.smooth = (values, width = RQ.smoothing) => width <= 1 ? values : values.map((value, at) => {
  if (value == null) return null;
  const some = values.slice(Math.max(0, at - width + 1), at + 1).filter((each) => each != null);
  return some.reduce((sum, each) => sum + each, 0) / some.length;
});

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
  if (!drawing && plot.near) { drawing = true; setTimeout(next); }
};
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    entry.target.near = entry.isIntersecting;
    if (entry.isIntersecting && waiting.has(entry.target)) wanted(entry.target);
  }
}, {rootMargin: "100px"});
// A chart is as wide as its place: in another one it is drawn anew.
const sized = new ResizeObserver((entries) => {
  for (const {target} of entries) if (target.drawnAt != null && target.clientWidth && target.clientWidth !== target.drawnAt && !matchMedia("print").matches) wanted(target);
});

// about: {id, title, note, lines: [{name, y, colour, dash?, half?, text?, ends?, gaps?}], share?, fromZero?, within?, stack?,
// x?, unit?: what it is over instead of steps, of each line where it has an x of its own; bands?: [{name, colour, spans: [[from, to]]}]
// behind the lines; marks?: [{x, text}] upright; paint?: draws it, where it is no lines; says?: what it says to those who do not see it}
RQ.chart = (place, about) => {
  let figure = document.getElementById(`chart-${about.id}`);
  if (!figure) {
    const plot = RQ.el("div", {class: "plot", role: "img"});
    const table = RQ.el("details", {}, RQ.el("summary", {}, "as a table"));
    figure = RQ.el("figure", {id: `chart-${about.id}`}, RQ.el("figcaption"), plot, RQ.el("div"), table);
    table.addEventListener("toggle", () => { if (table.open) figure.list(); });
    place.append(figure);
    seen.observe(plot);
    sized.observe(plot);
  }
  const [caption, plot, legend, table] = figure.children;
  const over = `${RQ.number} ${about.unit ?? "step"}`;
  if (plot.over !== over) { plot.over = over; plot.zoom = null; }
  RQ.fill(caption, about.title, about.note ? RQ.el("small", {}, RQ.capital(about.note)) : null);
  plot.setAttribute("aria-label", `Chart: ${about.title}. ${about.says ?? (about.x ? about.note : about.lines.map((line) => {
    const known = line.y.filter((each) => each != null);
    return known.length ? `${RQ.visible(line.name)} from ${RQ.short(known[0])} to ${RQ.short(known[known.length - 1])}` : "";
  }).filter(Boolean).join("; "))}.`);
  figure.list = () => {
    const heads = [[about.x ? about.unit : "step", ""], ...about.lines.map((line) => [RQ.visible(line.name), ""])];
    const length = Math.max(0, ...about.lines.map((line) => line.y.length));
    const rows = Array.from({length}, (_, at) => [about.x ? RQ.short(about.x[at]) : at + 1, ...about.lines.map((line) => RQ.short(line.y[at]))]);
    if (!about.x) rows.reverse();
    const scrolled = table.lastChild.scrollTop;
    RQ.fill(table, table.firstChild, RQ.el("div", {class: "wide", tabindex: "0", role: "region", "aria-label": `${about.title}, step by step`}, RQ.table(RQ.el("table"), heads, rows)));
    table.lastChild.scrollTop = scrolled;
  };
  if (about.paint == null && table.open) figure.list();
  const named = RQ.legend(plot, about);
  const focused = legend.contains(document.activeElement) ? document.activeElement.textContent : null;
  RQ.fill(legend, named);
  if (focused != null) RQ.focusLink(legend, focused);
  plot.draw = () => {
    plot.drawnAt = plot.clientWidth;
    (about.paint ?? RQ.plot)(plot, about);
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
// Paper is light, and has room for two charts of this width in a row.
const PAPER = 350;
let chosen = null;
window.addEventListener("beforeprint", () => {
  chosen = document.documentElement.dataset.theme;
  RQ.paper = PAPER;
  document.documentElement.dataset.theme = "light";
  RQ.repaint();
  RQ.redraw(true);
});
window.addEventListener("afterprint", () => {
  document.documentElement.dataset.theme = chosen;
  RQ.paper = null;
  RQ.repaint();
});
// Charts that go for good.
RQ.drop = (node) => {
  for (const plot of node.querySelectorAll(".plot")) {
    waiting.delete(plot);
    seen.unobserve(plot);
    sized.unobserve(plot);
  }
};
}
