"""What the host asks about word problems, and about whole numbers as answers; the texts are a model's.

    validate(text)          the story with numbers by lot and without what it does not need, or why it is none
    inspect(text)           the story as it stands, or why it is none: for files, whose authors know what they want
    grade(answer, text)     "correct", "wrong" or why the text is no whole number

A teacher writes who has what and what happens. All numbers are drawn here, from the hash of what was written, so a
teacher cannot know the answer; what students read is written from what was understood.
"""

import re

from stories.drawing import Lot, drawn, from_nothing, settled, told
from stories.equations import Equations
from stories.forms import MOST_CHARS
from stories.keys import structure
from stories.linear import TooLarge
from stories.reading import Refused, read, read_loosely, ways
from stories.settling import examined, needed
from stories.writing import write

MOST_ANSWER_CHARS = 80
_NUMBER = re.compile(r"\$? ?(-?[0-9]{1,3}(?:,[0-9]{3})+|-?[0-9]{1,9})(?:\.0{1,3})?")
_UNIT = re.compile(r"(?: ?[A-Za-z%]{1,20}){0,3} ?\.?\Z")
_MARKS = (
    ("**", "**"), ("__", "__"), ("*", "*"), ("_", "_"), ("`", "`"), ("$$", "$$"), ("$", "$"), ("\\(", "\\)"),
    ("\\[", "\\]"), ("\\boxed{", "}"),
)  # fmt: skip
"""Of emphasis and of formulas, around a number or around all of an answer."""
for of_questions in (False, True):
    ways(of_questions)


def validate(text):
    return _judged(text, read_loosely, _told_anew)


def inspect(text):
    return _judged(text, read, lambda sentences, question: (sentences, question))


def _judged(text, read_it, sound):
    try:
        sentences, question = read_it(text)
        written = structure(sentences, question)
        sentences, question = sound(sentences, question)
        # What is shown is what is asked: the text must say the same when it is read again.
        text = write(sentences, question)
        if len(text) > MOST_CHARS or read(text) != (sentences, question):
            raise Refused("unanswerable", "it cannot be written so that it is read the same way")
        answer, steps = examined(sentences, question)
        return {"text": text, "answer": answer, "steps": steps, "written": written}
    except Refused as error:
        return {"reason": error.reason, "detail": error.detail}
    except TooLarge:
        return {"reason": "too_complex", "detail": "its numbers grow too large"}


def _told_anew(sentences, question):
    if not settled(Equations(sentences, question)):
        sentences = (*from_nothing(sentences, question), *sentences)
    if not settled(Equations(sentences, question)):
        raise Refused("unanswerable", "what is asked does not follow from what is told")
    if told(Equations(sentences, question)):
        raise Refused("too_easy", "a sentence tells what is asked")
    sentences, question = drawn(sentences, question, Lot(write(sentences, question)))
    return needed(sentences, question), question


def grade(answer, text):
    if len(text) > MOST_ANSWER_CHARS:
        return ["answer_too_long", f"more than {MOST_ANSWER_CHARS} characters"]
    found = _NUMBER.fullmatch(_unmarked(_UNIT.sub("", _unmarked(text.strip().removesuffix(".")), count=1)))
    if found is None:
        return ["no_answer", "no whole number"]
    return "correct" if int(found[1].replace(",", "")) == int(answer) else "wrong"


def _unmarked(text):
    text = text.strip()
    for begin, end in _MARKS:
        if len(text) > len(begin) + len(end) and text.startswith(begin) and text.endswith(end):
            return _unmarked(text[len(begin) : -len(end)])
    return text
