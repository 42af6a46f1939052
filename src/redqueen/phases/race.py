"""What a race is run with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from random import Random
from typing import Any

import torch

from redqueen.cluster.watched import WatchedWorkers
from redqueen.engine.flops import ModelSize
from redqueen.engine.protocol import Engine, MemberId, MemberState
from redqueen.evals.asking import Slices
from redqueen.evolution.breeding import scattered
from redqueen.evolution.variation import Operator
from redqueen.keys import Part, key, numbers
from redqueen.phases.checks import Checks
from redqueen.phases.journal import Journal
from redqueen.plugins import ESTIMATORS, MATCHMAKERS, REWARDS
from redqueen.population.matchmaking import Maker
from redqueen.population.members import SOLO, Role
from redqueen.rl.advantages import Estimator
from redqueen.rl.rewards import Shape
from redqueen.settings import Config
from redqueen.tasks.families import Families
from redqueen.tasks.guards import Guards
from redqueen.tasks.protocol import Kind, Prompt
from redqueen.tasks.sources import Source
from redqueen.verifier import Verifier

KNOWN = 1024
"""Encoded prompts that are kept: those of one step, with room."""


@dataclass(frozen=True, kw_only=True)
class Race:
    """What does not change from step to step."""

    settings: Config
    families: Families
    kinds: Mapping[str, Kind[Any, Any]]
    """Those that teachers are asked for and those of sources, in the settings' order."""
    engine: Engine
    size: ModelSize
    """Of the base and its adapters."""
    norms: Mapping[str, float]
    """Of the base's weights that members adapt, by module."""
    encode: Callable[[Sequence[Mapping[str, str]] | str], tuple[int, ...]]
    """Chat messages, or a text as it is, as the base's tokens."""
    positions: int
    """Tokens that the base can take, prompt and completion together."""
    verifier: Verifier
    guards: Guards
    operators: Mapping[str, Operator]
    journal: Journal
    checks: Checks
    base_name: str
    modules: tuple[str, ...]
    """The names of the base's modules, which a checkpoint's adapters are written with."""
    device: torch.device
    """Where the algebra of weights is done: children are made there, and members compared."""
    slices: Slices | None = None
    """Of benchmarks, that members are evaluated on."""
    workers: WatchedWorkers | None = None
    """Of a race on a cluster."""

    def adapter(self, member: MemberId) -> MemberId:
        """Whose weights a member has."""
        return SOLO if self.settings.population.single else member

    def tokens(self, prompt: Prompt) -> tuple[int, ...]:
        return self._tokens(tuple((message["role"], message["content"]) for message in prompt.messages))

    @cached_property
    def _tokens(self) -> Callable[[tuple[tuple[str, str], ...]], tuple[int, ...]]:
        """Kept for a while: a question is encoded when its task is proposed, and once more when it is put."""
        encode = self.encode
        return lru_cache(maxsize=KNOWN)(
            lambda chat: encode([{"role": role, "content": content} for role, content in chat])
        )

    @cached_property
    def other_families(self) -> bool:
        """Whether a step also records cells and guess rates by kind. Races of the default family alone keep the records
        that they always had, so that they can be compared bit for bit."""
        return self.settings.tasks.families != Config().tasks.families

    @property
    def rated(self) -> bool:
        """Whether anybody wins or loses: one adapter in both roles, and students without teachers, do not."""
        population = self.settings.population
        return population.teachers > 0 and not population.single

    def frozen(self, role: Role) -> bool:
        return self.settings.rl.frozen == f"{role}s" or self.settings.rl.update == "none"

    def fresh(self, seed: int) -> MemberState:
        """The weights of a new member: the base's, or near it where no gradient would lead it away."""
        fresh = self.engine.fresh()
        if self.settings.rl.update != "none":
            return fresh
        return scattered(fresh, seed, self.settings.evolution.scatter, self.norms)

    def temperature(self, role: Role) -> float:
        """Of what the role samples."""
        rl = self.settings.rl
        return rl.temperature if role is Role.STUDENT or rl.teacher_temperature is None else rl.teacher_temperature

    def key(self, step: int, *parts: Part) -> int:
        return key(self.settings.run.seed, step, *parts)

    def numbers(self, step: int, *parts: Part) -> Random:
        return numbers(self.settings.run.seed, step, *parts)

    @cached_property
    def maker(self) -> Maker:
        """Who makes the matches."""
        return MATCHMAKERS.get(self.settings.match.maker)

    @cached_property
    def reward(self) -> Shape:
        """What a task pays its teacher."""
        return REWARDS.get(self.settings.rl.reward)

    @cached_property
    def estimator(self) -> Estimator:
        """How rewards become advantages."""
        return ESTIMATORS.get(self.settings.rl.estimator)

    @cached_property
    def sources(self) -> dict[str, Source]:
        """Where items come from, by the kinds that no teacher is asked for."""
        found = {kind: self.families.source_of(kind) for kind in self.kinds}
        return {kind: source for kind, source in found.items() if source is not None}

    @cached_property
    def proposed(self) -> tuple[str, ...]:
        """The kinds that teachers are asked for."""
        return tuple(kind for kind in self.kinds if kind not in self.sources)

    @cached_property
    def shares(self) -> dict[str, float]:
        """How often each kind is asked for."""
        return self.shares_of(tuple(self.kinds))

    def shares_of(self, kinds: Sequence[str]) -> dict[str, float]:
        """How often each of these is, where there are no others."""
        weights = dict(zip(self.kinds, self.settings.tasks.mix or [1.0] * len(self.kinds), strict=True))
        total = sum(weights[kind] for kind in kinds)
        return {kind: weights[kind] / total for kind in kinds}
