// The address says what is looked at, so that it can be kept, sent and read again: #members, #member=t0.1, #task=3:17,
// #tasks&kind=code_i&text=gcd, each with &run=1 where there are several runs. One that names no run is of the one that is shown.
"use strict";
{
const section = (part) => part && !part.includes("=") ? part : "";
const read = () => {
  const [first, ...others] = location.hash.slice(1).split("&");
  return {section: section(first), ...Object.fromEntries(new URLSearchParams([...(section(first) ? [] : [first]), ...others].join("&")))};
};
const several = () => (RQ.names?.length ?? 0) > 1;
const written = ({section, ...values}) => {
  const named = new URLSearchParams(Object.entries({...values, ...several() ? {run: RQ.number} : {}}).filter(([, value]) => value !== ""));
  return `#${[section, String(named).replaceAll("%3A", ":")].filter(Boolean).join("&")}`;
};

// Where the reader was before something opened over it.
let before = null;
let following = false;

// Something opens: the browser's way back closes it again.
RQ.goTo = (values) => {
  const wanted = written(values);
  if (following || location.hash === wanted) return;
  before ??= location.hash;
  history.pushState(null, "", wanted);
};
RQ.goBack = () => {
  const {member, task} = read();
  if (member || task) history.replaceState(null, "", before || (several() ? written({}) : location.pathname + location.search));
  before = null;
};
// What is listed is part of the address, without a way back through every choice.
RQ.filtered = () => {
  history.replaceState(null, "", written({section: "tasks", ...RQ.filters()}));
  return RQ.browse();
};
RQ.addressed = () => read();

// What the address asks for, after it was read or changed.
RQ.follow = async () => {
  const {section, run = RQ.number, member, task, ...filters} = read();
  following = true;
  try {
    const number = Number(run);
    if (number !== RQ.number && number in RQ.names) await RQ.choose(number);
    const dialog = document.getElementById("detail");
    if (member) RQ.openMember(member);
    else if (task && /^\d+:\d+$/.test(task)) await RQ.openTask(...task.split(":").map(Number));
    else {
      if (dialog.open) dialog.close();
      before = null;
      if (several()) history.replaceState(null, "", written({section, ...filters}));
      if (Object.keys(filters).length) { RQ.setFilters(filters); await RQ.browse(); }
      const place = section && document.getElementById(section);
      if (place) place.scrollIntoView({behavior: "instant"});
    }
  } finally {
    following = false;
  }
};
window.addEventListener("popstate", () => RQ.follow());
}
