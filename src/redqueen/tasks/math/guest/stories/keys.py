"""What stories are known by: their structure, their sorts of sentences, how large they are."""

import hashlib

from .forms import COMPARISONS, EVENTS, SORT_OF, VERBS, ZERO

_ROUNDS = 4
_SYMMETRIC = ("together", "age_together", "all")
_SAME_KEY = {less: more for more, less in COMPARISONS.items()} | {
    "part": "times", "kinds_part": "kinds_times", "age_part": "age_times",
}  # fmt: skip
"""Forms that lot turns into each other, and factors that may be fractions."""


def structure(sentences, question):
    """A key that stories share whose teachers wrote the same: blind to names, things, verbs of one meaning, the order
    of what is told between two events, and to what is drawn by lot, which is numbers and whether more or fewer.

    Owners and things are told apart by the sentences that they stand in, round by round, as colours of a graph are.
    """
    told, time = [], 0
    for form, slots in sentences:
        if form == ZERO:
            continue
        told.append((form, dict(slots), time))
        time += form in EVENTS
    told.append((question[0], dict(question[1]), time))
    colours = {slots[letter]: letter in "IJ" for _, slots, _ in told for letter in "ABCDIJ" if letter in slots}
    colours = {name: "thing" if thing else "owner" for name, thing in colours.items()}
    for _ in range(_ROUNDS):
        seen = {name: [] for name in colours}
        for form, slots, at in told:
            own = _coloured(form, slots, at, colours)
            for letter in "ABCDIJ":
                if letter in slots:
                    seen[slots[letter]].append(f"{'A' if _is_symmetric(form, letter) else letter} {own}")
        colours = {name: _hash([colours[name], *sorted(seen[name])]) for name in colours}
    return _hash(sorted(_coloured(form, slots, at, colours) for form, slots, at in told))


def _coloured(form, slots, at, colours):
    names = [colours[slots[letter]] for letter in "ABCD" if letter in slots]
    things = [colours[slots[letter]] for letter in "IJ" if letter in slots]
    if _is_symmetric(form, "B"):
        names = sorted(names)
    if _is_symmetric(form, "J"):
        things = sorted(things)
    what = VERBS[slots["V"]][2] if "V" in slots else ""
    form = _SAME_KEY.get(form) or form
    return " ".join([form, what, str(at), *names, "/", *things])


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
