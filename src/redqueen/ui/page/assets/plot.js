// One chart as SVG: axes, lines, the bands around them, stacked areas, what is under the pointer. All text is text nodes.
"use strict";
{
const SPACE = "http://www.w3.org/2000/svg";
const DASHES = {solid: null, dash: "6 4", dot: "2 3", dashdot: "7 3 2 3"};
const TOP = 10, RIGHT = 12, BOTTOM = 36, LETTER = 6.4;
const MOST_DOTS = 40;  // of a line that has values at some steps only

RQ.svg = (tag, attributes = {}, ...children) => {
  const node = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) if (value != null) node.setAttribute(name, value);
  node.append(...children.flat(Infinity).filter((child) => child != null).map((child) => child instanceof Node ? child : RQ.visible(child)));
  return node;
};

// Round numbers from the first below `least` to the first above `most`.
const rounded = (least, most, wanted, finest = 0) => {
  const rough = (most - least) / Math.max(1, wanted) || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return Math.max(finest, power * [1, 2, 5, 10].find((each) => each * power >= rough * .999));
};
const multiples = (least, most, step) => {
  const found = [];
  for (let at = Math.ceil(least / step - 1e-9); at * step <= most + step * 1e-9; at++) found.push(Number((at * step).toPrecision(12)));
  return found;
};
RQ.stepTicks = (least, most, width) => multiples(least, most, rounded(least, most, width / 60, 1));

const written = (about) => (value) => about.share ? `${Number((100 * value).toPrecision(3))} %` : RQ.short(value);

// What is drawn: a line with its x, or a closed band. Stacked lines stand on each other.
RQ.traces = (about) => {
  let below = null;
  return about.lines.flatMap((line) => {
    const x = line.x ?? about.x ?? line.y.map((_, at) => at + 1);
    const y = about.raw ? line.y : RQ.smooth(line.y);
    const main = {name: line.name, x, y, line};
    if (about.stack) {
      main.low = below ?? y.map(() => 0);
      main.high = below = y.map((value, at) => main.low[at] + (value ?? 0));
      return [main];
    }
    return line.half ? [{name: line.name, line, fill: true, ...band(line, x, y, about.within ?? [-Infinity, Infinity])}, main] : [main];
  });
};

// The room between both edges, a closed piece for every stretch without a gap, as far as there can be values.
const band = (line, x, y, [least, most]) => {
  const pieces = [[]];
  x.forEach((at, place) => {
    if (y[place] == null || line.half[place] == null) { if (!line.gaps) pieces.push([]); } else {
      pieces[pieces.length - 1].push([at, y[place], line.half[place]]);
      if (line.ends && line.ends.has(place)) pieces.push([]);
    }
  });
  const closed = pieces.filter((piece) => piece.length > 1).flatMap((piece) => [...piece.map(([at, mid, half]) => [at, Math.min(mid + half, most)]),
    ...piece.slice().reverse().map(([at, mid, half]) => [at, Math.max(mid - half, least)]), [null, null]]);
  return {x: closed.map(([at]) => at), y: closed.map(([, value]) => value)};
};

// From `x` and `y` to a path: a break where nothing is known, unless the line reaches over it, and where it ends.
const path = (x, y, sx, sy, {gaps, ends} = {}) => {
  let pen = "M", drawn = "";
  const alone = [];
  let before = false;
  y.forEach((value, at) => {
    if (value == null || x[at] == null) { if (!gaps) pen = "M"; return; }
    const spot = `${sx(x[at]).toFixed(1)} ${sy(value).toFixed(1)}`;
    const next = y[at + 1] != null && !(ends && ends.has(at));
    before = pen === "L";
    if (!before && !next && !gaps) alone.push(at);
    drawn += pen + spot;
    pen = ends && ends.has(at) ? "M" : "L";
  });
  return {drawn, alone};
};

// The area between two rows of values; with `steps`, each value holds around its own x.
const area = (x, low, high, sx, sy, wide) => {
  const corners = (values) => x.flatMap((at, place) => wide ? [[at - wide / 2, values[place]], [at + wide / 2, values[place]]] : [[at, values[place]]]);
  const along = [...corners(high), ...corners(low).reverse()];
  return along.length ? `M${along.map(([at, value]) => `${sx(at).toFixed(1)} ${sy(value).toFixed(1)}`).join("L")}Z` : "";
};

const extent = (values, from) => values.reduce(([least, most], value) => value == null || !Number.isFinite(value) ? [least, most] : [Math.min(least, value), Math.max(most, value)], from);

