"""A whole exam, from who is evaluated to a report."""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from redqueen.cluster.connect import open_judges
from redqueen.console import Progress, say
from redqueen.engine.protocol import MemberId
from redqueen.engine.queued import QueuedEngine
from redqueen.errors import InputError
from redqueen.evals.answers import GREEDY, Answer, AnswerId
from redqueen.evals.asking import Sampling, ask, encoded, questions
from redqueen.evals.benchmarks.exam import Exam
from redqueen.evals.exam_report import ExamReport, exam_report
from redqueen.evals.figures import Tally, tally
from redqueen.evals.protocol import Item, Prompts
from redqueen.evals.subjects import Subjects, computed_on, open_subjects
from redqueen.keys import key
from redqueen.runs import exams
from redqueen.settings import Config
from redqueen.tasks.families import Families
from redqueen.tasks.files import ExamTask, FileDraft, exam_file, read_held_out, validated_exam
from redqueen.tasks.protocol import Kind
from redqueen.verifier import StrictVerifier, Verifier


def evaluate_exam(
    subjects: Subjects,
    file: Path,
    drafts: Sequence[FileDraft],
    families: Families,
    *,
    bands: Sequence[str],
    attempts: int,
    k: int,
    temperature: float,
    max_tokens: int,
    settings: Config,
) -> ExamReport:
    """Everybody and their base on the tasks of an exam, which are from this file and of these bands."""
    with open_judges(settings) as verifier:
        tasks = asyncio.run(validated_exam(drafts, families, verifier))
        subjects = replace(subjects, notes=(*subjects.notes, *_not_kept_out(tasks, subjects.runs, families)))
        with open_subjects(subjects, settings) as engine:
            told = f"{len(tasks):,} tasks, {attempts} sampled and 1 greedy attempt at each"
            say(f"{told}, by {', '.join(['the base', *subjects.members])}")
            progress = Progress("exam", 0, len(tasks) * (attempts + 1) * len(subjects.in_engine))
            tallies = asyncio.run(
                examine(
                    engine, verifier, subjects.in_engine, tasks,
                    kinds=families.kinds, attempts=attempts, temperature=temperature, max_tokens=max_tokens,
                    answered=progress.more,
                )
            )  # fmt: skip
            computed = computed_on(engine)
    given = {"attempts": attempts, "k": k, "temperature": temperature, "max_tokens": max_tokens}
    read = {"unfenced": True} if families.unfenced else {}
    # Said of a quantised base alone: results that say nothing of it are of one that is stored as it is.
    stored = {} if computed["quantise"] == "none" else {"quantise": computed["quantise"]}
    asked = {"bands": list(bands), "form": str(families.form), **read, **given, **stored}
    report = exam_report(subjects, Exam(tasks, families.kinds).items, tallies, {"exam": str(file), **asked, **computed})
    digest = hashlib.sha256("\n".join(exam_task.task.id for exam_task in tasks).encode()).hexdigest()
    known = {path: name for name, path in families.exams.items()}
    notes = _keep_with_runs(report, subjects, known.get(file, file.stem), digest, asked)
    return replace(report, notes=(*report.notes, *notes))


def _keep_with_runs(
    report: ExamReport, subjects: Subjects, exam: str, digest: str, asked: Mapping[str, Any]
) -> list[str]:
    """Store what was found of runs with them, for their page and their members' cards; a line for each that cannot."""
    notes: list[str] = []
    for group in subjects.groups:
        if group.run is None or group.step is None:
            continue
        rows = {exams.BASE: report.rows[0]}
        for row in report.rows:
            if row.what == group.what and row.role == group.role:
                rows[group.ids.get(row.name, str(row.role))] = row
                if group.whole and len(group.members) == 1 and row.role is not None:
                    rows[str(row.role)] = row
        results = [
            exams.ExamResult(
                exam=exam,
                sha256=digest,
                how=asked,
                step=group.step,
                subject=subject,
                tasks=len(report.parts[0].places),
                figures={name: getattr(row.figures[0], name) for name in exams.TITLES},
                gains={name: getattr(row.gains[0], name).ends for name in exams.TITLES} if row.gains else {},
            )
            for subject, row in rows.items()
        ]
        try:
            exams.keep(group.run, results)
        except OSError as error:
            notes.append(f"{group.run / exams.FILE} cannot be written ({error.strerror}): the page will not show this")
    return notes


async def examine(
    engine: QueuedEngine,
    verifier: Verifier,
    subjects: Mapping[str, MemberId | None],
    tasks: Sequence[ExamTask],
    *,
    kinds: Mapping[str, Kind[Any, Any]],
    attempts: int,
    temperature: float,
    max_tokens: int,
    answered: Callable[[], None] = lambda: None,
    void: set[str] | None = None,
) -> dict[str, Tally]:
    """What each subject makes of the tasks. `answered` is called for every answer that is judged; `void` gets the ids
    of tasks that do not return their own output again, which are refused without it."""
    if not tasks or not subjects or attempts < 1:
        raise InputError("an exam needs tasks, subjects and attempts", "give at least one of each")
    exam = Exam(tasks, kinds, void)

    def key_of(item: Item, number: int) -> int:
        return key("exam", item.id, attempts if number == GREEDY else number)

    answers: dict[AnswerId, Answer] = {}

    def keep(answer: Answer) -> None:
        answers[answer.id] = answer
        answered()

    all_questions = questions(exam.items, subjects, (*range(attempts), GREEDY), key_of)
    sampling = Sampling(prompts=Prompts.CHAT, temperature=temperature, max_tokens=max_tokens, positions=None)
    judge = partial(exam.judge, prompts=sampling.prompts, verifier=StrictVerifier(verifier))
    encode = partial(encoded, engine.base)
    await ask(engine, encode, exam, all_questions, sampling, judge=judge, together="item", keep=keep)
    return {name: tally(answers, name, exam.items, attempts) for name in subjects}


def _not_kept_out(exam: Sequence[ExamTask], runs: Mapping[str, Config], families: Families) -> list[str]:
    """A line for each run whose teachers could have proposed what is asked, by its held-out files as they are now."""
    lines: list[str] = []
    task_keys = [exam_task.task.part_keys for exam_task in exam]
    held_out = {name: _keys(name, families) for name in {file for one in runs.values() for file in one.guard.held_out}}
    for what, settings in runs.items():
        files = [(name, held_out[name]) for name in settings.guard.held_out]
        kept = frozenset[str]().union(*(keys for _, keys in files if keys is not None))
        unread = [name for name, keys in files if keys is None]
        open_to_it = sum(kept.isdisjoint(keys) for keys in task_keys)
        if open_to_it:
            tasks = f"{open_to_it:,} of these {len(exam):,} tasks"
            doubt = f", unless {', '.join(unread)} did, which cannot be read here" if unread else ""
            lines.append(f"{what} did not keep {tasks} out of its race (guard.held_out){doubt}")
    return lines


def _keys(held_out: str, families: Families) -> frozenset[str] | None:
    """Of what a file holds out; None where it cannot be read any more."""
    try:
        return read_held_out([exam_file(held_out, families)], families).keys
    except InputError:
        return None
