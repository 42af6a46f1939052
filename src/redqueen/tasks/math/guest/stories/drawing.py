"""Numbers by lot: a story is told anew with amounts and factors that are drawn from its hash, so that every quantity is
a whole number and nobody can know the answer beforehand.

Amounts are columns of the equations. What is asked is free where that can be, and is drawn first; the amounts that
sentences tell follow from it. Since nearly all rows are homogeneous, free columns are drawn as multiples of the
denominators that they meet, and everything comes out whole.
"""

import hashlib
from math import gcd, lcm

from .equations import AGE, ASKED, FIRST, HAPPENS, LATER, PRICE, TOLD, YEARS, Equations
from .forms import EVENTS, FRACTIONS, MOST_NUMBER, PERCENTAGES, TURNED, ZERO
from .linear import ONE, Reduced

ROUNDS, TRIES = 6, 48
"""Draws of all factors, and of the amounts for each."""
FEWEST_ANSWER = 11
"""Smaller answers are too often right by chance."""
MOST_STEP, MOST_AGE_STEP = 60, 2
"""What is asked may be free in steps of so many."""
WIDTH = 100
"""Steps at least among which it is drawn, so that no answer is much likelier than others."""
MOST_AGE = 95
_RANK = {TOLD: 5, LATER: 4, FIRST: 3, PRICE: 3, AGE: 3, HAPPENS: 2, YEARS: 1, ASKED: 0}
"""What follows from the rest, rather than being drawn."""
_RANGES = {FIRST: (12, 90), LATER: (12, 90), PRICE: (3, 40), AGE: (8, 70), HAPPENS: (3, 30), YEARS: (3, 15),
           TOLD: (3, 90), ASKED: (FEWEST_ANSWER, 160)}  # fmt: skip
_FACTORS = {
    "times": (2, 5), "kinds_times": (2, 5), "times_more": (2, 4), "times_fewer": (2, 4), "age_times": (2, 4),
    "cost_times": (2, 4), "age_later": (2, 3), "age_ago": (2, 4), "shares": (3, 8), "packs": (3, 9), "boxes": (3, 9),
    "gets_rate": (3, 9), "loses_rate": (2, 6), "buys": (3, 9), "sells": (3, 9), "pays": (3, 9), "bill": (2, 6),
    "bill_one": (3, 9),
}  # fmt: skip


class Lot:
    """Numbers from a hash, the same ones every time."""

    def __init__(self, seed):
        self._seed, self._drawn = hashlib.sha256(seed.encode("ascii")).digest(), 0

    def between(self, low, high):
        self._drawn += 1
        digest = hashlib.sha256(self._seed + self._drawn.to_bytes(4, "big")).digest()
        return low + int.from_bytes(digest[:8], "big") % (high - low + 1)


def drawn(sentences, question, lot):
    """The story with other numbers; None where none are found, or where what is asked is not settled."""
    for number in range(ROUNDS):
        asked = _turned(question) if number % 2 else question
        story = [(form, _other_factors(form, dict(slots), lot)) for form, slots in (*sentences, asked)]
        told, asked = story[:-1], story[-1]
        equations = Equations(_frozen(told), _frozen([asked])[0])
        if not settled(equations):
            continue
        values = _amounts(equations, asked[0], _frozen(story), lot)
        if values is not None:
            story = [_with_amount(form, slots, values.get(at)) for at, (form, slots) in enumerate(story)]
            *told, asked = _frozen(story)
            return tuple(told), asked
    return None


def _turned(question):
    """The other difference, where the question wants one: only one of them is positive."""
    form, slots = question
    first, second = {"more": "AB", "age_more": "AB", "kinds": "IJ"}.get(form, ("", ""))
    turned = {first: second, second: first}
    return form, tuple(sorted((turned.get(letter, letter), value) for letter, value in slots))


def _frozen(story):
    return [(form, tuple(sorted(slots.items()))) for form, slots in story]


