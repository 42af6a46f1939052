"""Checks of what a race keeps of a task: records, keys and figures."""

import json
from collections.abc import Iterator, Sequence

from redqueen.tasks.protocol import Complexity, Task
from redqueen.tasks.soundness.findings import Finding, excerpt, failed, named, ok
from redqueen.tasks.soundness.material import Material
from redqueen.tasks.soundness.processes import keys_of
from redqueen.tasks.verdicts import Rejection
from redqueen.verifier import StrictVerifier, Verifier

MOST_DESCRIPTORS = 64
MOST_DESCRIPTOR_CHARS = 40
_DRAFTS = 48
"""That are validated twice."""


async def records_return(material: Material, verifier: Verifier) -> Finding:
    """A task's record, written as JSON and read again, is the same task."""
    lost: list[str] = []
    for task in material.tasks:
        restored = _restored(material, task)
        if restored != task or restored.id != task.id:
            lost.append(f"{named(task)} comes back as {excerpt(restored)}")
    return _finding(
        lost, len(material.tasks), "records are not the task that they are of",
        "give every field to `record`, as plain JSON values, and take it back in `from_record`",
    )  # fmt: skip


def _restored(material: Material, task: Task) -> Task:
    return material.kind.task_type.from_record(json.loads(json.dumps(task.record())))


async def keys_hold(material: Material, verifier: Verifier) -> Finding:
    """Keys say which tasks are the same: of equal tasks always, in whatever object they stand."""
    restored = [_restored(material, task) for task in material.tasks]
    broken = [f"{named(one)} and {named(other)} differ and have one id" for one, other in material.alike]
    broken += [*_not_among_parts(material.tasks), *_coarser_differ(material.tasks)]
    broken += [
        f"{named(task)}: its keys are others when it is restored: {excerpt(keys_of(task))}, {excerpt(keys_of(again))}"
        for task, again in zip(material.tasks, restored, strict=True)
        if keys_of(task) != keys_of(again)
    ]
    broken += await _validated_twice(material, StrictVerifier(verifier))
    return _finding(
        broken, len(material.tasks), "tasks have keys that do not hold",
        "make keys of what a task is alone: its fields, never the object that it stands in or who made it",
    )  # fmt: skip


def _not_among_parts(tasks: Sequence[Task]) -> Iterator[str]:
    """Tasks that a held-out set with them in it would not keep out."""
    for task in tasks:
        # What a held-out set has is about bodies, so a key that says more than the body's need not be in it.
        if task.part_keys.isdisjoint({task.near_key, task.body_key}):
            yield f"{named(task)}: neither near_key nor body_key is among its part_keys"


def _coarser_differ(tasks: Sequence[Task]) -> Iterator[str]:
    """Tasks that are the same by one key and not by a coarser one."""
    first: dict[str, Task] = {}
    for task in tasks:
        other = first.setdefault(task.near_key, task)
        if other.shape_key != task.shape_key:
            yield f"{named(other)} and {named(task)} have one near_key and two shape_keys"


async def _validated_twice(material: Material, verifier: Verifier) -> list[str]:
    """Drafts that become something else the second time, in another company."""
    drafts = material.drafts[:_DRAFTS]
    once = await material.kind.validate(drafts, verifier)
    again = list(reversed(await material.kind.validate(drafts[::-1], verifier)))
    broken: list[str] = []
    for draft, one, other in zip(drafts, once, again, strict=True):
        if isinstance(one, Rejection) or isinstance(other, Rejection):
            same = isinstance(one, Rejection) and isinstance(other, Rejection) and one.reason is other.reason
        else:
            same = (one, one.id, keys_of(one)) == (other, other.id, keys_of(other))
        if not same:
            broken.append(f"{excerpt(draft)} becomes {excerpt(one)}, and the second time {excerpt(other)}")
    return broken


async def figures_in_bands(material: Material, verifier: Verifier) -> Finding:
    """What tables, pages and prompts show of a task is what they have room for."""
    wrong = [f"{named(task)}: {what}" for task in material.tasks for what in _out_of_band(material, task)]
    types = len({task.descriptor for task in material.tasks})
    if types > MOST_DESCRIPTORS:
        wrong.append(f"{len(material.tasks):,} tasks have {types:,} descriptors, more than {MOST_DESCRIPTORS}")
    if wrong:
        mend = "see what `Task` in tasks/protocol.py says of each"
        return _finding(wrong, len(material.tasks), "figures of tasks are out of their bands", mend)
    return ok(f"{types} type{'s' * (types != 1)}", {"tasks": len(material.tasks), "descriptors": types})


def _out_of_band(material: Material, task: Task) -> Iterator[str]:
    complexity, descriptor = task.complexity, task.descriptor
    figures = {name: getattr(complexity, name) for name in Complexity.__dataclass_fields__}
    for name, figure in figures.items():
        if type(figure) is not int or figure < 0:
            yield f"complexity.{name} is {excerpt(figure)}, no whole number from 0 up"
    if not _is_word(descriptor):
        yield f"descriptor is {excerpt(descriptor)}, no printable word of up to {MOST_DESCRIPTOR_CHARS} characters"
    if not isinstance(task.question, str) or len(task.question.splitlines()) > 1:
        yield f"question is {excerpt(task.question)}, not one line"
    if type(task.answer_chars) is not int or task.answer_chars < 0:
        yield f"answer_chars is {excerpt(task.answer_chars)}, no whole number from 0 up"
    if not isinstance(task.body, str | None) or not isinstance(task.guess_key, str | None):
        yield f"body is {excerpt(task.body)} and guess_key {excerpt(task.guess_key)}, where each is a text or None"
    cell = material.family.cell(task.kind, descriptor, complexity)
    if not isinstance(cell, str) or not cell:
        yield f"cell is {excerpt(cell)}, no text"


def _is_word(descriptor: object) -> bool:
    return isinstance(descriptor, str) and 0 < len(descriptor) <= MOST_DESCRIPTOR_CHARS and descriptor.isprintable()


def _finding(wrong: Sequence[str], tasks: int, what: str, mend: str) -> Finding:
    values = {"tasks": tasks, "wrong": len(wrong)}
    if not wrong:
        return ok(f"{tasks:,} tasks", values)
    return failed(f"{len(wrong):,} wrong", f"{len(wrong):,} {what}", example=wrong[0], mend=mend, values=values)
