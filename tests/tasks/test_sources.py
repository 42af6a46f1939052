"""Fixed sources of other packages: what they draw, how they are graded, and what is refused.

reasoning-gym is no dependency of the suite: CONTRIBUTING.md says how to run these.
"""

import asyncio
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from redqueen.errors import ConfigError
from redqueen.plugins import FAMILIES
from redqueen.tasks.families import Families
from redqueen.tasks.protocol import Attempt, Form, Task
from redqueen.tasks.soundness import check_family
from redqueen.tasks.sources import Source, graded, verdict_on
from redqueen.tasks.verdicts import Grade, Reason, Rejection, Verdict
from redqueen.tasks.wording import fenced
from redqueen.verifier import LocalVerifier, Result, Status

gym = pytest.mark.skipif(find_spec("reasoning_gym") is None, reason="reasoning-gym is not installed")
environments = pytest.mark.skipif(find_spec("verifiers") is None, reason="verifiers is not installed")
TASKSETS = str(Path(__file__).parents[1] / "plugins")
EVALUATES = ("spiral_matrix", "string_insertion", "binary_matrix", "n_queens")
"""Generators whose graders execute an answer."""


def source(name: str) -> tuple[Families, Source, str]:
    families = Families.of([name])
    [kind] = families.kinds
    found = families.source_of(kind)
    assert found is not None
    return families, found, kind


def drawn(name: str, count: int) -> list[Task]:
    _, found, kind = source(name)
    items = [found.draw(kind, number) for number in range(count)]
    assert not any(isinstance(item, Rejection) for item in items)
    return [item for item in items if isinstance(item, Task)]


def judged(name: str, attempts: list[Attempt[Task]], verifier: LocalVerifier) -> list[Verdict]:
    families, _, kind = source(name)
    return asyncio.run(families.kinds[kind].grade(attempts, verifier))


@gym
@pytest.mark.parametrize("name", ["rg:basic_arithmetic", "rg:countdown", "rg:zebra_puzzles", "rg:n_queens"])
def test_items_are_the_same_for_a_number_and_their_answers_are_right(name, verifier):
    tasks = drawn(name, 8)
    assert tasks == drawn(name, 8)
    _, found, _ = source(name)
    golds = asyncio.run(found.answers(tasks, verifier))
    attempts = [Attempt(task, gold or "") for task, gold in zip(tasks, golds, strict=True)]
    assert {verdict.grade for verdict in judged(name, attempts, verifier)} == {Grade.CORRECT}
    again = [type(task).from_record(json.loads(json.dumps(task.record()))) for task in tasks]
    assert again == tasks


@gym
def test_what_is_no_answer_is_malformed_and_what_is_another_is_wrong(verifier):
    [task] = drawn("rg:countdown", 1)
    texts = ["", "I think it is 7.", "```answer\n1 + 1\n```", "```answer\n1 + 1"]
    verdicts = judged("rg:countdown", [Attempt(task, text) for text in texts], verifier)
    assert [verdict.grade for verdict in verdicts] == [Grade.MALFORMED, Grade.MALFORMED, Grade.WRONG, Grade.MALFORMED]
    assert verdicts[-1].reason is Reason.CUT


def test_a_grader_that_raises_finds_that_answer_wrong_and_judges_the_others(verifier):
    name = f"{Path(__file__).parents[1]}/plugins/drawn.py:Raises"
    families, found, kind = source(name)
    [task] = drawn(name, 1)
    [gold] = asyncio.run(found.answers([task], verifier))
    attempts = [Attempt(task, text) for text in ("seven", gold or "", "\u00e9 1", "")]
    verdicts = asyncio.run(graded(families.kinds[kind], attempts, verifier))
    assert [verdict.grade for verdict in verdicts] == [Grade.WRONG, Grade.CORRECT, Grade.WRONG, Grade.MALFORMED]
    assert verdicts[0].reason is Reason.RAISES and "ValueError" in verdicts[0].detail
    assert verdicts[2].detail.isascii()


def test_a_package_s_grader_that_raises_in_a_guest_finds_the_answer_wrong():
    verdict = verdict_on(Result(status=Status.EXCEPTION, exception="ZeroDivisionError"))
    assert (verdict.grade, verdict.reason) == (Grade.WRONG, Reason.RAISES) and "ZeroDivisionError" in verdict.detail
    assert verdict_on(Result(status=Status.TIMEOUT)).grade is Grade.MALFORMED
    assert verdict_on("correct").correct


