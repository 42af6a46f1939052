"""A model's text to a chain of references, a line per step.

    1 given          a premise
    2 simpl          a lemma without hypotheses
    3 syl 2 1        a lemma, and the lines that its hypotheses are, in their order

A step is a pair: the lemma's label, None for a premise, and the places of the lines that it refers to. Numbers may be
anything that leaves one way to read the references. A formula after them is not read: it says nothing that counts.
"""

import re

MOST_CHARS = 2_000
MOST_LINES = 24
GIVEN = ("given", "premise", "hypothesis")
_NUMBER = r"(?:[-*][ \t]+)?(?:(?:step|line)[ \t]+)?(?:([0-9]{1,4})[.:)]*[ \t]+)?"
_LINE = re.compile(_NUMBER + r"([A-Za-z0-9._-]+)((?:[\s,:]|[(\[]\s*[0-9]).*)?", re.I)
_WORDS = r"(?:(?:from|and|of|to|on|by|lines?|steps?)[ \t]+)*"
_REFERENCE = re.compile(r"[ \t,:(\[]*" + _WORDS + r"([0-9]{1,4})(?![A-Za-z0-9_-]|[.][A-Za-z0-9])", re.I)
_NO_MORE = re.compile(r"[ \t,.;)\]]*(?:$|\|-|#|//|--|:|\(|=>)")


class Refused(Exception):
    """The text is no proof: a reason, and a detail in our words."""

    def __init__(self, reason, detail):
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


def read(text, premises=0, loosely=False):
    """The steps of a text. The premises that a theorem has by itself are the first lines, whether they are written or
    not. Read loosely, lines that are none are left out where most are: small models lose one now and then."""
    if len(text) > MOST_CHARS or not text.isascii():
        raise Refused("syntax", f"more than {MOST_CHARS} characters, or others than ASCII has")
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if len(lines) > MOST_LINES:
        raise Refused("too_complex", f"more than {MOST_LINES} lines")
    written = [_line(line) for line in lines]
    found = [line for line in written if line is not None]
    if not found or (len(found) < len(written) and not (loosely and 2 * len(found) > len(written))):
        raise Refused("syntax", "a line is no step, as in `3 syl 2 1`")
    given = sum(label is None for _, label, _ in found)
    if premises and not given:
        found = [*((number, None, ()) for number in range(1, premises + 1)), *found]
    elif premises and given > premises:
        raise Refused("invalid_step", f"{given} premises, where there are {premises}")
    return _resolved(found)


def _line(line):
    """Number, label and references; None for what is no step."""
    parts = _LINE.fullmatch(line)
    if parts is None:
        return None
    number, label, rest = parts.groups("")
    if label.lower() in GIVEN:
        return _whole(number), None, ()
    references, at = [], 0
    while (found := _REFERENCE.match(rest, at)) is not None:
        references.append(int(found[1]))
        at = found.end()
    if _NO_MORE.match(rest, at) is None or (not number and label.isdigit()):
        return None
    return _whole(number), label, tuple(references)


def _whole(number):
    return int(number) if number else None


def _resolved(found):
    places, steps, last = {}, [], 0
    for at, (number, label, references) in enumerate(found):
        last = last + 1 if number is None else number
        for reference in references:
            if len(places.get(reference, ())) != 1:
                many = "more than one line has" if reference in places else "no line before it has"
                raise Refused("invalid_step", f"step {at + 1} refers to a number that {many}")
        steps.append((label, tuple(places[reference][0] for reference in references)))
        places.setdefault(last, []).append(at)
    return steps


def write(steps):
    """The canonical text."""
    lines = [
        " ".join((str(at), "given" if label is None else label, *(str(place + 1) for place in places)))
        for at, (label, places) in enumerate(steps, 1)
    ]
    return "\n".join(lines)
