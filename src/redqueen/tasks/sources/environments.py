"""`vf:TASKSET`: a taskset of verifiers (v1) as a fixed source: one question, one answer, and rewards that are code.

Tasks are loaded in this process, where no text of a model is near. Rewards meet answers in a guest. What needs more
than an answer (tools, a container, a judge, further turns) is refused.
"""

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from redqueen.errors import ConfigError
from redqueen.plugins import one_line
from redqueen.tasks.blocks import CUT_IN_BLOCK, MAX_TEXT_CHARS, is_text
from redqueen.tasks.checkers import ask
from redqueen.tasks.protocol import Attempt, Form, Message, Prompt, Task
from redqueen.tasks.sources import Source, SourceKind, verdict_on
from redqueen.tasks.verdicts import CUT_ATTEMPT, Reason, Rejection, Verdict, malformed
from redqueen.verifier import Checker, Limits, Verifier

PACKAGE = "verifiers"
MOST_ITEMS = 10_000
"""Of a taskset, the first ones."""
LIMITS = Limits(cpu_s=3.0)
FORMS = ("{}", "\\boxed{{{}}}", "<answer>{}</answer>", "#### {}", "The answer is {}.")
"""In which tasksets want answers to be written: the first that is right at most of a few tasks is theirs."""
_TRIED = 8
_CHECKER = str(Path(__file__).parent / "guest" / "redqueen_taskset.py")


@dataclass(frozen=True, kw_only=True)
class EnvironmentTask(Task):
    """A task of a taskset."""

    module: str
    made: str
    """The class that it is of, in the module."""
    data: str
    """As JSON, without what is left as it is."""

    @cached_property
    def fields(self) -> dict[str, Any]:
        return json.loads(self.data)

    @property
    def messages(self) -> tuple[Message, ...]:
        prompt, system = self.fields["prompt"], self.fields.get("system_prompt")
        asked = [("user", prompt)] if isinstance(prompt, str) else [(turn["role"], turn["content"]) for turn in prompt]
        turns = [*([("system", system)] if system else []), *asked]
        return tuple(Message(role=role, content=content) for role, content in turns)

    @property
    def asked(self) -> str:
        return self.messages[-1]["content"]

    @cached_property
    def near_key(self) -> str:
        """Of what is asked: tasks that differ in their place in the taskset alone are the same."""
        return sha256(json.dumps([self.kind, *map(dict, self.messages)]).encode("ascii")).hexdigest()

    @property
    def body(self) -> str:
        return self.asked

    @property
    def gold(self) -> str | None:
        """The right answer, where the data has one under its usual name."""
        answer = self.fields.get("answer")
        return str(answer) if isinstance(answer, str | int | float) and str(answer).strip() else None

    @property
    def item(self) -> str:
        """What the checker is given of it."""
        return f"({', '.join(map(ascii, (self.module, self.made, self.asked, self.data)))})"


@dataclass(frozen=True)
class EnvironmentKind(SourceKind[EnvironmentTask]):
    """Tasks of one taskset. What an answer looks like is its own business: the whole text is graded."""

    taskset: str
    checker: Checker

    @property
    def name(self) -> str:
        return "vf_" + "".join(letter if letter.isalnum() else "_" for letter in self.taskset)

    @property
    def title(self) -> str:
        return f"answer as the taskset {self.taskset} asks"

    @property
    def task_type(self) -> type[EnvironmentTask]:
        return EnvironmentTask

    def solve_prompt(self, task: EnvironmentTask) -> Prompt:
        return Prompt(task.messages)

    async def grade(self, attempts: Sequence[Attempt[EnvironmentTask]], verifier: Verifier) -> list[Verdict]:
        read = [_read(attempt) for attempt in attempts]
        calls = {
            at: (attempt.task.item, text)
            for at, (attempt, text) in enumerate(zip(attempts, read, strict=True))
            if isinstance(text, str)
        }
        said = await ask(self.checker, "grade", list(calls.values()), verifier, limits=LIMITS) if calls else []
        judged = {at: verdict_on(one) for at, one in zip(calls, said, strict=True)}
        return [text if isinstance(text, Verdict) else judged[at] for at, text in enumerate(read)]


def _read(attempt: Attempt[Any]) -> str | Verdict:
    """What a student says after its thoughts."""
    if attempt.cut:
        return CUT_ATTEMPT
    if len(attempt.text) > MAX_TEXT_CHARS:
        return malformed(Rejection(Reason.TEXT_TOO_LONG, f"more than {MAX_TEXT_CHARS} characters"))
    if not is_text(attempt.text):
        return malformed(Rejection(Reason.NOT_TEXT, "a lone surrogate or a NUL"))
    text = attempt.text.rpartition("</think>")[2].strip()
    if "<think>" in text:
        return malformed(Rejection(Reason.CUT, "ends inside <think>"))
    if text.count("```") % 2:
        return malformed(Rejection(Reason.CUT, CUT_IN_BLOCK))
    return text or malformed(Rejection(Reason.NO_ANSWER, "no text"))


