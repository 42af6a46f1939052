"""The members of an engine with shards: written into ledgers, and read from there or from workers."""

from collections.abc import Sequence

from redqueen.cluster.hands import Job
from redqueen.cluster.ledger import Ledger
from redqueen.cluster.packed import Packed, pack, unpack, weights
from redqueen.cluster.placement import grouped, shard_of
from redqueen.cluster.staff import Staff
from redqueen.engine.bank import Bank
from redqueen.engine.protocol import MemberId, MemberState
from redqueen.errors import InputError


class ShardedMembers:
    """Implements `Members`: what is written waits in the ledgers until the shard is asked something."""

    def __init__(self, staff: Staff, bank: Bank) -> None:
        self._staff, self._bank = staff, bank

    def read(self, member: MemberId, *, optimiser: bool = False) -> MemberState:
        if optimiser:
            packed = self._snapshot(member)
        else:
            [packed] = self._weights([member])
        return unpack(packed, self._bank)

    def views(self, members: Sequence[MemberId]) -> list[MemberState]:
        return [unpack(packed, self._bank) for packed in self._weights(members)]

    def write(self, member: MemberId, state: MemberState) -> None:
        packed = pack(member, state, self._bank)
        self._staff.ledgers[self._shard(member)].write(member, packed)

    def fresh(self) -> MemberState:
        return self._bank.fresh()

    def remove(self, member: MemberId) -> None:
        self._ledger(member).remove(member)

    def _snapshot(self, wanted: MemberId) -> Packed:
        """Whoever reads one member with its optimiser mostly reads all, and from here on none of the updates so far has
        to be done again when a worker is lost."""
        ledger = self._ledger(wanted)
        if (known := ledger.known(wanted)) is not None:
            return known
        unknown = {shard: ledger.unknown for shard, ledger in enumerate(self._staff.ledgers) if ledger.unknown}
        jobs = [Job(shard, "take", (members, True), size=len(members)) for shard, members in unknown.items()]
        for (shard, members), states in zip(unknown.items(), self._staff.ask(jobs), strict=True):
            self._staff.ledgers[shard].snapshot(dict(zip(members, map(_owned, states), strict=True)))
        self._staff.settle()
        packed = ledger.known(wanted)
        assert packed is not None
        return packed

    def _weights(self, members: Sequence[MemberId]) -> list[Packed]:
        """Fetched where the driver does not have them."""
        known = {member: self._ledger(member).known(member) for member in members}
        found = {member: weights(packed, self._bank) for member, packed in known.items() if packed is not None}
        absent = grouped((self._shard(member), member) for member in known if member not in found)
        answers = self._staff.ask([Job(shard, "take", (own, False), size=len(own)) for shard, own in absent.items()])
        for own, states in zip(absent.values(), answers, strict=True):
            found |= zip(own, states, strict=True)
        return [found[member] for member in members]

    def _ledger(self, member: MemberId) -> Ledger:
        """Of the shard of a member that is there."""
        ledger = self._staff.ledgers[self._shard(member)]
        if member is None:
            raise InputError("the bare base is not a member", "name one")
        if member not in ledger.members:
            living = ", ".join([each for ledger in self._staff.ledgers for each in ledger.members][:8]) or "none"
            raise InputError(f"there is no member {member!r}", f"the members are {living}")
        return ledger

    def _shard(self, member: MemberId) -> int:
        return shard_of(member, len(self._staff.ledgers))


def _owned(packed: Packed) -> Packed:
    """In memory of this process: what lies in a cluster's store keeps it full."""
    return Packed(packed.values_N.copy(), packed.step)
