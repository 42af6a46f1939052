"""A whole evaluation, from what the user names to a report."""

import asyncio
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from redqueen import __version__
from redqueen.console import Progress, say
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import MemberId, MemberState
from redqueen.errors import InputError
from redqueen.evals.answers import GREEDY, RESULTS, Answer, Kept, settle
from redqueen.evals.asking import Encode, How, ask, encoder, positions
from redqueen.evals.data import Loaded
from redqueen.evals.figures import sheet
from redqueen.evals.protocol import Prompts
from redqueen.evals.report import BARE, Measured, Report, measured, rival
from redqueen.exam.examinees import Asked, Examinees, find, seated
from redqueen.resources import open_verifier
from redqueen.runs import benchmarks
from redqueen.runs.atomic import write_text
from redqueen.runs.store import RECORDS
from redqueen.settings import Config
from redqueen.verifier import LocalVerifier

"""Seconds."""


def evaluate(
    whats: Sequence[str],
    role: Asked,
    loaded: Sequence[Loaded],
    prompts: Prompts,
    attempts: int,
    k: int,
    temperature: float,
    max_tokens: int | None,
    against: str | None,
    folder: Path,
    settings: Config,
) -> Report:
    """All that these runs, members, PEFT folders and bases have, and their base, on these benchmarks."""
    examinees = find(whats, role, settings)
    if against is not None:
        if against not in {group.what for group in examinees.groups}:
            raise InputError(f"{against} is not among what is evaluated", "name it there too, spelt the same")
        for group in examinees.groups:
            rival(examinees, group, against)
    with open_verifier(settings.verifier) as verifier, seated(examinees, settings) as engine:
        base = engine.base
        encode = encoder(base, prompts)
        how = How(prompts, attempts, temperature, max_tokens, positions(base))
        computed = {"device": engine.device.type, "dtype": str(engine.dtype).removeprefix("torch.")}
        settle(folder, _settled(examinees, loaded, how) | computed)
        names: dict[str, MemberId | None] = {BARE: None} | {name: name for name in examinees.members}
        try:
            found = [
                asyncio.run(_one(engine, verifier, encode, each, examinees, names, how, k, against, folder))
                for each in loaded
            ]
        except KeyboardInterrupt:
            say(_stopped(folder, loaded, names, how))
            verifier.close()
            # The engine's thread may be in the middle of minutes of work. What is on the disk is whole at any moment.
            os._exit(130)
    notes = [*examinees.notes, *(note for each in loaded for note in each.notes)]
    given = {
        "prompts": str(prompts),
        "attempts": attempts,
        "k": k,
        "temperature": temperature,
        "max_tokens": max_tokens,
        "against": against,
        "redqueen": __version__,
    }
    report = Report(examinees.base, given | computed, tuple(found), tuple(notes))
    write_text(folder / RESULTS, _json(report.as_json()))
    _keep_with_runs(report, examinees)
    return report


def _settled(examinees: Examinees, loaded: Sequence[Loaded], how: How) -> dict[str, Any]:
    """What answers must have in common to stand in one folder."""
    return {
        "base": examinees.base,
        "prompts": str(how.prompts),
        "temperature": how.temperature,
        "weights": {name: fingerprint(state) for name, state in examinees.members.items()},
        "benchmarks": {
            each.benchmark.name: {
                "sha256": each.sha256,
                "beside_sha256": each.beside_sha256,
                "max_tokens": how.max_tokens or each.benchmark.tokens,
            }
            for each in loaded
        },
    }


async def _one(
    engine: LocalEngine,
    verifier: LocalVerifier,
    encode: Encode,
    loaded: Loaded,
    examinees: Examinees,
    names: Mapping[str, MemberId | None],
    how: How,
    k: int,
    against: str | None,
    folder: Path,
) -> Measured:
    kept = Kept(_path(folder, loaded))
    try:
        wanted = _wanted(loaded, names, how)
        known = sum(each in kept.found for each in wanted)
        told = f", {known:,} of them known" if known else ""
        title = loaded.benchmark.title
        say(f"{title}: {len(loaded.items):,} tasks, {len(wanted):,} answers{told}")
        progress = Progress(title, known, len(wanted))

        def keep(answer: Answer) -> None:
            kept.add(answer)
            progress.more()

        seconds = await ask(engine, encode, verifier, loaded, names, how, kept.found, keep)
    finally:
        kept.close()
    items = [item.id for item in loaded.items]
    sheets = {who: sheet(kept.found, who, items, how.attempts, k) for who in names}
    longest = how.max_tokens or loaded.benchmark.tokens
    return measured(loaded, sheets, examinees, against, how.attempts, k, seconds, longest)


def _path(folder: Path, loaded: Loaded) -> Path:
    return folder / "answers" / f"{loaded.benchmark.name}.jsonl"


def _wanted(loaded: Loaded, names: Iterable[str], how: How) -> list[tuple[str, str, int]]:
    numbers = (GREEDY, *range(how.attempts))
    return [(who, item.id, number) for item in loaded.items for who in names for number in numbers]


def _stopped(folder: Path, loaded: Sequence[Loaded], names: Iterable[str], how: How) -> str:
    kept = whole = 0
    for each in loaded:
        wanted = _wanted(each, names, how)
        whole += len(wanted)
        if _path(folder, each).is_file():
            found = Kept(_path(folder, each))
            found.close()
            kept += sum(one in found.found for one in wanted)
    return f"stopped: {kept:,} of {whole:,} answers are kept in {folder}; the same command goes on"


def fingerprint(state: MemberState) -> str:
    """Of a member's weights, and of how much they count."""
    digest = hashlib.sha256(f"{state.rank} {float(state.alpha)!r} ".encode())
    for name, factors in sorted(state.factors.items()):
        digest.update(name.encode())
        for factor in factors:
            digest.update(factor.contiguous().float().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def _keep_with_runs(report: Report, examinees: Examinees) -> None:
    """For `redqueen compare`: what whole roles of a run came to."""
    found: dict[Path, list[benchmarks.Result]] = {}
    temperature = report.how["temperature"]
    for group in examinees.groups:
        run = Path(group.what.rpartition(":")[0] if group.what.rpartition(":")[2].isdigit() else group.what)
        whole = group.role is not None or len(group.members) == 1
        if group.step is None or not whole or not (run / RECORDS).is_file():
            continue
        for each in report.benchmarks:
            tokens = sum(each.sheets[name].tokens for name in group.members)
            found.setdefault(run, []).extend(
                benchmarks.Result(
                    line.benchmark, line.title, line.measure, report.how["prompts"], line.role, group.step, line.tasks,
                    each.loaded.sha256, line.mean.value, line.mean.error, tokens,
                    temperature if line.sampled and temperature != benchmarks.TEMPERATURE else None,
                    each.max_tokens if each.max_tokens != each.loaded.benchmark.tokens else None,
                )
                for line in each.lines
                if line.what == group.what and line.role == (group.role and str(group.role)) and line.mean is not None
            )  # fmt: skip
    for run, results in found.items():
        benchmarks.keep(run, results)


def _json(value: Any) -> str:
    import json

    return json.dumps(value, indent=1) + "\n"
