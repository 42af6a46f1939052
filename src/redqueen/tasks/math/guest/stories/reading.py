"""Text to a story: its sentences in order and the question that ends it, or why it is none."""

import re
from functools import cache

from .english import plain, plural
from .forms import (
    EVENTS,
    FACTOR_FROM_TWO,
    FORMS,
    GAIN,
    LOSE,
    MOST_CHARS,
    MOST_NUMBER,
    MOST_SENTENCE_CHARS,
    MOST_SENTENCES,
    QUESTIONS,
    SAID_FROM_THE_OTHER_SIDE,
    UNITS,
    VERBS,
)


class Refused(Exception):
    """The text is no story: a reason, and a detail in our words."""

    def __init__(self, reason, detail):
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


_STOP = """
the a an and or of to from in on at by for with than as more fewer less times together each every all both left now then
percent has is gives takes puts shares packs costs pays will do does did how many much what that there he she it they
him her them who which among between into equally only also not but so if i you we ago old older younger per no first
nobody somebody anybody everybody someone anyone everyone nothing something anything everything none some any
"""
_WORD = rf"(?!(?:{'|'.join(dict.fromkeys([*_STOP.split(), *VERBS]))})\b)[a-z]{{1,20}}"
_OWNER = rf"(?:(?:the|a|an) {_WORD}|{_WORD}|he|she|it|him|her)"
_ITEM = rf"{_WORD}(?: {_WORD}){{0,2}}"
_SLOTS = {
    **{letter: rf"(?P<{letter}>{_OWNER})" for letter in "ABCD"},
    "ABCD": rf"(?P<ABCD>{_OWNER}(?:,? {_OWNER}){{0,2}},? and {_OWNER}|they all|they both|they|both)",
    **{letter: rf"(?P<{letter}>{_ITEM})" for letter in "IJ"},
    **{letter: rf"(?P<{letter}>[0-9]{{1,5}})" for letter in "NKLP"},
    "T": "(?P<K>[0-9]{1,2}) times", "F": "frac(?P<K>[2-5])(?: of)?",
    "G": f"(?P<V>{'|'.join(verb for verb, (_, _, what) in VERBS.items() if what == GAIN)})",
    "O": f"(?P<V>{'|'.join(verb for verb, (_, _, what) in VERBS.items() if what == LOSE)})",
    "W": f"(?:{'|'.join(VERBS)})",
    "U": f"(?P<U>{'|'.join(UNITS)})",
}  # fmt: skip
_SLOT = re.compile(r"\bABCD\b| I\?|\b[A-Z](?=\b|s\b|s\?)")


def _compiled(pattern):
    seen = set()

    def filled(found):
        slot = found[0]
        if slot == " I?":
            seen.add("I")
            return f"(?: {_SLOTS['I']})?"
        if slot in seen and slot != "W":
            return f"(?P={slot})"
        seen.add(slot)
        return _SLOTS[slot]

    return re.compile(_SLOT.sub(filled, pattern))


_SUBJECTS = ("he", "she", "it")
_ALL = ("they", "they all", "they both", "both")
_NEEDS = {form: set(re.findall(r"\{([A-Z])", template)) for form, (template, _) in (FORMS | QUESTIONS).items()}
_JOINED = re.compile(r",? and then |,? and |, but |, then |; |, ")
_ENDS = re.compile(r"(?<=[.?!])[\"')]*\s+|\n+|(?<=[a-z0-9])\.(?=[A-Z])")
_EACH = re.compile(rf"({_OWNER}) and ({_OWNER}) each (has .*)")
_BULLET = re.compile(r"^\s*(?:[-*] |[0-9]{1,2}[.)] )?")
_QUESTION = re.compile(r"\b(?:how (?:many|much|old|far)|what is the)\b", re.IGNORECASE)


@cache
def ways(of_questions):
    """All ways to read a sentence, or a question, in the order in which they are tried. Compiling them takes a while:
    a zygote does it before it forks, the host where it must."""
    forms = QUESTIONS if of_questions else FORMS
    return [(form, _compiled(way)) for form, (_, texts) in forms.items() for way in texts]


MOST_SPLITS = 24
"""Ways to take one sentence apart that are tried."""


