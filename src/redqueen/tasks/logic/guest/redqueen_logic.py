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

from logic_language import (
    FLIPPED,
    KNIGHTS,
    MOST_VALUES,
    Refused,
    is_range,
    names_in,
    read,
    read_loosely,
    structure,
    write,
)
from logic_search import OutOfFuel, Search, candidates, compiled

FUEL = 8_000
"""Of all searches about a puzzle together, in evaluations of a clue."""
GUESS = 64
"""One assignment in so many may be right at most."""
ROOM = 4 * GUESS
"""Assignments that ranges are made wide enough for."""
LEFT_BY_SINGLE_CLUES = 32
"""Assignments at least that clues about one unknown leave: otherwise they are the answer."""
MOST_SOLUTIONS = 64
MOST_GIVEN = 2
"""Values that are given away, where clues leave too much open."""
FEWEST_CLUES = 2
MOST_ANSWER_CHARS = 2_000


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
    groups = _with_room(groups)
    secret = _draw(groups, hashlib.sha256(write(groups, clues).encode("ascii")).digest())
    clues = _distinct(_mended(clue, True, secret) for clue in clues)
    clues = [clue for clue in clues if names_in(clue)]
    if any(not compiled(clue)(secret) for clue in clues):
        raise Refused("unanswerable", "a clue cannot be made true")
    groups, clues = _largest_part(groups, clues)
    secret = {name: secret[name] for names, _, _ in groups for name in names}
    clues = _without_answers(groups, clues, fuel)
    clues = _needed(groups, _closed(groups, clues, secret, fuel), fuel)
    return _in_one_part(groups, clues, fuel)


def _same_puzzle(groups, clues, fuel):
    solutions = Search(groups, clues, fuel).solutions(1)
    if not solutions:
        raise Refused("unanswerable", "no assignment keeps all clues")
    if _largest_part(groups, clues) != (groups, list(clues)):
        raise Refused("joined", "it falls into parts that have no unknown in common")
    if len(_without_answers(groups, clues, fuel)) < len(clues):
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


# The secret


def _with_room(groups):
    """With ranges that go on until there are enough assignments for a few of them to be right, and words of which there
    are too few for unknowns that are different shared after all."""
    groups = tuple(
        (names, values, different and (is_range(values) or len(names) <= len(values)))
        for names, values, different in groups
    )
    while _space(groups) < ROOM:
        wider = tuple(
            (names, (*values, values[-1] + 1) if is_range(values) and len(values) < MOST_VALUES else values, different)
            for names, values, different in groups
        )
        if wider == groups:
            break
        groups = wider
    return groups


def _space(groups):
    return candidates(groups, [(1 << len(values)) - 1 for names, values, _ in groups for _ in names])


def _draw(groups, seed):
    """An assignment by lot."""
    secret, drawn = {}, 0

    def below(bound):
        nonlocal drawn
        drawn += 1
        return int.from_bytes(hashlib.sha256(seed + drawn.to_bytes(2, "big")).digest()[:8], "big") % bound

    for names, values, different in groups:
        left = list(values)
        for name in names:
            at = below(len(left))
            secret[name] = left[at]
            if different:
                del left[at]
    return secret


def _mended(node, wanted, secret):
    """The clue, changed as little as makes it true for the secret, or false."""
    what = node[0]
    if bool(compiled(node)(secret)) == wanted:
        return node
    if what == "says":
        return "says", node[1], _mended(node[2], (secret[node[1]] == KNIGHTS[0]) == wanted, secret)
    if what == "not":
        return "not", _mended(node[1], not wanted, secret)
    if what in ("and", "or"):
        if (what == "and") == wanted:
            return what, tuple(_mended(part, wanted, secret) for part in node[1])
        return what, (_mended(node[1][0], wanted, secret), *node[1][1:])
    _, op, left, right = node
    if not wanted:
        return "cmp", FLIPPED[op], left, right
    if op == "==":
        return _made_equal(left, right, secret)
    if op == "!=":
        return "cmp", "==", left, right
    return _as_it_is(left, right, secret)


def _made_equal(left, right, secret):
    """With another constant, where there is one that may change; as they are ordered otherwise."""
    more, less = compiled(left)(secret), compiled(right)(secret)
    for side, other, value in ((right, left, more), (left, right, less)):
        if side[0] in ("int", "word"):
            new = ("word", value) if isinstance(value, str) else ("int", value)
            return ("cmp", "==", other, new) if side is right else ("cmp", "==", new, other)
    if isinstance(more, str):
        return "cmp", "!=", left, right
    for side, other, lacks in ((right, left, more - less), (left, right, less - more)):
        if side[0] in ("+", "-") and side[2][0] == "int":
            term = (side[2][1] if side[0] == "+" else -side[2][1]) + lacks
            new = side[1] if term == 0 else ("+" if term > 0 else "-", side[1], ("int", abs(term)))
            return ("cmp", "==", other, new) if side is right else ("cmp", "==", new, other)
    return _as_it_is(left, right, secret)


