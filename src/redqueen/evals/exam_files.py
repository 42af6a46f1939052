"""Exams that have names: those of bases that come with the package, and the one for all others."""

from pathlib import Path

from redqueen.engine.known import EMBEDDED
from redqueen.errors import InputError
from redqueen.tasks import code

FUNCTIONS = "functions"
"""The exam for bases that have none of their own: small functions in everyday Python, written for it."""


def exam_file(name: str) -> Path:
    """The exam of this name: `functions`, or that of a base that comes with the package; or else the file."""
    if name == FUNCTIONS:
        return Path(code.__file__).with_name("functions.jsonl")
    if name not in EMBEDDED:
        path = Path(name)
        if not path.suffix and not path.exists():
            names = [FUNCTIONS, *(name for name, each in EMBEDDED.items() if each.exam.is_file())]
            raise InputError(f"there is no exam {name}, and no such file", f"use {', '.join(names)} or a .jsonl file")
        return path
    if not EMBEDDED[name].exam.is_file():
        raise InputError(f"the base {name} comes without an exam", "give a .jsonl file")
    return EMBEDDED[name].exam


def usual_exam(base: str) -> Path:
    """What members of this base are examined with when nobody names an exam."""
    return exam_file(base if base in EMBEDDED and EMBEDDED[base].exam.is_file() else FUNCTIONS)
