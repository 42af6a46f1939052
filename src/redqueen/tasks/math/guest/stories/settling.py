"""Whether a story as it stands settles its question: the answer, which sentences it needs, how many steps it takes."""

from .drawing import FEWEST_ANSWER
from .equations import Equations
from .forms import EVENTS, MOST_NUMBER, ZERO
from .linear import ONE, Reduced, TooLarge
from .reading import Refused

FEWEST_NEEDED = 2
"""Sentences that the answer needs, beside those about who begins with nothing."""
_STUCK = 2
"""Steps that count for each quantity that follows only from several sentences at once."""


def answer_of(sentences, question):
    """What is asked, as numerator and denominator; None where it is not settled, or where sentences contradict."""
    _, reduced, asked = _reduced(sentences, question)
    return None if reduced.bound or not reduced.determined(asked) else reduced.value(asked)


def _reduced(sentences, question):
    equations = Equations(sentences, question)
    rows = list(equations.filled(equations.numbers(sentences, question)))
    try:
        return rows, Reduced(rows), equations.asked
    except TooLarge:
        raise Refused("too_complex", "its numbers grow too large") from None


def needed(sentences, question):
    """Without the sentences that the answer does not need, the last ones first."""
    answer, kept = answer_of(sentences, question), list(sentences)
    for sentence in reversed(sentences):
        others = [each for each in kept if each is not sentence]
        if answer is not None and answer_of(others, question) == answer:
            kept = others
    return tuple(kept)


def examined(sentences, question):
    """The answer of a sound story, and the steps that it takes; otherwise why it is none."""
    rows, reduced, asked = _reduced(sentences, question)
    if reduced.bound:
        raise Refused("unanswerable", "two of its sentences contradict each other")
    if not reduced.determined(asked):
        raise Refused("unanswerable", "what is asked does not follow from what is told")
    for column in reduced.rows:
        if reduced.determined(column) and (reduced.value(column)[1] != 1 or reduced.value(column)[0] < 0):
            raise Refused("unanswerable", "a quantity is negative or no whole number")
    kept = needed(sentences, question)
    if len(kept) < len(sentences):
        idle = next(at for at, sentence in enumerate(sentences, 1) if sentence not in kept)
        raise Refused("too_easy", f"sentence {idle} is not needed for the answer")
    if sum(form != ZERO for form, _ in kept) < FEWEST_NEEDED:
        raise Refused("too_easy", f"the answer needs fewer than {FEWEST_NEEDED} sentences")
    if _tells_of_nothing(sentences, question):
        raise Refused("too_easy", "something that it speaks of can only be nothing")
    answer = reduced.value(asked)[0]
    if not FEWEST_ANSWER <= answer <= MOST_NUMBER:
        raise Refused("guessable", f"the answer is not between {FEWEST_ANSWER} and {MOST_NUMBER}")
    if any(answer == dict(slots).get(letter) for _, slots in (*sentences, question) for letter in "NKLP"):
        raise Refused("shortcut", "the answer stands in the text")
    return answer, _steps(rows, asked, reduced)


def _tells_of_nothing(sentences, question):
    """Whether one of them speaks of what is nothing whatever the amounts are, unless it says so itself or tells of a
    change from there."""
    equations = Equations(sentences, question)
    nothing = {column for column, row in Reduced(equations.rows).rows.items() if len(row) == 1}
    said = {column for row in equations.rows if len(row) == 1 for column in row}
    for at, row in zip(equations.said_by, equations.rows, strict=True):
        fine = said if at < len(sentences) and sentences[at][0] in EVENTS else set()
        if len(row) > 1 and not nothing.isdisjoint(row.keys() - fine):
            return True
    return False


def _steps(rows, asked, reduced):
    """Calculations until the answer is there, one row after the other as long as a row has one unknown left."""
    known, steps = {ONE}, 0
    left = [row for row in rows if row]
    while asked not in known:
        ready = next((row for row in left if sum(column not in known for column in row) == 1), None)
        if ready is None:
            stuck = {column for column in reduced.rows if column not in known and reduced.determined(column)}
            return steps + _STUCK * len(stuck)
        known |= ready.keys()
        left = [row for row in left if row is not ready]
        steps += len(ready) > 2 or any(abs(times) > 1 for column, times in ready.items() if column != ONE)
    return steps
