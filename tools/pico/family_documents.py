"""Documents of the other families, for a base that knows programs already: puzzles, stories, puzzles with a number, and
short proofs, in the families' own short prompts.

Tasks are made by lot and judged by the families' own checkers; those of their exams and seeds are kept out. As with
programs, a task is proposed the seldomer the harder it is, and an answer that takes several steps is learnt both at
once and after a trace.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from documents import PROPOSED, SOLVED, Document, answered, content, document

from redqueen.tasks.logic import FAMILY as LOGIC
from redqueen.tasks.logic import LogicS, LogicTask
from redqueen.tasks.math import FAMILY as MATH
from redqueen.tasks.math import MathN, MathW, ProblemTask, StoryTask
from redqueen.tasks.math.guest.stories.equations import Equations
from redqueen.tasks.math.guest.stories.linear import ONE, Reduced
from redqueen.tasks.math.guest.stories.reading import read
from redqueen.tasks.proof import FAMILY as PROOF
from redqueen.tasks.proof import ProofF, ProofO, ProofTask
from redqueen.tasks.proof.compose import task_by_lot
from redqueen.tasks.proof.source import PACKAGE
from redqueen.tasks.protocol import Form, Kind, Prompt
from redqueen.tasks.wording import REFERENCES, fenced

LOGIC_S, MATH_W, MATH_N = LogicS(Form.SHORT), MathW(Form.SHORT), MathN(Form.SHORT)
PROOF_F, PROOF_O = ProofF(Form.SHORT), ProofO(Form.SHORT)
FAMILIES = {"logic_s": LOGIC, "math_w": MATH, "math_n": MATH, "proof_f": PROOF, "proof_o": PROOF}
SHARE = 0.5
"""Of a mixed corpus, what is about programs."""
MADE = {"logic_s": 400, "math_w": 400, "math_n": 200, "proof_f": 24, "proof_o": 24}
"""Tasks by lot for one shard, each of which makes several documents."""
BANDS = {"logic_s": (5, 13, 33), "math_w": (3, 5, 9), "math_n": (6, 17, 46), "proof_f": (3,), "proof_o": (3,)}
"""Where the second and each further band begins: guesses of a search, calculations, steps."""
PROOF_STEPS = (2, 2, 3)
EASY = 0.6
"""The part of the puzzles that have a few clues of plain sorts."""
LETTERS = tuple("abcdehjklmopqrstuvwxyz")
PEOPLE = (
    "Ann", "Bob", "Cy", "Dan", "Eve", "Fay", "Gil", "Hal", "Kim", "Lea", "Max", "Nia", "Oli", "Pia", "Quin", "Rome",
    "Oslo", "Bern", "Kyiv", "Lima", "Cairo", "Delhi",
)  # fmt: skip
_WORD, _SPACED = re.compile(r"[A-Za-z]+"), re.compile(r" ?[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class Made:
    """A task with what a student may write: the answer's block, and what leads to it."""

    task: Any
    block: str
    trace: str = ""


def easy_puzzle(rng: Random) -> str:
    """As a teacher who is afraid of losing its students would write it."""
    names = rng.sample(rng.choice((LETTERS, PEOPLE)), rng.randint(3, 5))
    size = rng.randint(max(4, len(names)), 9)
    clues = []
    for _ in range(rng.randint(len(names) - 1, len(names) + 1)):
        a, b, c = (*rng.sample(names, 3),)
        n = rng.randint(1, size - 1)
        clues.append(
            rng.choice([
                f"{a} == {b} + {n}", f"{a} + {b} == {n}", f"abs({a} - {b}) == {n}", f"{a} < {b}", f"{a} == 2 * {b}",
                f"{a} + {b} == {c}", f"{a} * {b} == {n}",
            ])
        )  # fmt: skip
    return "\n".join([f"{', '.join(names)} in 1..{size}{rng.choice(['', ', different'])}", *clues])


class Material:
    """Tasks of all kinds by lot, in bands by how hard they are."""

    def __init__(self, rng: Random, made: Mapping[str, int] = MADE):
        self.bands = {kind: _banded(kind, count, rng) for kind, count in made.items()}

    def draw(self, kind: str, rng: Random, decay: float = SOLVED) -> Made:
        """One of a kind, whose bands get the rarer the harder they are."""
        bands = self.bands[kind]
        return rng.choice(rng.choices(bands, [decay**at for at in range(len(bands))])[0])

    def proposed(self, kind: Kind[Any, Any], rng: Random) -> tuple[Prompt, Any]:
        """What a teacher is asked, and a task that it was not shown."""
        shown = [self.draw(kind.name, rng, 1.0).task for _ in range(REFERENCES[Form.SHORT])]
        while (task := self.draw(kind.name, rng, PROPOSED).task) in shown:
            pass
        return kind.propose_prompt(shown, rng), task


