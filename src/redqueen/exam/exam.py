"""Everybody attempts the same tasks, in one mixed batch, judged by the kinds' own graders.

Random numbers come from the task and the attempt's number alone: all examinees share them, so that what differs between
two of them is their weights, and an exam comes out the same every time (up to the rounding of products).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from redqueen.engine.flow import sample_and_check
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import MemberId, Sample, SampleRequest, Stop
from redqueen.errors import InputError
from redqueen.keys import key
from redqueen.tasks import all_kinds
from redqueen.tasks.library import ExamTask
from redqueen.tasks.protocol import Attempt, Form, Verdict
from redqueen.verifier import Verifier


@dataclass(frozen=True, slots=True)
class Answers:
    """What one examinee made of an exam: a place for each task, in the exam's order."""

    attempts: int
    """At each task, beside the greedy one."""
    correct: tuple[int, ...]
    """How many of the attempts were right."""
    greedy: tuple[bool, ...]
    """Whether the attempt at temperature 0 was."""
    well_formed: tuple[int, ...]
    """Of the attempts."""
    tokens: tuple[int, ...]
    """Of all attempts together, the greedy one left out."""


async def examine(
    engine: LocalEngine,
    verifier: Verifier,
    examinees: Mapping[str, MemberId | None],
    tasks: Sequence[ExamTask],
    *,
    form: Form,
    attempts: int,
    temperature: float,
    max_tokens: int,
    heard: Callable[[int], None] = lambda answers: None,
) -> dict[str, Answers]:
    """What each examinee, by any name, makes of the tasks; a member of the engine, or None for the bare base. `heard`
    is told how many more answers are judged."""
    if not tasks or not examinees or attempts < 1:
        raise InputError("an exam needs tasks, examinees and attempts", "give at least one of each")
    kinds = all_kinds(form)
    requests: list[SampleRequest] = []
    for each in tasks:
        messages = kinds[each.task.kind].solve_prompt(each.task).messages
        prompt = engine.base.encode([{"role": one["role"], "content": one["content"]} for one in messages])
        for member in examinees.values():
            for number in range(attempts + 1):
                requests.append(
                    SampleRequest(
                        prompt=prompt,
                        member=member,
                        key=key("exam", each.task.id, number),
                        max_tokens=max_tokens,
                        temperature=temperature if number < attempts else 0.0,
                    )
                )
    size = len(examinees) * (attempts + 1)

    async def check(place: int, samples: Sequence[Sample]) -> list[Verdict]:
        task = tasks[place].task
        texts = [Attempt(task, sample.text, sample.stop is Stop.LENGTH) for sample in samples]
        verdicts = await kinds[task.kind].grade(texts, verifier)
        if any(each.void for each in verdicts):
            first, *_ = task.program.splitlines()
            raise InputError(
                f"the exam's task {task.id[:12]} ({first}...) does not return its own output again",
                "take it out: its program can tell one run from another",
            )
        heard(len(verdicts))
        return verdicts

    groups = [range(place * size, (place + 1) * size) for place in range(len(tasks))]
    checked = await sample_and_check(engine, requests, groups, check)
    verdicts = [verdict for of_task in await checked.results() for verdict in of_task]
    return {
        name: _answers(verdicts, checked.samples, range(place * (attempts + 1), len(requests), size), attempts)
        for place, name in enumerate(examinees)
    }


def _answers(verdicts: Sequence[Verdict], samples: Sequence[Sample], starts: range, attempts: int) -> Answers:
    """One examinee's, whose attempts at each task begin at these places."""
    return Answers(
        attempts,
        tuple(sum(each.correct for each in verdicts[at : at + attempts]) for at in starts),
        tuple(verdicts[at + attempts].correct for at in starts),
        tuple(sum(each.well_formed for each in verdicts[at : at + attempts]) for at in starts),
        tuple(sum(len(each.tokens) for each in samples[at : at + attempts]) for at in starts),
    )
