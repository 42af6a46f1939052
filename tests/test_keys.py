"""Keys of random numbers."""

from hypothesis import given
from hypothesis import strategies as st

from redqueen.keys import key, numbers

PARTS = st.lists(st.one_of(st.integers(), st.text()), max_size=4)


@given(PARTS, PARTS)
def test_different_parts_give_different_keys(one, other):
    same = [(type(part), part) for part in one] == [(type(part), part) for part in other]
    assert (key(*one) == key(*other)) is same


def test_a_key_is_the_same_in_every_process_and_has_64_bits():
    assert key(0, 10, "evolve", "t0", 3) == 17396173591203720757
    assert all(0 <= key(index) < 1 << 64 for index in range(100))


def test_numbers_for_the_same_parts_repeat():
    assert numbers(1, "match").random() == numbers(1, "match").random() != numbers(2, "match").random()
