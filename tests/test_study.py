"""`redqueen study`: races that share an engine, and the arithmetic of what they came to."""

import json
import math
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote_plus

import pytest
import torch
from chains import uniform_test
from loop.making import settings
from runs.making import quick_folder

from redqueen.analysis.card import card
from redqueen.analysis.compare import compare
from redqueen.analysis.intervals import student_t
from redqueen.analysis.quarters import Series
from redqueen.analysis.resampling import Interval
from redqueen.cluster.connect import open_members
from redqueen.commands import command as command_module
from redqueen.commands.main import main as redqueen
from redqueen.commands.study import arm_list
from redqueen.engine.protocol import MemberState
from redqueen.errors import InputError, Interrupted
from redqueen.evals.figures import Tally
from redqueen.phases.view import Quiet
from redqueen.runs import CHECKPOINTS, REPORT, checkpoints
from redqueen.runs.metrics import FLOPS, RACE
from redqueen.runs.run import Run
from redqueen.runs.store import Store
from redqueen.settings import dump, load, override
from redqueen.tasks.files import ExamTask, FileDraft
from redqueen.tasks.protocol import Task
from redqueen.training import arms, setup
from redqueen.training import train as training
from redqueen.training.study import design as study_design
from redqueen.training.study import exam as study_exam
from redqueen.training.study import plots, races
from redqueen.training.study import study as study_module
from redqueen.training.study import sweep as study_sweep
from redqueen.training.study.design import Design, StudyRace
from redqueen.training.study.exam import Examinee, exam_figures, places_of
from redqueen.training.study.outcomes import RaceOutcome, arm_means, differences, gains, growth, slope
from redqueen.training.study.races import RaceProgress, RaceView
from redqueen.training.study.study import StudyReport, run_study
from redqueen.training.study.sweep import SweepOutcome, best_rates, sweep
from redqueen.training.study.tables import arms_table, gains_table
from redqueen.training.train import Stopping

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
def design(place) -> Design:
    """Two arms of two seeds, with children after each step and steps that show at the exam, which has all bands."""
    changes = {"run": {"steps": STEPS, "measure_every": 2}, "evolution": {"every": 1}, "rl": {"lr": 1e-2}}
    shared = settings(changes=changes)
    (place / "settings.toml").write_text(dump(shared))
    bands = ["1", "1", "2", "2", "5", "5", "pairs", "pairs"]
    chains = [chain.task for chain in uniform_test(2)[-len(bands) :]]
    rows = [
        {"kind": "code_o", "program": task.program, "input": task.inputs[0], "band": band}
        for task, band in zip(chains, bands, strict=True)
    ]
    (place / "exam.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Design(
        folder=place / "study",
        settings=shared,
        arms=("population", "single"),
        seeds=2,
        attempts=2,
        exam_file=place / "exam.jsonl",
    )


@pytest.fixture(scope="module")
def result(design) -> StudyReport:
    ended = run_study(design)
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

    def listen(settings, members, *more, **options):
        calls.append(list(members))
        return open_members(settings, members, *more, **options)

    monkeypatch.setattr(setup, "open_members", listen)
    return calls


# Races on one engine


def test_a_race_from_before_a_setting_stays_the_race_that_it_was(design, tmp_path):
    study = replace(design, folder=tmp_path, settings=override(design.settings, {"guard.shortcuts": "refuse"}))
    older, *newer = study.races()
    Run.open(older.folder, dump(older.settings).replace('shortcuts = "refuse"\n', "")).close()
    assert [race.settings.guard.shortcuts for race in study.races()] == ["allow", *("refuse" for _ in newer)]


@pytest.mark.parametrize(("arm", "seed"), [("population", 1), ("single", 0)])
def test_a_race_of_a_study_is_what_it_is_alone(design, result, place, arm, seed):
    name = f"{arm}-{seed}"
    [of_study] = [race.settings for race in design.races() if race.name == name]
    training.train(of_study, place / "alone" / name, Quiet())
    ours, alone = design.folder / name, place / "alone" / name
    assert load(str(ours / "config.toml")) == load(str(alone / "config.toml"))
    assert records(ours) == records(alone)
    assert bool(records(ours)["events"]) == (arm == "population")
    theirs = members(alone)
    for id, factors in members(ours).items():
        for module, pair in factors.items():
            for mine, its in zip(pair, theirs[id][module], strict=True):
                assert torch.allclose(mine, its, rtol=1e-3, atol=1e-6), "A factors come from the race's own seed"