RQ.plot = (plot, about) => {
  const hidden = plot.hiddenLines ??= new Set();
  const all = RQ.traces(about);
  plot.data = all;
  const shown = all.filter((trace) => !hidden.has(trace.name));
  const width = (RQ.paper ?? plot.clientWidth) || 360, height = RQ.paper ? 240 : plot.clientHeight || 250;
  const wide = about.x && about.x.length > 1 ? about.x[1] - about.x[0] : 0;
  // Over steps a chart begins at the first of them, over anything else at nothing.
  const reach = extent(all.flatMap((trace) => trace.x), about.unit ? [0, 0] : [1, about.steps ?? 1]);
  if (wide) reach[1] += wide / 2;
  if (reach[0] === reach[1]) { reach[0] -= .5; reach[1] += .5; }
  const [from, to] = plot.zoom ?? reach;
  const inside = (at) => at != null && at >= from && at <= to;
  const seen = shown.flatMap((trace) => (trace.high ?? trace.y).filter((_, at) => inside(trace.x[at])));
  let [least, most] = extent(seen, about.fromZero || about.stack ? [0, 0] : [Infinity, -Infinity]);
  if (least > most) [least, most] = [0, 1];
  if (least === most) { const more = Math.abs(least) * .1 || .5; least -= about.fromZero && least >= 0 && least - more < 0 ? 0 : more; most += more; }
  const step = rounded(least, most, Math.max(2, (height - TOP - BOTTOM) / 38));
  [least, most] = [Math.floor(least / step + 1e-9) * step, Math.ceil(most / step - 1e-9) * step];
  const label = written(about);
  const rows = multiples(least, most, step);
  const left = 12 + LETTER * Math.max(...rows.map((value) => label(value).length));
  const innerWidth = Math.max(40, width - left - RIGHT), innerHeight = Math.max(40, height - TOP - BOTTOM);
  const sx = (at) => innerWidth * (at - from) / (to - from || 1);
  const sy = (value) => innerHeight * (1 - (value - least) / (most - least || 1));
  const columns = about.unit ? multiples(from, to, rounded(from, to, innerWidth / 75)) : RQ.stepTicks(from, to, innerWidth);
  const frame = RQ.svg("g", {class: "axes"},
    rows.map((value) => [RQ.svg("line", {class: value === 0 ? "zero" : "grid", x1: left, x2: left + innerWidth, y1: TOP + sy(value), y2: TOP + sy(value)}),
      RQ.svg("text", {x: left - 6, y: TOP + sy(value) + 3.5, "text-anchor": "end"}, label(value))]),
    columns.map((at) => [RQ.svg("line", {class: "grid", x1: left + sx(at), x2: left + sx(at), y1: TOP, y2: TOP + innerHeight}),
      RQ.svg("text", {x: left + sx(at), y: TOP + innerHeight + 15, "text-anchor": "middle"}, RQ.short(at))]),
    RQ.svg("text", {x: left + innerWidth / 2, y: height - 4, "text-anchor": "middle"}, about.unit ?? "step"));
  const inner = RQ.svg("svg", {x: left, y: TOP, width: innerWidth, height: innerHeight, class: plot.zoom ? "inner cut" : "inner"});
  for (const {colour, spans} of about.bands ?? [])
    for (const [begin, end] of spans) inner.append(RQ.svg("rect", {x: sx(begin), y: 0, width: Math.max(.5, sx(end) - sx(begin)), height: innerHeight, fill: colour, opacity: .3}));
  for (const {x, text} of about.marks ?? []) {
    const late = sx(x) > innerWidth * .7;
    inner.append(RQ.svg("line", {class: "mark", x1: sx(x), x2: sx(x), y1: 0, y2: innerHeight}), RQ.svg("text", {class: "mark", x: sx(x) + (late ? -4 : 4), y: 10, "text-anchor": late ? "end" : "start"}, text));
  }
  for (const trace of shown) {
    const {colour, dash, gaps} = trace.line;
    if (trace.fill) {
      const closed = `${path(trace.x, trace.y, sx, sy).drawn.replaceAll("M", "ZM").slice(1)}Z`;
      if (trace.x.length) inner.append(RQ.svg("path", {class: "band", "data-name": trace.name, d: closed, fill: colour}));
      continue;
    }
    if (trace.high) { inner.append(RQ.svg("path", {class: "area", "data-name": trace.name, d: area(trace.x, trace.low, trace.high, sx, sy, wide), fill: colour, stroke: colour})); continue; }
    const {drawn, alone} = path(trace.x, trace.y, sx, sy, trace.line);
    if (drawn) inner.append(RQ.svg("path", {class: "line", "data-name": trace.name, d: drawn, stroke: colour, "stroke-dasharray": DASHES[dash ?? "solid"]}));
    const known = gaps ? trace.y.map((value, at) => value == null ? null : at).filter((at) => at != null) : [];
    const dotted = known.length && known.length <= MOST_DOTS && known.length < trace.y.length ? known : alone;
    for (const at of dotted) inner.append(RQ.svg("circle", {"data-name": trace.name, cx: sx(trace.x[at]), cy: sy(trace.y[at]), r: 3, fill: colour}));
  }
  const svg = RQ.svg("svg", {viewBox: `0 0 ${width} ${height}`, class: "drawing", "aria-hidden": "true"}, frame, inner);
  plot.replaceChildren(svg, ...pointed(plot, about, {svg, inner, shown, from, to, reach, left, innerWidth, innerHeight, sx, sy, label}));
};

