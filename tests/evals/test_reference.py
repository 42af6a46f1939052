"""Our graders on a sample of the whole benchmarks, where REDQUEEN_BENCH names their folder."""

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from redqueen.evals.data import find
from redqueen.evals.evalplus import EvalPlus
from redqueen.evals.protocol import Item
from redqueen.plugins import BENCHMARKS
from redqueen.verifier import LocalVerifier

SLOW = frozenset({"HumanEval/36"})
"""Preparing its tests takes many seconds."""
NOT_COMPARED = frozenset({"Mbpp/599", "Mbpp/160"})
"""Their extreme inputs are left out here, or run out of time there."""
RECORDED = "evalplus_ref_samples"


@pytest.fixture(scope="module")
def whole(benchmarks_at_hand) -> Path:
    if not benchmarks_at_hand:
        pytest.skip("REDQUEEN_BENCH names no folder with the benchmarks")
    return Path(benchmarks_at_hand)


def programs(name: str) -> EvalPlus:
    benchmark = BENCHMARKS.get(name)
    assert isinstance(benchmark, EvalPlus)
    return benchmark


@pytest.mark.parametrize("name", ["math500", "minerva_math", "olympiadbench"])
def test_every_eighth_right_answer_equals_itself(name, whole, verifier):
    benchmark: Any = BENCHMARKS.get(name)
    loaded = find(benchmark, whole)
    assert (len(loaded.items), loaded.notes) == (benchmark.rows, ())
    items = loaded.items[::8]
    grades = asyncio.run(benchmark.grade([(item, benchmark.gold(item.row)) for item in items], verifier))
    assert [item.id for item, grade in zip(items, grades, strict=True) if not grade.correct] == []


def test_every_twelfth_own_solution_of_humaneval_plus_passes(whole, verifier):
    benchmark = programs("humaneval_plus")
    items = [item for item in find(benchmark, whole).items[::12] if item.id not in SLOW]
    assert len(items) >= 12

    async def grade() -> list[tuple[bool, Any]]:
        asked = (benchmark.grade_program(item, benchmark.solution(item.row), verifier) for item in items)
        return [(each.correct, each.parts) for each in await asyncio.gather(*asked)]

    assert asyncio.run(grade()) == [(True, {"base": True})] * len(items)


def test_every_fortieth_recorded_verdict_is_ours(whole, verifier):
    path = whole / RECORDED / "test.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    samples = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()][::40]
    samples = [each for each in samples if each["task_id"] not in SLOW | NOT_COMPARED]
    items: dict[str, tuple[EvalPlus, Item]] = {}
    for name in ("humaneval_plus", "mbpp_plus"):
        items |= {item.id: (programs(name), item) for item in find(programs(name), whole).items}
    asked = [(each, *items[each["task_id"]]) for each in samples if each["task_id"] in items]
    assert len(asked) >= 20
    differ = asyncio.run(_differences(asked, verifier))
    assert differ == []


async def _differences(asked: list[tuple[dict[str, Any], EvalPlus, Item]], verifier: LocalVerifier) -> list[str]:
    grades = await asyncio.gather(*(by.grade_program(item, each["solution"], verifier) for each, by, item in asked))
    found = []
    for (each, _, _), grade in zip(asked, grades, strict=True):
        base, plus = each["evalplus_base"] == "pass", each["evalplus_plus"] == "pass"
        if (grade.parts["base"], grade.correct) != (base, base and plus):
            found.append(f"{each['id']}: recorded {base}/{base and plus}, here {grade.parts['base']}/{grade.correct}")
    return found