def _as_it_is(left, right, secret):
    more, less = compiled(left)(secret), compiled(right)(secret)
    return "cmp", "==" if more == less else "<" if more < less else ">", left, right


# What makes it a task


def _distinct(clues):
    parts = [part for clue in clues for part in (clue[1] if clue[0] == "and" else (clue,))]
    return list(dict.fromkeys(parts))


def _without_answers(groups, clues, fuel):
    """With so few clues about one unknown that these are not the answer; the last ones go first."""
    while (left := _left(groups, clues, fuel)) < LEFT_BY_SINGLE_CLUES:
        single = [clue for clue in clues if len(set(names_in(clue))) == 1]
        if not single:
            fewest = f"there must be {LEFT_BY_SINGLE_CLUES}"
            raise Refused("too_easy", f"{left} assignments are all that its unknowns have; {fewest}")
        clues = [clue for clue in clues if clue is not single[-1]]
    return clues


def _left(groups, clues, fuel):
    """The assignments that clues about one unknown leave."""
    return candidates(groups, Search(groups, clues, fuel).after_single_clues())


def _closed(groups, clues, secret, fuel):
    """With so few solutions that guessing does not pay. Where there are more, clues that only order sums say how far
    apart these are, the last ones first; then a value or two are given away."""
    space = _space(groups)
    most = min(MOST_SOLUTIONS, space // GUESS)
    blunt = [at for at, clue in enumerate(clues) if clue[0] == "cmp" and clue[1] != "==" and _is_sum(clue[2], secret)]
    givens = sorted(secret, key=lambda name: hashlib.sha256(f"{name} {secret[name]}".encode("ascii")).digest())
    most_given = MOST_GIVEN
    while len(solutions := Search(groups, clues, fuel).solutions(most + 1)) > most:
        if blunt:
            at = blunt.pop()
            sharper = [*clues[:at], _apart(clues[at][2], clues[at][3], secret), *clues[at + 1 :]]
            clues = sharper if _left(groups, sharper, fuel) >= LEFT_BY_SINGLE_CLUES else clues
            continue
        told = [name for name in givens if any(found[name] != secret[name] for found in solutions)]
        given = [*clues, _given(told[0], secret)] if told else clues
        if not told or not most_given or _left(groups, given, fuel) < LEFT_BY_SINGLE_CLUES:
            shown = f"more than {most} of {space} assignments are right"
            raise Refused("guessable", f"{shown}; at most one in {GUESS} may be, and {MOST_SOLUTIONS} in all")
        clues, most_given = given, most_given - 1
    return _distinct(clues)


def _given(name, secret):
    value = secret[name]
    return "cmp", "==", ("name", name), ("word" if isinstance(value, str) else "int", value)


def _is_sum(side, secret):
    return not isinstance(compiled(side)(secret), str)


def _apart(left, right, secret):
    """How far apart two sums are, said from the lower one."""
    more, less = compiled(left)(secret), compiled(right)(secret)
    if right[0] == "int":
        return "cmp", "==", left, ("int", more)
    if more < less:
        left, right, more, less = right, left, less, more
    return "cmp", "==", left, right if more == less else ("+", right, ("int", more - less))


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


def _in_one_part(groups, clues, fuel):
    """What clues were left out may have held it together: then the largest part, if that is a puzzle too."""
    if len(_parts(groups, clues)) > 1:
        groups, clues = _largest_part(groups, clues)
        space = _space(groups)
        most = min(MOST_SOLUTIONS, space // GUESS)
        closed = most and len(Search(groups, clues, fuel).solutions(most + 1)) <= most
        if len(clues) < FEWEST_CLUES or not closed or _left(groups, clues, fuel) < LEFT_BY_SINGLE_CLUES:
            raise Refused("joined", "it falls into parts that have no unknown in common")
    return groups, clues


def _largest_part(groups, clues):
    """The part with most unknowns, the first of these, and what is said about it alone."""
    kept = max(_parts(groups, clues), key=len)
    groups = [(tuple(name for name in names if name in kept), values, apart) for names, values, apart in groups]
    groups = tuple(group for group in groups if group[0])
    return groups, [clue for clue in clues if kept.issuperset(names_in(clue))]


def _parts(groups, clues):
    """Unknowns hang together by clues and by being different."""
    parts = [{name} for names, _, _ in groups for name in names]
    together = [set(names) for names, _, different in groups if different] + [set(names_in(clue)) for clue in clues]
    for names in together:
        joined = [part for part in parts if not names.isdisjoint(part)]
        if len(joined) > 1:
            first, *others = joined
            first.update(*others)
            parts = [part for part in parts if part not in others]
    return parts


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
        found = [each for each in domains[name] if str(each) == value]
        if not found:
            return ["no_answer", "a value that is not in its domain"]
        given[name] = found[0]
    return given if len(given) == len(domains) else ["no_answer", "an unknown is missing"]
