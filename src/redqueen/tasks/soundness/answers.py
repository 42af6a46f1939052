"""Checks of how answers are judged: what is right passes, what is worthless earns nothing, and guesses seldom pay."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from redqueen.tasks.protocol import Attempt, Task
from redqueen.tasks.soundness import texts
from redqueen.tasks.soundness.findings import Finding, excerpt, failed, graded, named, ok, said, untried
from redqueen.tasks.soundness.material import Material
from redqueen.tasks.verdicts import Grade, Reason
from redqueen.verifier import Verifier

MOST_GUESSED = 0.02
"""Of a kind's tasks, solved by somebody else's answer."""
NEIGHBOURS = 8
"""Whose answers are tried at a task until one is wrong: another's may be right too, or of another form."""
MOST_NEVER_WRONG = 0.1
"""Of the tasks, at which none of the answers that are made up here is wrong: they are made without knowing the form."""
_FOLDS = 4
_NO_ANSWERS = "no answers"


async def told_apart(material: Material, verifier: Verifier) -> Finding:
    """Right, wrong, malformed and cut answers are told apart. That every right one passes is another check's matter:
    here one that does will do."""
    golds = material.golds
    if not golds:
        return untried(_NO_ANSWERS)
    verdicts = await graded(material.kind, [Attempt(task, text) for task, text in golds], verifier)
    wrong: list[tuple[Task, str]] = []
    if not any(verdict.correct for verdict in verdicts):
        wrong.append((golds[0][0], f"its own answer {excerpt(golds[0][1])} is {said(verdicts[0])}"))
    wrong += await _not_malformed(material, verifier)
    never_wrong = await _never_wrong(material, verifier)
    mistaken = {task.id for task, _ in (*wrong, *never_wrong)}
    if len(never_wrong) > MOST_NEVER_WRONG * len(golds):
        wrong += never_wrong
    told = len(golds) - len(mistaken)
    figure, values = f"{told:,} of {len(golds):,}", {"told": told, "of": len(golds)}
    if not wrong:
        return ok(figure, values)
    return failed(
        figure,
        f"at {len(mistaken):,} of {len(golds):,} tasks right, wrong, malformed and cut answers are not told apart",
        example=f"{named(wrong[0][0])}: {wrong[0][1]}",
        mend="grade another answer of the form as WRONG, a text without one as MALFORMED, a cut one as CUT_ATTEMPT",
        values=values,
    )


async def _never_wrong(material: Material, verifier: Verifier) -> list[tuple[Task, str]]:
    """The tasks at which no answer is wrong and well formed: neither a neighbour's nor its own with a change in it,
    which is tried where answers have a form that is their task's."""
    golds = material.golds
    left = {
        at: [*(golds[(at + step) % len(golds)][1] for step in range(1, NEIGHBOURS + 1)), *texts.near_misses(gold)]
        for at, (_, gold) in enumerate(golds)
    }
    last = dict.fromkeys(left, "there is nothing to try")
    while attempts := {at: Attempt(golds[at][0], others.pop(0)) for at, others in left.items() if others}:
        verdicts = await graded(material.kind, list(attempts.values()), verifier)
        for (at, attempt), verdict in zip(attempts.items(), verdicts, strict=True):
            last[at] = f"{excerpt(attempt.text)} is {said(verdict)}"
            if verdict.grade is Grade.WRONG:
                del left[at]
    return [(golds[at][0], f"no answer is wrong; {last[at]}") for at in left]


