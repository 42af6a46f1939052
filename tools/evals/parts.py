"""Studies that are run in parts, on machines that come and go: one small file for each race, tables of all of them.

    redqueen study PRESET --to STUDY --seeds 1 --first-seed 3 ...
    redqueen eval STUDY/*-3 --every 20 --role students --suite NAMES --to EVALUATION
    redqueen eval BASE --suite cruxeval_o_cot --to OTHER              # other prompts, which may suit the base better
    python tools/evals/parts.py keep STUDY EVALUATION... --to DATA [--data BENCHMARKS]
    python tools/evals/parts.py show DATA [--step N] [--against ARM]
    python tools/evals/parts_curves.py DATA --to FOLDER

`keep` writes DATA/ARM-SEED.json: the settings, what the race was like and cost, what the exam found, and a digit for
each task of a benchmark and each greedy answer; DATA/base.json has the base's. `show` prints the tables in Markdown:
less the base, asked so and in the prompts that suit it best, with intervals over seeds and over tasks, arms less one of
them seed by seed, and how many seeds would tell.
"""

import argparse
import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any
from urllib.parse import unquote_plus

import numpy as np
from numpy.typing import NDArray

from redqueen.analysis.claims import seeds_to_tell
from redqueen.analysis.intervals import estimate
from redqueen.analysis.quarters import by_subject, count_text, series
from redqueen.analysis.resampling import paired
from redqueen.errors import InputError, UserError
from redqueen.evals.answers import GREEDY, SETTINGS, Answer, read_answers
from redqueen.evals.benchmarks import chosen
from redqueen.evals.data import LoadedBenchmark, find
from redqueen.evals.evaluation import find_subsets
from redqueen.evals.protocol import Prompts
from redqueen.evals.subjects import BARE
from redqueen.population.members import SOLO, Role
from redqueen.runs import CONFIG
from redqueen.runs.metrics import COMPUTE, ELSEWHERE, ENTROPY, LENGTH, RACE, SOLVE_RATE, VALID
from redqueen.runs.records_file import RECORDS
from redqueen.runs.store import Store
from redqueen.settings import flat, load_run
from redqueen.training.study.outcomes import race_figures
from redqueen.training.study.study import OUTCOMES
from redqueen.verifier import LocalVerifier

Vector = NDArray[np.float64]
Scores = dict[str, dict[str, Any]]
"""By benchmark, or a part of one: the base's digits, and by step and member its own."""
EVERY = 10
"""Steps in a point of a curve."""
UNANSWERED = "-"
BASE_FILE = "base.json"
KEPT = {"arm", "seed", "steps", "figures", "curves", "called_back", "benchmarks"}
"""What is read of a race."""
USUAL = "single-wide"
FORMS = ("_cot", "_long", "_direct")
"""Ends of the names of benchmarks that are others in other prompts."""
CURVES = (
    (SOLVE_RATE, RACE),
    (VALID, Role.TEACHER),
    (ENTROPY, Role.TEACHER),
    (ENTROPY, Role.STUDENT),
    (LENGTH, Role.STUDENT),
)
OF_THE_MACHINE = ("engine.base", "engine.device", "engine.dtype", "engine.rows", "evals.", "verifier.", "track.")
"""Settings that say nothing of the race, or where something lies."""


def keep(study: Path, evaluations: Sequence[Path], to: Path, data: Path | None) -> None:
    runs = {path.parent.name: path.parent for path in sorted(study.glob(f"*/{RECORDS}"))}
    if not runs:
        raise InputError(f"{study} has no runs", "name the folder of a study")
    if odd := [name for name in runs if not name.rpartition("-")[2].isdecimal()]:
        raise InputError(f"{study / odd[0]} is not called ARM-SEED", "name the folder of a study")
    outcomes = _read(study / OUTCOMES).get("runs", [])
    scores: dict[str, Scores] = {}
    for folder in evaluations:
        for run, found in _scores(folder, data):
            scores[run] = _merged(scores.get(run, {}), found)
    of_base = scores.pop(BARE, {})
    if odd := sorted(scores.keys() - runs.keys()):
        raise InputError(f"{odd[0]} was evaluated and is not in {study}", "name the study that it is of")
    races = {name: race_of(name, run, outcomes, scores.get(name, {})) for name, run in runs.items()}
    kept = {name: to / f"{name}.json" for name in races}
    for name, race in races.items():
        before = _read(kept[name])
        if before and _recipe(before) != _recipe(race):
            raise InputError(f"{kept[name]} is of a race with other settings", "name another folder with --to")
        race["benchmarks"] = _merged(before.get("benchmarks", {}), race["benchmarks"])
    of_base = _merged(_read(to / BASE_FILE), of_base)
    to.mkdir(parents=True, exist_ok=True)
    (to / BASE_FILE).write_text(json.dumps(of_base, indent=1) + "\n")
    for name, race in races.items():
        kept[name].write_text(json.dumps(race, indent=1) + "\n")
        print(f"{kept[name]}: {race['steps']} steps, {', '.join(race['benchmarks']) or 'no benchmarks'}")


