"""What happened to the members of one shard, in order: enough to make the shard again on any worker.

A worker's shard is what its ledger says up to some number. Entries are counted from the race's opening on; an update
gets its number when it is answered, so it counts once however often it was sent. When all members have been read after
the last update, their states take the place of all entries.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from redqueen.cluster.packed import Packed
from redqueen.engine.protocol import MemberId, Recipe, Trajectory


@dataclass(frozen=True, slots=True)
class Write:
    member: MemberId
    state: Packed


@dataclass(frozen=True, slots=True)
class Remove:
    member: MemberId


@dataclass(frozen=True, slots=True)
class Update:
    batch: tuple[Trajectory, ...]
    recipe: Recipe


Entry = Write | Remove | Update


@dataclass(slots=True)
class Ledger:
    epoch: int = 0
    """Counts how often the shard was begun anew on a worker: what an older one answers does not count."""
    end: int = 0
    """The number of the next entry."""
    entries: list[Entry] = field(default_factory=list)
    """Those from a snapshot on."""
    _known: dict[MemberId, Packed | None] = field(default_factory=dict)
    """The living, each with its state where nothing has changed it since that was known."""

    @property
    def members(self) -> list[MemberId]:
        return list(self._known)

    def write(self, member: MemberId, state: Packed) -> None:
        self._add(Write(member, state))
        self._known[member] = state

    def remove(self, member: MemberId) -> None:
        self._add(Remove(member))
        del self._known[member]

    def update(self, number: int, update: Update) -> None:
        """An update that was answered under this number."""
        if number != self.end:
            raise ValueError(f"update {number} is none that is waited for: the next is {self.end}")
        self._add(update)
        self._known |= dict.fromkeys((trajectory.member for trajectory in update.batch), None)

    def known(self, member: MemberId) -> Packed | None:
        return self._known[member]

    @property
    def unknown(self) -> list[MemberId]:
        return [member for member, state in self._known.items() if state is None]

    def snapshot(self, states: dict[MemberId, Packed]) -> None:
        """What all members that were not known are now, after the last entry, which the worker that says so has."""
        self._known |= states
        self.entries = [Write(member, state) for member, state in self._known.items() if state is not None]
        if len(self.entries) < len(self._known):
            raise ValueError(f"a snapshot lacks {self.unknown}")

    def since(self, number: int | None) -> Sequence[Entry]:
        """What a worker lacks that has all entries below this number, or none."""
        return self.entries[:] if number is None else self.entries[len(self.entries) - (self.end - number) :]

    @property
    def updates(self) -> int:
        """That would be done again on another worker."""
        return sum(isinstance(entry, Update) for entry in self.entries)

    def _add(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.end += 1
