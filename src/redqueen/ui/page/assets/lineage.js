// Who descends from whom: a row for each member under its better parent, from its birth to its end, parents named beside it.
"use strict";
{
const ROW = 30, TOP = 8, BOTTOM = 34, LEFT = 14, RIGHT = 14, LETTER = 6.2;
const FEW = 40;  // rows that are all shown at first

// Depth first: children below their first parent, those born first above.
RQ.ancestry = (members) => {
  const known = new Set(members.map((member) => member.id));
  const children = new Map(members.map((member) => [member.id, []]));
  const roots = [];
  for (const member of members) {
    const parent = member.parents.find((id) => known.has(id));
    (parent ? children.get(parent) : roots).push(member);
  }
  const rows = [];
  const stack = roots.map((member) => [member, member]).reverse();
  while (stack.length) {
    const [member, founder] = stack.pop();
    rows.push({member, founder});
    stack.push(...children.get(member.id).map((child) => [child, founder]).sort(([a], [b]) => b.born - a.born));
  }
  return rows;
};

// Those who live, and all whom they descend from.
const lasting = (members) => {
  const byId = new Map(members.map((member) => [member.id, member]));
  const kept = new Set(), waiting = members.filter((member) => member.died == null);
  while (waiting.length) {
    const member = waiting.pop();
    if (kept.has(member.id)) continue;
    kept.add(member.id);
    waiting.push(...member.parents.map((id) => byId.get(id)).filter(Boolean));
  }
  return members.filter((member) => kept.has(member.id));
};

const shortName = (member, run) => {
  const came = member.parents.length ? ` ${member.operator} of ${member.parents.join(", ")}` : member.born ? " fresh" : "";
  const best = run.best.some((each) => each.id === member.id) ? " (exported)" : "";
  return [member.id, `${came}${best}`];
};

const paint = (run, rows) => (plot) => {
  const width = (RQ.paper ? 2 * RQ.paper : plot.clientWidth) || 360, height = TOP + ROW * rows.length + BOTTOM;
  const last = Math.max(run.step, 1);
  const sx = (step) => LEFT + (width - LEFT - RIGHT) * (Math.max(step, 0) / last);
  const places = new Map(rows.map(({member}, at) => [member.id, TOP + ROW * at + 21]));
  const svg = RQ.svg("svg", {viewBox: `0 0 ${width} ${height}`, class: "drawing", "aria-hidden": "true"});
  for (const at of RQ.stepTicks(0, last, width - LEFT - RIGHT))
    svg.append(RQ.svg("line", {class: "grid", x1: sx(at), x2: sx(at), y1: TOP, y2: height - BOTTOM}), RQ.svg("text", {x: sx(at), y: height - BOTTOM + 15, "text-anchor": "middle"}, at));
  svg.append(RQ.svg("text", {x: width / 2, y: height - 4, "text-anchor": "middle"}, "step"));
  for (const step of run.pulls) svg.append(RQ.svg("line", {class: "mark", x1: sx(step), x2: sx(step), y1: TOP, y2: height - BOTTOM}));
  // A parent may have ended before: then the line starts at its row all the same, at the child's birth.
  for (const {member} of rows) member.parents.forEach((id, which) => {
    if (places.has(id)) svg.append(RQ.svg("path", {class: "kin", d: `M${sx(member.born)} ${places.get(id)}V${places.get(member.id)}`, "stroke-dasharray": which ? "2 3" : null}));
  });
  for (const {member, founder} of rows) {
    const y = places.get(member.id), living = member.died == null;
    const [begin, end] = [sx(member.born), sx(living ? last : member.died)];
    const [name, came] = shortName(member, run);
    const right = begin + LETTER * (name.length + came.length) > width - RIGHT;
    const colour = RQ.colour(founder.number);
    svg.append(RQ.svg("line", {class: `life ${living ? "living" : "dead"}`, "data-id": member.id, x1: begin, x2: Math.max(end, begin + 3), y1: y, y2: y, stroke: colour}));
    if (!living) svg.append(RQ.svg("line", {x1: end, x2: end, y1: y - 5, y2: y + 5, stroke: colour, "stroke-width": 2}));
    const text = RQ.svg("text", {class: "name", x: right ? width - RIGHT : begin + 1, y: y - 6, "text-anchor": right ? "end" : "start"},
      RQ.svg("tspan", {class: living ? "living" : "dead"}, name), RQ.svg("tspan", {}, came));
    text.addEventListener("click", () => RQ.openMember(member.id));
    svg.append(text);
  }
  plot.data = rows;
  plot.replaceChildren(svg);
};

RQ.drawLineage = (run) => {
  const all = document.getElementById("extinct"), choice = all.closest("label");
  const kept = lasting(run.members);
  choice.hidden = run.members.length === kept.length;
  if (all.dataset.run !== run.name) { all.dataset.run = run.name; all.checked = run.members.length <= FEW; }
  const rows = RQ.ancestry(all.checked ? run.members : kept);
  const founders = {};
  for (const {member, founder} of rows) if (member === founder) founder.number = (founders[member.role] = (founders[member.role] ?? -1) + 1);
  const born = run.members.filter((member) => member.born > 0);
  const pulled = run.pulls.length ? "; dashed and upright: all move to the mean of their role, or towards it" : "";
  const about = {id: "lineage", title: "Who descends from whom", lines: [], paint: paint(run, rows),
    note: born.length ? `a row for each member, under its first parent and in its founder's colour, from its first step to its last; a line leads down from each parent, dotted from the second${pulled}` : `no replacement yet${pulled}`,
    says: `${RQ.many(born.length, "replacement")}, listed in the table below.${run.pulls.length ? ` Members moved to the mean of their role, or towards it, after the steps ${run.pulls.join(", ")}` : ""}`};
  const figure = RQ.chart(document.getElementById("tree"), about);
  figure.querySelector(".plot").style.height = `${TOP + ROW * rows.length + BOTTOM}px`;
  const table = figure.querySelector("details");
  figure.list = () => {};
  RQ.fill(table.firstChild, born.length ? `${RQ.many(born.length, "replacement")}, as a table` : "no replacement yet");
  const heads = [["step", ""], ["born", "word"], ["operator", "word"], ["parents", "word"], ["replaced", "word"]];
  const dead = (member) => run.members.find((each) => each.seat === member.seat && each.died === member.born);
  const cells = born.map((member) => [member.born, RQ.memberLink(member.id), member.operator || "fresh",
    RQ.el("span", {}, member.parents.flatMap((parent, at) => [at ? ", " : "", RQ.memberLink(parent)])), dead(member) ? RQ.memberLink(dead(member).id) : "-"]);
  const listed = table.querySelector("table");
  if (listed) RQ.table(listed, heads, cells);
  else table.append(RQ.el("div", {class: "wide", tabindex: "0"}, RQ.table(RQ.el("table"), heads, cells)));
};
}
