"""The benchmarks run, compare like with like, and a soak fails when something is wrong."""

import json
import os
import shutil
import sys
import time

import bench_engine
import bench_operators
import bench_verifier
import pytest
import torch

from redqueen.bench import soak, verifier
from redqueen.bench.verifier import PROGRAMS
from redqueen.commands.main import exit_status, main
from redqueen.errors import Fault
from redqueen.settings import Config
from redqueen.training.gpu_busy import Meter, counter
from redqueen.verifier import Job, LocalVerifier


def test_every_program_of_the_comparison_runs_in_every_way() -> None:
    with LocalVerifier() as pool:
        outcomes = pool.run_sync([Job.calls(source, [arguments]) for source, arguments in PROGRAMS])
    assert all(outcome.results[0].verdict.startswith("ok:") for outcome in outcomes)
    peers = bench_verifier.peers(2)
    assert peers.keys() >= bench_verifier.ISOLATION.keys() - {"bubblewrap"}
    assert ("bubblewrap" in peers) == (shutil.which("bwrap") is not None)
    for peer in peers.values():
        assert peer.run(0.1) > 0


def test_the_comparison_names_all_contestants_and_its_ratios(monkeypatch, capsys) -> None:
    monkeypatch.setattr(verifier, "ROUNDS", 1)
    assert exit_status(lambda: bench_verifier.main(["--seconds", "0.5", "--json"])) == 0
    report = json.loads(capsys.readouterr().out)
    ratios = {contestant["name"]: contestant["ours_to_it"] for contestant in report["contestants"]}
    assert {verifier.OURS, verifier.TEN_INPUTS, verifier.LOOPS, "fresh interpreter", "evalplus's way"} <= ratios.keys()
    assert ratios[verifier.OURS] is None
    assert ratios["fresh interpreter"] > 1.5
    assert report["ten_inputs_to_one"] > 1.5
    assert any("bubblewrap is not installed" in note for note in report["notes"]) == (shutil.which("bwrap") is None)


def test_without_peers_there_is_nothing_to_be_compared_with(monkeypatch, capsys) -> None:
    monkeypatch.setattr(verifier, "ROUNDS", 1)
    assert main(["bench", "verifier", "--seconds", "0.2"]) == 0
    table = capsys.readouterr().out
    assert verifier.OURS in table
    assert "interpreter" not in table and "Red Queen is" not in table


@pytest.mark.parametrize("script", [bench_engine, bench_operators, bench_verifier])
def test_the_scripts_beside_peers_say_what_they_take(script, capsys) -> None:
    words = ["sample", "--help"] if script is bench_engine else ["--help"]
    assert exit_status(lambda: script.main(words)) == 0
    shown = capsys.readouterr()
    assert "usage: redqueen bench" in shown.out and shown.err == ""


def test_a_peer_that_fails_is_reported() -> None:
    with pytest.raises(Fault, match="no such peer"):
        bench_verifier.rate_of("no such peer", 1)(0.1)


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


def footprint(**changes: float) -> soak.Footprint:
    return soak.Footprint(
        **({"runs": 0, "descriptors": 20, "processes": 8, "host_mb": 40.0, "zygotes_mb": 90.0} | changes)
    )


@pytest.mark.parametrize("grown", [{"descriptors": 21}, {"processes": 9}, {"host_mb": 57.0}, {"zygotes_mb": 107.0}])
def test_growth_is_not_flat(grown: dict[str, float]) -> None:
    assert soak._flat([footprint(), footprint(), footprint(), footprint()])
    assert not soak._flat([footprint(), footprint(), footprint(**grown), footprint(**grown)])


def test_a_meter_s_share_is_that_within_the_spans() -> None:
    readings = iter([0.5, None, 1.0, *[0.0] * 10_000])
    with Meter(lambda: next(readings)) as meter:
        while len(meter._readings) < 4:
            time.sleep(0.01)
    first, second, third = (at for at, _ in meter._readings[:3])
    assert meter.share([(first, third)]) == 0.75
    assert meter.share([(first, second), (third, third + 1e-3)]) == 0.25
    assert meter.share([(0.0, first)]) is None


