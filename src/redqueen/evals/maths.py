"""Answers in mathematics: whether they say the same as the right one.

Plain numerals are compared here, as decimals; whatever else by math-verify, in a guest of the verifier, because sympy
evaluates text on the way to an expression. An answer that math-verify cannot settle in its time is wrong.
"""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, ClassVar

from redqueen.errors import InputError
from redqueen.evals.extraction import EXACT, final_answer, grouped, numeral
from redqueen.evals.protocol import Grade, Item, Prompt, Prompts, Published, Row, Suite
from redqueen.verifier import Job, Limits, Verifier
from redqueen.verifier.zygotes import maths_paths

TOLERANCE = Decimal("1e-6")
SECONDS = 5.0
MOST_CHARS = 1_000
"""Of an answer: a longer one is none, and would only keep math-verify busy."""
LIMITS = Limits(cpu_s=SECONDS, memory_mb=1024)
_TEXT = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")
_LAYOUT = re.compile(r"(?:\\(?:(?:left|right|q?quad|displaystyle)(?![A-Za-z])|[,;:! ])|[\s$~])+")
_WORDS = re.compile(r"[A-Za-z]{3,}(?: [A-Za-z]+)*\.?")
_WORD = re.compile(r"[^\W\d_]{2,}")
_STYLES = str.maketrans(
    {"\u2212": "-", "\u2013": "-", "\u221e": "\\infty ", "\u03c0": "\\pi ", "\u00d7": "\\times ", "\u00b0": "^\\circ "}
)
"""Minus and dash, infinity, pi, times, degrees."""


class Maths(Published):
    """A benchmark of questions with one answer each, in LaTeX or plain."""

    name: str
    title: str
    suite: Suite = "math"
    tokens = 1_024
    graded = "math-verify"
    algebra = True
    """It needs math-verify: answers are not all plain numerals."""
    examples: ClassVar[Sequence[tuple[str, str]]] = ()
    """Worked examples of the raw prompts."""

    def from_hub(self, row: Row, number: int) -> dict[str, Any]:
        question = row["problem"] if "problem" in row else row["question"]
        return {"id": f"{self.name}/{number}", "question": question, "answer": str(row["answer"])}

    def load(self, rows: Sequence[Row], beside: Sequence[Row] = ()) -> list[Item]:
        for row in rows:
            if not row["question"] or not self.gold(row):
                raise ValueError("a question or an answer is empty")
        return [Item(row["id"], row) for row in rows]

    def gold(self, row: Row) -> str:
        return row["answer"].replace("$,$", ", ").replace("\\$", "").replace("$", "").strip()

    def prompt(self, item: Item, prompts: Prompts) -> Prompt:
        question = item.row["question"].strip()
        if prompts is Prompts.CHAT:
            return Prompt(
                text=f"{question}\n\nThink step by step. Put the final answer, and nothing else, in \\boxed{{}}."
            )
        shown = "".join(f"Problem: {asked}\nSolution: {solved}\n\n" for asked, solved in self.examples)
        return Prompt(text=f"{shown}Problem: {question}\nSolution:", stop=("\nProblem:", "\n\nProblem"))

    def extract(self, item: Item, text: str, prompts: Prompts) -> str | None:
        return final_answer(text)

    async def grade(self, answers: Sequence[tuple[Item, str | None]], verifier: Verifier) -> list[Grade]:
        pairs = [(self.gold(item.row), text) for item, text in answers]
        told = [None if text is None else settled(gold, text) for gold, text in pairs]
        open_ones = [place for place, found in enumerate(told) if found is None and pairs[place][1] is not None]
        jobs = [Job.answers([(cleaned(pairs[at][0]), cleaned(pairs[at][1] or ""))], limits=LIMITS) for at in open_ones]
        outcomes = await verifier.run(jobs) if jobs else []
        verdicts = {at: outcome.results[0] for at, outcome in zip(open_ones, outcomes, strict=True)}
        grades = []
        for place, (_, text) in enumerate(pairs):
            if text is None:
                grades.append(Grade(correct=False, why="no answer"))
                continue
            found, result = told[place], verdicts.get(place)
            right = found if found is not None else result is not None and result.value == "True"
            why = "" if right else "wrong" if result is None or result.value == "False" else result.verdict
            grades.append(Grade(correct=right, vote=voted(text), why=why))
        return grades