def test_races_shared_out_among_processes_are_the_same_races(design, result, place):
    shared = run_study(replace(design, folder=place / "shared", jobs=2))
    assert shared is not None
    for race in shared.races:
        assert records(race.folder) == records(design.folder / race.name)
    assert shared.base == result.base
    assert [each.figures["exam 1-4, sampled"] for each in shared.outcomes] == [
        each.figures["exam 1-4, sampled"] for each in result.outcomes
    ]


def test_races_of_two_seeds_begin_with_other_members(design, result):
    one, other = (next(iter(members(design.folder / f"single-{seed}")["solo"].values()))[0] for seed in (0, 1))
    # Two steps move a weight by 2e-2 at most.
    assert float((one - other).abs().mean()) > 4e-2


def test_the_runs_are_ordinary_ones(design, result, capsys):
    folders = [str(race.folder) for race in result.races]
    assert redqueen(["compare", *folders, "--json"]) == 0
    arms = json.loads(capsys.readouterr().out)["arms"]
    assert [(arm["name"], arm["seeds"]) for arm in arms] == [("population", [0, 1]), ("single", [0, 1])]
    assert redqueen(["tasks", folders[0]]) == 0
    assert all((race.folder / REPORT).is_file() for race in result.races)


def test_everything_measured_is_written_down_for_every_run(design, result):
    written = json.loads((design.folder / "outcomes.json").read_text())
    assert [(run["arm"], run["seed"]) for run in written["runs"]] == [
        ("population", 0), ("population", 1), ("single", 0), ("single", 1)
    ]  # fmt: skip
    for arm, parts in result.less_base.items():
        assert written["less_base"][arm]["1-4"]["gain"]["sampled"]["value"] == parts["1-4"].gain.sampled.value
    for run in written["runs"]:
        assert {"exam 1-4, sampled", "exam 5, sampled", "exam pairs, pass@2", "lines, a slope",
                "lines, last quarter less first", "verifier runs",
                "coverage, growth in the last quarter", "solve rate, first quarter",
                "entropy of students, last quarter"} <= run["figures"].keys()  # fmt: skip
    assert written["exam"]["places"] == "odd" and written["exam"]["tasks"] == 4
    table = arms_table(result.outcomes, result.base, design.attempts)
    assert "| population (2 seeds) | single (2 seeds) |" in table
    assert "|  | population less single |" in table and "less population" not in table


def test_a_finished_study_is_not_run_again(design, result, monkeypatch):
    calls = opened(monkeypatch)
    assert run_study(design) == result
    assert not calls


def test_what_is_missing_is_run_and_examined_and_nothing_else(design, result, monkeypatch):
    calls = opened(monkeypatch)
    more = run_study(replace(design, seeds=2, first_seed=1, arms=("single",)))
    assert more is not None and [each.seed for each in more.outcomes] == [1, 2]
    assert calls == [["single-2/solo"]]
    assert more.outcomes[0] == result.outcomes[3]


def test_a_study_that_is_stopped_goes_on_from_its_checkpoints(design, result, place, monkeypatch):
    again = replace(design, folder=place / "again", arms=("population",), seeds=1)

    done: list[int] = []

    class Soon(Stopping):
        def __call__(self) -> bool:
            self.signal = signal.SIGTERM if done else None
            return super().__call__()

    @contextmanager
    def soon(_: object) -> Iterator[Stopping]:
        yield Soon()

    with monkeypatch.context() as patch:
        patch.setattr(races, "heeding_signals", soon)
        patch.setattr(races.RaceView, "step_done", lambda _, summary: done.append(summary.step))
        with pytest.raises(Interrupted) as stopped:
            run_study(again)
    assert stopped.value.exit_status == 143
    assert not (again.folder / "exam").exists()
    assert checkpoints.steps(again.folder / "population-0" / CHECKPOINTS) == [1]
    run_study(again)
    assert records(again.folder / "population-0") == records(design.folder / "population-0")


