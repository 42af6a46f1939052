"""Events carried out on an engine: children are made from their parents' weights and replace the dead."""

from collections.abc import Callable, Mapping, Sequence

import torch

from redqueen.engine.protocol import Engine, MemberId, MemberState
from redqueen.evolution.replacement import Event
from redqueen.evolution.variation import Draws, Operator, child

UNSCALED = 0.1
"""The standard deviation of the entries of B where members are scattered with no regard to the base."""


def breed(
    engine: Engine,
    events: Sequence[Event],
    operators: Mapping[str, Operator],
    device: torch.device | None = None,
    *,
    fresh: Callable[[int], MemberState] | None = None,
) -> None:
    """Replace the dead by children, on `device`. All children are made before anybody is removed; their optimisers are
    fresh. `fresh` makes members without parents, of a seed; the engine does when it is left out."""
    make = fresh or (lambda seed: engine.fresh())
    children: dict[MemberId, MemberState] = {}
    for event in events:
        children[event.child.id] = _child(engine, event, operators, device) if event.parents else make(event.seed)
    for event in events:
        # Fails for a member that is not there, before anybody is removed.
        engine.read(event.dead)
    for event in events:
        engine.remove(event.dead)
    for id, state in children.items():
        engine.write(id, state)


def scattered(fresh: MemberState, seed: int, share: float, norms: Mapping[str, float]) -> MemberState:
    """A fresh member with random B factors, since no operator makes anything of B = 0: each of its updates is this
    share of the norm of the weight that it changes. With a share of 0 no weight is looked at."""
    draws = Draws(seed, torch.device("cpu"))
    factors = {}
    for name, (a_R_I, b_O_R) in sorted(fresh.factors.items()):
        drawn_O_R = draws.normal(*b_O_R.shape)
        size = UNSCALED
        if share:
            inner = (drawn_O_R.mT @ drawn_O_R).double() * (a_R_I @ a_R_I.mT).double()
            size = share * norms[name] * fresh.rank / (fresh.alpha * float(inner.sum()) ** 0.5)
        factors[name] = a_R_I, size * drawn_O_R
    return MemberState(fresh.rank, fresh.alpha, factors)


def _child(engine: Engine, event: Event, operators: Mapping[str, Operator], device: torch.device | None) -> MemberState:
    operator = operators[event.operator]
    states = [engine.read(parent, optimiser=operator.moments) for parent in event.parents]
    return child(operator, states, seed=event.seed, device=device)
