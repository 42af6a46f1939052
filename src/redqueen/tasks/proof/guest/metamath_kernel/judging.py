"""What makes a chain of references a task, and whether a student has solved it.

A proposal comes to a dict, with "reason" and "detail" where it is refused; an answer to "correct", "wrong", or a list
of a reason and a detail where it is none.
"""

import hashlib
import json
from itertools import cycle, islice

from .grammar import Unreadable
from .steps import Refused, read, write
from .terms import Fuel, OutOfFuel, depth, is_leaf, leaves, name_of, parts
from .theorem import core, joined, proof_of

FEWEST_STEPS, MOST_STEPS = 2, 12
"""References to lemmas, when nothing is left to be left out."""
MOST_PREMISES = 5
MOST_SYMBOLS, MOST_SYMBOLS_TOGETHER = 60, 160
"""Of a premise or the goal, and of all of them."""
FEWEST_SIGNS = 3
"""Of a formula that is asked for: those of fewer are guessed."""
LISTED = 2 * MOST_STEPS
"""Lemmas that a student may choose from, whatever the proof: at least twice as many as are used."""
MOST_ANSWER_CHARS = 2_000
MOST_ANSWER_SYMBOLS = 200


def judged(library, kind, text, loosely):
    """A proposal. Loosely, as a teacher's is read: what is not needed of it is left out."""
    try:
        fuel = Fuel()
        steps = read(text, loosely=loosely)
        theorem = core(library, steps, fuel, loosely)
        if not loosely and theorem.steps != steps:
            raise Refused("too_easy", "a step of it is not needed, or premises do not come first")
        return _task(library, kind, theorem)
    except Refused as error:
        return {"reason": error.reason, "detail": error.detail}
    except OutOfFuel:
        return {"reason": "too_complex", "detail": "its formulas are too large, or take too long to unify"}


def _task(library, kind, theorem):
    steps = write(theorem.steps)
    if theorem.lemma_steps < FEWEST_STEPS:
        raise Refused("too_easy", f"{theorem.lemma_steps} steps are all that it needs; there must be {FEWEST_STEPS}")
    if theorem.lemma_steps > MOST_STEPS or len(theorem.premises) > MOST_PREMISES:
        raise Refused("too_complex", f"more than {MOST_STEPS} steps or {MOST_PREMISES} premises")
    if (at := joined(theorem)) is not None:
        raise Refused("joined", f"step {at + 1} puts lines together that have no variable in common")
    premises, goal, apart, variables = theorem.named()
    stated = [library.written(tree) for tree in (*premises, goal)]
    sizes = [len(text.split()) for text in stated]
    if max(sizes) > MOST_SYMBOLS or sum(sizes) > MOST_SYMBOLS_TOGETHER:
        most = f"{MOST_SYMBOLS} symbols, or {MOST_SYMBOLS_TOGETHER} with the others"
        raise Refused("too_complex", f"a premise or the goal has more than {most}")
    used = list(dict.fromkeys(label for label, _ in theorem.steps if label is not None))
    if kind == "proof_o":
        _hidden(library, goal, premises, used)
    listed = _with_others(library, used, steps) if kind == "proof_f" else used
    return {
        "steps": steps, "premises": stated[:-1], "goal": stated[-1],
        "distinct": [" ".join(pair) for pair in apart], "variables": variables,
        "lemmas": [f"{label}: {library.lemmas[label].text}" for label in listed],
        "sign": "none" if is_leaf(goal[1]) else goal[1][0], "depth": max(map(depth, (*premises, goal))),
    }  # fmt: skip


def _hidden(library, goal, premises, used):
    """Refuse a formula that is too short to be found by thought, or that stands in what is shown."""
    inner = goal[1]
    signs = sum(not is_leaf(part) for part in parts(inner))
    if signs < FEWEST_SIGNS:
        raise Refused("guessable", f"the last line has {signs} signs, and {FEWEST_SIGNS} are the fewest")
    shown = [*premises, *(tree for label in used for tree in (*library.lemmas[label].hyps, library.lemmas[label].goal))]
    if any(_same_but_for_names(part, inner) for tree in shown for part in parts(tree[1])):
        raise Refused("too_easy", "the last line stands in what is shown, but for names")


def _same_but_for_names(one, other):
    """Whether each variable of one stands for one of the other, and no two for the same."""
    there, back, waiting = {}, {}, [(one, other)]
    while waiting:
        one, other = waiting.pop()
        if is_leaf(one) or is_leaf(other):
            if not (is_leaf(one) and is_leaf(other) and there.setdefault(one, other) == other):
                return False
            if back.setdefault(other, one) != one:
                return False
        elif one[0] != other[0] or len(one) != len(other):
            return False
        else:
            waiting += zip(one[1:], other[1:], strict=True)
    return True


def _with_others(library, used, steps):
    """What a student may refer to: the lemmas that the proof has, and by lot as many others that are like each of them,
    in an order by lot. So what is listed says no more of the proof than what its lemmas look like."""
    seed = hashlib.sha256(steps.encode("ascii")).digest()

    def by_lot(label):
        return hashlib.sha256(seed + label.encode("ascii")).digest()

    listed = dict.fromkeys(used)
    groups = [iter(sorted((lemma.label for lemma in library.alike[label]), key=by_lot)) for label in used]
    for group in cycle(groups):
        if len(listed) == min(LISTED, len(library.lemmas)):
            break
        listed |= dict.fromkeys(islice((label for label in group if label not in listed), 1))
    return sorted(listed, key=by_lot)


# What a student wrote


def grade_proof(library, shown, text):
    """Whether the steps prove the goal from the premises, with the lemmas that are listed."""
    task = json.loads(shown)
    if len(text) > MOST_ANSWER_CHARS:
        return ["answer_too_long", f"more than {MOST_ANSWER_CHARS} characters"]
    premises = [library.read(formula) for formula in task["premises"]]
    try:
        steps = read(text, len(premises))
    except Refused as error:
        return "wrong" if error.reason == "invalid_step" else ["no_answer", error.detail]
    if any(label is not None and label not in task["labels"] for label, _ in steps):
        return "wrong"
    try:
        allowed = {tuple(pair.split()) for pair in task["distinct"]}
        proved = proof_of(library, steps, premises, library.read(task["goal"]), allowed, Fuel())
    except (Refused, OutOfFuel):
        return "wrong"
    return "correct" if proved else "wrong"


def grade_formula(library, shown, text):
    """Whether it is the formula, where variables that no premise has may have other names that no premise has."""
    task = json.loads(shown)
    if len(text) > MOST_ANSWER_CHARS or len(text.split()) > MOST_ANSWER_SYMBOLS:
        return ["answer_too_long", f"more than {MOST_ANSWER_CHARS} characters or {MOST_ANSWER_SYMBOLS} symbols"]
    try:
        given = library.read(text)
    except Unreadable as error:
        return ["no_answer", str(error)]
    goal = library.read(task["goal"])
    fixed = {symbol for premise in task["premises"] for symbol in premise.split()}
    if given[0] != goal[0] or not _same_but_for_names(given[1], goal[1]):
        return "wrong"
    pairs = set(zip(leaves(given), leaves(goal), strict=True))
    free = all(one == other or fixed.isdisjoint((name_of(one), name_of(other))) for one, other in pairs)
    return "correct" if free else "wrong"
