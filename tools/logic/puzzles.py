"""Random logic puzzles: structure by lot, as a teacher with no taste would write it.

    python tools/logic/puzzles.py exam > src/redqueen/tasks/logic/puzzles.jsonl

`exam` writes the exam of the logic family: 60 puzzles in each of four bands, by the guesses that a search takes to find
all solutions. The same ones come every time.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

GUEST = Path(__file__).parents[2] / "src" / "redqueen" / "tasks" / "logic" / "guest"
BANDS = {"1": (0, 4), "2": (5, 12), "3": (13, 32), "4": (33, 200)}
"""The fewest and the most guesses of each."""
OF_A_BAND = 60
NAMES = (
    "Ann Bob Cy Dan Eve Fay Gil Hal", "Rome Oslo Bern Kyiv Lima Cairo Delhi", "cat dog owl fox hen pig cow",
    "math art music sport drama", "lamp desk sofa vase plant chair", "Mon Tue Wed Thu Fri Sat", "w x y z u v",
    "oak elm ash fir yew", "Kim Lea Max Nia Oli Pia Quin", "red green blue black white",
)  # fmt: skip
WORDS = ("tea milk juice cola water", "north south east west", "gold silver bronze iron", "spring summer autumn winter")
Rng = Random


def numbers(rng: Rng, names: list[str]) -> tuple[str, Callable[[], str]]:
    """A group with whole numbers, and its clues."""
    low, size = rng.choice([0, 1, 1, 1, 2, 10]), rng.randint(max(len(names), 3), min(len(names) + 3, 12))
    declared = f"{', '.join(names)} in {low}..{low + size - 1}{rng.choice(['', ', different', ', different'])}"

    def clue() -> str:
        a, b, *others = rng.sample(names, len(names))
        c = others[0] if others else a
        n, m = rng.randint(1, size), rng.randint(2, 3)
        return rng.choice([
            f"{a} < {b}", f"{a} > {b}", f"{a} + {b} == {n}", f"{a} == {b} + {n}", f"abs({a} - {b}) == {n}",
            f"{a} != {low + n}", f"{a} % {m} == 0", f"{a} + {b} > {c}", f"{a} == {m} * {b}", f"{a} < {b} or {c} > {a}",
            f"{a} - {b} <= {c}", f"{a} * {b} == {n}", f"not {a} == {low + n}",
            f"count({a} > {low + n}, {b} > {low + n}, {c} > {low + n}) == 2",
        ])  # fmt: skip

    return declared, clue


def words(rng: Rng, names: list[str]) -> tuple[str, Callable[[], str]]:
    values = rng.choice(WORDS).split()[: max(3, min(len(names), 5))]
    apart = len(names) <= len(values) and rng.random() < 0.5
    declared = f"{', '.join(names)} in {', '.join(values)}{', different' * apart}"

    def clue() -> str:
        a, b, *others = rng.sample(names, len(names))
        c, v, w = others[0] if others else b, *rng.sample(values, 2)
        return rng.choice([
            f"{a} != {b}", f"{a} == {v} or {b} == {w}", f"{a} == {b}", f"{a} != {v}",
            f"count({a} == {v}, {b} == {v}, {c} == {v}) == 1", f"not ({a} == {v} and {b} == {w})",
            f"{a} == {v} or {b} == {v} or {c} == {w}",
        ])  # fmt: skip

    return declared, clue


def knights(rng: Rng, names: list[str]) -> tuple[str, Callable[[], str]]:
    def clue() -> str:
        a, b, *others = rng.sample(names, len(names))
        c, d = others[0], others[-1]
        v, w = rng.choice(["knight", "knave"]), rng.choice(["knight", "knave"])
        return f"{a} says " + rng.choice([
            f"{b} == {v}", f"{b} == {c}", f"{b} == {v} and {c} == {w}", f"{b} == {v} or {c} == {w}",
            f"count({b} == {v}, {c} == {v}, {d} == {v}) == {rng.randint(0, 3)}", f"{a} == {b}",
        ])  # fmt: skip

    return f"{', '.join(names)} in knight, knave", clue


def puzzle(rng: Rng) -> str:
    """A text as a teacher may write it; most are sound once they are mended."""
    sort = rng.choices([numbers, words, knights], [6, 2, 3])[0]
    size = rng.randint(6, 7) if sort is knights else rng.randint(4, 6)
    groups = [sort(rng, rng.choice([line for line in NAMES if len(line.split()) >= size]).split()[:size])]
    used = set(groups[0][0].split(" in ")[0].split(", "))
    if sort is not knights and rng.random() < 0.3:
        line = rng.choice([line for line in NAMES if used.isdisjoint(line.split())])
        groups.append(numbers(rng, line.split()[: rng.randint(2, 4)]))
    clues = [clue() for _, clue in groups for _ in range(rng.randint(3, 7))]
    if len(groups) > 1 and sort is numbers:
        first, second = (declared.split(" in ")[0].split(", ") for declared, _ in groups)
        clues += [f"{rng.choice(first)} {rng.choice(['<', '==', '>'])} {rng.choice(second)}" for _ in range(2)]
    elif len(groups) > 1:
        first, second = (declared.split(" in ")[0].split(", ") for declared, _ in groups)
        value = groups[0][0].split(" in ")[1].split(", ")[0]
        clues += [f"{rng.choice(first)} == {value} or {rng.choice(second)} > 2" for _ in range(2)]
    return "\n".join([*(declared for declared, _ in groups), *clues])


def exam() -> Iterator[dict[str, str]]:
    """Rows of a file, the bands in turn."""
    sys.path.insert(0, str(GUEST))
    import logic_language
    import redqueen_logic

    rng, count, keys = Random(27), dict.fromkeys(BANDS, 0), set[str]()
    while min(count.values()) < OF_A_BAND:
        found = redqueen_logic.validate(puzzle(rng))
        if "puzzle" not in found or (key := logic_language.figures(found["puzzle"])["structure"]) in keys:
            continue
        band = next((band for band, (low, high) in BANDS.items() if low <= found["guesses"] <= high), None)
        if band is not None and count[band] < OF_A_BAND:
            keys.add(key)
            count[band] += 1
            yield {"kind": "logic_s", "band": band, "puzzle": found["puzzle"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["exam"])
    parser.parse_args()
    for row in sorted(exam(), key=lambda row: row["band"]):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
