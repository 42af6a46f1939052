"""What the host asks about puzzles whose answer is one whole number; the texts are a model's.

    validate(text)   the puzzle with a secret drawn, and its answer, or why it is none
    inspect(text)    the same of the puzzle as it stands: for files, whose authors know what they want

A puzzle as `redqueen_logic` has them ends with `ask SUM`, which must come to the same in all solutions, or with
`ask count`, which is how many solutions there are. As there, the secret is drawn here and clues are changed to fit it;
the terms of what is asked get factors by lot where it would have too few values otherwise.
"""

import hashlib
import math
import re
from collections import Counter
from random import Random

from logic_bearing import bearing, idle, refuse_idle
from logic_language import (
    Refused,
    asking_structure,
    compiled,
    names_in,
    read_asking,
    read_asking_loosely,
    write_asking,
)
from logic_lot import ROOM, distinct, draw, mended, with_room
from logic_parts import (
    LEFT_BY_SINGLE_CLUES,
    left_by_single_clues,
    masks_of_single_clues,
    narrowed,
    only,
    separate_parts,
    told_by,
    without_answers,
)
from logic_search import OutOfFuel, Search, burn

FUEL = 8_000
"""Of all searches about a puzzle together, in evaluations of a clue."""
VALUES, COUNTS = (11, 99_999), (40, 300)
"""The smallest and the largest answer of each sort: small numbers are too often right by chance."""
FEWEST_CLUES = 2
SAMPLES = 64
"""Assignments that say how many values there are to what is asked ..."""
MOST_ALIKE = 0.02
"""... and how many pairs of them may agree: fifty values that are equally likely have as many."""
SECRETS, FACTORS = 3, 12
"""Draws of a solution, and of the factors in what is asked."""
MOST_FACTOR, MOST_TERMS = 40, 4
ROOM_TO_COUNT = 1_024
"""Assignments that ranges are made wide enough for, where solutions are counted."""
FEWEST_TO_CUT, MOST_TO_CUT = 90, 400
"""Solutions before lot leaves some of them out: so that how many stay is its choice alone."""
WEIGHTS = (2, 9)
"""Of unknowns in the clue that does so; the same for all would leave too few choices."""


def validate(text):
    return _judged(text, read_asking_loosely, _drawn)


def inspect(text):
    return _judged(text, read_asking, _as_it_stands)


def _judged(text, read_it, sound):
    try:
        fuel = [FUEL]
        groups, clues, asked = read_it(text)
        written = asking_structure(groups, clues, asked)
        groups, clues, asked = sound(groups, clues, asked, fuel)
        # What is shown is what is asked: the text must say the same when it is read again.
        text = write_asking(groups, clues, asked)
        if read_asking(text) != (groups, tuple(clues), asked):
            raise Refused("unanswerable", "a changed clue cannot be written")
        answer, guesses = _solved(groups, clues, asked, fuel)
        _hide(text, answer, asked)
        return {"text": text, "answer": answer, "steps": guesses, "written": written}
    except Refused as error:
        return {"reason": error.reason, "detail": error.detail}
    except OutOfFuel:
        return {"reason": "too_complex", "detail": f"a search takes more than {FUEL} looks at clues"}


def _solved(groups, clues, asked, fuel):
    """The answer, and the guesses that it takes to know that there is no other."""
    search = Search(groups, clues, fuel)
    if asked is None:
        return len(search.solutions(COUNTS[1] + 1)), search.guesses
    answer = compiled(asked)(search.solutions(1)[0])
    other = Search(groups, [*clues, _is_not(asked, answer)], fuel)
    assert not other.solutions(1), "a puzzle with two answers got here"
    return answer, other.guesses


def _is_not(asked, value):
    return "cmp", "!=", asked, ("int", value)


# By lot


def _drawn(groups, clues, asked, fuel):
    """The puzzle for a secret, the first that does."""
    groups = with_room(groups, ROOM_TO_COUNT if asked is None else ROOM)
    seed = write_asking(groups, clues, asked).encode("ascii")
    for number in reversed(range(SECRETS)):
        own = hashlib.sha256(seed + bytes([number])).digest()
        try:
            return _for_secret(groups, clues, asked, draw(groups, own), Random(own), fuel)
        except Refused:
            if not number:
                raise
    raise AssertionError


