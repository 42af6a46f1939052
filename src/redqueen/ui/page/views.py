"""What the page and the report show of a run, as plain JSON values read from its records.

Figures are asked for by name, matches as sums, tasks a page at a time: nothing here reads the archive as a whole, and a
run that grows is read from where the reader left off.
"""

import math
import os
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path
from typing import Any

from redqueen.analysis import quarters
from redqueen.analysis.browse import CELL_CHARS, Filters, rows
from redqueen.analysis.claims import SOLVERS, claims
from redqueen.analysis.compare import arm_names, race_of, race_settings
from redqueen.analysis.intervals import band
from redqueen.analysis.kinds import by_kind
from redqueen.analysis.slowness import beside_others
from redqueen.phases.timeline import Timeline
from redqueen.plugins import FAMILIES
from redqueen.population.members import Role
from redqueen.runs import FORKED_FROM, benchmarks, exams, metrics
from redqueen.runs.lock import held
from redqueen.runs.rows import RejectionRow, TaskRow
from redqueen.runs.store import Store
from redqueen.settings import Config, dump, load_run
from redqueen.settings.toml import value_text
from redqueen.tasks.families import Families
from redqueen.ui.page import people

PAGE_ROWS = 50
"""Tasks that are listed at once."""
PROGRAM_LINES = 6
"""Of a program in a list; it opens with all."""
ALARMS = 50
"""The newest."""
WORKER_EVENTS = 100
"""The newest."""
DIGITS = 5
"""Of a figure, which no chart shows more of."""
DRAWN = (
    *metrics.MEMBER_COLUMNS.values(), *metrics.COMPLEXITY, metrics.LENGTH, metrics.MU, metrics.SIGMA, metrics.COVERAGE,
    metrics.BEHAVIOURS, metrics.RULER, metrics.SAMPLED_TOKENS, metrics.BENCHMARK, metrics.COPIES, metrics.ELSEWHERE,
    metrics.ELSEWHERE_LENGTH,
)  # fmt: skip
"""What charts and tables of the page are made of."""
JSON = dict[str, Any]


def run_view(folder: Path, since: int = 0) -> JSON:
    """Everything but tasks. Series begin after the step `since`; whatever is short is there whole."""
    with Store.read(folder) as store:
        settings = load_run(folder / "config.toml")
        last = store.last_step()
        since = min(since, last)
        events = list(store.events())
        ended = _ended(store, settings, last)
        return {
            "name": name_of(folder),
            "step": last,
            "steps": last if ended and settings.run.flops is not None else settings.run.steps,
            "state": state_of(folder),
            "forked_from": store.facts().get(FORKED_FROM),
            "since": since,
            "seed": settings.run.seed,
            "single": settings.population.single,
            "kinds": list(settings.tasks.kinds),
            "titles": titles(settings.tasks.families),
            "by_kind": [asdict(each) for each in by_kind(store, settings.tasks.kinds, quarters.quarters(last)[1][0])],
            "drift_ceiling": settings.guard.drift_ceiling,
            "series": _series(store, since, last),
            "phases": _phases(store, since, last),
            "timeline": _timeline(store, last),
            "workers": _workers(store, last),
            "worker_events": [asdict(event) for event in store.worker_events(WORKER_EVENTS)],
            "exam": _exam(folder, {member for member, role in store.players().items() if role is Role.STUDENT}),
            "benchmarks": _benchmarks(folder),
            "members": people.members(store, events, last),
            "best": [] if settings.population.single else people.exported(folder, store, events),
            "pulls": sorted({row.step for role in Role for row in store.metrics(metrics.PULL, role)}),
            "matches": {"all": _matches(store, 1, last), "late": _matches(store, quarters.quarters(last)[1][0], last)},
            "late": quarters.quarters(last)[1][0],
            "alarms": [{"step": alarm.step, "says": alarm.says} for alarm in store.alarms(newest=ALARMS)],
            "reasons": store.reasons(),
            "counts": store.counts("tasks", "rejections", "events"),
        }


def state_of(folder: Path) -> str:
    """`finished`, `running` or, where no process has a run that is not at its end, `stopped`."""
    with Store.read(folder) as store:
        if _ended(store, load_run(folder / "config.toml"), store.last_step()):
            return "finished"
    return "running" if held(folder) else "stopped"


