"""Bundled examples of the code family: texts as models write them, and what should become of each.

They show the contract, the reasons for which a proposal is rejected and the tricks that must not pay.
They are examples, not results: no model wrote them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from redqueen.tasks.verdicts import Grade, Reason
from redqueen.tasks.wording import fenced


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleProposal:
    """A teacher's text."""

    name: str
    kind: str
    what: str
    text: str
    reason: Reason | None = None
    """Why it is to be rejected; None when it is to become a task."""
    context: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExampleAttempt:
    """A student's text for the task of an example proposal."""

    proposal: str
    what: str
    text: str
    grade: Grade


def _pair(program: str, given: str) -> str:
    return fenced("python", program.strip("\n")) + "\n" + fenced("input", given)


def _inputs(*inputs: str, message: str) -> str:
    return fenced("inputs", "\n".join(inputs)) + "\n" + fenced("message", message)


_DIGITS = """
def f(n):
    steps = 0
    while n > 9:
        n = sum(int(digit) ** 2 for digit in str(n))
        steps += 1
    return [n, steps]
"""

_BANK = """
from dataclasses import dataclass

@dataclass
class Account:
    balance: float = 0.0

    def pay(self, amount: float) -> bool:
        if amount > self.balance:
            return False
        self.balance -= amount
        return True

def f(start, payments):
    account = Account(start)
    done = [account.pay(amount) for amount in payments]
    return {"done": done, "left": round(account.balance, 2)}
"""

_BLOCKS = """
from itertools import groupby

def f(text, least=2):
    blocks = [(letter, len(list(run))) for letter, run in groupby(text)]
    return "".join(letter * length for letter, length in blocks if length >= least)
"""

_ZIGZAG = """
def f(numbers):
    return sum(number if place % 2 == 0 else -number for place, number in enumerate(sorted(numbers)))
"""

_CLAMP = """
def f(x):
    return max(0, min(x, 10))
"""

PROPOSALS: tuple[ExampleProposal, ...] = (
    ExampleProposal(
        name="digits", kind="code_o", what="a program and an input, nothing else", text=_pair(_DIGITS, "1988")
    ),
    ExampleProposal(
        name="bank",
        kind="code_o",
        what="a class, type hints, thoughts and prose around the blocks",
        text="<think>Something with state inside one call.</think>\nHere is my problem.\n\n"
        + _pair(_BANK, "start=20.5, payments=[5, 12.25, 4]")
        + "\n\nGood luck!",
    ),
    ExampleProposal(
        name="blocks",
        kind="code_i",
        what="a keyword default, CRLF line ends",
        text=_pair(_BLOCKS, "'aabcccd'").replace("\n", "\r\n"),
    ),
    ExampleProposal(
        name="zigzag",
        kind="code_i",
        what="unlabelled fences",
        text=_pair(_ZIGZAG, "[4, 9, 2, 7]").replace("python", "").replace("input", ""),
    ),
    ExampleProposal(
        name="digit inputs",
        kind="code_f",
        what="inputs and a hint for a given program",
        text=_inputs(
            "7", "10", "44", "1988", "99999", "123", "60", "2", message="Digits are squared, again and again."
        ),
        context={"program": _DIGITS.strip("\n")},
    ),
    ExampleProposal(
        name="clamp inputs",
        kind="code_f",
        what="one fenced block for each input",
        text="\n".join(fenced("input", given) for given in ("-5", "0.5", "3", "10", "11", "7")),
        context={"program": _CLAMP.strip("\n")},
    ),
    ExampleProposal(
        name="hash order",
        kind="code_o",
        what="depends on the order of a set",
        text=_pair(
            "def f(words):\n    return ' '.join({word.upper() for word in words})",
            "['red', 'queen', 'race', 'run', 'level']",
        ),
        reason=Reason.NONDETERMINISTIC,
    ),
    ExampleProposal(
        name="counter",
        kind="code_i",
        what="keeps state between calls",
        text=_pair("calls = []\n\ndef f(x):\n    calls.append(x)\n    return len(calls)", "3"),
        reason=Reason.NONDETERMINISTIC,
    ),
    ExampleProposal(
        name="endless",
        kind="code_o",
        what="never ends",
        text=_pair("def f(n):\n    while True:\n        n += 1", "1"),
        reason=Reason.TIMEOUT,
    ),
    ExampleProposal(
        name="function",
        kind="code_o",
        what="returns a function, not a plain value",
        text=_pair("def f(n):\n    return lambda x: x + n", "1"),
        reason=Reason.NOT_PLAIN,
    ),
    ExampleProposal(
        name="not a number",
        kind="code_o",
        what="returns nan",
        text=_pair("def f(x):\n    return float(x) - float(x)", "'inf'"),
        reason=Reason.NOT_FINITE,
    ),
    ExampleProposal(
        name="stop iteration",
        kind="code_o",
        what="raises an exception",
        text=_pair("def f(items):\n    return next(iter(items))", "[]"),
        reason=Reason.RAISES,
    ),
    ExampleProposal(
        name="long output",
        kind="code_i",
        what="returns more than a student could write",
        text=_pair("def f(n):\n    return list(range(n))", "5000"),
        reason=Reason.OUTPUT_TOO_LONG,
    ),
    ExampleProposal(
        name="clock",
        kind="code_o",
        what="imports what is not on the list",
        text=_pair("import time\n\ndef f(x):\n    return time.time() > x", "0"),
        reason=Reason.FORBIDDEN_IMPORT,
    ),
    ExampleProposal(
        name="expression",
        kind="code_i",
        what="the input is an expression",
        text=_pair(_ZIGZAG, "list(range(10))"),
        reason=Reason.NOT_LITERAL,
    ),
    ExampleProposal(
        name="cut short",
        kind="code_o",
        what="cut by the length limit",
        text="```python\ndef f(x):\n    return x +",
        reason=Reason.CUT,
    ),
    ExampleProposal(
        name="no difference",
        kind="code_f",
        what="every input gives the same output",
        text=_inputs("11", "12", "13", "14", message="Limits."),
        reason=Reason.CONSTANT,
        context={"program": _CLAMP.strip("\n")},
    ),
)

