"""Text to groups and clues, line by line."""

import re

from .clues import ClueReader
from .terms import COUNT, MOST_CHARS, MOST_CLUES, MOST_NUMBER, MOST_VALUES, RESERVED, Refused, Scope

_TOKEN = re.compile(r"[ \t]*(?:([0-9]+)|([A-Za-z][A-Za-z0-9_]*)|(==|!=|<=|>=|\.\.|[=<>+\-*%(),]))")
_ASKS = re.compile(r"[ \t]*(?:[-*] |[0-9]+[.)] )?(?:ask|Ask|find|Find|what is|What is)\b:?[ \t]*(.*?)[ \t.?;]*$")
_BULLET = re.compile(r"^[ \t]*(?:[-*] |[0-9]+[.)] )?")
_DECLARES = re.compile(r"[ \t]in[ \t]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,19}")


def read(text):
    """Groups and clues; every line must be one."""
    declarations, told = lines_of(text)
    groups, clues = tuple(_group(tokens_of(line)) for line in declarations), []
    scope = Scope(groups)
    for number, line in enumerate(told, 1):
        clues += clues_of(line, number, scope)
    return groups, tuple(clues)


def read_asking(text):
    """Groups and clues of a puzzle, and the sum that its last question asks for; None where that is how many solutions
    it has."""
    puzzle, questions = questions_of(text)
    groups, clues = read(puzzle)
    asked = questions[-1]
    return groups, clues, None if asked == COUNT else ClueReader(tokens_of(asked), Scope(groups)).whole_sum()


def questions_of(text):
    """The text without the lines that ask for something, and what these ask for."""
    lines = text.split("\n")
    questions = [found[1] for line in lines if (found := _ASKS.match(line))]
    if not questions:
        raise Refused("no_question", "no line says what is asked, as in `ask Ann * Bob` or `ask count`")
    return "\n".join(line for line in lines if not _ASKS.match(line)), questions


def lines_of(text):
    """Those that declare unknowns, and the others, which are clues."""
    if len(text) > MOST_CHARS or not text.isascii():
        raise Refused("syntax", f"more than {MOST_CHARS} characters, or others than ASCII has")
    lines = [_BULLET.sub("", line).strip() for line in text.split("\n")]
    lines = [line for line in lines if line and not line.startswith("#")]
    told = [line for line in lines if not _DECLARES.search(line)]
    if len(told) > MOST_CLUES:
        raise Refused("too_complex", f"more than {MOST_CLUES} clues")
    return [line for line in lines if _DECLARES.search(line)], told


def clues_of(line, number, scope):
    """What a line says; it may be several things."""
    try:
        return ClueReader(tokens_of(line), scope).clues()
    except Refused as error:
        raise Refused(error.reason, f"clue {number}: {error.detail}") from error


def tokens_of(line):
    tokens, at = [], 0
    line = line.rstrip(" \t.;")
    while at < len(line):
        found = _TOKEN.match(line, at)
        if found is None:
            raise Refused("syntax", "a character that no puzzle has")
        number, word, sign = found.groups()
        if number and (len(number) > 4 or int(number) > MOST_NUMBER):
            raise Refused("syntax", f"a number above {MOST_NUMBER}")
        if word and not _NAME.fullmatch(word):
            raise Refused("syntax", "a name of more than 20 letters")
        tokens.append(("number", int(number)) if number else ("word", word) if word else ("sign", sign))
        at = found.end()
    return tokens


def _group(tokens):
    names, domain, different = declared(tokens)
    if not 2 <= len(domain) <= MOST_VALUES or len(set(domain)) < len(domain):
        raise Refused("syntax", f"a domain has 2 to {MOST_VALUES} values, each once")
    return names, domain, different


def declared(tokens):
    """`Ann, Bob in 1..3, different`, with as many values as are written."""
    at = tokens.index(("word", "in"))
    names, values = _listed(tokens[:at]), _parts(tokens[at + 1 :])
    different = values[-1:] == [[("word", "different")]]
    values = values[:-1] if different else values
    domain = _range(values[0]) if len(values) == 1 and len(values[0]) >= 3 else tuple(_listed_values(values))
    return tuple(names), domain, different


def _parts(tokens):
    parts = [[]]
    for token in tokens:
        if token == ("sign", ","):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _listed(tokens):
    parts = _parts(tokens)
    if not all(len(part) == 1 and part[0][0] == "word" and part[0][1] not in RESERVED for part in parts):
        raise Refused("syntax", "names are separated by commas, as in `Ann, Bob in 1..3`")
    return [part[0][1] for part in parts]


def _listed_values(parts):
    kinds = {part[0][0] if len(part) == 1 else "none" for part in parts}
    if kinds not in ({"word"}, {"number"}) or any(part[0][1] in RESERVED for part in parts):
        raise Refused("syntax", "a domain is a range like 1..5, or values separated by commas")
    return [part[0][1] for part in parts]


def _range(tokens):
    values, sign = [], 1
    for kind, value in tokens:
        if (kind, value) == ("sign", "-"):
            sign = -1
        elif kind == "number":
            values.append(sign * value)
            sign = 1
        elif (kind, value) != ("sign", ".."):
            raise Refused("syntax", "a range is written as in 1..5")
    if len(values) != 2 or values[0] >= values[1]:
        raise Refused("syntax", f"a range has 2 to {MOST_VALUES} numbers, the lower one first")
    return tuple(range(values[0], values[1] + 1))