def settled(equations):
    """Whether the amounts, whatever they are, settle what is asked, and it depends on them."""
    amounts = set(equations.amounts.values())
    reduced = Reduced(equations.rows, never=amounts)
    asked = equations.asked
    return reduced.determined(asked, amounts) and any(column in amounts for column in reduced.rows[asked])


def told(equations):
    """Whether a sentence tells outright what is asked, whatever the amounts are."""
    row = Reduced(equations.rows, never=equations.amounts.values()).rows[equations.asked]
    return len(row) == 2 and sum(row.values()) == 0


def _other_factors(form, slots, lot):
    if form in ("part", "kinds_part", "age_part", "gives_part", "loses_part"):
        return slots | {"K": lot.between(min(FRACTIONS), max(FRACTIONS))}
    if "P" in slots:
        return slots | {"P": PERCENTAGES[lot.between(0, len(PERCENTAGES) - 1)]}
    new = {letter: lot.between(*_FACTORS[form]) for letter in "KL" if letter in slots}
    if new.get("K", 0) == new.get("L", 1):
        new["L"] += 1
    return slots | new


def _amounts(equations, asks, story, lot):
    """By place of the sentence: what its amount comes to, negative where more is to be fewer."""
    reduced = Reduced(equations.rows, rank={column: _RANK.get(sort, 0) for column, sort in equations.sorts.items()})
    reduced.exchange()
    if reduced.bound:
        return None
    free = sorted(equations.sorts.keys() - reduced.rows.keys() - {ONE})
    steps = {column: _step(reduced, column) for column in free}
    most = MOST_AGE_STEP if asks.startswith("age") else MOST_STEP
    if steps.get(equations.asked, 1) > most or max(steps.values(), default=1) > MOST_NUMBER:
        return None
    shown = {value for _, slots in story for letter, value in slots if letter in "KLP"}
    turns = {column for at, column in equations.amounts.items() if story[at][0] in TURNED}
    for _ in range(TRIES):
        values = {ONE: 1}
        for column in free:
            low, high = _RANGES[equations.sorts[column]]
            step = steps[column]
            low, high = -(-low // step), max(high // step, 3)
            if column == equations.asked:
                high = MOST_AGE // step if asks.startswith("age") else max(high, low + WIDTH)
            values[column] = step * lot.between(low, high)
        for column, row in reduced.rows.items():
            above = -sum(times * values[each] for each, times in row.items() if each != column)
            if above % row[column]:
                break
            values[column] = above // row[column]
        else:
            if _fit(equations, values, turns, shown):
                return {at: values[column] for at, column in equations.amounts.items()}
    return None


def _step(reduced, column):
    """What a free column is drawn in multiples of."""
    meets = [(row[pivot], row[column]) for pivot, row in reduced.rows.items() if column in row]
    return lcm(1, *(abs(own) // gcd(own, other) for own, other in meets))


def _fit(equations, values, turns, shown):
    """Whether all quantities are sound: none negative, no amount idle, and an answer that stands nowhere."""
    answer = values[equations.asked]
    if not FEWEST_ANSWER <= answer <= MOST_NUMBER or answer in shown:
        return False
    amounts = set(equations.amounts.values())
    for column, value in values.items():
        sort = equations.sorts[column]
        if column in amounts:
            if (value if column not in turns else abs(value)) < 2 or abs(value) == answer or value > MOST_NUMBER:
                return False
        elif value < 0 or (sort in (AGE, PRICE) and value < 1) or (sort == AGE and value > MOST_AGE):
            return False
    return True


def _with_amount(form, slots, amount):
    if amount is None:
        return form, slots
    return (form if amount > 0 else TURNED[form]), slots | {"N": abs(amount)}


def from_nothing(sentences, question):
    """Sentences that say of whom nothing else is told that they begin with nothing."""
    equations = Equations(sentences, question)
    known = {
        (slots[owner], slots[item])
        for form, slots in ((form, dict(slots)) for form, slots in sentences)
        if form not in EVENTS
        for owner in "ABCD" if owner in slots
        for item in "IJ" if item in slots
    }  # fmt: skip
    return [(ZERO, (("A", owner), ("I", item))) for owner, item in equations.starts if (owner, item) not in known]
