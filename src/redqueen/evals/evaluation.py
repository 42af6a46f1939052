"""A whole evaluation on benchmarks, from who is evaluated to a report; every answer is kept in a folder."""

import asyncio
import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from redqueen import __version__
from redqueen.console import Progress, say
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import MemberState
from redqueen.errors import InputError
from redqueen.evals.answers import GREEDY, RESULTS, Answer, AnswerId, AnswerStore, note_settings, read_answers
from redqueen.evals.asking import Encode, Question, Sampling, ask, encoder, positions, questions
from redqueen.evals.data import Loaded
from redqueen.evals.figures import sheet
from redqueen.evals.protocol import Prompts
from redqueen.evals.report import BenchmarkReport, EvaluationReport, benchmark_report, rival
from redqueen.evals.subjects import Subjects, computed_on, open_subjects
from redqueen.keys import key
from redqueen.resources import open_verifier
from redqueen.runs import benchmarks
from redqueen.runs.atomic import write_text
from redqueen.runs.records_file import RECORDS
from redqueen.settings.models import EngineConfig, VerifierConfig
from redqueen.verifier import Verifier


def evaluate(
    subjects: Subjects,
    loaded: Sequence[Loaded],
    folder: Path,
    *,
    prompts: Prompts,
    attempts: int,
    k: int,
    temperature: float,
    max_tokens: int | None,
    against: str | None,
    engine_settings: EngineConfig,
    verifier_settings: VerifierConfig,
) -> EvaluationReport:
    """Everybody and their base on these benchmarks. Every answer is kept in the folder; what is there is not asked for
    again. `max_tokens` is each benchmark's own when None."""
    if against is not None:
        if against not in {group.what for group in subjects.groups}:
            raise InputError(f"{against} is not among what is evaluated", "name it there too, spelt the same")
        for group in subjects.groups:
            rival(subjects, group, against)
    with open_verifier(verifier_settings) as verifier, open_subjects(subjects, engine_settings) as engine:
        encode = encoder(engine.base, prompts)
        computed = computed_on(engine)
        samplings = {
            each.benchmark.name: Sampling(
                prompts=prompts,
                temperature=temperature,
                max_tokens=max_tokens or each.benchmark.tokens,
                positions=positions(engine.base),
            )
            for each in loaded
        }
        note_settings(folder, _noted(subjects, loaded, samplings) | computed)
        asked = {each.benchmark.name: _questions(each, subjects, attempts) for each in loaded}
        found: list[BenchmarkReport] = []
        try:
            for each in loaded:
                name = each.benchmark.name
                answers, seconds = asyncio.run(
                    _benchmark(engine, verifier, encode, each, asked[name], samplings[name], folder)
                )
                sheets = {who: sheet(answers, who, each.items, attempts) for who in subjects.in_engine}
                found.append(benchmark_report(each, sheets, subjects, against, k, seconds, samplings[name].max_tokens))
        except KeyboardInterrupt:
            say(_stopped(folder, asked))
            verifier.close()
            # The engine's thread may be in the middle of minutes of work. What is on the disk is whole at any moment.
            os._exit(130)
    notes = [*subjects.notes, *(note for each in loaded for note in each.notes)]
    given = {
        "prompts": str(prompts),
        "attempts": attempts,
        "k": k,
        "temperature": temperature,
        "max_tokens": max_tokens,
        "against": against,
        "redqueen": __version__,
    }
    report = EvaluationReport(subjects.base, given | computed, tuple(found), tuple(notes))
    write_text(folder / RESULTS, json.dumps(report.as_json(), indent=1) + "\n")
    _keep_with_runs(report, subjects)
    return report


def _questions(loaded: Loaded, subjects: Subjects, attempts: int) -> list[Question]:
    name = loaded.benchmark.name
    numbers = (GREEDY, *range(attempts))
    return questions(loaded.items, subjects.in_engine, numbers, lambda item, number: key("eval", name, item.id, number))


