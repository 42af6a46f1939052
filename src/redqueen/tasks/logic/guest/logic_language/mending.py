"""What a teacher wrote, read with what cannot be meant mended or left out: small models lose a line now and then.

Teachers write structure, and enough of it may be left. Files, whose authors know what they want, are read by `reading`.
"""

from .clues import ClueReader
from .reading import clues_of, declared, lines_of, questions_of, tokens_of
from .terms import COUNT, FLIPPED, MOST_VALUES, Refused, Scope

_ENDS = {*FLIPPED, "="}

FEWEST_READ, LEAST_PART_READ = 2, 3
"""Clues that must be left where lines are left out, and one in how many lines they must be: what is paid for is not
noise with a clue in it."""


def read_loosely(text):
    """Groups and clues, without the lines that are none."""
    declarations, told = lines_of(text)
    groups, refused = _groups(declarations)
    if refused and not groups:
        raise refused[0]
    scope, clues, read = Scope(groups), [], 0
    for number, line in enumerate(told, 1):
        try:
            clues += clues_of(line, number, scope)
            read += 1
        except Refused as error:
            refused.append(error)
    if refused and (read < FEWEST_READ or read * LEAST_PART_READ < read + len(refused)):
        raise refused[0]
    return groups, tuple(clues)


def read_asking_loosely(text):
    """The same with the last question that can be read, up to what it is compared with."""
    puzzle, questions = questions_of(text)
    groups, clues = read_loosely(puzzle)
    scope, refused = Scope(groups), []
    for question in reversed(questions):
        try:
            tokens = tokens_of(question)
            end = next((at for at, (kind, sign) in enumerate(tokens) if kind == "sign" and sign in _ENDS), len(tokens))
            return groups, clues, None if question == COUNT else ClueReader(tokens[:end], scope).whole_sum()
        except Refused as error:
            refused.append(error)
    raise refused[0]


def _groups(lines):
    """Each name where it comes first, with the first values of a domain that has too many; and why other lines declare
    nothing."""
    groups, refused, names, words = [], [], set(), set()
    for line in lines:
        try:
            own, domain, different = declared(tokens_of(line))
        except Refused as error:
            refused.append(error)
            continue
        domain = tuple(value for value in dict.fromkeys(domain) if value not in names)[:MOST_VALUES]
        own = tuple(name for name in dict.fromkeys(own) if name not in names and name not in words | {*domain})
        if own and len(domain) > 1:
            groups.append((own, domain, different))
            names.update(own)
            words.update(value for value in domain if isinstance(value, str))
    return tuple(groups), refused
