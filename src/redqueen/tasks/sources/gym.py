"""`rg:NAME`: a generator of reasoning-gym as a fixed source.

Items are drawn in this process, from a seed and nothing else: no text of a model is near. Answers are graded where the
generator's own grader can do no harm, in a guest; of generators without one the answer is compared here.
"""

import contextlib
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from redqueen.errors import ConfigError
from redqueen.plugins import name_and_values, one_line
from redqueen.tasks.checkers import ask, reading
from redqueen.tasks.protocol import Attempt, Form, Prompt, Task
from redqueen.tasks.sources import Source, SourceKind, verdict_on
from redqueen.tasks.verdicts import Grade, Reason, Rejection, Verdict
from redqueen.tasks.wording import ask as asked_in
from redqueen.tasks.wording import fenced
from redqueen.verifier import Checker, Limits, Verifier
from redqueen.verifier.guest import literals

PACKAGE = "reasoning-gym"
CHECKER = Checker(str(Path(__file__).parent / "guest" / "redqueen_gym.py"), ("reasoning_gym",))
LIMITS = Limits(cpu_s=3.0)
"""Of a process with several answers; sympy takes its time."""
MOST_CHARS = 100_000
"""Of what a grader needs to know of an item."""
_ENDINGS = {
    Form.LONG: "Think first. Then end your answer with exactly one fenced block, ```answer, that has the final answer "
    "and nothing else.",
    Form.DIRECT: "Answer with exactly one fenced block, ```answer, that has the final answer and nothing else.",
    Form.SHORT: "Write an answer.",
}


@dataclass(frozen=True, kw_only=True)
class GymTask(Task):
    """An item of a generator."""

    generator: str
    settings: str
    """Those that differ from the generator's own, as JSON."""
    seed: int
    """What it is drawn from."""
    asked: str
    """What a student is shown."""
    answer: str
    """A right one."""
    metadata: str = ""
    """What the generator's grader goes by, as canonical text."""
    compared: bool = False
    """The answer alone is right: nothing needs to be run to compare it."""

    @cached_property
    def near_key(self) -> str:
        return hashlib.sha256(f"{self.kind}\n{self.asked}".encode("utf-8", "backslashreplace")).hexdigest()

    @property
    def body(self) -> str:
        return self.asked

    @property
    def answer_chars(self) -> int:
        return len(self.answer)

    @property
    def item(self) -> str:
        """What the checker is given of it."""
        metadata = self.metadata or "{}"
        words = (self.generator, json.loads(self.settings), self.asked, self.answer)
        return f"({', '.join(ascii(word) for word in words)}, {metadata})"


@dataclass(frozen=True)
class GymKind(SourceKind[GymTask]):
    """Questions of one generator."""

    generator: str
    form: Form
    unfenced: bool = False
    """An answer without a fenced block is read as a whole."""

    @property
    def task_type(self) -> type[GymTask]:
        return GymTask

    @property
    def name(self) -> str:
        return f"rg_{self.generator}"

    @property
    def title(self) -> str:
        return f"answer a question of {self.generator.replace('_', ' ')}"

    def solve_prompt(self, task: GymTask) -> Prompt:
        return asked_in(task.asked, _ENDINGS[self.form])

    async def grade(self, attempts: Sequence[Attempt[GymTask]], verifier: Verifier) -> list[Verdict]:
        read = [reading(attempt, "answer", fenced=not self.unfenced) for attempt in attempts]
        verdicts: dict[int, Verdict] = {}
        calls: dict[int, tuple[str, str]] = {}
        for at, (attempt, answer) in enumerate(zip(attempts, read, strict=True)):
            if isinstance(answer, Verdict):
                verdicts[at] = answer
            elif attempt.task.compared:
                right = answer == attempt.task.answer
                verdicts[at] = Verdict(grade=Grade.CORRECT if right else Grade.WRONG)
            else:
                calls[at] = (attempt.task.item, answer)
        said = await ask(CHECKER, "grade", list(calls.values()), verifier, limits=LIMITS) if calls else []
        verdicts |= {at: verdict_on(one) for at, one in zip(calls, said, strict=True)}
        return [verdicts[at] for at in range(len(attempts))]


