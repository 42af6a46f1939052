"""The language of puzzles: text to syntax (`reading`, `clues`, and `mending` for what teachers write), syntax to its
one canonical text (`writing`), what clues come to (`evaluation`), what puzzles have in common (`shape`, `keys`).

    Ann, Bob, Cy in 1..3, different        unknowns with whole numbers as their domain, no two of them alike
    A, B in knight, knave                  unknowns with words
    Ann < Bob                              clues: a line each
    A says B == knave

Whatever is not on this list is refused, so nothing that is written here can do anything.
"""

from .evaluation import compiled
from .keys import asking_figures, asking_structure, figures, structure
from .mending import read_asking_loosely, read_loosely
from .reading import read, read_asking
from .terms import (
    FLIPPED,
    KNIGHTS,
    MOST_CHARS,
    MOST_CLUES,
    MOST_UNKNOWNS,
    MOST_VALUES,
    NODES_KEPT,
    Refused,
    conditions_in,
    is_range,
    names_in,
)
from .writing import write, write_asking, write_clue

__all__ = [
    "FLIPPED",
    "KNIGHTS",
    "MOST_CHARS",
    "MOST_CLUES",
    "MOST_UNKNOWNS",
    "MOST_VALUES",
    "NODES_KEPT",
    "Refused",
    "asking_figures",
    "asking_structure",
    "compiled",
    "conditions_in",
    "figures",
    "is_range",
    "names_in",
    "read",
    "read_asking",
    "read_asking_loosely",
    "read_loosely",
    "structure",
    "write",
    "write_asking",
    "write_clue",
]
