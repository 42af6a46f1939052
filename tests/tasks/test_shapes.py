"""Shapes find exactly those patterns whose labels fit, and the parts that stand for their leaves."""

from hypothesis import given
from hypothesis import strategies as some

from redqueen.tasks.proof.guest.metamath_kernel.shapes import Shapes
from redqueen.tasks.proof.guest.metamath_kernel.terms import Fuel, is_leaf, leaves, match, own

LABELS = {"true": 0, "not": 1, "and": 2, "if": 3}


def trees(leaf):
    def over(inner):
        return some.one_of(
            *(some.tuples(some.just(label), *[inner] * arity) for label, arity in LABELS.items() if arity)
        )

    return some.recursive(leaf | some.just(("true",)), over, max_leaves=6)


PATTERNS = trees(some.integers(0, 9))
TREES = trees(some.sampled_from([own("ph"), own("ps")]))


def linear(tree):
    """The tree with a number of its own for each leaf, from left to right."""
    numbers = iter(range(100))

    def copy(part):
        return next(numbers) if is_leaf(part) else (part[0], *map(copy, part[1:]))

    return copy(tree)


@given(some.lists(PATTERNS, max_size=12), some.lists(TREES | PATTERNS, min_size=1, max_size=12))
def test_as_if_each_pattern_were_matched(patterns, asked):
    shapes = Shapes()
    numbers = [shapes.add(pattern) for pattern in patterns]
    for tree in [*asked, *patterns]:
        found = shapes.of(tree, Fuel())
        expected = {}
        for number, pattern in zip(numbers, patterns, strict=True):
            meant = {}
            if match(linear(pattern), tree, meant, Fuel()):
                expected[number] = [meant[leaf] for leaf in leaves(linear(pattern))]
        assert found == expected


def test_it_burns_fuel():
    shapes, fuel = Shapes(), Fuel()
    shapes.add(("and", 0, 1))
    before = fuel.left
    shapes.of(("and", own("ph"), own("ps")), fuel)
    assert fuel.left < before
