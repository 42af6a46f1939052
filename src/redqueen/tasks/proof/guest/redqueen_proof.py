"""The checker of the proof family. It loads its database once, before anything of a model is there: the file that
`sys.argv` names, or else the one that comes with the package."""

import sys
from pathlib import Path

from metamath_kernel import judging
from metamath_kernel.library import load

PACKED = Path(__file__).parents[1] / "propositional.mm.gz"
LIBRARY = load(sys.argv[1] if len(sys.argv) > 1 else PACKED)


def validate(kind, text):
    """A teacher's text."""
    return judging.judged(LIBRARY, kind, text, loosely=True)


def inspect(kind, text):
    """A text that is to be taken as it stands."""
    return judging.judged(LIBRARY, kind, text, loosely=False)


def grade_proof(shown, text):
    return judging.grade_proof(LIBRARY, shown, text)


def grade_formula(shown, text):
    return judging.grade_formula(LIBRARY, shown, text)
