import numpy as np
import pytest

from redqueen.cluster.ledger import Ledger, Remove, Update, Write
from redqueen.cluster.packed import Packed
from redqueen.engine.protocol import Recipe, Trajectory

RECIPE = Recipe(lr=1e-3)


def state(number: float) -> Packed:
    return Packed(np.full(4, number, np.float32), None)


def update(*members: str) -> Update:
    return Update(
        tuple(Trajectory(member=m, prompt=(1,), completion=(2,), logprobs=(0.0,), advantages=1.0) for m in members),
        RECIPE,
    )


@pytest.fixture
def ledger() -> Ledger:
    """Two members, one of which has learnt."""
    made = Ledger()
    made.write("t0", state(1))
    made.write("s0", state(2))
    made.update(made.end, update("t0"))
    return made


def test_a_worker_gets_what_it_lacks(ledger: Ledger):
    assert [type(entry) for entry in ledger.since(None)] == [Write, Write, Update]
    assert list(ledger.since(1)) == list(ledger.since(None))[1:]
    assert list(ledger.since(ledger.end)) == []


def test_what_a_member_is_is_known_until_it_learns(ledger: Ledger):
    known = ledger.known("s0")
    assert known is not None and known.values_N[0] == 2
    assert ledger.known("t0") is None and ledger.unknown == ["t0"]
    ledger.write("t0", state(3))
    assert ledger.unknown == []


def test_an_update_counts_once(ledger: Ledger):
    number = ledger.end
    ledger.update(number, update("s0"))
    with pytest.raises(ValueError, match=f"update {number} is none"):
        ledger.update(number, update("s0"))
    assert ledger.updates == 2


def test_a_snapshot_takes_the_place_of_all_entries(ledger: Ledger):
    ledger.remove("s0")
    end = ledger.end
    ledger.snapshot({"t0": state(5)})
    [write] = ledger.since(None)
    assert isinstance(write, Write) and write.member == "t0" and write.state.values_N[0] == 5
    assert ledger.updates == 0 and ledger.end == end and list(ledger.since(end)) == []
    ledger.write("t1", state(6))
    assert [entry.member for entry in ledger.since(end) if isinstance(entry, Write)] == ["t1"]


def test_a_snapshot_without_somebody_is_refused(ledger: Ledger):
    with pytest.raises(ValueError, match="lacks"):
        ledger.snapshot({})


def test_the_dead_are_not_there_any_more(ledger: Ledger):
    ledger.remove("t0")
    assert ledger.members == ["s0"] and isinstance(ledger.entries[-1], Remove)
