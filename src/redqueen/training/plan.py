"""What a step costs: one is tried on the engine as it will run, and nothing is kept."""

import asyncio
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from redqueen.analysis.quarters import count_text
from redqueen.console import span_text
from redqueen.engine.memory import GIB
from redqueen.loop import one_step
from redqueen.phases.clock import Clock
from redqueen.phases.trial import trial_sizes
from redqueen.phases.view import Quiet
from redqueen.population.members import Role
from redqueen.runs.metrics import FLOPS, SAMPLED_TOKENS, TRAINED_TOKENS
from redqueen.runs.rows import StepRecord
from redqueen.settings import Config
from redqueen.training.setup import Opened, Start, open_races

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReport:
    """The report of `redqueen train --plan`: the figures of the step that was tried, and of steps in general."""

    facts: Mapping[str, str]
    members: int
    prompts: int
    proposals: int
    attempts: int
    """Of a step, if every proposal becomes a task."""
    tried_tasks: int
    tried_attempts: int
    sampled_tokens: int
    most_sampled_tokens: int
    """If every proposal is valid and every text as long as it may be."""
    trained_tokens: int
    flops: int
    seconds: Mapping[str, float]
    """By phase."""
    steps: int
    besides: tuple[str, ...]
    """What the first step has not, and others have."""
    memory_gib: Mapping[str, float]
    """What the engine plans to hold, also in the host's memory where members are hosted."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"step_seconds": self.step_seconds, "run_seconds": self.step_seconds * self.steps}

    @property
    def step_seconds(self) -> float:
        return math.fsum(self.seconds.values())

    def render(self, console: "Console") -> None:
        phases = ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in self.seconds.items())
        for line in (
            ", ".join(f"{name} {value}" for name, value in self.facts.items()),
            f"a step: {self.members} members, {self.prompts} prompts, {self.proposals} proposals, "
            f"{self.attempts} attempts if all proposals are valid",
            f"one was tried: {self.tried_tasks} tasks, {self.tried_attempts} attempts, {self.sampled_tokens:,} tokens "
            f"sampled (at most {self.most_sampled_tokens:,}), {self.trained_tokens:,} trained, "
            f"{count_text(self.flops)} floating-point operations",
            f"seconds: {self.step_seconds:.2f} ({phases})",
            "memory, planned: " + ", ".join(f"{name} {size:.2f} GiB" for name, size in self.memory_gib.items()),
            f"{self.steps} such steps take {span_text(self.step_seconds * self.steps)}; texts change as members learn",
            *(f"not in it: {what}" for what in self.besides),
        ):
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def plan(settings: Config) -> PlanReport:
    """Try one step; on CUDA the second one counts, since the first compiles kernels and captures graphs."""
    start = Start.new(settings)
    with open_races([start]) as stage:
        facts = stage.facts
        rows, seconds = asyncio.run(_try_steps(stage.only, 2 if stage.engine.device.type == "cuda" else 1))
        planned = stage.local.plan
        memory = {
            "base": planned.weights / GIB,
            "members": (planned.resident() - planned.weights) / GIB,
            f"with {'an update' if stage.local.bank.trains else 'scoring'}": planned.peak(planned.micro_tokens) / GIB,
        }
        if planned.hosted:
            memory["beside it in the host's memory"] = planned.host / GIB
    tasks = settings.tasks
    matches = len({row.match for row in (*rows.tasks, *rows.rejections)})
    proposals = len(rows.tasks) + len(rows.rejections)
    figures = rows.figures()
    students = len({(row.place, row.student) for row in rows.attempts}) / max(1, len(rows.tasks))
    attempts = round(proposals * (students or 1) * tasks.attempts)
    return PlanReport(
        facts=facts,
        members=len(start.adapters),
        prompts=matches * tasks.prompts,
        proposals=proposals,
        attempts=attempts,
        tried_tasks=len(rows.tasks),
        tried_attempts=len(rows.attempts),
        sampled_tokens=int(figures[SAMPLED_TOKENS]),
        most_sampled_tokens=proposals * tasks.proposal_tokens + attempts * tasks.attempt_tokens,
        trained_tokens=int(figures[TRAINED_TOKENS]),
        flops=int(figures[FLOPS]),
        seconds=seconds,
        steps=settings.run.steps,
        besides=tuple(besides(settings)),
        memory_gib=memory,
    )


def besides(settings: Config) -> Iterator[str]:
    tasks, population = settings.tasks, settings.population
    if tasks.replay:
        yield f"up to {tasks.replay} recent tasks that each student attempts {tasks.attempts} times more"
    sizes = trial_sizes(settings)
    trials = [f"{population.students} students at up to {sizes[Role.STUDENT]} tasks"] if Role.STUDENT in sizes else []
    trials += [f"{population.teachers} teachers with {sizes[Role.TEACHER]} proposals"] if Role.TEACHER in sizes else []
    if trials:
        every = settings.evolution.every
        yield f"every {every} steps a trial: {', '.join(trials)}, about {tasks.attempts} attempts at each"


async def _try_steps(opened: Opened, count: int) -> tuple[StepRecord, dict[str, float]]:
    """The records of the last of so many steps, and its seconds by phase."""
    state = opened.state
    while True:
        clock = Clock(state.step + 1, Quiet(), lambda: False)
        state, record = await one_step(opened.race, state, clock)
        count -= 1
        if count == 0:
            return record, clock.seconds
