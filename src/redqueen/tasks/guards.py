"""What is refused though it is sound, what does not count as hard though nobody solves it, and what a person looks at.

A reward for difficulty alone drifts to tasks that are hard and teach nothing: endless answers, one program with ever
new constants, riddles that nobody solves. `Guards.screen` refuses; `mark_trivial` lets a task stand and says that its
difficulty earns nothing. Every refusal has its reason, in our words, for the records.
"""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal

from redqueen.errors import ConfigError, NotJudged
from redqueen.keys import Part, key
from redqueen.tasks.archive import Archive, Entry, Trivial
from redqueen.tasks.families import Families
from redqueen.tasks.protocol import Task
from redqueen.tasks.verdicts import Reason, Rejection
from redqueen.verifier import Job, Limits, Result, Status, StrictVerifier, Verifier

WINDOW = 20
"""Steps that count as recent, as far as the archive goes back."""
LONG_ANSWER = 4
"""An answer is long when it is longer than this many median answers of its kind, ..."""
LONG_ANSWER_CHARS = 40
"""... and than this."""
ENOUGH_ANSWERS = 16
"""Recent tasks of a kind that make a median."""
ENOUGH_UNSOLVED = 8
"""Recent tasks of a kind and type that must all have stayed unsolved."""
ENOUGH_TASKS, ENOUGH_ALIKE = 50, 6
"""Recent tasks of a kind, and of these with one answer, before that answer can be guessable."""
GUESSABLE_SHARE = 0.1
"""Of the recent answers of a kind."""
_TASKS_PER_JOB = 64
_LIMITS = Limits(cpu_s=1.0)
"""Of a search, alone as in company: who are beside a task must not decide about it."""
_DENY = """\
import re

PATTERNS = [re.compile(text, flags) for text, flags in {patterns}]


def f(*texts):
    found = (number for number, pattern in enumerate(PATTERNS, 1) if any(map(pattern.search, texts)))
    return next(found, 0)
"""

