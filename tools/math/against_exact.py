"""Stories judged twice: by the checker, and by sympy over a reading of the canonical text by simpler means.

    python tools/math/against_exact.py --stories 2000 --problems 300

Of each random story that the checker accepts: the other side replays it sentence by sentence, solves for all unknowns
exactly, and must come to the same answer; without any one sentence it must not. Of each random puzzle with a number:
all assignments are tried. The two sides share the canonical text alone. It says how many verdicts differ.
"""

import argparse
import itertools
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

import sympy
from random_stories import GUESTS, problem, story

MOST_ASSIGNMENTS = 300_000
_WORDS = {"twice": 2, "half": sympy.Rational(1, 2), "a third": sympy.Rational(1, 3), "a quarter": sympy.Rational(1, 4),
          "a fifth": sympy.Rational(1, 5)}  # fmt: skip
_GAINS = ("gets", "buys", "finds", "wins", "collects", "receives")
_W = r"((?:[Tt]he )?[A-Za-z]+)"
_T = r"(twice|half|a third|a quarter|a fifth|\d+ times)"


class Tale:
    """What a text says, as equations between symbols; what is asked."""

    def __init__(self, sentences: list[str], question: str) -> None:
        self.equations: list[Any] = []
        self.now: dict[tuple[str, str], Any] = {}
        self.first: dict[tuple[str, str], Any] = {}
        self.text = " ".join([*sentences, question])
        self.spoken = {(self._who(w), thing) for w, thing in self._spoken([*sentences, question])}
        for sentence in sentences:
            self._tell(sentence)
        self.asked = self._ask(question)

    def _spoken(self, sentences: list[str]) -> Iterator[tuple[str, str]]:
        for text in sentences:
            if re.search(r" pays | for \d+ dollars each\.$", text):
                continue
            for who in re.findall(r"(?:[Tt]he [a-z]+|[A-Z][a-z]+)", text):
                for thing in re.findall(r"[a-z]+", text):
                    yield who, thing

    def _who(self, name: str) -> str:
        return name.lower()

    def of(self, who: str, thing: str) -> Any:
        key = self._who(who), thing
        if key not in self.now:
            self.now[key] = self.first[key] = sympy.Symbol("_".join(key).replace(" ", ""))
        return self.now[key]

    def add(self, who: str, thing: str, amount: Any, side: bool = False) -> None:
        if side and (self._who(who), thing) not in self.spoken:
            return
        self.now[self._who(who), thing] = self.of(who, thing) + amount

    def _tell(self, text: str) -> None:
        for pattern, work in _FORMS:
            if found := re.fullmatch(pattern, text.removeprefix("Now ")):
                equation = work(self, *found.groups())
                if equation is not None:
                    self.equations.append(equation)
                return
        raise ValueError(text)

    def _ask(self, text: str) -> Any:
        for pattern, work in _QUESTIONS:
            if found := re.fullmatch(pattern, text):
                return work(self, *found.groups())
        raise ValueError(text)

    def answer(self) -> Any:
        """The one value of what is asked; None where it has none or several."""
        asked = sympy.Symbol("asked")
        equations = [*self.equations, asked - self.asked]
        symbols = sorted({each for one in equations for each in sympy.sympify(one).free_symbols} - {asked}, key=str)
        matrix, right = sympy.linear_eq_to_matrix(equations, [*symbols, asked])
        reduced, pivots = matrix.row_join(right).rref()
        last = len(symbols)
        if last + 1 in pivots or last not in pivots:
            return None
        return reduced[pivots.index(last), last + 1]


def _t(text: str) -> Any:
    return _WORDS[text] if text in _WORDS else int(text.removesuffix(" times"))


def _gives(tale: Tale, a: str, amount: Any, thing: str, b: str) -> None:
    tale.add(a, thing, -amount)
    tale.add(b, thing, amount)


def _each_day(tale: Tale, a: str, verb: str, n: str, thing: str, _: str, days: str) -> None:
    tale.add(a, thing, (1 if verb in _GAINS else -1) * int(n) * int(days))


def _shares(tale: Tale, a: str, thing: str, k: str) -> None:
    tale.now["each friend", thing] = tale.of(a, thing) / int(k)
    tale.add(a, thing, -tale.of(a, thing))


def _boxes(tale: Tale, a: str, k: str, box: str, n: str, thing: str) -> Any:
    tale.equations.append(tale.of(a, box) - int(k))
    return tale.of(a, thing) - int(k) * int(n)


def _trades(sign: int) -> Callable[..., None]:
    def trade(tale: Tale, a: str, k: str, thing: str, n: str) -> None:
        tale.add(a, "dollars", -sign * int(k) * int(n), side=True)
        tale.add(a, thing, sign * int(k), side=True)

    return trade


def _pays(tale: Tale, a: str, n: str | None, k: str, first: str, many: str | None, second: str | None) -> Any:
    cost = int(k) * tale.of("price", _one(first))
    tale.add(a, first, int(k), side=True)
    if many and second:
        cost += int(many) * tale.of("price", _one(second))
        tale.add(a, second, int(many), side=True)
    tale.add(a, "dollars", -cost, side=True)
    return cost - int(n) if n else None


