"""The grid of programs' structures, whose cells `analysis.coverage` counts.

A task falls into one cell, by its kind, its type of problem and three figures of its program in bands. The grid never
changes, so coverage can be compared between runs. Each kind has 64 cells for every type of problem: the 114 types make
7,296 cells for a kind, many of which no program can fill (a class in two lines).
"""

from redqueen.tasks.protocol import NO_COMPLEXITY, Complexity

DEPTHS, DECISIONS, LINES = (7, 10, 13), (2, 5, 10), (4, 9, 19)
"""The highest value of each band but the last, which has no end. Of the solutions of HumanEval and MBPP nearly all are
in the first two bands: there is room above for a race to climb."""


def cell(kind: str, descriptor: str, complexity: Complexity) -> str:
    """The cell of what a record says of a task: `code_o/list+loop/d1c0l2`, with the bands from 0."""
    if complexity == NO_COMPLEXITY:
        return f"{kind}/{descriptor}"
    return f"{kind}/{descriptor}/{complexity.bands(depth=DEPTHS, cyclomatic=DECISIONS, lines=LINES)}"
