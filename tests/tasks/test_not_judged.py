"""Whichever run the machine fails, a text is judged as it would be without, or not at all."""

import asyncio
from collections.abc import Hashable

import pytest

from redqueen.tasks.code import FAMILY, CodeTask
from redqueen.tasks.guards import Guards
from redqueen.tasks.protocol import Attempt, Task
from redqueen.tasks.verdicts import NOT_JUDGED_ATTEMPT, Grade, Reason, Rejection, Verdict
from redqueen.verifier import Job, Mode, Verifier
from tasks.proposing import CODE, Failing, Recorder, fence, pair

PROGRAM = "def f(x):\n    return x * 3"
OTHER = "def f(x):\n    return x * 4"
INPUTS = fence("inputs", "1\n2\n3\n4\n5\n6")
PROPOSALS = {
    "code_o": [pair(PROGRAM, "4"), pair("def f(x):\n    return 1 / 0", "4"), pair(OTHER, "5")],
    "code_i": [pair(PROGRAM, "4"), pair("def f(x):\n    return 1 / 0", "4"), pair(OTHER, "5")],
    "code_f": [INPUTS, fence("inputs", "'a'\n[1]\n7\nNone"), fence("inputs", "7\n8\n9\n10\n11")],
}
ANSWERS = {
    "code_o": [fence("output", text) for text in ("12", "13", "1 +", "'twelve'")],
    "code_i": [fence("input", text) for text in ("4", "5", "1 +", "'4'")],
    "code_f": [fence("python", text) for text in (PROGRAM, OTHER, "def f(x):\n    return x + x + x", "def f(")],
}


def about(job: Job) -> Hashable:
    """What tells the jobs of one batch apart; texts that are read together are also read alone."""
    return job.mode if job.mode is not Mode.CALLS else (job.source, job.texts, job.limits, job.seeds)


def proposed(kind: str, verifier: Verifier) -> list[Task | Rejection]:
    family_kind = FAMILY.kinds()[kind]
    drafts = [family_kind.parse_proposal(text, {"program": PROGRAM}) for text in PROPOSALS[kind]]
    assert not any(isinstance(draft, Rejection) for draft in drafts)
    return asyncio.run(family_kind.validate(drafts, verifier))


def graded(kind: str, verifier: Verifier, task: CodeTask) -> list[Verdict]:
    attempts = [Attempt(task, text) for text in ANSWERS[kind]]
    return asyncio.run(FAMILY.kinds()[kind].grade(attempts, verifier))


@pytest.mark.parametrize("kind", PROPOSALS)
def test_whichever_run_of_a_proposal_fails_it_is_rejected_for_nothing_else(kind, verifier):
    recorder = Recorder(verifier)
    sound = proposed(kind, recorder)
    assert {isinstance(result, Task) for result in sound} == {True, False}
    keys = dict.fromkeys(map(about, recorder.jobs))
    assert len(keys) > 3
    for key in keys:
        results = proposed(kind, Failing(verifier, lambda job: about(job) == key))  # noqa: B023
        changed = [one for one, other in zip(results, sound, strict=True) if one != other]
        assert changed
        assert {one.reason for one in changed if isinstance(one, Rejection)} == {Reason.NOT_JUDGED}
        assert all(isinstance(one, Rejection) for one in changed)


@pytest.mark.parametrize("kind", ANSWERS)
def test_whichever_run_of_an_attempt_fails_it_is_neither_wrong_nor_malformed(kind, verifier):
    task = proposed(kind, verifier)[0]
    assert isinstance(task, CodeTask)
    recorder = Recorder(verifier)
    sound = graded(kind, recorder, task)
    assert {verdict.grade for verdict in sound} >= {Grade.CORRECT, Grade.WRONG, Grade.MALFORMED}
    for key in dict.fromkeys(map(about, recorder.jobs)):
        verdicts = graded(kind, Failing(verifier, lambda job: about(job) == key), task)  # noqa: B023
        changed = [one for one, other in zip(verdicts, sound, strict=True) if one != other]
        assert changed
        assert set(changed) == {NOT_JUDGED_ATTEMPT}


def test_a_task_whose_shortcuts_could_not_be_tried_is_not_judged_and_the_others_are(verifier):
    fair, other, shown = (
        CodeTask("code_i", program="def f(x):\n    " + body, inputs=("41",), outputs=(output,))
        for body, output in (("return [x, x + 1]", "[41, 42]"), ("return [x + 2, x]", "[43, 41]"), ("return x", "41"))
    )

    def checked(verifier: Verifier) -> list[Task | Rejection]:
        return asyncio.run(Guards().refuse_shortcuts([fair, shown, other, fair], CODE, verifier))

    copied = shown.rejected(Reason.SHORTCUT, "copy")
    recorder = Recorder(verifier)
    assert checked(recorder) == [fair, copied, other, fair]
    assert len(recorder.jobs) == 3, "equal tasks are tried once"
    for lost in (fair, other, shown):
        results = checked(Failing(verifier, lambda job: job.source == lost.program))  # noqa: B023
        not_judged = lost.rejected(Reason.NOT_JUDGED, "its shortcuts could not be tried")
        sound = zip([fair, shown, other, fair], [fair, copied, other, fair], strict=True)
        assert results == [not_judged if task == lost else became for task, became in sound]
