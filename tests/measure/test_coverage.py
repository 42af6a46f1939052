"""The grid is fixed and finite, a task has one cell in it, and coverage only grows."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redqueen.analysis.coverage import Coverage
from redqueen.tasks.code import FAMILY
from redqueen.tasks.code.cells import cell
from redqueen.tasks.code.descriptor import _COMMON, _CONTROL, _RARE
from redqueen.tasks.code.seeds import SEEDS
from redqueen.tasks.protocol import Complexity, Family

cells = st.frozensets(st.sampled_from("abcdefgh"))
SMALL = Complexity(depth=7, cyclomatic=2, lines=4, variables=9)


def test_a_task_has_the_cell_of_its_kind_problem_and_figures():
    seed = SEEDS[1]
    assert seed.complexity == Complexity(depth=7, cyclomatic=3, lines=8, variables=4)
    assert FAMILY.cell(seed.kind, seed.descriptor, seed.complexity) == "code_o/int+loop/d0c1l1"
    assert FAMILY.cell("code_i", seed.descriptor, seed.complexity) == "code_i/int+loop/d0c1l1"


@pytest.mark.parametrize(
    ("field", "letter", "edges"),
    [("depth", "d", (7, 10, 13)), ("cyclomatic", "c", (2, 5, 10)), ("lines", "l", (4, 9, 19))],
)
def test_a_band_ends_with_its_edge(field, letter, edges):
    for band, edge in enumerate(edges):
        assert f"{letter}{band}" in cell("k", "x", replace(SMALL, **{field: edge}))
        assert f"{letter}{band + 1}" in cell("k", "x", replace(SMALL, **{field: edge + 1}))
    assert f"{letter}{len(edges)}" in cell("k", "x", replace(SMALL, **{field: 10**6}))


def test_variables_do_not_change_the_cell():
    assert cell("k", "x", SMALL) == cell("k", "x", replace(SMALL, variables=0))


def test_the_grid_has_as_many_cells_as_it_says():
    figures = [Complexity(*three) for three in product(range(1, 30), repeat=3)]
    assert len({cell("k", "x", each) for each in figures}) == 64
    # One way of control or none, with some of the rare data, or one of the common, or none.
    labels = (2 + len(_CONTROL) + 1) * (2 ** len(_RARE) + len(_COMMON))
    assert (labels, labels * 64) == (114, 7_296)


def test_a_task_without_a_program_has_a_cell_too():
    assert cell("riddle", "plain", Complexity()) == "riddle/plain"
    assert Family.cell(FAMILY, "riddle", "short", SMALL) == "riddle/short", "a family without a grid of its own"


@given(st.lists(cells))
def test_coverage_is_what_was_ever_added_and_news_are_told_once(batches):
    coverage, told = Coverage(), []
    for batch in batches:
        before = coverage
        coverage, new = coverage.add(batch)
        assert before.cells <= coverage.cells
        told += new
    assert sorted(told) == sorted(coverage.cells) == sorted(frozenset().union(*batches))
    assert len(coverage) == len(told)


@given(cells, cells)
def test_a_coverage_that_was_restored_goes_on_as_it_was(first, second):
    coverage = Coverage.of(first)
    assert Coverage.of(sorted(coverage.cells)).add(second) == coverage.add(second)
