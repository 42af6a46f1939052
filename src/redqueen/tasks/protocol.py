"""What a family of tasks provides, and the frozen data that pass between teacher, verifier and student.

    references -> propose_prompt -> text -> parse_proposal -> Draft -> validate -> Task
    Task -> solve_prompt -> text -> Attempt -> grade -> Verdict

Nothing here knows of models: prompts are chat messages, answers are text. A family may derive its own `Draft`
and `Task`. `verdicts` has what becomes of texts.
"""

import dataclasses
import hashlib
import json
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, Generic, Protocol, Self, TypedDict, TypeVar

from redqueen.errors import InputError
from redqueen.tasks.verdicts import Reason, Rejection, Verdict
from redqueen.verifier import Verifier


class Form(StrEnum):
    """What a prompt says."""

    SHORT = "short"
    """As little as possible, for small bases that were trained on it."""
    LONG = "long"
    """Everything, and that students should think first: for instruction-tuned bases."""
    DIRECT = "direct"
    """The same, and that students should answer at once: for bases that lose the form when they think."""


class Message(TypedDict):
    """One chat message."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a member is asked."""

    messages: tuple[Message, ...]
    context: Mapping[str, str] = field(default_factory=dict)
    """What reading the answer needs, as plain text (code_f: the program that the inputs are for)."""


@dataclass(frozen=True)
class Draft:
    """A proposal that reads well and has not been run."""

    kind: str

    def rejected(self, reason: Reason, detail: str = "", runs: tuple[str, ...] = ()) -> Rejection:
        """Why it is no task. Families whose drafts have a program give it too."""
        return Rejection(reason, detail, runs=runs)


@dataclass(frozen=True, slots=True)
class Complexity:
    """How complex a task is: the figures of its program, or of what stands for one. All 0 where there is none."""

    depth: int = 0
    """Nodes on the longest path down the syntax tree, the module included; `x = 1` has 3. Operators and contexts are
    not counted."""
    cyclomatic: int = 0
    """One more than the program has decisions."""
    lines: int = 0
    """Of source: without blank lines, lines of comment and strings that stand alone."""
    variables: int = 0
    """Names that are bound, scope by scope: parameters, targets of assignments, loops and comprehensions, of `with`,
    `except` and patterns. Not functions, classes, imports and attributes."""

    def bands(self, **highest: Sequence[int]) -> str:
        """`d1c0l2`: the band that each of these figures is in, from 0, by the highest value of all bands but the last,
        which has no end."""
        return "".join(f"{name[0]}{bisect_left(ends, getattr(self, name))}" for name, ends in highest.items())


NO_COMPLEXITY = Complexity()