def _one(things: str) -> str:
    return things[:-1]


def _then(tale: Tale, a: str, b: str, k: Any, years: int) -> Any:
    return tale.of("age", a) + years - k * (tale.of("age", b) + years)


def _names(text: str) -> list[str]:
    return re.split(", | and ", text)


_FORMS: list[tuple[str, Callable[..., Any]]] = [
    (rf"At the start {_W} has no (\w+)\.", lambda t, a, i: t.of(a, i)),
    (rf"{_W} has (\d+) (\w+)\.", lambda t, a, n, i: t.of(a, i) - int(n)),
    (rf"{_W} has (\d+) (more|fewer) (\w+) than ([a-z]+)\.",
     lambda t, a, n, m, i, j: t.of(a, i) - t.of(a, j) - (int(n) if m == "more" else -int(n))),
    (rf"{_W} has (\d+) (more|fewer) (\w+) than {_W}\.",
     lambda t, a, n, m, i, b: t.of(a, i) - t.of(b, i) - (int(n) if m == "more" else -int(n))),
    (rf"{_W} has {_T} as many (\w+) as ([a-z]+)\.", lambda t, a, k, i, j: t.of(a, i) - _t(k) * t.of(a, j)),
    (rf"{_W} has {_T} as many (\w+) as {_W}\.", lambda t, a, k, i, b: t.of(a, i) - _t(k) * t.of(b, i)),
    (rf"{_W} has (\d+) (more|fewer) than {_T} as many (\w+) as {_W}\.",
     lambda t, a, n, m, k, i, b: t.of(a, i) - _t(k) * t.of(b, i) - (int(n) if m == "more" else -int(n))),
    (rf"{_W} has as many (\w+) as {_W} and {_W} together\.",
     lambda t, a, i, b, c: t.of(a, i) - t.of(b, i) - t.of(c, i)),
    (rf"{_W} has as many (\w+) as {_W}\.", lambda t, a, i, b: t.of(a, i) - t.of(b, i)),
    (rf"{_W} has (\d+) (\w+) and (\w+) together\.", lambda t, a, n, i, j: t.of(a, i) + t.of(a, j) - int(n)),
    (r"(.+) have (\d+) (\w+) together\.", lambda t, names, n, i: sum(t.of(a, i) for a in _names(names)) - int(n)),
    (rf"{_W} has (\d+) (\w+) with (\d+) (\w+) in each\.", _boxes),
    (rf"{_W} gives (\d+) (\w+) to {_W}\.", lambda t, a, n, i, b: _gives(t, a, int(n), i, b)),
    (rf"{_W} gives (half|a third|a quarter|a fifth) of the (\w+) to {_W}\.",
     lambda t, a, k, i, b: _gives(t, a, _t(k) * t.of(a, i), i, b)),
    (rf"{_W} \w+ (half|a third|a quarter|a fifth) of the (\w+)\.", lambda t, a, k, i: t.add(a, i, -_t(k) * t.of(a, i))),
    (rf"{_W} \w+ (\d+) percent of the (\w+)\.",
     lambda t, a, p, i: t.add(a, i, -sympy.Rational(int(p), 100) * t.of(a, i))),
    (rf"{_W} shares the (\w+) equally among (\d+) friends\.", _shares),
    (rf"{_W} (\w+) (\d+) (\w+) every (\w+) for (\d+) \w+\.", _each_day),
    (rf"{_W} buys (\d+) (\w+) for (\d+) dollars each\.", _trades(1)),
    (rf"{_W} sells (\d+) (\w+) for (\d+) dollars each\.", _trades(-1)),
    (rf"{_W} pays (?:(\d+) dollars )?for (\d+) (\w+)(?: and (\d+) (\w+))?\.", _pays),
    (r"One (\w+) costs (\d+) dollars\.", lambda t, i, n: t.of("price", i) - int(n)),
    (r"One (\w+) costs (\d+) dollars (more|less) than one (\w+)\.",
     lambda t, i, n, m, j: t.of("price", i) - t.of("price", j) - (int(n) if m == "more" else -int(n))),
    (rf"One (\w+) costs {_T} as much as one (\w+)\.", lambda t, i, k, j: t.of("price", i) - _t(k) * t.of("price", j)),
    (rf"{_W} is (\d+) years old\.", lambda t, a, n: t.of("age", a) - int(n)),
    (rf"{_W} is (\d+) years (older|younger) than {_W}\.",
     lambda t, a, n, m, b: t.of("age", a) - t.of("age", b) - (int(n) if m == "older" else -int(n))),
    (rf"{_W} is {_T} as old as {_W}\.", lambda t, a, k, b: t.of("age", a) - _t(k) * t.of("age", b)),
    (r"(.+) are (\d+) years old together\.", lambda t, names, n: sum(t.of("age", a) for a in _names(names)) - int(n)),
    (rf"In (\d+) years {_W} will be {_T} as old as {_W}\.", lambda t, n, a, k, b: _then(t, a, b, _t(k), int(n))),
    (rf"(\d+) years ago {_W} was {_T} as old as {_W}\.", lambda t, n, a, k, b: _then(t, a, b, _t(k), -int(n))),
    (rf"{_W} (\w+) (\d+) (\w+)\.", lambda t, a, v, n, i: t.add(a, i, (1 if v in _GAINS else -1) * int(n))),
]  # fmt: skip
_QUESTIONS: list[tuple[str, Callable[..., Any]]] = [
    (r"How many (\w+) does each friend get\?", lambda t, i: t.of("each friend", i)),
    (rf"How many (\w+) does {_W} have\?", lambda t, i, a: t.of(a, i)),
    (rf"How many (\w+) did {_W} have at first\?", lambda t, i, a: (t.of(a, i), t.first[t._who(a), i])[1]),
    (r"How many (\w+) do (.+) have together\?", lambda t, i, names: sum(t.of(a, i) for a in _names(names))),
    (rf"How many more (\w+) does {_W} have than {_W}\?", lambda t, i, a, b: t.of(a, i) - t.of(b, i)),
    (rf"How many more (\w+) than (\w+) does {_W} have\?", lambda t, i, j, a: t.of(a, i) - t.of(a, j)),
    (r"How many dollars does one (\w+) cost\?", lambda t, i: t.of("price", i)),
    (r"How many dollars do (\d+) (\w+) and (\d+) (\w+) cost\?",
     lambda t, k, i, m, j: int(k) * t.of("price", _one(i)) + int(m) * t.of("price", _one(j))),
    (r"How many dollars do (\d+) (\w+) cost\?", lambda t, k, i: int(k) * t.of("price", _one(i))),
    (rf"How old is {_W}\?", lambda t, a: t.of("age", a)),
    (rf"How old will {_W} be in (\d+) years\?", lambda t, a, n: t.of("age", a) + int(n)),
    (rf"How many years older is {_W} than {_W}\?", lambda t, a, b: t.of("age", a) - t.of("age", b)),
]  # fmt: skip


