"""The words of the code family's prompts.

There is no system message, since not every chat template has that role. The long and the direct form state the answer's
contract with the limits that the parser enforces, and show by earlier turns what an answer looks like: a small base
keeps a form that it sees itself have kept, and seldom one that it was only told. They differ in what students are shown
to do: think first, or answer at once. The short form is for small bases that were trained on it: one message with a
line of instruction, the parts, nothing else. A prompt ends with a whole word or a
closed fence, never inside something that the answer would have to finish: the tokenizer would split it as no training
text ever was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from redqueen.tasks.code.names import ALLOWED_IMPORTS
from redqueen.tasks.code.program import MAX_PROGRAM_CHARS
from redqueen.tasks.code.task import MAX_INPUT_CHARS, MAX_MESSAGE_CHARS, MAX_OUTPUT_CHARS, CodeTask
from redqueen.tasks.protocol import Form, Message, Prompt

REFERENCES = {Form.SHORT: 2, Form.LONG: 4, Form.DIRECT: 4}
"""How many earlier tasks a teacher is shown."""

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
    """What leads to the output: a line for each step, with the values that it comes to."""
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
        thought="The words of at most 4 letters are kept:\n"
        "'tea' has 3: kept\n"
        "'coffee' has 6: left out\n"
        "'milk' has 4: kept\n"
        "'rum' has 3: kept\n"
        "short = ['tea', 'milk', 'rum']\n"
        "short[-1] = 'rum'\n"
        "len(short) = 3\n"
        "'rum' + '3' = 'rum3'",
        search="The output is a word and a number: the last short word is 'rum', and 3 words are short.\n"
        "Try ['tea', 'coffee', 'milk', 'rum'], 4:\n"
        "short = ['tea', 'milk', 'rum']\n"
        "short[-1] = 'rum'\n"
        "len(short) = 3\n"
        "'rum' + '3' = 'rum3', as it should be",
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
        thought="total = 0\n"
        "number = 3: odd, total = 0 + 3 = 3\n"
        "number = 4: even, total = 3 - 1 = 2\n"
        "number = 5: odd, total = 2 + 5 = 7\n"
        "number = 8: even, total = 7 - 1 = 6\n"
        "return 6",
        search="Odd numbers are added, and each even one takes 1 away.\n"
        "Try [3, 4, 5, 8]:\n"
        "3: odd, total = 3\n"
        "4: even, total = 2\n"
        "5: odd, total = 7\n"
        "8: even, total = 6, as it should be",
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


def shown_answer(form: Form, thought: str, block: str) -> str:
    """An answer as an earlier turn shows it."""
    return paragraphs(thought, block) if form is Form.LONG else block


def ask(*parts: str, context: Mapping[str, str] | None = None, after: Sequence[tuple[str, str]] = ()) -> Prompt:
    """One user message from its paragraphs, after earlier turns: what was asked, and what was answered."""
    earlier: list[Message] = []
    for question, answer in after:
        earlier += [Message(role="user", content=question), Message(role="assistant", content=answer)]
    return Prompt((*earlier, Message(role="user", content=paragraphs(*parts))), context or {})


def paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def fenced(label: str, text: str) -> str:
    """A part as the contract wants it."""
    return f"```{label}\n{text}\n```"


def program_and_input(task: CodeTask) -> str:
    """A task as a teacher would have proposed it."""
    return fenced("python", task.program) + "\n" + fenced("input", task.inputs[0])


def draw(references: Sequence[CodeTask], form: Form, rng: Random) -> list[CodeTask]:
    """Some of the references, each program once, in random order."""
    distinct = list({task.program: task for task in references}.values())
    return rng.sample(distinct, min(REFERENCES[form], len(distinct)))


def propose_pair(form: Form, short: str, purpose: str, references: Sequence[CodeTask]) -> Prompt:
    """Ask for a program and one input."""
    earlier = "\n\n".join(program_and_input(task) for task in references)
    if form is Form.SHORT:
        return ask(earlier, short)
    first = paragraphs(
        f"Write one Python program and one input for it. {purpose}",
        PROGRAM_CONTRACT,
        INPUT_CONTRACT,
        OUTPUT_CONTRACT,
        "Aim for a problem that takes several steps of thought and that a careful reader can still work out. "
        "You may think first. Then end your answer with exactly two fenced blocks, the program and its input.",
    )
    another = (
        "Write another one, unlike these in what it computes, not only in its names. End your answer with the two "
        "fenced blocks, ```python and ```input."
    )
    requests = [first, *[another] * (len(references) - 1)]
    shown = [program_and_input(task) for task in references]
    return ask(another if shown else first, after=list(zip(requests, shown, strict=False)))
