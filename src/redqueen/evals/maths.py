"""Answers in mathematics: whether they equal the right one.

Plain numerals are compared here, as decimals. Everything else is left to math-verify in a guest of the verifier,
because sympy evaluates text on the way to an expression. An answer that math-verify cannot settle in time is wrong.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, ClassVar

from redqueen.errors import InputError
from redqueen.evals.extraction import EXACT, final_answer, grouped, numeral
from redqueen.evals.protocol import Grade, Item, Prompt, Prompts, Published, Row, Suite
from redqueen.verifier import Job, Limits, Verifier
from redqueen.verifier.checkers import MATH_VERIFY, absent

TOLERANCE = Decimal("1e-6")
SECONDS = 5.0
MOST_CHARS = 1_000
"""A longer answer is wrong, and would only keep math-verify busy."""
LIMITS = Limits(cpu_s=SECONDS, memory_mb=1024)
_TEXT = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox)\s*\{([^{}]*)\}")
_LAYOUT = re.compile(r"(?:\\(?:(?:left|right|q?quad|displaystyle)(?![A-Za-z])|[,;:! ])|[\s$~])+")
_WORDS = re.compile(r"[A-Za-z]{3,}(?: [A-Za-z]+)*\.?")
_WORD = re.compile(r"[^\W\d_]{2,}")
_STYLES = str.maketrans(
    {"\u2212": "-", "\u2013": "-", "\u221e": "\\infty ", "\u03c0": "\\pi ", "\u00d7": "\\times ", "\u00b0": "^\\circ "}
)
"""Minus and dash, infinity, pi, times, degrees."""


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
"""Questions and solutions of our own, for raw prompts."""


class Maths(Published):
    """A benchmark of questions with one answer each, in LaTeX or plain."""

    suite: Suite = "math"
    tokens = 1_024
    graded = "math-verify"
    algebra = True
    """It needs math-verify: answers are not all plain numerals."""
    examples: ClassVar[Sequence[tuple[str, str]]] = CONTEST_EXAMPLES
    """Questions and solutions that raw prompts begin with."""

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
            how = "Think step by step. Put the final answer, and nothing else, in \\boxed{}."
            return Prompt(text=f"{question}\n\n{how}")
        shots = "".join(f"Problem: {problem}\nSolution: {solution}\n\n" for problem, solution in self.examples)
        return Prompt(text=f"{shots}Problem: {question}\nSolution:", stop=("\nProblem:", "\n\nProblem"))

    def extract(self, item: Item, text: str, prompts: Prompts) -> str | None:
        return final_answer(text)

    async def grade(self, answers: Sequence[tuple[Item, str | None]], verifier: Verifier) -> list[Grade]:
        grades = [Grade(correct=False, why="no answer")] * len(answers)
        jobs: dict[int, Job] = {}
        for at, (item, text) in enumerate(answers):
            if text is not None:
                gold = self.gold(item.row)
                right = settled(gold, text)
                grades[at] = Grade(correct=bool(right), vote=voted(text), why="" if right else "wrong")
                if right is None:
                    jobs[at] = Job.answers([(cleaned(gold), cleaned(text))], limits=LIMITS)
        outcomes = await verifier.run(list(jobs.values())) if jobs else []
        for at, outcome in zip(jobs, outcomes, strict=True):
            result = outcome.results[0]
            right = result.value == "True"
            why = "" if right else "wrong" if result.value == "False" else result.verdict
            grades[at] = replace(grades[at], correct=right, why=why)
        return grades


def check_gradable(benchmarks: Iterable[Published]) -> None:
    """Refuse benchmarks that cannot be graded here, before anything is sampled."""
    missing = [benchmark.title for benchmark in benchmarks if isinstance(benchmark, Maths) and benchmark.algebra]
    if missing and absent(MATH_VERIFY):
        raise InputError(
            f"{', '.join(missing)} cannot be graded: math-verify is not installed",
            "run `pip install 'redqueen[evals]'`",
        )


def settled(gold: str, answer: str) -> bool | None:
    """Whether they are equal; None where that takes algebra."""
    if len(answer) > MOST_CHARS:
        return False
    gold_number, number = numeral(gold), numeral(answer)
    if gold_number is not None and number is not None:
        return same_number(gold_number, number)
    bare_gold, bare_answer = bare(gold), bare(answer)
    if bare_gold == bare_answer:
        return True
    # math-verify takes X for x.
    return False if bare_gold.casefold() == bare_answer.casefold() and "\\text" not in gold + answer else None


def same_number(gold: Decimal, number: Decimal) -> bool:
    """Whole numbers must be equal; others may differ by a millionth, relative below one."""
    if gold == number:
        return True
    if gold == gold.to_integral_value() and number == number.to_integral_value():
        return False
    return abs(EXACT.subtract(gold, number)) <= TOLERANCE * min(Decimal(1), abs(gold))


def bare(text: str) -> str:
    """Without spaces, dollars, layout commands, and the case of words (not that of symbols)."""
    text = cleaned(text)
    return tight(text.casefold() if _WORDS.fullmatch(text) else text).rstrip(".")


def tight(text: str) -> str:
    """Without layout; a space stays between two numbers."""

    def space(layout: re.Match[str]) -> str:
        before, after = text[max(layout.start() - 2, 0) : layout.start()], text[layout.end() : layout.end() + 2]
        return " " if before.rstrip(".")[-1:].isdecimal() and after.lstrip(".")[:1].isdecimal() else ""

    text = _TEXT.sub(lambda match: _WORD.sub(lambda word: word[0].casefold(), match[1]), grouped(text))
    return _LAYOUT.sub(space, text)


def cleaned(text: str) -> str:
    """As math-verify reads it best: numerals in full, one kind of each sign."""
    text = text.translate(_STYLES).replace("\\$", "").strip().strip("$").strip()
    number = numeral(text)
    return text if number is None else format(number, "f")


def voted(answer: str) -> str:
    """A text that equal answers share."""
    number = numeral(answer)
    return bare(answer)[:200] if number is None else format(number.normalize(EXACT), "f")
