"""The benchmarks of the engine run, compare like with like, and say what they mean by a ratio."""

import importlib.util
import json

import bench_engine
import engine_peers
import pytest
import torch

from redqueen.bench import engine as bench
from redqueen.bench import members, workload
from redqueen.commands.main import exit_status, main
from redqueen.engine import memory
from redqueen.resources import open_engine
from redqueen.settings import load
from redqueen.settings.models import EngineConfig

CPU = torch.device("cpu")
ON_CPU = EngineConfig(device="cpu")
FEW = [
    "--rank",
    "4",
    "--members",
    "1,3",
    "--prompt",
    "4-9",
    "--output",
    "3-8",
    "--repeats",
    "2",
    "--engine.device",
    "cpu",
]


@pytest.fixture
def redqueen(capsys):
    """Run a command in this process: exit status, standard output, standard error."""

    def run(*argv: str) -> tuple[int, str, str]:
        return main(argv), *capsys.readouterr()

    return run


@pytest.fixture
def beside_peers(capsys):
    """Run the benchmark beside its peers, likewise."""

    def run(*argv: str) -> tuple[int, str, str]:
        return exit_status(lambda: bench_engine.main(argv)), *capsys.readouterr()

    return run


def answer(ran: tuple[int, str, str]) -> dict:
    status, out, err = ran
    assert (status, err) == (0, "")
    assert out.count("\n") == 1
    return json.loads(out)


def check_ratios(report: dict) -> None:
    by_way = {(one["name"], one["adapters"]): one for one in report["contestants"]}
    first = report["contestants"][0]
    assert (first["name"], first["adapters"], first["ratio"]) == (bench.OURS, 1, 1.0)
    for (name, adapters), one in by_way.items():
        ours = by_way[bench.OURS, adapters]["tokens_per_s"]
        expected = ours / (first if name == bench.OURS else one)["tokens_per_s"]
        assert one["ratio"] == pytest.approx(expected)


def test_sampling_is_compared_with_peft_on_the_same_requests(beside_peers):
    report = answer(beside_peers("sample", *FEW, "--rows", "8", "--requests", "12", "--agreement", "--json"))
    ways = [(one["name"], one["adapters"], one["rows"]) for one in report["contestants"]]
    assert ways[:2] == [(bench.OURS, 1, 8), (bench.OURS, 3, 8)]
    assert ways[2:4] == [("PEFT + generate", 1, 8), ("PEFT + generate", 3, 8)]
    check_ratios(report)
    tokens = [one["tokens"] for one in report["contestants"]]
    assert tokens[0] == tokens[1] > tokens[2] == tokens[3] > 0, "peft does the first 8 of the 12"
    assert any("first 8 requests only" in note for note in report["notes"])
    assert {"machine", "device", "seed"} <= report.keys()
    assert (report["shape"], report["path"], report["rank"], report["requests"]) == ("random:tiny", "llama", 4, 12)
    assert report["agreement"] == {"requests": 12, "tokens": 1.0, "completions": 1.0}


def test_updating_is_compared_with_peft_on_the_same_sequences(beside_peers):
    report = answer(beside_peers("update", *FEW, "--sequences", "6", "--json"))
    names = [(one["name"], one["adapters"]) for one in report["contestants"]]
    assert names == [(bench.OURS, 1), (bench.OURS, 3), ("PEFT, one by one", 1), ("PEFT, one by one", 3)]
    check_ratios(report)
    assert len({one["tokens"] for one in report["contestants"]}) == 1
    assert all(one["peak_bytes"] is None for one in report["contestants"]), "there is no count of it on a CPU"


@pytest.mark.parametrize("what", ["sample", "update"])
def test_a_quantised_base_is_measured_and_named(redqueen, what):
    words = ["bench", what, *FEW, "--engine.quantise", "nf4", "--engine.memory", "512MiB"]
    words += ["--sampled", "--sequences", "6"] if what == "update" else ["--rows", "8", "--requests", "4"]
    status, out, err = redqueen(*words, "--json")
    assert status == 0 and "within engine.memory there is room for" in err
    report = json.loads(out)
    assert (report["quantise"], report["memory"]) == ("nf4", "512MiB")
    assert all(one["tokens_per_s"] > 0 for one in report["contestants"])
    status, out, _ = redqueen(*words)
    assert status == 0
    assert "linear layers in nf4" in " ".join(out.split()) and "512MiB may be used" in " ".join(out.split())


def test_peers_are_not_measured_on_a_quantised_base(beside_peers):
    status, _, err = beside_peers("update", *FEW, "--engine.quantise", "int8")
    assert (status, err.count("\n")) == (2, 1) and "peers have the base unquantised" in err


def test_the_table_holds_the_same_figures(redqueen):
    status, out, _ = redqueen("bench", "sample", *FEW, "--rows", "8", "--requests", "4")
    assert status == 0
    assert "ratio: to ours with the first number of adapters" in " ".join(out.split())
    assert out.count(bench.OURS) == 2
    assert "PEFT" not in out and "peer" not in out