async def _not_malformed(material: Material, verifier: Verifier) -> list[tuple[Task, str]]:
    """The tasks at which a text without an answer, or one that was cut, is not malformed as it should be."""
    attempts: list[tuple[Attempt[Task], bool]] = []
    for task, text in material.golds:
        attempts += [(Attempt(task, nothing), False) for nothing in (*texts.EMPTY, *texts.PROSE)]
        attempts += [(Attempt(task, part, cut=True), True) for part in (text, text[: len(text) // 2])]
        if texts.is_fenced(text):
            attempts.append((Attempt(task, texts.without_its_end(text)), True))
    verdicts = await graded(material.kind, [attempt for attempt, _ in attempts], verifier)
    # What the form of an answer is, is known to a source's own grader alone.
    may_be_wrong = texts.PROSE if material.drawn else ()
    return [
        (attempt.task, f"{excerpt(attempt.text)}{', cut,' if cut else ''} is {said(verdict)}")
        for (attempt, cut), verdict in zip(attempts, verdicts, strict=True)
        if not (verdict.grade is Grade.MALFORMED or (attempt.text in may_be_wrong and verdict.grade is Grade.WRONG))
        or (cut and verdict.reason is not Reason.CUT)
    ]


async def golds_pass(material: Material, verifier: Verifier) -> Finding:
    """Every right answer passes."""
    golds = material.golds
    if not golds:
        return untried(_NO_ANSWERS)
    verdicts = await graded(material.kind, [Attempt(task, text) for task, text in golds], verifier)
    refused = [
        (gold, verdict) for gold, verdict in zip(golds, verdicts, strict=True) if verdict.grade is not Grade.CORRECT
    ]
    passed = len(golds) - len(refused)
    figure, values = f"{passed:,} of {len(golds):,}", {"passed": passed, "of": len(golds)}
    if not refused:
        return ok(figure, values)
    (task, text), verdict = refused[0]
    return failed(
        figure,
        f"the family's own answers to {len(refused):,} of {len(golds):,} tasks are not right",
        example=f"{named(task)}: {excerpt(text)} is {said(verdict)}",
        mend="mend `grade` or `answers`, or reject in `validate` what cannot be answered (UNANSWERABLE)",
        values=values,
    )


async def worthless_earn_nothing(material: Material, verifier: Verifier) -> Finding:
    """Texts without any work in them are never right, and answers to other tasks hardly ever are."""
    attempts = [
        Attempt(task, text) for task, gold in _with_golds(material) for text in _worthless(material, task, gold)
    ]
    verdicts = await graded(material.kind, attempts, verifier)
    paid = [attempt for attempt, verdict in zip(attempts, verdicts, strict=True) if verdict.correct]
    right = {guess: await _right(material, guess.attempts(material), verifier) for guess in GUESSES}
    tasks = len(material.tasks)
    values = {"tasks": tasks, "worthless": len(attempts), "paid": len(paid)}
    values |= {f"right_with_{guess.name}": len(hits) for guess, hits in right.items()}
    figure = f"{len(paid):,} paid, {max(map(len, right.values())) / max(tasks, 1):.1%} guessed"
    if paid:
        return failed(
            figure,
            f"{len(paid):,} of {len(attempts):,} texts without any work in them are right",
            example=f"{named(paid[0].task)}: {excerpt(paid[0].text)} is correct",
            mend="read one answer, in one form, and compare it outside of what the student wrote; name in `shortcuts` "
            "the tasks that are solved by what they show",
            values=values,
        )
    for guess, hits in right.items():
        if len(hits) > allowed_guesses(tasks):
            return failed(
                figure,
                f"{guess.what} is right at {len(hits):,} of {tasks:,} tasks, more than {MOST_GUESSED:.0%}",
                example=f"{named(hits[0].task)}: {excerpt(hits[0].text)} is correct",
                mend="ask for more than a choice among a few, or see to it that tasks come to different answers",
                values=values,
            )
    if not material.golds:
        return untried(f"{len(paid):,} paid, {_NO_ANSWERS}", values)
    return ok(figure, values)


def allowed_guesses(tasks: int) -> int:
    """Up to 2 %, and one in any case: among fewer than 50 tasks a single hit is more than that, and says nothing."""
    return max(1, int(MOST_GUESSED * tasks))


def _with_golds(material: Material) -> Iterator[tuple[Task, str]]:
    for task, answer in zip(material.tasks, material.answers, strict=True):
        yield task, answer or ""


def _worthless(material: Material, task: Task, gold: str) -> list[str]:
    """As they stand, and in the place of the answer."""
    asked = [kind.solve_prompt(task).messages[-1]["content"] for kind in material.forms.values()]
    # What no prompt shows is not given back by a student: the body of a code_f task is its answer.
    shown = [text for text in (task.body, task.question) if text and any(text in prompt for prompt in asked)]
    given = [*shown, *asked, *(block for text in asked for block in texts.blocks(text)), *texts.INJECTIONS]
    return list(dict.fromkeys([*texts.EMPTY, *given, *(texts.in_the_form_of(gold, text) for text in given)]))


async def _right(material: Material, guesses: Sequence[Attempt[Task]], verifier: Verifier) -> list[Attempt[Task]]:
    verdicts = await graded(material.kind, guesses, verifier)
    return [guess for guess, verdict in zip(guesses, verdicts, strict=True) if verdict.correct]


def _neighbours(material: Material) -> list[Attempt[Task]]:
    golds = material.golds
    return [Attempt(task, golds[(at + 1) % len(golds)][1]) for at, (task, _) in enumerate(golds)] if golds[1:] else []


def _modal(material: Material) -> list[Attempt[Task]]:
    """What a student plays that always gives the likeliest answer and knows nothing of the task: it has learnt the
    answer from three quarters of the tasks, and gives it at the fourth. At those that it was learnt from, the
    commonest of a few answers would be right for being chosen."""
    attempts: list[Attempt[Task]] = []
    for fold in range(_FOLDS):
        learnt = Counter(text for at, (_, text) in enumerate(material.golds) if at % _FOLDS != fold)
        tried = [task for at, (task, _) in enumerate(material.golds) if at % _FOLDS == fold]
        for text, _ in learnt.most_common(1):
            attempts += [Attempt(task, text) for task in tried]
    return attempts


def _examples(material: Material) -> list[Attempt[Task]]:
    """The last answer that an earlier turn of the prompt shows, which is to another task."""
    attempts: list[Attempt[Task]] = []
    for task in material.tasks:
        turns = [m["content"] for m in material.kind.solve_prompt(task).messages if m["role"] == "assistant"]
        attempts += [Attempt(task, turn) for turn in turns[-1:]]
    return attempts


@dataclass(frozen=True, slots=True)
class Guess:
    """Answers to other tasks, which may be right by chance."""

    name: str
    what: str
    attempts: Callable[[Material], list[Attempt[Task]]]
    """One at each task at most."""


GUESSES = (
    Guess("next", "the next task's answer", _neighbours),
    Guess("commonest", "the commonest answer", _modal),
    Guess("example", "the answer of the prompt's example", _examples),
)
