"""The words of the code family's prompts.

There is no system message, since not every chat template has that role. The long and the direct form state the answer's
contract with the limits that the parser enforces, and show by earlier turns what an answer looks like: a small base
keeps a form that it sees itself have kept, and seldom one that it was only told. They differ in what students are shown
to do: think first, or answer at once. The short form is for small bases that were trained on it: one message with a
line of instruction, the parts, nothing else. A prompt ends with a whole word or a
closed fence, never inside something that the answer would have to finish: the tokenizer would split it as no training
text ever was.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from random import Random

from redqueen.tasks.code.brief import NO_BRIEF, Brief
from redqueen.tasks.code.names import ALLOWED_IMPORTS
from redqueen.tasks.code.program import MAX_PROGRAM_CHARS
from redqueen.tasks.code.task import MAX_INPUT_CHARS, MAX_MESSAGE_CHARS, MAX_OUTPUT_CHARS, CodeTask
from redqueen.tasks.protocol import Form, Prompt
from redqueen.tasks.wording import REFERENCES, ask, fenced, paragraphs

PROGRAM_CONTRACT = f"""\
The program
- defines a function `f` at its top level, which takes at least one argument and returns a value; helper functions, \
classes and nested functions are welcome;
- imports nothing but {", ".join(sorted(ALLOWED_IMPORTS - {"__future__", "collections.abc"}))};
- returns the same value for the same input, every time: nothing random, no clock, no files, nothing kept between calls;
- returns a plain value (boolean, number, string, bytes, list, tuple, dict, set or None) with no infinite number in it;
- has at most {MAX_PROGRAM_CHARS} characters and runs in a tenth of a second."""

INPUT_CONTRACT = f"""\
An input is written as between the parentheses of a call: `3, [1, 2]` or `n=3, names=['a', 'b']`. \
It is made of literals only (no expressions, no variables, no calls) and has at most {MAX_INPUT_CHARS} characters."""

OUTPUT_CONTRACT = f"The returned value must not be None and has at most {MAX_OUTPUT_CHARS} characters when written out."
MESSAGE_CONTRACT = f"at most {MAX_MESSAGE_CHARS} characters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A task with its answers in every kind, as earlier turns show them."""

    task: CodeTask
    thought: str
    """What leads to the output: a numbered sentence for each step, with the values that it comes to."""
    search: str
    """What leads to the input: an idea, tried out as a thought is."""
    calls: tuple[str, ...]
    """Inputs that show what the program does; the first is the task's."""
    hint: str
    returned: tuple[tuple[str, str], ...]
    """What a student of `code_f` sees: some of the inputs and what comes of them."""
    rule: str
    """What it should see in them."""