def _recipe(race: Mapping[str, Any]) -> dict[str, Any]:
    """What two looks at one race have in common: it may have gone on."""
    settings = {key: value for key, value in race["settings"].items() if not key.startswith("run.")}
    # As files have it.
    return json.loads(json.dumps({"base": race["base"], **settings}))


def _read(file: Path) -> dict[str, Any]:
    """Empty where there is none."""
    try:
        found = json.loads(file.read_text()) if file.is_file() else {}
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{file} is not whole", "remove it, or restore it from a copy")
    return found


def _merged(before: Scores, now: Scores) -> Scores:
    """Both: of the base's answers, and of a member's at a step, whichever has more of them."""
    merged = {**before, **now}
    for name in before.keys() & now.keys():
        old, new = before[name], now[name]
        if (old["sha256"], old["max_tokens"]) != (new["sha256"], new["max_tokens"]):
            what = f"{name} was asked of another file or with another longest answer before"
            raise InputError(what, "name another folder with --to")
        merged[name] = {**new, "base": min((new["base"], old["base"]), key=lambda digits: digits.count(UNANSWERED))}
        if "steps" in new:
            steps = {step: dict(members) for step, members in old["steps"].items()}
            for step, members in new["steps"].items():
                own = steps.setdefault(step, {})
                for member, found in members.items():
                    both = (found, own.get(member, found))
                    own[member] = min(both, key=lambda one: one["right"].count(UNANSWERED))
            merged[name]["steps"] = steps
    return merged


def race_of(name: str, run: Path, outcomes: Sequence[Mapping[str, Any]], scores: Scores) -> dict[str, Any]:
    """What there is to keep of a race; of benchmarks, what those found who solve tasks."""
    folder, _, seed = name.rpartition("-")
    arm, settings = unquote_plus(folder), load_run(run / CONFIG)
    with Store.read(run) as store:
        steps = store.last_step()
        curves: dict[str, dict[int, float | None]] = {}
        for metric, subject in CURVES:
            measured = series(store, metric, subject)
            points = range(EVERY, steps + 1, EVERY)
            curves[f"{metric.name} {subject}"] = {at: measured.mean(range(at - EVERY + 1, at + 1)) for at in points}
        students = {id for id, role in store.players().items() if role is Role.STUDENT}
        solvers = {SOLO} if settings.population.single else students
        drifted = [own.steps for id, own in by_subject(store, ELSEWHERE).items() if id in solvers]
        looks = sorted({at for own in drifted for at in own})
        curves[ELSEWHERE.name] = {at: fmean(own[at][0] for own in drifted if at in own) for at in looks}
        backs = [[alarm.step, alarm.subject, alarm.says] for alarm in store.alarms() if alarm.measure == ELSEWHERE.name]
        figures = race_figures(store, settings)
    found = {of: {**own, "steps": _solved(own["steps"], solvers)} for of, own in scores.items()}
    if late := [step for own in found.values() for step in own["steps"] if int(step) > steps]:
        raise InputError(f"{run} has no step {late[0]}, which was evaluated", "name the study that was evaluated")
    examined = [own["figures"] for own in outcomes if (own["arm"], str(own["seed"])) == (arm, seed)]
    return {
        "arm": arm,
        "seed": int(seed),
        "base": Path(settings.engine.base).name,
        "steps": steps,
        "settings": {key: value for key, value in flat(settings).items() if not key.startswith(OF_THE_MACHINE)},
        "figures": {**figures, **(examined[0] if examined else {})},
        "curves": curves,
        "called_back": backs,
        "benchmarks": found,
    }


def _solved(steps: Mapping[str, Mapping[str, Any]], solvers: Collection[str]) -> dict[str, Any]:
    """Without teachers and soups, and steps that have nobody else."""
    own = {step: {id: one for id, one in members.items() if id in solvers} for step, members in steps.items()}
    return {step: members for step, members in own.items() if members}