def titles(families: Sequence[str]) -> dict[str, str]:
    """What a student has to do in each kind of the families that come with the package. Others are plug-ins: looking
    at a run must not run code that it names."""
    own = Families.of([name for name in families if name in FAMILIES.builtins])
    return {name: kind.title for name, kind in own.kinds.items()}


def about_view(folder: Path) -> JSON:
    """What a run was told, ran on and used up."""
    with Store.read(folder) as store:
        settings = load_run(folder / "config.toml")
        used = {metric.name: quarters.by_subject(store, metric) for metric in metrics.COMPUTE}
        subjects = dict.fromkeys(subject for usage in used.values() for subject in usage)
        compute = [
            {"subject": subject} | {name: usage[subject].total() for name, usage in used.items() if subject in usage}
            for subject in sorted(subjects, key=lambda subject: (subject == metrics.RACE, subject))
        ]
        return {
            "settings": dump(settings),
            "facts": store.facts(),
            "compute": compute,
            "seconds": quarters.seconds(store),
            "benchmarks": [
                {"name": result.name, "value": result.value, "error": result.error}
                for result in benchmarks.of_roles(folder)
            ],
        }


def arms_view(folders: Sequence[Path]) -> list[JSON]:
    """Runs that differ in their seed alone are one arm: step by step the mean over its seeds, and half of the band
    around it where there are several. A second folder with a race that is there already counts for nothing."""
    groups: dict[str, dict[Path, int]] = {}
    again: dict[str, list[JSON]] = {}
    settings_of: dict[str, Mapping[str, Any]] = {}
    for folder in folders:
        settings = _settings(folder)
        key = race_of(settings)
        settings_of.setdefault(key, race_settings(settings))
        group = groups.setdefault(key, {})
        same = next((other for other, seed in group.items() if seed == settings.run.seed), None)
        if same is None:
            group[folder] = settings.run.seed
        else:
            again.setdefault(key, []).append({"run": str(folder), "as": str(same), "seed": settings.run.seed})
    names = arm_names([[str(folder) for folder in group] for group in groups.values()])
    held = {exam[-1].paper for folder in folders if (exam := exams.newest(folder, SOLVERS))}
    by_name = dict(zip(names, groups.values(), strict=True))
    found = claims({name: {seed: run for run, seed in group.items()} for name, group in by_name.items()})
    arms = [
        _arm(name, group, examined=len(held) == 1)
        | {
            "claims": [claim.as_json() for claim in found if claim.arm == name],
            "again": again.get(key, []),
            "forks": _forks(group),
            "differs": _differences(settings_of[key], next(iter(settings_of.values()))),
        }
        for (key, group), name in zip(groups.items(), names, strict=True)
    ]
    for arm in arms:
        same = (other["name"] for other in arms if other is not arm and other["series"] == arm["series"])
        arm["twin"] = next(same, None) if arm["series"] else None
    return arms


def tasks_view(folder: Path, filters: Filters) -> JSON:
    """The newest that fit, and whether there are others."""
    with Store.read(folder) as store:
        newest = list(rows(store, filters, PAGE_ROWS + 1, newest_first=True))
    return {"rows": [row_view(row) for row in newest[:PAGE_ROWS]], "more": len(newest) > PAGE_ROWS}


def row_view(row: TaskRow | RejectionRow) -> JSON:
    """A proposal with the first lines of its program."""
    known = {"step": row.step, "place": row.place, "kind": row.kind, "teacher": row.teacher}
    if isinstance(row, RejectionRow):
        return {**known, "reason": row.reason, **_first_lines(row.detail or row.program or row.text)}
    return {
        **known,
        "solved": row.solved,
        "attempts": row.attempts,
        "lines": row.lines,
        "trivial": row.trivial,
        "oversight": row.oversight,
        **_first_lines(str(row.record.get("program", row.text) or row.record.get("asked", ""))),
    }


def name_of(folder: Path) -> str:
    return Path(os.path.abspath(folder)).name


def names_of(folders: Sequence[Path]) -> list[str]:
    """Those of the folders, or their paths where names alone do not tell them apart."""
    names = [name_of(folder) for folder in folders]
    return [name if names.count(name) == 1 else str(folder) for name, folder in zip(names, folders, strict=True)]


