"""What makes two puzzles the same: neither names nor notation nor what lot draws; and what does not."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from puzzles import puzzle
from random_stories import problem

from redqueen.tasks.logic.guest.logic_language import (
    FLIPPED,
    asking_figures,
    asking_structure,
    figures,
    read,
    read_asking,
    structure,
    write,
    write_asking,
)

TURNED = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
THREE = "red, green, blue in 1..9\n"
Groups = tuple[tuple[tuple[str, ...], tuple[Any, ...], bool], ...]


class Rewriter:
    """Writes the same in another way, by lot."""

    def __init__(self, rng: Random, groups: Groups) -> None:
        names = [name for own, _, _ in groups for name in own]
        self.rng = rng
        self.new = dict(zip(names, rng.sample([f"n{at}" for at in range(len(names))], len(names)), strict=True))
        self.numbers = {name for own, values, _ in groups if not isinstance(values[0], str) for name in own}

    def shuffled(self, parts: Any) -> tuple[Any, ...]:
        return tuple(self.rng.sample(list(parts), len(parts)))

    def groups(self, groups: Groups) -> Groups:
        found = []
        for names, values, different in groups:
            names = self.shuffled([self.new[name] for name in names])
            at = 0 if different else self.rng.randrange(len(names))
            values = self.shuffled(values) if isinstance(values[0], str) else values
            found += [(own, values, different) for own in (names[:at], names[at:]) if own]
        return self.shuffled(found)

    def condition(self, node: tuple[Any, ...]) -> tuple[Any, ...]:
        what = node[0]
        if what == "says":
            return what, self.new[node[1]], self.condition(node[2])
        if what in ("and", "or"):
            return what, self.shuffled([self.condition(part) for part in node[1]])
        if what == "not":
            node = what, self.condition(node[1])
        else:
            _, op, left, right = node
            sides = self.sum(left), self.sum(right)
            node = "cmp", op, *sides
            if self.rng.random() < 0.5:
                node = "cmp", TURNED[op], *reversed(sides)
            if self.rng.random() < 0.3:
                node = "not", ("cmp", FLIPPED[node[1]], *node[2:])
        return ("not", ("not", node)) if self.rng.random() < 0.2 else node

    def sum(self, node: tuple[Any, ...]) -> tuple[Any, ...]:
        what = node[0]
        if what in ("int", "word"):
            return node
        if what == "count":
            return what, self.shuffled([self.condition(part) for part in node[1]])
        if what == "name":
            name = what, self.new[node[1]]
            padded = [("*", ("int", 1), name), ("+", name, ("int", 0)), ("-", name, ("int", 0)), name, name, name]
            return self.rng.choice(padded) if node[1] in self.numbers else name
        parts = [self.sum(part) for part in node[1:]]
        return what, *(self.shuffled(parts) if what in ("+", "*") else parts)


@given(st.integers(0, 10**6))
@settings(max_examples=200, deadline=None)
def test_a_puzzle_that_is_written_in_another_way_has_the_same_key(seed):
    rng = Random(seed)
    groups, clues = read(puzzle(rng))
    rewriter = Rewriter(rng, groups)
    text = write(rewriter.groups(groups), rewriter.shuffled([rewriter.condition(clue) for clue in clues]))
    assert figures(text)["structure"] == structure(groups, clues)


@given(st.integers(0, 10**6))
@settings(max_examples=100, deadline=None)
def test_a_puzzle_with_a_number_that_is_written_in_another_way_has_the_same_key(seed):
    rng = Random(seed)
    groups, clues, asked = read_asking(problem(rng))
    rewriter = Rewriter(rng, groups)
    turned = rewriter.shuffled([rewriter.condition(clue) for clue in clues])
    text = write_asking(rewriter.groups(groups), turned, asked and rewriter.sum(asked))
    assert asking_figures(text)["structure"] == asking_structure(groups, clues, asked)


@pytest.mark.parametrize(
    "clues",
    [
        ("red == green + 3", "green == red - 4", "1 * red == green + 0", "red - green == 5", "not red != green",
         "green > red", "2 * red == 2 * green + 8", "count(blue < green) == 1", "red == 7\ngreen > blue"),
        ("red * green == 6", "green * red * 1 != 4", "3 == red * green", "not not blue * green < 2"),
        ("abs(red - green) == 2", "abs(green - red) == 1", "4 > abs(blue - red)"),
        ("red < green or red < blue", "not (blue < red and green < red)", "red < green or (red < blue or green > red)"),
        ("red + green == blue", "blue - green == red", "green - blue + red == 0"),
        ("(red + green) * blue == 12", "blue * green + red * blue == 7"),
    ],
)  # fmt: skip
def test_clues_that_say_the_same_but_for_what_lot_draws_have_one_key(clues):
    assert len({figures(THREE + clue)["structure"] for clue in clues}) == 1


def test_what_is_asked_is_the_same_but_for_factors_and_the_order_of_terms():
    told = THREE + "red < green\ngreen < blue\nask "
    same = ("red * green + blue", "3 * blue + green * red", "7 * green * red - blue + 1")
    others = ("red * blue + green", "red + green + blue", "red * green", "count")
    assert len({asking_figures(told + asked)["structure"] for asked in same}) == 1
    assert len({asking_figures(told + asked)["structure"] for asked in (same[0], *others)}) == 5


def test_other_clues_make_another_puzzle():
    clues = (
        "red < green", "red + green == 4", "2 * red == green", "red * green == 6", "abs(red - green) == 2",
        "red % 2 == green", "red < green\ngreen < blue", "red < green\nred < blue\ngreen < blue", "red + green == blue",
        "red < green or green < blue", "red < green or red * blue == 4", "count(red < green, green < blue) == 1",
        "2 * red + green == blue", "red * red == green", "red + green + blue == 9",
    )  # fmt: skip
    texts = [declared + clue for clue in clues for declared in (THREE, THREE.replace("9", "9, different"))]
    assert len({figures(text)["structure"] for text in texts}) == len(texts)


def test_structures_by_lot_seldom_have_the_same_key():
    rng = Random(5)
    assert len({figures(puzzle(rng))["structure"] for _ in range(500)}) > 480


def test_who_stands_where_counts_where_no_clue_by_itself_tells():
    """Six unknowns each below the next: in one ring, or in one with a way across."""
    ring = ["a < b", "b < c", "c < d", "d < e", "e < f", "f < a"]
    names = "a, b, c, d, e, f in 1..9\n"
    first, second = (figures(names + "\n".join([*ring, across]))["structure"] for across in ("a < d", "a < c"))
    assert first != second
