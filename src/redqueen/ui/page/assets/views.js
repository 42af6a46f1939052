// What is shown of a run: charts, members, matches, lineage, settings. The words are those of the terminal.
"use strict";
{
const M = RQ.METRICS;
const keyOf = RQ.keyOf = (metric, subject, kind = "") => `${metric.name}/${subject}/${kind}`;
const series = RQ.series = (run, ...which) => run.series[keyOf(...which)];
const capital = RQ.capital;
// What the glossary says of words, as sentences: "Seat: a member's place ..."
const meaning = RQ.meaning = (...words) => words.map((word) => `${capital(word)}: ${RQ.WORDS[word].replace(/\.$/, "")}.`).join(" ");
// What students do in each kind, as its family says.
const asked = (run) => run.kinds.filter((kind) => run.titles[kind]).map((kind) => `${kind}, ${run.titles[kind]}`).join("; ");
const last = (values) => values && [...values].reverse().find((each) => each != null);
const mean = (values, from) => {
  const some = (values || []).slice(from - 1).filter((each) => each != null);
  return some.length ? some.reduce((sum, each) => sum + each, 0) / some.length : null;
};
const lines = (named) => named.filter(([, y]) => y).map(([name, y], at) => ({name, y, colour: RQ.colour(at), dash: RQ.dash(at)}));
const ROLES = RQ.ROLES = ["teacher", "student"];

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
      seat.y[at] = value; seat.half[at] = sigma ? sigma[at] : null; seat.text[at] = member.id;
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
  if (others.length) shown.push({name: "others", y: others[0].y.map((_, at) => others.reduce((sum, each) => sum + each.y[at], 0)), colour: RQ.GRAY});
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
const exam = (run) => ["exam", "Exam", `The exam ${run.exam.title} asks the same tasks at every step, so that steps can be compared. Mean of those who solve tasks, and the best of them; dotted: the bare base.`,
  checks(run, run.exam.figures.map((figure) => ({...figure, steps: run.exam.steps}))), {fromZero: true, raw: true, share: true}];

// A line for each adapter, and one for what they are beside.
const adapters = (run, metric, beside) => {
  const drawn = Object.keys(run.series).filter((key) => key.startsWith(`${metric.name}/`)).map((key) => [key.split("/")[1], run.series[key]]).filter(([name]) => name !== "base")
    .map(([name, y], at) => ({name, y, gaps: true, colour: RQ.colour(at)}));
  return drawn.length && beside ? [...drawn, {colour: RQ.GRAY, dash: "dot", gaps: true, ...beside}] : drawn;
};

const chartOf = (metric, ...more) => [metric.name.replace("_", "-"), capital(metric.title), ...more];
const byRole = (run, metric) => lines(ROLES.map((role) => [`${role}s`, series(run, metric, role)]));

// The bare base at the same tasks, beside what students solve of them.
const baseLine = (run) => {
  const y = series(run, M.ruler, "race");
  return y ? [{name: run.kinds.length > 1 ? "bare base, all kinds" : "bare base", y, colour: RQ.GRAY, dash: "dot", gaps: true}] : [];
};
const harder = (run) => [
  "Attempts at the step's tasks that are right. Teachers write these tasks and may write harder ones: a falling line does not show that students got worse.",
  run.exam ? "The exam asks the same tasks at every step." : "No exam was held: `redqueen exam RUN --every N` asks the same tasks at several steps.",
  baseLine(run).length ? "Dotted: the bare base at the same tasks." : "",
  asked(run) ? `The kinds: ${asked(run)}.` : ""].filter(Boolean).join(" ");

// Every chart of a race: [id, title, note, lines, more].
RQ.raceCharts = (run) => [
  ...(run.exam ? [exam(run)] : []),
  chartOf(M.solve_rate, harder(run),
    [...lines([...run.kinds.map((kind) => [kind, series(run, M.solve_rate, "race", kind)]),
      ...(run.kinds.length > 1 ? [["all kinds", series(run, M.solve_rate, "race")]] : [])]), ...baseLine(run)], {fromZero: true, share: true}),
  chartOf(M.ruler, `${meaning("ruler")} Where it falls, the tasks got harder.`,
    lines([...run.kinds.map((kind) => [kind, series(run, M.ruler, "race", kind)]),
      ...(run.kinds.length > 1 ? [["all kinds", series(run, M.ruler, "race")]] : [])]).map((each) => ({...each, gaps: true})), {fromZero: true, raw: true, share: true}),
  ["ratings-teachers", "Rating of teachers", `a line for each seat, with one sigma. ${meaning("rating", "seat")}`, ratings(run, "teacher"), {raw: true}],
  ["ratings-students", "Rating of students", "a line for each seat, with one sigma; both roles are on one scale: a student above a teacher solves more than half of its tasks", ratings(run, "student"), {raw: true}],
  chartOf(M.copies, M.copies.about, lines(run.kinds.map((kind) => [kind, series(run, M.copies, "race", kind)])), {fromZero: true, share: true}),
  ["complexity", "Complexity of tasks", "means over the step's tasks", lines(RQ.COMPLEXITY.map((metric) => [metric.title, series(run, metric, "race")])), {fromZero: true}],
  chartOf(M.coverage, `${M.coverage.about} so far. ${meaning("cell")}`, lines([["cells", series(run, M.coverage, "race")]]), {fromZero: true, raw: true}),
  chartOf(M.behaviours, `${M.behaviours.about} so far. ${meaning("behaviour")}`, lines([["behaviours", series(run, M.behaviours, "race")]]), {fromZero: true, raw: true}),
  chartOf(M.reward, meaning("reward"), byRole(run, M.reward), {}),
  chartOf(M.valid, "proposals that became tasks, attempts that could be graded",
    lines([["proposals", series(run, M.valid, "teacher")], ["attempts", series(run, M.valid, "student")]]), {fromZero: true, share: true}),
  chartOf(M.entropy, `${M.entropy.about}, in ${M.entropy.unit}: how varied what members write is`, byRole(run, M.entropy), {fromZero: true}),
  chartOf(M.length, "tokens", lines([["of a proposal", series(run, M.length, "teacher")], ["of an attempt", series(run, M.length, "student")]]), {fromZero: true}),
  chartOf(M.elsewhere, `${M.elsewhere.about}; who is beyond the ceiling is called back`,
    adapters(run, M.elsewhere, run.drift_ceiling ? {name: "ceiling", y: Array(run.step).fill(run.drift_ceiling)} : null), {fromZero: true, raw: true}),
  chartOf(M.elsewhere_length, M.elsewhere_length.about, adapters(run, M.elsewhere_length, {name: "base", y: series(run, M.elsewhere_length, "base")}), {fromZero: true, raw: true}),
  ["speed", "tok/s", "sampled tokens over the seconds of the step", lines([["tok/s", perSecond(run)]]), {fromZero: true}],
  ["phases", "Seconds of a step", "by phase", phases(run), {fromZero: true, stack: true, raw: true}],
  ...(run.timeline ? [timeline(run)] : []),
  ["evaluated", "Benchmarks", "mean of those who solve tasks, beside the bare base", checks(run, run.benchmarks), {fromZero: true, raw: true, share: true}],
  ["benchmarks", "Benchmark slices", "students, at every look", benchmarks(run).map((each, at) => ({...each, colour: RQ.colour(at), gaps: true})), {fromZero: true, raw: true, share: true}],
].filter(([, , , drawn]) => drawn.length);

// All who were replaced at one time are one event.
const replacements = (run) => {
  const events = new Set(run.members.filter((member) => member.born > 0).map((member) => member.born)).size;
  return RQ.count(run.counts.events) + (events < run.counts.events ? ` in ${RQ.many(events, "event")}` : "");
};

// Of a fork, which run it began from and after which step.
const forked = RQ.forked = (run) => {
  const found = run.forked_from && /^(.*), step (\d+)$/s.exec(run.forked_from);
  return found ? {from: found[1], step: Number(found[2])} : null;
};

RQ.drawRace = (run) => {
  const place = document.getElementById("charts");
  const wanted = RQ.raceCharts(run);
  for (const figure of [...place.children]) if (!wanted.some(([id]) => figure.id === `chart-${id}`)) { RQ.drop(figure); figure.remove(); }
  const fork = forked(run);
  for (const [id, title, note, drawn, more] of wanted) RQ.chart(place, {id, title, note, lines: drawn, marks: fork && !more.unit ? [{x: fork.step, text: "fork"}] : [], ...more});
  // In the order that they have now: an exam may have been held since.
  wanted.forEach(([id], at) => { const figure = document.getElementById(`chart-${id}`); if (place.children[at] !== figure) place.insertBefore(figure, place.children[at]); });
  const seconds = Object.values(run.phases).flat().reduce((sum, each) => sum + each, 0);
  const sampled = (series(run, M.sampled_tokens, "race") || []).reduce((sum, each) => sum + (each || 0), 0);
  const facts = [["step", `${run.step} of ${run.steps}`], ["tasks", RQ.count(run.counts.tasks)], ["rejected", RQ.count(run.counts.rejections)],
    ["replacements", replacements(run)], [M.sampled_tokens.title, RQ.count(sampled)], ["time", RQ.span(seconds)], ["seed", run.seed],
    ...(fork ? [[`fork of ${RQ.visible(fork.from)}`, `from step ${fork.step}`]] : [])];
  RQ.fill(document.getElementById("totals"), facts.map(([name, value]) => RQ.el("div", {}, RQ.el("dt", {}, name), RQ.el("dd", {}, value))));
  const alarms = document.getElementById("alarms");
  alarms.hidden = !run.alarms.length;
  RQ.fill(alarms.children[0], `${RQ.many(run.alarms.length, "alarm")}, the newest first`);
  RQ.fill(alarms.children[1], [...run.alarms].reverse().map((each) => RQ.el("li", {}, `step ${each.step}: ${RQ.visible(each.says)}`)));
};

const living = (run) => run.members.filter((member) => member.died == null);
RQ.memberLink = (id, text) => RQ.el("button", {type: "button", class: "link", onclick: () => RQ.openMember(id)}, RQ.visible(text || id));
const memberLink = RQ.memberLink;

// Best first, as the terminal has them: by the lower bound of the rating, teachers before students.
const ranked = (run, members) => {
  const lower = (member) => { const mu = last(series(run, M.mu, member.id)); return mu == null ? -Infinity : mu - 3 * last(series(run, M.sigma, member.id)); };
  const order = new Map(members.map((member) => [member, lower(member)]));
  return members.slice().sort((a, b) => b.role.localeCompare(a.role) || (a.died != null) - (b.died != null) || order.get(b) - order.get(a) || 0);
};

RQ.drawMembers = (run) => {
  const all = document.getElementById("dead").checked;
  const newest = Math.max(0, ...run.members.map((member) => member.born));
  const played = new Set(run.matches.all.flatMap((each) => [each.teacher, each.student]));
  const rated = (member) => {
    const mu = last(series(run, M.mu, member.id));
    if (mu == null) return "-";
    return RQ.el("span", {}, `${mu.toFixed(1)} ±${last(series(run, M.sigma, member.id)).toFixed(1)}`, played.has(member.id) ? null : [" ", RQ.el("small", {class: "tag"}, "prior")]);
  };
  const tags = (member) => [run.best.some((each) => each.id === member.id) ? [" ", RQ.el("small", {class: "tag best"}, "exported")] : null,
    newest && member.born === newest && member.died == null ? [" ", RQ.el("small", {class: "tag"}, "newborn")] : null];
  const rows = ranked(run, all ? run.members : living(run)).map((member) => {
    const from = member.died == null ? run.late : 1;
    const means = Object.values(RQ.MEMBER_COLUMNS).map((metric) => RQ.two(mean(series(run, metric, member.id), from)));
    const died = member.died == null ? "" : `; replaced at step ${member.died}`;
    return [RQ.el("span", {}, memberLink(member.id), tags(member)), member.role, rated(member), ...means, member.born, [RQ.visible(member.from + died), "long"]];
  });
  const heads = [["member", "word first"], ["role", "word"], ["rating", "", RQ.WORDS.rating], ...Object.entries(RQ.MEMBER_COLUMNS).map(([head, metric]) => [head, "", metric.about]), ["born", ""], ["from", "word"]];
  const steps = run.late === run.step ? `step ${run.step}` : `steps ${run.late} to ${run.step}`;
  RQ.table(document.getElementById("member-table"), heads, rows, `Best first by the lower bound of the rating (mu - 3 sigma); means over ${steps}${all ? ", of those that were replaced over all their steps" : ""}.`);
  RQ.fill(document.getElementById("member-notes"),
    run.best.length ? `What \`redqueen export\` takes, from the checkpoint of step ${run.best[0].step}: ${run.best.map((each) => RQ.visible(each.why)).join("; ")}. ` : null,
    living(run).some((member) => !played.has(member.id)) ? "Prior: it has played no match yet and has the rating that it began with. " : null,
    newest ? `${meaning("newborn")} It begins with a wide sigma, which places it low until it has played. ` : null);
};

RQ.drawKinds = (run) => {
  const heads = [["kind", "word first"], ["what a student does", "word"], ["proposals", ""], ["valid", "", M.valid.about], ["solved", "", M.solve_rate.about], ["guess rate", "", M.guess_rate.about], ["cells", "", RQ.WORDS.cell], ["checks a second", ""], ["rejected for, of all proposals", "word"]];
  const rows = run.by_kind.map((each) => [RQ.visible(each.kind), [RQ.visible(run.titles[each.kind] ?? "a plug-in's kind"), "long"], RQ.count(each.proposals), RQ.two(each.valid), RQ.two(each.solve_rate), RQ.two(each.guess_rate), RQ.count(each.cells), RQ.count(each.checks_a_second),
    [each.rejected.map(([why, share]) => `${RQ.visible(why)} ${(100 * share).toFixed(0)} %`).join(", ") || "-", "long"]]);
  RQ.table(document.getElementById("kind-table"), heads, rows,
    `${run.late === run.step ? `Step ${run.step}` : `Steps ${run.late} to ${run.step}`}. Guess rate: ${M.guess_rate.about}. ${meaning("cell")}`);
};

// Of a race on a cluster; what became of workers is there also when its newest step was in one process.
RQ.drawWorkers = (run) => {
  const {workers, worker_events: events} = run;
  const none = !workers.length && !events.length;
  document.getElementById("workers").hidden = document.getElementById("to-workers").hidden = none;
  const calls = [...new Set(workers.flatMap((each) => Object.keys(each.seconds)))].sort();
  const heads = [["worker", "word first"], ["on", "word"], ["process", ""], ["members", "word"], ...calls.map((call) => [`${call}, s`, ""]), ["beside the others", ""]];
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
  RQ.watchEdges(matrix);
  RQ.stay(matrix, () => RQ.fill(matrix,
    RQ.el("thead", {}, RQ.el("tr", {}, RQ.el("th", {class: "word first"}, "teacher \\ student"), students.map((each) => RQ.el("th", {scope: "col"}, memberLink(each))))),
    RQ.el("tbody", {}, teachers.map((teacher) => RQ.el("tr", {}, RQ.el("th", {scope: "row", class: "word first"}, memberLink(teacher)),
      students.map((student) => cell(cells.get(`${teacher} ${student}`))))))));
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