def read(text):
    """Sentences and question; every sentence must be one that is known."""
    sentences, question, refused = _story(text)
    if refused:
        raise refused[0]
    return sentences, question


def read_loosely(text):
    """The same without the sentences that cannot be read, where most can: small models lose a line now and then."""
    sentences, question, refused = _story(text)
    if len(refused) > len(sentences):
        raise refused[0]
    return sentences, question


def _story(text):
    if len(text) > MOST_CHARS or "\0" in text:
        raise Refused("syntax", f"more than {MOST_CHARS} characters")
    parts = [_BULLET.sub("", part).strip() for part in _ENDS.split(text.replace("\u2019", "'"))]
    parts = [part for part in parts if any(letter.isalnum() for letter in part)]
    asked = [at for at, part in enumerate(parts) if _QUESTION.search(part)]
    if not asked:
        raise Refused("no_question", "no question ends it, as in `How many apples does Ben have?`")
    last = parts[asked[-1]]
    begins = list(_QUESTION.finditer(last))[-1].start()
    told = [*parts[: asked[-1]], *([last[:begins]] if begins else [])]
    if len(told) > MOST_SENTENCES:
        raise Refused("too_complex", f"more than {MOST_SENTENCES} sentences")
    reader, sentences, refused = _Reader(text), [], []
    for number, part in enumerate(told, 1):
        found = reader.sentence(part, any(form in EVENTS for form, _ in sentences))
        if found is None:
            refused.append(Refused("syntax", f"sentence {number} has none of the known forms"))
        else:
            sentences += found
    question = reader.question(last[begins:])
    if question is None:
        raise Refused("no_question", "the question has none of the known forms")
    if len(sentences) > MOST_SENTENCES:
        raise Refused("too_complex", f"more than {MOST_SENTENCES} sentences")
    if not sentences:
        raise refused[0] if refused else Refused("no_story", "nothing is told before the question")
    return tuple(_with_prices(sentences)), question, refused


def _with_prices(sentences):
    """Who buys what has a price pays for it."""
    priced = {dict(slots)["I"] for form, slots in sentences if form in ("cost", "cost_more", "cost_less", "cost_times")}
    for form, slots in sentences:
        has = dict(slots)
        if form == "gets" and has["V"] == "buys" and has["I"] in priced:
            yield "pays", _slots({"A": has["A"], "I": has["I"], "K": has["N"]})
        else:
            yield form, slots


def _slots(values):
    return tuple(sorted(values.items()))


