"""Events carried out on an engine: children are made from their parents' weights and take the places of the dead."""

from collections.abc import Mapping, Sequence

import torch

from redqueen.engine.protocol import Engine, MemberState
from redqueen.errors import Fault
from redqueen.evolution.replacement import Event
from redqueen.evolution.variation import Operator, child


def breed(
    engine: Engine, events: Sequence[Event], operators: Mapping[str, Operator], device: torch.device | None = None
) -> None:
    """Every child is made before anybody goes; an optimiser never passes on to a child. `device` does the algebra."""
    children = {event.child.id: _made(engine, event, operators, device) for event in events}
    for event in events:
        engine.remove(event.dead)
    for id, state in children.items():
        engine.write(id, state)


def _made(engine: Engine, event: Event, operators: Mapping[str, Operator], device: torch.device | None) -> MemberState:
    if not event.parents:
        return engine.fresh()
    if event.operator not in operators:
        raise Fault(f"{event.child.id} was planned with an operator {event.operator!r} that is not at hand")
    operator = operators[event.operator]
    states = [engine.read(parent, optimiser=operator.moments) for parent in event.parents]
    return child(operator, states, seed=event.seed, device=device)