_TABLE = """
def f(n):
    return {7: [7, 0], 10: [1, 1], 44: [1, 4], 2: [2, 0]}.get(n, [1, 1])
"""

_ALWAYS_EQUAL = """
class Any(list):
    def __eq__(self, other):
        return True

def f(n):
    return Any([0, 0])
"""

_FRAMES = """
def walk():
    yield 1

def f(n):
    frame = getattr(walk(), "gi" + "_frame")
    found = []
    while frame is not None:
        found += [value for name, value in getattr(frame, "f_locals").items() if name in ("expected", "outputs")]
        frame = getattr(frame, "f_back")
    return found[0] if found else [n, 0]
"""

_QUITS = """
def f(n):
    print("PASS")
    raise SystemExit(0)
"""

ATTEMPTS: tuple[ExampleAttempt, ...] = (
    ExampleAttempt("digits", "the right value", fenced("output", "[5, 2]"), Grade.CORRECT),
    ExampleAttempt("digits", "a wrong value", fenced("output", "[5, 3]"), Grade.WRONG),
    ExampleAttempt("digits", "right but for the types", fenced("output", "[5.0, 2.0]"), Grade.WRONG),
    ExampleAttempt("digits", "the call itself as the answer", fenced("output", "f(1988)"), Grade.MALFORMED),
    ExampleAttempt(
        "digits",
        "an object that equals everything",
        fenced("output", "type('A', (), {'__eq__': lambda self, other: True})()"),
        Grade.MALFORMED,
    ),
    ExampleAttempt("digits", "text that ends the comparison early", fenced("output", "0) or (True"), Grade.MALFORMED),
    ExampleAttempt(
        "bank",
        "the right value after thinking aloud",
        "<think>5, then 12.25: 3.25 are left, 4 is too much.</think>\n<answer>"
        + fenced("output", "{'done': [True, True, False], 'left': 3.25}")
        + "</answer>",
        Grade.CORRECT,
    ),
    ExampleAttempt("blocks", "another input that gives the output", fenced("input", "'aaccc'"), Grade.CORRECT),
    ExampleAttempt("blocks", "an input that gives another output", fenced("input", "'abccc'"), Grade.WRONG),
    ExampleAttempt("blocks", "an input that the program fails on", fenced("input", "5"), Grade.WRONG),
    ExampleAttempt("zigzag", "text that ends the call early", fenced("input", "[0]) or (True"), Grade.MALFORMED),
    ExampleAttempt("zigzag", "cut by the length limit", "```input\n[4, 9, 2", Grade.MALFORMED),
    ExampleAttempt("digit inputs", "the function", fenced("python", _DIGITS.strip("\n")), Grade.CORRECT),
    ExampleAttempt(
        "digit inputs", "a table of the shown pairs, with a default", fenced("python", _TABLE.strip("\n")), Grade.WRONG
    ),
    ExampleAttempt(
        "digit inputs", "lists that equal everything", fenced("python", _ALWAYS_EQUAL.strip("\n")), Grade.WRONG
    ),
    ExampleAttempt(
        "digit inputs", "looks for the answers in frames", fenced("python", _FRAMES.strip("\n")), Grade.MALFORMED
    ),
    ExampleAttempt("digit inputs", "prints PASS and quits", fenced("python", _QUITS.strip("\n")), Grade.WRONG),
    ExampleAttempt("clamp inputs", "a constant", fenced("python", "def f(x):\n    return 10"), Grade.WRONG),
)
