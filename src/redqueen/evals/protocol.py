"""What a benchmark is: rows to load, prompts to ask, texts to read, answers to grade."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal, Protocol, runtime_checkable

from redqueen.tasks.protocol import Message
from redqueen.verifier import Verifier

Row = Mapping[str, Any]
"""One row of a benchmark's file."""
Suite = Literal["code", "math", "knowledge", "execution", "race"]
"""Of the last are benchmarks that are asked as a race asks; another has the same rows."""


class Prompts(StrEnum):
    """How a model is asked. A score means nothing without it: the same weights differ by tens of points."""

    CHAT = "chat"
    """As a user's message, through the base's chat template."""
    RAW = "raw"
    """As a text to go on with, after worked examples where the task needs them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What is asked."""

    text: str
    """The user's message, or the text to go on with."""
    before: Sequence[Mapping[str, str]] = ()
    """Messages of the chat that come before it."""
    prefill: str = ""
    """How the reply begins; in chat only."""
    stop: tuple[str, ...] = ()
    """Strings that end the reply."""

    @classmethod
    def of(cls, messages: Sequence[Message]) -> "Prompt":
        """The last of a chat's messages, after the others."""
        *before, last = ({"role": message["role"], "content": message["content"]} for message in messages)
        return cls(text=last["content"], before=before)


@dataclass(frozen=True, slots=True)
class Item:
    """One task of a benchmark."""

    id: str
    row: Row


@dataclass(frozen=True, slots=True)
class Reply:
    """A text that somebody gave to an item."""

    item: Item
    text: str
    cut: bool
    """It ended at the longest that was allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What became of one reply."""

    correct: bool
    vote: str | None = None
    """What members that agree have in common, by which a population votes; None for an answer that is none."""
    parts: Mapping[str, bool] = field(default_factory=dict)
    """Verdicts that are reported beside the main one."""
    why: str = ""
    """In a word, why it is wrong: the status of the program, `no answer`."""
    answer: str | None = None
    """What was read out of the reply; None where nothing could be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """Where a model hub keeps a benchmark: a data set, one of its configurations, and a split."""

    repository: str
    config: str
    split: str
    rows: int
    """How many there must be."""
    files: tuple[str, ...] = ()
    """The files of it; when left out, those of the configuration that the hub has converted."""


class Benchmark(Protocol):
    """Items that can be put to a model, and how replies are judged."""

    name: str
    title: str

    def prompt(self, item: Item, prompts: Prompts) -> Prompt: ...

    async def judge(self, replies: Sequence[Reply], prompts: Prompts, verifier: Verifier) -> list[Grade]: ...


class Published(ABC):
    """A benchmark that everybody knows, one file in `benchmarks/`: an answer is read out of a reply, then graded."""

    name: str
    """On the command line, and of its folder."""
    folder: str | None = None
    """Of its rows, where several benchmarks share them."""
    title: str
    suite: Suite
    rows: int
    """Of the whole of it."""
    sha256: str = ""
    """The beginning of that of the file that our figures were made with; empty where there are none."""
    hub: Hub | None = None
    """Where it is fetched from; None where the user has it in a folder."""
    beside: str | None = None
    """A further file that it uses, relative to its own folder, and where the hub has that."""
    hub_beside: Hub | None = None
    tokens: int
    """The longest answer, unless told otherwise."""
    graded: str
    """How, in a few words that stand beside every score."""

    @abstractmethod
    def from_hub(self, row: Row, number: int) -> dict[str, Any]:
        """A row of the hub's, as our files have it."""

    @abstractmethod
    def load(self, rows: Sequence[Row], beside: Sequence[Row] = ()) -> list[Item]:
        """The tasks; raises KeyError or ValueError for rows that are not this benchmark's. `beside` are the rows of the
        further file, none where it is not there."""

    @abstractmethod
    def prompt(self, item: Item, prompts: Prompts) -> Prompt: ...

    @abstractmethod
    def extract(self, item: Item, text: str, prompts: Prompts) -> str | None:
        """The answer in what was said; None where there is none."""

    @abstractmethod
    async def grade(self, answers: Sequence[tuple[Item, str | None]], verifier: Verifier) -> list[Grade]: ...

    async def judge(self, replies: Sequence[Reply], prompts: Prompts, verifier: Verifier) -> list[Grade]:
        answers = [(reply.item, self.extract(reply.item, reply.text, prompts)) for reply in replies]
        grades = await self.grade(answers, verifier)
        return [replace(grade, answer=answer) for grade, (_, answer) in zip(grades, answers, strict=True)]


@runtime_checkable
class SaysHow(Protocol):
    """A benchmark whose grading depends on its rows."""

    def graded_of(self, items: Sequence[Item]) -> str:
        """How these are graded, in a few words."""
        ...


@runtime_checkable
class HasSubsets(Protocol):
    """A benchmark whose items are of several sorts, with figures of their own beside those of the whole."""

    async def subsets(self, items: Sequence[Item], verifier: Verifier) -> list[str]:
        """The subset that each item belongs to."""
        ...
