"""What was judged once is not judged again."""

import asyncio
import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tasks.proposing import CODE, pair, propose

from loop.making import Shelf
from loop.scripted import Riddle
from redqueen.errors import RunError
from redqueen.phases.journal import Forgetful, Journal
from redqueen.tasks.code import CodeDraft, CodeO, CodeTask
from redqueen.tasks.protocol import Attempt
from redqueen.tasks.verdicts import Grade, Reason, Rejection, Verdict
from redqueen.verifier import Status


@dataclass
class Judge:
    """Gives what it was made with, and counts how often it was asked."""

    results: list[Any]
    runs: int = 3
    asked: list[int] = field(default_factory=list)

    async def __call__(self, items) -> tuple[list[Any], int]:
        self.asked.append(len(items))
        return self.results, self.runs


VERDICTS = [
    Verdict(grade=Grade.CORRECT, reason=None, status=Status.OK),
    Verdict(grade=Grade.WRONG, reason=None, status=Status.TIMEOUT, detail="too slow", shortcut=True),
    Verdict(grade=Grade.MALFORMED, reason=Reason.CUT, status=None, detail="stopped"),
    Verdict(
        grade=Grade.VOID,
        reason=Reason.NONDETERMINISTIC,
        status=None,
        detail="fails",
        runs=("beside an attempt, f(1): ok:1 | ok:2",),
    ),
]
ATTEMPTS = [Attempt(Riddle("code_o", 1), text) for text in "abc"]


def judged(journal: Journal, judge: Judge, attempts=ATTEMPTS):
    return asyncio.run(journal.attempts(attempts, judge))


def test_a_verdict_is_the_same_the_second_time_and_so_are_its_runs():
    shelf, first, second = Shelf(), Judge(VERDICTS), Judge([], runs=99)
    before = Journal(shelf, CODE.restore)
    assert judged(before, first) == (VERDICTS, 3)
    before.flush(5)
    assert judged(Journal(shelf, CODE.restore), second) == (VERDICTS, 3)
    assert (first.asked, second.asked) == ([3], [])


@pytest.mark.parametrize(("fields", "lacking"), [(5, {"shortcut": False}), (4, {"shortcut": False, "runs": ()})])
def test_verdicts_of_older_versions_which_say_less_can_be_read(fields, lacking):
    shelf = Shelf()
    journal = Journal(shelf, CODE.restore)
    judged(journal, Judge(VERDICTS))
    journal.flush(5)
    [(key, entry)] = ((key, json.loads(text)) for key, text in shelf.kept.items())
    shelf.journal_put(5, {key: {**entry, "results": [record[:fields] for record in entry["results"]]}})
    read = [replace(verdict, **lacking) for verdict in VERDICTS]
    assert judged(Journal(shelf, CODE.restore), Judge([])) == (read, 3)


@dataclass
class Flaky:
    """Takes its time, and gives another verdict every time; may fail."""

    fails: int = 0
    asked: int = 0
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, items) -> tuple[list[Any], int]:
        self.asked += 1
        mine = self.asked
        await self.go_on.wait()
        if mine <= self.fails:
            raise OSError("failed")
        return [replace(VERDICTS[1], detail=f"number {mine}")] * len(items), mine


async def at_once(journal: Journal, judge: Flaky, count: int) -> list[asyncio.Task[Any]]:
    """This many equal groups, all under way."""
    groups = [asyncio.create_task(journal.attempts(ATTEMPTS, judge)) for _ in range(count)]
    await asyncio.sleep(0.01)
    assert judge.asked == 1, "the others wait"
    return groups


def test_equal_groups_of_a_phase_are_judged_once_whether_at_once_or_one_after_the_other():
    """A program near its time limit must not pass in one and fail in the other: the journal has room for one."""

    async def lead():
        shelf, judge = Shelf(), Flaky()
        journal = Journal(shelf, CODE.restore)
        first, second = await at_once(journal, judge, 2)
        judge.go_on.set()
        judged = [await first, await second, await journal.attempts(ATTEMPTS, judge)]
        journal.flush(5)
        return judge.asked, [*judged, await Journal(shelf, CODE.restore).attempts(ATTEMPTS, Judge([]))]

    asked, judged = asyncio.run(asyncio.wait_for(lead(), 60))
    assert asked == 1
    assert judged == [([replace(VERDICTS[1], detail="number 1")] * 3, 1)] * 4


@pytest.mark.parametrize("way", ["fails", "is cancelled"])
def test_where_the_first_of_equal_groups_comes_to_nothing_the_next_is_judged(way):
    async def lead():
        judge = Flaky(fails=way == "fails")
        first, second, third = await at_once(Journal(Shelf(), CODE.restore), judge, 3)
        if way == "is cancelled":
            first.cancel()
        judge.go_on.set()
        with pytest.raises(OSError if way == "fails" else asyncio.CancelledError):
            await first
        return judge, await second, await third

    judge, *judged = asyncio.run(asyncio.wait_for(lead(), 60))
    assert judge.asked == 2
    assert judged == [([replace(VERDICTS[1], detail="number 2")] * 3, 2)] * 2


