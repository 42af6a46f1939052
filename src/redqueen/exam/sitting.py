"""A whole exam, from what the user names to a report.

How texts are asked for (the prompts' form, the temperature, the longest attempt) is what the examinees were trained
with, unless the options say otherwise; where it is computed is this machine's business.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from redqueen.config import open_verifier
from redqueen.engine.known import EMBEDDED
from redqueen.errors import InputError
from redqueen.exam.exam import examine
from redqueen.exam.examinees import Asked, agreed, find, seated
from redqueen.exam.figures import in_order
from redqueen.exam.named import exam_file, usual_exam
from redqueen.exam.report import Report, report
from redqueen.fitting import Progress, say
from redqueen.settings import Config
from redqueen.tasks.library import ExamTask, read_exam, read_held_out, validated_exam
from redqueen.tasks.protocol import Form

_BARE = ""
"""The bare base among the examinees: no member has this name."""


def sit(
    whats: Sequence[str], tasks: str | None, bands: Sequence[str], role: Asked, attempts: int, k: int, settings: Config
) -> Report:
    """Examine all that these runs, PEFT folders and bases have, and their base."""
    examinees = find(whats, role, settings)
    file = usual_exam(examinees.base) if tasks is None else exam_file(tasks)
    drafts = read_exam(file)
    there, bands = in_order(each.band for each in drafts), in_order(bands)
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
        examinees = replace(examinees, notes=(*examinees.notes, *_not_kept_out(exam, runs)))
        with seated(examinees, settings) as engine:
            names: dict[str, str | None] = {_BARE: None} | {name: name for name in examinees.members}
            asked = f"{len(exam):,} tasks, {attempts} sampled and 1 greedy attempt at each"
            say(f"{asked}, by {', '.join(['the base', *examinees.members])}")
            progress = Progress("exam", 0, len(exam) * (attempts + 1) * len(names))
            answers = asyncio.run(
                examine(
                    engine, verifier, names, exam,
                    form=form, attempts=attempts, temperature=temperature, max_tokens=max_tokens, heard=progress.more,
                )
            )  # fmt: skip
            computed = {"device": engine.device.type, "dtype": str(engine.dtype).removeprefix("torch.")}
    given = {"form": str(form), "attempts": attempts, "k": k, "temperature": temperature, "max_tokens": max_tokens}
    how = {"exam": str(file), "bands": bands or there, **given, **computed}
    return report(examinees, exam, answers.pop(_BARE), answers, how)


def _not_kept_out(exam: Sequence[ExamTask], runs: Mapping[str, Config]) -> list[str]:
    """A line for each run whose teachers could have proposed what is asked, by its held-out files as they are now."""
    found: list[str] = []
    asked = [each.task.part_keys for each in exam]
    held_out = {name: _keys(name) for name in {each for one in runs.values() for each in one.guard.held_out}}
    for what, settings in runs.items():
        files = [(name, held_out[name]) for name in settings.guard.held_out]
        kept = frozenset[str]().union(*(keys for _, keys in files if keys is not None))
        unread = [name for name, keys in files if keys is None]
        open_to_it = sum(kept.isdisjoint(keys) for keys in asked)
        if open_to_it:
            tasks = f"{open_to_it:,} of these {len(exam):,} tasks"
            doubt = f", unless {', '.join(unread)} did, which cannot be read here" if unread else ""
            found.append(f"{what} did not keep {tasks} out of its race (guard.held_out){doubt}")
    return found


def _keys(held_out: str) -> frozenset[str] | None:
    """Of the programs in a held-out file; None where it cannot be read any more."""
    try:
        return read_held_out([exam_file(held_out)]).keys
    except InputError:
        return None
