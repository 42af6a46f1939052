"""An evaluation on benchmarks, from the subjects to the report. Every answer is kept in a folder."""

import asyncio
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from redqueen import __version__
from redqueen.cluster.connect import open_judges
from redqueen.console import Progress, say, span_text
from redqueen.engine.protocol import MemberState
from redqueen.engine.queued import QueuedEngine
from redqueen.errors import InputError, UserError
from redqueen.evals.answers import GREEDY, RESULTS, Answer, AnswerId, AnswerStore, note_settings, read_answers
from redqueen.evals.asking import Encode, Question, Sampling, ask, encoder, positions, questions
from redqueen.evals.data import LoadedBenchmark
from redqueen.evals.figures import Accuracy, sheet
from redqueen.evals.protocol import HasSubsets, Item, Prompts
from redqueen.evals.report import BenchmarkReport, EvaluationReport, Line, benchmark_report, rival
from redqueen.evals.subjects import Group, Subjects, computed_on, open_subjects
from redqueen.keys import key
from redqueen.runs import benchmarks
from redqueen.runs.atomic import write_text
from redqueen.settings import Config
from redqueen.verifier import StrictVerifier, Verifier


def evaluate(
    subjects: Subjects,
    loaded: Sequence[LoadedBenchmark],
    folder: Path,
    *,
    prompts: Prompts,
    attempts: int,
    k: int,
    temperature: float,
    max_tokens: int | None,
    against: str | None,
    settings: Config,
) -> EvaluationReport:
    """Evaluate the subjects and their base on these benchmarks. Answers that are in the folder are not sampled again.
    `max_tokens` is each benchmark's own when None."""
    _check_rivals(subjects, against)
    start = time.perf_counter()
    with open_judges(settings) as verifier, open_subjects(subjects, settings) as engine:
        encode = encoder(engine.base, prompts)
        computed = computed_on(engine)
        samplings = {
            benchmark.name: Sampling(
                prompts=prompts,
                temperature=temperature,
                max_tokens=max_tokens or benchmark.benchmark.tokens,
                positions=positions(engine.base),
            )
            for benchmark in loaded
        }
        note_settings(folder, _settings(subjects, loaded, samplings) | computed)
        how = {
            "prompts": str(prompts),
            "attempts": attempts,
            "k": k,
            "temperature": temperature,
            "max_tokens": max_tokens,
            "against": against,
            "redqueen": __version__,
        }
        say(f"{_who(subjects)}: ready after {span_text(time.perf_counter() - start)}")
        wanted = {benchmark.name: _questions(benchmark, subjects, attempts) for benchmark in loaded}
        reports: list[BenchmarkReport] = []
        unkept: list[UserError | OSError] = []
        try:
            for benchmark in loaded:
                sampling = samplings[benchmark.name]
                answers, seconds = asyncio.run(
                    _answers(engine, verifier, encode, benchmark, wanted[benchmark.name], sampling, folder)
                )
                sheets = {name: sheet(answers, name, benchmark.items, attempts) for name in subjects.in_engine}
                subsets = asyncio.run(find_subsets(benchmark, verifier))
                told = benchmark_report(benchmark, sheets, subjects, against, k, seconds, sampling.max_tokens, subsets)
                reports.append(told)
                try:
                    _keep_with_runs(told, subjects, how | computed)
                except (UserError, OSError) as error:
                    # A run that takes no results must not keep the other benchmarks from being asked.
                    unkept.append(error)
        except KeyboardInterrupt:
            say(_stopped(folder, wanted))
            verifier.close()
            # The engine's thread may be in the middle of minutes of work. What is on the disk is whole at any moment.
            os._exit(130)
    notes = [*subjects.notes, *(note for benchmark in loaded for note in benchmark.notes)]
    report = EvaluationReport(subjects.base, how | computed, tuple(reports), tuple(notes))
    write_text(folder / RESULTS, json.dumps(report.as_json(), indent=1) + "\n")
    if unkept:
        raise unkept[0]
    return report


def _who(subjects: Subjects) -> str:
    adapters, different = len(subjects.in_engine) - 1, len(set(subjects.in_engine.values())) - 1
    if not adapters:
        return subjects.base
    alike = f", {different:,} of them different," if different < adapters else ""
    return f"{adapters:,} adapter{'s' if adapters > 1 else ''}{alike} and {subjects.base}"


def _check_rivals(subjects: Subjects, against: str | None) -> None:
    if against is None:
        return
    there = list(dict.fromkeys(group.what for group in subjects.groups))
    if against not in there:
        mend = f"name one of {', '.join(there)}" if there else "add it there"
        raise InputError(f"--against {against} is not among the arguments", mend)
    for group in subjects.groups:
        rival(subjects, group, against)


def _questions(loaded: LoadedBenchmark, subjects: Subjects, attempts: int) -> list[Question]:
    def key_of(item: Item, number: int) -> int:
        return key("eval", loaded.name, item.id, number)

    return questions(loaded.items, subjects.in_engine, (GREEDY, *range(attempts)), key_of)


