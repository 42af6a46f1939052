"""A whole evaluation, from what the user names to a report."""

import asyncio
import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from redqueen import __version__
from redqueen.command import printable
from redqueen.config import open_verifier
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import MemberId, MemberState
from redqueen.errors import InputError
from redqueen.evals.answers import GREEDY, RESULTS, Kept, settle
from redqueen.evals.asking import Encode, How, ask, encoder, positions
from redqueen.evals.data import Loaded
from redqueen.evals.figures import sheet
from redqueen.evals.protocol import Prompts
from redqueen.evals.report import BARE, Measured, Report, measured
from redqueen.exam.examinees import Asked, Examinees, find, seated
from redqueen.runs import benchmarks
from redqueen.runs.store import RECORDS
from redqueen.runs.whole import write_text
from redqueen.settings import Config
from redqueen.verifier import LocalVerifier


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
    examinees = find(whats, role)
    if against is not None and against not in {group.what for group in examinees.groups}:
        raise InputError(f"{against} is not among what is evaluated", "name it there too, spelt the same")
    with open_verifier(settings.verifier) as verifier, seated(examinees, settings) as engine:
        base = engine.base
        encode = encoder(base, prompts)
        how = How(prompts, attempts, temperature, max_tokens, positions(base))
        computed = {"device": engine.device.type, "dtype": str(engine.dtype).removeprefix("torch.")}
        settle(
            folder,
            {
                "base": examinees.base,
                "prompts": str(prompts),
                "temperature": temperature,
                **computed,
                "weights": {name: fingerprint(state) for name, state in examinees.members.items()},
                "benchmarks": {
                    each.benchmark.name: {"sha256": each.sha256, "max_tokens": max_tokens or each.benchmark.tokens}
                    for each in loaded
                },
            },
        )
        names: dict[str, MemberId | None] = {BARE: None} | {name: name for name in examinees.members}
        found = [
            asyncio.run(_one(engine, verifier, encode, each, examinees, names, how, k, against, folder))
            for each in loaded
        ]
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
    kept = Kept(folder / "answers" / f"{loaded.benchmark.name}.jsonl")
    try:
        wanted = [
            (who, item.id, number)
            for item in loaded.items
            for who in names
            for number in (GREEDY, *range(how.attempts))
        ]
        open_ones = sum(each not in kept.found for each in wanted)
        known = f", {len(wanted) - open_ones:,} of them known" if open_ones < len(wanted) else ""
        _say(f"{loaded.benchmark.title}: {len(loaded.items):,} tasks, {len(wanted):,} answers{known}")
        seconds = await ask(engine, encode, verifier, loaded, names, how, kept.found, kept.add)
    finally:
        kept.close()
    items = [item.id for item in loaded.items]
    sheets = {who: sheet(kept.found, who, items, how.attempts, k) for who in names}
    return measured(loaded, sheets, examinees, against, how.attempts, k, seconds)


def fingerprint(state: MemberState) -> str:
    """Of a member's weights."""
    digest = hashlib.sha256()
    for name, factors in sorted(state.factors.items()):
        digest.update(name.encode())
        for factor in factors:
            digest.update(factor.contiguous().float().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def _keep_with_runs(report: Report, examinees: Examinees) -> None:
    """For `redqueen compare`: what whole roles of a run came to."""
    found: dict[Path, list[benchmarks.Result]] = {}
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
                )
                for line in each.lines
                if line.what == group.what and line.role == (group.role and str(group.role)) and line.mean is not None
            )  # fmt: skip
    for run, results in found.items():
        benchmarks.keep(run, results)


def _json(value: Any) -> str:
    import json

    return json.dumps(value, indent=1) + "\n"


def _say(line: str) -> None:
    print(f"redqueen: {printable(line)}", file=sys.stderr, flush=True)
