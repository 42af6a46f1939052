"""The check that no text makes a family raise: a model writes whatever it likes, and one exception ends a race."""

from collections.abc import Awaitable, Callable, Sequence
from random import Random

from redqueen.errors import MachineError, VerifierFault
from redqueen.keys import numbers
from redqueen.plugins import one_line
from redqueen.tasks.protocol import Attempt, Draft, Task
from redqueen.tasks.soundness import texts
from redqueen.tasks.soundness.findings import Finding, excerpt, failed, graded, named, ok
from redqueen.tasks.soundness.material import Material
from redqueen.tasks.verdicts import Rejection
from redqueen.verifier import Verifier

TEXTS = 1_000
"""To read as proposals, and as many to grade."""
_AT_ONCE = 50


async def odd_texts_are_taken(material: Material, verifier: Verifier) -> Finding:
    """`parse_proposal` and `grade` take changed proposals and answers, random characters and very long texts."""
    rng = numbers("check", material.kind.name, "fuzz")
    troubles = [*_read(material, rng), *await _graded(material, rng, verifier)]
    tried = TEXTS * (bool(material.proposals) + bool(material.tasks))
    values = {"texts": tried, "troubles": len(troubles)}
    if not troubles:
        return ok(f"{tried:,} texts taken", values)
    return failed(
        f"{len(troubles):,} of {tried:,}",
        f"{len(troubles):,} of {tried:,} odd texts are not taken",
        example=troubles[0],
        mend="give a Rejection or a malformed Verdict, whatever the text",
        values=values,
    )


def _read(material: Material, rng: Random) -> list[str]:
    """What goes wrong with proposals."""
    troubles: list[str] = []
    answers = [text for _, text in material.golds]
    for _ in range(TEXTS if material.proposals else 0):
        text, context = rng.choice(material.proposals)
        text = texts.fuzzed(rng.choice(answers) if answers and rng.random() < 0.1 else text, rng)
        try:
            read = material.kind.parse_proposal(text, context)
        except Exception as error:
            troubles.append(f"parse_proposal({excerpt(text)}) raises {one_line(error)}")
            continue
        if not isinstance(read, Draft | Rejection):
            troubles.append(f"parse_proposal({excerpt(text)}) gives {excerpt(read)}")
    return troubles


async def _graded(material: Material, rng: Random, verifier: Verifier) -> list[str]:
    """What goes wrong with answers."""
    answers = [text for _, text in material.golds] or [text for text, _ in material.proposals]
    if not material.tasks or not answers:
        return []
    proposals = [text for text, _ in material.proposals] or answers
    own = {task.id: text for task, text in material.golds}
    attempts: list[Attempt[Task]] = []
    for number in range(TEXTS):
        task = material.tasks[number % len(material.tasks)]
        text = rng.choice(proposals) if rng.random() < 0.1 else own.get(task.id) or rng.choice(answers)
        attempts.append(Attempt(task, texts.fuzzed(text, rng)))
    troubles: list[str] = []
    for at in range(0, len(attempts), _AT_ONCE):
        batch = attempts[at : at + _AT_ONCE]
        if await _raised(lambda batch=batch: graded(material.kind, batch, verifier)) is not None:
            troubles += await _alone(material, batch, verifier)
    return troubles


async def _alone(material: Material, batch: Sequence[Attempt[Task]], verifier: Verifier) -> list[str]:
    """The texts of a batch that trouble comes from."""
    troubles = []
    for attempt in batch:
        if error := await _raised(lambda attempt=attempt: graded(material.kind, [attempt], verifier)):
            troubles.append(f"{named(attempt.task)}: grading {excerpt(attempt.text)} raises {error}")
    return troubles or [f"grading {len(batch)} texts together raises, each by itself does not"]


async def _raised(grade: Callable[[], Awaitable[object]]) -> str | None:
    try:
        await grade()
    except (MachineError, VerifierFault):
        raise  # it says nothing about the family
    except Exception as error:
        return one_line(error)
    return None
