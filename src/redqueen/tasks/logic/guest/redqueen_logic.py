"""What the host asks about puzzles; the texts are a model's.

    validate(text)          the puzzle with a secret drawn and its clues made true, or why it is none
    inspect(text)           the puzzle as it stands, or why it is none: for files, whose authors know what they want
    grade(puzzle, answer)   "correct", "wrong" or why it is no answer
    solve(puzzle)           an assignment that is right, as a student would write it

A teacher writes structure. The secret is drawn here, from the hash of what was written, and clues that do not hold for
it are mended: constants are computed anew, signs turned. So a teacher cannot know the answer, and no puzzle is without
one. Clues that others imply are left out.
"""

import hashlib
import re

from logic_bearing import bearing, refuse_idle
from logic_language import Refused, compiled, names_in, read, read_loosely, structure, write
from logic_lot import GUESS, distinct, draw, mended, possibilities, with_room
from logic_parts import (
    largest_part,
    narrowed,
    separate_parts,
    without_answers,
)
from logic_search import OutOfFuel, Search

FUEL = 8_000
"""Of all searches about a puzzle together, in evaluations of a clue."""
MOST_SOLUTIONS = 64
FEWEST_CLUES = 2
FEWEST_HELD = 4
"""Unknowns of what is left where a puzzle fell apart."""
MOST_ANSWER_CHARS = 2_000
_VALUE = re.compile(r"-?[0-9]{1,9}|[A-Za-z][A-Za-z0-9_]*")


def validate(text):
    return _judged(text, read_loosely, _mended_puzzle)


def inspect(text):
    return _judged(text, read, _same_puzzle)


def _judged(text, read_it, sound):
    try:
        fuel = [FUEL]
        groups, clues = read_it(text)
        written = structure(groups, clues)
        groups, clues = sound(groups, clues, fuel)
        # What is shown is what is graded: the text must say the same when it is read again.
        text = write(groups, clues)
        if read(text) != (groups, tuple(clues)):
            raise Refused("unanswerable", "a mended clue cannot be written")
        return {"puzzle": text, "guesses": _solved(groups, clues, fuel)[1], "written": written}
    except Refused as error:
        return {"reason": error.reason, "detail": error.detail}
    except OutOfFuel:
        return {"reason": "too_complex", "detail": f"a search takes more than {FUEL} looks at clues"}


def _mended_puzzle(groups, clues, fuel):
    groups = with_room(groups)
    secret = draw(groups, hashlib.sha256(write(groups, clues).encode("ascii")).digest())
    clues = distinct(mended(clue, True, secret) for clue in clues)
    clues = [clue for clue in clues if names_in(clue)]
    if any(not compiled(clue)(secret) for clue in clues):
        raise Refused("unanswerable", "a clue cannot be made true")
    told = bearing(groups, clues, secret, fuel)
    groups, clues = largest_part(groups, told)
    clues = _closed_and_needed(groups, clues, secret, fuel)
    while len(separate_parts(groups, clues)) > 1:
        # What followed from other clues may have held it together.
        groups, clues = largest_part(groups, clues)
        if sum(len(names) for names, _, _ in groups) < FEWEST_HELD:
            raise Refused("joined", "it falls into parts that have no unknown in common")
        clues = _closed_and_needed(groups, clues, secret, fuel)
    refuse_idle(groups, [clue for clue in clues if clue not in told], secret, fuel)
    return groups, clues


def _closed_and_needed(groups, clues, secret, fuel):
    secret = {name: secret[name] for names, _, _ in groups for name in names}
    return _needed(groups, _closed(groups, without_answers(groups, clues, fuel), secret, fuel), fuel)


def _same_puzzle(groups, clues, fuel):
    solutions = Search(groups, clues, fuel).solutions(1)
    if not solutions:
        raise Refused("unanswerable", "no assignment keeps all clues")
    refuse_idle(groups, clues, solutions[0], fuel)
    if largest_part(groups, clues) != (groups, list(clues)):
        raise Refused("joined", "it falls into parts that have no unknown in common")
    if len(without_answers(groups, clues, fuel)) < len(clues):
        raise Refused("too_easy", "its clues about one unknown are nearly the answer")
    if list(_closed(groups, clues, solutions[0], fuel)) != list(clues):
        raise Refused("guessable", f"more than one in {GUESS} of its assignments are right, or {MOST_SOLUTIONS} in all")
    if (needed := _needed(groups, clues, fuel)) != list(clues):
        idle = next(at for at, clue in enumerate(clues, 1) if clue not in needed)
        raise Refused("too_easy", f"clue {idle} follows from the others")
    return groups, list(clues)


def grade(puzzle, answer):
    groups, clues = read(puzzle)
    domains = {name: values for names, values, _ in groups for name in names}
    given = _answered(answer, domains)
    if isinstance(given, list):
        return given
    for names, _, different in groups:
        if different and len({given[name] for name in names}) < len(names):
            return "wrong"
    return "correct" if all(compiled(clue)(given) for clue in clues) else "wrong"


def solve(puzzle):
    groups, clues = read(puzzle)
    solution, _ = _solved(groups, clues, [FUEL])
    return "\n".join(f"{name} = {solution[name]}" for names, _, _ in groups for name in names)


def _solved(groups, clues, fuel):
    """A solution, and how many guesses all of them take."""
    search = Search(groups, clues, fuel)
    return search.solutions(MOST_SOLUTIONS + 1)[0], search.guesses


# What makes it a task


def _closed(groups, clues, secret, fuel):
    """With so few solutions that guessing does not pay."""
    space = possibilities(groups)
    most = min(MOST_SOLUTIONS, space // GUESS)

    def too_many(clues):
        found = Search(groups, clues, fuel).solutions(most + 1)
        return found if len(found) > most else []

    closed = narrowed(groups, clues, secret, fuel, too_many)
    if closed is None:
        shown = f"more than {most} of {space} assignments are right"
        raise Refused("guessable", f"{shown}; at most one in {GUESS} may be, and {MOST_SOLUTIONS} in all")
    return closed


def _needed(groups, clues, fuel):
    """Without the clues that the others imply, the last ones first."""
    clues = list(clues)
    for clue in reversed(clues):
        others = [other for other in clues if other is not clue]
        if not Search(groups, [*others, ("not", clue)], fuel).solutions(1):
            clues = others
    if len(clues) < FEWEST_CLUES:
        raise Refused("too_easy", f"{len(clues)} clues say all that it says; there must be {FEWEST_CLUES}")
    return clues


# What a student wrote


def _answered(text, domains):
    """The assignment, or a list with why it is none."""
    if len(text) > MOST_ANSWER_CHARS:
        return ["answer_too_long", f"more than {MOST_ANSWER_CHARS} characters"]
    given = {}
    for line in text.split("\n"):
        if not line.strip():
            continue
        name, sign, value = (part.strip() for part in line.partition("="))
        if not sign or name not in domains:
            return ["no_answer", "a line is no `name = value` of one of the unknowns"]
        if name in given:
            return ["no_answer", "an unknown is given twice"]
        if not _VALUE.fullmatch(value):
            return ["no_answer", "a value is neither a number nor a word"]
        given[name] = next((each for each in domains[name] if str(each) == value), None)
    if len(given) < len(domains):
        return ["no_answer", "an unknown is missing"]
    return ["outside", "a value is none of those that its unknown may have"] if None in given.values() else given