def can_grade(benchmarks: Iterable[Published]) -> None:
    """Refuse what cannot be graded here, before anybody is asked."""
    missing = [each.title for each in benchmarks if isinstance(each, Maths) and each.algebra]
    if missing and not maths_paths():
        raise InputError(
            f"{', '.join(missing)} cannot be graded: math-verify is not installed",
            "run `pip install 'redqueen[evals]'`",
        )


def settled(gold: str, answer: str) -> bool | None:
    """Whether they say the same, where that can be told without algebra."""
    if len(answer) > MOST_CHARS:
        return False
    right, said = numeral(gold), numeral(answer)
    if right is not None and said is not None:
        return same_number(right, said)
    mine, other = bare(gold), bare(answer)
    if mine == other:
        return True
    # math-verify takes X for x.
    return False if mine.casefold() == other.casefold() and "\\text" not in gold + answer else None


def same_number(right: Decimal, said: Decimal) -> bool:
    """Whole numbers exactly; others within a millionth, or a millionth of what is smaller than one."""
    if right == said:
        return True
    if right == right.to_integral_value() and said == said.to_integral_value():
        return False
    return abs(EXACT.subtract(right, said)) <= TOLERANCE * min(Decimal(1), abs(right))


def bare(text: str) -> str:
    """Without what changes nothing: spaces, dollars, commands of layout, the case of words (not that of symbols)."""
    text = cleaned(text)
    return tight(text.casefold() if _WORDS.fullmatch(text) else text).rstrip(".")


def tight(text: str) -> str:
    """Without layout. What keeps two numbers apart stays, as a space."""

    def apart(found: re.Match[str]) -> str:
        before, after = text[max(found.start() - 2, 0) : found.start()], text[found.end() : found.end() + 2]
        return " " if before.rstrip(".")[-1:].isdecimal() and after.lstrip(".")[:1].isdecimal() else ""

    text = _TEXT.sub(lambda found: _WORD.sub(lambda word: word[0].casefold(), found[1]), grouped(text))
    return _LAYOUT.sub(apart, text)


def cleaned(text: str) -> str:
    """As math-verify reads it best: numerals in full, signs of one kind."""
    text = text.translate(_STYLES).replace("\\$", "").strip().strip("$").strip()
    number = numeral(text)
    return text if number is None else format(number, "f")


def voted(answer: str) -> str:
    """What equal answers have in common."""
    number = numeral(answer)
    return bare(answer)[:200] if number is None else format(number.normalize(EXACT), "f")


CONTEST_EXAMPLES = (
    (
        "Find the sum of all solutions of $x^2 - 7x + 10 = 0$.",
        "The quadratic factors as $(x - 2)(x - 5)$, so its solutions are $2$ and $5$. Their sum is $2 + 5 = 7$. "
        "The answer is $\\boxed{7}$.",
    ),
    (
        "A bag holds 3 red and 5 blue marbles. Two are drawn blindly. What is the probability that both are red?",
        "There are $\\binom{8}{2} = 28$ pairs of marbles, and $\\binom{3}{2} = 3$ of them are both red. "
        "The answer is $\\boxed{\\frac{3}{28}}$.",
    ),
    (
        "What is the distance between the points $(1, 2)$ and $(5, 6)$?",
        "The differences of the coordinates are $4$ and $4$, so the distance is $\\sqrt{4^2 + 4^2} = \\sqrt{32} = "
        "4\\sqrt{2}$. The answer is $\\boxed{4\\sqrt{2}}$.",
    ),
    (
        "For which real numbers $x$ is $|x - 3| < 2$?",
        "The inequality says that $-2 < x - 3 < 2$, which is $1 < x < 5$. The answer is $\\boxed{(1, 5)}$.",
    ),
)
"""Worked examples of our own for the raw prompts."""