class _Reader:
    """It remembers of whom and of what was last spoken."""

    def __init__(self, text):
        self._names = frozenset(word.lower() for word in re.findall(r"\b[A-Z][a-z]+", text))
        self._owners, self._subject, self._item, self._having = [], None, None, {}
        self._splits = 0

    def sentence(self, text, after_event):
        """What a sentence says, which may be several things; None where it cannot be read."""
        if len(text) > MOST_SENTENCE_CHARS or not text.isascii():
            return None
        said, at_first = plain(text)
        if at_first and after_event:
            return None
        self._splits = MOST_SPLITS
        return self._parts(said, 0)

    def question(self, text):
        if len(text) > MOST_SENTENCE_CHARS or not text.isascii():
            return None
        found = self._matched(ways(True), plain(text)[0])
        return found if found is None else self._resolved(*found)

    def _parts(self, text, depth):
        """The sentence, or the two of which it is put together."""
        before = self._owners[:], self._subject, self._item
        if (found := self._one(text)) is not None:
            return found
        for joint in _JOINED.finditer(text) if depth < 3 else ():
            self._splits -= 1
            if self._splits < 0:
                break
            left = self._one(text[: joint.start()])
            if left is not None:
                rest = text[joint.end() :]
                for right in (rest, f"{self._subject} {rest}", f"{self._subject} has {rest}"):
                    if (found := self._parts(right, depth + 1)) is not None:
                        return left + found
            self._owners, self._subject, self._item = before[0][:], *before[1:]
        return None

    def _one(self, text):
        both = _EACH.fullmatch(text)
        if both is not None:
            return self._each(*both.groups())
        found = self._matched(ways(False), text)
        return None if found is None else [found]

    def _each(self, first, second, says):
        found = self._matched(ways(False), f"{first} {says}")
        if found is None or found[0] != "has" or (other := self._owner(second)) is None:
            return None
        has = dict(found[1])
        return [found, ("same", _slots({"A": other, "B": has["A"], "I": has["I"]}))]

    def _matched(self, forms, text):
        for form, way in forms:
            found = way.fullmatch(text)
            if found is not None and (slots := self._filled(form, found)) is not None:
                return _straight(form, slots)
        return None

    def _filled(self, form, found):
        """The slots of a form, pronouns and what is left out filled in; None where they do not fit."""
        groups = found.groupdict()
        slots = {letter: self._owner(groups[letter]) for letter in "ABCD" if groups.get(letter)}
        if groups.get("A") in _SUBJECTS and slots["A"] == slots.get("B"):
            # Nobody does something to themselves: "he" is whoever was named before.
            slots["A"] = next((name for name in reversed(self._owners) if name != slots["B"]), None)
        if groups.get("ABCD"):
            slots |= self._several(groups["ABCD"])
        if "I" in _NEEDS[form]:
            usual = "miles" if found[0].startswith("how far") else self._item
            slots["I"] = plural(groups["I"]) if groups.get("I") else usual
        slots |= {"J": plural(groups["J"])} if groups.get("J") else {}
        slots |= {letter: int(groups[letter]) for letter in "NKLP" if groups.get(letter)}
        slots |= {letter: groups[letter] for letter in "VU" if groups.get(letter)}
        if None in slots.values() or not _fit(form, slots, self._names):
            return None
        is_subject = found.start("A") == 0 if "A" in found.re.groupindex else "ABCD" in found.re.groupindex
        self._remember([slots[letter] for letter in "ABCD" if letter in slots], slots.get("I"), is_subject)
        return _slots(slots)

    def _owner(self, text):
        """Of whom a word speaks: somebody with a capital letter or an article, or whom a pronoun stands for."""
        if text in _SUBJECTS:
            return self._subject
        if text in ("him", "her"):
            others = [name for name in self._owners if name != self._subject]
            return others[-1] if others else None
        article, _, noun = text.rpartition(" ")
        return f"the {noun}" if article else text if text in self._names else None

    def _several(self, text):
        parts = [] if text in _ALL else re.split(r",? and |, ", text)
        names = [self._owner(part) for part in parts] or self._owners[:4]
        return dict(zip("ABCD", names, strict=False)) if len(names) > 1 else {"A": None}

    def _remember(self, names, item, is_subject):
        self._owners += [name for name in names if name not in self._owners]
        self._subject = names[0] if names and (is_subject or not self._subject) else self._subject
        self._item = item or self._item
        if item:
            self._having.setdefault(item, {}).update(dict.fromkeys(names))

    def _resolved(self, form, slots):
        """The question, with the owners whom it does not name."""
        values = dict(slots)
        if form == "all" and "A" not in values:
            names = list(self._having.get(values["I"], {}))[:4]
            if not names:
                return None
            form, values = ("all" if len(names) > 1 else "own"), values | dict(zip("ABCD", names, strict=False))
        return form, _slots(values)


def _straight(form, slots):
    """Who takes is given, who has fewer is exceeded: one form for what is said in two ways."""
    if form not in SAID_FROM_THE_OTHER_SIDE:
        return form, slots
    turned = {"A": "B", "B": "A"}
    return SAID_FROM_THE_OTHER_SIDE[form], _slots({turned.get(letter, letter): value for letter, value in slots})


def _fit(form, slots, names):
    """Whether what fills the slots makes sense."""
    owners = [slots[letter] for letter in "ABCD" if letter in slots]
    items = [slots[letter] for letter in "IJ" if letter in slots]
    if len(set(owners)) < len(owners) or len(set(items)) < len(items):
        return False
    if any(word in names for item in items for word in item.split()):
        return False
    if any(slots.get(letter, 1) > MOST_NUMBER for letter in "NKLP"):
        return False
    fewest = 2 if form in FACTOR_FROM_TWO else 1
    return all(fewest <= slots.get(letter, fewest) <= 99 for letter in "KLP")
