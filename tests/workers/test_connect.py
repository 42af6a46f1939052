"""What cannot work is refused in one line, and nothing is loaded for it; a race without a cluster knows no Ray."""

import json
import socket
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

from redqueen.cluster import connect
from redqueen.cluster.links import ClusterMachine, WorkerMemory
from redqueen.cluster.versions import refuse_versions, versions
from redqueen.console import size_text
from redqueen.engine import memory, shapes
from redqueen.engine.adaptable import adaptable, llama_family
from redqueen.errors import ConfigError, InputError
from redqueen.settings import Config, load
from redqueen.settings.models import EngineConfig, VerifierConfig
from redqueen.training import doctor
from redqueen.training.checks import check
from redqueen.training.resuming import as_begun
from workers.making import MEMBERS, SETTINGS


def of(**cluster: object) -> Config:
    return Config.model_validate({"engine": SETTINGS.model_dump(), "cluster": cluster})


def refusal(**cluster: object) -> str:
    with pytest.raises(InputError) as caught:
        connect.open_cluster(of(**cluster), MEMBERS).close()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_without_ray_a_cluster_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(connect, "find_spec", lambda name: None)
    assert refusal(address="local", workers=1) == (
        "a cluster needs Ray, which is not installed; run `pip install 'redqueen[cluster]'`"
    )


@pytest.mark.parametrize("address", ["here", "10.0.0.5", ":6379", "host:", "host:port", "host:99999"])
def test_an_address_has_a_host_and_a_port(address: str):
    assert "write local, auto or HOST:PORT" in refusal(address=address, workers=1)


def test_where_nobody_answers_there_is_no_cluster():
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert f"no cluster answers at 127.0.0.1:{port} (Connection refused)" in refusal(
        address=f"127.0.0.1:{port}", workers=1
    )


def test_a_cluster_of_other_machines_must_have_a_token(monkeypatch):
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    monkeypatch.setattr(connect, "is_here", lambda host: False)
    with closing(socket.socket()) as head:
        head.bind(("127.0.0.1", 0))
        head.listen()
        said = refusal(address=f"127.0.0.1:{head.getsockname()[1]}", workers=1)
    assert "lets anybody run code on it; set RAY_AUTH_MODE=token" in said


def test_this_machine_is_here_and_others_are_not():
    assert connect.is_here("localhost") and connect.is_here("127.0.0.1") and connect.is_here(socket.gethostname())
    assert not connect.is_here("192.0.2.7") and not connect.is_here("nowhere.invalid")


def test_other_versions_are_refused_by_name():
    refuse_versions(versions(), versions())
    assert "bitsandbytes" not in versions() and "bitsandbytes" in versions("nf4")
    for name in ("python", "redqueen", "torch", "transformers"):
        with pytest.raises(InputError, match=f"has {name} 0.1, and the race is started with .*; install the same"):
            refuse_versions(versions(), {**versions(), name: "0.1"})


def test_more_than_the_cluster_has_is_refused():
    pytest.importorskip("ray")
    assert (
        "has room for 0 workers with a CPU and 1 GPUs each, and 2 are asked for; leave out cluster.gpus_per_worker"
        in refusal(address="local", workers=2, gpus_per_worker=1)
    )


def test_the_doctor_says_what_a_cluster_has(redqueen):
    status, out, _ = redqueen("doctor", "--cluster.address", "local", "--json")
    assert status == 0
    [machine] = json.loads(out)["cluster"]
    assert machine["versions"] == versions() and machine["cpus"] >= 1 and machine["workers"] <= machine["cpus"]
    assert json.loads(out)["cluster_fits"] == []


