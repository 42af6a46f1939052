"""A race's archive as a taskset of verifiers: what is written, and what verifiers makes of it where it is installed."""

import asyncio
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from redqueen.analysis import taskset_folder
from redqueen.errors import InputError
from redqueen.evals import taskset
from redqueen.runs.rows import TaskRow
from redqueen.settings import Config
from redqueen.tasks.code.seeds import SEEDS
from redqueen.tasks.families import Families
from redqueen.tasks.protocol import Task
from redqueen.verifier import LocalVerifier

SCORES = """
import asyncio, json, sys
sys.path.insert(0, sys.argv[1])
import verifiers.v1 as vf
from verifiers.v1.utils.loaders import taskset_class

tasks = list(taskset_class("written")(vf.TasksetConfig(id="written")))

async def score(task, text):
    nodes = [
        vf.MessageNode(message=vf.UserMessage(content="?")),
        vf.MessageNode(parent=0, message=vf.AssistantMessage(content=text), sampled=True),
    ]
    of = vf.TraceTask(type=type(task).__name__, data=task.data)
    trace = vf.Trace(task=of, agent=vf.AgentInfo(config=vf.AgentConfig()), nodes=nodes)
    await task.score(trace)
    return trace.reward

golds = json.loads(sys.argv[2])
print(json.dumps([[asyncio.run(score(task, text)) for text in (gold, "no")] for task, gold in zip(tasks, golds)]))
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder with four seeds as the tasks of a race, one of them twice."""
    rows = [_row(place, task) for place, task in enumerate([*SEEDS[:4], SEEDS[0]])]
    assert taskset_folder.write(tmp_path / "written", Config(), rows) == 4
    return tmp_path / "written"


def _row(place: int, task: Task) -> TaskRow:
    about = {"id": task.id, "near_key": task.near_key, "descriptor": task.descriptor, "record": task.record()}
    figures = dict.fromkeys(("depth", "cyclomatic", "lines", "variables", "answer_chars"), 0)
    played = {"match": 0, "teacher": "t0", "group_": 0, "text": "", "solved": 0, "attempts": 0, "reward": 0.0}
    return TaskRow(step=1, place=place, kind=task.kind, **about, **played, **figures)


def golds(tasks, verifier: LocalVerifier) -> list[str]:
    return [text or "" for text in asyncio.run(Families.of(["code"]).families[0].answers(tasks, verifier))]


def test_a_folder_has_each_task_once_and_grades_it_in_a_guest(written: Path, verifier):
    rows = taskset.rows(written / "written")
    assert [row["id"] for row in rows] == [task.id for task in SEEDS[:4]]
    assert (written / "pyproject.toml").is_file()
    for row, gold in zip(rows, golds(SEEDS[:4], verifier), strict=True):
        for text, right in ((gold, (1.0, 1.0)), ("", (0.0, 0.0))):
            assert asyncio.run(taskset.graded(written / "written", row["record"], text, cut=False)) == right


@pytest.mark.skipif(find_spec("verifiers") is None, reason="verifiers is not installed")
def test_verifiers_loads_the_folder_and_scores_right_and_wrong_answers(written: Path, verifier):
    words = [sys.executable, "-c", SCORES, str(written), json.dumps(golds(SEEDS[:4], verifier))]
    ended = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout.splitlines()[-1]) == [[1.0, 0.0]] * 4


def test_a_folder_that_is_there_or_has_no_name_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="is there already"):
        taskset_folder.write(tmp_path, Config(), [])
    with pytest.raises(InputError, match="cannot be imported"):
        taskset_folder.write(tmp_path / "1-2", Config(), [])
    own = Config.model_validate({"tasks": {"families": ["mine.py:Family"]}})
    with pytest.raises(InputError, match="is a file, which a taskset does not bring along"):
        taskset_folder.write(tmp_path / "mine", own, [])
