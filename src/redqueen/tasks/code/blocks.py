"""The fenced blocks of the code family: `python`, `input`, `inputs`, `output` and `message`.

Of several blocks with one label the last counts; only where several inputs are wanted does every `input` block.
"""

import re

from redqueen.tasks.blocks import CUT_IN_BLOCK, NEUTRAL, Blocks, split
from redqueen.tasks.code.unfenced import last_value, only_program
from redqueen.tasks.verdicts import Reason, Rejection

_LABELS = NEUTRAL | {
    "python": "python", "python3": "python", "py": "python",
    "input": "input", "inputs": "inputs", "output": "output", "message": "message",
}  # fmt: skip
_CALL = re.compile(r"f[ \t]*\((.*)\)", re.DOTALL)
_DEFINES_F = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+f\b", re.MULTILINE)


class Answer(Blocks):
    """The blocks of a text about a program."""

    __slots__ = ()

    def program(self, unfenced: bool = False) -> str | None:
        """The last `python` block that defines `f`; failing that, such an unlabelled one; failing that, the last. Of a
        text without blocks the one that it has, if `unfenced`."""
        if unfenced and not self.blocks:
            return only_program(self.text)
        for label in ("python", ""):
            programs = [b.text for b in self.blocks if b.label == label and _DEFINES_F.search(b.text)]
            if programs:
                return programs[-1]
        return self.last("python")

    def part(self, *labels: str) -> str | None:
        """The last block with one of these labels; failing that, the last unlabelled one that defines no `f`."""
        text = self.last(*labels)
        if text is None:
            text = next((b.text for b in reversed(self.blocks) if not b.label and not _DEFINES_F.search(b.text)), None)
        return text

    def inputs(self) -> list[str]:
        """The argument texts of several inputs: the lines of the `inputs` block; failing that, every `input` block;
        failing that, the lines of an unlabelled block."""
        texts = [block.text for block in self.blocks if block.label == "input"]
        lines = self.last("inputs")
        if lines is not None or not texts:
            texts = (lines or self.part("inputs") or "").split("\n")
        return [text for text in map(call_arguments, texts) if text]

    def value(self, label: str, unfenced: bool = False) -> str:
        """A student's value: the last block with the label; failing that, the last block; failing that, the whole, or
        what its last line says if `unfenced`."""
        said = last_value(self.text, label) if unfenced and not self.blocks else None
        return said.strip() if said else super().value(label)


def read_answer(text: str) -> Answer | Rejection:
    """The blocks of a text; of one that was cut, the program as far as it came."""
    found = split(text, _LABELS)
    if isinstance(found, Rejection):
        return found
    answer = Answer(found.blocks, found.text)
    return Rejection(Reason.CUT, CUT_IN_BLOCK, answer.program() or "") if found.open else answer


def call_arguments(text: str) -> str:
    """Argument text as it stands between the parentheses, also when the whole call was written."""
    whole = _CALL.fullmatch(text.strip())
    return whole[1].strip() if whole else text.strip()
