"""Cross-play: the students of two small races at the tasks of both, counted again from their answers."""

import io
import json
import re
import shutil
import sqlite3
from contextlib import closing, redirect_stdout
from statistics import fmean
from typing import Any, cast

import pytest
import torch
from loop.making import Ran, listening, race_to_the_end, settings
from runs.making import quick_folder, task
from tasks.proposing import CODE

from redqueen.commands.main import main
from redqueen.evals import crossplay, examination
from redqueen.evals.answers import GREEDY, Answer
from redqueen.evals.subjects import Group
from redqueen.runs.records_file import RECORDS
from redqueen.runs.rows import StepRecord
from redqueen.runs.store import Store
from redqueen.settings import load
from redqueen.tasks.families import Families
from redqueen.tasks.verdicts import VOID_ATTEMPT
from redqueen.training import arms

ATTEMPTS, TASKS = 3, 6


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def raced():
    """A population and a single adapter, which is asked otherwise."""
    with quick_folder() as place:
        other = {"rl": {"lr": 1e-2, "temperature": 0.8}, "tasks": {"attempt_tokens": 40}, "run": {"seed": 1}}
        pair = (
            race_to_the_end(place / "a", settings()),
            race_to_the_end(place / "b", arms.apply(settings(changes=other), "single")),
        )
        yield pair


def command(raced: tuple[Ran, Ran], *more: object) -> list[object]:
    return ["crossplay", *(ran.folder for ran in raced), "--tasks", TASKS, "--attempts", ATTEMPTS, *more]


@pytest.fixture(scope="module")
def played(raced):
    """What the command says, all answers, and what the engine was asked."""
    answers: list[tuple[str, Answer]] = []
    ask = examination.ask

    async def noted(*given, keep, **more):
        subjects = {question.subject for question in given[3]}
        side = "b" if any(name.endswith("b/solo") for name in subjects) else "a"

        def both(answer: Answer) -> None:
            answers.append((side, answer))
            keep(answer)

        await ask(*given, keep=both, **more)

    with pytest.MonkeyPatch.context() as patch, listening() as asked:
        patch.setattr(examination, "ask", noted)
        with redirect_stdout(io.StringIO()) as said:
            assert main([*map(str, command(raced, "--json"))]) == 0
    return json.loads(said.getvalue()), answers, asked


def test_every_cell_is_the_share_of_right_answers(raced, played):
    found, answers, _ = played
    runs = [str(ran.folder) for ran in raced]
    assert [side["run"] for side in found["runs"]] == runs
    students = {runs[0]: [f"{runs[0]}/s0", f"{runs[0]}/s1"], runs[1]: [f"{runs[1]}/solo"]}
    assert {side["run"]: side["students"] for side in found["runs"]} == students
    tasks = {side["run"]: side["tasks"] for side in found["runs"]}
    assert all(len(set(ids)) == TASKS for ids in tasks.values())
    cells = {(cell["who"], cell["tasks_of"]): cell for cell in found["cells"]}
    assert len(cells) == len(found["cells"]) == 8
    for run, side in zip(runs, "ab", strict=True):
        for who, names in ((f"students of {run}", students[run]), (f"the base, asked as {run}", [""])):
            for of in runs:
                own = [one for at, one in answers if at == side and one.who in names and one.item in tasks[of]]
                sampled = [one.correct for one in own if one.attempt != GREEDY]
                greedy = [one.correct for one in own if one.attempt == GREEDY]
                assert len(sampled) == ATTEMPTS * TASKS * len(names) == ATTEMPTS * len(greedy)
                cell = cells[who, of]
                assert cell["asked_as"] == run
                assert cell["sampled"]["value"] == pytest.approx(fmean(sampled))
                assert cell["greedy"]["value"] == pytest.approx(fmean(greedy))
                assert cell["by_kind"]["code_o"] == cell["sampled"]
                assert cell["sampled"]["low"] <= cell["sampled"]["value"] <= cell["sampled"]["high"]
    assert 0 < cells[f"students of {runs[0]}", runs[0]]["sampled"]["value"] < 1
    for less in found["differences"]:
        ours, theirs = (cells[f"students of {run}", less["tasks_of"]]["sampled"]["value"] for run in runs)
        assert less["sampled"]["value"] == pytest.approx(ours - theirs)


