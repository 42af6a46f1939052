"""What a family is checked with: tasks of each kind, answers to them, and what teachers could have written.

The tasks are the family's seeds, then rows of its seed files and exams in an order that is drawn once and for all: no
band and no file is left out, and everybody gets the same ones. Those that a shortcut solves are left out, as races
leave them out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from redqueen.errors import InputError
from redqueen.keys import numbers
from redqueen.tasks.families import Families
from redqueen.tasks.files import read_rows
from redqueen.tasks.protocol import Draft, Family, Form, Kind, Task
from redqueen.tasks.soundness.findings import Finding, Unsound, failed, ok
from redqueen.tasks.sources import NUMBERS, Source
from redqueen.tasks.verdicts import Rejection
from redqueen.verifier import StrictVerifier, Verifier

ENOUGH = 20
"""Tasks with answers; rates of fewer say nothing."""
MOST_NOT_DRAWN = 0.1
"""Of a source's items, which a step leaves out and says so."""
_AT_ONCE = 64
_PROPOSE_PROMPTS = 8
"""Of each form: what they show are proposals as teachers write them."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a file of the family's own."""

    where: str
    row: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Material:
    """Of one kind."""

    family: Family
    forms: Mapping[Form, Kind[Any, Any]]
    """The kind, by the form of its prompts."""
    tasks: tuple[Task, ...]
    """Each once, none with a shortcut."""
    answers: tuple[str | None, ...]
    """To each of them."""
    drafts: tuple[Draft, ...]
    """That become tasks: of the rows, or else of proposals that prompts show."""
    proposals: tuple[tuple[str, Mapping[str, str]], ...]
    """Texts that a teacher could write, each with the context of its prompt."""
    alike: tuple[tuple[Task, Task], ...] = ()
    """Different tasks with one id, of which only the first is among the tasks."""
    refused: tuple[str, ...] = ()
    """Rows that are no tasks, and why."""
    shortcuts: int = 0
    """Tasks that were left out since a shortcut solves them."""

    @property
    def drawn(self) -> bool:
        """Of a source: nobody proposes anything."""
        return isinstance(self.family, Source)

    @property
    def kind(self) -> Kind[Any, Any]:
        return self.forms[Form.LONG]

    @cached_property
    def golds(self) -> tuple[tuple[Task, str], ...]:
        """The tasks that have an answer, with it."""
        return tuple((task, text) for task, text in zip(self.tasks, self.answers, strict=True) if text is not None)


async def gather(families: Families, verifier: Verifier, most: int) -> list[Material]:
    """At most so many tasks of each kind."""
    [family] = families.families
    by_form = {form: family.kinds(form) for form in Form}
    forms = {name: {form: kinds[name] for form, kinds in by_form.items()} for name in families.kinds}
    if isinstance(family, Source):
        return [await _draw(family, forms[name], verifier, most) for name in families.kinds]
    rows = _rows(families)
    return [await _gather_kind(families, forms[name], rows[name], verifier, most) for name in families.kinds]


async def enough(material: Material, verifier: Verifier) -> Finding:
    """Whether the kind has what the checks need."""
    tasks, golds, refused = len(material.tasks), len(material.golds), len(material.refused)
    values = {"tasks": tasks, "answers": golds, "refused": refused, "shortcuts": material.shortcuts}
    figure = f"{tasks:,} tasks" if golds == tasks else f"{tasks:,} tasks, {golds:,} answers"
    lacks: dict[str, str] = {}
    if tasks < ENOUGH:
        lacks[f"{tasks} tasks, and rates of fewer than {ENOUGH} say nothing"] = (
            "give it more seeds, or a file of tasks (`exams`)"
        )
    if golds < min(ENOUGH, max(tasks, 1)):
        lacks[f"answers to {golds} of {tasks} tasks, too few to check it fully"] = (
            "give the family a method `answers`: for each task a text that is right"
        )
    if not material.drafts and not material.drawn:
        lacks["no draft that becomes a task, so that `validate` is not tried"] = (
            "give the family a file of tasks (`exams`)"
        )
    if refused and not material.drawn:
        lacks[f"{refused:,} rows in the family's own files that are no tasks"] = "mend these rows or leave them out"
    if refused > MOST_NOT_DRAWN * (refused + tasks) and material.drawn:
        lacks[f"{refused:,} of {refused + tasks:,} items that cannot be drawn"] = "mend `draw`"
    if not lacks:
        return ok(figure, values)
    example = material.refused[0] if refused else ""
    mend = "; ".join(dict.fromkeys(lacks.values()))
    return failed(figure, f"there are {', and '.join(lacks)}", example=example, mend=mend, values=values)


def _rows(families: Families) -> dict[str, list[Row]]:
    """By kind, in the order in which they are taken. Rows of kinds that the family lacks belong to another one, which
    it was derived from."""
    [family] = families.families
    found = [
        (Row(*row), families.kind_of_seed(row[1])) for file in family.seed_files().values() for row in read_rows(file)
    ]
    found += [(Row(*row), row[1].get("kind")) for file in family.exams().values() for row in read_rows(file)]
    by_kind: dict[str, list[Row]] = {name: [row for row, kind in found if kind == name] for name in families.kinds}
    for name, rows in by_kind.items():
        numbers("check", name).shuffle(rows)
    return by_kind


