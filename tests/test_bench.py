"""The benchmarks run, compare like with like, and a soak fails when something is wrong."""

import shutil

import pytest

from redqueen.bench import soak, verifier
from redqueen.bench.programs import PROGRAMS
from redqueen.config import Config
from redqueen.errors import Fault
from redqueen.verifier import Job, LocalVerifier


def test_every_program_of_the_comparison_runs_in_every_way() -> None:
    with LocalVerifier() as pool:
        outcomes = pool.run_sync([Job.calls(source, [arguments]) for source, arguments in PROGRAMS])
    assert all(outcome.results[0].verdict.startswith("ok:") for outcome in outcomes)
    for name in verifier.PEERS:
        if name != "bubblewrap" or shutil.which("bwrap"):
            assert verifier._peer(name, 2)(0.1) > 0


def test_the_comparison_names_all_contestants_and_its_ratios() -> None:
    report = verifier.compare(0.5, Config())
    names = {contestant.name for contestant in report.contestants}
    assert {verifier.OURS, verifier.TEN_INPUTS, verifier.LOOPS, "fresh interpreter", "evalplus's way"} <= names
    ratios = {contestant.name: contestant.ours_to_it for contestant in report.contestants}
    assert ratios[verifier.OURS] is None
    assert (ratios["fresh interpreter"] or 0) > 1.5
    assert report.ten_inputs_to_one > 1.5


def test_a_peer_that_fails_is_reported() -> None:
    with pytest.raises(Fault, match="no such peer"):
        verifier._peer("no such peer", 1)(0.1)


def test_a_short_soak_is_flat_and_all_its_answers_are_right() -> None:
    report = soak.soak(4000, Config())
    assert report.flat
    assert report.tally.wrong == 0
    assert report.tally.runs == 4000
    assert report.tally.hostile > 200
    assert report.tally.zygotes_killed >= 3


def test_a_soak_with_a_wrong_answer_fails(monkeypatch) -> None:
    monkeypatch.setattr(soak, "HONEST", "def f(n):\n    return n * 7 + 2")
    with pytest.raises(Fault, match="the soak failed"):
        soak.soak(200, Config())


def sample(**changes: float) -> soak.Sample:
    return soak.Sample(
        **({"runs": 0, "descriptors": 20, "processes": 8, "host_mb": 40.0, "zygotes_mb": 90.0} | changes)
    )


@pytest.mark.parametrize("grown", [{"descriptors": 21}, {"processes": 9}, {"host_mb": 57.0}, {"zygotes_mb": 107.0}])
def test_growth_is_not_flat(grown: dict[str, float]) -> None:
    assert soak._flat([sample(), sample(), sample(), sample()])
    assert not soak._flat([sample(), sample(), sample(**grown), sample(**grown)])