def test_groups_that_wait_for_each_other_all_end_when_the_race_is_stopped():
    async def lead():
        groups = await at_once(Journal(Shelf(), CODE.restore), Flaky(), 4)
        for group in groups:
            group.cancel()
        return await asyncio.gather(*groups, return_exceptions=True)

    ends = asyncio.run(asyncio.wait_for(lead(), 60))
    assert [type(end) for end in ends] == [asyncio.CancelledError] * 4


def test_what_is_forgotten_is_judged_anew():
    judge = Judge(VERDICTS)
    journal = Journal(shelf := Shelf(), CODE.restore)
    judged(journal, judge)
    journal.forget()
    journal.flush(5)
    assert shelf.kept == {}
    judged(journal, judge)
    assert judge.asked == [3, 3]


def test_nothing_is_kept_before_the_phase_is_over():
    shelf = Shelf()
    journal = Journal(shelf, CODE.restore)
    judged(journal, Judge(VERDICTS))
    assert shelf.kept == {}
    journal.flush(5)
    journal.flush(6)
    assert len(shelf.kept) == 1
    assert shelf.steps == [5]


def test_what_is_not_the_same_is_judged_anew():
    shelf = Shelf()
    journal = Journal(shelf, CODE.restore)
    judged(journal, Judge(VERDICTS))
    journal.flush(1)
    others = [
        [Attempt(Riddle("code_o", 2), text) for text in "abc"],
        [Attempt(Riddle("code_o", 1), text) for text in "abd"],
        [Attempt(Riddle("code_o", 1), text, cut=True) for text in "abc"],
        ATTEMPTS[:2],
    ]
    for attempts in others:
        judge = Judge(VERDICTS)
        judged(journal, judge, attempts)
        assert judge.asked == [len(attempts)]


def test_tasks_and_rejections_come_back_as_they_were(verifier):
    task = propose(CodeO(), verifier, pair("def f(x):\n    return [x, 'a']", "1"))
    assert isinstance(task, CodeTask)
    drafts = [CodeDraft("code_o", "def f(x):\n    return [x, 'a']", ("1",)), CodeDraft("code_o", "def f(", ("1",))]
    runs = ("when validated, f(1): ok:'\\ud800' | ok:2", "when validated, f(2): exc:ValueError in each run")
    became = [task, Rejection(Reason.NONDETERMINISTIC, "", "def f(x):\n\treturn '\u202e'", runs)]
    shelf = Shelf()
    journal = Journal(shelf, CODE.restore)
    assert asyncio.run(journal.drafts(drafts, Judge(became))) == (became, 3)
    journal.flush(1)
    again, runs = asyncio.run(Journal(shelf, CODE.restore).drafts(drafts, Judge([])))
    assert (again, runs) == (became, 3)
    assert again[0].id == task.id


class Kept(Forgetful):
    """A journal in which every key has this entry."""

    def __init__(self, *results) -> None:
        self._entry = {"results": list(results), "runs": 3}

    def journal_get(self, keys):
        return dict.fromkeys(keys, self._entry)


def test_entries_of_versions_that_kept_no_evidence_are_read():
    old = Journal(Kept({"rejected": ["syntax", "line 1"]}), CODE.restore)
    assert asyncio.run(old.drafts([], Judge([]))) == ([Rejection(Reason.SYNTAX, "line 1")], 3)
    old = Journal(Kept(["correct", None, "ok", ""], ["malformed", "cut", None, "stopped"]), CODE.restore)
    assert judged(old, Judge([])) == ([VERDICTS[0], VERDICTS[2]], 3)


def test_behaviours_come_back_as_they_were():
    shelf = Shelf()
    journal = Journal(shelf, CODE.restore)
    asyncio.run(journal.behaviours(["a", "b"], Judge(["x", None])))
    journal.flush(1)
    assert asyncio.run(Journal(shelf, CODE.restore).behaviours(["a", "b"], Judge([]))) == (["x", None], 3)


@pytest.mark.parametrize(
    "entry",
    [
        5,
        {},
        {"results": [5], "runs": 1},
        {"results": [["x", None, None, ""]], "runs": 1},
        {"results": [["void", None, None, "", [], False, 5]], "runs": 1},
    ],
)
def test_an_entry_that_nobody_wrote_is_one_line(entry):
    class Tampered(Forgetful):
        def journal_get(self, keys):
            return dict.fromkeys(keys, entry)

    with pytest.raises(RunError, match="cannot be read from the journal"):
        judged(Journal(Tampered(), CODE.restore), Judge([]))


def test_a_forgetful_shelf_has_everything_judged_anew():
    judge = Judge(VERDICTS)
    journal = Journal(Forgetful(), CODE.restore)
    judged(journal, judge)
    journal.flush(1)
    judged(journal, judge)
    assert judge.asked == [3, 3]
