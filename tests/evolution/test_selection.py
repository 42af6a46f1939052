"""Selection: one matrix over all plug-ins, then what is particular to each."""

from collections import Counter
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redqueen.errors import ConfigError
from redqueen.evolution.selection import shared
from redqueen.plugins import SELECTIONS

role = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.floats(-100, 100), min_size=1, max_size=9)


@pytest.mark.parametrize("name", SELECTIONS.names())
@given(values=role, count=st.integers(1, 2), share=st.floats(0.01, 0.99), seed=st.integers(0, 99))
def test_parents_are_different_members_and_repeatable(name, values, count, share, seed):
    picked = SELECTIONS.get(name).pick(values, count, share, Random(seed))
    assert len(picked) == len(set(picked)) == min(count, len(values))
    assert set(picked) <= set(values)
    assert picked == SELECTIONS.get(name).pick(values, count, share, Random(seed))


def drawn(name: str, values: dict[str, float], share: float, count: int = 1) -> Counter[str]:
    rng = Random(0)
    return Counter(id for _ in range(2000) for id in SELECTIONS.get(name).pick(values, count, share, rng))


def test_truncation_draws_equally_from_the_best_and_never_below():
    values = {f"s{index}": float(index) for index in range(8)}
    counts = drawn("truncation", values, 0.3)
    assert set(counts) == {"s7", "s6", "s5"}
    assert all(abs(count - 2000 / 3) < 100 for count in counts.values())
    assert set(drawn("truncation", values, 0.01)) == {"s7", "s6"}, "two at least"


def test_a_tournament_is_won_by_the_best_of_three():
    values = {f"s{index}": float(index) for index in range(5)}
    counts = drawn("tournament", values, 0.25)
    # Of five, the best is among three with 3/5, the second wins with 3/10, the third with 1/10.
    assert set(counts) == {"s4", "s3", "s2"}
    assert abs(counts["s4"] - 1200) < 100
    assert abs(counts["s2"] - 200) < 60


def apart(*groups: str) -> dict[tuple[str, str], float]:
    """Members named by one letter each: 0 within a group, 1 between groups."""
    members = "".join(groups)
    return {(a, b): float(not any(a in group and b in group for group in groups)) for a, b in combinations(members, 2)}


def test_sharing_marks_crowds_down():
    values = {"a": 30.0, "b": 29.0, "c": 28.0, "d": 27.0}
    adjusted = shared(values, apart("abc", "d"))
    assert adjusted == pytest.approx({"a": 4 / 3, "b": 3 / 3, "c": 2 / 3, "d": 1})
    assert min(adjusted, key=lambda id: adjusted[id]) == "c", "the worst by value is not the one that dies"


def test_sharing_is_the_plain_order_where_all_are_alike_or_all_unlike():
    values = {"a": -3.0, "b": 5.0, "c": 0.0}
    for groups in (("abc",), ("a", "b", "c")):
        adjusted = shared(values, apart(*groups))
        assert sorted(adjusted, key=lambda id: adjusted[id]) == ["a", "c", "b"]


def test_sharing_reads_a_pair_in_either_order():
    distances = apart("ab", "c")
    turned = {(b, a): distance for (a, b), distance in distances.items()}
    values = {"a": 1.0, "b": 2.0, "c": 3.0}
    assert shared(values, distances) == shared(values, turned)


def test_sharing_without_distances_is_refused():
    with pytest.raises(ConfigError, match="fitness sharing needs to know"):
        shared({"a": 1.0, "b": 2.0}, None)


@pytest.mark.parametrize("name", ["truncation", "tournament"])
@given(values=role)
def test_the_others_take_values_as_they_are(name, values):
    assert SELECTIONS.get(name).adjust(values, None) == values
