"""The answer in a model's reply. Searches are linear in the text, since any text may come."""

import re
from collections import deque
from decimal import Context, Decimal

MOST_CHARS = 100_000
"""Of a longer text only the end is searched."""
_FENCE = re.compile(r"^[ \t]*```.*$", re.MULTILINE)
_BRACE = re.compile(r"(\\(?:boxed|fbox)[ \t]*)\{|\\.|[{}]", re.DOTALL)
_PHRASE = re.compile(r"(?:final answer|answer)[ \t]*(?:is|:|=)[ \t]*:?[ \t]*", re.IGNORECASE)
_EMPHASIS = re.compile(r"(?<!\w)\*\*([^*]+)\*\*")
_NUMBER = re.compile(r"(?:(?<![\w%.)\]}])-)?\$?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)")
_NUMERAL = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:(?:[eE]|\\?(?:times|cdot)10\^|\*10\^)\{?([+-]?\d{1,4})\}?)?")
_THOUSANDS = re.compile(r"(?<=\d)(?:,|\\,|\{,\})(?:\\!)?(?=\d{3}(?!\d))")
_GROUPED = re.compile(r"(?<=\d)(?:\\,|\{,\}|,\\!)(?=\d{3}(?!\d))")
_UNIT = re.compile(r"\\(?:text|mathrm|mbox)[ \t]*\{[^{}]*\}(?:\^\{?-?\d+\}?)?|(?<=[A-Za-z])\^\{?-?\d+\}?")
_AROUND = re.compile(r"\s*(\\times|\\cdot|[\^{}*])\s*")
EXACT = Context(prec=20_000)
"""Precision for all digits of any numeral."""
_LETTER = re.compile(r"\b([A-D])\b")
_SAID_LETTER = re.compile(r"(?i:answer|option|choice)[^A-Za-z\n]{0,20}(?:is[^A-Za-z\n]{0,20})?\(?([A-D])\b")


def fenced(text: str) -> list[str]:
    """The fenced code blocks; the last may have no closing fence."""
    fences = list(_FENCE.finditer(text))
    blocks = []
    for opening in range(0, len(fences), 2):
        end = fences[opening + 1].start() if opening + 1 < len(fences) else len(text)
        blocks.append(text[fences[opening].end() + 1 : end].rstrip("\n"))
    return blocks


def boxed(text: str) -> str | None:
    """The content of the last \\boxed{...} that is closed."""
    text = text[-MOST_CHARS:]
    opened: list[int | None] = []
    last, content = -1, None
    for mark in _BRACE.finditer(text):
        if mark[0] == "}":
            start = opened.pop() if opened else None
            if start is not None and start > last:
                last, content = start, text[start : mark.start()].strip()
        elif mark[1] or mark[0] == "{":
            opened.append(mark.end() if mark[1] else None)
    return content


def final_answer(text: str) -> str | None:
    """The last \\boxed{...}, or else the rest of the line after the last "answer is", or else the last number."""
    if box := boxed(text):
        return box
    text = text[-MOST_CHARS:]
    if (phrase := _last(_PHRASE, text)) is not None:
        line = _EMPHASIS.sub(r"\1", text[phrase.end() :].partition("\n")[0]).strip(" \t*")
        formula = re.match(r"\$([^$]+)\$|\\\((.+?)\\\)", line)
        line = (formula[1] or formula[2]) if formula else re.sub(r"\.\s.*|\.$", "", line)
        if line := line.strip().strip("*").strip():
            return line
    return last_number(text)


def last_number(text: str) -> str | None:
    """The last number, without thousands separators and currency."""
    match = _last(_NUMBER, grouped(text[-MOST_CHARS:], ",").replace("\\$", "$"))
    return match[0].replace(",", "").replace("$", "") if match else None


def number_in_box(box: str) -> str | None:
    """The last number in a box, ignoring units and their powers."""
    return last_number(_UNIT.sub(" ", box)) or last_number(box)


def grouped(text: str, mark: str = "") -> str:
    """The text with this thousands separator instead of LaTeX's."""
    return _GROUPED.sub(mark, text)


def numeral(text: str) -> Decimal | None:
    """The value of a plain numeral, scientific notation included; None for anything else."""
    text = text.replace("\\$", "").strip().strip("$").strip()
    text = _AROUND.sub(r"\1", _THOUSANDS.sub("", text))
    match = _NUMERAL.fullmatch(text)
    if match is None or len(text) > 200:
        return None
    return Decimal(match[1]).scaleb(int(match[2] or 0), EXACT)


def letter(text: str) -> str | None:
    """The letter of a choice: in the last box, said to be the answer, or the first that stands alone."""
    text = text[-MOST_CHARS:]
    match = _LETTER.search(boxed(text) or "") or _last(_SAID_LETTER, text) or _LETTER.search(text)
    return match[1] if match else None


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(iter(deque(pattern.finditer(text), maxlen=1)), None)
