"""Plain English made plainer before it is matched: one spelling for numbers, verbs and fractions; plurals.

Small models tell stories in the past tense, with pronouns and small talk. All of it is brought to the words that the
forms know, by tables.
"""

import re

from .forms import OTHER_VERBS, VERBS

_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBER_WORDS = {word: value for value, word in enumerate(_ONES)}
NUMBER_WORDS |= {ten: 10 * value for value, ten in enumerate(_TENS, 2)}
NUMBER_WORDS |= {f"{ten} {_ONES[one]}": NUMBER_WORDS[ten] + one for ten in _TENS for one in range(1, 10)}
_NUMBER_WORD = re.compile(rf"\b({'|'.join(sorted(NUMBER_WORDS, key=len, reverse=True))})\b")
_BASIC = {
    form: verb.strip() for verb, forms in (VERBS | OTHER_VERBS).items() for form in (*forms[:2], verb) if form != verb
} | {"am": "is", "travelled": "travels", "chose": "picks", "gained": "gets"}  # fmt: skip
_VERB = re.compile(rf"(?<!at the )\b({'|'.join(sorted(_BASIC, key=len, reverse=True))})\b(?! (?:of|with)\b)")
_REPLACED = tuple(
    (re.compile(pattern), new)
    for pattern, new in (
        (r"(?<=\d),(?=\d{3})", ""), (r"\$ ?(\d+)(?: dollars?)?", r"\1 dollars"), ("%", " percent"),
        ("(?<=[a-z])[-_](?=[a-z])", " "),
        (r"\b(?:euros?|bucks|money|dollar)\b", "dollars"), (r"\bkm\b", "kilometers"),
        (r"\b(?:a|one|1) dozen\b", "12"), (r"\bhalf(?: a| an)?\b", "frac2"),
        (r"\b(?:a|one|1) (?:third|3rd)\b", "frac3"), (r"\b(?:a|one|1) (?:quarter|fourth|4th)\b", "frac4"),
        (r"\b(?:a|one|1) (?:fifth|5th)\b", "frac5"), (r"\btwice\b", "2 times"), (r"\bthrice\b", "3 times"),
        (r"\b(?:double|two times) (?=the)", "2 times "), (r"\btriple (?=the)", "3 times "),
        (r"\b(?:altogether|in total|in all|combined|in sum)\b", "together"), (r"\bhas got\b", "has"),
        (r"\b(?:to start with|to begin with|initially|originally|in the beginning|at the beginning)\b", "at first"),
        (r"\b(?:mr|mrs|ms|dr) (?=[a-z])", ""), (r"\b(?:his|their|its|my|our) (?=[a-z])", "the "),
        (r"\bher (?=[a-z])(?!and )", "the "), (r"\bcan be\b", "is"),
        (r"\b([a-z]+)'s? (?=age)", r"\1 "), (r"^([a-z]+) age is\b", r"the age of \1 is"), (r"[\"'():;]", ""),
        (r"^(in \d+ years?|\d+ years? ago|together),", r"\1"), (r"\bmore years old\b", "years older"),
        (r" on (?:mon|tues|wednes|thurs|fri|satur|sun)day\b", ""), (r" of (?:them|it|these|those)\b", ""),
        (r" (?:of )?(?:the rest|the remaining|what is left)\b", ""), (r"\b(?:another|extra|additional) (?=\d)", ""),
        (r"\bper (?=cent)", "per"), (r"\b(\d+) (?:another|extra|additional) ", r"\1 "),
        (r"\b(?:total of|about|exactly|only|also|just|already) ", ""), (r"\ba (?=\d)", ""),
    )
)  # fmt: skip
_LEAD = re.compile(
    r"^(?:(?:now|then|next|later|after that|afterwards?|so|and|but|finally|today|yesterday|suppose|if|when|while|"
    r"meanwhile|still|once|first|at first|one day|every morning|that|in the (?:morning|afternoon|evening|end)|"
    r"on (?:mon|tues|wednes|thurs|fri|satur|sun)day|at the (?:store|shop|market|end)|the next day|after school),? )+"
)
_TRAIL = re.compile(
    r"(?: (?:now|left|today|again|too|as well|at first|remaining|in the end|later|after that|"
    r"at the (?:store|shop|market|end)|from the (?:store|shop|market)|"
    r"for (?:lunch|dinner|breakfast|himself|herself)|over))+$"
)
_OF_THE = re.compile(r"\b(\d+) of the (?=[a-z])")
_THAN = re.compile(r"\b((?:than|as|of) (?:the )?[a-z]+) (?:has|is|does|costs)$")
_KIN = re.compile(
    r"\bthe (?:friend|brother|sister|son|daughter|wife|husband|cousin|neighbor),? "
    rf"(?!(?:and|or|to|with|who|a|an|the|{'|'.join([*VERBS, *OTHER_VERBS])})\b)(?=[a-z])"
)
"""Before a name."""
AT_FIRST = "at first"


def plain(sentence):
    """The sentence in small letters and few words, whether it speaks of the beginning."""
    text = " ".join(sentence.lower().replace("\u2019", "'").split()).strip(" .!?,")
    for pattern, new in _REPLACED:
        text = pattern.sub(new, text)
    text = _NUMBER_WORD.sub(lambda found: str(NUMBER_WORDS[found[0]]), text)
    text = _VERB.sub(lambda found: _BASIC[found[0]], text)
    text = _OF_THE.sub(r"\1 ", _KIN.sub("", " ".join(text.split())))
    at_first = AT_FIRST in text
    asks_first = at_first and text.startswith("how ")
    text = _LEAD.sub("", text)
    text = _TRAIL.sub("", text.replace(" left ", " ")).strip(" ,")
    text = _THAN.sub(r"\1", text)
    return f"{text} {AT_FIRST}" if asks_first else text, at_first


_IRREGULAR = {
    "child": "children", "person": "people", "man": "men", "woman": "women", "mouse": "mice", "foot": "feet",
    "tooth": "teeth", "goose": "geese", "fish": "fish", "sheep": "sheep", "deer": "deer", "leaf": "leaves",
    "loaf": "loaves", "knife": "knives", "shelf": "shelves", "potato": "potatoes", "tomato": "tomatoes",
    "mango": "mangoes", "bus": "buses", "milk": "milk", "water": "water", "cookie": "cookies", "movie": "movies",
    "pie": "pies", "tie": "ties", "candy": "candies", "shoe": "shoes", "horse": "horses", "vase": "vases",
    "rose": "roses", "house": "houses", "prize": "prizes", "purse": "purses", "sugar": "sugar", "rice": "rice",
}  # fmt: skip
_SINGULAR = {many: one for one, many in _IRREGULAR.items()}


def plural(item):
    """Of the last word; a word that ends with s is one already."""
    *others, last = item.split()
    if last not in _SINGULAR:
        if last in _IRREGULAR:
            last = _IRREGULAR[last]
        elif last.endswith(("ss", "ch", "sh", "x")):
            last += "es"
        elif last.endswith("y") and last[-2:-1] not in tuple("aeiou"):
            last = last[:-1] + "ies"
        elif not last.endswith("s"):
            last += "s"
    return " ".join([*others, last])


def singular(item):
    *others, last = item.split()
    if last in _SINGULAR:
        last = _SINGULAR[last]
    elif last.endswith("ies"):
        last = last[:-3] + "y"
    elif last.endswith(("sses", "ches", "shes", "xes")):
        last = last[:-2]
    else:
        last = last.removesuffix("s")
    return " ".join([*others, last])
