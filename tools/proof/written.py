"""Theorems as Metamath itself writes them: statement, distinct variables, and a normal proof of every symbol.

What the kernel accepts by unification is written down here step by step, so that others can check it: the kernel's own
check of stored proofs, and the program metamath.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from redqueen.tasks.proof.guest.metamath_kernel.library import Library
from redqueen.tasks.proof.guest.metamath_kernel.steps import read
from redqueen.tasks.proof.guest.metamath_kernel.terms import Fuel, is_leaf, leaves
from redqueen.tasks.proof.guest.metamath_kernel.theorem import Theorem, derived

Tree = Any


def theorem_of(library: Library, steps: str) -> Theorem:
    """Of a text that is a task already: nothing of it is left out."""
    return Theorem(derived(library, read(steps), Fuel(10_000_000)))


def written(library: Library, theorem: Theorem, label: str) -> str:
    """A scope with the theorem, to be put after the library's database."""
    names, declared = _names(library, theorem, label)
    types = {name: f"{label}.{name}" for name in declared}
    types |= {each.symbols[1]: each.label for each in library.database.statements.values() if each.kind == "$f"}
    apart = [f"$d {' '.join(sorted((names[one], names[other])))} $." for one, other in sorted(theorem.apart)]
    lines = ["${", *(f"$v {name} $. {label}.{name} $f {code} {name} $." for name, code in declared.items()), *apart]
    hyps = [f"{label}.{at}" for at in range(1, 1 + len(theorem.premises))]
    for hyp, premise in zip(hyps, theorem.premises, strict=True):
        lines.append(f"{hyp} $e {_symbols(library, premise, names)} $.")
    proof = " ".join(_proof(library, theorem, len(theorem.steps) - 1, hyps, names, types))
    lines.append(f"{label} $p {_symbols(library, theorem.goal, names)} $= {proof} $.")
    return "\n".join([*lines, "$}", ""])


def _names(library: Library, theorem: Theorem, label: str) -> tuple[dict[int, str], dict[str, str]]:
    """What each leaf of the proof is called, and the types of those names that the database does not have."""
    names: dict[int, str] = {}
    declared: dict[str, str] = {}
    free = {code: list(reversed(known)) for code, known in library.variables.items()}
    for leaf in _leaves(theorem):
        code = theorem.chain.type_of(leaf)
        if free.get(code):
            names[leaf] = free[code].pop()
        else:
            names[leaf] = f"{label}-{len(declared)}"
            declared[names[leaf]] = code
    return names, declared


def _leaves(theorem: Theorem) -> Sequence[int]:
    """All of the statement and of the steps between, first the statement's."""
    chain, found = theorem.chain, dict[int, None]()
    for line in (*theorem.premises, theorem.goal, *theorem.lines):
        found |= dict.fromkeys(leaves(line))
    for (label, _), first in zip(chain.steps, chain.firsts, strict=True):
        for leaf in range(len(chain.library.lemmas[label].types) if label is not None else 0):
            found |= dict.fromkeys(leaves(chain.resolved(first + leaf)))
    return list(found)


def _symbols(library: Library, tree: Tree, names: dict[int, str]) -> str:
    return " ".join(library.grammar.write(tree, names.__getitem__))


def _proof(
    library: Library, theorem: Theorem, at: int, hyps: Sequence[str], names: dict[int, str], types: dict[str, str]
) -> Iterator[str]:
    """The labels that prove a line, in the order in which a stack takes them."""
    label, places = theorem.steps[at]
    if label is None:
        yield hyps[at]
        return
    lemma, first = library.lemmas[label], theorem.chain.firsts[at]
    earlier = iter(places)
    for hyp in library.database.statements[label].frame:
        if hyp.kind == "$e":
            yield from _proof(library, theorem, next(earlier), hyps, names, types)
        else:
            meant = theorem.chain.resolved(first + lemma.names.index(hyp.symbols[1]))
            yield from _built(library, meant, names, types)
    yield label


def _built(library: Library, tree: Tree, names: dict[int, str], types: dict[str, str]) -> Iterator[str]:
    """The labels that build a formula."""
    if is_leaf(tree):
        yield types[names[tree]]
        return
    statement = library.database.statements[tree[0]]
    order = [symbol for symbol in statement.symbols[1:] if symbol in library.database.types]
    parts = dict(zip(order, tree[1:], strict=True))
    for hyp in statement.frame:
        yield from _built(library, parts[hyp.symbols[1]], names, types)
    yield tree[0]
