"""Proofs by lot: references that fit each other, as a teacher with no taste would write them.

They are the seeds of a family whose database nobody has written seeds for, and rows of the exam.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from redqueen.tasks.proof.guest.metamath_kernel import judging
from redqueen.tasks.proof.guest.metamath_kernel.library import Lemma, Library
from redqueen.tasks.proof.guest.metamath_kernel.steps import Refused, write
from redqueen.tasks.proof.guest.metamath_kernel.terms import Fuel, OutOfFuel
from redqueen.tasks.proof.guest.metamath_kernel.theorem import Chain

MOST_TRIES = 400
"""Of steps, for one proof."""
_NEW = 0.25
"""How often a hypothesis is a new premise."""


def composed(library: Library, rng: Random, steps: int, lemmas: Sequence[Lemma]) -> str | None:
    """A proof that refers to lemmas so many times, sound and with nothing that is not needed as far as steps go; None
    where luck ran out."""
    chain, unused = Chain(library, Fuel(1_000_000)), list[int]()
    left = steps
    for _ in range(MOST_TRIES):
        lemma = rng.choice(lemmas)
        count = len(chain.steps)
        new = [rng.random() < _NEW or not count for _ in lemma.hyps]
        if len(new) < (left == 1) * len(unused) or sum(new) + _premises(chain) > judging.MOST_PREMISES:
            continue
        # What nothing refers to yet comes first, or it would be left out in the end.
        waiting = rng.sample(unused, len(unused)) + [rng.randrange(count) for _ in new if count]
        places = [count + sum(new[:at]) if fresh else waiting.pop(0) for at, fresh in enumerate(new)]
        rng.shuffle(places)
        if left == 1 and not set(unused).issubset(places):
            continue
        trial = _copied(chain, new)
        try:
            trial.add(lemma.label, tuple(places))
            trial.resolved(trial.lines[-1])
        except (Refused, OutOfFuel):
            continue
        chain, left = trial, left - 1
        unused = [at for at in unused if at not in places] + [len(chain.steps) - 1]
        if not left:
            return write(chain.steps)
    return None


def _premises(chain: Chain) -> int:
    return sum(label is None for label, _ in chain.steps)


def _copied(chain: Chain, new: Sequence[bool]) -> Chain:
    """The chain once more, with a premise for each of these that is new."""
    copy = Chain(chain.library, Fuel(1_000_000))
    for label, places in chain.steps:
        if label is None:
            copy.given()
        else:
            copy.add(label, places)
    for _ in range(sum(new)):
        copy.given()
    return copy


def task_by_lot(library: Library, kind: str, rng: Random, steps: int, lemmas: Sequence[Lemma]) -> dict[str, Any] | None:
    """What the checker would make of a proof by lot, of which so many references are needed; None where luck ran
    out."""
    text = composed(library, rng, steps, lemmas)
    if text is None:
        return None
    said = judging.judged(library, kind, text, loosely=True)
    needed = said.get("steps", "").split("\n")
    return said if sum(not line.endswith(" given") for line in needed) == steps and "steps" in said else None
