"""From a model's text to its fenced blocks: the outer half of every family's answer contract.

The contract: each part stands in a fenced block of its own, with a label that the family names. What is tolerated:
prose around the blocks, a `<think>` part before them, an `<answer>` tag around them, CRLF, indentation, a missing or
neutral label, a fence that closes at the end of a line or when the next labelled one opens. Of several blocks with one
label the last counts, since models think aloud first. What is not tolerated: a text that ends inside a block or a
thought; it was cut.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redqueen.tasks.protocol import Attempt
from redqueen.tasks.verdicts import CUT_ATTEMPT, Reason, Rejection, Verdict, malformed

MAX_TEXT_CHARS = 100_000
NEUTRAL = dict.fromkeys(("", "text", "txt", "plaintext", "plain", "json", "literal"), "")
"""Labels that say nothing."""
CUT_IN_BLOCK = "ends inside a fenced block"
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; its label is one of the contract's, "" when it had none, or some other word."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Blocks:
    """A text without its thoughts: the blocks, and the whole for those who wrote none."""

    blocks: tuple[Block, ...]
    text: str
    open: bool = False
    """It ends inside the last block."""

    def last(self, *labels: str) -> str | None:
        """The text of the last block with one of these labels."""
        return next((block.text for block in reversed(self.blocks) if block.label in labels), None)

    def part(self, *labels: str) -> str | None:
        """The last block with one of these labels; failing that, the last one without any."""
        text = self.last(*labels)
        return self.last("") if text is None else text

    def value(self, label: str) -> str:
        """A student's value: the last block with the label; failing that, the last block; failing that, the whole."""
        text = self.last(label)
        if text is None:
            text = self.blocks[-1].text if self.blocks else self.text
        return text.strip()


def read_answer(text: str, *labels: str) -> Blocks | Rejection:
    """The blocks of a text that is to have these."""
    found = split(text, NEUTRAL | {label: label for label in labels})
    return Rejection(Reason.CUT, CUT_IN_BLOCK) if isinstance(found, Blocks) and found.open else found


def proposed(text: str, label: str) -> str | Rejection:
    """The last block with the label of a teacher's text, or the last one without any, or why there is none."""
    answer = read_answer(text, label)
    if isinstance(answer, Rejection):
        return answer
    block = answer.part(label)
    return block if block and block.strip() else Rejection(Reason.NO_PROGRAM, f"no block ```{label}")


def answered(attempt: Attempt[Any], label: str) -> str | Verdict:
    """The last block with the label of a student's text; the verdict on a text that has none, or was cut."""
    answer = CUT_ATTEMPT if attempt.cut else read_answer(attempt.text, label)
    if isinstance(answer, Verdict):
        return answer
    if isinstance(answer, Rejection):
        return malformed(answer)
    return (answer.last(label) or "").strip() or malformed(Rejection(Reason.NO_ANSWER, f"no block ```{label}"))


def split(text: str, labels: Mapping[str, str]) -> Blocks | Rejection:
    """The blocks of a text, the last one open where the text ends inside it; `labels` has the contract's, by how they
    may be written."""
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
    blocks, is_open = _read_blocks(text.split("\n"), labels)
    return Blocks(tuple(blocks), text, is_open)


def is_text(text: str) -> bool:
    """False for what no tokenizer decodes to: lone surrogates, which cannot be sent, and NUL, which nobody reads."""
    return _NOT_TEXT.search(text) is None


def _read_blocks(lines: Sequence[str], labels: Mapping[str, str]) -> tuple[list[Block], bool]:
    blocks: list[Block] = []
    fence, label, content = "", "", []
    for line in lines:
        ticks, word, rest = _fence(line)
        if fence and ticks and labels.get(word) and not rest:
            blocks.append(_block(label, content))  # a labelled fence opens here: closing the one before was forgotten
            fence, label, content = ticks, labels[word], []
        elif fence and line.rstrip().endswith(fence):
            before = line.rstrip().rstrip("`")
            blocks.append(_block(label, [*content, before] if before.strip() else content))
            fence = ""
        elif fence:
            content.append(line)
        elif ticks and rest.endswith("```"):
            blocks.append(_one_line(word, rest.rstrip("`").strip(), labels))
        elif ticks:
            fence, label, content = ticks, labels.get(word, word), []
    if fence:
        blocks.append(_block(label, content))
    return blocks, bool(fence)


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


def _one_line(word: str, text: str, labels: Mapping[str, str]) -> Block:
    """A block that opens and closes on one line; its first word is a label only if it is one of the contract's."""
    if labels.get(word):
        return Block(labels[word], text)
    return Block("", f"{word} {text}".strip())


def _block(label: str, lines: Sequence[str]) -> Block:
    """The lines, without the indentation of the first that is not blank."""
    first = next((line for line in lines if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip())]
    return Block(label, "\n".join(line.removeprefix(indent) for line in lines).strip("\n"))
