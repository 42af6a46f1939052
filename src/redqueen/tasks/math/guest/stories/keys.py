"""What stories are known by: their structure, their sorts of sentences, how large they are."""

import hashlib

from .equations import DOLLARS
from .forms import COMPARISONS, EVENTS, SORT_OF, SORTS, VERBS, ZERO

_ROUNDS = 4
_SYMMETRIC = ("together", "age_together", "all")
_SAME_KEY = {less: more for more, less in COMPARISONS.items()} | {
    "part": "times", "kinds_part": "kinds_times", "age_part": "age_times",
}  # fmt: skip
"""Forms that lot turns into each other, and factors that may be fractions."""


_READ, _ADD, _SCALE, _SET = "read", "add", "scale", "set"
"""What a sentence does to a quantity. Next to each other, sentences that do the same to it may change places."""


def structure(sentences, question):
    """A key that stories share whose teachers wrote the same: blind to names, things, verbs of one meaning, the order
    of what may as well be told in another one, and to what is drawn by lot, which is numbers and whether more or fewer.

    Owners and things are told apart by the sentences that they stand in, round by round, as colours of a graph are.
    """
    told = [(form, dict(slots)) for form, slots in (*sentences, question) if form != ZERO]
    told = [(form, slots, places) for (form, slots), places in zip(told, _places(told), strict=True)]
    colours = {slots[letter]: letter in "IJ" for _, slots, _ in told for letter in "ABCDIJ" if letter in slots}
    colours = {name: "thing" if thing else "owner" for name, thing in colours.items()}
    for _ in range(_ROUNDS):
        seen = {name: [] for name in colours}
        for form, slots, places in told:
            own = _coloured(form, slots, places, colours)
            for letter in "ABCDIJ":
                if letter in slots:
                    seen[slots[letter]].append(f"{'A' if _is_symmetric(form, letter) else letter} {own}")
        colours = {name: _hash([colours[name], *sorted(seen[name])]) for name in colours}
    return _hash(sorted(_coloured(form, slots, places, colours) for form, slots, places in told))


def _places(told):
    """By quantity, of each sentence: how often what is done to the quantity has become something else by then."""
    now = {}
    for form, slots in told:
        places = {}
        for quantity, does in _touched(form, slots):
            place, before = now.get(quantity, (0, _READ))
            if does != before or does == _SET:
                place += 1
            now[quantity] = place, does
            places[quantity] = place
        yield places


def _touched(form, slots):
    """The quantities that a sentence speaks of, and what it does to each."""
    owners = [slots[letter] for letter in "ABCD" if letter in slots]
    items = [slots[letter] for letter in "IJ" if letter in slots]
    if form in SORTS["money"]:
        return [(pair, _ADD) for pair in dict.fromkeys((owner, item) for owner in owners for item in (*items, DOLLARS))]
    if form == "shares":
        return [((owners[0], items[0]), _SET), (("each", items[0]), _SET)]
    if form == "each":
        return [(("each", items[0]), _READ)]
    if form == "first":
        return []
    if form in EVENTS:
        does = {"gives_part": _SET, "loses_part": _SCALE, "loses_percent": _SCALE}.get(form, _ADD)
        return [((owners[0], items[0]), does), *(((owner, items[0]), _ADD) for owner in owners[1:])]
    return [((owner, item), _READ) for owner in owners for item in items]


def _coloured(form, slots, places, colours):
    owners = [slots[letter] for letter in "ABCD" if letter in slots]
    items = [slots[letter] for letter in "IJ" if letter in slots]
    # The place stands beside what can change places with another one.
    item, owner = (items[0], None) if len(items) == 1 else (None, next(iter(owners), None))
    names = [f"{colours[each]} {places.get((each, item), 0)}" for each in owners]
    things = [f"{colours[each]} {places.get((owner, each), 0)}" for each in items]
    if _is_symmetric(form, "B"):
        names = sorted(names)
    if _is_symmetric(form, "J"):
        things = sorted(things)
    what = VERBS[slots["V"]][2] if "V" in slots else ""
    others = [str(place) for (owner, item), place in places.items() if owner not in owners or item not in items]
    return " ".join([_SAME_KEY.get(form) or form, what, *names, "/", *things, "/", *others])


def _is_symmetric(form, letter):
    """Whether the slot may change places with another one, once lot may turn more and fewer."""
    if form == "sum":
        return letter in "BC"
    if form in _SYMMETRIC or form in ("more", "fewer", "older", "younger"):
        return letter in "ABCD"
    return form in ("kinds_more", "kinds_fewer", "cost_more", "cost_less", "kinds_together", "bill") and letter in "IJ"


def _hash(parts):
    return hashlib.sha256("\n".join(parts).encode("ascii")).hexdigest()


def figures(sentences, question):
    """What a story is known by, and how large it is."""
    sorts = sorted({SORT_OF[form] for form, _ in sentences if form in SORT_OF})
    shown = "+".join(sorts) if 1 <= len(sorts) <= 2 else f"{len(sorts)}sorts" if sorts else "amounts"
    slots = [dict(slots) for _, slots in (*sentences, question)]
    pairs = {(one[owner], one.get("I", "")) for one in slots for owner in "ABCD" if owner in one}
    return {
        "structure": structure(sentences, question),
        "descriptor": shown,
        "sentences": len(sentences),
        "quantities": len(pairs),
        "events": sum(form in EVENTS for form, _ in sentences),
    }
