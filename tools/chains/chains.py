"""Chains of additions: a family of programs of ten levels, whose best answers and best teachers are known.

    def f(x):
        a = x + 3
        b = a + 5
        return b % 10

A chain's level is its number of additions. A right answer takes a trace before it, which is every line with what it
comes to; the base is trained (`pretrain.py`) to write one seldom, the seldomer the higher the level, and otherwise to
guess. So there is something to learn that the base can do already, and a solve rate that falls with the level. Prompts,
parser, verifier and grader are the code family's own.
"""

import ast
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from redqueen.tasks.code import CodeO, CodeTask
from redqueen.tasks.code.prompts import program_and_input
from redqueen.tasks.protocol import Form
from redqueen.tasks.wording import fenced

LEVELS = 10
NAMES = "abcdeghijk"
"""Of the variables, in their order: one for each addition, and none of them is `f`."""
LINES = tuple(f"\n    {name} = {before} + " for before, name in zip("x" + NAMES, NAMES, strict=False))
"""What comes before the terms of a chain."""
HEAD, RETURN, TRACE = "def f(x):", "\n    return ", "x="
"""How a program, its last line and a trace begin."""
MODULUS = 10
RATES = (0.70, 0.50, 0.37, 0.26, 0.20, 0.15, 0.12, 0.11, 0.11, 0.11)
"""How often the base is to be right, by level."""
GUESS = 1 / MODULUS
"""How often a guess is right."""
DECAY = 0.7
"""Of the levels that the base proposes, each is this much rarer than the one below: 3.0 in the mean."""
KIND = CodeO(Form.SHORT)


@dataclass(frozen=True, slots=True)
class Chain:
    """One program with its input."""

    terms: tuple[int, ...]
    """What is added, in order; each is a digit."""
    given: int
    """The input, a digit."""

    @property
    def level(self) -> int:
        return len(self.terms)

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(f"{piece}{term}" for piece, term in zip(LINES, self.terms, strict=False))

    @property
    def task(self) -> CodeTask:
        program = f"{HEAD}{''.join(self.lines)}{RETURN}{NAMES[self.level - 1]} % {MODULUS}"
        return CodeTask("code_o", program=program, inputs=(str(self.given),), outputs=(str(self.sums[-1]),))

    @property
    def sums(self) -> tuple[int, ...]:
        """After each addition, as far as they matter."""
        total, found = self.given, []
        for term in self.terms:
            total = (total + term) % MODULUS
            found.append(total)
        return tuple(found)

    @property
    def trace(self) -> str:
        """What leads to the right answer."""
        steps = (f"{line}={total}" for line, total in zip(self.lines, self.sums, strict=True))
        return f"{TRACE}{self.given}{''.join(steps)}"


def draw(level: int, rng: Random) -> Chain:
    """Any chain of this level."""
    return Chain(tuple(rng.randrange(MODULUS) for _ in range(level)), rng.randrange(MODULUS))


def level(program: str) -> int:
    """How many additions a program has, whoever wrote it."""
    return sum(isinstance(node, ast.Add) for node in ast.walk(ast.parse(program)))


def traced(text: str) -> bool:
    """Whether an attempt begins with a trace."""
    return text.startswith(TRACE)


def proposal(chain: Chain) -> str:
    """A teacher's text."""
    return program_and_input(chain.task)


def answer(value: int, trace: str = "") -> str:
    """A student's text."""
    return (f"{trace}\n" if trace else "") + fenced("output", str(value))


def uniform_test(per_level: int = 20) -> list[Chain]:
    """The same chains every time: so many of each level, none twice."""
    rng = Random("chains: the test")
    found: dict[Chain, None] = {}
    for at in range(1, LEVELS + 1):
        while sum(chain.level == at for chain in found) < per_level:
            found[draw(at, rng)] = None
    return list(found)


def write_seeds(path: Path, count: int = 12) -> None:
    """Low chains for an archive to begin with, in the format of `tasks.seeds`."""
    rng = Random("chains: the seeds")
    chains = [draw(1 + at % 3, rng) for at in range(count)]
    lines = [json.dumps({"program": chain.task.program, "input": chain.task.inputs[0]}) for chain in chains]
    path.write_text("\n".join(lines) + "\n")


def instructions() -> tuple[str, str]:
    """What follows the programs in a teacher's prompt and in a student's, whatever the code family's words are."""
    task = Chain((1,), 1).task
    shown = program_and_input(task)
    prompts = KIND.propose_prompt([task], Random(0)), KIND.solve_prompt(task)
    texts = [prompt.messages[0]["content"].removeprefix(shown) for prompt in prompts]
    return texts[0], texts[1]


def pieces() -> Sequence[str]:
    """The texts that are one token each, beside single characters: what a chain is made of."""
    return (
        f"```python\n{HEAD}",
        *LINES,
        RETURN,
        f" % {MODULUS}\n```\n```input\n",
        "\n```",
        "\n\n",
        *instructions(),
        "```output\n",
        "\n```output\n",
        TRACE,
    )
