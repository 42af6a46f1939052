"""What a story says, as linear equations: a column for each quantity at each time, for each amount, for the question.

An event makes new columns for what it changes, so that all that anybody ever has is a column, which has to be a whole
number. What is bought or paid for changes what its buyer has only where the story speaks of that.
"""

from .forms import LOSE, VERBS
from .linear import ONE

DOLLARS = "dollars"
FIRST, LATER, AGE, PRICE, ASKED = "first", "later", "age", "price", "asked"
"""Sorts of columns. Amounts have those of the sentence that they stand in: told, or an event's."""
TOLD, HAPPENS, YEARS = "told", "happens", "years"
_HAPPENS = frozenset(("gets", "loses", "gets_rate", "loses_rate", "gives", "buys", "sells"))
_YEARS = frozenset(("age_later", "age_ago", "age_then"))
_SIDES = frozenset(("buys", "sells", "bill", "bill_one", "pays"))


class Equations:
    """Of a story; its amounts are columns too, so that they can be put in or drawn."""

    def __init__(self, sentences, question):
        self.sorts, self.rows, self.amounts = {ONE: "one"}, [], {}
        self.said_by = []
        """Of each row, the place of its sentence."""
        self._at, self._spoken = {}, _spoken_of(sentences, question)
        self.starts = {}
        slots = {}
        for at, (form, given) in enumerate((*sentences, question)):
            self._now, slots = at, dict(given)
            if "N" in slots:
                self.amounts[at] = self._new(YEARS if form in _YEARS else HAPPENS if form in _HAPPENS else TOLD)
            if at < len(sentences):
                getattr(self, f"say_{form}", self._compare)(form, slots)
        self.asked = self._new(ASKED)
        self._row({self.asked: -1}, self._wanted(question[0], slots))

    def numbers(self, sentences, question):
        """The amounts that are written, by column."""
        story = (*sentences, question)
        return {column: dict(story[at][1])["N"] for at, column in self.amounts.items()}

    def filled(self, values):
        """The rows with amounts put in."""
        for row in self.rows:
            new, known = {}, 0
            for column, times in row.items():
                if column in values:
                    known += times * values[column]
                else:
                    new[column] = times
            known += new.pop(ONE, 0)
            yield new | ({ONE: known} if known else {})

    # Columns and rows

    def _new(self, sort):
        column = len(self.sorts)
        self.sorts[column] = sort
        return column

    def _of(self, key, sort=FIRST):
        """The column of a quantity, as it is now."""
        if key not in self._at:
            self._at[key] = self._new(sort)
            if sort is FIRST:
                self.starts[key] = self._at[key]
        return self._at[key]

    def _own(self, slots, owner="A", item="I"):
        return self._of((slots[owner], slots[item]))

    def _price(self, slots, item="I"):
        return self._of(("price of", slots[item]), PRICE)

    def _age(self, slots, owner="A"):
        return self._of(("age of", slots[owner]), AGE)

    def _row(self, *parts):
        row = {}
        for part in parts:
            for column, times in part.items():
                row[column] = row.get(column, 0) + times
        self.rows.append({column: times for column, times in row.items() if times})
        self.said_by.append(self._now)

    def _change(self, key, by, is_side=False):
        """What somebody has from now on: what it was, and a sum of columns more."""
        if is_side and key not in self._spoken:
            return
        before = self._of(key)
        self._at[key] = after = self._new(LATER)
        self._row({before: 1, after: -1}, by)

    # What sentences say

    def _compare(self, form, s):
        """Most sentences: one quantity, and a sum of others and an amount."""
        n = {self.amounts[self._now]: 1} if self._now in self.amounts else {}
        less = dict.fromkeys(n, -1)
        names = [letter for letter in "ABCD" if letter in s]
        k = s.get("K", 1)
        match form:
            case "none":
                self._row({self._own(s): 1})
            case "has":
                self._row({self._own(s): -1}, n)
            case "more" | "times_more":
                self._row({self._own(s): -1}, {self._own(s, "B"): k}, n)
            case "fewer" | "times_fewer":
                self._row({self._own(s): -1}, {self._own(s, "B"): k}, less)
            case "times" | "same":
                self._row({self._own(s): -1}, {self._own(s, "B"): k})
            case "part":
                self._row({self._own(s): -k}, {self._own(s, "B"): 1})
            case "sum":
                self._row({self._own(s): -1}, {self._own(s, "B"): 1}, {self._own(s, "C"): 1})
            case "together":
                self._row(*({self._own(s, name): 1} for name in names), less)
            case "kinds_more":
                self._row({self._own(s): -1}, {self._own(s, item="J"): 1}, n)
            case "kinds_fewer":
                self._row({self._own(s): -1}, {self._own(s, item="J"): 1}, less)
            case "kinds_times":
                self._row({self._own(s): -1}, {self._own(s, item="J"): k})
            case "kinds_part":
                self._row({self._own(s): -k}, {self._own(s, item="J"): 1})
            case "kinds_together":
                self._row({self._own(s): 1}, {self._own(s, item="J"): 1}, less)
            case "cost":
                self._row({self._price(s): -1}, n)
            case "cost_more":
                self._row({self._price(s): -1}, {self._price(s, "J"): 1}, n)
            case "cost_less":
                self._row({self._price(s): -1}, {self._price(s, "J"): 1}, less)
            case "cost_times":
                self._row({self._price(s): -1}, {self._price(s, "J"): k})
            case "age":
                self._row({self._age(s): -1}, n)
            case "older":
                self._row({self._age(s): -1}, {self._age(s, "B"): 1}, n)
            case "younger":
                self._row({self._age(s): -1}, {self._age(s, "B"): 1}, less)
            case "age_times":
                self._row({self._age(s): -1}, {self._age(s, "B"): k})
            case "age_part":
                self._row({self._age(s): -k}, {self._age(s, "B"): 1})
            case "age_together":
                self._row(*({self._age(s, name): 1} for name in names), less)
            case _:
                raise AssertionError(form)

    def say_boxes(self, form, s):
        self._row({self._own(s, item="J"): -1}, {ONE: s["K"]})
        self._row({self._own(s): -1}, {self.amounts[self._now]: s["K"]})

    def say_packs(self, form, s):
        self._row({self._own(s): -1}, {self._own(s, item="J"): s["K"]})

    def say_gets(self, form, s):
        sign = -1 if VERBS[s["V"]][2] == LOSE else 1
        self._change((s["A"], s["I"]), {self.amounts[self._now]: sign * s.get("K", 1)})

    say_loses = say_gets_rate = say_loses_rate = say_gets

    def say_gives(self, form, s):
        amount = self.amounts[self._now]
        self._change((s["A"], s["I"]), {amount: -1})
        self._change((s["B"], s["I"]), {amount: 1})

    def say_gives_part(self, form, s):
        part = self._new(LATER)
        self._row({self._own(s): 1}, {part: -s["K"]})
        self._change((s["A"], s["I"]), {part: -1})
        if "B" in s:
            self._change((s["B"], s["I"]), {part: 1})

    say_loses_part = say_gives_part

    def say_loses_percent(self, form, s):
        part = self._new(LATER)
        self._row({self._own(s): s["P"]}, {part: -100})
        self._change((s["A"], s["I"]), {part: -1})

    def say_shares(self, form, s):
        before, each = self._own(s), self._new(LATER)
        self._row({before: 1}, {each: -s["K"]})
        self._change((s["A"], s["I"]), {before: -1})
        self._at["each", s["I"]] = each

    def say_buys(self, form, s):
        sign = 1 if form == "buys" else -1
        self._change((s["A"], DOLLARS), {self.amounts[self._now]: -sign * s["K"]}, is_side=True)
        self._change((s["A"], s["I"]), {ONE: sign * s["K"]}, is_side=True)

    say_sells = say_buys

    def say_bill(self, form, s):
        cost = {self._price(s): s["K"]}
        if form == "bill":
            cost |= {self._price(s, "J"): s["L"]}
            self._change((s["A"], s["J"]), {ONE: s["L"]}, is_side=True)
        if form != "pays":
            self._row({self.amounts[self._now]: -1}, cost)
        self._change((s["A"], s["I"]), {ONE: s["K"]}, is_side=True)
        self._change((s["A"], DOLLARS), {column: -times for column, times in cost.items()}, is_side=True)

    say_bill_one = say_pays = say_bill

    def say_age_later(self, form, s):
        self._ages_then(s, 1)

    def say_age_ago(self, form, s):
        self._ages_then(s, -1)

    def _ages_then(self, s, sign):
        then = {letter: self._new(LATER) for letter in "AB"}
        for letter, column in then.items():
            self._row({column: -1}, {self._age(s, letter): 1}, {self.amounts[self._now]: sign})
        self._row({then["A"]: -1}, {then["B"]: s["K"]})

    # What the question wants

    def _wanted(self, form, s):
        match form:
            case "own":
                return {self._own(s): 1}
            case "first":
                self._own(s)
                return {self.starts[s["A"], s["I"]]: 1}
            case "all":
                return {self._own(s, name): 1 for name in "ABCD" if name in s}
            case "more":
                return {self._own(s): 1, self._own(s, "B"): -1}
            case "kinds":
                return {self._own(s): 1, self._own(s, item="J"): -1}
            case "each":
                return {self._at.get(("each", s["I"])) or self._new(LATER): 1}
            case "price":
                return {self._price(s): 1}
            case "bill":
                return {self._price(s): s["K"], self._price(s, "J"): s["L"]}
            case "bill_one":
                return {self._price(s): s["K"]}
            case "age":
                return {self._age(s): 1}
            case "age_then":
                return {self._age(s): 1, self.amounts[self._now]: 1}
            case "age_more":
                return {self._age(s): 1, self._age(s, "B"): -1}
        raise AssertionError(form)


def _spoken_of(sentences, question):
    """What somebody has, as far as the story speaks of it."""
    return frozenset(
        (slots[owner], slots[item])
        for form, slots in ((form, dict(slots)) for form, slots in (*sentences, question))
        if form not in _SIDES
        for owner in "ABCD" if owner in slots
        for item in "IJ" if item in slots
    )  # fmt: skip
