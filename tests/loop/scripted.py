"""A race whose texts are written down beforehand: what is tested is what becomes of them."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from tasks.proposing import CODE

from loop.making import Shelf
from redqueen.analysis.coverage import Coverage
from redqueen.analysis.watch import Watch
from redqueen.engine.flops import ModelSize
from redqueen.engine.protocol import (
    Ask,
    Chain,
    MemberState,
    Recipe,
    Sample,
    SampleRequest,
    Score,
    ScoreRequest,
    Stop,
    Trajectory,
    UpdateStats,
)
from redqueen.phases.checks import Checks
from redqueen.phases.journal import Journal
from redqueen.phases.race import Race
from redqueen.phases.state import Health, State
from redqueen.population.board import Board
from redqueen.population.members import Role, founders
from redqueen.rl.rollout import Proposal, Rollout
from redqueen.settings import Config
from redqueen.tasks.archive import Archive
from redqueen.tasks.guards import Guards
from redqueen.tasks.protocol import Task
from redqueen.tasks.verdicts import Grade, Rejection, Verdict
from redqueen.verifier import Job, Outcome


def sample(text: str = "", tokens: int = 1, stop: Stop = Stop.EOS, logprob: float = -0.5) -> Sample:
    return Sample(tuple(range(tokens)), (logprob,) * tokens, stop, text)


T = TypeVar("T")


class Streaming:
    """What engines of tests have in common: chains ask in their order and are answered in another."""

    async def sample(self, requests: Sequence[SampleRequest]) -> list[Sample]:
        raise NotImplementedError

    async def stream(self, chains: Sequence[Chain[T]]) -> list[T]:
        """All that is asked at the same time is one batch."""
        waiting: list[tuple[Sequence[SampleRequest], asyncio.Future[list[Sample]]]] = []

        async def ask(requests: Sequence[SampleRequest]) -> list[Sample]:
            if not requests:
                return []
            answer = asyncio.get_running_loop().create_future()
            waiting.append((requests, answer))
            return await answer

        tasks = [asyncio.create_task(_run(chain, ask)) for chain in chains]
        try:
            while not all(task.done() for task in tasks):
                await asyncio.sleep(0)
                batch, waiting[:] = list(waiting), []
                if not batch:
                    continue
                samples = iter(await self.sample([request for requests, _ in batch for request in requests]))
                answers = [(answer, [next(samples) for _ in requests]) for requests, answer in batch]
                for answer, own in reversed(answers):
                    answer.set_result(own)
            return [task.result() for task in tasks]
        finally:
            for task in tasks:
                task.cancel()


async def _run(chain: Chain[T], ask: Ask) -> T:
    return await chain(ask)


@dataclass
class Script(Streaming):
    """An engine that answers the n-th request of a batch with the n-th sample, in an order of its own."""

    samples: Sequence[Sample] = ()
    batch: list[Trajectory] = field(default_factory=list)
    broken: tuple[str, ...] = ()
    """Members whose gradient is not finite."""

    async def sample(self, requests: Sequence[SampleRequest]) -> list[Sample]:
        assert len(requests) == len(self.samples)
        return list(self.samples)

    async def update(self, batch: Sequence[Trajectory], recipe: Recipe) -> dict[str, UpdateStats]:
        self.batch = list(batch)
        members = dict.fromkeys(row.member for row in batch)
        return {
            id: UpdateStats(
                sequences=1,
                tokens=1,
                trained_tokens=1,
                loss=0.0,
                grad_norm=1.0,
                entropy=1.0,
                ratio_mean=1.0,
                ratio_max=1.0,
                kl=0.0,
                skipped=id in self.broken,
            )
            for id in members
        }

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Score]:
        return [Score((-1.0,) * len(request.completion)) for request in requests]

    def read(self, member: str, *, optimiser: bool = False) -> MemberState:
        raise NotImplementedError

    def look(self, members: Sequence[str], make: Callable[[Sequence[MemberState]], T]) -> T:
        raise NotImplementedError

    def write(self, member: str, state: MemberState) -> None:
        raise NotImplementedError

    def fresh(self) -> MemberState:
        raise NotImplementedError

    def remove(self, member: str) -> None:
        raise NotImplementedError


class NoVerifier:
    async def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        raise NotImplementedError


def race(changes: dict[str, Any] | None = None, engine: Script | None = None, verifier: Any = None) -> Race:
    return Race(
        settings=Config.model_validate(changes or {}),
        families=CODE,
        kinds=CODE.kinds,
        engine=engine or Script(),
        size=ModelSize(blocks=100, head=10, attention=1, adapter=5),
        norms={},
        encode=lambda messages: tuple(len(message["content"]) for message in messages),
        positions=10_000,
        verifier=verifier or NoVerifier(),
        guards=Guards(),
        operators={},
        journal=Journal(Shelf(), CODE.restore),
        checks=Checks(),
        base_name="none",
        modules=(),
        device=torch.device("cpu"),
    )


def state(teachers: int = 2, students: int = 2, health: Health | None = None) -> State:
    population = founders(teachers, students)
    return State(
        step=0,
        population=population,
        watch=Watch(3),
        board=Board(),
        archive=Archive(),
        cells=Coverage(),
        behaviours=Coverage(),
        health=health or Health(),
    )


@dataclass(frozen=True)
class Riddle(Task):
    """A task without a program."""

    number: int
    like: str = ""
    """Riddles that share it differ in constants alone."""

    @property
    def shape_key(self) -> str:
        return self.like or self.id


def rollout(role: Role, member: str, place: int, became: Any, text: Sample, **about: Any) -> Rollout:
    about = {"kind": "code_o", "match": 0, "group": 0, "number": 0, "temperature": 1.0} | about
    request = SampleRequest(prompt=(place,), member=member, key=0, max_tokens=512, temperature=about.pop("temperature"))
    return Rollout(role=role, member=member, place=place, request=request, sample=text, became=became, **about)


def proposal(place: int, became: Task | Rejection, teacher: str = "t0", tokens: int = 1, **about: Any) -> Proposal:
    return rollout(Role.TEACHER, teacher, place, became, sample(tokens=tokens), **about)


def riddle(place: int, teacher: str = "t0", kind: str = "code_o", like: str = "", **about: Any) -> Proposal:
    return proposal(place, Riddle(kind, place, like), teacher, kind=kind, **about)


def tries(
    place: int, grades: str, student: str = "s0", tokens: int = 1, logprob: float = -0.5, **about: Any
) -> list[Rollout[Verdict]]:
    """A letter for each attempt: Correct, Wrong, Malformed, Void."""
    verdicts = {grade[0].upper(): Verdict(grade=grade) for grade in Grade}
    text = sample(tokens=tokens, logprob=logprob)
    return [
        rollout(Role.STUDENT, student, place, verdicts[grade], text, group=place, number=number, **about)
        for number, grade in enumerate(grades)
    ]
