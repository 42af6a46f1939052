"""What passes from one step to the next.

A checkpoint keeps the population, the watch and the members' health, beside the weights; the rest is made anew from the
records.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from redqueen.analysis import watch
from redqueen.analysis.coverage import Coverage
from redqueen.analysis.watch import Watch
from redqueen.engine.protocol import MemberId
from redqueen.errors import RunError
from redqueen.population import members
from redqueen.population.board import Board
from redqueen.population.members import Grave, Member, Population
from redqueen.tasks.archive import Archive


@dataclass(frozen=True, slots=True)
class Health:
    """How each adapter has fared."""

    best_valid: Mapping[MemberId, float] = field(default_factory=dict)
    """The share of its texts that are sound, at its best."""
    unfit_steps: Mapping[MemberId, int] = field(default_factory=dict)
    """The steps in a row, up to now, in which it was not fit to learn."""
    rates: Mapping[MemberId, float] = field(default_factory=dict)
    """What the learning rates of those are multiplied by that were called back, or whose parents were."""

    def see(
        self,
        valid: Mapping[MemberId, float],
        unfit_steps: Mapping[MemberId, int],
        recalled: Iterable[MemberId] = (),
    ) -> "Health":
        best = {id: max(share, self.best_valid.get(id, share)) for id, share in valid.items()}
        rates = {id: self.rates.get(id, 1.0) / 2 for id in recalled}
        return Health({**self.best_valid, **best}, unfit_steps, {**self.rates, **rates})

    def born(self, children: Iterable[Member]) -> "Health":
        """A child learns as carefully as the more careful one of its parents."""
        rates = dict(self.rates)
        for child in children:
            rate = min((rates.get(id, 1.0) for id in child.birth.parents), default=1.0)
            rates |= {child.id: rate} if rate < 1 else {}
        return replace(self, rates=rates)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """After `step` steps."""

    step: int
    population: Population
    watch: Watch
    board: Board
    archive: Archive
    cells: Coverage
    """Of the grid of structures, those that ever held a task."""
    behaviours: Coverage
    """Of what programs do, all that was ever seen."""
    health: Health = Health()
    base_on: frozenset[str] = frozenset()
    """The benchmarks that the bare base was evaluated on."""
    flops: int = 0
    """Floating-point operations of all steps."""

    def as_record(self) -> dict[str, Any]:
        """Plain values that JSON keeps as they are: what the records do not have."""
        return {
            "step": self.step,
            "population": self.population.as_record(),
            "watch": self.watch.as_record(),
            "health": dict(self.health.best_valid),
            "unfit_steps": dict(self.health.unfit_steps),
            "rates": dict(self.health.rates),
        }


def restored(
    record: Mapping[str, Any],
    board: Board,
    archive: Archive,
    cells: Coverage,
    behaviours: Coverage,
    base_on: frozenset[str] = frozenset(),
    flops: int = 0,
) -> State:
    """The state that `State.as_record` wrote down, with what the records gave."""
    try:
        step, rates = record["step"], dict(record.get("rates", {}))
        health = Health(dict(record["health"]), dict(record.get("unfit_steps", {})), rates)
        seen = watch.restore(record["watch"])
        population = members.restore(record["population"])
        if "unfit_steps" not in record:
            population = _of_older_version(population)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"a checkpoint's state cannot be read: {type(error).__name__} {error}"
        raise RunError(what, "remove that checkpoint to go on from an older one") from None
    return State(
        step=step,
        population=population,
        watch=seen,
        board=board,
        archive=archive,
        cells=cells,
        behaviours=behaviours,
        health=health,
        base_on=base_on,
        flops=flops,
    )


def _of_older_version(population: Population) -> Population:
    """Members that were replaced after a step have been replaced before the next one."""

    def later(member: Member) -> Member:
        birth = member.birth
        return replace(member, birth=replace(birth, step=birth.step + 1)) if birth.step else member

    return Population(
        tuple(map(later, population.members)),
        tuple(Grave(later(grave.member), grave.step + 1) for grave in population.graves),
    )