def _arm(name: str, seeds: Mapping[Path, int], *, examined: bool) -> JSON:
    """`examined` where all arms that were examined had the same exam."""
    curves: dict[str, list[dict[int, float]]] = {}
    bases: dict[str, list[float]] = {}
    spent: dict[str, list[dict[int, float]]] = {}
    checked: dict[str, list[dict[int, float]]] = {}
    for folder in seeds:
        for key, values in _curves(folder).items():
            curves.setdefault(key, []).append(values)
        for key, checks in _checks(folder, examined).items():
            checked.setdefault(key, []).append(dict(zip(checks["steps"], checks["values"], strict=True)))
            bases.setdefault(key, []).extend([] if checks["base"] is None else [checks["base"]])
        for unit, values in _spent(folder).items():
            spent.setdefault(unit, []).append(values)
    for key, of_seeds in checked.items():
        # At steps that all of them were asked at: a line would leap where another seed joins.
        common = set.intersection(*map(set, of_seeds))
        if common:
            curves[key] = [{step: values[step] for step in common} for values in of_seeds]
    return {
        "name": name,
        "runs": [name_of(folder) for folder in seeds],
        "seeds": list(seeds.values()),
        "series": {key: _band(seed_curves) for key, seed_curves in curves.items()},
        "bases": {key: _short(statistics.fmean(values)) for key, values in bases.items() if values},
        "spent": {unit: _band(seed_curves)["mean"] for unit, seed_curves in spent.items()},
    }


def _forks(group: Iterable[Path]) -> list[JSON]:
    """The runs that were forked, and from which run and step: what they have up to it is the other one's."""
    origins = {}
    for folder in group:
        with Store.read(folder) as store:
            origins[folder] = store.facts().get(FORKED_FROM)
    return [{"run": name_of(folder), "from": origin} for folder, origin in origins.items() if origin]


def _differences(settings: Mapping[str, Any], first: Mapping[str, Any]) -> list[str]:
    """What an arm is told otherwise than the first one."""
    return [
        f"{key} is not set" if value is None else f"{key} = {value_text(value)}"
        for key, value in settings.items()
        if value != first.get(key)
    ]


def _spent(folder: Path) -> dict[str, dict[int, float]]:
    """What a race had used up by each step."""
    with Store.read(folder) as store:
        by_step: dict[str, dict[int, float]] = {
            metric.name: {row.step: row.value for row in store.metrics(metric, metrics.RACE, kind="")}
            for metric in (metrics.FLOPS, metrics.SAMPLED_TOKENS)
        }
        hours = by_step["hours"] = {}
        for timing in store.timings(0):
            hours[timing.step] = hours.get(timing.step, 0.0) + timing.seconds / 3600
    return {
        unit: dict(zip(sorted(values), accumulate(values[step] for step in sorted(values)), strict=True))
        for unit, values in by_step.items()
        if values
    }


def _exam(folder: Path, students: Collection[str] = ()) -> JSON | None:
    """What the exam that was held last found of those who solve tasks, checkpoint by checkpoint: the mean, and the best
    of these students."""
    results = exams.newest(folder, SOLVERS)
    own = [result for result in results if result.subject in SOLVERS]
    if not own:
        return None
    base = next((result.figures for result in results if result.subject == exams.BASE), {})
    each = {
        result.step: [one for one in results if one.step == result.step and one.subject in students] for result in own
    }
    return {
        "title": own[0].title,
        "steps": [result.step for result in own],
        "figures": [
            {
                "name": own[0].measure(figure),
                "values": [_short(result.figures[figure]) for result in own],
                "best": [
                    _short(max((one.figures[figure] for one in each[result.step]), default=None)) for result in own
                ],
                "base": _short(base.get(figure)),
            }
            for figure in exams.TITLES
        ],
    }


def _benchmarks(folder: Path) -> list[JSON]:
    """What `redqueen eval` found of those who solve tasks, checkpoint by checkpoint; of the file asked last."""
    by_name: dict[str, list[benchmarks.Result]] = {}
    for result in sorted(benchmarks.read(folder), key=lambda result: result.step):
        if result.member is None and result.role in (None, str(Role.STUDENT)):
            by_name.setdefault(result.asked, []).append(result)
    return [
        {
            "name": name,
            "steps": [result.step for result in results],
            "values": [_short(result.value) for result in results],
            "base": _short(results[-1].base),
        }
        for name, all_results in by_name.items()
        if (results := [result for result in all_results if result.sha256 == all_results[-1].sha256])
    ]


