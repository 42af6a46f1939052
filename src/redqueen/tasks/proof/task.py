"""The data of the proof family."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, permutations, product
from typing import Any

from redqueen.tasks.protocol import Complexity, Draft, Task
from redqueen.tasks.verdicts import Reason, Rejection

MOST_SIGN_CHARS = 24


@dataclass(frozen=True)
class ProofDraft(Draft):
    """A chain of references as its teacher wrote it."""

    steps: str
    as_it_stands: bool = False
    """It is of a file: nothing is left out."""
    shown: tuple[str, ...] = ()
    """The theorems that its teacher was shown."""

    def rejected(self, reason: Reason, detail: str = "", runs: tuple[str, ...] = ()) -> Rejection:
        return Rejection(reason, detail, self.steps, runs)


@dataclass(frozen=True, kw_only=True)
class ProofTask(Task):
    """A theorem with its proof, in which each step is needed. Formulas are text, in the symbols of the database."""

    steps: str
    """Premises first, then a lemma and its references on each line."""
    premises: tuple[str, ...]
    goal: str
    """What the last line says."""
    distinct: tuple[str, ...] = ()
    """Pairs of variables that no formula may share: `x ph`."""
    variables: tuple[str, ...] = ()
    """Of premises and goal."""
    lemmas: tuple[str, ...]
    """Those that are shown, each as `label: hypothesis & hypothesis => statement`."""
    sign: str
    """The syntax axiom that the goal is made by."""
    depth: int
    """Of the deepest formula."""

    @cached_property
    def near_key(self) -> str:
        """Of the theorem: blind to the names of variables, the order of premises, and how it is proved."""
        return _digest(min(self._orders()))

    @cached_property
    def shape_key(self) -> str:
        """Of its signs alone."""
        return _digest([self._shape(self.goal), *sorted(map(self._shape, self.premises))])

    @cached_property
    def descriptor(self) -> str:
        return f"{self.sign[:MOST_SIGN_CHARS]}/{'given' if self.premises else 'closed'}"

    @cached_property
    def complexity(self) -> Complexity:
        """The depth of the deepest formula, one more than the steps that bring several lines together, the steps and
        the variables."""
        joins = sum(len(references) > 1 for _, references in self.chain)
        return Complexity(self.depth, 1 + joins, len(self.chain), len(self.variables))

    @cached_property
    def chain(self) -> list[tuple[str, list[str]]]:
        """Labels with references, of the steps that are no premises."""
        lines = [line.split()[1:] for line in self.steps.split("\n")]
        return [(label, references) for label, *references in lines if label != "given"]

    @cached_property
    def used(self) -> list[str]:
        """Of the lemmas that are shown, those that its proof refers to."""
        labels = {label for label, _ in self.chain}
        return [lemma for lemma in self.lemmas if lemma.partition(":")[0] in labels]

    @property
    def theorem(self) -> str:
        """In one line."""
        said = " => ".join(filter(None, (" & ".join(self.premises), self.goal)))
        return f"{said}  (distinct: {', '.join(self.distinct)})" if self.distinct else said

    @property
    def body(self) -> str:
        return f"{self.theorem}\n\n{self.steps}"

    @property
    def question(self) -> str:
        return "how is it proved?" if self.kind == "proof_f" else "what does the last line say?"

    @property
    def answer_chars(self) -> int:
        return len(self.steps if self.kind == "proof_f" else self.goal)

    @property
    def guess_key(self) -> str | None:
        if self.kind == "proof_f":
            return None
        return " ".join(self._renamed([self.goal]))

    def rejected(self, reason: Reason, detail: str = "", runs: tuple[str, ...] = ()) -> Rejection:
        return Rejection(reason, detail, self.steps, runs)

    @classmethod
    def found(cls, kind: str, said: dict[str, Any]) -> "ProofTask":
        """What the checker makes of a draft."""
        return cls.from_record({"kind": kind, **said})

    def _orders(self) -> Iterator[list[str]]:
        """The theorem with variables named by their places, once for each order of premises that look alike."""
        alike = [list(group) for _, group in groupby(sorted(self.premises, key=self._shape), key=self._shape)]
        for chosen in product(*map(permutations, alike)):
            yield self._renamed([self.goal, *(premise for group in chosen for premise in group)], self.distinct)

    def _shape(self, formula: str) -> str:
        return " ".join("_" if symbol in self._names else symbol for symbol in formula.split())

    def _renamed(self, formulas: Sequence[str], distinct: Sequence[str] = ()) -> list[str]:
        names: dict[str, str] = {}
        for symbol in (symbol for formula in formulas for symbol in formula.split() if symbol in self._names):
            names.setdefault(symbol, f"_{len(names)}")
        texts = [" ".join(names.get(symbol, symbol) for symbol in formula.split()) for formula in formulas]
        pairs = [" ".join(sorted(names.get(name, name) for name in pair.split())) for pair in distinct]
        return [*texts, *sorted(pairs)]

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.variables)


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode("ascii")).hexdigest()
