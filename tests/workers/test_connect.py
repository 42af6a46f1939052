"""What cannot work is refused in one line, and nothing is loaded for it; a race without a cluster knows no Ray."""

import json
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from redqueen.cluster import connect
from redqueen.cluster.versions import refuse_versions, versions
from redqueen.errors import ConfigError, InputError
from redqueen.settings import Config, load
from redqueen.training.checks import check
from redqueen.training.train import as_begun
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
    for name in ("python", "redqueen", "torch", "transformers"):
        with pytest.raises(InputError, match=f"has {name} 0.1, and the race is started with .*; install the same"):
            refuse_versions(versions(), {**versions(), name: "0.1"})


def test_more_than_the_cluster_has_is_refused():
    pytest.importorskip("ray")
    assert "has room for 0 workers with a CPU and 1 GPUs each, and 2 are asked for; lower cluster.workers" in refusal(
        address="local", workers=2, gpus_per_worker=1
    )


def test_the_doctor_says_what_a_cluster_has(redqueen):
    status, out, _ = redqueen("doctor", "--cluster.address", "local", "--json")
    assert status == 0
    [machine] = json.loads(out)["cluster"]
    assert machine["versions"] == versions() and machine["cpus"] >= 1 and machine["workers"] <= machine["cpus"]


def test_settings_that_ask_for_nothing_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"cluster.address names none"):
        check(load("demo", {"cluster.workers": "2"}))
    with pytest.raises(ConfigError, match="nothing says how many workers are wanted"):
        as_begun(load("demo", {"cluster.address": "local"}), tmp_path)
    with pytest.raises(ConfigError, match=r"a worker cannot have 1.5 GPUs"):
        check(load("demo", {"cluster.address": "local", "cluster.gpus_per_worker": "1.5"}))


def test_a_plan_has_no_cluster(redqueen, tmp_path):
    status, _, err = redqueen("train", "demo", "--plan", "--cluster.shards", "2")
    assert status == 2 and "leave out cluster.address and cluster.shards" in err


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