async def _gather_kind(
    families: Families, forms: Mapping[Form, Kind[Any, Any]], rows: Sequence[Row], verifier: Verifier, most: int
) -> Material:
    kind, [family], strict = forms[Form.LONG], families.families, StrictVerifier(verifier)
    tasks: dict[str, Task] = {}
    drafts: list[Draft] = []
    refused: list[str] = []
    left_out: set[str] = set()
    alike: list[tuple[Task, Task]] = []

    async def take(found: Sequence[Task]) -> None:
        new: list[Task] = []
        seen = dict(tasks)
        for task in found:
            if seen.setdefault(task.id, task) != task:
                alike.append((seen[task.id], task))
            elif seen[task.id] is task and task.id not in left_out:
                new.append(task)
        for task, way in zip(new, await families.shortcuts(new, strict), strict=True):
            if way is not None:
                left_out.add(task.id)
            elif len(tasks) < most:
                tasks[task.id] = task

    await take([seed for seed in family.seeds if seed.kind == kind.name])
    waiting = iter(rows)
    while len(tasks) < most and (batch := list(islice(waiting, _AT_ONCE))):
        read = [(row.where, draft) for row in batch for draft in _drafts(family, kind, row, refused)]
        results = await kind.validate([draft for _, draft in read], strict)
        for (where, draft), result in zip(read, results, strict=True):
            if isinstance(result, Rejection):
                refused.append(f"{where}: {result.why}")
            else:
                drafts.append(draft)
        await take([result for result in results if not isinstance(result, Rejection)])
    proposals = tuple(_proposals(forms, list(tasks.values())[:_AT_ONCE], rows))
    answers = await family.answers(list(tasks.values()), strict)
    if len(answers) != len(tasks):
        raise Unsound(f"answers gave {len(answers)} texts for {len(tasks)} tasks")
    return Material(
        family=family,
        forms=forms,
        tasks=tuple(tasks.values()),
        answers=tuple(answers),
        drafts=tuple(drafts[:most]) or await _proposed(kind, proposals, strict),
        proposals=proposals,
        alike=tuple(alike),
        refused=tuple(refused),
        shortcuts=len(left_out),
    )


async def _draw(source: Source, forms: Mapping[Form, Kind[Any, Any]], verifier: Verifier, most: int) -> Material:
    """Items of a source, each question once."""
    name, tasks, refused = forms[Form.LONG].name, dict[str, Task](), list[str]()
    rng = numbers("check", name, "items")
    for _ in range(2 * most):
        number = rng.randrange(NUMBERS)
        item = source.draw(name, number)
        if isinstance(item, Rejection):
            refused.append(f"item {number}: {item.why}")
        else:
            tasks.setdefault(item.near_key, item)
        if len(tasks) + len(refused) >= most:
            break
    answers = await source.answers(list(tasks.values()), verifier)
    return Material(
        family=source,
        forms=forms,
        tasks=tuple(tasks.values()),
        answers=tuple(answers),
        drafts=(),
        proposals=(),
        refused=tuple(refused),
    )


def _drafts(family: Family, kind: Kind[Any, Any], row: Row, refused: list[str]) -> Sequence[Draft]:
    try:
        return family.drafts(row.row, kind)
    except InputError as error:
        refused.append(f"{row.where}: {error.what}")
        return []


def _proposals(
    forms: Mapping[Form, Kind[Any, Any]], tasks: Sequence[Task], rows: Sequence[Row]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """What the rows say that a teacher wrote, and what prompts show: the answers of earlier turns, and whole questions,
    which some families read as proposals too."""
    for form, kind in forms.items():
        for number in range(_PROPOSE_PROMPTS):
            prompt = kind.propose_prompt(tasks, numbers("check", kind.name, form.value, number))
            shown = [message["content"] for message in prompt.messages if message["role"] == "assistant"]
            for text in (*shown, prompt.messages[-1]["content"]):
                yield text, prompt.context
    context = forms[Form.LONG].propose_prompt(tasks, numbers("check", "context")).context
    for row in rows[:_AT_ONCE]:
        if isinstance(text := row.row.get("proposal"), str):
            yield text, context


async def _proposed(
    kind: Kind[Any, Any], proposals: Sequence[tuple[str, Mapping[str, str]]], verifier: Verifier
) -> tuple[Draft, ...]:
    """The drafts among the proposals that become tasks."""
    read = [kind.parse_proposal(text, context) for text, context in proposals]
    drafts: list[Draft] = [draft for draft in read if not isinstance(draft, Rejection)]
    results = await kind.validate(drafts, verifier)
    return tuple(draft for draft, result in zip(drafts, results, strict=True) if isinstance(result, Task))
