"""What a teacher is asked to write a program about: the data of its input, and something of Python's that it uses or
what it returns.

Left to themselves teachers come to write about few things, such as lists of numbers. So each prompt draws a brief by
lot, and a proposal that does not keep to it is refused.
"""

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Self

from redqueen.tasks.code.program import parse_source
from redqueen.tasks.code.trees import nodes_of
from redqueen.tasks.verdicts import Rejection
from redqueen.verifier.guest import literals

_TEXT = (
    ".capitalize", ".center", "chr", ".count", ".endswith", ".find", ".index", ".isalnum", ".isalpha", ".isdigit",
    ".islower", ".isspace", ".istitle", ".isupper", ".join", ".ljust", ".lower", ".lstrip", "ord", ".partition",
    ".removeprefix", ".removesuffix", ".replace", ".rfind", ".rindex", ".rjust", ".rpartition", ".rsplit", ".rstrip",
    ".split", ".splitlines", ".startswith", ".strip", ".swapcase", ".title", ".upper", ".zfill",
)  # fmt: skip
_LIST = (".append", ".copy", ".count", ".extend", ".index", ".insert", ".pop", ".remove", ".reverse", ".sort")
_DICT = (".copy", ".fromkeys", ".get", ".items", ".keys", ".pop", ".popitem", ".setdefault", ".update", ".values")
_SET = (".add", ".difference", ".discard", ".intersection", ".issubset", "set", ".symmetric_difference", ".union")
_SEVERAL = ("all", "any", "enumerate", "filter", "map", "max", "min", "range", "reversed", "sorted", "sum", "zip")
_NUMBER = ("abs", "bin", "divmod", "hex", "int", "max", "min", "pow", "range", "round", "str", "sum")
DATA: Mapping[str, str] = {
    "text": "a string",
    "dict": "a dictionary",
    "texts": "a list of strings",
    "numbers": "a list of numbers",
    "nested": "a list of lists or tuples",
    "number": "nothing but numbers",
    "several": "arguments of different types",
}
"""What an input may have to be or to hold, in words."""
USES: Mapping[str, Sequence[str]] = {
    "text": _TEXT,
    "dict": _DICT,
    "texts": _TEXT + _LIST + _SEVERAL,
    "numbers": _LIST + _SET + _SEVERAL,
    "nested": _LIST + _DICT + _SEVERAL,
    "number": _NUMBER,
    "several": _TEXT + _LIST + _DICT + _SEVERAL,
}
"""Functions, and methods with a dot before them, that suit the data."""
RETURNS: Mapping[str, str] = {"text": "a string", "number": "a number", "list": "a list", "dict": "a dictionary"}
_TYPES = {"text": (str,), "number": (int, float), "list": (list,), "dict": (dict,)}


@dataclass(frozen=True, slots=True)
class Brief:
    """One of `DATA`, one of its `USES`, one of `RETURNS`; "" leaves a part open."""

    data: str = ""
    uses: str = ""
    returns: str = ""

    @classmethod
    def drawn(cls, rng: Random) -> Self:
        """Of the last two parts one: few bases keep to all three."""
        data = rng.choice(list(DATA))
        if rng.random() < 0.5:
            return cls(data, uses=rng.choice(USES[data]))
        return cls(data, returns=rng.choice(list(RETURNS)))

    @classmethod
    def asked(cls, context: Mapping[str, str]) -> Self:
        """What the prompt with this context asked for."""
        return cls(context.get("data", ""), context.get("uses", ""), context.get("returns", ""))

    @classmethod
    def of(cls, program: str, given: str, output: str) -> Self:
        """One that a program keeps to with this input and output."""
        data = next(iter(data_of(given)), "")
        called = _called(program)
        uses = next((use for use in USES[data or "several"] if use in called), "")
        returns = next((name for name in RETURNS if _returns(output, name)), "")
        return cls(data, uses, "" if uses else returns)

    @property
    def words(self) -> str:
        """For a prompt."""
        sentences = [
            self.data and f"The input must be or hold {DATA[self.data]}.",
            self.uses and f"The program must call `{self.uses}(...)` somewhere.",
            self.returns and f"The program must return {RETURNS[self.returns]}.",
        ]
        return " ".join(sentence for sentence in sentences if sentence)

    def not_called(self, program: str) -> str | None:
        """What was asked for and is not in the program, in words."""
        return f"asked for `{self.uses}(...)`" if self.uses and self.uses not in _called(program) else None

    def missed(self, given: str, output: str) -> str | None:
        """What was asked for and is not in the input and the output, in words."""
        if self.data and self.data not in data_of(given):
            return f"asked for {DATA[self.data]} in the input"
        if self.returns and not _returns(output, self.returns):
            return f"asked for {RETURNS[self.returns]} as the result"
        return None


NO_BRIEF = Brief()


def data_of(given: str) -> list[str]:
    """All of `DATA` that an input, in canonical text, has."""
    positional, keywords = literals.parse_arguments(given)
    values = [*positional, *keywords.values()]
    return [name for name in DATA if _HAS[name](values)]


def _returns(output: str, name: str) -> bool:
    """Whether an output is of this type; it need not be a value, in a kind that asks for something else."""
    try:
        value = literals.parse(output)
    except literals.NotCanonical:
        return False
    return isinstance(value, _TYPES[name]) and not isinstance(value, bool)


def _called(program: str) -> set[str]:
    """The functions of Python's and, with a dot before them, the methods that a program calls or passes on."""
    tree = parse_source(program)
    if isinstance(tree, Rejection):
        return set()
    nodes = nodes_of(tree)
    names = [node for node in nodes if isinstance(node, ast.Name)]
    own = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    own |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    attributes = [node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)]
    return {node.id for node in names} - own | {f".{node.attr}" for node in attributes}


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _filled_lists(values: Sequence[Any]) -> list[list[Any]]:
    return [value for value in values if isinstance(value, list) and value]


def _lists(values: Sequence[Any], *types: type) -> bool:
    """Whether one of them is a list of these."""
    return any(all(isinstance(item, types) for item in value) for value in _filled_lists(values))


_HAS: Mapping[str, Callable[[Sequence[Any]], bool]] = {
    "text": lambda values: any(isinstance(value, str) for value in values),
    "dict": lambda values: any(isinstance(value, dict) for value in values),
    "texts": lambda values: _lists(values, str),
    "numbers": lambda values: any(map(_are_numbers, _filled_lists(values))),
    "nested": lambda values: _lists(values, list, tuple),
    "number": _are_numbers,
    "several": lambda values: len({type(value) for value in values}) > 1,
}