@dataclass(frozen=True)
class Task:
    """What a task is; how it is judged is its kind's business. Families derive from it and add fields."""

    kind: str

    @cached_property
    def id(self) -> str:
        """SHA-256 of the content: equal tasks have equal identities, in every run and on every machine."""
        text = json.dumps(self.record(), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @cached_property
    def near_key(self) -> str:
        """Equal for tasks that differ in nothing that matters."""
        return self.id

    @property
    def body_key(self) -> str:
        """Equal for tasks about the same thing, of whatever kind: a code task's program. References never repeat it."""
        return self.near_key

    @cached_property
    def shape_key(self) -> str:
        """Equal for tasks that look new and are not, such as programs that differ in their constants alone."""
        return self.near_key

    @property
    def part_keys(self) -> frozenset[str]:
        """The keys that a held-out set would have of it, or of something in it."""
        return frozenset({self.near_key})

    @cached_property
    def descriptor(self) -> str:
        """What type of problem it is, in one of a few dozen words: for counting how varied tasks are."""
        return self.kind

    @cached_property
    def complexity(self) -> Complexity:
        """Its means over a step are metrics, and the user's caps are about it."""
        return NO_COMPLEXITY

    @property
    def body(self) -> str | None:
        """What it is about, as text: a code task's program. None where its question says all."""
        return None

    @property
    def question(self) -> str:
        """What is asked about its body, for a person, in one line."""
        return ""

    @property
    def answer_chars(self) -> int:
        """How long the answer is that a student has to find; 0, which is never too long, where there is no telling."""
        return 0

    @property
    def guess_key(self) -> str | None:
        """The one answer that is right, where guessing what is often right may pay; None where it cannot."""
        return None

    @property
    def original(self) -> bool:
        """Whether it holds something of its teacher's own that later proposals may start from."""
        return True

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything in it that is text, for the user's patterns."""
        values = [value for name, value in self.record().items() if name != "kind"]
        parts = [part for value in values for part in (value if isinstance(value, list | tuple) else [value])]
        return tuple(part for part in parts if isinstance(part, str))

    def rejected(self, reason: Reason, detail: str = "", runs: tuple[str, ...] = ()) -> Rejection:
        """Why it is no task after all. Families whose tasks have a program give it too, and what it gave before these
        runs."""
        return Rejection(reason, detail, runs=runs)

    def record(self) -> dict[str, Any]:
        """The content as plain JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The task whose record this is; lists, which is what JSON makes of tuples, become tuples again."""
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
        return cls(**fields)


DraftT = TypeVar("DraftT", bound=Draft)
TaskT = TypeVar("TaskT", bound=Task)


@dataclass(frozen=True, slots=True)
class Attempt(Generic[TaskT]):
    """A student's text for a task."""

    task: TaskT
    text: str
    cut: bool = False
    """The sampler stopped at the length limit; such an attempt is malformed whatever it says."""


class Kind(Protocol[DraftT, TaskT]):
    """One kind of task."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """What a student has to do, in a few words."""
        ...

    @property
    def task_type(self) -> type[TaskT]:
        """The class whose `from_record` restores a task of this kind."""
        ...

    def propose_prompt(self, references: Sequence[TaskT], rng: Random) -> Prompt:
        """Ask for a task, showing some earlier ones drawn with `rng`; with no references, the family's own seeds."""
        ...

    def parse_proposal(self, text: str, context: Mapping[str, str]) -> DraftT | Rejection:
        """Read a teacher's text; `context` is its prompt's. Never raises, whatever the text."""
        ...

    async def validate(self, drafts: Sequence[DraftT], verifier: Verifier) -> list[TaskT | Rejection]:
        """Run a batch of drafts; one task or rejection each, in their order."""
        ...

    def solve_prompt(self, task: TaskT) -> Prompt:
        """Ask for a solution. Nothing that would give it away is in there."""
        ...

    async def grade(self, attempts: Sequence[Attempt[TaskT]], verifier: Verifier) -> list[Verdict]:
        """Judge a batch of attempts; one verdict each, in their order. Never raises, whatever the texts.

        Where judging runs the task's own program, the truth is judged beside the attempts; if it fails, they are void.
        """
        ...


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What is held out, as keys."""

    keys: frozenset[str] = frozenset()
    """Those that `Task.part_keys` of a task must not have."""
    programs: int = 0
    """How many can be told again."""
    unreadable: int = 0
    """How many cannot: they are no Python of this version, or have no function."""


class Family(ABC):
    """All that knows one sort of tasks. It must have kinds and seeds; whatever else it does not say has a default."""

    seeds: Sequence[Task]
    """What a race begins with, while there is no archive to draw references from. One at least."""
    seed_kind: str | None = None
    """The kind of all rows in a user's file of seeds; None where each row names its own."""

    @abstractmethod
    def kinds(self, form: Form = Form.LONG) -> Mapping[str, Kind[Any, Any]]:
        """Its kinds by name, with prompts of this form."""

    def reading_unfenced(self) -> "Family":
        """The family that also reads answers without their fenced block, where there is one way to read them; itself
        where it knows of no such answers."""
        return self

    def without_briefs(self) -> "Family":
        """The family that leaves to teachers what their tasks are about; itself where it never says."""
        return self

    def drafts(self, row: Mapping[str, Any], kind: Kind[Any, Any]) -> Sequence[Draft]:
        """What a row of a user's file (seeds, an exam) has, to be validated as a teacher's proposals are. Unless the
        family has a form of its own, that is the text that a teacher would write, under "proposal"."""
        form = '{"kind": "...", "proposal": "what a teacher would write"}'
        text = row.get("proposal")
        if not isinstance(text, str):
            raise InputError("no text under 'proposal'", f"a row is {form}")
        draft = kind.parse_proposal(text, {})
        if isinstance(draft, Rejection):
            raise InputError(f"the proposal is refused: {draft.why}", f"a row is {form}")
        return [draft]

    def seed_files(self) -> Mapping[str, Path]:
        """Further seeds by name, as files of such rows."""
        return {}

    def exams(self) -> Mapping[str, Path]:
        """Its exams by name, as files of such rows. The first is for all bases that no other one is named after."""
        return {}

    def held_out(self, path: Path) -> HeldOut:
        """What a file keeps out of a race's tasks; nothing where the family has no such files."""
        return HeldOut()

    def cell(self, kind: str, descriptor: str, complexity: Complexity) -> str:
        """The cell of a task in the grid by which coverage is counted, from what the records keep of it."""
        return f"{kind}/{descriptor}"

    async def behaviours(self, tasks: Sequence[Task], verifier: Verifier) -> list[str | None]:
        """What each task does, as a hash that tasks share that do the same; None where there is no telling."""
        return [None] * len(tasks)

    async def answers(self, tasks: Sequence[Task], verifier: Verifier) -> list[str | None]:
        """For each task a text that a student could write and that is right, in the answer's own form; None where the
        family has none. `redqueen check` tries the family with them."""
        return [None] * len(tasks)

    async def shortcuts(self, tasks: Sequence[Task], verifier: Verifier) -> list[str | None]:
        """For each task the name, in a word, of a way to solve it without reasoning; None where there is none. Races
        refuse such tasks (`guard.shortcuts`), exams report them apart."""
        return [None] * len(tasks)