def test_arms_are_separated_by_semicolons_where_their_settings_have_commas():
    assert arm_list("population, single rl.lr=1e-3,") == ("population", "single rl.lr=1e-3")
    with_kinds = "population tasks.kinds=code_o,code_i; single tasks.kinds=code_f"
    assert arm_list(with_kinds) == ("population tasks.kinds=code_o,code_i", "single tasks.kinds=code_f")
    changed = arms.apply(load("demo"), arm_list(with_kinds)[0])
    assert changed.tasks.kinds == ("code_o", "code_i")


def test_arms_that_are_matched_spend_what_the_population_of_their_seed_spends(design, result, place, monkeypatch):
    matched = replace(design, folder=place / "matched", seeds=2, match="flops")
    ended = run_study(matched)
    assert ended is not None
    spent = {(each.arm, each.seed): each.figures["floating-point operations"] for each in ended.outcomes}
    steps = {(each.arm, each.seed): each.steps for each in ended.outcomes}
    for seed in (0, 1):
        assert records(matched.folder / f"population-{seed}") == records(design.folder / f"population-{seed}")
        budget = spent["population", seed]
        with Store.read(matched.folder / f"single-{seed}") as store:
            by_step = [row.value for row in store.metrics(FLOPS, RACE)]
        assert len(by_step) == steps["single", seed] > STEPS == steps["population", seed]
        assert sum(by_step[:-1]) < budget <= sum(by_step) == spent["single", seed]
    table = arms_table(ended.outcomes, ended.base, design.attempts)
    assert "| steps | - | 2 | " in table and "| floating-point operations | - |" in table
    calls = opened(monkeypatch)
    assert run_study(matched) == ended and not calls, "it is finished"
    # As processes that share the races do it, from a study that was stopped between the arms.
    for arm in ("single-0", "single-1"):
        shutil.rmtree(matched.folder / arm)
    again = run_study(replace(matched, jobs=2))
    assert again is not None
    assert {(each.arm, each.seed): each.figures["floating-point operations"] for each in again.outcomes} == spent
    [arm] = compare([race.folder for race in ended.races if race.arm == "single"]).arms
    assert arm.seeds == (0, 1), "each seed has its own limit, and they are one arm"


def test_an_arm_that_cannot_be_matched_is_told(design, result, place, monkeypatch, capsys):
    monkeypatch.setattr(study_design, "MOST_STEPS", 1)
    ended = run_study(replace(design, folder=place / "bounded", seeds=1, match="flops"))
    assert ended is not None
    assert re.search(r"single-0 has spent \S+ of \S+ floating-point operations in its 2 steps: it is not matched",
                     capsys.readouterr().err)  # fmt: skip
    table = arms_table(ended.outcomes, ended.base, 2)
    assert "| population (1 seed) | single (1 seed, 1 of them not matched) |" in table


def test_the_learning_rate_is_the_one_that_students_had(design, result, place):
    rates = {(each.arm, each.seed): each.lr for each in result.outcomes}
    assert {*rates.values()} == {design.settings.rl.lr}
    averaged = override(design.settings, {"evolution.pull": "1", "evolution.pull_rate": "3", "evolution.every": "0"})
    ended = run_study(replace(design, folder=place / "averaged", settings=averaged, seeds=1))
    assert ended is not None
    assert {each.arm: each.lr for each in ended.outcomes} == {
        "population": pytest.approx(3 * design.settings.rl.lr), "single": design.settings.rl.lr
    }  # fmt: skip
    run = place / "averaged" / "population-0"
    about = card(run, run / CHECKPOINTS / checkpoints.name(STEPS), STEPS, "soup", "chains", "chains")
    assert f"learning rate up to {3 * design.settings.rl.lr:g}," in about


def test_a_population_whose_operations_nobody_counted_cannot_be_matched(design, result, place):
    old = replace(design, folder=place / "uncounted", seeds=1, match="flops")
    shutil.copytree(design.folder / "population-0", old.folder / "population-0")
    shutil.copytree(design.folder / "exam", old.folder / "exam")
    with closing(sqlite3.connect(old.folder / "population-0" / "records.sqlite")) as db:
        db.execute("DELETE FROM metrics WHERE name = 'flops' AND step = 1")
        db.commit()
    with pytest.raises(InputError, match="population-0 has steps of an older version"):
        run_study(old)


