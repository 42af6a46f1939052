"""Random stories and puzzles with a number as their answer: structure by lot, as a teacher with no taste writes it.

    python tools/math/random_stories.py words > src/redqueen/tasks/math/words.jsonl
    python tools/math/random_stories.py numbers > src/redqueen/tasks/math/numbers.jsonl

They write the exams of the mathematics family: 60 tasks in each of four bands, stories by the calculations that they
take, puzzles by the guesses of a search. The same ones come every time.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

TASKS = Path(__file__).parents[2] / "src" / "redqueen" / "tasks"
GUESTS = (str(TASKS / "math" / "guest"), str(TASKS / "logic" / "guest"), str(Path(__file__).parents[1] / "logic"))
WORD_BANDS = {"1": (1, 2), "2": (3, 4), "3": (5, 8), "4": (9, 60)}
"""The fewest and the most calculations of each."""
NUMBER_BANDS = {"1": (0, 5), "2": (6, 16), "3": (17, 45), "4": (46, 400)}
"""The same of guesses."""
OF_A_BAND, OF_AN_ANSWER = 60, 4
"""Tasks of a band, and at most of an exam with one answer."""
NAMES = ("Ann", "Ben", "Cara", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivan", "Jane", "Kofi", "Lena", "Maya", "Omar")
PLACES = ("the box", "the farmer", "the shop", "the library", "the baker", "the teacher")
THINGS = ("apples", "books", "cards", "coins", "eggs", "flowers", "nuts", "oranges", "shells", "stamps", "tickets")
GAINS = ("buys", "finds", "gets", "collects", "wins", "receives")
LOSSES = ("loses", "eats", "uses", "drops", "sells", "breaks")
Rng = Random


def story(rng: Rng) -> str:
    """A text as a teacher may write it; many are sound once their numbers are drawn."""
    return rng.choices([_stocks, _prices, _ages, _kinds], [6, 2, 2, 2])[0](rng)


def _stocks(rng: Rng) -> str:
    names = rng.sample(NAMES, rng.randint(2, 5)) + rng.sample(PLACES, rng.random() < 0.2)
    thing = rng.choice(THINGS)
    told: list[str] = []
    linked = names[:1]
    if rng.random() < 0.75:
        told.append(f"{_begin(names[0])} has {_n(rng)} {thing}.")
    for name in names[1:]:
        told.append(_link(rng, name, rng.choice(linked), linked, thing))
        linked.append(name)
    if len(told) < len(names):
        told.append(f"{' and '.join(rng.sample(names, 2))} have {_n(rng)} {thing} together.")
    if rng.random() < 0.3:
        rng.shuffle(told)
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3, 4])):
        told.append(_event(rng, names, thing))
    if rng.random() < 0.15:
        told.append(f"Now {rng.choice(names)} has {_n(rng)} {thing}.")
    a, b = rng.sample(names, 2)
    shared = rng.random() < 0.1
    told += [f"{_begin(a)} shares the {thing} equally among 4 friends."] if shared else []
    asked = [
        f"How many {thing} does {a} have?", f"How many {thing} does {a} have?",
        f"How many {thing} did {a} have at first?", f"How many {thing} do {a} and {b} have together?",
        f"How many more {thing} does {a} have than {b}?",
    ]  # fmt: skip
    return " ".join([*told, f"How many {thing} does each friend get?" if shared else rng.choice(asked)])


def _link(rng: Rng, name: str, other: str, linked: list[str], thing: str) -> str:
    a = _begin(name)
    ways = [
        f"{a} has {_n(rng)} more {thing} than {other}.", f"{a} has {_n(rng)} fewer {thing} than {other}.",
        f"{a} has 3 times as many {thing} as {other}.", f"{a} has half as many {thing} as {other}.",
        f"{a} and {other} have {_n(rng)} {thing} together.", f"{a} has {_n(rng)} {thing}.",
        f"{a} has {_n(rng)} more than twice as many {thing} as {other}.", f"{a} has as many {thing} as {other}.",
        f"{a} has 4 boxes with {_n(rng)} {thing} in each.",
    ]  # fmt: skip
    if len(linked) > 1:
        one, two = rng.sample(linked, 2)
        ways.append(f"{a} has as many {thing} as {one} and {two} together.")
    return rng.choice(ways)


def _event(rng: Rng, names: list[str], thing: str) -> str:
    a, b = rng.sample(names, 2)
    part = rng.choice(["half", "a third", "a quarter"])
    return rng.choice([
        f"{_begin(a)} gives {_n(rng)} {thing} to {b}.", f"{_begin(a)} {rng.choice(GAINS)} {_n(rng)} {thing}.",
        f"{_begin(a)} {rng.choice(LOSSES)} {_n(rng)} {thing}.", f"{_begin(a)} gives {part} of the {thing} to {b}.",
        f"{_begin(a)} {rng.choice(LOSSES)} {part} of the {thing}.",
        f"{_begin(a)} {rng.choice(GAINS)} {_n(rng)} {thing} every day for 5 days.",
        f"{_begin(a)} loses 20 percent of the {thing}.",
    ])  # fmt: skip


def _prices(rng: Rng) -> str:
    first, second, third = rng.sample(THINGS, 3)
    one, two, three = (thing[:-1] for thing in (first, second, third))
    name = rng.choice(NAMES)
    told = [rng.choice([f"One {one} costs {_n(rng)} dollars.", f"{name} pays {_n(rng)} dollars for 4 {first}."])]
    told.append(
        rng.choice([
            f"One {two} costs {_n(rng)} dollars more than one {one}.", f"One {two} costs twice as much as one {one}.",
            f"{name} pays {_n(rng)} dollars for 3 {first} and 2 {second}.",
            f"One {two} costs {_n(rng)} dollars less than one {one}.",
        ])
    )  # fmt: skip
    if rng.random() < 0.4:
        told.append(f"One {three} costs {_n(rng)} dollars more than one {two}.")
        second, two = third, three
    if rng.random() < 0.5:
        told.insert(0, f"{name} has {_n(rng)} dollars.")
        told.append(f"{name} pays for 5 {rng.choice([first, second])}.")
        return " ".join([*told, f"How many dollars does {name} have?"])
    asked = [f"How many dollars does one {two} cost?", f"How many dollars do 3 {first} and 2 {second} cost?",
             f"How many dollars do 7 {second} cost?"]  # fmt: skip
    return " ".join([*told, rng.choice(asked)])


def _ages(rng: Rng) -> str:
    names = rng.sample(NAMES, rng.randint(2, 4))
    told = [f"{names[0]} is {_n(rng)} years old."] if rng.random() < 0.5 else []
    for at, name in enumerate(names[1:]):
        told.append(
            rng.choice([
                f"{name} is {_n(rng)} years older than {names[at]}.", f"{name} is twice as old as {names[at]}.",
                f"{name} is {_n(rng)} years younger than {names[at]}.",
            ])
        )  # fmt: skip
    if len(told) < len(names):
        a, b = rng.sample(names, 2)
        told.append(
            rng.choice([
                f"In 6 years {a} will be twice as old as {b}.", f"5 years ago {a} was 3 times as old as {b}.",
                f"{a} and {b} are {_n(rng)} years old together.",
            ])
        )  # fmt: skip
    a, b = rng.sample(names, 2)
    asked = [f"How old is {a}?", f"How old will {a} be in 7 years?", f"How many years older is {a} than {b}?"]
    return " ".join([*told, rng.choice(asked)])


def _kinds(rng: Rng) -> str:
    (a, b), (first, second) = rng.sample(NAMES, 2), rng.sample(THINGS, 2)
    told = [
        f"{a} has {_n(rng)} {first}.",
        rng.choice([f"{a} has {_n(rng)} more {second} than {first}.", f"{a} has twice as many {second} as {first}."]),
        rng.choice([f"{b} has {_n(rng)} {first} and {second} together.", f"{b} has {_n(rng)} {second}."]),
        rng.choice([f"{b} has {_n(rng)} fewer {second} than {first}.", f"{b} has {_n(rng)} more {first} than {a}.",
                    f"{a} sells 5 {first} for {_n(rng)} dollars each."]),
    ]  # fmt: skip
    if rng.random() < 0.5:
        told.append(f"{a} gives {_n(rng)} {rng.choice([first, second])} to {b}.")
    asked = [f"How many {first} does {b} have?", f"How many {second} do {a} and {b} have together?",
             f"How many more {second} than {first} does {a} have?", f"How many {second} does {b} have?"]  # fmt: skip
    return " ".join([*told, rng.choice(asked)])


def _n(rng: Rng) -> int:
    return rng.randint(2, 99)


def _begin(name: str) -> str:
    return name[0].upper() + name[1:]


def problem(rng: Rng) -> str:
    """A puzzle, with what it asks for in its last line."""
    from puzzles import puzzle

    while ".." not in (text := puzzle(rng)):
        pass
    declared = [line.split(" in ") for line in text.split("\n") if " in " in line and ".." in line]
    names = [name for line in declared for name in line[0].split(", ")]
    a, b, c = (rng.choice(names) for _ in range(3))
    asked = rng.choice(["count", a, f"{a} + {b}", f"{a} * {b}", f"{a} * {b} + {c}", f"10 * {a} + {b}",
                        f"{a} + {b} + {c}", f"abs({a} - {b}) * {c}"])  # fmt: skip
    return f"{text}\nask {asked}"


def exam(what: str) -> Iterator[dict[str, str]]:
    """Rows of a file, the bands in turn."""
    sys.path[:0] = GUESTS
    import logic_language
    import redqueen_math
    import redqueen_numbers
    from stories.keys import structure
    from stories.reading import read

    words = what == "words"
    bands = WORD_BANDS if words else NUMBER_BANDS
    rng, count, keys, answers = Random(27), dict.fromkeys(bands, 0), set[str](), Counter[int]()
    while min(count.values()) < OF_A_BAND:
        found = redqueen_math.validate(story(rng)) if words else redqueen_numbers.validate(problem(rng))
        checker = redqueen_math if words else redqueen_numbers
        if "text" not in found or checker.inspect(found["text"]).get("answer") != found["answer"]:
            continue
        text = found["text"]
        key = structure(*read(text)) if words else logic_language.asking_figures(text)["structure"]
        band = next((band for band, (low, high) in bands.items() if low <= found["steps"] <= high), None)
        if band is None or key in keys or count[band] >= OF_A_BAND or answers[found["answer"]] >= OF_AN_ANSWER:
            continue
        keys.add(key)
        count[band] += 1
        answers[found["answer"]] += 1
        yield {"kind": "math_w" if words else "math_n", "band": band, ("story" if words else "problem"): text}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["words", "numbers"])
    asked = parser.parse_args()
    for row in sorted(exam(asked.what), key=lambda row: row["band"]):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