EXAMPLES = (
    Example(
        task=CodeTask(
            "code_o",
            program="def f(words, limit):\n"
            "    short = [word for word in words if len(word) <= limit]\n"
            "    return short[-1] + str(len(short))",
            inputs=("['tea', 'coffee', 'milk', 'rum'], 4",),
            outputs=("'rum3'",),
        ),
        thought="Let's execute the code step by step:\n\n"
        "1. `f` is called with words = ['tea', 'coffee', 'milk', 'rum'] and limit = 4.\n"
        "2. `short` keeps the words with at most 4 letters. 'tea' has 3 letters, so it is kept. 'coffee' has 6, so it "
        "is left out. 'milk' has 4, so it is kept. 'rum' has 3, so it is kept. So short = ['tea', 'milk', 'rum'].\n"
        "3. short[-1] is the last of them, 'rum'.\n"
        "4. len(short) is 3, so str(len(short)) is '3'.\n"
        "5. `f` returns 'rum' + '3', which is 'rum3'.",
        search="Let's work backwards from the output, 'rum3':\n\n"
        "1. `f` returns short[-1] + str(len(short)), so the last short word must be 'rum', and there must be 3 short "
        "words.\n"
        "2. With limit = 4, 'tea', 'milk' and 'rum' are short, and a longer word such as 'coffee' is left out.\n"
        "3. Check: for words = ['tea', 'coffee', 'milk', 'rum'] and limit = 4, short = ['tea', 'milk', 'rum'], "
        "short[-1] is 'rum' and len(short) is 3, so `f` returns 'rum3', as it should.",
        calls=(
            "['tea', 'coffee', 'milk', 'rum'], 4",
            "['a', 'bb', 'ccc'], 3",
            "['long', 'longer', 'x'], 2",
            "['one', 'two'], 5",
            "['sugar', 'salt', 'flour'], 4",
            "['kiwi'], 4",
            "['ant', 'bee', 'wasp', 'fly'], 3",
            "['', 'no'], 1",
        ),
        hint="It picks words by their length, and says something about those that are left.",
        returned=(
            ("['tea', 'coffee', 'milk', 'rum'], 4", "'rum3'"),
            ("['one', 'two'], 5", "'two2'"),
            ("['long', 'longer', 'x'], 2", "'x1'"),
            ("['ant', 'bee', 'wasp', 'fly'], 3", "'fly3'"),
        ),
        rule="Words longer than the second argument are left out; of the others the last is taken, and their number.",
    ),
    Example(
        task=CodeTask(
            "code_o",
            program="def f(numbers):\n"
            "    total = 0\n"
            "    for number in numbers:\n"
            "        if number % 2:\n"
            "            total += number\n"
            "        else:\n"
            "            total -= 1\n"
            "    return total",
            inputs=("[3, 4, 5, 8]",),
            outputs=("6",),
        ),
        thought="Let's execute the code step by step:\n\n"
        "1. `f` is called with numbers = [3, 4, 5, 8]. total starts at 0.\n"
        "2. number = 3: 3 % 2 is 1, so it is odd, and total = 0 + 3 = 3.\n"
        "3. number = 4: 4 % 2 is 0, so it is even, and total = 3 - 1 = 2.\n"
        "4. number = 5: 5 % 2 is 1, so it is odd, and total = 2 + 5 = 7.\n"
        "5. number = 8: 8 % 2 is 0, so it is even, and total = 7 - 1 = 6.\n"
        "6. The loop is over, and `f` returns 6.",
        search="Let's work backwards from the output, 6:\n\n"
        "1. Odd numbers are added to total, and each even number takes 1 away. The result must be 6.\n"
        "2. 3 and 5 add up to 8, and two even numbers take 2 away: 8 - 2 = 6.\n"
        "3. Check: for numbers = [3, 4, 5, 8], total goes 0, 3, 2, 7, 6, so `f` returns 6, as it should.",
        calls=(
            "[3, 4, 5, 8]",
            "[]",
            "[1, 1, 1]",
            "[2, 4, 6]",
            "[10, 7]",
            "[-3, 2]",
            "[99, 0, 1, 50]",
            "[8, 8, 9]",
        ),
        hint="Odd and even numbers count differently.",
        returned=(("[3, 4, 5, 8]", "6"), ("[]", "0"), ("[2, 4, 6]", "-3"), ("[1, 1, 1]", "3")),
        rule="Odd numbers are added up, and for each even one 1 is taken away.",
    ),
)
"""What the long and the direct form show answers for."""


def right_answer(task: CodeTask) -> str | None:
    """What a student could write at a task of the family's own kinds; None at one of another's."""
    parts = {
        "code_o": ("output", task.outputs[0]),
        "code_i": ("input", task.inputs[0]),
        "code_f": ("python", task.program),
    }
    return fenced(*parts[task.kind]) if task.kind in parts else None


def program_and_input(task: CodeTask) -> str:
    """A task as a teacher would have proposed it."""
    return fenced("python", task.program) + "\n" + fenced("input", task.inputs[0])


def draw(references: Sequence[CodeTask], form: Form, rng: Random) -> list[CodeTask]:
    """Some of the references, each program once, in random order."""
    distinct = list({task.program: task for task in references}.values())
    return rng.sample(distinct, min(REFERENCES[form], len(distinct)))


def propose_pair(
    form: Form, short: str, purpose: str, references: Sequence[CodeTask], brief: Brief = NO_BRIEF
) -> Prompt:
    """Ask for a program and one input, about this. The short form leaves it to the teacher."""
    if form is Form.SHORT:
        return ask("\n\n".join(program_and_input(task) for task in references), short)
    first = paragraphs(
        f"Write one Python program and one input for it. {purpose}",
        PROGRAM_CONTRACT,
        "Every function and class in it is defined once and used. " + INPUT_CONTRACT,
        OUTPUT_CONTRACT,
        "Aim for a problem that takes several steps of thought and that a careful reader can still work out. "
        "You may think first. Then end your answer with exactly two fenced blocks, the program and its input.",
    )
    another = (
        "Write another one, unlike these in what it computes, not only in its names. End your answer with the two "
        "fenced blocks, ```python and ```input."
    )
    briefs = [*(task.brief if brief.words else NO_BRIEF for task in references), brief]
    requests = [paragraphs(another if place else first, each.words) for place, each in enumerate(briefs)]
    shown = [program_and_input(task) for task in references]
    return ask(requests[-1], context=asdict(brief), after=list(zip(requests, shown, strict=False)))
