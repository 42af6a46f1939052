// What is shown of a run: charts, members, matches, lineage, settings. The words are those of the terminal.
"use strict";
{
const M = RQ.METRICS;
const keyOf = (metric, subject, kind = "") => `${metric.name}/${subject}/${kind}`;
const series = RQ.series = (run, ...which) => run.series[keyOf(...which)];
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const last = (values) => values && [...values].reverse().find((each) => each != null);
const mean = (values, from) => {
  const some = (values || []).slice(from - 1).filter((each) => each != null);
  return some.length ? some.reduce((sum, each) => sum + each, 0) / some.length : null;
};
const lines = (named) => named.filter(([, y]) => y).map(([name, y], at) => ({name, y, colour: RQ.colour(at), dash: RQ.dash(at)}));
const ROLES = ["teacher", "student"];

// One line for each seat, over all that held it; a word where somebody new begins.
const ratings = (run, role) => {
  const seats = new Map();
  for (const member of run.members.filter((each) => each.role === role)) {
    const mu = series(run, M.mu, member.id), sigma = series(run, M.sigma, member.id);
    if (!mu) continue;
    if (!seats.has(member.seat)) seats.set(member.seat, {y: [], half: [], text: [], ends: new Set()});
    const seat = seats.get(member.seat);
    if (member.died != null) seat.ends.add(member.died - 1);
    mu.forEach((value, at) => {
      if (value == null) { for (const each of [seat.y, seat.half, seat.text]) each[at] ??= null; return; }
      seat.y[at] = value; seat.half[at] = sigma ? sigma[at] : null; seat.text[at] = RQ.plain(member.id);
    });
  }
  return [...seats].map(([name, seat], at) => ({name, ...seat, colour: RQ.colour(at), dash: RQ.dash(at)}));
};

const perSecond = (run) => {
  const tokens = series(run, M.sampled_tokens, "race");
  return tokens && tokens.map((each, at) => {
    const seconds = Object.values(run.phases).reduce((sum, phase) => sum + (phase[at] || 0), 0);
    return each == null || !seconds ? null : each / seconds;
  });
};

// The longest ones, and all others together; a phase keeps its colour.
const phases = (run) => {
  const known = Object.entries(run.phases).map(([name, y], at) => ({name, y, at, whole: y.reduce((sum, each) => sum + each, 0)})).sort((a, b) => b.whole - a.whole);
  const shown = known.slice(0, 6).map(({name, y, at}) => ({name, y, colour: RQ.colour(at), dash: RQ.dash(at)}));
  const others = known.slice(6);
  if (others.length) shown.push({name: "others", y: others[0].y.map((_, at) => others.reduce((sum, each) => sum + each.y[at], 0)), colour: "#999999"});
  return shown;
};

// Rows in flight over the newest step, and behind them what is done while there are none; a phase keeps its colour.
const BEHIND = ["update", "verify", "grade", "evolve", "measure", "evaluate"];
const timeline = (run) => {
  const {step, seconds, proposals, attempts, others} = run.timeline;
  const names = [...new Set(others.filter(([, from, to]) => to - from >= .003 * seconds).map(([name]) => name))];
  const bands = names.map((name) => ({name, colour: BEHIND.includes(name) ? RQ.colour(2 + BEHIND.indexOf(name)) : "#999999",
    spans: others.filter(([each]) => each === name).map(([, from, to]) => [from, to])}));
  const spent = bands.map(({name, spans}) => `${name} ${spans.reduce((sum, [from, to]) => sum + to - from, 0).toFixed(2)} s`);
  const most = Math.max(...proposals.map((rows, at) => rows + attempts[at]));
  return ["timeline", "Where a step's seconds go", `step ${step}, ${seconds.toFixed(2)} s: up to ${most.toFixed(0)} rows in flight${spent.length ? `; without any: ${spent.join(", ")}` : ""}`,
    lines([["proposals", proposals], ["attempts", attempts]]),
    {fromZero: true, stack: true, raw: true, unit: "second", x: proposals.map((_, at) => (at + .5) * seconds / proposals.length), bands}];
};

const benchmarks = (run) => Object.keys(run.series).filter((key) => key.startsWith(keyOf(M.benchmark, "student")))
  .map((key) => ({name: key.split("/")[2], y: run.series[key]}));

// Accuracy at the checkpoints that were examined or evaluated, and the bare base's beside it.
const checks = (run, each) => each.flatMap(({name, steps, values, best = [], base}, at) => [
  ...[[name, values, RQ.dash(at)], ...(best.some((value) => value != null) ? [[`${name}, best member`, best, "dash"]] : [])].map(([name, y, dash]) =>
    ({name, y: Array.from({length: run.step}, (_, step) => y[steps.indexOf(step + 1)] ?? null), colour: RQ.colour(at), dash, gaps: true})),
  ...(base == null ? [] : [{name: `${name}, base`, y: Array(run.step).fill(base), colour: RQ.colour(at), dash: "dot"}])]);
const exam = (run) => ["exam", "Exam", `${run.exam.title}: mean of those who solve tasks and the best of them there, beside the bare base`,
  checks(run, run.exam.figures.map((figure) => ({...figure, steps: run.exam.steps}))), {fromZero: true, raw: true}];

// A line for each adapter, and one for what they are beside.
const adapters = (run, metric, beside) => {
  const drawn = Object.keys(run.series).filter((key) => key.startsWith(`${metric.name}/`)).map((key) => [key.split("/")[1], run.series[key]]).filter(([name]) => name !== "base")
    .map(([name, y], at) => ({name, y, gaps: true, colour: RQ.colour(at)}));
  return drawn.length && beside ? [...drawn, {colour: "#999999", dash: "dot", gaps: true, ...beside}] : drawn;
};

const chartOf = (metric, ...more) => [metric.name.replace("_", "-"), capital(metric.title), ...more];
const byRole = (run, metric) => lines(ROLES.map((role) => [`${role}s`, series(run, metric, role)]));

// Every chart of a race: [id, title, note, lines, more].
RQ.raceCharts = (run) => [
  ["ratings-teachers", "Rating of teachers", "a line for each seat, with one sigma", ratings(run, "teacher"), {raw: true}],
  ["ratings-students", "Rating of students", "a line for each seat, with one sigma", ratings(run, "student"), {raw: true}],
  chartOf(M.solve_rate, "solved attempts at the tasks of the step",
    lines([...run.kinds.map((kind) => [kind, series(run, M.solve_rate, "race", kind)]),
      ...(run.kinds.length > 1 ? [["all kinds", series(run, M.solve_rate, "race")]] : [])]), {fromZero: true}),
  chartOf(M.ruler, "the bare base's attempts at the tasks of the step, where it made some: what is hard for it",
    lines([...run.kinds.map((kind) => [kind, series(run, M.ruler, "race", kind)]),
      ...(run.kinds.length > 1 ? [["all kinds", series(run, M.ruler, "race")]] : [])]).map((each) => ({...each, gaps: true})), {fromZero: true, raw: true}),
  chartOf(M.copies, M.copies.about, lines(run.kinds.map((kind) => [kind, series(run, M.copies, "race", kind)])), {fromZero: true}),
  ["complexity", "Complexity of tasks", "means over the step's tasks", lines(RQ.COMPLEXITY.map((metric) => [metric.title, series(run, metric, "race")])), {fromZero: true}],
  chartOf(M.coverage, "structural cells that were ever reached, by then", lines([["structural cells", series(run, M.coverage, "race")]]), {fromZero: true, raw: true}),
  chartOf(M.behaviours, "that programs ever showed, by then", lines([["behaviours", series(run, M.behaviours, "race")]]), {fromZero: true, raw: true}),
  chartOf(M.reward, "mean of the step", byRole(run, M.reward), {}),
  chartOf(M.valid, "proposals that became tasks, attempts that could be graded",
    lines([["proposals", series(run, M.valid, "teacher")], ["attempts", series(run, M.valid, "student")]]), {fromZero: true}),
  chartOf(M.entropy, "of a sampled token", byRole(run, M.entropy), {fromZero: true}),
  chartOf(M.length, "tokens", lines([["of a proposal", series(run, M.length, "teacher")], ["of an attempt", series(run, M.length, "student")]]), {fromZero: true}),
  chartOf(M.elsewhere, `${M.elsewhere.about}; who is beyond the ceiling is called back`,
    adapters(run, M.elsewhere, run.drift_ceiling ? {name: "ceiling", y: Array(run.step).fill(run.drift_ceiling)} : null), {fromZero: true, raw: true}),
  chartOf(M.elsewhere_length, M.elsewhere_length.about, adapters(run, M.elsewhere_length, {name: "base", y: series(run, M.elsewhere_length, "base")}), {fromZero: true, raw: true}),
  ["speed", "tok/s", "sampled tokens over the seconds of the step", lines([["tok/s", perSecond(run)]]), {fromZero: true}],
  ["phases", "Seconds of a step", "by phase", phases(run), {fromZero: true, stack: true, raw: true}],
  ...(run.timeline ? [timeline(run)] : []),
  ...(run.exam ? [exam(run)] : []),
  ["evaluated", "Benchmarks", "mean of those who solve tasks, beside the bare base", checks(run, run.benchmarks), {fromZero: true, raw: true}],
  ["benchmarks", "Benchmark slices", "students, at every look", benchmarks(run).map((each, at) => ({...each, colour: RQ.colour(at), gaps: true})), {fromZero: true, raw: true}],
].filter(([, , , drawn]) => drawn.length);

// All who were replaced at one time are one event.
const replacements = (run) => {
  const events = new Set(run.members.filter((member) => member.born > 0).map((member) => member.born)).size;
  return RQ.count(run.counts.events) + (events < run.counts.events ? ` in ${RQ.many(events, "event")}` : "");
};

RQ.drawRace = (run) => {
  const place = document.getElementById("charts");
  const wanted = RQ.raceCharts(run);
  for (const figure of [...place.children]) if (!wanted.some(([id]) => figure.id === `chart-${id}`)) { RQ.drop(figure); figure.remove(); }
  for (const [id, title, note, drawn, more] of wanted) RQ.chart(place, {id, title, note, lines: drawn, ...more});
  const seconds = Object.values(run.phases).flat().reduce((sum, each) => sum + each, 0);
  const sampled = (series(run, M.sampled_tokens, "race") || []).reduce((sum, each) => sum + (each || 0), 0);
  const facts = [["step", `${run.step} of ${run.steps}`], ["tasks", RQ.count(run.counts.tasks)], ["rejected", RQ.count(run.counts.rejections)],
    ["replacements", replacements(run)], [M.sampled_tokens.title, RQ.count(sampled)], ["time", RQ.span(seconds)], ["seed", run.seed]];
  RQ.fill(document.getElementById("totals"), facts.map(([name, value]) => RQ.el("div", {}, RQ.el("dt", {}, name), RQ.el("dd", {}, value))));
  const alarms = document.getElementById("alarms");
  alarms.hidden = !run.alarms.length;
  RQ.fill(alarms.children[0], `${RQ.many(run.alarms.length, "alarm")}, the newest first`);
  RQ.fill(alarms.children[1], [...run.alarms].reverse().map((each) => RQ.el("li", {}, `step ${each.step}: ${RQ.visible(each.says)}`)));
};

const living = (run) => run.members.filter((member) => member.died == null);
const rated = (run, member) => {
  const mu = last(series(run, M.mu, member.id));
  return mu == null ? "-" : `${mu.toFixed(1)} ±${last(series(run, M.sigma, member.id)).toFixed(1)}`;
};
const memberLink = (id, text) => RQ.el("button", {type: "button", class: "link", onclick: () => RQ.openMember(id)}, RQ.visible(text || id));

RQ.drawMembers = (run) => {
  const all = document.getElementById("dead").checked;
  const shown = (all ? run.members : living(run)).slice();
  const mu = (member) => last(series(run, M.mu, member.id)) ?? -Infinity;
  shown.sort((a, b) => b.role.localeCompare(a.role) || (a.died != null) - (b.died != null) || mu(b) - mu(a));
  const rows = shown.map((member) => {
    const from = member.died == null ? run.late : 1;
    const means = Object.values(RQ.MEMBER_COLUMNS).map((metric) => RQ.two(mean(series(run, metric, member.id), from)));
    const died = member.died == null ? "" : `; replaced at step ${member.died}`;
    return [memberLink(member.id), member.role, rated(run, member), ...means, member.born, RQ.visible(member.from + died)];
  });
  const heads = [["member", "word"], ["role", "word"], ["rating", ""], ...Object.keys(RQ.MEMBER_COLUMNS).map((head) => [head, ""]), ["born", ""], ["from", "word"]];
  RQ.table(document.getElementById("member-table"), heads, rows, `means over steps ${run.late} to ${run.step}${all ? ", of those that were replaced over all their steps" : ""}`);
};

RQ.drawKinds = (run) => {
  const heads = [["kind", "word"], ["proposals", ""], ["valid", ""], ["solved", ""], ["guess rate", ""], ["cells", ""], ["checks a second", ""], ["rejected for, of all proposals", "word"]];
  const rows = run.by_kind.map((each) => [RQ.visible(each.kind), RQ.count(each.proposals), RQ.two(each.valid), RQ.two(each.solve_rate), RQ.two(each.guess_rate), RQ.count(each.cells), RQ.count(each.checks_a_second),
    each.rejected.map(([why, share]) => `${RQ.visible(why)} ${(100 * share).toFixed(0)} %`).join(", ") || "-"]);
  RQ.table(document.getElementById("kind-table"), heads, rows,
    `${run.late === run.step ? `step ${run.step}` : `steps ${run.late} to ${run.step}`}. Guess rate: tasks whose answer is the commonest one of recent tasks of their kind. Cells: sorts of structures ever filled.`);
};

// Of a race on a cluster; what became of workers is there also when its newest step was in one process.
RQ.drawWorkers = (run) => {
  const {workers, worker_events: events} = run;
  const none = !workers.length && !events.length;
  document.getElementById("workers").hidden = document.getElementById("to-workers").hidden = none;
  const calls = [...new Set(workers.flatMap((each) => Object.keys(each.seconds)))].sort();
  const heads = [["worker", "word"], ["on", "word"], ["process", ""], ["members", "word"], ...calls.map((call) => [`${call}, s`, ""]), ["beside the others", ""]];
  const links = (members) => members.length ? members.flatMap((id, at) => at ? [", ", memberLink(id)] : [memberLink(id)]) : "none";
  const rows = workers.map((each) => [RQ.visible(each.worker), RQ.visible(each.machine), each.process, RQ.el("span", {}, links(each.members)),
    ...calls.map((call) => RQ.short(each.seconds[call])), each.beside == null ? "-" : `${each.beside.toFixed(1)} x`]);
  const table = document.getElementById("worker-table");
  table.hidden = !rows.length;
  RQ.table(table, heads, rows,
    `step ${run.step}. Seconds of the last calls, for each text or member that they were about; beside the others: how many times their median, in the call in which the worker is slowest.`);
  const list = document.getElementById("worker-events");
  list.hidden = !events.length;
  RQ.fill(list.children[0], `what became of workers: ${RQ.many(events.length, "event")}, the newest first`);
  RQ.fill(list.children[1], [...events].reverse().map((each) =>
    RQ.el("li", {}, `${new Date(1000 * each.time).toLocaleString()}, step ${each.step}: ${RQ.visible(each.worker)} ${RQ.visible(each.what)}: ${RQ.visible(each.cause)}`)));
};

RQ.drawMatrix = (run) => {
  const found = run.matches[document.getElementById("window").value];
  const cells = new Map(found.map((each) => [`${each.teacher} ${each.student}`, each]));
  const order = (a, b) => a.localeCompare(b, "en", {numeric: true});
  const teachers = [...new Set(found.map((each) => each.teacher))].sort(order);
  const students = [...new Set(found.map((each) => each.student))].sort(order);
  const cell = (each) => {
    if (!each) return RQ.el("td", {}, "");
    const rate = each.solve_rate;
    const wins = `${each.teacher_wins}-${each.draws}-${each.student_wins}`;
    const said = `${RQ.visible(each.teacher)} against ${RQ.visible(each.student)}: ${RQ.many(each.matches, "match").replace("matchs", "matches")}, ` +
      `teacher won ${each.teacher_wins}, draws ${each.draws}, student won ${each.student_wins}; ${RQ.many(each.tasks, "task")}, solved ${RQ.two(rate)}`;
    const shade = rate == null ? "" : `background: rgba(${getComputedStyle(document.documentElement).getPropertyValue("--cell")}, ${(0.08 + 0.55 * rate).toFixed(2)})`;
    return RQ.el("td", {style: shade, title: said, "aria-label": said}, RQ.two(rate), RQ.el("small", {}, wins));
  };
  const matrix = document.getElementById("matrix");
  RQ.stay(matrix, () => RQ.fill(matrix,
    RQ.el("thead", {}, RQ.el("tr", {}, RQ.el("th", {class: "word"}, "teacher \\ student"), students.map((each) => RQ.el("th", {scope: "col"}, memberLink(each))))),
    RQ.el("tbody", {}, teachers.map((teacher) => RQ.el("tr", {}, RQ.el("th", {scope: "row", class: "word"}, memberLink(teacher)),
      students.map((student) => cell(cells.get(`${teacher} ${student}`))))))));
};

RQ.drawLineage = (run) => {
  const place = document.getElementById("tree");
  const seats = [...new Set(run.members.map((member) => member.seat))];
  const byId = new Map(run.members.map((member) => [member.id, member]));
  const colours = new Map(seats.map((seat, at) => [seat, RQ.colour(at)]));
  // Few traces with gaps: plotly takes its time over every one.
  const bars = seats.map((seat) => {
    const held = run.members.filter((member) => member.seat === seat);
    const along = (value) => held.flatMap((member) => [value(member, 0), value(member, 1), null]);
    return {type: "scatter", mode: "lines", showlegend: false, name: RQ.plain(seat), line: {color: colours.get(seat), width: 7},
      x: along((member, end) => end ? member.died ?? Math.max(run.step, member.born) : member.born), y: along(() => RQ.plain(seat)),
      text: along((member) => `${RQ.plain(member.id)}: ${RQ.plain(member.from)}`), hovertemplate: "%{text}<extra></extra>"};
  });
  const born = run.members.filter((member) => member.born > 0);
  const births = {type: "scatter", mode: "markers+text", showlegend: false, hoverinfo: "skip", x: born.map((member) => member.born), y: born.map((member) => RQ.plain(member.seat)),
    text: born.map((member) => RQ.plain(member.id)), textposition: "top right", marker: {symbol: "line-ns", size: 12, line: {width: 2, color: "gray"}}};
  const kin = born.flatMap((member) => member.parents.filter((parent) => byId.has(parent) && byId.get(parent).seat !== member.seat).map((parent) => [member, byId.get(parent)]));
  const descents = {type: "scatter", mode: "lines", hoverinfo: "skip", showlegend: false, line: {color: "gray", width: 1.2, dash: "dot"},
    x: kin.flatMap(([member]) => [member.born, member.born, null]), y: kin.flatMap(([member, parent]) => [RQ.plain(parent.seat), RQ.plain(member.seat), null])};
  const about = {id: "lineage", steps: run.step, title: "Who holds each seat", note: `dotted: from a parent to its child${run.pulls.length ? "; upright: all move to the mean of their role, or towards it" : ""}`, lines: [], traces: [descents, ...bars, births],
    extra: (css) => ({showlegend: false, hovermode: "closest", height: Math.max(220, 34 * seats.length + 70), margin: {l: 50, r: 34, t: 20, b: 34},
      shapes: run.pulls.map((step) => ({type: "line", xref: "x", yref: "paper", x0: step, x1: step, y0: 0, y1: 1, line: {color: "gray", width: 1.2}})),
      yaxis: {type: "category", categoryorder: "array", categoryarray: seats.map(RQ.plain).reverse(), gridcolor: css("--grid"), fixedrange: true}})};
  const figure = RQ.chart(place, about);
  figure.querySelector(".plot").style.height = `${Math.max(220, 34 * seats.length + 70)}px`;
  figure.querySelector(".plot").setAttribute("aria-label", `Chart: ${RQ.many(born.length, "replacement")}, listed in the table below.${run.pulls.length ? ` Members moved to the mean of their role, or towards it, after the steps ${run.pulls.join(", ")}.` : ""}`);
  figure.list = () => {};
  const table = figure.querySelector("details");
  RQ.fill(table.firstChild, born.length ? `${RQ.many(born.length, "replacement")}, as a table` : "no replacement yet");
  const heads = [["step", ""], ["born", "word"], ["operator", "word"], ["parents", "word"], ["replaced", "word"]];
  const dead = (member) => run.members.find((each) => each.seat === member.seat && each.died === member.born);
  const rows = born.map((member) => [member.born, memberLink(member.id), member.operator || "fresh",
    RQ.el("span", {}, member.parents.flatMap((parent, at) => [at ? ", " : "", memberLink(parent)])), dead(member) ? memberLink(dead(member).id) : "-"]);
  const listed = table.querySelector("table");
  if (listed) RQ.table(listed, heads, rows);
  else table.append(RQ.el("div", {class: "wide", tabindex: "0"}, RQ.table(RQ.el("table"), heads, rows)));
};

// Every chart of arms: [metric, subject, kind].
const ARM_CHARTS = (kinds) => [...kinds.map((kind) => [M.solve_rate, "race", kind]),
  ...[...RQ.COMPLEXITY, M.coverage, M.behaviours].map((metric) => [metric, "race"]), [M.ruler, "race"], [M.valid, "teacher"],
  ...[M.reward, M.entropy, M.length].flatMap((metric) => ROLES.map((role) => [metric, role])), [M.sampled_tokens, "race"]];

// What its intervals can hold.
const RANGE = (metric) => [metric.signed ? -Infinity : 0, metric.unit === "share" ? 1 : Infinity];

// Who solves more, and whether that can be told.
const claims = (arms) => {
  const place = document.getElementById("arm-claims"), rows = arms.flatMap((arm) => arm.claims || []);
  place.hidden = !rows.length;
  if (!rows.length) return;
  const points = (share, sign) => `${sign && share > 0 ? "+" : ""}${(100 * share).toFixed(1)}`;
  RQ.fill(place, RQ.el("h3", {}, "Verdicts"),
    RQ.table(RQ.el("table"), [["those who solve tasks", "word"], ["arm", "word"], [`less ${RQ.visible(rows[0].against)}, points`, ""], ["seeds", ""], ["verdict", "word"]],
      rows.map((row) => [RQ.visible(row.measure), RQ.visible(row.arm), `${points(row.difference, true)}${row.half == null ? "" : ` ±${points(row.half)}`}`, row.seeds, row.text])),
    RQ.el("p", {class: "note"}, "± is half of the 95 % interval over seeds (Student's t). Not told: it holds 0; as many seeds as named would clear it of 0 with a chance of four in five, if arms differ as much as these do."));
};

RQ.drawArms = (arms) => {
  claims(arms);
  const kinds = [...new Set(arms.flatMap((arm) => Object.keys(arm.series)).filter((key) => key.startsWith(keyOf(M.solve_rate, "race"))).map((key) => key.split("/")[2]))].filter(Boolean);
  document.getElementById("arms-note").textContent = `${arms.map((arm) => `${RQ.visible(arm.name)}: seeds ${arm.seeds.join(", ")}`).join("; ")}. ` +
    (arms.some((arm) => arm.seeds.length > 1) ? "Lines are means over seeds as far as all have come, bands their 95 % intervals (Student's t), as far as there can be values; of two seeds from one to the other." : "One seed each: no interval can be given.");
  const place = document.getElementById("arm-charts");
  const over = document.getElementById("over");
  const unit = over.value ? over.selectedOptions[0].textContent : undefined;
  const draw = (key, title, more, gaps, id = `arm-${key.replaceAll("/", "-")}`) => {
    const drawn = arms.flatMap((arm, at) => arm.series[key] ? [{name: arm.name, y: arm.series[key].mean, half: arm.series[key].half, gaps, colour: RQ.colour(at), dash: RQ.dash(at),
      ...unit && {x: arm.series[key].mean.map((_, step) => (arm.spent[over.value] || [])[step] ?? null)}}] : []);
    // One line where all arms have one base, otherwise one beside each.
    const based = drawn.map((line) => ({line, value: (arms.find((arm) => arm.name === line.name).bases || {})[key]})).filter(({value}) => value != null);
    const same = based.every(({value}) => Math.abs(value - based[0].value) < .01);
    const longest = drawn.reduce((one, other) => one && one.y.length >= other.y.length ? one : other, null);
    const beside = (same ? based.slice(0, 1).map(({value}) => ({line: longest, value, name: "base", colour: "#999999"})) : based.map((each) => ({...each, name: `${each.line.name}, base`, colour: each.line.colour})))
      .map(({line, value, name, colour}) => ({...line, name, colour, y: line.y.map(() => value), half: null, gaps: false, dash: "dot"}));
    if (drawn.length) RQ.chart(place, {id, title, lines: [...drawn, ...beside], raw: true, unit, ...more});
  };
  for (const [figure, title] of Object.entries({sampled: "sampled", greedy: "greedy", pass_at_k: "pass@k"}))
    draw(`exam//${figure}`, `Exam, ${title}`, {within: [0, 1]}, true);
  const asked = [...new Set(arms.flatMap((arm) => Object.keys(arm.series)).filter((each) => each.startsWith("benchmark//")))];
  asked.forEach((key, at) => draw(key, RQ.visible(key.slice("benchmark//".length)), {within: [0, 1]}, true, `arm-benchmark-${at}`));
  for (const [metric, subject, kind = ""] of ARM_CHARTS(kinds)) {
    draw(keyOf(metric, subject, kind), capital(`${metric.role_titles[subject] || metric.title} ${kind}`.trim()), {within: RANGE(metric)}, metric === M.ruler);
  }
};

RQ.drawAbout = (about) => {
  const pairs = (title, record) => [RQ.el("h3", {}, title), RQ.el("div", {class: "wide", tabindex: "0"}, RQ.table(RQ.el("table"), [["", "word"], ["", "word"]],
    Object.entries(record).map(([name, value]) => [RQ.visible(name), RQ.visible(value)])))];
  RQ.fill(document.getElementById("about-body"),
    RQ.el("h3", {}, "Compute"),
    RQ.el("div", {class: "wide", tabindex: "0"}, RQ.table(RQ.el("table"), [["", "word"], ...RQ.COMPUTE.map((metric) => [metric.title, ""])],
      about.compute.map((each) => [RQ.visible(each.subject), ...RQ.COMPUTE.map((metric) => RQ.count(each[metric.name]))]))),
    ...pairs("Seconds", Object.fromEntries(Object.entries(about.seconds).map(([name, value]) => [name, value.toFixed(1)]))),
    ...(about.benchmarks.length ? pairs("Benchmarks", Object.fromEntries(about.benchmarks.map((each) =>
      [each.name, `${(100 * each.value).toFixed(1)} %${each.error == null ? "" : ` ±${(100 * each.error).toFixed(1)}`}`]))) : []),
    ...pairs("Environment", about.facts),
    RQ.el("h3", {}, "Settings"), RQ.code(about.settings, false));
};
}
