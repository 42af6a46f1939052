"""Who plays whom in a step: every teacher and every student plays, as equally often as numbers allow.

A matchmaker is one file with one pure function, `choose`: the student whom a teacher meets next, out of a pool.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from redqueen.errors import ConfigError
from redqueen.population.board import Board
from redqueen.population.members import Member, MemberId, Population

Choose = Callable[[Member, Sequence[Member], Board, Random], Member]
Seats = tuple[str, str]
"""A teacher's seat and a student's: who is kept apart stays apart when one of them is replaced."""

Way = Mapping[MemberId, int]
"""For each student the place, among those that one pool fills, that it could take."""
Wanted = Sequence[Collection[MemberId]]
"""For each of these places whom it may get."""

SHUFFLES = 2000
"""Orders of the teachers that are tried before a schedule counts as impossible."""


@dataclass(frozen=True, slots=True)
class Maker:
    """A matchmaker."""

    choose: Choose
    panel: int | None = 1
    """Students who attempt a teacher's tasks unless the settings say otherwise; None is all of them."""


@dataclass(frozen=True, slots=True)
class Match:
    """A teacher, and the panel that attempts its tasks."""

    teacher: MemberId
    students: tuple[MemberId, ...]


def count_matches(teachers: int, students: int, maker: Maker, panel: int | None = None) -> tuple[int, int]:
    """The matches of a step, and the students in the panel of each where nobody is kept apart.

    There are as many matches as leave nobody idle: the larger of the number of teachers and of what it takes to seat
    every student in a panel.
    """
    size = maker.panel if panel is None else panel
    size = students if size is None else size
    if not teachers:
        return 0, size
    return max(teachers, -(-students // size)), size


def schedule(
    population: Population,
    maker: Maker,
    board: Board,
    rng: Random,
    panel: int | None = None,
    exclude: Collection[Seats] = (),
) -> list[Match]:
    """The matches of one step, as many as `count_matches` says. Students are drawn without replacement from a pool that
    is refilled when it is empty."""
    barred = frozenset(exclude)
    teachers, students = population.teachers, population.students
    count, size = count_matches(len(teachers), len(students), maker, panel)
    if not count:
        return []
    order = list(teachers)
    if panel is None and maker.panel is None:
        rng.shuffle(order)
        return [
            Match(teacher.id, tuple(student.id for student in students if (teacher.seat, student.seat) not in barred))
            for teacher in order
        ]
    for _ in range(SHUFFLES):
        rng.shuffle(order)
        matches = [order[index % len(order)] for index in range(count)]
        panels = _draw(matches, students, size, maker.choose, board, rng, barred)
        if panels is not None:
            return [Match(teacher.id, tuple(panel)) for teacher, panel in zip(matches, panels, strict=True)]
    raise ConfigError(
        "match.exclude leaves no schedule in which everybody plays", "exclude fewer pairs, or use a smaller panel"
    )


def _draw(
    matches: Sequence[Member],
    students: Sequence[Member],
    size: int,
    choose: Choose,
    board: Board,
    rng: Random,
    barred: frozenset[Seats],
) -> list[list[MemberId]] | None:
    """A panel for every match; None where exclusions leave this order of teachers no way to the end.

    Match by match, not in rounds: then only a panel that begins in one pool and ends in the next is bound by what it
    has, and without exclusions there is always a way.
    """
    panels: list[list[MemberId]] = [[] for _ in matches]
    slots = [index for index in range(len(matches)) for _ in range(size)]
    for start in range(0, len(slots), len(students)):
        # The slots that one pool fills, and whom each may get.
        block = slots[start : start + len(students)]
        wanted = [
            {
                member.id
                for member in students
                if (matches[slot].seat, member.seat) not in barred and member.id not in panels[slot]
            }
            for slot in block
        ]
        pool = list(students)
        # Who could sit where to the end of the block: a draw that leaves no such way is no draw.
        way = _completed({}, range(len(block)), wanted, students)
        for place, slot in enumerate(block):
            if way is None:
                return None
            candidates = [
                member
                for member in pool
                if member.id in wanted[place] and _leaves_a_way(way, place, member, wanted, pool)
            ]
            student = choose(matches[slot], candidates, board, rng)
            panels[slot].append(student.id)
            way = _without(way, place, student, wanted, pool)
            pool.remove(student)
    return panels


def _leaves_a_way(way: Way, place: int, student: Member, wanted: Wanted, pool: Sequence[Member]) -> bool:
    displaced = way.get(student.id, place)
    if displaced == place:
        return True
    # Nearly always the two can swap, and only otherwise is it worth the search.
    given_up = next(id for id, holder in way.items() if holder == place)
    return given_up in wanted[displaced] or _without(way, place, student, wanted, pool) is not None


def _without(way: Way, place: int, student: Member, wanted: Wanted, pool: Sequence[Member]) -> Way | None:
    """The way for the places after this one once this one has the student, or None."""
    rest = {id: holder for id, holder in way.items() if holder != place and id != student.id}
    displaced = way.get(student.id, place)
    if displaced == place:
        return rest
    return _completed(rest, [displaced], wanted, [member for member in pool if member is not student])


def _completed(way: Way, places: Iterable[int], wanted: Wanted, pool: Sequence[Member]) -> Way | None:
    """The way with these places added, or None: augmenting paths in a bipartite graph, breadth first."""
    way = dict(way)
    for place in places:
        reached: dict[MemberId, int] = {}
        queue = [place]
        end = None
        while queue and end is None:
            at = queue.pop(0)
            for id in (member.id for member in pool if member.id in wanted[at]):
                if id not in reached:
                    reached[id] = at
                    if id not in way:
                        end = id
                        break
                    queue.append(way[id])
        if end is None:
            return None
        held = {holder: id for id, holder in way.items()}
        while end is not None:
            way[end] = reached[end]
            end = held.get(reached[end])
    return way
