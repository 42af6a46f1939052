"""The scientific check (tools/race.py): races that share an engine, and the arithmetic of what they came to."""

import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import race
import torch
from chains import uniform_test
from loop.making import settings
from race import Study, main, study
from runs.making import quick_folder
from study import plots, races
from study import sitting as study_sitting
from study.gains import gains
from study.gains import markdown as gains_markdown
from study.outcomes import Outcome, growth, less, markdown, of_arms, slope
from study.races import Heard, Progress
from study.sitting import Examinee, Sitting, chosen, exam_figures
from study.sweep import Swept, best, sweep

from redqueen.analysis.intervals import student_t
from redqueen.analysis.quarters import Series
from redqueen.analysis.resampling import Interval
from redqueen.commands.main import main as redqueen
from redqueen.errors import InputError
from redqueen.evals.figures import Tally
from redqueen.phases.view import Quiet
from redqueen.resources import open_engine
from redqueen.runs import checkpoints
from redqueen.runs.run import CHECKPOINTS, REPORT
from redqueen.settings import dump, load
from redqueen.training import train as training

TABLES = ("matches", "tasks", "rejections", "attempts", "events")
STEPS = 2


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with quick_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def asked(place) -> Study:
    """Two arms of two seeds, with children after each step and steps that show at the exam, which has all bands."""
    changes = {"run": {"steps": STEPS, "measure_every": 2}, "evolution": {"every": 1}, "rl": {"lr": 1e-2}}
    (place / "settings.toml").write_text(dump(settings(changes=changes)))
    bands = ["1", "1", "2", "2", "5", "5", "pairs", "pairs"]
    chains = [chain.task for chain in uniform_test(2)[-len(bands) :]]
    rows = [
        {"kind": "code_o", "program": task.program, "input": task.inputs[0], "band": band}
        for task, band in zip(chains, bands, strict=True)
    ]
    (place / "exam.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Study(
        to=place / "study",
        source=str(place / "settings.toml"),
        arms=("population", "single"),
        seeds=2,
        attempts=2,
        exam=place / "exam.jsonl",
    )


@pytest.fixture(scope="module")
def found(asked) -> race.Found:
    ended = study(asked)
    assert ended is not None
    return ended


def records(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(folder / "records.sqlite")) as db:
        return {name: db.execute(f"SELECT * FROM {name} ORDER BY 1, 2, 3, 4").fetchall() for name in TABLES}


def members(folder: Path, step: int = STEPS) -> dict[str, dict[str, tuple[torch.Tensor, torch.Tensor]]]:
    loaded = checkpoints.load(folder / CHECKPOINTS / checkpoints.name(step))
    return {id: state.factors for id, state in loaded.members.items()}


def opened(monkeypatch) -> list[list[str]]:
    """The members of each engine that a study opens from now on."""
    calls: list[list[str]] = []

    def listen(engine, members, *more, **options):
        calls.append(list(members))
        return open_engine(engine, members, *more, **options)

    monkeypatch.setattr(races, "open_engine", listen)
    return calls


# Races on one engine


@pytest.mark.parametrize(("arm", "seed"), [("population", 1), ("single", 0)])
def test_a_race_of_a_study_is_what_it_is_alone(asked, found, place, arm, seed):
    name = f"{arm}-{seed}"
    training.train(asked.settings(arm, seed), place / "alone" / name, Quiet())
    ours, alone = asked.to / name, place / "alone" / name
    assert load(str(ours / "config.toml")) == load(str(alone / "config.toml"))
    assert records(ours) == records(alone)
    assert bool(records(ours)["events"]) == (arm == "population")
    theirs = members(alone)
    for id, factors in members(ours).items():
        for module, pair in factors.items():
            for mine, its in zip(pair, theirs[id][module], strict=True):
                assert torch.allclose(mine, its, rtol=1e-3, atol=1e-6), "A factors come from the race's own seed"


def test_races_shared_out_among_processes_are_the_same_races(asked, found, place):
    shared = study(replace(asked, to=place / "shared", jobs=2))
    assert shared is not None
    for entry in shared.entries:
        assert records(entry.folder) == records(asked.to / entry.name)
    assert shared.base == found.base
    assert [each.figures["exam 1-4, sampled"] for each in shared.outcomes] == [
        each.figures["exam 1-4, sampled"] for each in found.outcomes
    ]