def story_differences(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """What the two sides do not agree in, with the story."""
    sys.path[:0] = GUESTS
    import redqueen_math

    rng, judged, refused = Random(seed), 0, 0
    while judged < count:
        said = redqueen_math.validate(story(rng))
        if "text" not in said:
            refused += 1
            continue
        judged, text = judged + 1, said["text"]
        *told, question = re.split(r"(?<=\.) ", text)
        if (answer := Tale(told, question).answer()) != said["answer"]:
            yield text, f"{said['answer']} by the checker, {answer} by sympy"
        for at in range(len(told)):
            if Tale([*told[:at], *told[at + 1 :]], question).answer() == said["answer"]:
                yield text, f"sentence {at + 1} is not needed"
    print(f"{judged} stories judged twice, {refused} texts refused by the checker", file=sys.stderr)


def problem_differences(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """The same of puzzles, all of whose assignments are tried."""
    sys.path[:0] = GUESTS
    import redqueen_numbers
    from against_sat import Read, holds

    rng, judged, refused = Random(seed), 0, 0
    while judged < count:
        said = redqueen_numbers.validate(problem(rng))
        if "text" not in said:
            refused += 1
            continue
        *lines, asks = said["text"].split("\n")
        read = Read.of("\n".join(lines))
        size = 1
        for values in read.domains.values():
            size *= len(values)
        if size > MOST_ASSIGNMENTS:
            continue
        judged += 1
        answers = [_value(asks, given) for given in _all(read) if all(holds(clue, given) for clue in read.clues)]
        found = [len(answers)] if asks == "ask count" else sorted(set(answers))
        if found != [said["answer"]]:
            yield said["text"], f"{said['answer']} by the checker, {found} by trying all"
    print(f"{judged} puzzles judged twice, {refused} texts refused by the checker", file=sys.stderr)


def _all(read: Any) -> Iterator[Mapping[str, Any]]:
    """Every assignment in which no two of a group are alike that may not be."""
    names = list(read.domains)
    for values in itertools.product(*read.domains.values()):
        given = dict(zip(names, values, strict=True))
        if all(len({given[name] for name in group}) == len(group) for group, _, apart in read.groups if apart):
            yield given


def _value(asks: str, given: Mapping[str, Any]) -> Any:
    """By Python's own arithmetic; the text is ours, never a model's."""
    names = {"__builtins__": {}, "abs": abs, "count": lambda *all: sum(all)}
    return 0 if asks == "ask count" else eval(asks.removeprefix("ask "), names, dict(given))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stories", type=int, default=500)
    parser.add_argument("--problems", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    start, found = time.perf_counter(), 0
    both = (story_differences(asked.stories, asked.seed), problem_differences(asked.problems, asked.seed))
    for text, what in itertools.chain(*both):
        found += 1
        print(f"{what}:\n{text}\n")
    judged = f"{asked.stories} stories and {asked.problems} puzzles"
    print(f"{found} differences in {judged}, {time.perf_counter() - start:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
