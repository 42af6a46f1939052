"""Logic puzzles judged twice: by the checker, and by a SAT solver over clues that Python evaluates.

    python tools/logic/against_sat.py --puzzles 10000

Of each random puzzle that the checker accepts: as many solutions, one of them the checker's own; every clue needed;
few enough solutions. Of a dozen random assignments: the same grade. The two sides share the canonical text alone. It
needs python-sat, and says how many verdicts differ.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from puzzles import GUEST, puzzle
from pysat.solvers import Solver

Assignment = dict[str, Any]


@dataclass(frozen=True)
class Read:
    """A canonical text, read once more by simpler means."""

    groups: tuple[tuple[tuple[str, ...], tuple[Any, ...], bool], ...]
    clues: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "Read":
        groups, clues = [], []
        for line in text.split("\n"):
            names, declared, domain = line.partition(" in ")
            if not declared:
                clues.append(line)
                continue
            domain = domain.removesuffix(", different")
            low, dots, high = domain.partition("..")
            if dots:
                values: tuple[Any, ...] = tuple(range(int(low), int(high) + 1))
            else:
                values = tuple(int(value) if value.lstrip("-").isdigit() else value for value in domain.split(", "))
            groups.append((tuple(names.split(", ")), values, line.endswith(", different")))
        return cls(tuple(groups), tuple(clues))

    @property
    def domains(self) -> dict[str, tuple[Any, ...]]:
        return {name: values for names, values, _ in self.groups for name in names}


def holds(clue: str, given: Mapping[str, Any]) -> bool:
    """By Python's own arithmetic; the text is ours, never a model's."""
    speaker, says, said = clue.partition(" says ")
    words = {word: word for word in _words(clue) if word not in given}
    value = eval(
        said if says else clue, {"__builtins__": {}, "abs": abs, "count": lambda *all: sum(all)}, words | given
    )
    return bool((given[speaker] == "knight") == value if says else value)


def _words(clue: str) -> set[str]:
    text = "".join(letter if letter.isalnum() else " " for letter in clue)
    return {word for word in text.split() if word[0].isalpha()} - {"says", "and", "or", "not", "abs", "count"}


class Sat:
    """A variable for each value of each unknown; what a clue forbids is listed, combination by combination."""

    def __init__(self, read: Read) -> None:
        self._read, self._numbers = read, itertools.count(1)
        self._of = {(name, value): next(self._numbers) for name, values in read.domains.items() for value in values}
        self._always: list[list[int]] = []
        for name, values in read.domains.items():
            own = [self._of[name, value] for value in values]
            self._always += [own, *([-a, -b] for a, b in itertools.combinations(own, 2))]
        for names, values, different in read.groups:
            for a, b in itertools.combinations(names, 2) if different else ():
                self._always += [[-self._of[a, value], -self._of[b, value]] for value in values]
        self._clues = [list(self._forbidden(clue)) for clue in read.clues]

    def _forbidden(self, clue: str) -> Iterator[list[int]]:
        names = sorted(_words(clue) & self._read.domains.keys())
        for values in itertools.product(*(self._read.domains[name] for name in names)):
            given = dict(zip(names, values, strict=True))
            if not holds(clue, given):
                yield [-self._of[item] for item in given.items()]

    def count(self, clues: Sequence[int], most: int) -> int:
        """Assignments that keep these clues, up to so many."""
        with Solver(
            name="g4", bootstrap_with=[*self._always, *(each for at in clues for each in self._clues[at])]
        ) as solver:
            found = 0
            while found < most and solver.solve():
                model = {number for number in solver.get_model() or [] if number > 0}
                solver.add_clause([-number for number in self._of.values() if number in model])
                found += 1
        return found


def differences(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """What the two sides do not agree in, with the puzzle; a line on standard error at the end says of how many."""
    sys.path.insert(0, str(GUEST))
    import logic_language
    import logic_search
    import redqueen_logic

    rng, judged, refused = Random(seed), 0, 0
    while judged < count:
        said = redqueen_logic.validate(puzzle(rng))
        if "puzzle" not in said:
            refused += 1
            continue
        text, judged = said["puzzle"], judged + 1
        read, sat = Read.of(text), Sat(Read.of(text))
        every = range(len(read.clues))
        most = redqueen_logic.MOST_SOLUTIONS + 1
        right = sat.count(every, most)
        ours = len(logic_search.Search(*logic_language.read(text), [10**9]).solutions(most))
        if right != ours:
            yield text, f"{ours} solutions by the checker, {right} by SAT"
        space = sat.count((), right * redqueen_logic.GUESS)
        if not 1 <= right <= redqueen_logic.MOST_SOLUTIONS or space < right * redqueen_logic.GUESS:
            yield text, f"{right} of {space} are right"
        for at in every:
            if sat.count([other for other in every if other != at], right + 1) == right:
                yield text, f"clue {at + 1} follows from the others"
        assignments = [dict(line.split(" = ") for line in redqueen_logic.solve(text).split("\n"))]
        assignments += [{n: str(rng.choice(v)) for n, v in read.domains.items()} for _ in range(12)]
        for given in assignments:
            grade = redqueen_logic.grade(text, "\n".join(f"{name} = {value}" for name, value in given.items()))
            if (grade == "correct") != _right(read, given):
                yield text, f"{given} is {grade} by the checker"
    print(f"{judged} puzzles judged twice, {refused} texts refused by the checker", file=sys.stderr)


def _right(read: Read, written: Mapping[str, str]) -> bool:
    given = {name: next(v for v in values if str(v) == written[name]) for name, values in read.domains.items()}
    apart = all(len({given[n] for n in names}) == len(names) for names, _, different in read.groups if different)
    return apart and all(holds(clue, given) for clue in read.clues)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--puzzles", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    start, found = time.perf_counter(), 0
    for text, what in differences(asked.puzzles, asked.seed):
        found += 1
        print(f"{what}:\n{text}\n")
    print(f"{found} differences in {asked.puzzles} puzzles, {time.perf_counter() - start:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