def _banded(kind: str, count: int, rng: Random) -> list[list[Made]]:
    bands: list[list[Made]] = [[] for _ in range(len(BANDS[kind]) + 1)]
    taken = set(kept_out(kind))
    while sum(map(len, bands)) < count or not all(bands):
        one = MAKERS[kind](rng)
        if one is None or one.task.near_key in taken:
            continue
        taken.add(one.task.near_key)
        bands[sum(_hardness(one.task) >= begin for begin in BANDS[kind])].append(one)
    return bands


def _hardness(task: LogicTask | StoryTask | ProblemTask | ProofTask) -> int:
    match task:
        case LogicTask():
            return task.guesses
        case ProofTask():
            return len(task.chain)
    return task.steps


@cache
def kept_out(kind: str) -> frozenset[str]:
    """The keys of what is examined, and of what races begin with."""
    family = FAMILIES[kind]
    exams = (family.held_out(path).keys for path in family.exams().values())
    return frozenset().union(*exams, (seed.near_key for seed in family.seeds))


# Tasks


@cache
def _checkers() -> Any:
    """The modules that run in guests, and those that write by lot: here all texts are our own."""
    root = Path(__file__).parents[2]
    tasks = root / "src" / "redqueen" / "tasks"
    sys.path += [str(tasks / name / "guest") for name in ("logic", "math")]
    sys.path += [str(root / "tools" / name) for name in ("logic", "math")]
    import puzzles
    import random_stories
    import redqueen_logic
    import redqueen_math
    import redqueen_numbers

    return puzzles.puzzle, random_stories, redqueen_logic, redqueen_math, redqueen_numbers


def a_puzzle(rng: Random) -> Made | None:
    puzzle, _, logic, _, _ = _checkers()
    said = logic.validate(easy_puzzle(rng) if rng.random() < EASY else puzzle(rng))
    if "puzzle" not in said:
        return None
    task = LogicTask("logic_s", puzzle=said["puzzle"], guesses=said["guesses"])
    return Made(task, fenced("answer", logic.solve(task.puzzle)))


def a_story(rng: Random) -> Made | None:
    _, stories, _, math, _ = _checkers()
    said = math.validate(stories.story(rng))
    if "text" not in said:
        return None
    task = StoryTask("math_w", text=said["text"], answer=said["answer"], steps=said["steps"])
    return Made(task, fenced("answer", str(task.answer)), worked_out(task.text))


def a_problem(rng: Random) -> Made | None:
    _, stories, _, _, numbers = _checkers()
    text = stories.problem(rng)
    if rng.random() < EASY:
        puzzle = easy_puzzle(rng)
        a, b, c = (*rng.sample(puzzle.partition(" in ")[0].split(", "), 3),)
        text = f"{puzzle}\nask {rng.choice([f'10 * {a} + {b}', f'{a} * {b} + {c}', f'{a} + {b}', 'count'])}"
    said = numbers.validate(text)
    if "text" not in said:
        return None
    task = ProblemTask("math_n", text=said["text"], answer=said["answer"], steps=said["steps"])
    groups, clues, asked = numbers.read_asking(task.text)
    trace = ""
    if asked is not None:
        solution = numbers.Search(groups, clues, [numbers.FUEL]).solutions(1)[0]
        trace = "".join(f"{name} = {solution[name]}\n" for names, _, _ in groups for name in names)
    return Made(task, fenced("answer", str(task.answer)), trace)


def a_proof(kind: str, rng: Random) -> Made | None:
    library = PACKAGE.library
    said = task_by_lot(library, kind, rng, rng.choice(PROOF_STEPS), library.short)
    if said is None:
        return None
    task = ProofTask.found(kind, said)
    return Made(task, fenced("proof", task.steps) if kind == "proof_f" else fenced("formula", task.goal))


MAKERS: dict[str, Callable[[Random], Made | None]] = {
    "logic_s": a_puzzle,
    "math_w": a_story,
    "math_n": a_problem,
    "proof_f": lambda rng: a_proof("proof_f", rng),
    "proof_o": lambda rng: a_proof("proof_o", rng),
}


class Told(Equations):
    """A story's equations, with whose each quantity is."""

    def __init__(self, sentences: Sequence[Any], question: Any):
        self.owners: dict[int, str] = {}
        super().__init__(sentences, question)

    def _of(self, key: tuple[str, str], *sort: str) -> int:
        column = super()._of(key, *sort)
        self.owners.setdefault(column, key[1] if key[0] in ("price of", "age of") else key[0])
        return column

    def _change(self, key: tuple[str, str], by: Mapping[int, int], is_side: bool = False) -> None:
        super()._change(key, by, is_side)
        if key in self._at:
            self._of(key)


