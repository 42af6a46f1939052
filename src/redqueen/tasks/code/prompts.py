"""The words of the code family's prompts.

There is no system message, since not every chat template has that role. The long form states the answer's contract
with the limits that the parser enforces, and shows by earlier turns what an answer looks like: a small base keeps a
form that it sees itself have kept, and seldom one that it was only told. The short form is for small bases that were
trained on it: one message with a line of instruction, the parts, nothing else. A prompt ends with a whole word or a
closed fence, never inside something that the answer would have to finish: the tokenizer would split it as no training
text ever was.
"""

from collections.abc import Mapping, Sequence
from random import Random

from redqueen.tasks.code.program import ALLOWED_IMPORTS, MAX_PROGRAM_CHARS
from redqueen.tasks.code.task import MAX_INPUT_CHARS, MAX_MESSAGE_CHARS, MAX_OUTPUT_CHARS, CodeTask
from redqueen.tasks.protocol import Form, Message, Prompt

REFERENCES = {Form.SHORT: 2, Form.LONG: 4}
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


EXAMPLE = CodeTask(
    "code_o",
    "def f(words, limit):\n"
    "    short = [word for word in words if len(word) <= limit]\n"
    "    return short[-1] + str(len(short))",
    ("['tea', 'coffee', 'milk', 'rum'], 4",),
    ("'rum3'",),
)
"""The task that the long forms show an answer for."""
EXAMPLE_THOUGHT = (
    "`short` keeps the words of at most 4 letters: 'tea', 'milk' and 'rum'. The last one is 'rum', and there are 3, "
    "so `f` returns 'rum3'."
)
EXAMPLE_SEARCH = (
    "The output ends in 3, so 3 words must be short enough, and the last of them must be 'rum'. With a limit of 4, "
    "'tea', 'milk' and 'rum' are, and 'coffee' is not."
)


def ask(*parts: str, context: Mapping[str, str] | None = None, after: Sequence[tuple[str, str]] = ()) -> Prompt:
    """One user message from its paragraphs, after earlier turns: what was asked, and what was answered."""
    earlier: list[Message] = []
    for asked, answered in after:
        earlier += [Message(role="user", content=asked), Message(role="assistant", content=answered)]
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
    asked = [first, *[another] * (len(references) - 1)]
    shown = [program_and_input(task) for task in references]
    return ask(another if shown else first, after=list(zip(asked, shown, strict=False)))
