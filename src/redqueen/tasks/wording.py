"""What the prompts of all families are put together from: paragraphs, fenced blocks, earlier turns."""

from collections.abc import Mapping, Sequence

from redqueen.tasks.protocol import Form, Message, Prompt

REFERENCES = {Form.SHORT: 2, Form.LONG: 4, Form.DIRECT: 4}
"""How many earlier tasks a teacher is shown."""


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
