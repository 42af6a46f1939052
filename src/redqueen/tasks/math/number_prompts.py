"""The words of `math_n`'s prompts, in the forms that those of programs have."""

from collections.abc import Sequence
from random import Random

from redqueen.tasks.logic.guest.logic_language import MOST_CLUES, MOST_UNKNOWNS, MOST_VALUES
from redqueen.tasks.math.task import ProblemTask
from redqueen.tasks.protocol import Form, Prompt
from redqueen.tasks.wording import Example, paragraphs, propose_one, solve_one, some

NOTATION = """\
A clue compares sums of names and numbers (+, -, *, % for the remainder, abs(x) for the value without its sign) by \
==, !=, <, <=, >, >=. Clues may be joined by and, or, not. count(CLUE, CLUE) is how many of these clues hold. Where it \
says `ask count`, the number of ways to give all unknowns values with which every clue holds is asked for."""

CONTRACT = f"""\
The problem
- begins with its unknowns, a line for each group of them with the numbers that they may be: `a, b, c in 1..9`; \
`, different` at the end of such a line means that no two of the group are alike;
- goes on with its clues, one on each line, which use these names and numbers alone;
- ends with a line `ask` and a sum that is the same in all solutions, such as `ask a * b + c`, or with `ask count`;
- has at most {MOST_UNKNOWNS} unknowns, {MOST_VALUES} values for each and {MOST_CLUES} clues;
- hangs together: no part of it is a problem of its own."""

LOT = """\
You need not solve it. When it is read, a solution is drawn by lot, clues that do not fit it are changed until they \
do, and what is asked gets other factors. Where solutions are counted, one more clue is added. Clues that the answer \
does not need are left out."""

EXAMPLES = (
    Example(
        text="a, b, c in 1..9\na * b == 35\nb < a\nc == a - b + 3\nask 6 * a + 11 * c",
        thought="1. a * b == 35, so a and b are 5 and 7 in some order. b < a, so a is 7 and b is 5.\n"
        "2. c == 7 - 5 + 3, so c is 5.\n"
        "3. 6 * 7 + 11 * 5 is 42 + 55 = 97.",
        answer="97",
    ),
    Example(
        text="x, y in 1..12\nz in 0..5\nx + y == 13\nx != 6\nz < x\nask count",
        thought="1. x + y == 13: x is 1 to 12, each with one y. x != 6 leaves 11 values of x.\n"
        "2. z is 0 to 5 and less than x. For x = 1, 2, 3, 4, 5 these are 1, 2, 3, 4, 5 values, 15 together.\n"
        "3. For x = 7, 8, 9, 10, 11, 12 these are 6 values each, 6 * 6 = 36.\n"
        "4. 15 + 36 = 51.",
        answer="51",
    ),
)
"""What the long and the direct form show answers for."""


def propose_problem(form: Form, references: Sequence[ProblemTask], rng: Random) -> Prompt:
    first = paragraphs(
        "Write one problem about whole numbers. Somebody else has to work out the number that its last line asks for.",
        CONTRACT,
        NOTATION,
        LOT,
        "Aim for a problem that takes several steps of thought and that a careful reader can still solve. Answer with "
        "exactly one fenced block, ```problem.",
    )
    another = (
        "Write another one, unlike these in how its clues hang together, not only in its names and numbers. Answer "
        "with the fenced block, ```problem."
    )
    drawn = some(references, form, rng)
    return propose_one(form, "problem", drawn, short="Write another problem.", first=first, another=another)


def solve_problem(form: Form, problem: str) -> Prompt:
    how = "Think first. Then end your answer" if form is Form.LONG else "Answer"
    return solve_one(
        form,
        "problem",
        problem,
        question="Work out the number that the last line of this problem asks for.",
        notation=NOTATION,
        ending=f"{how} with exactly one fenced block, ```answer, that has the whole number and nothing else.",
        examples=EXAMPLES,
    )
