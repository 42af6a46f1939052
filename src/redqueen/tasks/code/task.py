"""The data of the code family, shared by its kinds."""

import ast
import hashlib
from dataclasses import dataclass
from functools import cached_property

from redqueen.errors import Fault
from redqueen.tasks.code.brief import NO_BRIEF, Brief
from redqueen.tasks.code.complexity import complexity
from redqueen.tasks.code.descriptor import descriptor
from redqueen.tasks.code.evidence import agreed
from redqueen.tasks.code.key import part_keys, program_key, shape_key
from redqueen.tasks.code.program import parse_source
from redqueen.tasks.protocol import Complexity, Draft, Task
from redqueen.tasks.verdicts import Reason, Rejection
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
    brief: Brief = NO_BRIEF
    """What it was to be about."""

    def rejected(self, reason: Reason, detail: str = "", runs: tuple[str, ...] = ()) -> Rejection:
        return Rejection(reason, detail, self.program, runs)


@dataclass(frozen=True, kw_only=True)
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

    @cached_property
    def near_key(self) -> str:
        """The program's key, whatever the input; for code_f, whose program is another task's, the inputs count too."""
        if not self.shown:
            return self.ast_key
        return hashlib.sha256("\n".join([self.ast_key, *sorted(self.inputs)]).encode("utf-8")).hexdigest()

    @property
    def body_key(self) -> str:
        return self.ast_key

    @cached_property
    def shape_key(self) -> str:
        """Blind to the constants of a program that the teacher wrote; a code_f task's was given to it."""
        return self.near_key if self.shown else shape_key(self._tree())

    @cached_property
    def brief(self) -> Brief:
        """One that it would have kept to."""
        return Brief.of(self.program, self.inputs[0], self.outputs[0])

    @property
    def part_keys(self) -> frozenset[str]:
        return part_keys(self._tree())

    @cached_property
    def descriptor(self) -> str:
        return descriptor(self._tree())

    @cached_property
    def complexity(self) -> Complexity:
        return complexity(self.program)

    @property
    def body(self) -> str:
        return self.program

    @property
    def question(self) -> str:
        if self.kind == "code_o":
            return f"what is f({self.inputs[0]})?"
        if self.kind == "code_i":
            return f"for which input is it {self.outputs[0]}?"
        return f"write it, from {self.shown} of {len(self.inputs)} examples" if self.shown else ""

    @property
    def answer_chars(self) -> int:
        """Of the output or the input that is asked for; of the hidden outputs, which a code_f answer must give."""
        if self.kind == "code_i":
            return len(self.inputs[0])
        return sum(map(len, self.outputs[self.shown :]))

    @property
    def guess_key(self) -> str | None:
        """Of code_o, whose output stays the same whatever is shown."""
        return self.outputs[0] if self.kind == "code_o" else None

    @property
    def original(self) -> bool:
        """A code_f task has another one's program."""
        return not self.shown

    def rejected(self, reason: Reason, detail: str = "", runs: tuple[str, ...] = ()) -> Rejection:
        return Rejection(reason, detail, self.program, (*agreed(self.inputs, self.outputs), *runs))

    def _tree(self) -> ast.Module:
        tree = parse_source(self.program)
        if isinstance(tree, Rejection):
            raise Fault(f"task {self.id[:12]} has a program that this Python cannot read: {tree.reason}")
        return tree
