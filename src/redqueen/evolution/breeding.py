"""Events carried out on an engine: children are made from their parents' weights and replace the dead."""

from collections.abc import Mapping, Sequence

import torch

from redqueen.engine.protocol import Engine, MemberId, MemberState
from redqueen.evolution.replacement import Event
from redqueen.evolution.variation import Draws, Operator, child
from redqueen.keys import key

FOUNDER_SCALE = 0.1
"""The standard deviation of the entries of B in a founder of a race without gradients."""


def breed(
    engine: Engine,
    events: Sequence[Event],
    operators: Mapping[str, Operator],
    device: torch.device | None = None,
    *,
    gradients: bool = True,
) -> None:
    """Replace the dead by children, on `device`. All children are made before anybody is removed; their optimisers are
    fresh. Without gradients fresh members are scattered, as founders are."""
    children = {event.child.id: _child(engine, event, operators, device, gradients) for event in events}
    for event in events:
        # Fails for a member that is not there, before anybody is removed.
        engine.read(event.dead)
    for event in events:
        engine.remove(event.dead)
    for id, state in children.items():
        engine.write(id, state)


def scatter(engine: Engine, members: Sequence[MemberId], run_seed: int) -> None:
    """Give founders of a race without gradients small random B factors, each its own."""
    for member in members:
        engine.write(member, _scattered(engine.fresh(), key(run_seed, "scatter", member)))


def _scattered(fresh: MemberState, seed: int) -> MemberState:
    """A fresh member has B = 0, from which no operator makes anything else."""
    draws = Draws(seed, torch.device("cpu"))
    factors = {}
    for name, (a_R_I, b_O_R) in sorted(fresh.factors.items()):
        factors[name] = a_R_I, FOUNDER_SCALE * draws.normal(*b_O_R.shape)
    return MemberState(fresh.rank, fresh.alpha, factors)


def _child(
    engine: Engine, event: Event, operators: Mapping[str, Operator], device: torch.device | None, gradients: bool
) -> MemberState:
    if not event.parents:
        return engine.fresh() if gradients else _scattered(engine.fresh(), event.seed)
    operator = operators[event.operator]
    states = [engine.read(parent, optimiser=operator.moments) for parent in event.parents]
    return child(operator, states, seed=event.seed, device=device)
