"""Usages add up, and a counted verifier is the same verifier."""

import asyncio
from collections.abc import Sequence
from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from redqueen.analysis.account import Counted, Usage
from redqueen.verifier import Job, Outcome

usages = st.builds(Usage, **{each.name: st.integers(0, 10**12) for each in fields(Usage)})


class Silent:
    """A verifier that runs nothing."""

    async def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        return [Outcome(results=(), tier=job.source, cpu_ms=0.0) for job in jobs]


class Broken:
    async def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        raise ConnectionError


def test_usages_add_field_by_field():
    one, other, both = ({each.name: times * at for at, each in enumerate(fields(Usage), 1)} for times in (2, 3, 5))
    assert Usage(**one) + Usage(**other) == Usage(**both)


@given(st.lists(usages), st.randoms())
def test_the_order_of_adding_does_not_matter(given, random):
    shuffled = random.sample(given, len(given))
    assert sum(given, Usage()) == sum(shuffled, Usage())


def test_a_job_that_runs_twice_counts_twice():
    counted = Counted(Silent())
    jobs = [Job.calls("a", ["1"]), Job.calls("b", ["1"], seeds=1), Job.literals(["1", "2"])]
    outcomes = asyncio.run(counted.run(jobs))
    assert [outcome.tier for outcome in outcomes] == ["a", "b", ""]
    assert counted.runs == 2 + 1 + 1
    asyncio.run(counted.run(jobs[:1]))
    assert counted.runs == 6


def test_two_counts_on_one_verifier_are_apart():
    verifier = Silent()
    first, second = Counted(verifier), Counted(verifier)
    asyncio.run(first.run([Job.calls("a", ["1"])]))
    assert (first.runs, second.runs) == (2, 0)


def test_runs_that_nobody_got_an_answer_from_are_used_all_the_same():
    counted = Counted(Broken())
    try:
        asyncio.run(counted.run([Job.calls("a", ["1"])]))
    except ConnectionError:
        assert counted.runs == 2
    else:
        raise AssertionError("the failure was swallowed")
