"""The families of a race together: their kinds by name, and whatever has to be asked of the one that a task is of."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from redqueen.errors import ConfigError, InputError
from redqueen.plugins import FAMILIES, one_line
from redqueen.tasks.protocol import Complexity, Family, Form, Kind, Task
from redqueen.tasks.sources import Source
from redqueen.verifier import Verifier


@dataclass(frozen=True)
class Families:
    """Families that share no kind."""

    families: tuple[Family, ...]
    form: Form
    """Of all prompts."""
    unfenced: bool = False
    """Whether students' answers are also read without their fenced block."""

    @classmethod
    def of(cls, names: Sequence[str], form: str = Form.LONG, *, unfenced: bool = False, briefs: bool = True) -> Self:
        """Those of these names, loaded (`plugins.FAMILIES`) and found to be whole."""
        taken: dict[str, str] = {}
        families: list[Family] = []
        for name in names:
            family: Family = FAMILIES.get(name)
            family = family.reading_unfenced() if unfenced else family
            family = family if briefs else family.without_briefs()
            try:
                types = {kind: (made.name, made.task_type) for kind, made in family.kinds(Form(form)).items()}
                shown = {type(seed) for seed in getattr(family, "seeds", ())}
            except Exception as error:
                what = f"the task family {name} has no sound kinds and seeds: {one_line(error)}"
                raise ConfigError(what, "mend it where it is defined") from error
            drawn = isinstance(family, Source)
            if not types or not (drawn or shown >= {task_type for _, task_type in types.values()}):
                what = f"the task family {name} lacks kinds, or a seed of the type of their tasks"
                raise ConfigError(what, "give it one of each at least")
            for kind, (own_name, _) in types.items():
                if kind != own_name:
                    what = f"the task family {name} has the kind {own_name} under the name {kind}"
                    raise ConfigError(what, "give it one name")
                if taken.get(kind) == name:
                    raise ConfigError(f"tasks.families names {name} twice", "leave one of them out")
                if kind in taken:
                    raise ConfigError(f"{taken[kind]} and {name} both have the kind {kind}", "leave one of them out")
                taken[kind] = name
            families.append(family)
        return cls(tuple(families), Form(form), unfenced)

    @cached_property
    def kinds(self) -> dict[str, Kind[Any, Any]]:
        """All kinds by name."""
        return {name: kind for family in self.families for name, kind in family.kinds(self.form).items()}

    def chosen(self, names: Sequence[str]) -> dict[str, Kind[Any, Any]]:
        """The kinds that tasks.kinds names, in its order."""
        for name in names:
            if name not in self.kinds:
                raise ConfigError(
                    f"tasks.kinds names {json.dumps(name)}, and there is no such kind",
                    f"the kinds are {', '.join(self.kinds)}; tasks.families brings others",
                )
        return {name: self.kinds[name] for name in names}

    @property
    def seeds(self) -> tuple[Task, ...]:
        """The families' own, each once."""
        return tuple({seed.id: seed for family in self.families for seed in family.seeds}.values())

    @property
    def seed_files(self) -> dict[str, Path]:
        """The families' further seeds by name."""
        return {name: path for family in self.families for name, path in family.seed_files().items()}

    @property
    def exams(self) -> dict[str, Path]:
        """The families' own by name."""
        return {name: path for family in self.families for name, path in family.exams().items()}

    def kind_of_seed(self, row: Mapping[str, Any]) -> object:
        """The kind that a row of a file of seeds is read as."""
        own = self._by_kind.get(str(row.get("kind")))
        usual = [family.seed_kind for family in ([own] if own else self.families) if family.seed_kind]
        return usual[0] if usual else row.get("kind")

    def of_kind(self, kind: str) -> Family:
        if kind not in self._by_kind:
            raise InputError(f"no such task kind: {kind!r}", f"the kinds are {', '.join(self.kinds)}")
        return self._by_kind[kind]

    def source_of(self, kind: str) -> Source | None:
        """Where the items of a kind come from; None for a kind that teachers are asked for."""
        family = self.of_kind(kind)
        return family if isinstance(family, Source) else None

    def restore(self, record: Mapping[str, Any]) -> Task:
        """The task that `Task.record` wrote down."""
        self.of_kind(record["kind"])
        return self.kinds[record["kind"]].task_type.from_record(record)

    def cell(self, kind: str, descriptor: str, complexity: Complexity) -> str:
        """The cell of a task in the grid by which coverage is counted; kinds share none."""
        cell = self.of_kind(kind).cell(kind, descriptor, complexity)
        return cell if cell.startswith(f"{kind}/") else f"{kind}/{cell}"

    async def behaviours(self, tasks: Sequence[Task], verifier: Verifier) -> list[str | None]:
        """What each task does, in their order, as far as its family can tell."""
        return await self._each(tasks, lambda family, own: family.behaviours(own, verifier))

    async def shortcuts(self, tasks: Sequence[Task], verifier: Verifier) -> list[str | None]:
        """How each task, in their order, is solved without reasoning, as far as its family can tell."""
        return await self._each(tasks, lambda family, own: family.shortcuts(own, verifier))

    async def _each(
        self, tasks: Sequence[Task], ask: Callable[[Family, Sequence[Task]], Awaitable[list[str | None]]]
    ) -> list[str | None]:
        """What each task's family says of it."""
        by_place: dict[int, str | None] = {}
        for family in self.families:
            places = [place for place, task in enumerate(tasks) if self._by_kind.get(task.kind) is family]
            by_place |= zip(places, await ask(family, [tasks[place] for place in places]), strict=True)
        return [by_place[place] for place in range(len(tasks))]

    @cached_property
    def _by_kind(self) -> dict[str, Family]:
        return {kind: family for family in self.families for kind in family.kinds(self.form)}
