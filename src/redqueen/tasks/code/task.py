"""The data of the code family, shared by its kinds."""

import ast
from dataclasses import dataclass
from functools import cached_property

from redqueen.errors import Fault
from redqueen.tasks.code.descriptor import descriptor
from redqueen.tasks.code.key import program_key
from redqueen.tasks.code.program import parse_source
from redqueen.tasks.protocol import Draft, Rejection, Task
from redqueen.verifier import Limits

DEFAULT_LIMITS = Limits()
MAX_INPUT_CHARS = 1_000
MAX_OUTPUT_CHARS = 1_000
"""Of one input or output in canonical text: a student must be able to write it."""
MAX_MESSAGE_CHARS = 500
MAX_ANSWER_CHARS = 4 * MAX_OUTPUT_CHARS
"""Of an answer as written: room for the truth laid out over many lines."""


@dataclass(frozen=True)
class CodeDraft(Draft):
    """A program and inputs for it, as the teacher wrote them."""

    program: str
    inputs: tuple[str, ...]
    message: str = ""


@dataclass(frozen=True)
class CodeTask(Task):
    """A program with inputs and what it returns for them, in canonical text."""

    program: str
    inputs: tuple[str, ...]
    """As between the parentheses of a call: `1, [2, 3], n=5`. code_o and code_i have one."""
    outputs: tuple[str, ...]
    shown: int = 0
    """code_f: how many pairs, from the first, the student sees; the others grade it."""
    message: str = ""
    """code_f: the teacher's hint."""

    @cached_property
    def ast_key(self) -> str:
        """Shared by programs that differ in names, comments and layout only."""
        return program_key(self._tree())

    @property
    def near_key(self) -> str:
        return self.ast_key

    @property
    def descriptor(self) -> str:
        return descriptor(self._tree())

    def _tree(self) -> ast.Module:
        tree = parse_source(self.program)
        if isinstance(tree, Rejection):
            raise Fault(f"task {self.id[:12]} has a program that this Python cannot read: {tree.reason}")
        return tree