def worked_out(story: str) -> str:
    """What each quantity comes to, a line for each that has an owner, in the order in which one follows from others;
    where several only follow together, one of them comes from nowhere."""
    sentences, question = read(story)
    told = Told(sentences, question)
    rows = list(told.filled(told.numbers(sentences, question)))
    reduced, known, lines = Reduced(rows), {ONE, told.asked}, []
    while True:
        ready = next((row for row in rows if sum(column not in known for column in row) == 1), None)
        left = (column for column in (ready or told.sorts) if column not in known and reduced.determined(column))
        column = next(left, None)
        if column is None:
            return "".join(f"{line}\n" for line in lines)
        known.add(column)
        if column in told.owners:
            lines.append(f"{told.owners[column].capitalize()} {reduced.value(column)[0]}")


# Documents


def renamed(made: Made, rng: Random) -> Callable[[str], str]:
    """Other names for the unknowns of a puzzle, the same in all its texts."""
    declared = [line.partition(" in ")[0] for line in made.task.body.split("\n") if " in " in line]
    names = [name for line in declared for name in line.split(", ")]
    others = rng.sample(LETTERS if len(names) <= len(LETTERS) and rng.random() < 0.5 else PEOPLE, len(names))
    new = dict(zip(names, others, strict=True))
    return lambda text: _WORD.sub(lambda found: new.get(found[0], found[0]), text)


def propose_puzzle(material: Material, rng: Random) -> Document:
    prompt, task = material.proposed(LOGIC_S, rng)
    return Document(content(prompt), fenced("puzzle", task.puzzle))


def propose_story(material: Material, rng: Random) -> Document:
    prompt, task = material.proposed(MATH_W, rng)
    return Document(content(prompt), fenced("story", task.text))


def propose_problem(material: Material, rng: Random) -> Document:
    prompt, task = material.proposed(MATH_N, rng)
    return Document(content(prompt), fenced("problem", task.text))


def propose_proof(material: Material, rng: Random) -> Document:
    prompt, task = material.proposed(rng.choice((PROOF_F, PROOF_O)), rng)
    return Document(content(prompt), fenced("proof", task.steps))


def solve_puzzle(material: Material, rng: Random) -> Document:
    made = material.draw("logic_s", rng)
    other = renamed(made, rng)
    return Document(other(content(LOGIC_S.solve_prompt(made.task))), other(made.block))


def solve_story(material: Material, rng: Random) -> Document:
    made = material.draw("math_w", rng)
    return answered(content(MATH_W.solve_prompt(made.task)), made.trace, made.block, rng)


def solve_problem(material: Material, rng: Random) -> Document:
    made = material.draw("math_n", rng)
    other = renamed(made, rng)
    return answered(other(content(MATH_N.solve_prompt(made.task))), other(made.trace), made.block, rng)


def solve_proof(material: Material, rng: Random) -> Document:
    kind = rng.choice((PROOF_F, PROOF_O))
    made = material.draw(kind.name, rng)
    return Document(content(kind.solve_prompt(made.task)), made.block)


MIX: dict[Callable[[Material, Random], Document], float] = {
    propose_puzzle: 0.12,
    solve_puzzle: 0.30,
    propose_story: 0.12,
    solve_story: 0.24,
    propose_problem: 0.06,
    solve_problem: 0.12,
    propose_proof: 0.01,
    solve_proof: 0.03,
}


def family_document(material: Material, rng: Random) -> Document:
    return rng.choices(list(MIX), list(MIX.values()))[0](material, rng)


def mixed(rng: Random) -> Iterator[Document]:
    """Of all families, programs among them."""
    material = Material(rng)
    while True:
        yield document(rng) if rng.random() < SHARE else family_document(material, rng)


def common_words(texts: Sequence[str], tokens: Callable[[str], int]) -> list[str]:
    """The words of several tokens, with the space before them; those that make most of all tokens first."""
    counts = Counter(word for text in texts for word in _SPACED.findall(text))
    spared = {word: times * (tokens(word) - 1) for word, times in counts.items()}
    return [word for word in sorted(spared, key=lambda word: (-spared[word], word)) if spared[word]]


def fixed_pieces() -> list[str]:
    """The instructions and fences of these families, each of which is one token."""
    labels = ("puzzle", "story", "problem", "proof", "steps", "answer", "formula")
    asked = [f"\n\nWrite another {label}." for label in labels[:4]]
    answers = ["\n\nWrite an answer.", "\n\nWrite a proof.", "\n\nWrite the formula of the last line."]
    openings = [f"```{label}\n" for label in labels]
    further = [f"\n```\n\n{opening}" for opening in openings[:4]]
    return [*asked, *answers, *openings, *further, "\n```answer\n"]