async def _benchmark(
    engine: LocalEngine,
    verifier: Verifier,
    encode: Encode,
    loaded: Loaded,
    asked: Sequence[Question],
    sampling: Sampling,
    folder: Path,
) -> tuple[Mapping[AnswerId, Answer], float]:
    """All answers to one benchmark, and the seconds that those took which were not known."""
    benchmark = loaded.benchmark
    store = AnswerStore(folder, benchmark.name)
    try:
        missing = [question for question in asked if question.id not in store.answers]
        known = len(asked) - len(missing)
        told = f", {known:,} of them known" if known else ""
        say(f"{benchmark.title}: {len(loaded.items):,} tasks, {len(asked):,} answers{told}")
        progress = Progress(benchmark.title, known, len(asked))

        def keep(answer: Answer) -> None:
            store.add(answer)
            progress.more()

        start = time.perf_counter()
        judge = partial(benchmark.judge, prompts=sampling.prompts, verifier=verifier)
        await ask(engine, encode, benchmark, missing, sampling, judge=judge, together="answer", keep=keep)
        return store.answers, time.perf_counter() - start
    finally:
        store.close()


def _noted(subjects: Subjects, loaded: Sequence[Loaded], samplings: Mapping[str, Sampling]) -> dict[str, Any]:
    """What answers must have in common to stand in one folder."""
    first = next(iter(samplings.values()))
    return {
        "base": subjects.base,
        "prompts": str(first.prompts),
        "temperature": first.temperature,
        "weights": {name: fingerprint(state) for name, state in subjects.members.items()},
        "benchmarks": {
            each.benchmark.name: {
                "sha256": each.sha256,
                "beside_sha256": each.beside_sha256,
                "max_tokens": samplings[each.benchmark.name].max_tokens,
            }
            for each in loaded
        },
    }


def _stopped(folder: Path, asked: Mapping[str, Sequence[Question]]) -> str:
    kept = whole = 0
    for name, wanted in asked.items():
        answers = read_answers(folder, name)
        kept += sum(question.id in answers for question in wanted)
        whole += len(wanted)
    return f"stopped: {kept:,} of {whole:,} answers are kept in {folder}; the same command goes on"


def fingerprint(state: MemberState) -> str:
    """Of a member's weights, and of how much they count."""
    digest = hashlib.sha256(f"{state.rank} {float(state.alpha)!r} ".encode())
    for name, factors in sorted(state.factors.items()):
        digest.update(name.encode())
        for factor in factors:
            digest.update(factor.contiguous().float().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def _keep_with_runs(report: EvaluationReport, subjects: Subjects) -> None:
    """For `redqueen compare`: what whole roles of a run came to."""
    found: dict[Path, list[benchmarks.Result]] = {}
    temperature = report.how["temperature"]
    for group in subjects.groups:
        run = Path(group.what.rpartition(":")[0] if group.what.rpartition(":")[2].isdigit() else group.what)
        whole = group.role is not None or len(group.members) == 1
        if group.step is None or not whole or not (run / RECORDS).is_file():
            continue
        for each in report.benchmarks:
            tokens = sum(each.sheets[name].tokens for name in group.members)
            found.setdefault(run, []).extend(
                benchmarks.Result(
                    benchmark=line.benchmark,
                    title=line.title,
                    measure=line.measure,
                    prompts=report.how["prompts"],
                    role=line.role,
                    step=group.step,
                    tasks=line.tasks,
                    sha256=each.loaded.sha256,
                    value=line.mean.value,
                    error=line.mean.error,
                    tokens=tokens,
                    temperature=temperature if line.sampled and temperature != benchmarks.TEMPERATURE else None,
                    max_tokens=each.max_tokens if each.max_tokens != each.loaded.benchmark.tokens else None,
                )
                for line in each.lines
                if line.what == group.what and line.role == (group.role and str(group.role)) and line.mean is not None
            )
    for run, results in found.items():
        benchmarks.keep(run, results)
