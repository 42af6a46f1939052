"""Who is in the race: members with a role, a seat, a rating and a birth, and those that were replaced.

A population is a value: a rating or a replacement gives another one. `as_record` is all that a checkpoint needs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from redqueen.errors import InputError, RunError
from redqueen.population.ratings import PRIOR, Rating

MemberId = str
SOLO: MemberId = "solo"
"""The one adapter of a race with `population.single`."""
SOUP: MemberId = "soup"
"""The mean of a race's students, which is no member and can be exported and examined as one."""


class Role(StrEnum):
    TEACHER = "teacher"
    STUDENT = "student"


@dataclass(frozen=True, slots=True)
class Birth:
    step: int = 0
    """The first step that it takes part in; 0 for founders."""
    operator: str | None = None
    """What made it from its parents; None for founders and for fresh members."""
    parents: tuple[MemberId, ...] = ()
    """The better one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    id: MemberId
    """Its seat's name for the founder (`t0`), then `t0.1`, `t0.2`, ... for those that follow."""
    role: Role
    seat: str
    """Its place in the population; a child takes the seat of the member that it replaces."""
    rating: Rating = PRIOR
    birth: Birth = Birth()

    @property
    def seat_number(self) -> int:
        return int(self.seat[1:])

    def age(self, step: int) -> int:
        return step - self.birth.step

    def steps(self, step: int) -> int:
        """The steps that it has taken part in, this one included."""
        return step - max(self.birth.step, 1) + 1


@dataclass(frozen=True, slots=True)
class Grave:
    member: Member
    step: int


@dataclass(frozen=True)
class Population:
    """The living, in the order of their seats, and the dead, in the order of their deaths."""

    members: tuple[Member, ...]
    graves: tuple[Grave, ...] = ()

    @property
    def teachers(self) -> tuple[Member, ...]:
        return self.of(Role.TEACHER)

    @property
    def students(self) -> tuple[Member, ...]:
        return self.of(Role.STUDENT)

    def of(self, role: Role) -> tuple[Member, ...]:
        return tuple(member for member in self.members if member.role is role)

    def best(self, role: Role) -> Member:
        """The member with the best lower bound: the mean would favour newborns, who have not been tested."""
        members = self.of(role)
        if not members:
            raise InputError(f"this race has no {role}s", "name a member of the other role")
        return max(members, key=lambda member: member.rating.lower)

    def member(self, id: MemberId) -> Member:
        for member in self.members:
            if member.id == id:
                return member
        known = ", ".join(member.id for member in self.members)
        raise InputError(f"there is no living member {id!r}", f"the members are {known}")

    def next_id(self, seat: str) -> MemberId:
        return f"{seat}.{1 + sum(grave.member.seat == seat for grave in self.graves)}"

    def rated(self, ratings: Mapping[MemberId, Rating]) -> "Population":
        for id in ratings:
            self.member(id)
        members = (replace(member, rating=ratings.get(member.id, member.rating)) for member in self.members)
        return replace(self, members=tuple(members))

    def replaced(self, dead: MemberId, child: Member, step: int) -> "Population":
        """The population with `child` on the seat of `dead`."""
        old = self.member(dead)
        if (child.role, child.seat) != (old.role, old.seat):
            raise InputError(f"{child.id} cannot take the seat of {dead}", "give it the same role and seat")
        members = tuple(child if member is old else member for member in self.members)
        return Population(members, (*self.graves, Grave(old, step)))

    def as_record(self) -> dict[str, Any]:
        return {
            "members": [_record(member) for member in self.members],
            "graves": [{"member": _record(grave.member), "step": grave.step} for grave in self.graves],
        }


def founders(teachers: int, students: int) -> Population:
    """A new population, all with the prior's rating."""
    counts = {Role.TEACHER: teachers, Role.STUDENT: students}
    seats = [(role, f"{role[0]}{index}") for role, count in counts.items() for index in range(count)]
    return Population(tuple(Member(id=seat, role=role, seat=seat) for role, seat in seats))


def restore(record: Mapping[str, Any]) -> Population:
    try:
        return Population(
            tuple(map(_member, record["members"])),
            tuple(Grave(_member(grave["member"]), grave["step"]) for grave in record["graves"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        what = f"a checkpoint's population cannot be read: {type(error).__name__} {error}"
        raise RunError(what, "remove that checkpoint to resume from an older one") from None


def _record(member: Member) -> dict[str, Any]:
    birth = member.birth
    return {
        "id": member.id,
        "role": str(member.role),
        "seat": member.seat,
        "rating": [member.rating.mu, member.rating.sigma],
        "birth": {"step": birth.step, "operator": birth.operator, "parents": list(birth.parents)},
    }


def _member(record: Mapping[str, Any]) -> Member:
    birth = record["birth"]
    return Member(
        id=record["id"],
        role=Role(record["role"]),
        seat=record["seat"],
        rating=Rating(*record["rating"]),
        birth=Birth(birth["step"], birth["operator"], tuple(birth["parents"])),
    )
