"""The guard against collapse: what was reached, and an alarm when a population or a teacher has lost most of it.

All members start equal, so that a role without variety is no news at the start: an alarm is a fall from the highest
value so far. A teacher is judged by a fixed floor, since nothing keeps a varied one from writing varied tasks at once.
An alarm rings at every snapshot until it has passed, so that whoever acts on it needs no memory of it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from redqueen.measure.diversity import ENOUGH_TASKS, Diversity, Variety
from redqueen.population.members import MemberId, Role


@dataclass(frozen=True, slots=True)
class _Fall:
    """When a figure of a role has fallen."""

    name: str
    start: float
    """Its value when all members are equal."""
    enough: float
    """Until the highest has come this far, the members are still on their way apart."""


KEPT = 0.5
"""A figure has fallen when less than this part is left of what it had gained over its start."""
EFFECTIVE_SIZE = "effective_size"
WEIGHT_DISTANCE = "weight_distance"
_FALLS = {
    EFFECTIVE_SIZE: _Fall("the effective size", 1.0, 1.5),
    WEIGHT_DISTANCE: _Fall("the mean distance between weights", 0.0, 0.25),
}
"""Not the distance between functions: it has no upper bound, so one member that went astray would leave a highest value
that no sound population comes back to."""
KINDS_SHARE = 1 / 3
"""Of the entropy that equally frequent kinds would have: with three kinds 0.53 bits, as when one makes up 91 %."""
DESCRIPTORS_FLOOR = 1.0
"""Bits: as many as two equally frequent types of problem have. The solutions of HumanEval and MBPP have about four."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that was varied is not any more."""

    step: int
    subject: str
    """A role, or a teacher's id."""
    measure: str
    """The field of `Spread` or `Variety` that it is about."""
    value: float
    floor: float
    """What the value is below."""
    says: str
    """One sentence for people."""

    def as_record(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Watch:
    """What every role has reached so far."""

    kinds: int
    """How many kinds teachers are asked for: of a single one nobody can write a variety."""
    highest: Mapping[Role, Mapping[str, float]] = field(default_factory=dict)

    def see(self, snapshot: Diversity) -> tuple["Watch", list[Alarm]]:
        """The watch after this snapshot, and what rang."""
        highest = {role: dict(reached) for role, reached in self.highest.items()}
        alarms: list[Alarm] = []
        for role, spread in snapshot.roles.items():
            reached = highest.setdefault(role, {})
            for measure, fall in _FALLS.items():
                value: float = getattr(spread, measure)
                reached[measure] = top = max(value, reached.get(measure, value))
                floor = fall.start + KEPT * (top - fall.start)
                if top >= fall.enough and value < floor:
                    says = f"{fall.name} of the {role}s fell from {top:.2f} to {value:.2f}"
                    alarms.append(Alarm(snapshot.step, str(role), measure, value, floor, says))
        for teacher, variety in snapshot.teachers.items():
            alarms += self._teacher(snapshot.step, teacher, variety)
        return Watch(self.kinds, highest), alarms

    def as_record(self) -> dict[str, Any]:
        """Plain values that JSON keeps as they are."""
        return {"kinds": self.kinds, "highest": {str(role): dict(top) for role, top in self.highest.items()}}

    def _teacher(self, step: int, teacher: MemberId, variety: Variety) -> list[Alarm]:
        if variety.tasks < ENOUGH_TASKS:
            return []
        floors = (
            ("kinds_bits", "kinds", variety.kinds_bits, KINDS_SHARE * math.log2(self.kinds)),
            ("descriptors_bits", "types of problem", variety.descriptors_bits, DESCRIPTORS_FLOOR),
        )
        return [
            Alarm(step, teacher, measure, bits, floor, _narrow(teacher, variety.tasks, what, bits, floor))
            for measure, what, bits, floor in floors
            if bits < floor
        ]


def _narrow(teacher: MemberId, tasks: int, what: str, bits: float, floor: float) -> str:
    return f"the last {tasks} tasks of {teacher} have {bits:.2f} bits of {what}, less than {floor:.2f}"


def restore(record: Mapping[str, Any]) -> Watch:
    """The watch that `Watch.as_record` wrote down."""
    return Watch(record["kinds"], {Role(role): dict(top) for role, top in record["highest"].items()})


def collapsed(alarms: Iterable[Alarm]) -> frozenset[Role]:
    """The roles whose effective size has fallen: those that need new blood."""
    return frozenset(Role(alarm.subject) for alarm in alarms if alarm.measure == EFFECTIVE_SIZE)
