"""The words of the code family's prompts.

Every prompt is one user message, since not every chat template has a system role, and states the answer's contract with
the limits that the parser enforces. The short form is for small bases that were trained on it: a line of instruction,
the parts, nothing else. A prompt ends with a whole word or a closed fence, never inside something that the answer
would have to finish: the tokenizer would split it as no training text ever was.
"""

from collections.abc import Mapping, Sequence
from random import Random

from redqueen.tasks.code.program import ALLOWED_IMPORTS, MAX_PROGRAM_CHARS
from redqueen.tasks.code.task import MAX_INPUT_CHARS, MAX_MESSAGE_CHARS, MAX_OUTPUT_CHARS, CodeTask
from redqueen.tasks.protocol import Form, Prompt

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

PROGRAM_SHAPE = "def f(...):\n    ...\n    return ..."

INPUT_CONTRACT = f"""\
An input is written as between the parentheses of a call: `3, [1, 2]` or `n=3, names=['a', 'b']`. \
It is made of literals only (no expressions, no variables, no calls) and has at most {MAX_INPUT_CHARS} characters."""

OUTPUT_CONTRACT = f"The returned value must not be None and has at most {MAX_OUTPUT_CHARS} characters when written out."
MESSAGE_CONTRACT = f"at most {MAX_MESSAGE_CHARS} characters"


def ask(*parts: str, context: Mapping[str, str] | None = None) -> Prompt:
    """One user message from its paragraphs."""
    return Prompt(({"role": "user", "content": "\n\n".join(part for part in parts if part)},), context or {})


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
    return ask(
        f"Write one Python program and one input for it. {purpose}",
        PROGRAM_CONTRACT,
        INPUT_CONTRACT,
        OUTPUT_CONTRACT,
        "Aim for a problem that takes several steps of thought and that a careful reader can still work out. "
        "It should be unlike these earlier ones in what it computes, not only in its names:",
        earlier,
        "You may think first. Then end your answer with exactly two fenced blocks, the program and its input:",
        fenced("python", PROGRAM_SHAPE) + "\n" + fenced("input", "..."),
    )