def _for_secret(groups, clues, asked, secret, lot, fuel):
    clues = distinct(mended(clue, True, secret) for clue in clues)
    clues = [clue for clue in clues if names_in(clue)]
    if any(not compiled(clue)(secret) for clue in clues):
        raise Refused("unanswerable", "a clue cannot be made true")
    told = bearing(groups, clues, secret, fuel)
    groups, clues = _part(groups, told, asked)
    secret = {name: secret[name] for names, _, _ in groups for name in names}
    if asked is None:
        clues = _loosened(groups, without_answers(groups, clues, fuel), fuel)
        solutions = []
        clues = narrowed(
            groups, clues, secret, fuel, lambda clues: _more_than(MOST_TO_CUT, solutions, groups, clues, fuel)
        )
        clues = clues and [*clues, _cut(groups, solutions, lot, fuel)]
    else:
        asked = _with_terms(groups, asked, secret, fuel)
        clues = without_answers(groups, _left_open(groups, clues, asked, fuel), fuel)
        asked = _with_factors(groups, clues, asked, secret, lot, fuel)
        other, kept = _is_not(asked, compiled(asked)(secret)), names_in(asked)
        clues = narrowed(
            groups, clues, secret, fuel, lambda clues: Search(groups, [*clues, other], fuel).solutions(1), kept
        )
    if clues is None:
        raise Refused("unanswerable", "its clues leave too much open")
    if asked is not None and not _is_wide(groups, masks_of_single_clues(groups, clues, fuel), asked):
        raise Refused("guessable", "what is asked has too few values")
    groups, clues = _part(groups, _needed(groups, clues, asked, secret, fuel), asked)
    _examined(groups, clues, asked, fuel)
    _refuse_idle(groups, [clue for clue in clues if clue not in told], asked, secret, fuel)
    return groups, clues, asked


def _refuse_idle(groups, clues, asked, given, fuel):
    """An unknown that makes no difference, in a clue or in what is asked."""
    refuse_idle(groups, clues, given, fuel)
    if asked is not None and (name := idle(groups, asked, given, fuel)) is not None:
        raise Refused("too_easy", f"{name} makes no difference in what is asked")


def _more_than(most, solutions, groups, clues, fuel):
    """The solutions, where they are more; they are left in the list in any case."""
    solutions[:] = Search(groups, clues, fuel).solutions(most + 1)
    return solutions if len(solutions) > most else []


def _cut(groups, solutions, lot, fuel):
    """A clue that keeps as many solutions as lot says: those with a low weight, or with a high one. It weighs all
    unknowns with numbers, so that its structure follows from the puzzle's."""
    numbers = _numbers_of(groups)
    if len(solutions) < FEWEST_TO_CUT:
        raise Refused("guessable", f"{len(solutions)} solutions are too few to count; there must be {FEWEST_TO_CUT}")
    for _ in range(FACTORS):
        weights = [lot.randint(*WEIGHTS) for _ in numbers]
        if len(numbers) < 2 or math.gcd(*weights) > 1:
            continue
        weight = _sum(("*", ("int", factor), ("name", name)) for factor, name in zip(weights, numbers, strict=True))
        burn(fuel, len(solutions))
        sign = lot.choice("<>")
        found = sorted(map(compiled(weight), solutions), reverse=sign == ">")
        if _are_alike(found):
            continue
        last = found[lot.randrange(COUNTS[0], min(COUNTS[1], len(found) - 1))]
        return "cmp", sign, weight, ("int", last)
    raise Refused("guessable", "its solutions have too few sums to be told apart by")


def _numbers_of(groups):
    """The unknowns with numbers as their values."""
    return [name for names, values, _ in groups if not isinstance(values[0], str) for name in names]


def _sum(terms):
    total, *others = terms
    for term in others:
        total = "+", total, term
    return total


def _loosened(groups, clues, fuel):
    """Without clues about several unknowns, the first ones first, until there are enough solutions to be counted."""
    while len(Search(groups, clues, fuel).solutions(FEWEST_TO_CUT)) < FEWEST_TO_CUT:
        others = [clue for clue in clues if len(set(names_in(clue))) > 1]
        if len(others) <= FEWEST_CLUES - 1:
            break
        clues = [clue for clue in clues if clue is not others[0]]
    return clues


def _with_terms(groups, asked, secret, fuel):
    """What is asked without the terms in which an unknown makes no difference, and with further unknowns beside it, in
    their order, until it has enough values."""
    full = Search(groups, (), [0]).full()
    terms = [term for term in _terms(asked) if idle(groups, term, secret, fuel) is None]
    left = [name for name in _numbers_of(groups) if name not in {inside for term in terms for inside in names_in(term)}]
    while not terms or not _is_wide(groups, full, _weighed(_sum(terms))):
        if not left or len(terms) >= MOST_TERMS:
            raise Refused("guessable", "what is asked has too few values")
        terms.append(("name", left.pop(0)))
    return _sum(terms)


def _weighed(asked):
    """With factors that keep its terms apart, to see how many values it can have."""
    return _sum(("*", ("int", 97**at), _bare(term)) for at, term in enumerate(_terms(asked)))


def _left_open(groups, clues, asked, fuel):
    """Without clues about one unknown, the last ones first, as long as they give away too much of what is asked."""
    inside = set(names_in(asked))
    while not _is_wide(groups, masks_of_single_clues(groups, clues, fuel), _weighed(asked)):
        single = [clue for clue in clues if inside.intersection(told_by(groups, clue))]
        if not single:
            raise Refused("guessable", "what is asked has too few values")
        clues = [clue for clue in clues if clue is not single[-1]]
    return clues


