"""Linear equations with whole coefficients, solved exactly: sparse rows, from a column to its coefficient, that sum up
to 0. Column 0 stands for the number 1."""

from math import gcd

ONE = 0
MOST_BITS = 256
"""Of a coefficient: more than any story with numbers of the sizes allowed comes to."""


class TooLarge(Exception):
    """A coefficient grew beyond all measure."""


class Reduced:
    """Rows that are solved for a column each, in terms of those that are free."""

    def __init__(self, rows, never=(), rank=None):
        """Never solved for the columns in `never`; of the others, rather for those of higher `rank`."""
        self.never, self.rank = {ONE, *never}, rank or {}
        self.rows, self.bound = {}, []
        for row in rows:
            self._add(row)

    def _add(self, row):
        for column in [column for column in row if column in self.rows]:
            row = _without(row, column, self.rows[column])
        columns = [column for column in row if column not in self.never]
        if not columns:
            if row:
                self.bound.append(row)
            return
        self._pivot(max(columns, key=lambda each: (self.rank.get(each, 0), abs(row[each]) == 1, -each)), row)

    def _pivot(self, column, row):
        for other, solved in self.rows.items():
            if column in solved:
                self.rows[other] = _without(solved, column, row)
        self.rows[column] = row

    def exchange(self):
        """Free the columns of lowest rank: solve each row for the column of highest rank that can be."""
        for column in sorted(self.rank, key=lambda each: -self.rank[each]):
            if column in self.rows or column in self.never:
                continue
            lower = [
                other
                for other, row in self.rows.items()
                if column in row and self.rank.get(other, 0) < self.rank[column]
            ]
            if lower:
                freed = min(lower, key=lambda each: (self.rank.get(each, 0), each))
                self._pivot(column, self.rows.pop(freed))

    def determined(self, column, known=()):
        """Whether the column follows from those that are known."""
        row = self.rows.get(column)
        return row is not None and all(each in (column, ONE) or each in known for each in row)

    def value(self, column):
        """Of a column that is determined: numerator and denominator, the latter positive."""
        row = self.rows[column]
        above, below = -row.get(ONE, 0), row[column]
        shared = gcd(above, below) * (1 if below > 0 else -1)
        return above // shared, below // shared


def _without(row, column, solved):
    """The row, the column put in as the other row has it."""
    times, by = solved[column], row[column]
    new = {each: value * times for each, value in row.items()}
    for each, value in solved.items():
        if (sum_ := new.get(each, 0) - by * value) == 0:
            new.pop(each, None)
        else:
            new[each] = sum_
    shared = gcd(*new.values()) if new else 1
    if any(value.bit_length() > MOST_BITS + shared.bit_length() for value in new.values()):
        raise TooLarge
    return {each: value // shared for each, value in new.items()} if shared > 1 else new