def test_the_doctor_says_how_many_members_a_cluster_has_room_for(redqueen):
    words = ["doctor", "--cluster.address", "local", "--base", "chains", "--engine.device", "cpu", "--json"]
    status, out, _ = redqueen(*words)
    assert status == 0
    found = json.loads(out)
    [machine], [fit] = found["cluster"], found["cluster_fits"]
    worker = machine["worker"]
    assert worker == {"device": "cpu", "dtype": "float32", "size": fit["memory"], "host": worker["host"]}
    assert worker["host"] == pytest.approx(fit["memory"], rel=0.3) and fit["host_bytes"] == 0
    # As a worker would that shares the machine with as many as there is room for.
    here = memory.share(torch.device("cpu"), machine["workers"])
    assert fit["memory"] == pytest.approx(here, rel=0.3)
    model = shapes.outline("chains")
    shape = memory.Shape.of(model, fast=llama_family(model) is None)

    def fits(members: int) -> bool:
        plan = memory.plan(
            shape, adaptable(model, None), rank=fit["rank"], members=members, memory=fit["memory"], device="cpu",
            dtype=torch.float32,
        )  # fmt: skip
        assert (plan.weights, plan.member + plan.trained_member) == (fit["base_bytes"], fit["member_bytes"])
        return plan.micro_tokens > 0 and plan.cache_tokens >= doctor.ROW_TOKENS

    assert fit["members"] > 0 and fits(fit["members"]) and not fits(fit["members"] + 1)
    assert fit["evolved"] > 3 * fit["members"]


def test_where_gpus_are_taken_the_doctor_cannot_tell(capsys):
    here = {"address": "10.0.0.5", "cpus": 4, "gpus": 1.0, "memory_gib": 8.0, "versions": versions()}
    machine = ClusterMachine(**here, workers=1, worker=None)
    with_room = replace(machine, worker=WorkerMemory("cuda", "bfloat16", 80 << 30, host=1200 << 30))
    fits = doctor.check_workers("random:7b", EngineConfig(rank=8), [machine, with_room, replace(with_room, workers=0)])
    assert fits[0] is None and fits[1] is not None and fits[1].members > 100
    doctor.check(VerifierConfig(), None, [machine, with_room], fits[:2]).render(Console())
    said = capsys.readouterr().out
    assert "how many members fit cannot be told: its GPUs are taken" in said
    where = f" (masters and moments in {size_text(fits[1].host_bytes)} of the host's memory)"
    assert f"room for {fits[1].members:,} members each{where}, {fits[1].members:,} in all" in said
    assert fits[1].host_bytes > 100 << 30
    # As many as the host has room for, or as are trained on the GPU alone.
    little = replace(machine, worker=WorkerMemory("cuda", "bfloat16", 80 << 30, host=500 << 30))
    none = replace(machine, worker=WorkerMemory("cuda", "bfloat16", 80 << 30, host=1 << 30))
    counts = [each.members for each in doctor.check_workers("random:7b", EngineConfig(rank=8), [none, little]) if each]
    assert 100 < counts[0] < counts[1] < fits[1].members


def test_settings_that_ask_for_nothing_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"cluster.address names none"):
        check(load("demo", {"cluster.workers": "2"}))
    with pytest.raises(ConfigError, match="nothing says how many workers are wanted"):
        as_begun(load("demo", {"cluster.address": "local"}), tmp_path)
    with pytest.raises(ConfigError, match=r"a worker cannot have 1.5 GPUs"):
        check(load("demo", {"cluster.address": "local", "cluster.gpus_per_worker": "1.5"}))


def test_a_plan_has_no_cluster(redqueen, tmp_path):
    status, _, err = redqueen("train", "demo", "--plan", "--cluster.shards", "2")
    assert status == 2 and "leave out all settings of cluster" in err


def test_a_new_race_has_as_many_shards_as_workers_unless_it_is_told(tmp_path):
    assert as_begun(of(address="local", workers=3), tmp_path).cluster.shards == 3
    assert as_begun(of(address="local", workers=3, shards=2), tmp_path).cluster.shards == 2
    assert as_begun(of(), tmp_path).cluster.shards is None


def test_a_race_without_a_cluster_imports_nothing_of_ray():
    script = (
        "import sys\n"
        "import redqueen.training.train\n"
        "from redqueen.cluster.connect import open_cluster\n"
        "from workers.test_connect import MEMBERS, of\n"
        "open_cluster(of(shards=2), MEMBERS).close()\n"
        "assert not any(name.split('.')[0] == 'ray' for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=Path(__file__).parents[1])
