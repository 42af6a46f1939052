"""Who is in the race: members with a role, a seat, a rating and a birth, and those that were replaced.

A population is a value. What happens to it, a rating or a replacement, gives another one, so that a checkpoint is
what `as_record` says and nothing else.
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


class Role(StrEnum):
    TEACHER = "teacher"
    STUDENT = "student"


@dataclass(frozen=True, slots=True)
class Birth:
    """Where a member comes from."""

    step: int = 0
    operator: str | None = None
    """What made it from its parents; None for founders and for fresh members."""
    parents: tuple[MemberId, ...] = ()
    """The better one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One adapter in the race."""

    id: MemberId
    """Its seat's name for the founder (`t0`), then `t0.1`, `t0.2`, ... for those that follow."""
    role: Role
    seat: str
    """The place it holds: a child takes that of the member that it replaces."""
    rating: Rating = PRIOR
    birth: Birth = Birth()

    def age(self, step: int) -> int:
        return step - self.birth.step


@dataclass(frozen=True, slots=True)
class Grave:
    """A member that was replaced."""

    member: Member
    """As it was at the end."""
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
        """Whose rating is surely good: by its lower bound, for a newborn's mean is its whole role's."""
        return max(self.of(role), key=lambda member: member.rating.lower)

    def member(self, id: MemberId) -> Member:
        for member in self.members:
            if member.id == id:
                return member
        raise InputError(
            f"there is no living member {id!r}", f"the members are {', '.join(each.id for each in self.members)}"
        )

    def next_id(self, seat: str) -> MemberId:
        """The name of the next member on a seat."""
        return f"{seat}.{1 + sum(grave.member.seat == seat for grave in self.graves)}"

    def rated(self, ratings: Mapping[MemberId, Rating]) -> "Population":
        """The same population with these ratings changed."""
        for id in ratings:
            self.member(id)
        return replace(
            self, members=tuple(replace(each, rating=ratings.get(each.id, each.rating)) for each in self.members)
        )

    def replaced(self, dead: MemberId, child: Member, step: int) -> "Population":
        """`child` sits where `dead` sat."""
        old = self.member(dead)
        if (child.role, child.seat) != (old.role, old.seat):
            raise InputError(f"{child.id} cannot take the seat of {dead}", "give it the same role and seat")
        members = tuple(child if each is old else each for each in self.members)
        return Population(members, (*self.graves, Grave(old, step)))

    def as_record(self) -> dict[str, Any]:
        """Plain values that JSON keeps as they are."""
        return {
            "members": [_record(member) for member in self.members],
            "graves": [{"member": _record(grave.member), "step": grave.step} for grave in self.graves],
        }


def founders(teachers: int, students: int) -> Population:
    """A population at its start: everybody has the prior's rating."""
    counts = {Role.TEACHER: teachers, Role.STUDENT: students}
    seats = [(role, f"{role[0]}{index}") for role, count in counts.items() for index in range(count)]
    return Population(tuple(Member(id=seat, role=role, seat=seat) for role, seat in seats))


def restore(record: Mapping[str, Any]) -> Population:
    """The population that `Population.as_record` wrote down."""
    try:
        return Population(
            tuple(_member(each) for each in record["members"]),
            tuple(Grave(_member(each["member"]), each["step"]) for each in record["graves"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        what = f"a checkpoint's population cannot be read: {type(error).__name__} {error}"
        raise RunError(what, "remove that checkpoint to go on from an older one") from None


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