async def _answers(
    engine: QueuedEngine,
    verifier: Verifier,
    encode: Encode,
    loaded: LoadedBenchmark,
    wanted: Sequence[Question],
    sampling: Sampling,
    folder: Path,
) -> tuple[Mapping[AnswerId, Answer], float]:
    """All answers to one benchmark, and the seconds that sampling and grading the missing ones took."""
    benchmark = loaded.benchmark
    with closing(AnswerStore(folder, benchmark.name)) as store:
        missing = [question for question in wanted if question.id not in store.answers]
        known = len(wanted) - len(missing)
        kept = f", {known:,} of them known" if known else ""
        say(f"{benchmark.title}: {len(loaded.items):,} tasks, {len(wanted):,} answers{kept}")
        progress = Progress(benchmark.title, known, len(wanted))

        def keep(answer: Answer) -> None:
            store.add(answer)
            progress.more()

        start = time.perf_counter()
        judge = partial(benchmark.judge, prompts=sampling.prompts, verifier=StrictVerifier(verifier))
        await ask(engine, encode, benchmark, missing, sampling, judge=judge, together="answer", keep=keep)
        return store.answers, time.perf_counter() - start


async def find_subsets(loaded: LoadedBenchmark, verifier: Verifier) -> Sequence[str]:
    """The subset of each item; none where the benchmark has no subsets."""
    benchmark = loaded.benchmark
    return await benchmark.subsets(loaded.items, StrictVerifier(verifier)) if isinstance(benchmark, HasSubsets) else ()


def _settings(
    subjects: Subjects, loaded: Sequence[LoadedBenchmark], samplings: Mapping[str, Sampling]
) -> dict[str, Any]:
    """What all answers in one folder must have in common."""
    first = next(iter(samplings.values()))
    return {
        "base": subjects.base,
        "prompts": str(first.prompts),
        "temperature": first.temperature,
        "weights": _fingerprints(subjects.members),
        "benchmarks": {
            benchmark.name: {
                "sha256": benchmark.sha256,
                "beside_sha256": benchmark.beside_sha256,
                "max_tokens": samplings[benchmark.name].max_tokens,
            }
            for benchmark in loaded
        },
    }


def _stopped(folder: Path, wanted: Mapping[str, Sequence[Question]]) -> str:
    kept = sum(len({question.id for question in wanted[name]} & read_answers(folder, name).keys()) for name in wanted)
    total = sum(map(len, wanted.values()))
    return f"stopped: {kept:,} of {total:,} answers are kept in {folder}; the same command goes on from there"


def _fingerprints(members: Mapping[str, MemberState]) -> dict[str, str]:
    with ThreadPoolExecutor() as pool:
        return dict(zip(members, pool.map(fingerprint, members.values()), strict=True))


def fingerprint(state: MemberState) -> str:
    """A hash of a member's weights, rank and alpha."""
    digest = hashlib.sha256(f"{state.rank} {float(state.alpha)!r} ".encode())
    for name, factors in sorted(state.factors.items()):
        digest.update(name.encode())
        for factor in factors:
            digest.update(factor.contiguous().float().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def _keep_with_runs(of_one: BenchmarkReport, subjects: Subjects, how: Mapping[str, Any]) -> None:
    """Store a benchmark's scores with their runs as soon as they are there: of whole roles for `redqueen compare`, of
    each member for its card."""
    by_run: dict[Path, list[benchmarks.Result]] = {}
    for group in subjects.groups:
        if group.run is None:
            continue
        for line in of_one.lines:
            if line.what == group.what and line.role == (group.role and str(group.role)):
                by_run.setdefault(group.run, []).extend(_results(of_one, group, line, how))
    for run, results in by_run.items():
        benchmarks.keep(run, results)


def _results(of_one: BenchmarkReport, group: Group, line: Line, how: Mapping[str, Any]) -> Iterator[benchmarks.Result]:
    """Of each member, and of all of them where they are a whole role."""
    temperature, usual_tokens = how["temperature"], of_one.loaded.benchmark.tokens
    scored: list[tuple[str | None, list[str], Accuracy]] = [
        (group.ids[name], [name], score) for name, score in line.members.items()
    ]
    if group.whole and line.mean is not None:
        scored.append((None, list(line.members), line.mean))
    for member, whose, score in scored:
        gain = score.gain if how["against"] is None else None
        yield benchmarks.Result(
            benchmark=line.benchmark,
            title=line.title,
            measure=line.name,
            prompts=how["prompts"],
            role=line.role,
            step=group.step or 0,
            tasks=line.tasks,
            sha256=of_one.loaded.sha256,
            value=score.value,
            error=score.error,
            tokens=sum(of_one.sheets[name].tokens for name in whose),
            temperature=temperature if line.sampled and temperature != benchmarks.TEMPERATURE else None,
            max_tokens=of_one.max_tokens if of_one.max_tokens != usual_tokens else None,
            quantise=None if how["quantise"] == "none" else how["quantise"],
            member=member,
            base=line.base.value,
            gain=None if gain is None else gain.ends,
        )
