"""The words of `math_w`'s prompts, in the forms that those of programs have."""

from collections.abc import Sequence
from random import Random

from redqueen.tasks.math.guest.stories.forms import MOST_SENTENCES
from redqueen.tasks.math.task import StoryTask
from redqueen.tasks.protocol import Form, Prompt
from redqueen.tasks.wording import Example, paragraphs, propose_one, solve_one, some

FORMS = """\
Sentences that are understood, with any names, things and numbers:
- Ann has 12 apples. Ben has 5 more apples than Ann. Cara has 3 fewer apples than Ben.
- Dan has twice as many apples as Ann. Eva has half as many apples as Dan. Finn has as many apples as Ann and Ben \
together. Ann and Ben have 40 apples together. Ann has 8 more apples than pears. Gus has 4 boxes with 6 apples in each.
- Ann gives 5 apples to Ben. Ann gives half of the apples to Ben. Ann finds 7 apples. Ben eats 4 apples. Ben loses a \
third of the apples. Ben sells 20 percent of the apples. Ann picks 3 apples every day for 5 days. Ann shares the \
apples equally among 4 friends.
- One pen costs 3 dollars. One book costs 4 dollars more than one pen. Ann pays 30 dollars for 3 pens and 2 books. Ann \
buys 4 cups for 5 dollars each. Ann pays for 2 pens.
- Ann is 12 years old. Ben is 4 years older than Ann. In 5 years Ben will be twice as old as Cara.
Questions: How many apples does Ann have? How many apples did Ann have at first? How many apples do Ann and Ben have \
together? How many more apples does Ann have than Ben? How many apples does each friend get? How many dollars does one \
pen cost? How many dollars do 3 pens and 2 books cost? How old is Ann? How old will Ann be in 5 years?"""

CONTRACT = f"""\
The story
- has plain sentences like these, at most {MOST_SENTENCES}, and ends with one question;
- tells things in the order in which they happen;
- tells enough to work out the answer, and does not say it outright;
- needs several of its sentences for the answer."""

LOT = """\
You need not work out the answer. When the story is read, all its numbers are drawn anew, so that everything comes out \
whole. Sentences that the answer does not need are left out."""


EXAMPLES = (
    Example(
        text="Mia has 34 shells. Leo has 19 more shells than Mia. Leo gives 8 shells to Mia. How many shells does Leo "
        "have?",
        thought="Leo has 34 + 19 = 53 shells. Leo gives away 8, so 53 - 8 = 45 are left.",
        answer="45",
    ),
    Example(
        text="One cup costs 6 dollars. One bowl costs 3 times as much as one cup. How many dollars do 4 cups and 5 "
        "bowls cost?",
        thought="One bowl costs 3 * 6 = 18 dollars. 4 cups cost 4 * 6 = 24 dollars and 5 bowls cost 5 * 18 = 90 "
        "dollars, 24 + 90 = 114 dollars together.",
        answer="114",
    ),
    Example(
        text="Tara and Kim have 85 stamps together. Tara has 4 times as many stamps as Kim. How many stamps does Tara "
        "have?",
        thought="Tara has 4 parts and Kim has 1 part, 5 parts together. One part is 85 / 5 = 17 stamps, so Tara has "
        "4 * 17 = 68.",
        answer="68",
    ),
)
"""What the long and the direct form show answers for."""


def propose_story(form: Form, references: Sequence[StoryTask], rng: Random) -> Prompt:
    first = paragraphs(
        "Write one short story about numbers that ends with a question. Somebody else has to work out the answer, a "
        "whole number.",
        FORMS,
        CONTRACT,
        LOT,
        "Aim for a story that takes several steps of thought. Answer with exactly one fenced block, ```story.",
    )
    another = (
        "Write another one, in which other things happen and are compared, not only with other names and numbers. "
        "Answer with the fenced block, ```story."
    )
    drawn = some(references, form, rng)
    return propose_one(form, "story", drawn, short="Write another story.", first=first, another=another)


def solve_story(form: Form, story: str) -> Prompt:
    how = "Think first, in short steps. Then end your answer" if form is Form.LONG else "Answer"
    return solve_one(
        form,
        "story",
        story,
        question="Work out the number that this story asks for. Things happen in the order in which they are told.",
        ending=f"{how} with exactly one fenced block, ```answer, that has the whole number and nothing else.",
        examples=EXAMPLES,
    )