def _scores(folder: Path, data: Path | None) -> Iterator[tuple[str, Scores]]:
    """By the race's name, what an evaluation found."""
    if not (folder / SETTINGS).is_file():
        raise InputError(f"{folder} holds no evaluation", "name a folder that `redqueen eval --to` wrote")
    how = json.loads((folder / SETTINGS).read_text())
    for name, asked in how["benchmarks"].items():
        loaded = loaded_as_asked(folder, name, data)
        greedy: defaultdict[str, dict[str, Answer]] = defaultdict(dict)
        for (who, item, attempt), answer in read_answers(folder, name).items():
            if attempt == GREEDY:
                greedy[who][item] = answer
        for part, items in with_subsets(loaded, how["prompts"]).items():
            about = {"max_tokens": asked["max_tokens"], "sha256": asked["sha256"]}
            about["base"] = _digits(greedy[BARE], items)
            yield BARE, {part: about}
            steps: defaultdict[str, defaultdict[str, dict[str, Any]]] = defaultdict(lambda: defaultdict(dict))
            paths: dict[str, str] = {}
            for who in sorted(greedy.keys() - {BARE}):
                what, _, member = who.rpartition("/")
                run, _, step = what.rpartition(":")
                if not (run and step.isdecimal()):
                    raise InputError(f"{folder} does not say of which step {who} is", "evaluate with --every")
                if paths.setdefault(Path(run).name, run) != run:
                    raise InputError(f"{folder} has two runs that are called {Path(run).name}", "evaluate them apart")
                own = {item: greedy[who][item] for item in items if item in greedy[who]}
                tokens = round(fmean(answer.tokens for answer in own.values()), 1) if own else 0.0
                steps[Path(run).name][step][member] = {"right": _digits(own, items), "tokens": tokens}
            for run, by_step in steps.items():
                yield run, {part: {**about, "steps": dict(by_step)}}


def loaded_as_asked(folder: Path, name: str, data: Path | None) -> LoadedBenchmark:
    """The benchmark whose answers are in the folder of an evaluation; another file of it is refused."""
    how = json.loads((folder / SETTINGS).read_text())
    [benchmark] = chosen([name], Prompts(how["prompts"]))
    loaded = find(benchmark, data)
    if loaded.sha256 != how["benchmarks"][name]["sha256"]:
        what = f"{folder} was asked another file of {name} than {loaded.origin}"
        raise InputError(what, "name the folder of the one that it was asked with --data")
    return loaded


def with_subsets(loaded: LoadedBenchmark, prompts: str) -> dict[str, list[str]]:
    """A benchmark's tasks, and those of each of its subsets."""
    name = loaded.name if prompts == Prompts.CHAT else f"{loaded.name} {prompts}"
    parts = {name: [item.id for item in loaded.items]}
    with LocalVerifier() as verifier:
        subsets = asyncio.run(find_subsets(loaded, verifier))
    for subset in dict.fromkeys(subsets):
        own = [item.id for item, of in zip(loaded.items, subsets, strict=True) if of == subset]
        parts[f"{name}, {subset}"] = own
    return parts


def _digits(answers: Mapping[str, Answer], items: Sequence[str]) -> str:
    return "".join(str(int(answers[item].correct)) if item in answers else UNANSWERED for item in items)


# What is shown


def kept_races(data: Path) -> tuple[list[dict[str, Any]], Scores]:
    """The races, and what the base answered."""
    files = {file.name: _read(file) for file in sorted(data.glob("*.json"))}
    of_base = files.pop(BASE_FILE, {})
    races = list(files.values())
    if not races:
        raise InputError(f"{data} has no races", "write some with `keep`")
    if odd := [name for name, race in files.items() if not race.keys() >= KEPT]:
        raise InputError(f"{data / odd[0]} is no race", "remove it")
    _refuse_mixes([of_base, *(race["benchmarks"] for race in races)])
    return races, of_base


def by_arm(races: Sequence[Mapping[str, Any]], first: str) -> dict[str, dict[int, Any]]:
    """By seed, with one arm before the others."""
    arms: dict[str, dict[int, Any]] = {}
    for race in sorted(races, key=lambda race: (race["arm"] != first, race["arm"], race["seed"])):
        arms.setdefault(race["arm"], {})[race["seed"]] = race
    return arms


def show(data: Path, step: int | None, against: str | None) -> None:
    races, of_base = kept_races(data)
    if against is not None and against not in {race["arm"] for race in races}:
        raise InputError(f"{data} has no arm {against}", f"name one of {', '.join({race['arm']: 0 for race in races})}")
    steps = sorted({int(at) for race in races for found in race["benchmarks"].values() for at in found["steps"]})
    if step is not None and step not in steps:
        raise InputError(f"nothing was evaluated at step {step}", f"name one of {', '.join(map(str, steps)) or 'none'}")
    against = against or USUAL
    arms = by_arm(races, against)
    _show_costs(arms)
    for benchmark in dict.fromkeys(name for race in races for name in race["benchmarks"]):
        _show_benchmark(benchmark, arms, step, against, _best(benchmark, of_base))


