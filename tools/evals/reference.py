"""Our graders beside the reference ones:
`python tools/evals/reference.py FOLDER [--evalplus EXECUTABLE] [--cruxeval FOLDER]`.

FOLDER has the benchmarks as `redqueen eval --data` reads them, and evalplus_ref_samples/test.jsonl.gz: completions with
the verdicts of EvalPlus' checker. With --evalplus, `evalplus.evaluate` of an environment of its own and ours check one
model's HumanEval completions in turns, and the seconds stand side by side. With --cruxeval, a checkout of
facebookresearch/cruxeval, its recorded verdicts on CodeLlama-7B's answers are compared with ours.
"""

import argparse
import asyncio
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from decimal import localcontext
from pathlib import Path
from typing import Any

from redqueen.evals.asking import GRADED_AT_ONCE
from redqueen.evals.data import find
from redqueen.evals.evalplus import EvalPlus
from redqueen.evals.extraction import numeral
from redqueen.evals.protocol import Grade, HasSubsets, Item, Prompts
from redqueen.plugins import BENCHMARKS
from redqueen.verifier import LocalVerifier

TIMED, TURNS = "Qwen2.5-Coder-7B base", 3
FULL = "HumanEvalPlus.jsonl.gz"
"""All of EvalPlus' tests."""


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def completions(folder: Path) -> list[dict[str, Any]]:
    """With EvalPlus' verdicts."""
    return read(folder / "evalplus_ref_samples" / "test.jsonl.gz")


async def graded(
    benchmark: EvalPlus, asked: list[tuple[Item, str]], verifier: LocalVerifier
) -> tuple[list[Grade], float]:
    """The grades, and the seconds that they took."""
    start, few = time.perf_counter(), asyncio.Semaphore(GRADED_AT_ONCE)

    async def one(item: Item, text: str) -> Grade:
        async with few:
            return await benchmark.grade_program(item, text, verifier)

    grades = await asyncio.gather(*(one(item, text) for item, text in asked))
    return list(grades), time.perf_counter() - start


async def programs(folder: Path, verifier: LocalVerifier) -> None:
    """Canonical solutions, and the completions with known verdicts."""
    samples = completions(folder)
    for name in ("humaneval_plus", "mbpp_plus"):
        benchmark = BENCHMARKS.get(name)
        assert isinstance(benchmark, EvalPlus)
        items = {item.id: item for item in find(benchmark, folder).items}
        start = time.perf_counter()
        await asyncio.gather(*(benchmark.tests(item, verifier) for item in items.values()))
        print(f"{benchmark.title}: tests prepared in {time.perf_counter() - start:.1f} s")

        own = [(item, benchmark.solution(item.row)) for item in items.values()]
        grades, seconds = await graded(benchmark, own, verifier)
        base, plus = sum(each.parts["base"] for each in grades), sum(each.correct for each in grades)
        print(f"  canonical solutions: base {base}, base and plus {plus} of {len(grades)} ({seconds:.1f} s)")
        for model in sorted({each["model"] for each in samples}):
            mine = [each for each in samples if each["model"] == model and each["task_id"] in items]
            asked = [(items[each["task_id"]], each["solution"]) for each in mine]
            grades, seconds = await graded(benchmark, asked, verifier)
            base, plus = sum(each.parts["base"] for each in grades), sum(each.correct for each in grades)
            print(f"  {model}: base {base}, base and plus {plus} of {len(mine)} ({seconds:.1f} s)")
            for sample, grade_ in zip(mine, grades, strict=True):
                theirs = sample["evalplus_base"] == "pass", sample["evalplus_plus"] == "pass"
                if (grade_.parts["base"], grade_.correct) != (theirs[0], all(theirs)):
                    said = f"{sample['evalplus_base']}/{sample['evalplus_plus']}"
                    print(f"    {sample['task_id']}: recorded {said}, here {grade_.parts['base']}/{grade_.correct} "
                          f"({grade_.why or 'passed'})")  # fmt: skip


async def answers(folder: Path, verifier: LocalVerifier) -> None:
    """The right answers against themselves, and numbers against themselves plus one."""
    for name in ("math500", "minerva_math", "olympiadbench", "gsm8k", "amc23", "aime24", "aime25"):
        benchmark = BENCHMARKS.get(name)
        items = find(benchmark, folder).items
        golds = [benchmark.gold(item.row) for item in items]  # pyright: ignore[reportAttributeAccessIssue]
        right = await benchmark.grade(list(zip(items, golds, strict=True)), verifier)
        with localcontext(prec=100):
            values = [(item, numeral(gold)) for item, gold in zip(items, golds, strict=True)]
            more = [(item, format(value + 1, "f")) for item, value in values if value is not None]
        wrong = await benchmark.grade(more, verifier)
        accepted = [item.id for (item, _), grade in zip(more, wrong, strict=True) if grade.correct]
        print(f"{benchmark.title}: gold against itself {sum(each.correct for each in right)} of {len(right)}; "
              f"of {len(more)} numbers plus one {len(accepted)} accepted {accepted or ''}")  # fmt: skip