def _with_factors(groups, clues, asked, secret, lot, fuel):
    """What is asked, as it is where it has enough values, or with factors by lot before its terms."""
    masks = masks_of_single_clues(groups, clues, fuel)
    new = asked
    for _ in range(FACTORS):
        if _is_wide(groups, masks, new) and _is_hidden(groups, clues, new, secret):
            return new
        terms = [_bare(term) for term in _terms(asked)]
        factors = [lot.randrange(2, MOST_FACTOR + 1) for _ in terms]
        new = _sum(("*", ("int", factor), term) for factor, term in zip(factors, terms, strict=True))
    raise Refused("guessable", "what is asked has too few values")


def _terms(node):
    """Of a sum; differences become sums, so that what is asked is not negative."""
    return [*_terms(node[1]), *_terms(node[2])] if node[0] in ("+", "-") else [node]


def _bare(term):
    """Without the factors that its teacher gave it: lot draws others."""
    while term[0] == "*" and "int" in (term[1][0], term[2][0]):
        term = term[2] if term[1][0] == "int" else term[1]
    return term[1] if term[0] == "neg" else term


def _is_hidden(groups, clues, asked, secret):
    value = compiled(asked)(secret)
    return VALUES[0] <= value <= VALUES[1] and value not in _numbers(write_asking(groups, clues, asked))


def _hide(text, answer, asked):
    """Refuse an answer that is small or stands in the text."""
    fewest, most = COUNTS if asked is None else VALUES
    if not fewest <= answer <= most:
        raise Refused("guessable", f"the answer is not between {fewest} and {most}")
    if answer in _numbers(text):
        raise Refused("shortcut", "the answer stands in the text")


def _numbers(text):
    return {int(number) for number in re.findall("[0-9]+", text)}


def _is_wide(groups, masks, asked):
    """Whether random assignments seldom agree in it, as far as clues about one unknown leave them open."""
    lot, value, inside, drawn = Random(SAMPLES), compiled(asked), set(names_in(asked)), []
    domains = [(name, values) for names, values, _ in groups for name in names]
    open_ = [
        (name, [each for bit, each in enumerate(values) if mask >> bit & 1])
        for (name, values), mask in zip(domains, masks, strict=True)
        if name in inside
    ]
    for _ in range(SAMPLES):
        drawn.append(value({name: values[int(lot.random() * len(values))] for name, values in open_}))
    return not _are_alike(drawn)


def _are_alike(values):
    """Whether so many pairs of them agree that one of them is a good guess."""
    alike = sum(count * (count - 1) for count in Counter(values).values())
    return alike > MOST_ALIKE * len(values) * (len(values) - 1)


def _part(groups, clues, asked):
    """What hangs together with what is asked, or the largest part where solutions are counted."""
    if asked is None:
        return only(groups, clues, max(separate_parts(groups, clues), key=len))
    asking = [*clues, _is_not(asked, 0)]
    name = names_in(asked)[0]
    return only(groups, clues, next(part for part in separate_parts(groups, asking) if name in part))


def _needed(groups, clues, asked, secret, fuel):
    """Without the clues that the answer does not need, the last ones first."""
    for clue in reversed(clues):
        others = [other for other in clues if other is not clue]
        against = ("not", clue) if asked is None else _is_not(asked, compiled(asked)(secret))
        if not Search(groups, [*others, against], fuel).solutions(1):
            clues = others
    return clues


# As it stands


def _as_it_stands(groups, clues, asked, fuel):
    solutions = Search(groups, clues, fuel).solutions(1)
    if not solutions:
        raise Refused("unanswerable", "no assignment keeps all clues")
    _refuse_idle(groups, clues, asked, solutions[0], fuel)
    if _part(groups, clues, asked) != (groups, list(clues)):
        raise Refused("joined", "it falls into parts that have no unknown in common")
    if asked is not None:
        against = _is_not(asked, compiled(asked)(solutions[0]))
        if Search(groups, [*clues, against], fuel).solutions(1):
            raise Refused("unanswerable", "what is asked is not the same in all solutions")
        if not _is_wide(groups, masks_of_single_clues(groups, clues, fuel), asked):
            raise Refused("guessable", "what is asked has too few values")
    _examined(groups, clues, asked, fuel)
    needed = _needed(groups, clues, asked, solutions[0], fuel)
    if len(needed) < len(clues):
        idle = next(at for at, clue in enumerate(clues, 1) if clue not in needed)
        raise Refused("too_easy", f"clue {idle} is not needed for the answer")
    return groups, list(clues), asked


def _examined(groups, clues, asked, fuel):
    """Refuse what is too easy or too easily guessed."""
    if len(clues) < FEWEST_CLUES:
        raise Refused("too_easy", f"{len(clues)} clues say all that it says; there must be {FEWEST_CLUES}")
    if len(separate_parts(groups, [*clues, *([_is_not(asked, 0)] if asked else [])])) > 1:
        raise Refused("joined", "it falls into parts that have no unknown in common")
    if left_by_single_clues(groups, clues, fuel) < LEFT_BY_SINGLE_CLUES:
        raise Refused("too_easy", "its clues about one unknown are nearly the answer")
