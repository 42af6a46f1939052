// Several runs: those that differ in their seed alone are one arm, laid over the others.
"use strict";
{
const M = RQ.METRICS;
// Every chart of arms: [metric, subject, kind].
const ARM_CHARTS = (kinds) => [...kinds.map((kind) => [M.solve_rate, "race", kind]),
  ...[...RQ.COMPLEXITY, M.coverage, M.behaviours].map((metric) => [metric, "race"]), [M.ruler, "race"], [M.valid, "teacher"],
  ...[M.reward, M.entropy, M.length].flatMap((metric) => RQ.ROLES.map((role) => [metric, role])), [M.sampled_tokens, "race"]];

// What its intervals can hold.
const RANGE = (metric) => [metric.signed ? -Infinity : 0, metric.unit === "share" ? 1 : Infinity];

// Who solves more, and whether that can be told.
const claims = (arms) => {
  const place = document.getElementById("arm-claims"), rows = arms.flatMap((arm) => arm.claims || []);
  place.hidden = !rows.length;
  if (!rows.length) return;
  const points = (share, sign) => `${sign && share > 0 ? "+" : ""}${(100 * share).toFixed(1)}`;
  RQ.fill(place, RQ.el("h3", {}, "Verdicts"),
    RQ.table(RQ.el("table"), [["those who solve tasks", "word"], ["arm", "word"], [`minus ${RQ.visible(rows[0].against)}, points`, ""], ["seeds", ""], ["verdict", "word"]],
      rows.map((row) => [RQ.visible(row.measure), RQ.visible(row.arm), `${points(row.difference, true)}${row.half == null ? "" : ` ±${points(row.half)}`}`, row.seeds, row.text])),
    RQ.el("p", {class: "note"}, "± is half of the 95 % interval over seeds (Student's t). Not told: it holds 0; as many seeds as named would clear it of 0 with a chance of four in five, if arms differ as much as these do."));
};

// Which runs are which arm, what tells them apart, and what cannot be told apart.
const listed = (arms) => {
  const runs = (arm) => [arm.runs.map(RQ.visible).join(", "), ...arm.again.map((each) => `${RQ.visible(each.run)} is the race of ${RQ.visible(each.as)} once more (seed ${each.seed}) and is not counted`)].join("; ");
  const notes = (arm) => [arm.twin == null ? null : `the same figures as ${RQ.visible(arm.twin)} throughout: their lines hide each other`,
    ...arm.forks.map((each) => `${RQ.visible(each.run)} is a fork of ${RQ.visible(each.from)}: the steps up to there are shared`)].filter(Boolean).join("; ");
  const first = arms[0].name;
  RQ.table(document.getElementById("arm-table"), [["arm", "word first"], ["runs", "word"], ["seeds", "word"], [`differs from ${RQ.visible(first)} in`, "word"], ["note", "word"]],
    arms.map((arm) => [RQ.visible(arm.name), [runs(arm), "long"], arm.seeds.join(", "), [arm.differs.map(RQ.visible).join(", ") || "-", "long"], [notes(arm) || "-", "long"]]), RQ.meaning("arm"));
};

RQ.drawArms = (arms) => {
  claims(arms);
  const kinds = [...new Set(arms.flatMap((arm) => Object.keys(arm.series)).filter((key) => key.startsWith(RQ.keyOf(M.solve_rate, "race"))).map((key) => key.split("/")[2]))].filter(Boolean);
  listed(arms);
  document.getElementById("arms-note").textContent = (arms.some((arm) => arm.seeds.length > 1) ? "Lines are means over seeds as far as all have come, bands their 95 % intervals (Student's t), as far as there can be values; of two seeds from one to the other. " : "One seed each: no interval can be given. ") +
    "Solve rates are at the tasks of each run's own teachers and say little of how good students are: an exam asks all the same.";
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
    const beside = (same ? based.slice(0, 1).map(({value}) => ({line: longest, value, name: "base", colour: RQ.GRAY})) : based.map((each) => ({...each, name: `${each.line.name}, base`, colour: each.line.colour})))
      .map(({line, value, name, colour}) => ({...line, name, colour, y: line.y.map(() => value), half: null, gaps: false, dash: "dot"}));
    if (drawn.length) RQ.chart(place, {id, title, lines: [...drawn, ...beside], raw: true, unit, ...more});
  };
  for (const [figure, title] of Object.entries({sampled: "sampled", greedy: "greedy", pass_at_k: "pass@k"}))
    draw(`exam//${figure}`, `Exam, ${title}`, {within: [0, 1], share: true}, true);
  const asked = [...new Set(arms.flatMap((arm) => Object.keys(arm.series)).filter((each) => each.startsWith("benchmark//")))];
  asked.forEach((key, at) => draw(key, RQ.visible(key.slice("benchmark//".length)), {within: [0, 1], share: true}, true, `arm-benchmark-${at}`));
  for (const [metric, subject, kind = ""] of ARM_CHARTS(kinds)) {
    draw(RQ.keyOf(metric, subject, kind), RQ.capital(`${metric.role_titles[subject] || metric.title} ${kind}`.trim()), {within: RANGE(metric), share: metric.unit === "share"}, metric === M.ruler);
  }
};
}