async def execution(folder: Path, checkout: Path | None, verifier: LocalVerifier) -> None:
    """The canonical answers to CRUXEval, how many of its outputs are right as inputs, and recorded verdicts."""
    for name, mode in (("cruxeval_o", "output"), ("cruxeval_i", "input")):
        benchmark = BENCHMARKS.get(name)
        items = {item.id: item for item in find(benchmark, folder).items}
        own = [(item, f"assert f({item.row['input']}) == {item.row['output']}") for item in items.values()]
        start, cpu = time.perf_counter(), time.process_time()
        read = [(item, benchmark.extract(item, text, Prompts.RAW)) for item, text in own]
        right = sum(grade.correct for grade in await benchmark.grade(read, verifier))
        print(f"{benchmark.title}: canonical answers {right} of {len(own)} ({time.perf_counter() - start:.1f} s, "
              f"{time.process_time() - cpu:.2f} s of CPU time outside guests)")  # fmt: skip
        if isinstance(benchmark, HasSubsets):
            print(f"  {dict(Counter(await benchmark.subsets(list(items.values()), verifier)))}")
        if checkout is None:
            continue
        recorded = f"codellama-7b_temp0.2_{mode}"
        scored = checkout / "samples" / "evaluation_results" / f"sample_scored_{recorded}.json"
        found = json.loads(scored.read_text())
        texts, verdicts = found["raw_generations"], found["raw_scored_generations"]
        asked = [(items[id], text.strip(), verdict)
                 for id in items for text, verdict in zip(texts[id], verdicts[id], strict=True)]  # fmt: skip
        start = time.perf_counter()
        grades = await benchmark.grade([(item, text or None) for item, text, _ in asked], verifier)
        differ = [f"{item.id}: {text}: recorded {verdict} ({grade.why or 'passed'} here)"
                  for (item, text, verdict), grade in zip(asked, grades, strict=True)
                  if verdict != grade.correct]  # fmt: skip
        print(f"  recorded verdicts: {len(asked) - len(differ)} of {len(asked)} alike "
              f"({time.perf_counter() - start:.1f} s)", *differ, sep="\n    ")  # fmt: skip


def evalplus(executable: str, folder: Path) -> None:
    """Each as it comes, and then in turns with as many workers as ours."""
    benchmark = BENCHMARKS.get("humaneval_plus")
    assert isinstance(benchmark, EvalPlus)
    items = {item.id: item for item in find(benchmark, folder).items}
    mine = [each for each in completions(folder) if each["model"] == TIMED and each["task_id"] in items]
    asked = [(items[each["task_id"]], each["solution"]) for each in mine]
    workers = len(os.sched_getaffinity(0))
    ratios: list[float] = []
    with LocalVerifier() as verifier, tempfile.TemporaryDirectory() as where:
        data = Path(where) / "data.jsonl"
        data.write_bytes(gzip.decompress((folder / "humaneval_plus" / FULL).read_bytes()))
        env = os.environ | {"HUMANEVAL_OVERRIDE_PATH": str(data), "XDG_CACHE_HOME": where}
        asyncio.run(graded(benchmark, asked, verifier))
        for how in ([], *[["--parallel", str(workers)]] * TURNS):
            _, ours = asyncio.run(graded(benchmark, asked, verifier))
            file = Path(where) / "samples.jsonl"
            file.write_text("".join(json.dumps({k: each[k] for k in ("task_id", "solution")}) + "\n" for each in mine))
            file.with_name("samples_eval_results.json").unlink(missing_ok=True)
            start = time.perf_counter()
            command = [executable, "--dataset", "humaneval", "--samples", str(file), *how]
            ran = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
            whole = time.perf_counter() - start
            # Its last progress bar is that of the checking.
            minutes, seconds = re.findall(rf" {len(mine)}/{len(mine)} \[(\d+):(\d+)<", ran.stderr)[-1]
            checking = 60 * int(minutes) + int(seconds)
            print(
                f"evalplus.evaluate, {' '.join(how) or 'its defaults'}: checking {checking} s by its progress bar, "
                f"{checking / ours:.1f} times ours ({ours:.1f} s before it); the whole command {whole:.1f} s",
                flush=True,
            )
            ratios.append(checking / ours)
    print(f"with {workers} workers each: {statistics.median(ratios[1:]):.1f} times ours, median of {TURNS} turns")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="the benchmarks")
    parser.add_argument("--evalplus", metavar="EXECUTABLE", help="evalplus.evaluate of an environment of its own")
    parser.add_argument("--cruxeval", type=Path, metavar="FOLDER", help="a checkout of facebookresearch/cruxeval")
    given = parser.parse_args()
    with LocalVerifier() as verifier:
        asyncio.run(programs(given.folder, verifier))
        asyncio.run(answers(given.folder, verifier))
        asyncio.run(execution(given.folder, given.cruxeval, verifier))
    if given.evalplus:
        sys.stdout.flush()
        evalplus(given.evalplus, given.folder)


if __name__ == "__main__":
    main()