def test_a_race_that_has_spent_more_is_refused(design, place):
    unmatched = replace(design, folder=place / "spent-more", seeds=1, steps=1, arms=("population",))
    assert run_study(unmatched) is not None
    assert run_study(replace(unmatched, arms=("single",), steps=6)) is not None
    with pytest.raises(InputError, match="single-0 is at step 6 and has spent more than the population of seed 0"):
        run_study(replace(unmatched, arms=("population", "single"), match="flops"))


def test_a_race_that_has_gone_further_is_refused(design, result):
    with pytest.raises(InputError, match="is at step 2, and --steps is 1"):
        run_study(replace(design, steps=1))


def test_a_mistake_that_a_process_finds_is_told_by_the_study(design, result):
    with pytest.raises(InputError, match="is at step 2, and --steps is 1") as refused:
        run_study(replace(design, steps=1, jobs=2))
    assert refused.value.mend


def command(place: Path, to: Path, *more: str) -> list[str]:
    """The study as it is asked for on the command line."""
    words = f"study {place}/settings.toml --to {to} --exam {place}/exam.jsonl --arms population,single"
    return [*words.split(), "--attempts", "2", "--seeds", "2", *more]


def test_processes_that_are_told_to_stop_save_and_the_study_goes_on(design, result, place):
    to = place / "told"
    words = command(place, to, "--seeds", "1", "--steps", "40", "--jobs", "2")
    told = subprocess.Popen(
        [sys.executable, "-m", "redqueen", *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert told.stderr is not None
    for line in told.stderr:
        # The race of the population: the other may be over by then, or not yet.
        if "job 1 of 2: " in line and " of 40 steps" in line and not line.startswith("redqueen: job 1 of 2: 0 "):
            told.send_signal(signal.SIGTERM)
            break
    out, err = told.communicate()
    assert (told.returncode, out) == (143, ""), err
    assert "job 1 of 2: stopping" in err
    assert err.endswith("redqueen: stopped; the same command goes on from there\n")
    [saved] = checkpoints.steps(to / "population-0" / CHECKPOINTS)[-1:]
    assert 0 < saved < 40


def test_the_command_shows_what_the_study_came_to(design, result, place, capsys, monkeypatch):
    calls = opened(monkeypatch)
    assert redqueen(command(place, design.folder, "--json")) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((design.folder / "outcomes.json").read_text())
    assert redqueen(command(place, design.folder)) == 0
    out = capsys.readouterr().out
    assert arms_table(result.outcomes, result.base, 2) in out and gains_table(result.less_base, 2) in out
    assert "parts for sweep, races and exam together, on Linux" in out
    assert not calls, "it was finished"


def test_pictures_need_matplotlib_and_say_so_before_anything_is_run(place, capsys, monkeypatch):
    monkeypatch.setattr(command_module, "find_spec", lambda name: None)
    assert redqueen(command(place, place / "none", "--plots", str(place / "plots"))) == 2
    told = "matplotlib must be installed for this; run `pip install 'redqueen[study]'`"
    assert capsys.readouterr().err == f"redqueen: {told}\n"


def test_trackers_are_refused(design):
    with pytest.raises(InputError, match="cannot report to trackers"):
        replace(design, settings=override(design.settings, {"track.to": "wandb"}))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("nothing.toml", "there is no settings file"),
        ("demo --seeds 0", "a study needs arms, seeds, attempts and jobs"),
        ("demo --first-seed 996", "seeds from 1000 on are the sweep's; use seeds from 0 to 999"),
        ("demo --match flops --arms single", "--match is with the arm population, which --arms leaves out"),
        ("demo --match flops --run.flops 1e9", "--match gives run.flops to all arms but the population"),
        ("demo --jobs 0", "a study needs arms, seeds, attempts and jobs"),
        ("demo --arms single,single", "an arm or a learning rate is named twice"),
        ("demo --arms population,double", "there is no arm double; the arms are population, single"),
        ("demo --sweep 1e-3,x", "--sweep cannot be 1e-3,x; write numbers above 0"),
        ("demo --steps 0", "run.steps cannot be 0; use 1 or more"),
        ("demo --exam nothing", "there is no exam nothing"),
    ],
)
def test_a_mistake_is_one_line(place, capsys, words, complaint):
    assert redqueen(["study", *words.split(), "--to", str(place / "none")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"redqueen: {complaint}") and error.count("\n") == 1
    assert not (place / "none").exists()


SAME = "arms are compared under the same conditions; give"


@pytest.mark.parametrize(
    ("arm", "more", "complaint"),
    [
        *(
            (f"population rl.share=students {setting}=1", "", f"cannot have {setting} of its own: {SAME} {setting} for")
            for setting in (
                "engine.rank", "engine.base", "verifier.workers", "run.seed", "run.steps", "run.flops", "tasks.form",
                "tasks.families", "tasks.unfenced", "tasks.attempt_tokens",
            )
        ),
        ("single rl.lr=1e-3", "--sweep 1e-3,2e-3", "cannot have rl.lr of its own"),
        ("single track.to=wandb", "", "a study cannot report to trackers"),
        ("single rl.share=students", "", 'rl.share = "students" would do nothing'),
        ("population rl.share=1", "", 'rl.share cannot be "1"'),
        ("population tasks.seeds=" + "a/" * 90, "", "this one has more than 180 letters: population tasks.seeds=a/a/"),
    ],
)  # fmt: skip
def test_an_arm_has_no_settings_that_all_must_share_or_that_it_cannot_use(place, capsys, arm, more, complaint):
    words = ["study", "demo", "--arms", f"population,{arm}", *more.split(), "--to", str(place / "none")]
    assert redqueen(words) == 2
    error = capsys.readouterr().err
    assert complaint in error and error.count("\n") == 1
    assert not (place / "none").exists()


@pytest.mark.parametrize(
    ("setting", "value"),
    {"engine.base": "pico", "engine.dtype": "bfloat16", "tasks.form": "direct", "tasks.unfenced": "true",
     "tasks.attempt_tokens": "7"}.items(),
)  # fmt: skip
def test_whatever_changes_the_exam_is_the_same_for_all_arms(design, result, setting, value):
    other = replace(design, settings=override(design.settings, {setting: value}))
    assert design.exam("odd").answers() and not other.exam("odd").answers(), "they are asked again"
    with pytest.raises(InputError, match=f"cannot have {setting} of its own"):
        replace(design, arms=(f"population {setting}={value}",))


def test_arms_of_any_temperature_are_examined_at_the_study_s(design, result):
    arm = replace(design, arms=("population rl.temperature=0.5",), seeds=1)
    assert [race.settings.rl.temperature for race in arm.races()] == [0.5]
    assert arm.exam("odd").settings.rl.temperature == design.settings.rl.temperature != 0.5
    other = replace(design, settings=override(design.settings, {"rl.temperature": "0.5"}))
    assert design.exam("odd").answers() and not other.exam("odd").answers(), "they are asked again"


def test_an_arm_with_a_path_among_its_settings_has_a_folder_of_its_own(design, tmp_path):
    arm = f"population tasks.seeds={tmp_path}/seeds.jsonl rl.lr=1e-3"
    [race, plain] = replace(design, arms=(arm, "population rl.estimator=trr++"), seeds=1).races()
    assert race.folder.parent == plain.folder.parent == design.folder
    assert plain.name == "population+rl.estimator=trr++-0"
    assert race.settings.tasks.seeds == f"{tmp_path}/seeds.jsonl"
    assert unquote_plus(race.name) == f"{arm}-0"


def test_what_a_study_has_for_all_arms_is_left_out_by_those_that_cannot_use_it(design):
    shared = replace(design, settings=override(design.settings, {"rl.share": "students", "evolution.trial": "2"}))
    of = {race.arm: race.settings for race in shared.races()}
    assert (of["population"].rl.share, of["population"].evolution.trial) == ("students", 2)
    assert (of["single"].rl.share, of["single"].evolution.trial) == ("nobody", 0)


def test_how_far_all_races_are_is_said_a_few_times(result, capsys):
    progress = RaceProgress(result.races)
    for race in result.races:
        RaceView(race.name, progress).started({}, 1, str(STEPS), ["a note"])
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == f"redqueen: {result.races[-1].name}: a note"
    assert sum("of 8 steps, " in line for line in lines) == 4


# The exam


def test_learning_rates_and_results_are_of_different_tasks():
    bands = ["1", "1", "5", "pairs", "4", "4", "1", "5", "2"]
    assert places_of("odd", bands) == [1, 3, 5, 7]
    assert places_of("even", bands) == [0, 4, 6, 8]


def answers(correct: Sequence[int], attempts: int = 2) -> Tally:
    size = len(correct)
    return Tally(
        attempts=attempts,
        correct=tuple(correct),
        greedy=tuple(each > 1 for each in correct),
        well_formed=(attempts,) * size,
        tokens=(8,) * size,
    )


def test_only_odd_places_count(design, result):
    """The exam's bands are 1 1 2 2 5 5 pairs pairs: of each pair the second is the study's."""
    exam = design.exam("odd")
    assert exam.places == [1, 3, 5, 7]
    parts = exam.parts()
    assert parts == {"1-4": [0, 1], "5": [2], "pairs": [3], "1-4 code_o": [0, 1], "1-4 no shortcut": [0, 1]}
    figures = exam_figures([answers([2, 1, 0, 0]), answers([0, 1, 2, 0])], parts, 2)
    assert figures["exam 1-4, sampled"] == pytest.approx(0.5)
    assert figures["exam 1-4, greedy"] == pytest.approx(0.25)
    assert figures["exam 1-4, pass@2"] == pytest.approx(0.75)
    assert exam_figures([answers([2, 1, 0, 0])], parts, 1)["exam 1-4, pass@1"] == pytest.approx(0.75)
    assert (exam.k, replace(design, k=1).exam("odd").k) == (2, 1)
    assert (figures["exam 1-4, weakest"], figures["exam 1-4, best"]) == (0.25, 0.75)
    assert (figures["exam 5, sampled"], figures["exam pairs, sampled"]) == (0.5, 0)
    files = [json.loads(file.read_text()) for file in (design.folder / "exam").iterdir()]
    assert {len(each["answered"]["answers"]["correct"]) for each in files} == {4}


def test_tasks_with_a_shortcut_are_reported_apart_as_far_as_the_answers_say_which_have_one(design, result, tmp_path):
    exam = replace(design.exam("odd"), folder=tmp_path)
    older, newer = sorted((design.folder / "exam").iterdir())[:2]
    record = json.loads(older.read_text())
    assert record["shortcuts"] == [None, None, "constant", "argument"]
    del record["shortcuts"]
    (tmp_path / older.name).write_text(json.dumps(record))
    assert [*exam.parts()] == ["1-4", "5", "pairs", "1-4 code_o"]
    record = json.loads(newer.read_text()) | {"shortcuts": [None, "copy", None, "first"]}
    (tmp_path / newer.name).write_text(json.dumps(record))
    apart = {name: places for name, places in exam.parts().items() if "shortcut" in name}
    assert apart == {"1-4 no shortcut": [0], "1-4 shortcut": [1]}
    assert len(exam.answers()) == 2
    assert "exam 1-4 no shortcut, sampled" in arms_table(result.outcomes, result.base, 2)


def test_what_students_have_on_the_base_is_counted_task_by_task(design, result):
    parts = {"all": [0, 1, 2, 3], "first": [0]}
    base = answers([0, 1, 0, 0])
    own = gains({"a": [answers([2, 1, 0, 0]), answers([0, 1, 2, 0])], "b": [base]}, base, parts, 2)
    assert own["a"]["all"].gain.sampled.value == pytest.approx(0.25)
    assert (own["a"]["all"].tasks, own["a"]["all"].base.sampled, own["a"]["all"].arm.sampled) == (4, 0.125, 0.375)
    assert own["a"]["first"].gain.greedy.value == pytest.approx(0.5)
    low, high = own["a"]["all"].gain.sampled.low, own["a"]["all"].gain.sampled.high
    assert low is not None and high is not None and low == 0 < high
    assert own["b"]["all"].gain.sampled == Interval(0, 0, 0)
    table = gains_table(own, 2)
    assert "| all | 4 | 12.5 | 37.5 | +25.0 [+0.0, +50.0] |" in table
    assert design.exam("odd").by_band() == {"1 code_o": [0], "2 code_o": [1], "5 code_o": [2], "pairs code_o": [3]}
    arm = design.arms[0]
    mean = result.less_base[arm]["1-4"]
    assert mean.gain.sampled.value == pytest.approx(mean.arm.sampled - mean.base.sampled)
    assert mean.base.sampled == pytest.approx(result.base["exam 1-4, sampled"])


def test_a_study_examines_the_students_of_a_run_as_the_product_does(design, result, tmp_path, capsys):
    """With an exam that is the odd places alone."""
    rows = design.exam_file.read_text().splitlines(keepends=True)
    (tmp_path / "odd.jsonl").write_text("".join(rows[1::2]))
    how = ["--tasks", str(tmp_path / "odd.jsonl"), "--attempts", "2", "--engine.device", "cpu", "--json"]
    assert redqueen(["exam", str(design.folder / "population-1"), *how]) == 0
    base, *students, mean = json.loads(capsys.readouterr().out)["examinees"]
    assert [each["name"] for each in students] == [
        who.member for who in design.exam("odd").answers() if who.race == "population-1" and who.member != "soup"
    ]
    ours = next(each.figures for each in result.outcomes if (each.arm, each.seed) == ("population", 1))
    for row, figures in ((base, result.base), (mean, ours)):
        for part in row["parts"]:
            if part["band"] in ("5", "pairs") and part["kind"] is None:
                for name in ("sampled", "greedy", "tokens"):
                    assert figures[f"exam {part['band']}, {name}"] == pytest.approx(part[name])
    assert any(ours[name] != value for name, value in result.base.items()), "who has learned is not the base"


class Strangers:
    """An engine no two of whose members are alike."""

    def read(self, id: str) -> MemberState:
        return MemberState(rank=1, alpha=1.0, factors={id: (torch.ones(1, 1), torch.ones(1, 1))})


def test_an_exam_that_was_killed_goes_on_after_those_who_were_done(design, result, monkeypatch, tmp_path):
    """Two at a time, killed before the last ones."""
    exam = replace(design.exam("odd"), folder=tmp_path / "exam")
    whole = design.exam("odd").answers()
    asks: list[list[str]] = []

    async def examine(engine, verifier, examinees, tasks, **how):
        if len(asks) == 2:
            raise KeyboardInterrupt
        asks.append(list(examinees))
        return {each.name: whole[each] for each in whole if each.name in examinees}

    async def unchecked(drafts: Sequence[FileDraft], *_: object) -> Sequence[ExamTask]:
        return [ExamTask(Task("code_o"), draft.band) for draft in drafts]

    monkeypatch.setattr(study_exam, "examine", examine)
    monkeypatch.setattr(study_exam, "BATCH", 2)
    monkeypatch.setattr(study_exam, "validated_exam", unchecked)
    with pytest.raises(KeyboardInterrupt):
        exam.examine(Strangers(), None, list(whole)[:5])
    assert [name for some in asks for name in some] == [each.name for each in list(whole)[:4]]
    assert exam.answers() == {each: whole[each] for each in list(whole)[:4]}


def test_answers_to_another_exam_are_not_taken_for_these(design, result):
    exam = design.exam("odd")
    assert Examinee("population-0", STEPS, "nobody") not in exam.answers()
    assert Examinee("single-0", STEPS, "solo") in exam.answers()
    assert not replace(exam, attempts=3).answers()


def test_an_exam_without_the_main_bands_is_refused(design, tmp_path):
    (tmp_path / "exam.jsonl").write_text(design.exam_file.read_text().replace('"1"', '"low"').replace('"2"', '"low"'))
    with pytest.raises(InputError, match="no task in the bands"):
        run_study(replace(design, folder=tmp_path / "none", exam_file=tmp_path / "exam.jsonl"))
    assert not (tmp_path / "none").exists()


# The sweep


def test_the_best_rate_of_an_arm_is_that_of_the_best_mean_over_seeds():
    swept = [
        SweepOutcome("single", 1e-3, 1000, 0.9), SweepOutcome("single", 1e-3, 1001, 0.1),
        SweepOutcome("single", 3e-3, 1000, 0.6), SweepOutcome("single", 3e-3, 1001, 0.6),
        SweepOutcome("1t1s", 3e-3, 1000, 0.4), SweepOutcome("1t1s", 1e-3, 1000, 0.4),
    ]  # fmt: skip
    assert best_rates(swept) == {"single": 3e-3, "1t1s": 1e-3}


def test_a_sweep_is_by_the_even_places_with_seeds_and_rates_of_its_own(design, result, monkeypatch, place):
    calls: list[tuple[list[str], str, list[int]]] = []
    won = {"single-lr0.001-1000": [0, 2], "single-lr0.003-1000": [2, 2]}

    def run_all(races, exam, jobs):
        calls.append(([race.name for race in races], exam.half, exam.places))
        assert [race.settings.rl.lr for race in races] == [1e-3, 3e-3]
        assert {race.settings.run.seed for race in races} == {1000}
        return {Examinee(name, STEPS, "solo"): answers(correct) for name, correct in won.items()}

    monkeypatch.setattr(study_sweep, "run_all", run_all)
    swept = replace(design, folder=place / "swept", arms=("single",), rates=(1e-3, 3e-3), sweep_seeds=1)
    assert sweep(swept) == {"single": 3e-3}
    assert calls == [(list(won), "even", [0, 2])]
    written = json.loads((place / "swept" / "sweep.json").read_text())
    assert [each["sampled"] for each in written["races"]] == [0.5, 1.0] and written["best"] == {"single": 3e-3}


def test_the_races_of_a_study_have_the_rates_of_the_sweep(design, monkeypatch, place):
    monkeypatch.setattr(study_module, "sweep", lambda _: {"population": 3e-3, "single": 3e-4})
    held: list[StudyRace] = []

    def stopped(races: Sequence[StudyRace], *_: object) -> None:
        held.extend(races)
        raise Interrupted(signal.SIGINT)

    monkeypatch.setattr(study_module, "run_all", stopped)
    with pytest.raises(Interrupted):
        run_study(replace(design, folder=place / "rates", rates=(3e-4, 3e-3), seeds=1))
    assert [(race.arm, race.settings.rl.lr) for race in held] == [("population", 3e-3), ("single", 3e-4)]


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


def figured(arm: str, seed: int, value: float) -> RaceOutcome:
    return RaceOutcome(
        arm=arm, seed=seed, lr=1e-3, steps=STEPS, flops=None, adapters=1, figures={"lines, a slope": value}
    )


def test_means_and_differences_have_their_intervals_over_seeds():
    outcomes = [figured("population", 0, 3), figured("population", 1, 5), figured("single", 1, 1)]
    outcomes += [figured("single", 0, 1), figured("single", 2, 100)]
    mean = arm_means(outcomes)["population"]["lines, a slope"]
    assert (mean.mean, mean.half) == (4, pytest.approx(student_t(1) * 1))
    paired = differences(outcomes, "population", "single")["lines, a slope"]
    assert paired.values == (2, 4), "seed by seed; a seed that one arm lacks is left out"
    assert (paired.mean, paired.half) == (3, pytest.approx(student_t(1) * 1))
    table = arms_table(outcomes, {}, 8)
    assert "| lines, a slope | - | 4.000 ±12.706 | 34.0 ±142.0 |" in table
    assert table.count("| lines, a slope | 3.000 ±12.706 |") == 1


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


def test_pictures_are_small_and_the_same_every_time(result, tmp_path):
    pytest.importorskip("matplotlib")
    drawn = [plots.draw(result.races, result.outcomes, result.base, tmp_path / name) for name in ("one", "two")]
    assert [path.name for path in drawn[0]] == ["exam.svg", "solve-rate.svg", "lines.svg", "coverage.svg"]
    for one, two in zip(*drawn, strict=True):
        assert one.read_bytes() == two.read_bytes()
        assert one.stat().st_size < 200_000
