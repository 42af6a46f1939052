"""A whole exam, from what the user names to a report.

How texts are asked for (the prompts' form, the temperature, the longest attempt) is what the examinees were trained
with, unless the options say otherwise; where it is computed is this machine's business.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from redqueen.config import open_verifier
from redqueen.engine.pull import EMBEDDED, exam_file
from redqueen.errors import InputError
from redqueen.exam.exam import examine
from redqueen.exam.examinees import Asked, agreed, find, seated
from redqueen.exam.report import Report, report
from redqueen.settings import Config
from redqueen.tasks.library import read_exam, validated_exam
from redqueen.tasks.protocol import Form

_BARE = ""
"""The bare base among the examinees: no member has this name."""


def sit(
    whats: Sequence[str], tasks: str | None, bands: Sequence[str], role: Asked, attempts: int, k: int, settings: Config
) -> Report:
    """Examine all that these runs, PEFT folders and bases have, and their base."""
    examinees = find(whats, role)
    file = _tasks_file(tasks, examinees.base)
    drafts = read_exam(file)
    there, bands = dict.fromkeys(each.band for each in drafts), list(dict.fromkeys(bands))
    for band in bands:
        if band not in there:
            raise InputError(f"{file} has no band {band!r}", f"it has {', '.join(there)}")
    drafts = [each for each in drafts if not bands or each.band in bands]
    runs = examinees.settings
    form = Form(agreed("tasks", "form", settings, runs, "short" if examinees.base in EMBEDDED else "long"))
    temperature: float = agreed("rl", "temperature", settings, runs, settings.rl.temperature)
    max_tokens: int = agreed("tasks", "attempt_tokens", settings, runs, settings.tasks.attempt_tokens)
    with open_verifier(settings.verifier) as verifier:
        exam = asyncio.run(validated_exam(drafts, verifier))
        with seated(examinees, settings) as engine:
            names: dict[str, str | None] = {_BARE: None} | {name: name for name in examinees.members}
            asked = f"{len(exam):,} tasks, {attempts} sampled and 1 greedy attempt at each"
            print(f"redqueen: {asked}, by {', '.join(['the base', *examinees.members])}", file=sys.stderr)
            answers = asyncio.run(
                examine(
                    engine, verifier, names, exam,
                    form=form, attempts=attempts, temperature=temperature, max_tokens=max_tokens,
                )
            )  # fmt: skip
            computed = {"device": engine.device.type, "dtype": str(engine.dtype).removeprefix("torch.")}
    given = {"form": str(form), "attempts": attempts, "k": k, "temperature": temperature, "max_tokens": max_tokens}
    how = {"exam": str(file), "bands": list(bands or there), **given, **computed}
    return report(examinees, exam, answers.pop(_BARE), answers, how)


def _tasks_file(asked: str | None, base: str) -> Path:
    if asked is not None:
        return exam_file(asked)
    if base in EMBEDDED and EMBEDDED[base].exam.is_file():
        return EMBEDDED[base].exam
    raise InputError(f"the base {base} has no exam of its own", "name one with --tasks FILE.jsonl")