def test_races_of_two_seeds_begin_with_other_members(asked, found):
    one, other = (next(iter(members(asked.to / f"single-{seed}")["solo"].values()))[0] for seed in (0, 1))
    # Two steps move a weight by 2e-2 at most.
    assert float((one - other).abs().mean()) > 4e-2


def test_the_runs_are_ordinary_ones(asked, found, capsys):
    folders = [str(entry.folder) for entry in found.entries]
    assert redqueen(["compare", *folders, "--json"]) == 0
    arms = json.loads(capsys.readouterr().out)["arms"]
    assert [(arm["name"], arm["seeds"]) for arm in arms] == [("population", [0, 1]), ("single", [0, 1])]
    assert redqueen(["tasks", folders[0]]) == 0
    assert all((entry.folder / REPORT).is_file() for entry in found.entries)


def test_everything_measured_is_written_down_for_every_run(asked, found):
    written = json.loads((asked.to / "outcomes.json").read_text())
    assert [(run["arm"], run["seed"]) for run in written["runs"]] == [
        ("population", 0), ("population", 1), ("single", 0), ("single", 1)
    ]  # fmt: skip
    for arm, parts in found.less_base.items():
        assert written["less_base"][arm]["1-4"]["gain"]["sampled"]["value"] == parts["1-4"].gain.sampled.value
    for run in written["runs"]:
        assert {"exam 1-4, sampled", "exam 5, sampled", "exam pairs, pass@2", "lines, a slope", "verifier runs",
                "coverage, growth in the last quarter", "solve rate, first quarter",
                "entropy of students, last quarter"} <= run["figures"].keys()  # fmt: skip
    assert written["exam"]["places"] == "odd" and written["exam"]["tasks"] == 4
    table = markdown(found.outcomes, found.base, asked.attempts)
    assert "| population (2 seeds) | single (2 seeds) |" in table and "population less single" in table


def test_a_finished_study_is_not_run_again(asked, found, monkeypatch):
    calls = opened(monkeypatch)
    assert study(asked) == found
    assert not calls


def test_what_is_missing_is_run_and_examined_and_nothing_else(asked, found, monkeypatch):
    calls = opened(monkeypatch)
    more = study(replace(asked, seeds=2, first_seed=1, arms=("single",)))
    assert more is not None and [each.seed for each in more.outcomes] == [1, 2]
    assert calls == [["single-2/solo"]]
    assert more.outcomes[0] == found.outcomes[3]


def test_a_study_that_is_stopped_goes_on_from_its_checkpoints(asked, found, place, monkeypatch):
    again = replace(asked, to=place / "again", arms=("population",), seeds=1)

    @contextmanager
    def soon(_: object) -> Iterator[Callable[[], bool]]:
        # A step asks three times whether it shall stop: the first one is done.
        asks = iter(range(100))
        yield lambda: next(asks) >= 3

    with monkeypatch.context() as patch:
        patch.setattr(races, "heeding_signals", soon)
        assert study(again) is None
    assert not (again.to / "exam").exists()
    assert checkpoints.steps(again.to / "population-0" / CHECKPOINTS) == [1]
    assert study(again) is not None
    assert records(again.to / "population-0") == records(asked.to / "population-0")


def test_a_race_that_has_gone_further_is_refused(asked, found):
    with pytest.raises(InputError, match="is at step 2, and 1 are asked for"):
        study(replace(asked, steps=1))


def test_a_mistake_that_a_process_finds_is_told_by_the_study(asked, found):
    with pytest.raises(InputError, match="is at step 2, and 1 are asked for") as refused:
        study(replace(asked, steps=1, jobs=2))
    assert refused.value.mend


