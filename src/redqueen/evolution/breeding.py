"""Events carried out on an engine: children are made from their parents' weights and take the places of the dead."""

from collections.abc import Mapping, Sequence

import torch

from redqueen.engine.protocol import Engine, MemberId, MemberState
from redqueen.errors import Fault
from redqueen.evolution.replacement import Event
from redqueen.evolution.variation import Draws, Operator, child
from redqueen.keys import key

START = 0.1
"""The standard deviation of the entries of B in a founder that never sees a gradient."""


def breed(
    engine: Engine, events: Sequence[Event], operators: Mapping[str, Operator], device: torch.device | None = None
) -> None:
    """Every child is made before anybody goes; an optimiser never passes on to a child. `device` does the algebra."""
    children = {event.child.id: _made(engine, event, operators, device) for event in events}
    for event in events:
        # Who is not there cannot go: better before anybody has.
        engine.read(event.dead)
    for event in events:
        engine.remove(event.dead)
    for id, state in children.items():
        engine.write(id, state)


def scatter(engine: Engine, members: Sequence[MemberId], run_seed: int) -> None:
    """Founders of a race without gradients: small random B factors, each member's own.

    Fresh members have B = 0, which no operator can leave: what they scale, mix or cut is nothing.
    """
    fresh = engine.fresh()
    for member in members:
        draws = Draws(key(run_seed, "scatter", member), torch.device("cpu"))
        factors = {
            name: (a_R_I, START * draws.normal(*b_O_R.shape)) for name, (a_R_I, b_O_R) in sorted(fresh.factors.items())
        }
        engine.write(member, MemberState(fresh.rank, fresh.alpha, factors))


def _made(engine: Engine, event: Event, operators: Mapping[str, Operator], device: torch.device | None) -> MemberState:
    if not event.parents:
        return engine.fresh()
    if event.operator not in operators:
        raise Fault(f"{event.child.id} was planned with an operator {event.operator!r} that is not at hand")
    operator = operators[event.operator]
    states = [engine.read(parent, optimiser=operator.moments) for parent in event.parents]
    return child(operator, states, seed=event.seed, device=device)