// What the pointer is at, in words; with the mouse a part of the chart can be drawn larger.
const pointed = (plot, about, {svg, inner, shown, from, to, reach, left, innerWidth, innerHeight, sx, sy, label}) => {
  const lines = shown.filter((trace) => !trace.fill);
  const tip = RQ.el("div", {class: "tip", hidden: true});
  const rule = RQ.svg("line", {class: "rule", y1: 0, y2: innerHeight, visibility: "hidden"});
  const chosen = RQ.svg("rect", {class: "chosen", y: 0, height: innerHeight, visibility: "hidden"});
  inner.append(rule, chosen);
  const box = () => svg.getBoundingClientRect();
  const at = (event) => { const {left: edge, width} = box(); return from + (to - from) * Math.min(1, Math.max(0, ((event.clientX - edge) * svg.viewBox.baseVal.width / width - left) / innerWidth)); };
  let known = null, began = null;
  const places = () => known ??= [...new Set(lines.flatMap((trace) => trace.x.filter((x, place) => x != null && trace.y[place] != null)))].sort((a, b) => a - b);
  const leave = () => { tip.hidden = true; rule.setAttribute("visibility", "hidden"); };
  const show = (event) => {
    const wanted = at(event);
    const near = places().reduce((best, each) => best == null || Math.abs(each - wanted) < Math.abs(best - wanted) ? each : best, null);
    if (near == null) return;
    const said = lines.flatMap((trace) => {
      const place = trace.x.indexOf(near);
      if (place < 0 || trace.y[place] == null) return [];
      const more = trace.line.text && trace.line.text[place];
      const half = trace.line.half && trace.line.half[place];
      return [RQ.el("div", {}, RQ.el("i", {style: `background: ${trace.line.colour}`}), `${RQ.visible(trace.name)} `, RQ.el("b", {}, label(trace.y[place]), half == null ? "" : ` ±${label(half)}`), more && more !== trace.name ? ` ${RQ.visible(more)}` : "")];
    });
    RQ.fill(tip, RQ.el("div", {class: "where"}, `${about.unit ?? "step"} ${RQ.short(near)}`), said);
    tip.hidden = false;
    const x = (left + sx(near)) * box().width / svg.viewBox.baseVal.width;
    const right = x > box().width / 2;
    tip.style.left = right ? "" : `${x + 12}px`;
    tip.style.right = right ? `${box().width - x + 12}px` : "";
    rule.setAttribute("x1", sx(near)); rule.setAttribute("x2", sx(near));
    rule.setAttribute("visibility", "visible");
  };
  svg.addEventListener("pointermove", (event) => {
    show(event);
    if (began == null) return;
    const [a, b] = [began, at(event)].sort((one, other) => one - other);
    chosen.setAttribute("x", sx(a)); chosen.setAttribute("width", sx(b) - sx(a)); chosen.setAttribute("visibility", "visible");
  });
  svg.addEventListener("pointerdown", (event) => {
    show(event);
    if (event.pointerType !== "mouse" || event.button !== 0) return;
    began = at(event);
    svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointerup", (event) => {
    if (began == null) return;
    const [a, b] = [began, at(event)].sort((one, other) => one - other);
    began = null;
    chosen.setAttribute("visibility", "hidden");
    if (sx(b) - sx(a) > 8) { plot.zoom = [a, b]; plot.draw(); }
  });
  svg.addEventListener("pointerleave", leave);
  const whole = plot.zoom ? [RQ.el("button", {type: "button", class: "whole", onclick: () => { plot.zoom = null; plot.draw(); }}, "whole range")] : [];
  return [tip, ...whole];
};

// Names beside their colours; one that is clicked is left out of the chart, or comes back.
RQ.legend = (plot, about) => {
  const named = [...about.lines.map(({name, colour, dash}) => ({name, colour, dash})), ...(about.bands ?? []).map(({name, colour}) => ({name, colour, behind: true}))];
  if (named.length < 2) return null;
  return RQ.el("div", {class: "legend"}, named.map(({name, colour, dash, behind}) => {
    const sign = RQ.svg("svg", {width: 20, height: 8, viewBox: "0 0 20 8", "aria-hidden": "true"}, behind || about.stack ? RQ.svg("rect", {width: 20, height: 8, fill: colour, opacity: behind ? .3 : .6})
      : RQ.svg("line", {x1: 0, x2: 20, y1: 4, y2: 4, stroke: colour, "stroke-width": 2, "stroke-dasharray": DASHES[dash ?? "solid"]}));
    if (behind) return RQ.el("span", {}, sign, RQ.visible(name));
    const button = RQ.el("button", {type: "button", "aria-pressed": String(!plot.hiddenLines?.has(name)), title: "leave out or show", onclick: () => {
      const hidden = plot.hiddenLines ??= new Set();
      if (!hidden.delete(name)) hidden.add(name);
      button.setAttribute("aria-pressed", String(!hidden.has(name)));
      plot.draw();
    }}, sign, RQ.visible(name));
    return button;
  }));
};
}
