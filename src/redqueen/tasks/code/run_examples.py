"""Runs the bundled examples through the real verifier and graders, and says whether each came out as stated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from redqueen.tasks.code import FAMILY
from redqueen.tasks.code.examples import ATTEMPTS, PROPOSALS, ExampleAttempt, ExampleProposal
from redqueen.tasks.protocol import Attempt, Task
from redqueen.tasks.verdicts import Rejection, Verdict
from redqueen.verifier import Verifier


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One example: what it is, what should become of it, what became of it."""

    name: str
    kind: str
    what: str
    expected: str
    got: str
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.got == self.expected


@dataclass(frozen=True, slots=True)
class ExamplesReport:
    """What became of all of them."""

    rows: tuple[Row, ...]
    shown: str
    """One task as a student sees it."""

    @property
    def ok(self) -> bool:
        """Whether every example came out as stated."""
        return all(row.ok for row in self.rows)

    def render(self, console: Console) -> None:
        """One task in full, one table of all, and one line under it."""
        console.print("A teacher proposed this task, and the verifier accepted it:\n")
        console.print(Text(self.shown, style="dim"))
        console.print("\nThese are examples that come with the package, made up and not the output of a model.")
        console.print("code_o: predict the output; code_i: find an input; code_f: write the function.\n")
        table = Table(title="What the verifier and the graders make of them")
        for column in ("example", "kind", "what it is", "verdict"):
            table.add_column(column)
        for row in self.rows:
            table.add_row(Text(row.name), row.kind, Text(row.what), _verdict(row))
        console.print(table)
        wrong = sum(not row.ok for row in self.rows)
        said = "all as stated" if not wrong else f"{wrong} not as stated"
        console.print(f"{len(self.rows)} examples, {said}", style="green" if not wrong else "red")


def _verdict(row: Row) -> Text:
    if not row.ok:
        return Text(f"{row.got}, should be {row.expected}", style="bold red")
    style = {"task": "green", "correct": "green"}.get(row.got, "yellow")
    return Text(f"{row.got} ({row.detail})" if row.detail else row.got, style=style)


async def run_examples(verifier: Verifier) -> ExamplesReport:
    """Every example proposal, then every example attempt."""
    tasks: dict[str, Task | Rejection] = {}
    for kind in FAMILY.kinds():
        tasks |= await _propose(kind, [example for example in PROPOSALS if example.kind == kind], verifier)
    rows = [_proposal_row(example, tasks[example.name]) for example in PROPOSALS]
    for kind in FAMILY.kinds():
        rows += await _attempt(kind, tasks, verifier)
    first = next(task for task in tasks.values() if isinstance(task, Task))
    shown = FAMILY.kinds()[first.kind].solve_prompt(first).messages[-1]["content"]
    return ExamplesReport(tuple(rows), shown)


async def _propose(name: str, examples: Sequence[ExampleProposal], verifier: Verifier) -> dict[str, Task | Rejection]:
    kind = FAMILY.kinds()[name]
    parsed = {example.name: kind.parse_proposal(example.text, example.context) for example in examples}
    drafts = {name: draft for name, draft in parsed.items() if not isinstance(draft, Rejection)}
    valid = dict(zip(drafts, await kind.validate(list(drafts.values()), verifier), strict=True))
    return {name: valid.get(name, draft) for name, draft in parsed.items()}


async def _attempt(name: str, tasks: Mapping[str, Task | Rejection], verifier: Verifier) -> list[Row]:
    examples, attempts = [], []
    for example in ATTEMPTS:
        task = tasks[example.proposal]
        if isinstance(task, Task) and task.kind == name:
            examples.append(example)
            attempts.append(Attempt(task, example.text))
    verdicts = await FAMILY.kinds()[name].grade(attempts, verifier)
    return [_attempt_row(example, name, verdict) for example, verdict in zip(examples, verdicts, strict=True)]


def _proposal_row(example: ExampleProposal, became: Task | Rejection) -> Row:
    expected = f"rejected: {example.reason}" if example.reason else "task"
    if isinstance(became, Rejection):
        return Row(
            name=example.name,
            kind=example.kind,
            what=example.what,
            expected=expected,
            got=f"rejected: {became.reason}",
            detail=became.detail,
        )
    return Row(
        name=example.name, kind=example.kind, what=example.what, expected=expected, got="task", detail=became.id[:12]
    )


def _attempt_row(example: ExampleAttempt, kind: str, verdict: Verdict) -> Row:
    detail = verdict.reason or (verdict.status if not verdict.correct else None) or ""
    return Row(
        name=f"{example.proposal}, attempt",
        kind=kind,
        what=example.what,
        expected=example.grade,
        got=verdict.grade,
        detail=detail,
    )
