"""What both years of AIME have in common: answers are whole numbers from 0 to 999."""

import re
from collections.abc import Sequence

from redqueen.evals.extraction import numeral
from redqueen.evals.maths import Maths, tight
from redqueen.evals.protocol import Grade, Item, Row
from redqueen.verifier import Verifier

_DEGREES = re.compile(r"\^\s*(?:\\circ|\{\s*\\circ\s*\})|\\degree|\u00b0")


class Aime(Maths):
    tokens = 2_048
    algebra = False
    graded = "whole numbers"

    def gold(self, row: Row) -> str:
        value = whole_number(row["answer"])
        if value is None or not 0 <= value <= 999:
            raise ValueError(f"the answer {row['answer']} is not a whole number from 0 to 999")
        return str(value)

    async def grade(self, answers: Sequence[tuple[Item, str | None]], verifier: Verifier) -> list[Grade]:
        grades = []
        for item, text in answers:
            value = None if text is None else whole_number(text)
            right = value is not None and value == int(self.gold(item.row))
            why = "" if right else "no answer" if value is None else "wrong"
            grades.append(Grade(correct=right, vote=None if value is None else str(value), why=why))
        return grades


def whole_number(text: str) -> int | None:
    """The whole number in a text such as `007`, `90^\\circ` or `x = 12`."""
    value = numeral(tight(_DEGREES.sub("", text.rpartition("=")[2].replace("\\$", ""))))
    return int(value) if value is not None and value == value.to_integral_value() and abs(value) < 10**6 else None
