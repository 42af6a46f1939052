// The page as a whole: where its figures come from, what is drawn when, and the choices of the reader.
"use strict";
{
// A report brings its figures along; the live page asks for them.
const embedded = document.getElementById("embedded");
const kept = embedded && JSON.parse(embedded.textContent);

const asked = async (name, query = {}) => {
  const response = await fetch(`${name}.json?${new URLSearchParams(query)}`);
  const found = await response.json().catch(() => ({error: `the server answered with ${response.status}`}));
  if (!response.ok) throw new Error(found.error || `the server answered with ${response.status}`);
  return found;
};

// As the records are asked: the text is looked for in what the teacher wrote.
const fits = ({row, whole}, filters) => {
  const found = filters.text ? (whole.task || whole.rejection).text.toLowerCase() : "";
  const rate = row.attempts ? row.solved / row.attempts : null;
  return (!filters.kind || row.kind === filters.kind) && (!filters.teacher || row.teacher === filters.teacher)
    && (!filters.since || row.step >= Number(filters.since)) && (!filters.until || row.step <= Number(filters.until))
    && (!filters.text || found.includes(filters.text.toLowerCase())) && (!filters.reason || row.reason === filters.reason) && (!filters.oversight || row.oversight)
    && (!filters.min_rate || (rate != null && rate >= Number(filters.min_rate))) && (!filters.max_rate || (rate != null && rate <= Number(filters.max_rate)));
};

RQ.number = 0;
RQ.source = kept ? {
  runs: async () => kept.names,
  run: async () => kept.runs[RQ.number].view,
  about: async () => kept.runs[RQ.number].about,
  arms: async () => kept.arms,
  tasks: async (filters) => {
    const some = kept.runs[RQ.number][filters.rejected ? "rejections" : "tasks"].filter((each) => fits(each, filters)).map((each) => each.row);
    const from = filters.before_step ? some.findIndex((row) => row.step === filters.before_step && row.place === filters.before_place) + 1 : 0;
    return {rows: some.slice(from, from + 50), more: some.length > from + 50};
  },
  task: async (step, place) => {
    const {tasks, rejections} = kept.runs[RQ.number];
    const found = [...tasks, ...rejections].find((each) => each.row.step === step && each.row.place === place);
    if (!found) throw new Error(`this file does not have ${step}:${place}; the folder of the run has all`);
    return found.whole;
  },
} : {
  runs: async () => (await asked("runs")).runs,
  run: (since = 0) => asked("run", {run: RQ.number, since}),
  about: () => asked("about", {run: RQ.number}),
  arms: () => asked("arms"),
  tasks: (filters) => asked("tasks", {...filters, run: RQ.number}),
  task: (step, place) => asked("task", {run: RQ.number, step, place}),
};

// What went wrong is said on the page, and unsaid when the same goes right again.
const wrong = new Map();
RQ.asking = async (ask, what = "") => {
  const fault = document.getElementById("fault");
  try {
    const found = await ask();
    wrong.delete(what);
    return found;
  } catch (error) {
    wrong.set(what, `the records could not be read: ${RQ.visible(error.message)}`);
    return null;
  } finally {
    fault.textContent = [...new Set(wrong.values())].join("; ");
    fault.hidden = !wrong.size;
  }
};

const chosenTheme = () => document.getElementById("theme").value;
const dark = matchMedia("(prefers-color-scheme: dark)");
const setTheme = () => {
  const theme = chosenTheme() === "auto" ? (dark.matches ? "dark" : "light") : chosenTheme();
  document.documentElement.dataset.theme = theme;
  RQ.repaint();
};
// With other colours, or on paper.
RQ.repaint = () => {
  if (RQ.run) draw();
  if (RQ.arms) RQ.drawArms(RQ.arms);
};

const STATES = {
  finished: () => "finished",
  running: (run) => run.step ? `running, ${Math.round(100 * run.step / run.steps)} %` : "running, waiting for the first step",
  stopped: (run) => run.step ? `stopped at ${Math.round(100 * run.step / run.steps)} %: no process has it, and the same \`redqueen train\` goes on with it` : "stopped before its first step",
};
const status = () => {
  const run = RQ.run;
  const place = document.getElementById("status");
  const gone = !kept && RQ.connected === false ? "  (the server is gone)" : "";
  RQ.fill(place, document.createTextNode(`step ${run.step}/${run.steps}  `), RQ.el("span", {class: `state ${run.state}`}, `${STATES[run.state](run)}${kept && run.state === "running" ? " when this was written" : ""}`), document.createTextNode(gone));
};

const draw = () => {
  const run = RQ.run;
  document.title = `${run.name} - Red Queen`;
  document.getElementById("run-name").textContent = RQ.visible(run.name);
  status();
  RQ.drawRace(run);
  RQ.drawMembers(run);
  RQ.drawKinds(run);
  RQ.drawMatrix(run);
  RQ.drawLineage(run);
  RQ.drawWorkers(run);
  RQ.drawMember();
  RQ.offerFilters(run);
  performance.mark("words");
};

// New steps go behind those that are known. The last known one is asked for again: what it took is not all known when it is
// written, and if its figures are others now, the steps before it are of another past. Then nothing can be joined.
const joined = (old, fresh) => {
  const same = ["name", "seed", "steps"].every((key) => old[key] === fresh[key]) && fresh.since === old.step - 1 && fresh.step >= old.step;
  const keys = (part) => [...new Set([...Object.keys(old[part]), ...Object.keys(fresh[part])])];
  const value = (values, at) => values && values[at] != null ? values[at] : null;
  if (!same || keys("series").some((key) => value(old.series[key], fresh.since) !== value(fresh.series[key], 0))) return null;
  const gap = (values, length, nothing) => values || Array(length).fill(nothing);
  const grown = (part, nothing) => Object.fromEntries(keys(part).map((key) =>
    [key, [...gap(old[part][key], old.step, nothing).slice(0, fresh.since), ...gap(fresh[part][key], fresh.step - fresh.since, nothing)]]));
  return {...fresh, since: 0, series: grown("series", null), phases: grown("phases", 0)};
};

// Of several that were begun only the last counts.
let opened = 0;
const open = async () => {
  const number = ++opened;
  RQ.run = null;
  const run = await RQ.asking(() => RQ.source.run(), "run");
  if (!run || number !== opened) return;
  RQ.run = run;
  draw();
  await Promise.all([RQ.browse(), tell()]);
};
const tell = async () => {
  const number = opened;
  const about = await RQ.asking(() => RQ.source.about(), "about");
  if (about && number === opened) RQ.drawAbout(about);
};
const compare = async () => {
  const arms = await RQ.asking(() => RQ.source.arms(), "arms");
  if (!arms) return;
  RQ.arms = arms;
  document.getElementById("arms").hidden = document.getElementById("to-arms").hidden = false;
  RQ.drawArms(arms);
};

// What is costly to read is read some seconds after a change, and once for all changes until then.
const planned = new Set();
const soon = (read) => {
  if (planned.has(read)) return;
  planned.add(read);
  setTimeout(() => { planned.delete(read); read(); }, 5000);
};

let reading = false;
let again = null;
// One question at a time, however fast steps come.
const follow = async (steps) => {
  if (reading) { again = steps; return; }
  reading = true;
  try {
    const [reached, state] = steps[RQ.number];
    if (RQ.run && reached === RQ.run.step && state !== RQ.run.state) { RQ.run.state = state; status(); }
    if (!RQ.run) await open();
    else if (reached >= 0 && reached !== RQ.run.step) {
      const number = opened;
      const whole = reached < RQ.run.step || !RQ.run.step;
      const fresh = await RQ.asking(() => RQ.source.run(whole ? 0 : RQ.run.step - 1), "run");
      if (fresh && number === opened) {
        const grown = whole ? fresh : joined(RQ.run, fresh);
        if (!grown) await open();
        else {
          RQ.run = grown;
          draw();
          RQ.newTasks();
          soon(tell);
        }
      }
    }
    if (RQ.arms) soon(compare);
  } finally {
    reading = false;
  }
  if (again) { const next = again; again = null; follow(next); }
};

// A browser keeps six streams open at most: a page that nobody sees gives its own back.
let stream = null;
const listen = () => {
  if (kept) return;
  if (stream) stream.close();
  stream = null;
  if (document.hidden) return;
  stream = new EventSource("live");
  stream.onopen = () => { RQ.connected = true; if (RQ.run) status(); };
  stream.onerror = () => { RQ.connected = false; if (RQ.run) status(); };
  stream.onmessage = (event) => follow(JSON.parse(event.data));
};

// Another of the runs.
RQ.choose = async (number) => {
  RQ.number = number;
  document.getElementById("run").value = number;
  await open();
};

let typed = null;
const begin = async () => {
  const theme = document.getElementById("theme");
  try { theme.value = localStorage.getItem("redqueen-theme") || "auto"; } catch { theme.value = "auto"; }
  theme.addEventListener("change", () => { try { localStorage.setItem("redqueen-theme", theme.value); } catch { /* a file may have no storage */ } setTheme(); });
  dark.addEventListener("change", setTheme);
  setTheme();
  const smooth = document.getElementById("smooth");
  smooth.addEventListener("change", () => { RQ.smoothing = Number(smooth.value); RQ.redraw(); });
  document.getElementById("over").addEventListener("change", () => RQ.drawArms(RQ.arms));
  document.getElementById("dead").addEventListener("change", () => { if (RQ.run) RQ.drawMembers(RQ.run); });
  document.getElementById("window").addEventListener("change", () => { if (RQ.run) RQ.drawMatrix(RQ.run); });
  const filters = document.getElementById("filters");
  filters.addEventListener("submit", (event) => event.preventDefault());
  filters.addEventListener("change", () => RQ.filtered());
  filters.elements.text.addEventListener("input", () => { clearTimeout(typed); typed = setTimeout(RQ.filtered, 300); });
  filters.querySelector("[type=reset]").addEventListener("click", () => setTimeout(RQ.filtered));
  document.getElementById("extinct").addEventListener("change", () => { if (RQ.run) RQ.drawLineage(RQ.run); });
  document.getElementById("more").addEventListener("click", () => RQ.browse(true));
  document.getElementById("newer").addEventListener("click", () => RQ.browse());
  document.getElementById("detail").addEventListener("close", RQ.closed);
  document.addEventListener("visibilitychange", listen);
  const names = await RQ.asking(() => RQ.source.runs(), "runs");
  if (!names) return;
  const choice = document.getElementById("run");
  RQ.fill(choice, names.map((name, at) => RQ.el("option", {value: at}, RQ.visible(name))));
  document.getElementById("run-choice").hidden = names.length < 2;
  RQ.names = names;
  choice.addEventListener("change", () => { RQ.choose(Number(choice.value)); history.replaceState(null, "", `#race&run=${choice.value}`); });
  if (kept && kept.left_out) {
    const note = document.getElementById("tasks-note");
    note.textContent = kept.left_out;
    note.hidden = false;
  }
  const {run = "0"} = RQ.addressed();
  await RQ.choose(run in names ? Number(run) : 0);
  if (names.length > 1) await compare();
  if (location.hash) await RQ.follow();
  listen();
  document.documentElement.dataset.ready = "1";
};

begin();
}