def _refuse_mixes(of_all: Sequence[Scores]) -> None:
    asked: dict[str, tuple[str, int]] = {}
    for scores in of_all:
        for name, found in scores.items():
            how = found["sha256"], found["max_tokens"]
            if asked.setdefault(name, how) != how:
                what = f"{name} was asked of two files, or with two longest answers"
                raise InputError(what, "keep races in folders of their own by how they were asked")


def _show_costs(arms: Mapping[str, Mapping[int, Any]]) -> None:
    print("A race's mean\n")
    _table("arm", "seeds", "steps", *(metric.title for metric in COMPUTE), "called back, times")
    for arm, runs in arms.items():
        races = runs.values()
        steps = sorted({race["steps"] for race in races})
        spent = (count_text(fmean(race["figures"].get(metric.title, 0) for race in races)) for metric in COMPUTE)
        backs = fmean(len({at for at, *_ in race["called_back"]}) for race in races)
        _row(arm, ", ".join(map(str, runs)), ", ".join(map(str, steps)), *spent, f"{backs:.1f}")


def _show_benchmark(
    benchmark: str, arms: Mapping[str, Mapping[int, Any]], step: int | None, against: str, best: tuple[str, str]
) -> None:
    gains = {
        arm: by_step
        for arm, runs in arms.items()
        if (by_step := {at: gains_of(runs, benchmark, at) for at in _steps(runs, benchmark)})
    }
    steps = sorted({at for by_step in gains.values() for at in by_step})
    print(f"\n### {benchmark}\n\nGreedy, less the base, in points, by step; ± over seeds\n")
    _table("arm", *steps)
    for arm, by_step in gains.items():
        most = max(map(len, by_step.values()))
        _row(arm, *(_over_seeds([gain.mean() for gain in by_step.get(at, {}).values()], most) for at in steps))
    cut = [
        f"{arm} {seed} at step {at}"
        for arm, runs in arms.items()
        for at in _steps(runs, benchmark)
        for seed, race in runs.items()
        if str(at) in race["benchmarks"].get(benchmark, {"steps": {}})["steps"] and seed not in gains[arm][at]
    ]
    if cut:
        print(f"\nLeft out, since answers are missing: {', '.join(cut)}.")
    whole = [by_step for by_step in gains.values() if any(by_step.values())]
    seeds = [max(map(len, by_step.values())) for by_step in whole]
    common = [
        at
        for at in steps
        if whole and all(len(own.get(at, ())) == most for own, most in zip(whole, seeds, strict=True))
    ]
    step = step or max(common, default=None)
    if step is None:
        print("\nNo step that all races have been asked all of it at: name one with --step.")
        return
    name, digits = best
    other = "its best prompts"
    if name != benchmark:
        other = f"less the base at `{name}`, {100 * _right(digits).mean():.1f}"
    print(f"\nAt step {step}, in %; [ ] over tasks\n")
    _table("arm", "seeds", "students", "base", "less the base", "seed by seed", other, "weakest, best", "tokens")
    for arm, by_step in gains.items():
        if own := by_step.get(step):
            found = [arms[arm][seed]["benchmarks"][benchmark] for seed in own]
            _row(arm, ", ".join(map(str, own)), *_line(found, step, list(own.values()), digits))
    first = gains.get(against, {}).get(step, {})
    others = {arm: sorted(by_step.get(step, {}).keys() & first.keys()) for arm, by_step in gains.items()}
    others = {arm: seeds for arm, seeds in others.items() if arm != against and seeds}
    if others:
        print(f"\nLess {against}, seed by seed\n")
        _table("arm", "seeds", "points", "over tasks", "seeds that would tell")
    for arm, seeds in others.items():
        more = [gains[arm][step][seed] - first[seed] for seed in seeds]
        means = [float(one.mean()) for one in more]
        enough = _enough(means)
        _row(arm, ", ".join(map(str, seeds)), _over_seeds(means), _over_tasks(more), enough)


def _steps(runs: Mapping[int, Any], benchmark: str) -> list[int]:
    found = (race["benchmarks"].get(benchmark, {"steps": {}}) for race in runs.values())
    return sorted({int(step) for one in found for step in one["steps"]})


