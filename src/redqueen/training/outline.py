"""What a race would need, from its settings and its base's configuration alone: nothing is loaded and nothing run.

For a base whose weights are not here, for the shape of one (`random:7b`), and for a GPU that is not here.
"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch

from redqueen.engine import locate, weights
from redqueen.engine.shapes import RANDOM
from redqueen.errors import InputError
from redqueen.plugins import MATCHMAKERS
from redqueen.population.matchmaking import Maker, count_matches
from redqueen.settings import Config
from redqueen.training.doctor import BaseCheckup, check_base
from redqueen.training.plan import besides

if TYPE_CHECKING:
    from rich.console import Console

MEND = (
    "download it first; for a plan alone, --engine.base FOLDER with its config.json is enough, or the shape of such a "
    "model: --engine.base random:0.5b (1.5b, 7b)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineReport:
    """The report of `redqueen train --plan` where no step can be tried."""

    why: str
    """Nothing was tried."""
    prompts: int
    proposals: int
    attempts: int
    """Of a step, if every proposal becomes a task."""
    most_sampled_tokens: int
    """Of a step, if every proposal is valid and every text as long as it may be."""
    besides: tuple[str, ...]
    """What is not in these numbers."""
    steps: int
    base: BaseCheckup

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def render(self, console: "Console") -> None:
        for line in (
            f"{self.why}: this is from its configuration alone, and nothing was tried",
            f"a step: {self.base.members} members, {self.prompts} prompts, {self.proposals} proposals, "
            f"{self.attempts} attempts if all proposals are valid, at most {self.most_sampled_tokens:,} tokens; "
            f"{self.steps} steps",
            *(f"not in it: {what}" for what in self.besides),
            *(f"{name:<11}{text}" for name, text in self.base.rows()),
        ):
            console.print(line, markup=False, highlight=False, soft_wrap=True)


def lacking(settings: Config) -> str | None:
    """Why no step can be tried here; None where one can. Refuses a base of which not even the configuration is here."""
    name = settings.engine.base
    if settings.engine.device == "cuda" and not torch.cuda.is_available():
        if settings.engine.memory is None or "%" in settings.engine.memory:
            raise InputError("there is no GPU here to plan for", "say how much memory it has: --engine.memory 24GiB")
        return "this machine has no GPU"
    if name.startswith(RANDOM):
        return f"{name} is a shape without weights"
    try:
        folder = locate.find(name)
    except InputError as error:
        try:
            folder = locate.find(name, with_weights=False)
        except InputError:
            raise InputError(error.what, MEND) from None
    missing = weights.missing(folder)
    return None if missing is None else f"the weights of {name} are not here ({missing})"


def outline(settings: Config, why: str) -> OutlineReport:
    population, tasks = settings.population, settings.tasks
    maker: Maker = MATCHMAKERS.get(settings.match.maker)
    matches, panel = count_matches(population.teachers, population.students, maker, settings.match.panel)
    proposals = matches * tasks.prompts * tasks.proposals
    attempts = proposals * panel * tasks.attempts
    members = 1 if population.single else population.teachers + population.students
    return OutlineReport(
        why=why,
        prompts=matches * tasks.prompts,
        proposals=proposals,
        attempts=attempts,
        most_sampled_tokens=proposals * tasks.proposal_tokens + attempts * tasks.attempt_tokens,
        besides=tuple(besides(settings)),
        steps=settings.run.steps,
        base=check_base(settings.engine.base, members, settings.engine),
    )