@dataclass(frozen=True)
class EnvironmentSource(Source):
    """One taskset."""

    taskset: str
    items: tuple[EnvironmentTask, ...]
    checker: Checker

    def kinds(self, form: Form = Form.LONG) -> Mapping[str, EnvironmentKind]:
        kind = EnvironmentKind(self.taskset, self.checker)
        return {kind.name: kind}

    def draw(self, kind: str, number: int) -> EnvironmentTask:
        return self.items[number % len(self.items)]

    async def answers(self, tasks: Sequence[Task], verifier: Verifier) -> list[str | None]:
        [kind] = self.kinds().values()
        known = [task for task in tasks if isinstance(task, EnvironmentTask) and task.gold is not None][:_TRIED]
        right: dict[str, int] = {}
        for form in FORMS:
            verdicts = await kind.grade([Attempt(task, form.format(task.gold)) for task in known], verifier)
            right[form] = sum(verdict.correct for verdict in verdicts)
        form = max(FORMS, key=lambda form: right[form])
        golds = [task.gold if isinstance(task, EnvironmentTask) else None for task in tasks]
        return [None if gold is None else form.format(gold) for gold in golds]

    async def runs(self, tasks: Sequence[Task], texts: Sequence[str], word: str, verifier: Verifier) -> list[bool]:
        items = [task.item for task in tasks if isinstance(task, EnvironmentTask)]
        calls = [(item, text, word) for item, text in zip(items, texts, strict=True)]
        # What does not end, or takes its process along, may have executed anything.
        return [said != "no" for said in await ask(self.checker, "runs", calls, verifier, limits=LIMITS)]


def named(taskset: str) -> EnvironmentSource:
    """The source of a taskset that is installed, by its id."""
    if find_spec("verifiers") is None:
        raise ConfigError(f"vf:{taskset} needs {PACKAGE}, which is not installed", "run `pip install 'redqueen[vf]'`")
    try:
        loaders, generic, vf = map(
            import_module, ("verifiers.v1.utils.loaders", "verifiers.v1.utils.generic", "verifiers.v1")
        )
        made = loaders.taskset_class(taskset)
        config = (generic.concrete_type(made, vf.TasksetConfig) or vf.TasksetConfig)(id=taskset)
        tasks = list(islice(made(config), MOST_ITEMS))
    except Exception as error:
        raise ConfigError(f"the taskset {taskset} cannot be loaded: {one_line(error)}", "install or mend it") from error
    own = [*_wants_more(taskset, loaders), *(what for task in tasks[:1] for what in _task_wants_more(task))]
    if not tasks or own:
        what = f"the taskset {taskset} has {', '.join(own) if own else 'no tasks'}"
        raise ConfigError(what, "name one of single questions that code alone grades")
    module = type(tasks[0]).__module__
    imports = ("verifiers.v1", *dict.fromkeys((loaders.import_taskset(taskset).__name__, module)))
    kind = EnvironmentKind(taskset, Checker(_CHECKER, imports))
    return EnvironmentSource(taskset, tuple(_item(kind.name, task) for task in tasks), kind.checker)


def _item(kind: str, task: Any) -> EnvironmentTask:
    data = task.data.model_dump_json(exclude_defaults=True)
    return EnvironmentTask(kind, module=type(task).__module__, made=type(task).__qualname__, data=data)


def _wants_more(taskset: str, loaders: Any) -> Iterator[str]:
    """What a taskset brings along beside its tasks."""
    if loaders.environment_class(taskset).__name__ != "SingleAgentEnv":
        yield "an environment of its own"
    if loaders.default_harness_id(taskset) == taskset:
        yield "a harness of its own"


def _task_wants_more(task: Any) -> Iterator[str]:
    """What a task needs beside an answer."""
    made, data = type(task), task.data
    if made.toolsets(task.config) or data.skills:
        yield "tools"
    if made.NEEDS_CONTAINER or data.image:
        yield "a container"
    if task.config.judges:
        yield "judges"
    base = next(cls for cls in made.__mro__ if cls.__module__ == "verifiers.v1.task")
    if any(getattr(made, hook) is not getattr(base, hook) for hook in ("setup", "finalize", "stage_verifier")):
        yield "something to prepare in a runtime"
    rewards = task.hooks("reward")
    if not rewards:
        yield "no rewards"
    if any(_needs_runtime(reward) for reward in rewards):
        yield "rewards that need a runtime"
    turns = [] if isinstance(data.prompt, str) else data.prompt
    if turns is None or any(not isinstance(turn.content, str) for turn in turns):
        yield "prompts that are more than text"


def _needs_runtime(reward: Any) -> bool:
    parameter = inspect.signature(reward).parameters.get("runtime")
    return parameter is not None and parameter.default is inspect.Parameter.empty
