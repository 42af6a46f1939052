"""From a model's text to its fenced blocks: the outer half of the answer contract.

The contract: each part stands in a fenced block of its own, labelled `python`, `input`, `inputs`, `output` or
`message`. What is tolerated: prose around the blocks, a `<think>` part before them, an `<answer>` tag around them,
CRLF, indentation, a missing or neutral label, a fence that closes at the end of a line or when the next labelled
one opens. Of several blocks with one label the last counts, since models think aloud first; only where several inputs
are wanted does every `input` block. What is not tolerated: a text that ends inside a block or a thought; it was cut.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from redqueen.tasks.code.unfenced import last_value, only_program
from redqueen.tasks.verdicts import Reason, Rejection

MAX_TEXT_CHARS = 100_000

_LABELS = {
    "python": "python", "python3": "python", "py": "python",
    "input": "input", "inputs": "inputs", "output": "output", "message": "message",
    "": "", "text": "", "txt": "", "plaintext": "", "plain": "", "json": "", "literal": "",
}  # fmt: skip
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")
_CALL = re.compile(r"f[ \t]*\((.*)\)", re.DOTALL)
_DEFINES_F = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+f\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; its label is one of the contract's, "" when it had none, or some other word."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A text without its thoughts: the blocks, and the whole for those who wrote none."""

    blocks: tuple[Block, ...]
    text: str

    def last(self, *labels: str) -> str | None:
        """The text of the last block with one of these labels."""
        return next((block.text for block in reversed(self.blocks) if block.label in labels), None)

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
        text = self.last(label)
        if text is None and self.blocks:
            text = self.blocks[-1].text
        elif text is None:
            text = (last_value(self.text, label) if unfenced else None) or self.text
        return text.strip()


def read_answer(text: str) -> Answer | Rejection:
    """The blocks of a text."""
    if len(text) > MAX_TEXT_CHARS:
        return Rejection(Reason.TEXT_TOO_LONG, f"more than {MAX_TEXT_CHARS} characters")
    if not is_text(text):
        return Rejection(Reason.NOT_TEXT, "a lone surrogate or a NUL")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.rpartition("</think>")[2]
    if "<think>" in text:
        return Rejection(Reason.CUT, "ends inside <think>")
    _, tag, tagged = text.rpartition("<answer>")
    if tag:
        text = tagged.partition("</answer>")[0]
    blocks = _read_blocks(text.split("\n"))
    if isinstance(blocks, Rejection):
        return blocks
    return Answer(tuple(blocks), text)


def is_text(text: str) -> bool:
    """False for what no tokenizer decodes to: lone surrogates, which cannot be sent, and NUL, which nobody reads."""
    return _NOT_TEXT.search(text) is None


def call_arguments(text: str) -> str:
    """Argument text as it stands between the parentheses, also when the whole call was written."""
    whole = _CALL.fullmatch(text.strip())
    return whole[1].strip() if whole else text.strip()


def _read_blocks(lines: Sequence[str]) -> list[Block] | Rejection:
    blocks: list[Block] = []
    fence, label, content = "", "", []
    for line in lines:
        ticks, word, rest = _fence(line)
        if fence and ticks and _LABELS.get(word) and not rest:
            blocks.append(_block(label, content))  # a labelled fence opens here: closing the one before was forgotten
            fence, label, content = ticks, _LABELS[word], []
        elif fence and line.rstrip().endswith(fence):
            before = line.rstrip().rstrip("`")
            blocks.append(_block(label, [*content, before] if before.strip() else content))
            fence = ""
        elif fence:
            content.append(line)
        elif ticks and rest.endswith("```"):
            blocks.append(_one_line(word, rest.rstrip("`").strip()))
        elif ticks:
            fence, label, content = ticks, _LABELS.get(word, word), []
    if fence:
        begun = Answer((*blocks, _block(label, content)), "").program()
        return Rejection(Reason.CUT, "ends inside a fenced block", begun or "")
    return blocks


def _fence(line: str) -> tuple[str, str, str]:
    """The backticks that a line begins with, the word after them and the rest; three times "" for any other line."""
    stripped = line.strip()
    if not stripped.startswith("```"):
        return "", "", ""
    info = stripped.lstrip("`")
    ticks = stripped[: len(stripped) - len(info)]
    word, _, rest = info.strip().partition(" ")
    if word.endswith("```"):
        return ticks, "", word
    return ticks, word.strip(":").lower(), rest.strip()


def _one_line(word: str, text: str) -> Block:
    """A block that opens and closes on one line; its first word is a label only if it is one of the contract's."""
    if _LABELS.get(word):
        return Block(_LABELS[word], text)
    return Block("", f"{word} {text}".strip())


def _block(label: str, lines: Sequence[str]) -> Block:
    """The lines, without the indentation of the first that is not blank."""
    first = next((line for line in lines if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    return Block(label, "\n".join(line.removeprefix(indent) for line in lines).strip("\n"))