def gains_of(runs: Mapping[int, Any], benchmark: str, step: int) -> dict[int, Vector]:
    """By seed, in points and task by task, the mean of those who solve less the base; of whole evaluations alone."""
    gains = {}
    for seed, race in runs.items():
        found = race["benchmarks"].get(benchmark, {"base": "", "steps": {}})
        texts = [member["right"] for member in found["steps"].get(str(step), {}).values()]
        if texts and UNANSWERED not in "".join([found["base"], *texts]):
            gains[seed] = 100 * (np.mean([_right(text) for text in texts], axis=0) - _right(found["base"]))
    return gains


def _line(found: Sequence[Any], step: int, gains: Sequence[Vector], best: str) -> Iterator[str]:
    members = [list(one["steps"][str(step)].values()) for one in found]
    shares = [[100 * _right(member["right"]).mean() for member in own] for own in members]
    yield f"{fmean(map(fmean, shares)):.1f}"
    yield f"{fmean(100 * _right(one['base']).mean() for one in found):.1f}"
    yield f"{_over_seeds([gain.mean() for gain in gains])} {_over_tasks(gains)}"
    yield ", ".join(f"{gain.mean():+.1f}" for gain in gains)
    if best:
        more = [gain + 100 * (_right(one["base"]) - _right(best)) for gain, one in zip(gains, found, strict=True)]
        yield f"{_over_seeds([gain.mean() for gain in more])} {_over_tasks(more)}"
    else:
        yield "-"
    yield f"{min(map(min, shares)):.1f}, {max(map(max, shares)):.1f}"
    yield f"{fmean(member['tokens'] for own in members for member in own):.0f}"


def _best(benchmark: str, of_base: Mapping[str, Any]) -> tuple[str, str]:
    """The same tasks in the prompts that the base does best in, and its digits."""
    asked = {
        name: found["base"]
        for name, found in of_base.items()
        if _tasks(name) == _tasks(benchmark) and UNANSWERED not in found["base"]
    }
    return max(asked.items(), key=lambda each: (each[1].count("1"), each[0] == benchmark), default=(benchmark, ""))


def _tasks(benchmark: str) -> tuple[str, str]:
    """What is asked, whatever the prompts: the name without its form, and the subset."""
    name, _, subset = benchmark.partition(", ")
    name = name.removesuffix(f" {Prompts.RAW}")
    return next((name.removesuffix(form) for form in FORMS if name.endswith(form)), name), subset


def _enough(means: Sequence[float]) -> object:
    """Seeds that would show a difference of this size."""
    if len(means) < 2:
        return "-"
    difference = fmean(means)
    return (seeds_to_tell(difference, stdev(means)) or "1,000 or more") if difference else "no difference"


def _right(text: str) -> Vector:
    return np.array([digit == "1" for digit in text], np.float64)


def _over_seeds(points: Sequence[float], seeds: int | None = None) -> str:
    """With how many seeds it is of, where there should be more."""
    told = estimate([float(value) for value in points])
    if told is None:
        return "-"
    fewer = f" ({len(points)} of {seeds})" if seeds is not None and len(points) < seeds else ""
    return f"{told.mean:+.1f}" + ("" if told.half is None else f" ± {told.half:.1f}") + fewer


def _over_tasks(gains: Sequence[Vector]) -> str:
    interval = paired(np.mean(gains, axis=0))
    if interval.low is None or interval.high is None:
        return "of one task"
    return f"[{interval.low:+.1f}, {interval.high:+.1f}]"


def _table(*heads: object) -> None:
    _row(*heads)
    _row(*["---"] * len(heads))


def _row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    keeping = commands.add_parser("keep", help="write a small file for each race of a study")
    keeping.add_argument("study", type=Path)
    keeping.add_argument("evaluations", type=Path, nargs="*", help="what `redqueen eval --every N --to` wrote")
    keeping.add_argument("--to", type=Path, required=True, metavar="DATA")
    keeping.add_argument("--data", type=Path, metavar="BENCHMARKS", help="as for `redqueen eval`")
    showing = commands.add_parser("show", help="print the tables of all races that were kept")
    showing.add_argument("data", type=Path)
    showing.add_argument("--step", type=int, help="of the tables; by default the last that all arms have")
    showing.add_argument("--against", metavar="ARM", help=f"that the others are compared with; by default {USUAL}")
    asked = parser.parse_args()
    try:
        if asked.command == "keep":
            keep(asked.study, asked.evaluations, asked.to, asked.data)
        else:
            show(asked.data, asked.step, asked.against)
    except UserError as error:
        print(f"parts.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
