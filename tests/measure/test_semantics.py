"""Programs that do the same are one behaviour, whatever they look like; texts that read alike are near each other."""

import asyncio
import random
from collections.abc import Iterator

import pytest
import torch
from engine import tiny
from hypothesis import given
from hypothesis import strategies as st
from tasks.proposing import Recorder

from redqueen.analysis.coverage import Coverage
from redqueen.analysis.semantics import embeddings, semantic_distance
from redqueen.engine.protocol import ScoreRequest
from redqueen.errors import InputError
from redqueen.tasks.code.behaviour import behaviours
from redqueen.tasks.code.seeds import SEEDS
from redqueen.tasks.code.task import CodeTask
from redqueen.tasks.protocol import Task
from redqueen.verifier import LocalVerifier

MERGE = """
def f(intervals, gap):
    merged = []
    for start in sorted(intervals):
        if merged and start <= merged[-1] + gap:
            continue
        merged.append(start)
    return merged
"""
RENAMED = '''
from typing import Any

def f(a: list, b: Any = ...) -> list:
    """Another text."""
    def keep(c, d):
        return not c or d > c[-1] + b
    e = []
    for g in sorted(a):
        if keep(e, g):
            e += [g]
    return e
'''.replace(" = ...", "")


@pytest.fixture(scope="module")
def verifier() -> Iterator[LocalVerifier]:
    with LocalVerifier() as pool:
        yield pool


def task(program: str, given: str = "1") -> CodeTask:
    return CodeTask("code_o", program=program, inputs=(given,), outputs=("1",))


def of(verifier, *programs: str) -> list[str | None]:
    return asyncio.run(behaviours([task(program) for program in programs], verifier))


# Behaviour


def test_programs_that_do_the_same_are_one_behaviour(verifier):
    first, second = of(verifier, MERGE, RENAMED)
    assert first == second is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [("<=", "<"), ("+ gap", "- gap"), ("sorted(intervals)", "intervals"), ("return merged", "return merged[::-1]")],
)
def test_programs_that_do_otherwise_are_another_behaviour(verifier, one, other):
    assert one in MERGE
    first, second = of(verifier, MERGE, MERGE.replace(one, other))
    assert None not in (first, second)
    assert first != second


def test_exceptions_count_and_their_own_names_do_not(verifier):
    source = "class {0}(Exception): pass\ndef f(x):\n    if x == 7: raise {1}(x)\n    return x"
    programs = [source.format(*names) for names in (("A", "A"), ("B", "B"), ("A", "ValueError"), ("A", "TypeError"))]
    mine, renamed, value, kind = of(verifier, *programs)
    assert mine == renamed
    assert len({mine, value, kind}) == 3


def test_the_last_f_is_the_one_that_counts(verifier):
    once = "def f(x, y):\n    return x"
    first, second = of(verifier, once, "def f(x):\n    return 0\n" + once + "\ndef g(x):\n    return x")
    assert first == second is not None


def test_all_seeds_have_a_behaviour_of_their_own(verifier):
    found = asyncio.run(behaviours(SEEDS, verifier))
    assert None not in found
    assert len(set(found)) == len(SEEDS)


@pytest.mark.parametrize(
    ("signature", "result"),
    [
        ("x", "x"), ("x, y", "(x, y)"), ("x, y=3", "(x, y)"), ("*x", "x"), ("x=1", "x"), ("*, x", "x"), ("*, x=1", "x"),
        ("**x", "list(x.values())"), ("x, /, y, *, z", "(x, y, z)"), ("a, b, c, d, e", "[a, b, c, d, e]"),
    ],
)  # fmt: skip
def test_every_signature_is_called_as_it_can_be(verifier, signature, result):
    recorder = Recorder(verifier)
    assert of(recorder, f"def f({signature}):\n    return {result}") != [None]
    [job] = recorder.jobs
    [outcome] = verifier.run_sync([job])
    assert {each.status for each in outcome.results} == {"ok"}
    assert len({each.value for each in outcome.results}) == len(job.texts) >= 25


@pytest.mark.parametrize(
    "program",
    [
        "def f(x):\n    raise ValueError",
        "def f(x):\n    while x != 'never': pass",
        "def f(x):\n    return f",
        "async def f(x):\n    return x",
        "def g(x):\n    return x",
    ],
)
def test_a_program_that_the_probes_tell_nothing_about_has_no_behaviour(verifier, program):
    assert of(verifier, program) == [None]


def test_a_batch_is_one_job_for_each_program_and_a_single_run(verifier):
    recorder = Recorder(verifier)
    tasks = [task(MERGE, "[], 1"), Task("riddle"), task(MERGE, "[], 2"), task("def f(x):\n    return x")]
    first, riddle, again, other = asyncio.run(behaviours(tasks, recorder))
    assert [job.source for job in recorder.jobs] == [MERGE, tasks[3].program]
    assert not any(job.seeds > 1 for job in recorder.jobs)
    assert (first, riddle) == (again, None)
    assert other not in (first, None)


def test_behaviours_are_kept_as_a_coverage(verifier):
    first = [found for found in of(verifier, MERGE) if found]
    coverage, _ = Coverage().add(first)
    _, new = coverage.add(found for found in of(verifier, RENAMED, "def f(x):\n    return x") if found)
    assert len(new) == 1


def test_no_tasks_are_no_behaviours(verifier):
    assert asyncio.run(behaviours([], verifier)) == []


# Embedding


def test_embeddings_are_the_bare_bases_state_after_the_whole_prompt():
    numbers = random.Random(0)
    prompts = [tiny.tokens(numbers, count) for count in (2, 9, 30)]
    with tiny.engine("llama") as opened:
        found_N_D = asyncio.run(embeddings(opened, prompts))
        # Split elsewhere, the sequence ends with the same token all the same.
        other = tiny.score(opened, [ScoreRequest(prompt=p[:1], completion=p[1:], hidden=True) for p in prompts])
    assert found_N_D.shape == (3, 32)
    assert found_N_D.dtype == torch.float32
    torch.testing.assert_close(found_N_D, torch.stack([score.hidden for score in other]), rtol=1e-4, atol=1e-5)
    assert semantic_distance(found_N_D) > 0


def test_no_prompts_are_no_embeddings_and_no_distance():
    with tiny.engine("llama") as opened:
        found_N_D = asyncio.run(embeddings(opened, []))
        with pytest.raises(InputError, match="two tokens"):
            asyncio.run(embeddings(opened, [(3, 4), (5,)]))
    assert len(found_N_D) == 0
    assert semantic_distance(found_N_D) == 0


def test_the_distance_is_the_mean_over_pairs_whatever_the_lengths():
    embedding_3_2 = torch.tensor([[1.0, 0.0], [0.0, 5.0], [-2.0, 0.0]])
    assert semantic_distance(embedding_3_2) == pytest.approx((1 + 2 + 1) / 3)
    assert semantic_distance(embedding_3_2[:1]) == 0


@given(st.integers(0, 1000), st.floats(0.01, 100))
def test_texts_that_grow_alike_grow_nearer(seed, size):
    numbers = torch.Generator().manual_seed(seed)
    centre_D, noise_N_D = torch.randn(16, generator=numbers), torch.randn(6, 16, generator=numbers)
    distances = [semantic_distance(size * (centre_D + spread * noise_N_D)) for spread in (0, 0.1, 0.5)]
    assert distances == sorted(distances)
    assert distances[0] == pytest.approx(0, abs=1e-9)