Duplicates = Literal["near", "same", "unpaid", "allow"]
Shortcuts = Literal["refuse", "allow"]
Answers = defaultdict[str, Counter[str | None]]
"""How often each answer is right, by kind."""
CAPS = {"lines": "{} lines", "depth": "a syntax tree of depth {}"}
"""The figures of complexity that may have a cap, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """What a valid task must not be."""

    held_out: frozenset[str] = frozenset()
    """Keys of programs that are kept for evaluation (`files.read_held_out`)."""
    deny: tuple[re.Pattern[str], ...] = ()
    """The user's patterns (`read_patterns`); a task has no text that one of them finds something in."""
    caps: Mapping[str, int] = field(default_factory=dict)
    """The most that figures of a task's complexity may be, where the user wants less than the family allows."""
    duplicates: Duplicates = "near"
    """"allow" refuses no duplicates. The others refuse the same ones: see `mark_trivial` for the difference, and
    `phases/judge.py` for what "unpaid" pays."""
    shortcuts: Shortcuts = "refuse"
    """Whether tasks that need no reasoning are refused: those that a shortcut solves, and those with an answer that is
    often right."""

    async def refuse_shortcuts(
        self, results: Sequence[Task | Rejection], families: Families, verifier: Verifier
    ) -> list[Task | Rejection]:
        """The results without the tasks that a shortcut solves, whatever else was proposed, and without those of which
        the machine did not let it be found out."""
        tasks = {result.id: result for result in results if isinstance(result, Task)}
        if self.shortcuts == "allow" or not tasks:
            return list(results)
        # Each by itself: what the machine fails of one is no news about another.
        checked = await asyncio.gather(*(_without_shortcut(task, families, verifier) for task in tasks.values()))
        became = dict(zip(tasks, checked, strict=True))
        return [became[result.id] if isinstance(result, Task) else result for result in results]

    async def screen(
        self, results: Sequence[Task | Rejection], archive: Archive, verifier: Verifier
    ) -> list[Task | Rejection]:
        """A step's tasks in the order of their places, those that are not wanted rejected. Of several that are the
        same the first stays."""
        return self.refuse_alike(await self.refuse_alone(results, archive, verifier), archive)

    async def refuse_alone(
        self, results: Sequence[Task | Rejection], archive: Archive, verifier: Verifier
    ) -> list[Task | Rejection]:
        """Without the tasks that are not wanted, whatever else is proposed in their step."""
        denied = await self._denied([result for result in results if isinstance(result, Task)], verifier)
        return [
            self._unwanted(result, denied.get(result.id), archive) or result if isinstance(result, Task) else result
            for result in results
        ]

    def refuse_alike(self, results: Sequence[Task | Rejection], archive: Archive) -> list[Task | Rejection]:
        """Without those that are not wanted beside the ones before them."""
        screened: list[Task | Rejection] = []
        taken: set[tuple[str, str]] = set()
        answers: Answers = defaultdict(Counter)
        for entry in _recent(archive):
            answers[entry.task.kind][entry.task.guess_key] += 1
        for result in results:
            if isinstance(result, Task):
                result = self._alike(result, taken, answers) or result
            if isinstance(result, Task):
                taken.add((result.kind, result.near_key))
                answers[result.kind][result.guess_key] += 1
            screened.append(result)
        return screened

    def _unwanted(self, task: Task, denied: Rejection | None, archive: Archive) -> Rejection | None:
        if self.held_out and not self.held_out.isdisjoint(task.part_keys):
            return task.rejected(Reason.HELD_OUT, "a program of the held-out set, up to names and layout")
        if denied is not None:
            return task.rejected(denied.reason, denied.detail)
        for name, most in self.caps.items():
            if (figure := getattr(task.complexity, name)) > most:
                return task.rejected(Reason.TOO_COMPLEX, f"{CAPS[name].format(figure)}, more than {most}")
        if self.duplicates != "allow" and archive.seen(task):
            return task.rejected(Reason.DUPLICATE, "an earlier task or a seed is the same")
        return None

    def _alike(self, task: Task, taken: set[tuple[str, str]], answers: Answers) -> Rejection | None:
        if self.duplicates != "allow" and (task.kind, task.near_key) in taken:
            return task.rejected(Reason.DUPLICATE, "another proposal of this step is the same")
        if self.shortcuts == "refuse" and task.guess_key is not None:
            alike, of_kind = answers[task.kind][task.guess_key], answers[task.kind].total()
            # Where there are few answers, each has its equal share: refusing all of them would end the race.
            share = max(GUESSABLE_SHARE, 1 / max(len(answers[task.kind]), 2))
            if of_kind >= ENOUGH_TASKS and alike >= ENOUGH_ALIKE and alike > share * of_kind:
                return task.rejected(Reason.GUESSABLE, f"the answer of {alike} of {of_kind} recent tasks")
        return None

    async def _denied(self, tasks: Sequence[Task], verifier: Verifier) -> dict[str, Rejection]:
        """The tasks, by identity, that a pattern finds something in.

        `re` can backtrack for longer than anybody waits, and the texts are a model's: so the search runs where time is
        limited. A task whose search does not end is refused too.
        """
        if not self.deny:
            return {}
        source = _DENY.format(patterns=[(pattern.pattern, pattern.flags) for pattern in self.deny])
        calls = {task.id: ", ".join(map(ascii, task.texts)) for task in tasks}
        ids = list(calls)
        batches = [ids[at : at + _TASKS_PER_JOB] for at in range(0, len(ids), _TASKS_PER_JOB)]
        results = await _search(source, calls, batches, verifier)
        # One took its neighbours with it.
        alone = [[task_id] for task_id in ids if results[task_id].status is not Status.OK]
        results |= await _search(source, calls, alone, verifier)
        rejections = {task_id: self._found(result) for task_id, result in results.items()}
        return {task_id: rejection for task_id, rejection in rejections.items() if rejection is not None}

    def _found(self, result: Result) -> Rejection | None:
        if result.status is not Status.OK or result.value is None:
            return Rejection(Reason.DENIED, f"the patterns could not be tried on it: {result.status}")
        number = int(result.value)
        if not number:
            return None
        return Rejection(Reason.DENIED, f"pattern {number}: {ascii(self.deny[number - 1].pattern)[1:-1]}")


async def _without_shortcut(task: Task, families: Families, verifier: Verifier) -> Task | Rejection:
    try:
        [way] = await families.shortcuts([task], StrictVerifier(verifier))
    except NotJudged:
        return task.rejected(Reason.NOT_JUDGED, "its shortcuts could not be tried")
    return task.rejected(Reason.SHORTCUT, way) if way else task


