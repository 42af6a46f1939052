"""The check that prompts keep their secret."""

from redqueen.tasks.soundness import texts
from redqueen.tasks.soundness.findings import Finding, excerpt, failed, named, ok, untried
from redqueen.tasks.soundness.material import Material
from redqueen.verifier import Verifier

TELLING_CHARS = 16
"""A shorter answer may stand in a question by chance, or as one of those to choose from: of code's 8 characters and
more, 1 in 100 do, of 12 and more none."""


async def answer_hidden(material: Material, verifier: Verifier) -> Finding:
    """No prompt's last message has the answer in it, whatever the form."""
    if not material.golds:
        return untried("no answers")
    shown = [
        (form, task, text)
        for form, kind in material.forms.items()
        for task, gold in material.golds
        for text in _telling(gold)
        if text in kind.solve_prompt(task).messages[-1]["content"]
    ]
    prompts = len(material.golds) * len(material.forms)
    given_away = len({(form, task.id) for form, task, _ in shown})
    figure, values = f"{given_away:,} of {prompts:,} tell", {"prompts": prompts, "given_away": given_away}
    if not shown:
        return ok(figure, values)
    form, task, text = shown[0]
    return failed(
        figure,
        f"{given_away:,} of {prompts:,} prompts have the answer in their last message",
        example=f"{named(task)}, form {form}: {excerpt(text)} is in the prompt",
        mend="leave it out of `solve_prompt`, or reject in `validate` the tasks that show their answer",
        values=values,
    )


def _telling(gold: str) -> list[str]:
    """A fenced block in full, and what it says where nobody would come upon it by chance."""
    said = texts.inside(gold).strip()
    return [*([gold] if texts.is_fenced(gold) else []), *([said] if len(said) >= TELLING_CHARS else [])]
