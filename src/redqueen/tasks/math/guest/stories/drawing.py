"""Numbers by lot: a story is told anew with amounts and factors that are drawn from its hash, so that every quantity is
a whole number and nobody can know the answer beforehand.

Amounts are columns of the equations. What is asked is free where that can be, and is drawn first; the amounts that
sentences tell follow from it. Since nearly all rows are homogeneous, free columns are drawn as multiples of the
denominators that they meet, and everything comes out whole.
"""

from math import gcd, lcm
from random import Random

from .equations import AGE, ASKED, FIRST, HAPPENS, LATER, PRICE, TOLD, YEARS, Equations
from .forms import EVENTS, FRACTIONS, MOST_NUMBER, PERCENTAGES, TURNED, ZERO
from .linear import ONE, Reduced
from .reading import Refused

ROUNDS, TRIES = 6, 48
"""Draws of all factors, and of the amounts for each."""
FEWEST_ANSWER = 11
"""Smaller answers are too often right by chance."""
FEWEST_ANSWERS, MOST_COUNTED = 50, 500
"""Different ones that a story may have with the factors that it shows, and draws in which they must come up."""
MOST_STEP, MOST_AGE_STEP = 60, 4
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
    """Numbers from a text, the same ones every time."""

    def __init__(self, seed):
        self._random = Random(seed).random

    def between(self, low, high):
        return low + int(self._random() * (high - low + 1))


def drawn(sentences, question, lot):
    """The story with other numbers, where there are some that fit and few could guess what is asked."""
    guessable = False
    for number in range(ROUNDS):
        asked = _turned(question) if number % 2 else question
        story = [(form, _other_factors(form, dict(slots), lot)) for form, slots in (*sentences, asked)]
        told, asked = story[:-1], story[-1]
        equations = Equations(_frozen(told), _frozen([asked])[0])
        if not settled(equations):
            continue
        draws = _Draws(equations, _frozen(story))
        values = draws.first(lot)
        if values is None:
            continue
        if not draws.have_many_answers(lot):
            guessable = True
            continue
        amounts = {at: values[column] for at, column in equations.amounts.items()}
        *told, asked = _frozen([_with_amount(form, slots, amounts.get(at)) for at, (form, slots) in enumerate(story)])
        return tuple(told), asked
    if guessable:
        raise Refused("guessable", f"fewer than {FEWEST_ANSWERS} answers are possible")
    raise Refused("unanswerable", "no draw makes all its quantities whole and positive")


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


class _Draws:
    """All that can be drawn for a story whose factors are settled."""

    def __init__(self, equations, story):
        self._asked, asks = equations.asked, story[-1][0]
        reduced = Reduced(equations.rows, rank={column: _RANK.get(sort, 0) for column, sort in equations.sorts.items()})
        reduced.exchange()
        steps = {column: _step(reduced, column) for column in equations.sorts if column not in {ONE, *reduced.rows}}
        most = MOST_AGE_STEP if asks.startswith("age") else MOST_STEP
        too_large = steps.get(self._asked, 1) > most or max(steps.values(), default=1) > MOST_NUMBER
        if asks.startswith("age"):
            # There are few ages: rather draw again what is not whole than leave out every other one.
            steps = dict.fromkeys(steps, 1)
        self._free = {
            column: (step, *_range(equations.sorts[column], step, asks if column == self._asked else None))
            for column, step in steps.items()
        }
        self._turned = [column for at, column in equations.amounts.items() if story[at][0] in TURNED]
        self._amounts = equations.amounts.values()
        self._shown = {value for _, slots in story for letter, value in slots if letter in "KLP"}
        self._bounds = [self._bounds_of(column, sort) for column, sort in equations.sorts.items()]
        self._follow = [
            (column, row[column], [(each, times) for each, times in row.items() if each != column])
            for column, row in reduced.rows.items()
        ]
        self._tries = 0 if reduced.bound or too_large else TRIES

    def _bounds_of(self, column, sort):
        if column == self._asked:
            return FEWEST_ANSWER, MOST_NUMBER
        if column in self._amounts:
            return (-MOST_NUMBER if column in self._turned else 2), MOST_NUMBER
        return (1 if sort in (AGE, PRICE) else 0), (MOST_AGE if sort == AGE else float("inf"))

    def first(self, lot):
        """Values of all columns that fit; None where none are found."""
        return next(filter(None, (self._values(lot) for _ in range(self._tries))), None)

    def have_many_answers(self, lot):
        _, low, high = self._free.get(self._asked, (1, 1, FEWEST_ANSWERS))
        if high - low + 1 < FEWEST_ANSWERS:
            return False
        found = set()
        for _ in range(MOST_COUNTED):
            values = self._values(lot, found)
            if values is not None:
                found.add(values[self._asked])
                if len(found) == FEWEST_ANSWERS:
                    return True
        return False

    def _values(self, lot, known=()):
        """By column, a draw in which all quantities are sound: none negative, no amount idle, and an answer that stands
        nowhere and is not known; None where it has not come out so."""
        values = [1] * len(self._bounds)
        for column, (step, low, high) in self._free.items():
            values[column] = step * lot.between(low, high)
        if self._asked in self._free and values[self._asked] in known:
            return None
        for column, own, others in self._follow:
            above = 0
            for each, times in others:
                above -= times * values[each]
            value, rest = divmod(above, own)
            low, high = self._bounds[column]
            if rest or not low <= value <= high:
                return None
            values[column] = value
        answer = values[self._asked]
        idle = any(abs(values[column]) < 2 for column in self._turned)
        stands = answer in self._shown or any(abs(values[column]) == answer for column in self._amounts)
        fit = all(low <= values[column] <= high for column in self._free for low, high in [self._bounds[column]])
        return values if fit and not idle and not stands else None


def _range(sort, step, asks):
    """Of a free column, in steps; what is asked has many."""
    low, high = _RANGES[sort]
    low, high = -(-low // step), max(high // step, 3)
    if asks is not None:
        high = MOST_AGE // step if asks.startswith("age") else max(high, low + WIDTH)
    return low, high


def _step(reduced, column):
    """What a free column is drawn in multiples of."""
    meets = [(row[pivot], row[column]) for pivot, row in reduced.rows.items() if column in row]
    return lcm(1, *(abs(own) // gcd(own, other) for own, other in meets))


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
