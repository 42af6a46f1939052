"""What a puzzle says, without how it is written: conditions in a normal form, unknowns told apart by what is said of
them.

Numbers, signs of comparison and words are left out, since lot draws them. A comparison is the difference of its sides,
multiplied out. A form is the name of an unknown, or a tuple of a label and forms, whose order says nothing unless the
label is `says`; of the forms under `least` the one counts that is shown first in the alphabet.
"""

import math

from .terms import parts_of

MOST_TERMS = 256
"""Of a product that is multiplied out."""


def forms_of(groups, clues, asked):
    """Of clues, groups whose unknowns are different, and what is asked; not of values that are given away."""
    clues = [part for clue in clues for part in _joined("and", _condition(clue, True))]
    found = [form for form in clues if not _gives_away(form)]
    found += [("different", *names) for names, _, different in groups if different and len(names) > 1]
    return list(dict.fromkeys(found + ([_asked(asked)] if asked else [])))


def shown(groups, forms):
    """Lines that puzzles have in common which are the same but for names."""
    kinds = {name: "word" if isinstance(values[0], str) else "number" for names, values, _ in groups for name in names}
    colours = _coloured(kinds, forms)
    return sorted(f"{kinds[name]} {colours[name]}" for name in kinds) + sorted(_text(form, colours) for form in forms)


def _coloured(colours, forms):
    """The unknowns, told apart by the forms that they stand in, round by round, as colours of a graph are."""
    inside = [(form, list(dict.fromkeys(_names(form)))) for form in forms]
    while True:
        seen = {name: [] for name in colours}
        for form, names in inside:
            for name in names:
                seen[name].append(_text(form, colours | {name: "this"}))
        told = {name: (colours[name], *sorted(seen[name])) for name in colours}
        numbers = {each: str(number) for number, each in enumerate(sorted(set(told.values())))}
        before, colours = colours, {name: numbers[told[name]] for name in colours}
        if len(numbers) in (len(colours), len(set(before.values()))):
            return colours


def _text(form, colours):
    if isinstance(form, str):
        return colours[form]
    label, *inside = form
    texts = [_text(each, colours) for each in inside]
    if label == "least":
        return min(texts)
    return f"{label}({' '.join(texts if label == 'says' else sorted(texts))})"


def _sorted(forms):
    """In an order in which equal ones are equal, whatever they were written in."""
    return sorted(forms, key=repr)


def _names(form):
    return [form] if isinstance(form, str) else [name for inside in form[1:] for name in _names(inside)]


def _gives_away(form):
    """Whether it compares one unknown with a number or a word."""
    return form[0] == "least" and len(form[1]) == 2 and len(form[1][1]) == 2 and isinstance(form[1][1][1], str)


# Conditions


def _condition(node, holds):
    """What is said if the node holds, or does not."""
    what = node[0]
    if what == "not":
        return _condition(node[1], not holds)
    if what == "says":
        return "says", node[1], _condition(node[2], holds)
    if what in ("and", "or"):
        word = what if holds else {"and": "or", "or": "and"}[what]
        parts = [each for part in parts_of(node) for each in _joined(word, _condition(part, holds))]
        parts = _sorted(dict.fromkeys(parts))
        return (word, *parts) if len(parts) > 1 else parts[0]
    difference = _plus(_sum(node[2]), _sum(node[3]), -1)
    [*products] = filter(None, difference)
    if len(products) == 1 and len(products[0]) == 1 and products[0][0][0] == "count" and len(products[0][0]) == 2:
        return products[0][0][1]
    return _either_sign(difference)


def _joined(word, form):
    return form[1:] if form[0] == word else (form,)


# Sums: a number for each product of forms, which is a sorted tuple; that of the empty one is left out at the end


def _sum(node):
    what = node[0]
    if what == "int":
        return {(): node[1]}
    if what == "word":
        return {}
    if what == "name":
        return {(node[1],): 1}
    if what in ("+", "-"):
        return _plus(_sum(node[1]), _sum(node[2]), 1 if what == "+" else -1)
    if what == "neg":
        return _plus({}, _sum(node[1]), -1)
    if what == "*":
        return _times(_sum(node[1]), _sum(node[2]))
    if what == "count":
        return {(("count", *_sorted(_condition(part, True) for part in node[1])),): 1}
    inner = _sum(node[1])
    return {(("abs", _either_sign(inner)) if what == "abs" else ("rest", _terms(inner, 1)),): 1}


def _plus(left, right, factor):
    total = {each: left.get(each, 0) + factor * right.get(each, 0) for each in (*left, *right)}
    return {each: number for each, number in total.items() if number}


def _times(left, right):
    if len(left) * len(right) > MOST_TERMS:
        return {(("times", *_sorted((_terms(left, 1), _terms(right, 1)))),): 1}
    total = {}
    for one, number in left.items():
        for other, factor in right.items():
            product = tuple(_sorted((*one, *other)))
            total[product] = total.get(product, 0) + number * factor
    return {each: number for each, number in total.items() if number}


def _either_sign(total):
    return "least", *_sorted((_terms(total, 1), _terms(total, -1)))


def _terms(total, sign):
    """Whether a product is added or taken away, and whether once or more often."""
    products = {each: number for each, number in total.items() if each}
    once = math.gcd(*products.values())
    return "sum", *_sorted((_sign(sign * number // once), *each) for each, number in products.items())


def _sign(number):
    return f"{'plus' if number > 0 else 'minus'}{' times' * (abs(number) > 1)}"


def _asked(asked):
    """Blind to the factors and signs that lot puts before its terms."""
    return "asked", *_sorted(("term", *each) for each in _sum(asked) if each)