@dataclass(frozen=True)
class GymSource(Source):
    """One generator, with settings of its own."""

    generator: str
    settings: str = "{}"
    unfenced: bool = False

    def kinds(self, form: Form = Form.LONG) -> Mapping[str, GymKind]:
        kind = GymKind(self.generator, form, self.unfenced)
        return {kind.name: kind}

    def reading_unfenced(self) -> "GymSource":
        return GymSource(self.generator, self.settings, unfenced=True)

    def draw(self, kind: str, number: int) -> GymTask | Rejection:
        factory, base = import_module("reasoning_gym.factory"), import_module("reasoning_gym.dataset")
        try:
            # Some of them say on the way what they gave up.
            with contextlib.redirect_stdout(io.StringIO()):
                entry = factory.create_dataset(self.generator, seed=number, size=1, **json.loads(self.settings))[0]
            answer, metadata = entry["answer"], literals.encode(_plain(entry["metadata"]), MOST_CHARS)
        except (literals.Opaque, literals.TooLong):
            return Rejection(Reason.NOT_PLAIN, "what its grader goes by cannot be written down")
        except Exception as error:
            return Rejection(Reason.RAISES, f"it cannot be drawn: {one_line(error)}")
        compared = factory.DATASETS[self.generator][0].score_answer is base.ProceduralDataset.score_answer
        if answer is None and compared:
            return Rejection(Reason.UNANSWERABLE, "nothing is right")
        return GymTask(
            kind,
            generator=self.generator,
            settings=self.settings,
            seed=number,
            asked=entry["question"],
            answer="" if answer is None else str(answer),
            metadata="" if compared else metadata,
            compared=compared,
        )

    async def answers(self, tasks: Sequence[Task], verifier: Verifier) -> list[str | None]:
        return [fenced("answer", task.answer) if isinstance(task, GymTask) and task.answer else None for task in tasks]

    async def runs(self, tasks: Sequence[Task], texts: Sequence[str], word: str, verifier: Verifier) -> list[bool]:
        calls = {
            at: (task.item, text, word)
            for at, (task, text) in enumerate(zip(tasks, texts, strict=True))
            if isinstance(task, GymTask) and not task.compared
        }
        said = await ask(CHECKER, "runs", list(calls.values()), verifier, limits=LIMITS) if calls else []
        found = dict(zip(calls, said, strict=True))
        # What does not end, or takes its process along, may have executed anything.
        return [found.get(at, "no") != "no" for at in range(len(tasks))]


def named(text: str) -> GymSource:
    """The source of a generator's name, with settings after it: `chain_sum min_terms=3`."""
    name, values = name_and_values(text)
    if find_spec("reasoning_gym") is None:
        raise ConfigError(f"rg:{name} needs {PACKAGE}, which is not installed", "run `pip install 'redqueen[rg]'`")
    generators = import_module("reasoning_gym.factory").DATASETS
    if name not in generators or name == "composite":
        raise ConfigError(f"{PACKAGE} has no generator {name}", f"it has {', '.join(sorted(generators))}")
    settings = {key: _value(value) for key, value in values.items()}
    try:
        config = generators[name][1](**settings)
        if hasattr(config, "validate"):
            config.validate()
    except Exception as error:
        what = f"{PACKAGE} refuses rg:{text}: {one_line(error)}"
        raise ConfigError(what, "give settings that the generator has") from error
    return GymSource(name, json.dumps(settings, sort_keys=True))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _plain(value: Any) -> Any:
    """The value with types of Python's own alone: of numpy's numbers, and of classes derived from plain ones."""
    if hasattr(value, "item") and hasattr(value, "dtype"):
        return _plain(value.tolist())
    match value:
        case dict():
            return {_plain(key): _plain(each) for key, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case tuple():
            return tuple(_plain(each) for each in value)
        case str():
            return str(value)
    return value