async def _search(
    source: str, calls: dict[str, str], batches: Sequence[Sequence[str]], verifier: Verifier
) -> dict[str, Result]:
    jobs = [Job.calls(source, [calls[task_id] for task_id in batch], seeds=1, limits=_LIMITS) for batch in batches]
    outcomes = await verifier.run(jobs)
    return {
        task_id: result
        for batch, outcome in zip(batches, outcomes, strict=True)
        for task_id, result in zip(batch, outcome.results, strict=True)
    }


def guess_rates(tasks: Sequence[Task], archive: Archive) -> dict[str, float]:
    """How often the answer that was right most often lately is right for these tasks, by kind; kinds of which nothing
    recent or nothing here has one right answer are left out."""
    recent: Answers = defaultdict(Counter)
    for entry in _recent(archive):
        if entry.task.guess_key is not None:
            recent[entry.task.kind][entry.task.guess_key] += 1
    hits: defaultdict[str, list[bool]] = defaultdict(list)
    for task in tasks:
        if task.guess_key is not None and recent[task.kind]:
            [(commonest, _)] = recent[task.kind].most_common(1)
            hits[task.kind].append(task.guess_key == commonest)
    return {kind: sum(own) / len(own) for kind, own in hits.items()}


def read_patterns(texts: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """The user's patterns, in Python's syntax."""
    patterns: list[re.Pattern[str]] = []
    for number, text in enumerate(texts, 1):
        try:
            patterns.append(re.compile(text))
        except (re.error, OverflowError, RecursionError) as error:
            what = f"guard.deny: pattern {number}, {text!r}, is no regular expression: {error}"
            raise ConfigError(what, "mend it or leave it out") from error
    return tuple(patterns)


def mark_trivial(entries: Sequence[Entry], archive: Archive, duplicates: Duplicates) -> list[Entry]:
    """A step's entries in the order of their places, and of each why its difficulty does not count, if so.

    They are compared with the recent ones of the archive, which does not have them yet; near-duplicates also with each
    other, and only if `duplicates` is "near" or "unpaid".
    """
    near = duplicates in ("near", "unpaid")
    recent = _recent(archive)
    medians = _median_answers(recent)
    hopeless = _hopeless(recent)
    shapes = {_shape(entry) for entry in recent} if near else set()
    marked: list[Entry] = []
    for entry in entries:
        task = entry.task
        trivial = None
        if task.answer_chars > max(LONG_ANSWER * medians.get(task.kind, float("inf")), LONG_ANSWER_CHARS):
            trivial = Trivial.LONG_ANSWER
        elif near and _shape(entry) in shapes:
            trivial = Trivial.NEAR_DUPLICATE
        elif not entry.solved and (task.kind, task.descriptor) in hopeless:
            trivial = Trivial.NEVER_SOLVED
        marked.append(replace(entry, trivial=trivial))
        if near:
            shapes.add(_shape(entry))
    return marked


def _recent(archive: Archive) -> list[Entry]:
    return [entry for entry in archive if entry.step > archive.newest - WINDOW]


def _shape(entry: Entry) -> tuple[str, str, str]:
    return entry.teacher, entry.task.kind, entry.task.shape_key


def _median_answers(recent: Sequence[Entry]) -> dict[str, float]:
    """By kind, where there are enough."""
    chars: defaultdict[str, list[int]] = defaultdict(list)
    for entry in recent:
        chars[entry.task.kind].append(entry.task.answer_chars)
    return {kind: median(lengths) for kind, lengths in chars.items() if len(lengths) >= ENOUGH_ANSWERS}


def _hopeless(recent: Sequence[Entry]) -> set[tuple[str, str]]:
    """The kinds and types of which nobody solved any."""
    solved: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for entry in recent:
        solved[entry.task.kind, entry.task.descriptor].append(entry.solved)
    return {pair for pair, counts in solved.items() if len(counts) >= ENOUGH_UNSOLVED and not any(counts)}


def set_aside(every: int, run_seed: Part, step: int, place: int) -> bool:
    """Whether a person should look at this task: about one in `every`, none for 0. No teacher can tell which."""
    return every > 0 and key("oversight", run_seed, step, place) % every == 0
