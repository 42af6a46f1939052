"""The words of the logic family's prompts, in the forms that those of programs have."""

from collections.abc import Sequence
from random import Random

from redqueen.tasks.logic.guest import logic_language
from redqueen.tasks.logic.guest.logic_language import MOST_CLUES, MOST_UNKNOWNS, MOST_VALUES
from redqueen.tasks.logic.task import LogicTask
from redqueen.tasks.protocol import Form, Prompt
from redqueen.tasks.wording import Example, ask, fenced, paragraphs, propose_one, shown_answer, some

NOTATION = """\
A clue compares sums of names and numbers (+, -, *, % for the remainder, abs(x) for the value without its sign) by \
==, !=, <, <=, >, >=, or names with words by == and !=. Clues may be joined by and, or, not. count(CLUE, CLUE) is how \
many of these clues hold. Where the values are knight and knave, `A says CLUE` holds if A is a knight and the clue is \
true, or A is a knave and it is not."""

CONTRACT = f"""\
The puzzle
- begins with its unknowns, a line for each group of them with the values that they may have: `Ann, Bob, Cy in 1..9`, \
or words as values; `, different` at the end of such a line means that no two of the group are alike;
- goes on with its clues, one on each line, which use these names and numbers alone;
- has at most {MOST_UNKNOWNS} unknowns, {MOST_VALUES} values for each and {MOST_CLUES} clues;
- hangs together: no part of it is a puzzle of its own;
- leaves many possibilities open before its clues are put together: four unknowns or more, and clues that say \
something about two or more of them at once."""

LOT = """\
You need not solve it. When it is read, the solution is drawn by lot, and clues that do not fit it are changed until \
they do: another number, another sign, another word. Clues that follow from the others are left out."""


EXAMPLES = (
    Example(
        text="Rome, Oslo, Bern, Kyiv, Lima in 1..5, different\n"
        "Oslo == Kyiv + 3\n"
        "Lima == Bern + 3\n"
        "abs(Bern - Rome) == 1",
        thought="Let's put the clues together:\n\n"
        "1. Oslo == Kyiv + 3, so Kyiv and Oslo are 1 and 4, or 2 and 5. Lima == Bern + 3, so Bern and Lima are 1 and "
        "4, or 2 and 5, too.\n"
        "2. No two are alike, so one of these pairs is 1 and 4, the other is 2 and 5, and Rome is what is left, 3.\n"
        "3. abs(Bern - Rome) == 1 with Rome = 3, so Bern is 2 or 4. As the lower one of its pair it is 2, and Lima is "
        "5. Then Kyiv is 1 and Oslo is 4.\n"
        "4. Check: 4 == 1 + 3, 5 == 2 + 3, and abs(2 - 3) == 1. All clues hold.",
        answer="Rome = 3\nOslo = 4\nBern = 2\nKyiv = 1\nLima = 5",
    ),
    Example(
        text="Kim, Lea, Max, Nia, Oli, Pia in knight, knave\n"
        "Kim says Lea == knave\n"
        "Lea says Max == knight or Nia == knave\n"
        "Max says Kim != knave\n"
        "Nia says Oli != Pia\n"
        "Oli says count(Kim == knight, Lea == knight, Max == knight) == 1",
        thought="Let's put the clues together:\n\n"
        "1. Suppose that Kim is a knight. Then Lea is a knave, so what Lea says is false, and Max is a knave. But Max "
        "says that Kim is no knave, which is true, and knaves say nothing true. So Kim is a knave.\n"
        "2. What Kim says is false, so Lea is a knight. What Max says is false, so Max is a knave.\n"
        "3. What Lea says is true and Max is no knight, so Nia is a knave.\n"
        "4. What Nia says is false, so Oli and Pia are alike.\n"
        "5. Of Kim, Lea and Max only Lea is a knight. So what Oli says is true, Oli is a knight, and Pia is one too.",
        answer="Kim = knave\nLea = knight\nMax = knave\nNia = knave\nOli = knight\nPia = knight",
    ),
)
"""What the long and the direct form show answers for."""


def propose_puzzle(form: Form, references: Sequence[LogicTask], rng: Random) -> Prompt:
    first = paragraphs(
        "Write one logic puzzle. Somebody else has to find values for all unknowns with which every clue holds. Any "
        "such values count.",
        CONTRACT,
        NOTATION,
        LOT,
        "Aim for a puzzle that takes several steps of thought and that a careful reader can still solve. You may think "
        "first. Then end your answer with exactly one fenced block, ```puzzle.",
    )
    another = (
        "Write another one, unlike these in how its clues hang together, not only in its names and numbers. End your "
        "answer with the fenced block, ```puzzle."
    )
    drawn = some(references, form, rng)
    return propose_one(form, "puzzle", drawn, short="Write another puzzle.", first=first, another=another)


def solve_puzzle(form: Form, puzzle: str) -> Prompt:
    if form is Form.SHORT:
        return ask(fenced("puzzle", puzzle), "Write an answer.")
    earlier = [
        (_asked(form, example.text, NOTATION), shown_answer(form, example.thought, fenced("answer", example.answer)))
        for example in EXAMPLES
    ]
    return ask(_asked(form, puzzle), after=earlier)


def _asked(form: Form, puzzle: str, notation: str = "") -> str:
    how = "Think first. Then end your answer" if form is Form.LONG else "Answer"
    return paragraphs(
        "Find values for all unknowns of this puzzle with which every clue holds. Any such values count.",
        notation,
        fenced("puzzle", puzzle),
        allowed_values(puzzle),
        f"{how} with exactly one fenced block, ```answer, that has a line `name = value` for each unknown and nothing "
        "else.",
    )


def allowed_values(puzzle: str) -> str:
    """Which values each unknown may have, in a line."""
    groups, _ = logic_language.read(puzzle)
    said = []
    for names, values, different in groups:
        *others, last = map(str, values)
        who = names[0] if len(names) == 1 else f"Each of {', '.join(names)}"
        alike = ", no two of them the same" if different and len(names) > 1 else ""
        said.append(f"{who} is {', '.join(others)} or {last}{alike}.")
    return " ".join(said)
