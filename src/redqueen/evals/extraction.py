"""From what a model said to the answer in it. Plain searches, linear in the text: any text may come."""

import re
from collections import deque
from decimal import Context, Decimal

MOST_CHARS = 100_000
"""Of a text that is searched; of a longer one the end."""
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
"""Room for all digits of any numeral that is read."""
_LETTER = re.compile(r"\b([A-D])\b")
_SAID_LETTER = re.compile(r"(?i:answer|option|choice)[^A-Za-z\n]{0,20}(?:is[^A-Za-z\n]{0,20})?\(?([A-D])\b")


def fenced(text: str) -> list[str]:
    """The texts between fence lines; the last may have no closing one."""
    marks = list(_FENCE.finditer(text))
    found = []
    for number in range(0, len(marks), 2):
        end = marks[number + 1].start() if number + 1 < len(marks) else len(text)
        found.append(text[marks[number].end() + 1 : end].rstrip("\n"))
    return found


def boxed(text: str) -> str | None:
    """What stands in the last \\boxed{...} that is closed."""
    text = text[-MOST_CHARS:]
    opened: list[int | None] = []
    last, found = -1, None
    for mark in _BRACE.finditer(text):
        if mark[0] == "}":
            start = opened.pop() if opened else None
            if start is not None and start > last:
                last, found = start, text[start : mark.start()].strip()
        elif mark[1] or mark[0] == "{":
            opened.append(mark.end() if mark[1] else None)
    return found


def final_answer(text: str) -> str | None:
    """The last \\boxed{...}; failing that, what the last "answer is" is followed by on its line; failing that, the last
    number."""
    found = boxed(text)
    if found:
        return found
    text = text[-MOST_CHARS:]
    if (said := _last(_PHRASE, text)) is not None:
        line = _EMPHASIS.sub(r"\1", text[said.end() :].partition("\n")[0]).strip(" \t*")
        formula = re.match(r"\$([^$]+)\$|\\\((.+?)\\\)", line)
        line = (formula[1] or formula[2]) if formula else re.sub(r"\.\s.*|\.$", "", line)
        if line := line.strip().strip("*").strip():
            return line
    return last_number(text)


def last_number(text: str) -> str | None:
    """The last number, without its thousands' commas and its currency."""
    found = _last(_NUMBER, grouped(text[-MOST_CHARS:], ",").replace("\\$", "$"))
    return found[0].replace(",", "").replace("$", "") if found else None


def number_in_box(box: str) -> str | None:
    """The last number of a box, units and their powers aside."""
    return last_number(_UNIT.sub(" ", box)) or last_number(box)


def grouped(text: str, mark: str = "") -> str:
    """LaTeX's thousands with this between them."""
    return _GROUPED.sub(mark, text)


def numeral(text: str) -> Decimal | None:
    """The value of a plain numeral, also in scientific notation; None for anything else."""
    text = text.replace("\\$", "").strip().strip("$").strip()
    text = _AROUND.sub(r"\1", _THOUSANDS.sub("", text))
    match = _NUMERAL.fullmatch(text)
    if match is None or len(text) > 200:
        return None
    return Decimal(match[1]).scaleb(int(match[2] or 0), EXACT)


def letter(text: str) -> str | None:
    """The letter of a choice: said to be the answer, or the first that stands alone."""
    text = text[-MOST_CHARS:]
    in_box = boxed(text)
    if in_box and (found := _LETTER.search(in_box)):
        return found[1]
    found = _last(_SAID_LETTER, text) or _LETTER.search(text)
    return found[1] if found else None


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(iter(deque(pattern.finditer(text), maxlen=1)), None)
