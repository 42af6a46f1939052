"""Items: tasks of fixed sources, which every student of a step attempts and no teacher proposed.

They are drawn from the run's seed, the step and their number, so that a run that is resumed puts the same ones. All
students attempt the same items, as all do in a trial. Students learn from these attempts; nobody wins or loses by them,
and no rating moves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from redqueen.phases.propose import mixed, readable
from redqueen.phases.race import Race
from redqueen.phases.solve import Sitting
from redqueen.phases.state import State
from redqueen.population.members import Role
from redqueen.rl.rollout import Rollout
from redqueen.runs.rows import SOURCE
from redqueen.tasks.archive import Entry
from redqueen.tasks.protocol import Task
from redqueen.tasks.sources import NUMBERS
from redqueen.tasks.verdicts import Reason, Rejection


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A source's task in a step."""

    kind: str
    place: int
    """After those of the step's proposals."""
    became: Task | Rejection
    """A rejection where it cannot be drawn, put or judged."""
    entry: Entry | None = None
    """How it fared, for the archive."""


def draw(race: Race, step: int, place: int) -> list[Item]:
    """The step's items, at places from this one on: as many prompts as fall to sources, of `tasks.proposals` items."""
    kinds = [kind for kind in mixed(race, step, "items") if kind in race.sources]
    wanted = [kind for kind in kinds for _ in range(race.settings.tasks.proposals)]
    return [
        Item(kind=kind, place=place + number, became=item(race, kind, race.key(step, "item", number)))
        for number, kind in enumerate(wanted)
    ]


def item(race: Race, kind: str, key: int) -> Task | Rejection:
    """The item that a key stands for, if the base can take its question."""
    return readable(race, race.sources[kind].draw(kind, key % NUMBERS))


def sittings(item: Item, state: State) -> list[Sitting]:
    """Of all students in front of an item."""
    task = item.became
    if not isinstance(task, Task):
        return []
    return [
        Sitting(task=task, student=student.id, key=("item", item.place, student.id), place=item.place)
        for student in state.population.students
    ]


def fared(step: int, items: Sequence[Item], rollouts: Sequence[Rollout]) -> list[Item]:
    """The items with what became of the attempts at them, once these are judged."""
    return [_fared(step, item, [rollout for rollout in rollouts if rollout.place == item.place]) for item in items]


def _fared(step: int, item: Item, rollouts: Sequence[Rollout]) -> Item:
    if not isinstance(item.became, Task):
        return item
    attempts = [rollout for rollout in rollouts if rollout.role is Role.STUDENT]
    counted = [attempt.became.correct for attempt in attempts if attempt.counts]
    if not counted:
        return replace(item, became=item.became.rejected(Reason.NOT_JUDGED, "no attempt at it could be judged"))
    entry = Entry(task=item.became, step=step, teacher=SOURCE, solved=sum(counted), attempts=len(counted))
    return replace(item, entry=entry)