@gym
def test_unfenced_answers_are_read_where_the_settings_say_so(verifier):
    kind = source("rg:basic_arithmetic")[1].reading_unfenced().kinds(Form.SHORT)["rg_basic_arithmetic"]
    [task] = drawn("rg:basic_arithmetic", 1)
    [verdict] = asyncio.run(kind.grade([Attempt(task, task.record()["answer"])], verifier))
    assert verdict.correct


@gym
@pytest.mark.parametrize("generator", EVALUATES)
def test_an_answer_that_would_run_on_the_host_writes_nothing_there(generator, verifier, tmp_path):
    mark = tmp_path / "mark"
    code = f"[open({str(mark)!r}, 'w')]"
    [task] = drawn(f"rg:{generator}", 1)
    [verdict] = judged(f"rg:{generator}", [Attempt(task, fenced("answer", code))], verifier)
    assert not verdict.correct and not mark.exists()
    # The same answer, graded as the package does it: it is no idle test.
    made = f"import reasoning_gym\nmade = reasoning_gym.create_dataset({generator!r}, seed=0, size=1)\n"
    script = f"{made}made.score_answer({code!r}, made[0])"
    subprocess.run([sys.executable, "-c", script], check=True)
    assert mark.exists()


@gym
def test_a_generator_whose_grader_executes_answers_fails_that_check(verifier):
    found = asyncio.run(check_family("rg:spiral_matrix", verifier, 24))
    assert [row.check for row in found.failures] == ["runs nothing"]


@gym
def test_settings_of_a_generator_follow_its_name():
    tasks = drawn("rg:chain_sum min_terms=5 max_terms=5", 4)
    assert all(sum(task.record()["asked"].count(sign) for sign in (" + ", " - ")) == 4 for task in tasks)


@gym
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("rg:nothing", "reasoning-gym has no generator nothing"),
        ("rg:chain_sum nothing=1", "reasoning-gym refuses rg:chain_sum nothing=1"),
        ("rg:chain_sum min_terms=9 max_terms=2", "reasoning-gym refuses"),
    ],
)
def test_what_the_package_does_not_have_is_refused_in_a_line(name, what):
    with pytest.raises(ConfigError, match=what) as refused:
        FAMILIES.get(name)
    assert "\n" not in str(refused.value)


@environments
def test_a_taskset_is_graded_in_guests_and_passes_the_checks(verifier, monkeypatch):
    monkeypatch.syspath_prepend(TASKSETS)
    found = asyncio.run(check_family("vf:sums_v1", verifier, 24))
    assert [(row.check, row.finding.what) for row in found.failures if row.check != "speed"] == []
    [task] = drawn("vf:sums_v1", 1)
    verdicts = judged(
        "vf:sums_v1", [Attempt(task, text) for text in ("It is 400", "It is 401", "", "<think>")], verifier
    )
    assert [verdict.grade for verdict in verdicts] == [Grade.CORRECT, Grade.WRONG, Grade.MALFORMED, Grade.MALFORMED]


@environments
def test_a_taskset_that_needs_more_than_an_answer_is_refused_in_a_line(monkeypatch):
    monkeypatch.syspath_prepend(TASKSETS)
    with pytest.raises(ConfigError, match="the taskset contained_v1 has a container; name one of single questions"):
        FAMILIES.get("vf:contained_v1")
    with pytest.raises(ConfigError, match="the taskset nothing_v1 cannot be loaded"):
        FAMILIES.get("vf:nothing_v1")


@pytest.mark.parametrize(("name", "package"), [("rg:chain_sum", "reasoning_gym"), ("vf:gsm8k", "verifiers")])
def test_a_package_that_is_not_there_is_named_with_what_installs_it(name, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for module in ("gym", "environments"):
        monkeypatch.setattr(f"redqueen.tasks.sources.{module}.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=f"pip install 'redqueen\\[{name[:2]}\\]'"):
        FAMILIES.get(name)


def test_listing_plug_ins_and_reading_other_families_imports_no_source_package():
    script = (
        "import sys\nfrom redqueen.plugins import FAMILIES\nfrom redqueen.tasks.families import Families\n"
        "FAMILIES.check('rg:chain_sum'); FAMILIES.names(); Families.of(['code'])\n"
        "assert not {'reasoning_gym', 'verifiers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
