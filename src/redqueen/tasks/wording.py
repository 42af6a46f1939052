"""What the prompts of all families are put together from: paragraphs, fenced blocks, earlier turns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from redqueen.tasks.protocol import Form, Message, Prompt, Task, TaskT

REFERENCES = {Form.SHORT: 2, Form.LONG: 4, Form.DIRECT: 4}
"""How many earlier tasks a teacher is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A task's text with its answer, as an earlier turn shows it."""

    text: str
    thought: str
    answer: str


def shown_answer(form: Form, thought: str, block: str) -> str:
    """An answer as an earlier turn shows it."""
    return paragraphs(thought, block) if form is Form.LONG else block


def ask(*parts: str, context: Mapping[str, str] | None = None, after: Sequence[tuple[str, str]] = ()) -> Prompt:
    """One user message from its paragraphs, after earlier turns: what was asked, and what was answered."""
    earlier: list[Message] = []
    for question, answer in after:
        earlier += [Message(role="user", content=question), Message(role="assistant", content=answer)]
    return Prompt((*earlier, Message(role="user", content=paragraphs(*parts))), context or {})


def paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def fenced(label: str, text: str) -> str:
    """A part as the contract wants it."""
    return f"```{label}\n{text}\n```"


def some(references: Sequence[TaskT], form: Form, rng: Random) -> list[TaskT]:
    """As many of the references as a teacher is shown, in random order, none with the same body twice."""
    distinct = list({task.body: task for task in references}.values())
    return rng.sample(distinct, min(REFERENCES[form], len(distinct)))


def propose_one(form: Form, label: str, drawn: Sequence[Task], *, short: str, first: str, another: str) -> Prompt:
    """Ask for a text like the bodies of these tasks: all in one message in the short form, otherwise as what was
    written before, each when it was asked for. The context has the keys of what is shown, so that a copy is known."""
    shown = [fenced(label, task.body or "") for task in drawn]
    context = {"shown": " ".join(task.near_key for task in drawn)}
    if form is Form.SHORT:
        return ask("\n\n".join(shown), short, context=context)
    requests = [first, *[another] * len(shown)]
    return ask(requests[-1], context=context, after=list(zip(requests, shown, strict=False)))


def solve_one(
    form: Form, label: str, text: str, *, question: str, notation: str = "", ending: str, examples: Sequence[Example]
) -> Prompt:
    """Ask for the answer to a text, after worked examples."""
    if form is Form.SHORT:
        return ask(fenced(label, text), "Write an answer.")
    earlier = [
        (
            paragraphs(question, notation, fenced(label, example.text), ending),
            shown_answer(form, example.thought, fenced("answer", example.answer)),
        )
        for example in examples
    ]
    return ask(question, fenced(label, text), ending, after=earlier)