def test_students_are_asked_as_in_their_own_race(raced, played):
    _, _, asked = played
    how = {
        request.member: (request.temperature, request.max_tokens)
        for call in asked.samples
        for request in call
        if request.temperature and request.member
    }
    a, b = (str(ran.folder) for ran in raced)
    assert how == {f"{a}/s0": (1.0, 48), f"{a}/s1": (1.0, 48), f"{b}/solo": (0.8, 40)}


def test_the_table_has_both_runs_the_base_and_their_difference(raced, redqueen):
    status, out, err = redqueen(*command(raced))
    assert status == 0, err
    interval = r"[+-]?\d+\.\d \[[+-]?\d+\.\d, [+-]?\d+\.\d\]"
    assert len(re.findall(interval, out)) == 10
    assert f"{TASKS} tasks of {raced[0].folder} (up to step 1)" in out
    assert "it says nothing of other runs" in out


class Names:
    """Families whose tasks are their names."""

    def restore(self, record):
        return record["name"]


def test_the_newest_tasks_of_all_kinds_are_taken_whose_difficulty_counts(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    proposed = ["code_o 1", "code_i 1", "code_o 2", "code_o 2", "code_f 1", "code_o 1", "code_f 2"]
    with Store.create(folder) as store:
        for step, name in enumerate(proposed, 1):
            trivial = "near_duplicate" if name == "code_f 1" else None
            row = task(step, 0, kind=name[:6], id=name, record={"name": name}, trivial=trivial)
            store.write(StepRecord(step=step, tasks=[row]))

    def chosen(count: int, until: int = 7) -> list[Any]:
        group = Group(what=str(folder), step=until, role=None, members={}, run=folder)
        return crossplay._newest(group, load(None), cast(Families, Names()), count)

    assert chosen(3) == ["code_o 1", "code_i 1", "code_f 2"]
    assert chosen(9) == ["code_o 1", "code_i 1", "code_f 2", "code_o 2"], "none twice, and all that there are"
    assert chosen(1, until=4) == ["code_o 2"]
    assert chosen(9, until=5) == ["code_o 2", "code_i 1", "code_o 1"]


def test_a_task_that_does_not_return_its_own_output_again_is_left_out(raced, played, redqueen, monkeypatch):
    found, *_ = played
    [first, *_], _ = (side["tasks"] for side in found["runs"])
    kind = type(CODE.kinds["code_o"])
    grade = kind.grade

    async def turning(self, attempts, verifier):
        turned = attempts[0].task.id == first
        return [VOID_ATTEMPT] * len(attempts) if turned else await grade(self, attempts, verifier)

    monkeypatch.setattr(kind, "grade", turning)
    status, out, err = redqueen(*command(raced, "--json"))
    assert status == 0, err
    again = json.loads(out)
    assert again["runs"][0]["tasks"] == found["runs"][0]["tasks"][1:]
    assert again["runs"][1] == found["runs"][1]
    assert again["notes"] == ["1 of the tasks do not return their own output again: left out"]


def test_mistakes_are_one_line(raced, redqueen, tmp_path):
    a, b = (ran.folder for ran in raced)
    for words, says in (
        ([a], "crossplay needs RUN_B"),
        ([a, a], "is named twice"),
        ([a, tmp_path], "is not a run folder"),
        ([a, b, "--tasks", 0], "--tasks cannot be 0"),
        ([a, b, "--attempts", -1], "--attempts cannot be -1"),
    ):
        status, _, err = redqueen("crossplay", *words)
        assert status == 2 and says in err and err.count("\n") == 1, err


def test_runs_on_two_bases_are_refused(raced, redqueen, tmp_path):
    a, b = (ran.folder for ran in raced)
    other = tmp_path / "other"
    shutil.copytree(b, other)
    config = other / "config.toml"
    config.write_text(config.read_text().replace('base = "chains"', 'base = "pico"'))
    status, _, err = redqueen("crossplay", a, other)
    assert status == 2 and f"{a} is of the base chains, {other} of pico" in err and err.count("\n") == 1


def test_a_run_without_tasks_that_count_is_refused(raced, redqueen, tmp_path):
    a, b = (ran.folder for ran in raced)
    other = tmp_path / "other"
    shutil.copytree(b, other)
    with closing(sqlite3.connect(other / RECORDS)) as db:
        db.execute("UPDATE tasks SET trivial = 'near_duplicate'")
        db.commit()
    status, _, err = redqueen("crossplay", a, other)
    assert status == 2 and f"{other} has no task whose difficulty counts" in err and err.count("\n") == 1