def test_processes_that_are_told_to_stop_save_and_the_study_goes_on(asked, found, place):
    to = place / "told"
    asking = f"""
from pathlib import Path
import race
made = race.Study(
    to=Path({str(to)!r}), source={asked.source!r}, arms=("population", "single"), seeds=1, steps=40, attempts=1,
    exam=Path({str(asked.exam)!r}), jobs=2,
)
print(race.study(made))
"""
    paths = os.pathsep.join(path for path in sys.path if path)
    told = subprocess.Popen(
        [sys.executable, "-c", asking], env=os.environ | {"PYTHONPATH": paths}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert told.stderr is not None
    for line in told.stderr:
        # The race of the population: the other may be over by then, or not yet.
        if "job 1 of 2: " in line and " of 40 steps" in line and not line.startswith("race: job 1 of 2: 0 "):
            told.send_signal(signal.SIGTERM)
            break
    out, err = told.communicate()
    assert (told.returncode, out) == (0, "None\n"), err
    assert "job 1 of 2: stopping" in err
    [saved] = checkpoints.steps(to / "population-0" / CHECKPOINTS)[-1:]
    assert 0 < saved < 40


def test_trackers_are_refused(asked):
    with pytest.raises(InputError, match="no tracker"):
        study(replace(asked, overrides=[("track.to", "wandb")]))


def test_a_mistake_is_one_line(place, capsys):
    for words, complaint in (
        (["--settings", "nothing.toml"], "race: there is no settings file"),
        (["--seeds", "0"], "race: a study needs seeds"),
        (["--first-seed", "996"], "race: seeds from 1000 on are the sweep's; use seeds from 0 to 999"),
        (["--jobs", "0"], "race: a study needs seeds, attempts and jobs"),
        (["--arms", "single", "single"], "race: an arm or a learning rate is named twice"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(["--to", str(place / "none"), *words])
        error = capsys.readouterr().err
        assert stop.value.code == 2 and error.startswith(complaint) and error.count("\n") == 1


def test_how_far_all_races_are_is_said_a_few_times(found, capsys):
    progress = Progress(found.entries)
    for entry in found.entries:
        Heard(entry.name, progress).started({}, 1, STEPS, ["a note"])
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == f"race: {found.entries[-1].name}: a note"
    assert sum("of 8 steps, " in line for line in lines) == 4


# The exam


def test_learning_rates_and_results_are_of_different_tasks():
    bands = ["1", "1", "5", "pairs", "4", "4", "1", "5", "2"]
    assert chosen(bands, "odd") == [1, 3, 5, 7]
    assert chosen(bands, "even") == [0, 4, 6, 8]


def answers(correct: Sequence[int], attempts: int = 2) -> Tally:
    size = len(correct)
    return Tally(attempts, tuple(correct), tuple(each > 1 for each in correct), (attempts,) * size, (8,) * size)


def test_only_odd_places_count(asked, found):
    """The exam's bands are 1 1 2 2 5 5 pairs pairs: of each pair the second is the study's."""
    sitting = asked.sitting()
    assert sitting.places == [1, 3, 5, 7]
    parts = sitting.parts()
    assert parts == {"1-4": [0, 1], "5": [2], "pairs": [3], "1-4 code_o": [0, 1]}
    figures = exam_figures([answers([2, 1, 0, 0]), answers([0, 1, 2, 0])], parts, 2)
    assert figures["exam 1-4, sampled"] == pytest.approx(0.5)
    assert figures["exam 1-4, greedy"] == pytest.approx(0.25)
    assert figures["exam 1-4, pass@2"] == pytest.approx(0.75)
    assert (figures["exam 1-4, weakest"], figures["exam 1-4, best"]) == (0.25, 0.75)
    assert (figures["exam 5, sampled"], figures["exam pairs, sampled"]) == (0.5, 0)
    files = [json.loads(file.read_text()) for file in (asked.to / "exam").iterdir()]
    assert {len(each["answered"]["answers"]["correct"]) for each in files} == {4}


def test_what_students_have_on_the_base_is_counted_task_by_task(asked, found):
    parts = {"all": [0, 1, 2, 3], "first": [0]}
    base = answers([0, 1, 0, 0])
    own = gains({"a": [answers([2, 1, 0, 0]), answers([0, 1, 2, 0])], "b": [base]}, base, parts)
    assert own["a"]["all"].gain.sampled.value == pytest.approx(0.25)
    assert (own["a"]["all"].tasks, own["a"]["all"].base.sampled, own["a"]["all"].arm.sampled) == (4, 0.125, 0.375)
    assert own["a"]["first"].gain.greedy.value == pytest.approx(0.5)
    low, high = own["a"]["all"].gain.sampled.low, own["a"]["all"].gain.sampled.high
    assert low is not None and high is not None and low == 0 < high
    assert own["b"]["all"].gain.sampled == Interval(0, 0, 0)
    table = gains_markdown(own, 2)
    assert "| all | 4 | 12.5 | 37.5 | +25.0 [+0.0, +50.0] |" in table
    assert asked.sitting().by_band() == {"1 code_o": [0], "2 code_o": [1], "5 code_o": [2], "pairs code_o": [3]}
    arm = asked.arms[0]
    mean = found.less_base[arm]["1-4"]
    assert mean.gain.sampled.value == pytest.approx(mean.arm.sampled - mean.base.sampled)
    assert mean.base.sampled == pytest.approx(found.base["exam 1-4, sampled"])


def test_a_study_examines_the_students_of_a_run_as_the_product_does(asked, found, tmp_path, capsys):
    """With an exam that is the odd places alone."""
    rows = asked.exam.read_text().splitlines(keepends=True)
    (tmp_path / "odd.jsonl").write_text("".join(rows[1::2]))
    how = ["--tasks", str(tmp_path / "odd.jsonl"), "--attempts", "2", "--engine.device", "cpu", "--json"]
    assert redqueen(["exam", str(asked.to / "population-1"), *how]) == 0
    base, *students, mean = json.loads(capsys.readouterr().out)["examinees"]
    assert [each["name"] for each in students] == [each.who.member for each in found_of(asked, "population-1")]
    ours = next(each.figures for each in found.outcomes if (each.arm, each.seed) == ("population", 1))
    for row, figures in ((base, found.base), (mean, ours)):
        for part in row["parts"]:
            if part["band"] in ("5", "pairs") and part["kind"] is None:
                for name in ("sampled", "greedy", "tokens"):
                    assert figures[f"exam {part['band']}, {name}"] == pytest.approx(part[name])
    assert any(ours[name] != value for name, value in found.base.items()), "who has learned is not the base"


def found_of(asked: Study, name: str) -> list[races.Answered]:
    return [each for who, each in asked.sitting().known().items() if who.race == name]


def test_an_exam_that_was_killed_goes_on_after_those_who_were_done(asked, found, monkeypatch, tmp_path):
    """Two at a time, killed before the last ones."""
    sitting = replace(asked.sitting(), kept=tmp_path / "exam")
    whole = asked.sitting().known()
    asks: list[list[str]] = []

    async def examine(engine, verifier, examinees, tasks, **how):
        if len(asks) == 2:
            raise KeyboardInterrupt
        asks.append(list(examinees))
        return {each.name: whole[each].answers for each in whole if each.name in examinees}

    async def no_tasks(*_: object) -> list[object]:
        return []

    monkeypatch.setattr(study_sitting, "examine", examine)
    monkeypatch.setattr(study_sitting, "AT_A_TIME", 2)
    monkeypatch.setattr(Sitting, "_tasks", no_tasks)
    with pytest.raises(KeyboardInterrupt):
        sitting.hold(None, None, list(whole)[:5])
    assert [name for some in asks for name in some] == [each.name for each in list(whole)[:4]]
    assert sitting.known() == {each: whole[each] for each in list(whole)[:4]}


def test_answers_to_another_exam_are_not_taken_for_these(asked, found):
    sitting = asked.sitting()
    assert Examinee("population-0", STEPS, "nobody") not in sitting.known()
    assert Examinee("single-0", STEPS, "solo") in sitting.known()
    assert not Sitting(sitting.exam, "odd", sitting.kept, sitting.settings, attempts=3).known()


def test_an_exam_without_the_main_bands_is_refused(asked, tmp_path):
    (tmp_path / "exam.jsonl").write_text((asked.exam.read_text()).replace('"1"', '"low"').replace('"2"', '"low"'))
    with pytest.raises(InputError, match="no task in the bands"):
        Sitting(tmp_path / "exam.jsonl", "odd", tmp_path / "kept", asked.settings("single", 0), 2).parts()


# The sweep


def test_the_best_rate_of_an_arm_is_that_of_the_best_mean_over_seeds():
    swept = [
        Swept("single", 1e-3, 1000, 0.9), Swept("single", 1e-3, 1001, 0.1),
        Swept("single", 3e-3, 1000, 0.6), Swept("single", 3e-3, 1001, 0.6),
        Swept("1t1s", 3e-3, 1000, 0.4), Swept("1t1s", 1e-3, 1000, 0.4),
    ]  # fmt: skip
    assert best(swept) == {"single": 3e-3, "1t1s": 1e-3}


def test_a_sweep_is_by_the_even_places_with_seeds_and_rates_of_its_own(asked, found, monkeypatch, place):
    calls: list[tuple[list[str], str, list[int]]] = []
    won = {"single-lr0.001-1000": [0, 2], "single-lr0.003-1000": [2, 2]}

    def hold(entries, sitting, jobs):
        calls.append(([entry.name for entry in entries], sitting.half, sitting.places))
        assert [entry.settings.rl.lr for entry in entries] == [1e-3, 3e-3]
        assert {entry.settings.run.seed for entry in entries} == {1000}
        return [races.Answered(Examinee(name, STEPS, "solo"), answers(correct)) for name, correct in won.items()]

    monkeypatch.setattr("study.sweep.hold", hold)
    rates = sweep(asked.settings, ["single"], [1e-3, 3e-3], 1, place / "swept", asked.sitting())
    assert rates == {"single": 3e-3}
    assert calls == [(list(won), "even", [0, 2])]
    written = json.loads((place / "swept" / "sweep.json").read_text())
    assert [each["sampled"] for each in written["races"]] == [0.5, 1.0] and written["best"] == {"single": 3e-3}


def test_the_races_of_a_study_have_the_rates_of_the_sweep(asked, monkeypatch, place):
    monkeypatch.setattr(race, "sweep", lambda *_: {"population": 3e-3, "single": 3e-4})
    entries: list[races.Entry] = []
    monkeypatch.setattr(race, "hold", lambda given, *_: entries.extend(given))
    assert study(replace(asked, to=place / "rates", rates=(3e-4, 3e-3), seeds=1)) is None
    assert [(each.arm, each.settings.rl.lr) for each in entries] == [("population", 3e-3), ("single", 3e-4)]


# Figures


def test_a_slope_is_that_of_least_squares_for_ten_steps():
    assert slope(Series({1: (1, 1), 2: (2, 1), 3: (3, 1)})) == pytest.approx(10)
    # By hand: the steps' mean is 3, the values' 2, (-2 * -2 + 0 + 2 * 1) / 8; sums are divided first.
    assert slope(Series({1: (0, 1), 3: (6, 2), 5: (9, 3)})) == pytest.approx(10 * 6 / 8)
    assert slope(Series({4: (1, 1)})) is None


def test_growth_is_from_the_step_before_the_quarter_to_its_end():
    cells = Series({1: (5, 1), 2: (7, 1), 3: (7, 1), 4: (12, 1)})
    assert growth(cells, range(3, 5)) == 5
    assert growth(cells, range(1, 2)) == 5
    assert growth(Series({}), range(1, 2)) is None


def figured(arm: str, seed: int, value: float) -> Outcome:
    return Outcome(arm, seed, 1e-3, STEPS, 1, {"lines, a slope": value})


def test_means_and_differences_have_their_intervals_over_seeds():
    outcomes = [figured("population", 0, 3), figured("population", 1, 5), figured("single", 1, 1)]
    outcomes += [figured("single", 0, 1), figured("single", 2, 100)]
    mean = of_arms(outcomes)["population"]["lines, a slope"]
    assert (mean.mean, mean.half) == (4, pytest.approx(student_t(1) * 1))
    paired = less(outcomes, "population", "single")["lines, a slope"]
    assert paired.values == (2, 4), "seed by seed; a seed that one arm lacks is left out"
    assert (paired.mean, paired.half) == (3, pytest.approx(student_t(1) * 1))
    table = markdown(outcomes, {}, 8)
    assert "| lines, a slope | - | 4.000 ±12.706 | 34.0 ±142.0 |" in table
    assert table.count("| lines, a slope | 3.000 ±12.706 |") == 1
    assert table.count("| lines, a slope | -3.000 ±12.706 |") == 1


# Pictures


def test_a_band_is_the_mean_of_the_runs_and_its_interval():
    steps, middle, low, high = plots.band([Series({1: (1, 1), 2: (4, 2)}), Series({1: (3, 1)})], 9)
    assert (steps, middle) == ([1, 2], [2, 2])
    assert (low[0], high[0]) == (1, 3)
    assert (low[1], high[1]) == (2, 2)
    _, _, low, high = plots.band([Series({1: (value, 1)}) for value in (1, 2, 3)], 9)
    half = student_t(2) / math.sqrt(3)
    assert (low[0], high[0]) == (0, pytest.approx(2 + half)), "nothing that is drawn is below 0"
    _, _, low, high = plots.band([Series({1: (value, 1)}) for value in (11, 12, 13)], 13)
    assert (low[0], high[0]) == (pytest.approx(12 - half), 13)


def test_pictures_are_small_and_the_same_every_time(found, tmp_path):
    pytest.importorskip("matplotlib")
    drawn = [plots.draw(found.entries, found.outcomes, found.base, tmp_path / name) for name in ("one", "two")]
    assert [path.name for path in drawn[0]] == ["exam.svg", "solve-rate.svg", "lines.svg", "coverage.svg"]
    for one, two in zip(*drawn, strict=True):
        assert one.read_bytes() == two.read_bytes()
        assert one.stat().st_size < 200_000