def test_the_peers_training_loop_takes_the_steps_that_the_engine_takes():
    options = workload.Options(members=(2,), rank=4, requests=6, prompt=(4, 9), output=(3, 8))
    work = workload.settle(options, CPU, training=True)
    engine, states = workload.open_engine(work, ON_CPU, CPU, torch.float32)
    batch = workload.trajectories(work, engine.shape.vocabulary, 2)
    [loop], _ = engine_peers.trainers(lambda: workload.open_base(work.base, CPU, torch.float32), states, 40)
    theirs, ours = loop.updating(batch, bench.RECIPE), bench._updating(engine, batch)
    with engine:
        for _ in range(2):
            assert theirs() == ours()
        for name, before in states.items():
            for module, factors in engine.read(name).factors.items():
                layer = loop.model.base_model.model.get_submodule(module)
                for mine, start, weight in zip(
                    factors, before.factors[module], (layer.lora_A[name], layer.lora_B[name]), strict=True
                ):
                    moved = mine - start
                    assert moved.norm() > 0
                    assert (weight.weight - start - moved).norm() < 0.05 * moved.norm()


def test_members_differ_from_the_base_and_from_each_other():
    work = workload.settle(workload.Options(members=(2,), rank=4), CPU)
    engine, states = workload.open_engine(work, ON_CPU, CPU, torch.float32)
    engine.close()
    first, second = (next(iter(state.factors.values()))[1] for state in states.values())
    assert first.norm() > 0
    assert not torch.equal(first, second)


def test_peers_that_are_not_installed_are_named_and_nothing_is_loaded_for_them(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    def load():
        raise AssertionError("no peer needs it")

    peers, notes = engine_peers.samplers(load, {}, 8)
    assert peers == []
    assert ["pip install peft" in notes[0], "pip install vllm" in notes[1]] == [True, True]
    assert engine_peers.trainers(load, {}, 64)[0] == []


def test_resident_members_are_measured(redqueen):
    words = ["bench", "members", "--members", "100", "--rank", "64", "--engine.device", "cpu", "--json"]
    report = answer(redqueen(*words))
    weights = 100 * report["parameters_per_member"] * 4
    assert report["members_bytes"] == pytest.approx(weights, rel=0.2)
    assert report["trained_bytes"] > report["members_bytes"]
    assert report["write_ms"] > 0
    assert report["read_ms"] > 0
    assert report["repeats"] == members.REPEATS


def test_a_base_that_would_fill_the_memory_is_refused(redqueen, beside_peers, monkeypatch):
    weights = 918_656 * 4
    for free, ran, message in (
        (weights - 1, lambda: redqueen("bench", "sample", *FEW), "use a smaller base\n"),
        (2 * weights - 1, lambda: beside_peers("sample", *FEW), "or `redqueen bench`, which has no peers\n"),
    ):
        monkeypatch.setattr(memory, "available", lambda device, free=free: free)
        status, out, err = ran()
        assert (status, out) == (2, "")
        assert err.endswith(message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("sample --shape 8b", "there is no shape 8b; use tiny, 1m, 135m, 0.5b, 1.5b, 7b"),
        ("members --shape 8b", "there is no shape 8b; use tiny, 1m, 135m, 0.5b, 1.5b, 7b"),
        ("update --base smollm3", "there is no base smollm3; did you mean"),
        ("sample --members 1,x", "--members cannot be 1,x; write whole numbers"),
        ("sample --members 0", "--members cannot be 0; write whole numbers"),
        ("sample --members 9 --requests 8", "9 members cannot share 8 texts"),
        ("sample --prompt 64-32", "--prompt cannot be 64-32; write LOW-HIGH"),
        ("update --output 12", "--output cannot be 12; write LOW-HIGH"),
        ("update --sequences 0", "--sequences cannot be 0"),
        ("sample --rank -1", "--rank cannot be -1"),
        ("sample --output 3000-3000", "is longer than the base's 2048"),
    ],
)
def test_a_mistake_is_one_line(redqueen, words, message):
    status, out, err = redqueen("bench", *words.split(), "--engine.device", "cpu")
    assert (status, out) == (2, "")
    assert message in err
    assert err[:-1].isprintable(), "one line"


def test_engines_that_share_a_gpu_plan_for_their_part_of_it_and_for_no_more_than_is_free(monkeypatch):
    free = 140
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free << 30, 168 << 30))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 4 << 30)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 6 << 30)
    assert memory.share(torch.device("cuda"), 3) == 45 << 30, "a third of seven eighths, less what this one has"
    free = 20
    assert memory.share(torch.device("cuda"), 3) == 22 << 30, "what is free, and what this one has reserved"


def test_engines_that_share_a_device_plan_for_their_part(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda device: 9 << 30)
    assert memory.share(torch.device("cpu"), 3) == 3 << 30
    settings = load("demo", [("engine.device", "cpu")]).engine
    with open_engine(settings, ["m"], engines=3) as shared, open_engine(settings, ["m"]) as alone:
        assert shared.plan.cache_tokens < alone.plan.cache_tokens / 2
