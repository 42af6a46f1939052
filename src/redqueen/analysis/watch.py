"""The guard against collapse: what was reached, and an alarm when a population or a teacher has lost most of it.

All members start equal, so that a role below its floor is no news until it has been above. A teacher is judged at once,
since nothing keeps a varied one from writing varied tasks from the start.
An alarm rings at every snapshot until it has passed, so that whoever acts on it needs no memory of it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from redqueen.analysis.diversity import ENOUGH_TASKS, Diversity, Variety
from redqueen.population.members import MemberId, Role
from redqueen.runs.metrics import DESCRIPTORS_BITS, EFFECTIVE_SIZE, KINDS_BITS, WEIGHT_DISTANCE

KEPT = 0.2
"""Of what an effective size can gain over 1: below it eight members amount to fewer than 2.4, as they do when most are
children of one. Members that learn the same lesson grow alike too, but not that far."""
DISTANCE_FLOOR = 0.25
"""Of the mean distance between weights: a cosine of 0.75."""
_WATCHED = {EFFECTIVE_SIZE: "the effective size", WEIGHT_DISTANCE: "the mean distance between weights"}
"""Not the distance between functions, which has no scale of its own."""
KINDS_SHARE = 1 / 3
"""Of the entropy that equally frequent kinds would have: with three kinds 0.53 bits, as when one makes up 91 %."""
DESCRIPTORS_FLOOR = 1.0
"""Bits: as many as two equally frequent types of problem have. The solutions of HumanEval and MBPP have about four."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Something that was varied is not any more."""

    step: int
    subject: str
    """A role, or a teacher's id."""
    measure: str
    """The metric that it is about: a field of `Spread` or `Variety`."""
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
            floors = {EFFECTIVE_SIZE: 1 + KEPT * (spread.members - 1), WEIGHT_DISTANCE: DISTANCE_FLOOR}
            for metric, title in _WATCHED.items():
                value: float = getattr(spread, metric.name)
                reached[metric.name] = top = max(value, reached.get(metric.name, value))
                floor = floors[metric]
                if value < floor <= top:
                    says = f"{title} of the {role}s is {value:.2f}, below {floor:.2f}, and was {top:.2f}"
                    alarms.append(
                        Alarm(
                            step=snapshot.step,
                            subject=str(role),
                            measure=metric.name,
                            value=value,
                            floor=floor,
                            says=says,
                        )
                    )
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
            (KINDS_BITS, "kinds", variety.kinds_bits, KINDS_SHARE * math.log2(self.kinds)),
            (DESCRIPTORS_BITS, "types of problem", variety.descriptors_bits, DESCRIPTORS_FLOOR),
        )
        return [
            Alarm(
                step=step,
                subject=teacher,
                measure=metric.name,
                value=bits,
                floor=floor,
                says=_narrow(teacher, variety.tasks, what, bits, floor),
            )
            for metric, what, bits, floor in floors
            if bits < floor
        ]


def _narrow(teacher: MemberId, tasks: int, what: str, bits: float, floor: float) -> str:
    return f"the last {tasks} tasks of {teacher} have {bits:.2f} bits of {what}, less than {floor:.2f}"


def restore(record: Mapping[str, Any]) -> Watch:
    """The watch that `Watch.as_record` wrote down."""
    return Watch(record["kinds"], {Role(role): dict(top) for role, top in record["highest"].items()})


def collapsed(alarms: Iterable[Alarm]) -> frozenset[Role]:
    """The roles whose effective size has fallen: those that need new blood."""
    return frozenset(Role(alarm.subject) for alarm in alarms if alarm.measure == EFFECTIVE_SIZE.name)