def _checks(folder: Path, examined: bool) -> dict[str, JSON]:
    """What was found of its checkpoints, by the name of the curve: at the exam, if all arms had one, and benchmarks."""
    found = {f"benchmark//{each['name']}": each for each in _benchmarks(folder)}
    exam = _exam(folder) if examined else None
    if exam is None:
        return found
    held = zip(exams.TITLES, exam["figures"], strict=True)
    return {f"exam//{figure}": {"steps": exam["steps"], **each} for figure, each in held} | found


def _ended(store: Store, settings: Config, last: int) -> bool:
    return last >= settings.run.steps or (last > 0 and settings.run.ends(last, quarters.flops(store)))


def _settings(folder: Path) -> Config:
    with Store.read(folder):
        return load_run(folder / "config.toml")


def _first_lines(text: str) -> JSON:
    """As they are broken, each as far as a table has room, and how many are left out."""
    lines = text.strip("\n").split("\n")
    first = [line[:CELL_CHARS] for line in lines[:PROGRAM_LINES]]
    return {"program": "\n".join(first), "further": len(lines) - len(first)}


def _series(store: Store, since: int, last: int) -> dict[str, list[float | None]]:
    """By `name/subject/kind`, a value for each step after `since`, None where there is none."""
    series: dict[str, list[float | None]] = {}
    for name, subject, kind, step, value in _wanted(store, since):
        key = f"{name}/{subject}/{kind}"
        if key not in series:
            series[key] = [None] * (last - since)
        if step <= last:
            series[key][step - since - 1] = _short(value)
    return series


def _wanted(store: Store, since: int) -> Iterator[tuple[str, str, str, int, float | None]]:
    for metric in DRAWN:
        # By kind only what is the race's own: nobody looks at a member's entropy in code_i. Benchmarks stand for kinds.
        by_kind = Role.STUDENT if metric is metrics.BENCHMARK else metrics.RACE
        for subject, kind, step, value in store.figures(metric, since, by_kind):
            yield metric.name, subject, kind, step, value


def _short(value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{DIGITS}g}")


def _phases(store: Store, since: int, last: int) -> dict[str, list[float]]:
    """Seconds of each phase."""
    seconds: dict[str, list[float]] = {}
    for timing in store.timings(since):
        if timing.step <= last:
            seconds.setdefault(timing.phase, [0.0] * (last - since))[timing.step - since - 1] = round(timing.seconds, 4)
    return seconds


def _timeline(store: Store, last: int) -> JSON | None:
    """Where the seconds of the newest step went, if that was recorded."""
    row = store.timeline(last)
    if row is None:
        return None
    timeline = Timeline.of_record(row.timeline)
    return {
        "step": row.step,
        "seconds": timeline.seconds,
        "proposals": [_short(rows) for rows in timeline.proposals],
        "attempts": [_short(rows) for rows in timeline.attempts],
        "others": timeline.others,
    }


def _workers(store: Store, last: int) -> list[JSON]:
    """Of a cluster, after the newest step."""
    rows = store.workers(last)
    beside = beside_others(rows)
    return [asdict(row) | {"beside": _short(beside.get(row.worker))} for row in rows]


def _matches(store: Store, since: int, until: int) -> list[JSON]:
    return [
        {
            "teacher": teacher,
            "student": student,
            "matches": tally.matches,
            "student_wins": tally.student_wins,
            "draws": tally.draws,
            "teacher_wins": tally.teacher_wins,
            "tasks": tally.tasks,
            "solve_rate": _short(tally.solve_rate),
        }
        for (teacher, student), tally in store.tallies(since, until).items()
    ]


def _curves(folder: Path) -> dict[str, dict[int, float]]:
    """The figures of the race and of its roles, which all arms have."""
    curves: dict[str, dict[int, float]] = {}
    with Store.read(folder) as store:
        for name, subject, kind, step, value in _wanted(store, 0):
            if subject in (metrics.RACE, *Role) and (short := _short(value)) is not None:
                curves.setdefault(f"{name}/{subject}/{kind}", {})[step] = short
    return curves


def _band(curves: Sequence[Mapping[int, float]]) -> JSON:
    """As far as all seeds have come: a mean over fewer would leap there, and say nothing of it."""
    last = min(max(curve) for curve in curves)
    means: list[float | None] = [None] * last
    halves: list[float | None] = [None] * last
    for step in range(1, last + 1):
        if values := [curve[step] for curve in curves if step in curve]:
            means[step - 1] = _short(statistics.fmean(values))
            halves[step - 1] = _short(band(values)) if len(values) > 1 else None
    return {"mean": means, "half": halves if any(half is not None for half in halves) else None}