def test_a_cpu_has_no_counter() -> None:
    assert counter(torch.device("cpu")) is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_the_gpu_s_work_is_seen() -> None:
    """The driver's figures are some tenths of a second old."""
    read = counter(torch.device("cuda"))
    assert read is not None
    ones_N_N = torch.ones(4096, 4096, device="cuda")
    with Meter(read) as meter:
        time.sleep(1.0)
        began = time.perf_counter()
        while time.perf_counter() < began + 1.5:
            ones_N_N @ ones_N_N
            torch.cuda.synchronize()
    idle, busy = meter.share([(0.0, began)]), meter.share([(began + 0.5, began + 1.5)])
    assert idle is not None and busy is not None and idle < 0.5 < busy


FEW = ["--shape", "tiny", "--repeats", "2", "--rank", "4", "--engine.device", "cpu"]
OWN = """
from redqueen.evolution.variation import Kind, Operator
def same(parents, draws):
    return parents[0].map(lambda stack: stack)
SAME = Operator(name="same", kind=Kind.MUTATION, make=same, reference="here")
"""


def alone(*more: str) -> int:
    return main(["bench", "operators", *FEW, *more])


def beside_populora(*more: str) -> int:
    return exit_status(lambda: bench_operators.main([*FEW, *more]))


def operators(capsys, run, *more: str) -> dict:
    assert run("--json", *more) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def test_every_operator_is_timed_and_portrayed(capsys, tmp_path) -> None:
    from redqueen.plugins import OPERATORS

    (tmp_path / "own.py").write_text(OWN)
    report = operators(capsys, alone, "--evolution.operators", f"dare,{tmp_path}/own.py:SAME")
    rows = {row["name"]: row for row in report["operators"]}
    assert list(rows) == [*OPERATORS.names(), "same"]
    assert (report["shape"], report["rank"], report["slots"], report["peer"]) == ("random:tiny", 4, 28, None)
    for name, row in rows.items():
        assert row["operator_seconds"] > 0
        assert row["seconds"] > 0
        assert (row["peer_seconds"], row["same"], row["ratio"]) == (None, None, None)
        if name in OPERATORS.names():
            low, high = OPERATORS.get(name).norm
            assert low - 0.05 <= row["norm"] <= high + 0.05
            assert len(row["cosine"]) == (OPERATORS.get(name).parents or 2)
            assert row["kind"] == OPERATORS.get(name).kind


def test_chosen_operators_are_timed(capsys) -> None:
    report = operators(capsys, alone, "--operators", "dare,spectral sigma=0.2")
    assert [row["name"] for row in report["operators"]] == ["dare", "spectral sigma=0.2"]
    assert alone("--operators", "copy_parent") == 0
    table = capsys.readouterr().out
    assert "copy_parent" in table
    assert "ratio" not in table


@pytest.mark.parametrize(
    ("run", "more", "message"),
    [
        (alone, ["--operators", "dar"], "there is no operator 'dar'; did you mean dare?"),
        (alone, ["--shape", "huge"], "there is no shape huge"),
        (alone, ["--repeats", "0"], "--repeats cannot be 0"),
        (beside_populora, [], "pip install populora"),
        (beside_populora, ["--peer", "/no/such/python"], "--peer /no/such/python cannot be run"),
        (beside_populora, ["--peer", sys.executable, "--operators", "dare"], "No module named 'populora'"),
    ],
)
def test_what_the_operators_benchmark_cannot_do_is_said_in_one_line(capsys, run, more, message) -> None:
    assert run(*more) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.skipif("REDQUEEN_PEER" not in os.environ, reason="REDQUEEN_PEER names no interpreter with populora")
def test_operators_take_turns_with_their_peer(capsys) -> None:
    report = operators(capsys, beside_populora, "--peer", os.environ["REDQUEEN_PEER"])
    assert report["peer"].startswith("populora 0.")
    for row in report["operators"]:
        peered = row["name"] in bench_operators.OPERATORS
        assert (row["peer_seconds"] is not None) == (row["ratio"] is not None) == peered
        if peered:
            assert row["same"] == bench_operators.OPERATORS[row["name"]][1]
            assert 0.001 < row["ratio"] < 1000
