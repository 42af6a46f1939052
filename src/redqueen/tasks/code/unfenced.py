"""Answers without their fenced block, where there is exactly one way to read them (`tasks.unfenced`).

Only string operations, in time that grows with the text. What is found is text, read in a guest and checked as what
stands in a block is; here it is merely picked out. No literal begins with a backtick or an asterisk, so these are
marks.
"""

import re
from collections.abc import Sequence

_SAYS = {
    "output": r"(?:output|answer|result|return(?:ed)? value)",
    "input": r"(?:inputs?|answer|arguments?)",
}
_LINE = r"(?:(?:so|thus|therefore|hence),? )?(?:the |an |one )?(?:final |correct |possible )?{} ?(is:?|[:=]) ?(.+)"
_SENTENCES = {label: re.compile(_LINE.format(says), re.IGNORECASE) for label, says in _SAYS.items()}
_BOLD_LABEL = re.compile(r"\*\*([\w ]+:?)\*\*")
_VALUE = re.compile(r"[\[({'\"]|[-+]?\.?\d|(?:True|False|None)$|set\(\)$|b['\"]")
_CALL = re.compile(r"f ?\(.*\)$")
_NAMES = r"[\w.]+(?: as \w+)?(?: ?, ?[\w.]+(?: as \w+)?)*"
_DEFINITION = re.compile(rf"def \w+ ?\(|@[\w.]+|import {_NAMES} *$|from [\w.]+ import [\w(*]")
_DEFINES_F = re.compile(r"def f ?\(")


def last_value(text: str, label: str) -> str | None:
    """The value in the last line that is not empty: `Output: 5`, `The answer is 5.`, `**5**`, or the bare value. None
    where there is none, or more than one way to read it."""
    line = next((line.strip() for line in reversed(text.split("\n")) if line.strip()), "")
    line = _BOLD_LABEL.sub(r"\1", line, count=1) if _BOLD_LABEL.match(line) else line
    sentence = _SENTENCES[label].fullmatch(_unmarked(line))
    if sentence:
        value = _unmarked(sentence[2].strip())
        value = value.removesuffix(".") if sentence[1].lower().startswith("is") else value
    elif _unmarked(line) != line:
        value = _unmarked(line)
    elif (_VALUE.match(line) or (label == "input" and _CALL.match(line))) and not _VALUE.match(text.lstrip()):
        value = line  # but a text that begins like a value is a value as a whole, or several
    else:
        return None
    # `5.` is a number and the end of a sentence, `5, 6` a tuple and two answers.
    doubtful = value.endswith(".") or (label == "output" and _lists_values(value))
    return None if doubtful or not value else value


def _unmarked(text: str) -> str:
    """Without the marks around all of it, and the full stop after them."""
    for mark in ("**", "`"):
        whole = text.removesuffix(".")
        if whole.startswith(mark) and whole.endswith(mark) and len(whole) > 2 * len(mark):
            text = whole.removeprefix(mark).removesuffix(mark).strip()
    return text


def _lists_values(text: str) -> bool:
    """Whether there is a comma outside all brackets and quotes."""
    depth, quote, escaped = 0, "", False
    for character in text:
        if quote:
            if escaped or character == "\\":
                escaped = not escaped
            elif character == quote:
                quote = ""
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0:
            return True
    return False


def only_program(text: str) -> str | None:
    """The one function `f` at the top level, with the functions and imports before it."""
    lines = text.split("\n")
    starts = [at for at, line in enumerate(lines) if _DEFINES_F.match(line)]
    if len(starts) != 1:
        return None
    kept: list[str] = []
    at = 0
    while at <= starts[0]:
        end = _end(lines, at)
        if _DEFINITION.match(lines[at]):
            kept += lines[at:end]
        at = end
    return "\n".join(kept).rstrip()


def _end(lines: Sequence[str], start: int) -> int:
    """Of what begins in this line at the top level: the next line that is neither indented nor blank."""
    end = start + 1
    while end < len(lines) and (not lines[end].strip() or lines[end][0] in " \t)"):
        end += 1
    return end
