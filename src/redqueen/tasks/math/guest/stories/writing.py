"""The canonical text of a story: what students read. Read again, it is the same story."""

from .english import singular
from .forms import EVENTS, FORMS, FRACTIONS, QUESTIONS, STANDS


def write(sentences, question):
    """One sentence after the other, the question last, all on one line."""
    told, happened = [], False
    for form, slots in sentences:
        now = "Now " if happened and form in STANDS else ""
        told.append(_written(now + FORMS[form][0], slots))
        happened = happened or form in EVENTS
    return " ".join([*told, _written(QUESTIONS[question[0]][0], question[1])])


def _written(template, slots):
    values = dict(slots)
    owners = {letter: _owner(values[letter]) for letter in "ABCD" if letter in values}
    words = values | owners
    if "K" in values:
        words["T"] = "twice" if values["K"] == 2 else f"{values['K']} times"
        words["F"] = FRACTIONS.get(values["K"], "")
    for letter in "IJ":
        words |= {f"{letter}1": singular(values[letter])} if letter in values else {}
    if "{ABCD}" in template:
        *first, last = owners.values()
        words["ABCD"] = f"{', '.join(first)} and {last}"
    text = template.format_map(words)
    return text[0].upper() + text[1:]


def _owner(name):
    return name if name.startswith("the ") else name.capitalize()
