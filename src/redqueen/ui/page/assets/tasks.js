// The task browser, and what opens from it: one proposal whole, the life of one member.
"use strict";
{
const form = () => document.getElementById("filters");
const browser = {rows: [], asked: 0};

// Those of what is listed: fields of the other list are out of sight.
RQ.filters = () => {
  const given = Object.fromEntries([...new FormData(form())].filter(([, value]) => value !== ""));
  for (const name of given.rejected ? ["min_rate", "max_rate", "oversight"] : ["reason"]) delete given[name];
  return given;
};

const choices = (name, values) => {
  const select = form().elements[name];
  const offered = JSON.stringify(values);
  if (select.offered === offered) return;  // a list that is open stays so
  select.offered = offered;
  const chosen = select.value;
  RQ.fill(select, RQ.el("option", {value: ""}, "all"), values.map(([value, text]) => RQ.el("option", {value}, RQ.visible(text))));
  select.value = [...select.options].some((option) => option.value === chosen) ? chosen : "";
};

RQ.offerFilters = (run) => {
  choices("kind", run.kinds.map((kind) => [kind, kind]));
  choices("teacher", run.members.filter((member) => member.role === "teacher").map((member) => [member.id, member.id]));
  choices("reason", Object.entries(run.reasons).map(([reason, count]) => [reason, `${reason} (${RQ.count(count)})`]));
};

const cells = (row, rejected) => {
  const place = `${row.step}:${row.place}`;
  const open = RQ.el("button", {type: "button", class: "link", onclick: () => RQ.openTask(row.step, row.place)}, place);
  const known = [open, row.kind, RQ.visible(row.teacher)];
  const program = [RQ.el("div", {}, RQ.program(row.program), row.further ? RQ.el("small", {}, `${RQ.many(row.further, "more line")}`) : null), "code"];
  if (rejected) return [...known, row.reason, program];
  const rate = row.attempts ? RQ.two(row.solved / row.attempts) : "-";
  const notes = [row.trivial ? "does not count" : "", row.oversight ? "flagged for review" : ""].filter(Boolean).join(", ");
  return [...known, rate, row.lines, program, notes];
};

const list = (more) => {
  const rejected = RQ.filters().rejected === "1";
  const heads = rejected ? [["place", "word first"], ["kind", "word"], ["teacher", "word"], ["reason", "word"], ["text", "word"]]
    : [["place", "word first"], ["kind", "word"], ["teacher", "word"], ["solved", ""], ["lines", ""], ["program", "word"], ["", "word"]];
  RQ.table(document.getElementById("task-table"), heads, browser.rows.map((row) => cells(row, rejected)));
  document.getElementById("more").hidden = !more;
  document.getElementById("task-count").textContent = browser.rows.length
    ? `${more ? "the newest " : ""}${RQ.many(browser.rows.length, rejected ? "rejection" : "task")}` : "nothing fits these filters";
};

// Answers may come in another order than they were asked for: only the last one counts.
RQ.browse = async (further = false) => {
  const asked = ++browser.asked;
  const region = document.getElementById("task-region");
  const filters = RQ.filters();
  for (const each of form().querySelectorAll(".of-tasks")) each.hidden = filters.rejected === "1";
  for (const each of form().querySelectorAll(".of-rejected")) each.hidden = filters.rejected !== "1";
  region.setAttribute("aria-busy", "false");
  if (!form().checkValidity()) { document.getElementById("task-count").textContent = "steps are whole numbers, shares go from 0 to 1"; return; }
  region.setAttribute("aria-busy", "true");
  const end = further && browser.rows[browser.rows.length - 1];
  const found = await RQ.asking(() => RQ.source.tasks(end ? {...filters, before_step: end.step, before_place: end.place} : filters));
  if (asked !== browser.asked) return;
  region.setAttribute("aria-busy", "false");
  if (!found) return;
  browser.rows = end ? [...browser.rows, ...found.rows] : found.rows;
  document.getElementById("newer").hidden = true;
  list(found.more);
};

// Fields as an address has them: those that are not named there are empty.
RQ.setFilters = (given) => {
  form().reset();
  for (const [name, value] of Object.entries(given)) {
    const field = form().elements[name];
    if (field && field.type === "checkbox") field.checked = value === "1";
    else if (field) field.value = value;
  }
};

RQ.newTasks = () => {
  const first = browser.rows[0];
  if (first && first.step < RQ.run.step) document.getElementById("newer").hidden = false;
  if (!first) RQ.browse();
};

// Where the reader came from, to be found again although tables have been filled anew since.
let opener = null;
RQ.openedMember = null;

const open = (address, title, ...content) => {
  const dialog = document.getElementById("detail");
  const body = document.getElementById("detail-body");
  if (!dialog.open) {
    const table = document.activeElement.closest("table[id]");
    opener = table && {table, text: document.activeElement.textContent};
  }
  RQ.openedMember = null;
  document.getElementById("detail-title").textContent = title;
  RQ.drop(body);
  RQ.fill(body, ...content);
  if (!dialog.open) dialog.showModal();
  RQ.goTo(address);
  dialog.scrollTop = 0;
  document.getElementById("detail-title").focus();
};

RQ.closed = () => {
  RQ.openedMember = null;
  RQ.drop(document.getElementById("detail-body"));
  RQ.fill(document.getElementById("detail-body"));
  RQ.goBack();
  if (opener && !document.querySelector("main").contains(document.activeElement)) RQ.focusLink(opener.table, opener.text);
};

const block = (name, value, python = false) => {
  if (value == null || value === "" || (Array.isArray(value) && !value.length)) return [];
  const items = Array.isArray(value) ? value : [value];
  return [RQ.el("h3", {}, name), ...items.map((item) => RQ.code(typeof item === "string" ? item : JSON.stringify(item), python))];
};

RQ.openTask = async (step, place) => {
  const found = await RQ.asking(() => RQ.source.task(step, place));
  if (!found) return;
  const row = found.task || found.rejection;
  const asked = RQ.run.titles[row.kind] ? ` (${RQ.run.titles[row.kind]})` : "";
  const title = `${row.kind}${asked} of step ${row.step}, place ${row.place}, by ${RQ.visible(row.teacher)}`;
  if (found.rejection) {
    open({task: `${step}:${place}`}, title, RQ.el("p", {}, `rejected: ${row.reason}${row.detail ? `, ${RQ.visible(row.detail.slice(0, 500))}` : ""}; reward ${RQ.short(row.reward)}`),
      ...block("program", row.program, true), ...block("runs", row.runs && (row.runs.length ? row.runs : "not run")), ...block("proposal", row.text, true));
    return;
  }
  const rate = row.attempts ? `solved ${row.solved} of ${row.attempts}` : "not attempted";
  const notes = [rate, `reward ${RQ.short(row.reward)}`, row.trivial ? `does not count: ${RQ.visible(row.trivial)}` : null, row.oversight ? "flagged for human review" : null];
  const size = row.depth ? `${row.lines} lines, depth ${row.depth}, cyclomatic ${row.cyclomatic}, ${row.variables} variables; ` : "";
  const {kind, program, ...rest} = row.record;
  const attempts = found.attempts.map((each) => {
    const why = [each.reason, each.status, each.detail].filter(Boolean).map((fact) => RQ.visible(String(fact).slice(0, 300))).join(", ");
    return RQ.el("div", {class: "attempt"}, RQ.el("p", {}, RQ.memberLink(each.student), ` attempt ${each.number}: `,
      RQ.el("strong", {class: each.grade === "correct" ? "good" : "bad"}, each.grade), `${why ? ` (${why})` : ""}, reward ${RQ.short(each.reward)}, ${each.tokens} tokens`),
      RQ.code(each.text, true));
  });
  open({task: `${step}:${place}`}, title, RQ.el("p", {}, notes.filter(Boolean).join("; ")), RQ.el("p", {class: "note"}, size + RQ.visible(row.descriptor)), ...block("program", program, true),
    ...Object.entries(rest).flatMap(([name, value]) => name === "shown" ? [] : block(name, value, true)),
    RQ.el("details", {}, RQ.el("summary", {}, "proposal, as the teacher wrote it"), RQ.code(row.text, true)),
    RQ.el("h3", {}, RQ.many(found.attempts.length, "attempt")), ...attempts);
};

RQ.openMember = (id) => {
  const run = RQ.run;
  const member = run && run.members.find((each) => each.id === id);
  if (!member) { RQ.asking(async () => { throw new Error(`there is no member ${id}`); }, "member"); return; }
  const children = run.members.filter((each) => each.parents.includes(id));
  const grid = RQ.el("div", {class: "charts"});
  const side = member.role === "teacher" ? "student" : "teacher";
  const met = run.matches.all.filter((each) => each[member.role] === id)
    .map((each) => [RQ.memberLink(each[side]), each.matches, each[`${member.role}_wins`], each.draws, each[`${side}_wins`], RQ.two(each.solve_rate)]);
  const tasks = member.role !== "teacher" ? null : RQ.el("p", {}, RQ.el("button", {type: "button", onclick: () => {
    form().reset();
    form().elements.teacher.value = id;
    opener = null;
    document.getElementById("detail").close();
    RQ.filtered();
    document.getElementById("tasks").scrollIntoView();
    form().elements.teacher.focus({preventScroll: true});
  }}, "its tasks"));
  const seat = `seat ${RQ.visible(member.seat)}, born at step ${member.born}${member.died == null ? "" : `, replaced at step ${member.died}`}; ${RQ.visible(member.from)}`;
  const kin = (name, ids) => ids.length ? RQ.el("p", {}, `${name}: `, ...ids.flatMap((each, at) => [at ? ", " : "", RQ.memberLink(each)])) : null;
  open({member: id}, `${RQ.visible(id)}, ${member.role}`, RQ.el("p", {}, seat), kin("parents", member.parents), kin("children", children.map((each) => each.id)), tasks, grid,
    RQ.el("h3", {}, `Matches against ${side}s`),
    RQ.el("div", {class: "wide", tabindex: "0"}, RQ.table(RQ.el("table"), [[side, "word"], ["matches", ""], ["won", ""], ["draws", ""], ["lost", ""], ["solved", ""]], met)));
  RQ.openedMember = {id, grid};
  RQ.drawMember();
};

// The curves of the member that is open, now and with every step.
RQ.drawMember = () => {
  if (!RQ.openedMember || !RQ.run) return;
  const {id, grid} = RQ.openedMember;
  const M = RQ.METRICS, own = (metric) => RQ.series(RQ.run, metric, id);
  const charts = [
    ["rating", "Rating", [["mu", own(M.mu), own(M.sigma)]]],
    ["reward", "Reward", [["reward", own(M.reward)]]],
    ["rates", "Valid and solved", [["valid", own(M.valid)], ["solved", own(M.solve_rate)]]],
    ["entropy", "Entropy", [["entropy", own(M.entropy)]]],
    ["length", "Length, tokens", [["length", own(M.length)]]],
  ].filter(([, , drawn]) => drawn.some(([, y]) => y));
  for (const [key, title, drawn] of charts) {
    RQ.chart(grid, {id: `member-${key}`, title, lines: drawn.filter(([, y]) => y).map(([name, y, half], at) => ({name, y, half, colour: RQ.colour(at)}))});
  }
};
}
