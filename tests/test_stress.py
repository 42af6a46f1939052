"""The stress script finds verdicts that are wrong, and its loads never outlive it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest
import verdicts
from cases import Case, draw
from interrupted import first_difference
from keeper import WORKERS
from loads import under
from quota import own_group
from stopping import descendants

import redqueen
from redqueen.errors import IsolationError
from redqueen.verifier import Job, LocalVerifier, Refusal, Tier

TOOL = Path(__file__).parents[1] / "tools" / "stress" / "stress.py"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(redqueen.__file__).parents[1])}
FEW = ("--honest", "8", "--loop", "2", "--hog", "1", "--hostile", "2", "--starts", "1")
SMALL = (
    *("--engine.base", "chains", "--tasks.seeds", "chains", "--tasks.kinds", "code_o", "--guard.held-out", ""),
    *("--tasks.prompts", "1", "--tasks.attempts", "2", "--tasks.proposal-tokens", "48", "--tasks.attempt-tokens", "48"),
    *("--population.teachers", "2", "--population.students", "2"),
)
PATIENCE_S = 60


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(TOOL), *words], env=ENVIRONMENT, capture_output=True, text=True)


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    words = (sys.executable, str(TOOL), *words)
    with subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.DEVNULL) as script:
        try:
            yield script
        finally:
            script.kill()


def state(pid: int) -> str | None:
    """The process's state, as a letter; None when it is gone, or dead and not waited for."""
    try:
        letter = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if letter in "ZX" else letter


def command(pid: int) -> bytes:
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.01)


@pytest.mark.parametrize("load", WORKERS)
def test_a_load_is_there_while_it_is_held_and_gone_afterwards(load):
    before = set(descendants(os.getpid()))
    with under(load):
        held = set(descendants(os.getpid())) - before
        assert len(held) > len(WORKERS[load]), "the workers, and their keeper"
    assert set(descendants(os.getpid())) == before
    assert not any(map(state, held))


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda end: end.name)
def test_nothing_is_left_however_the_script_ends(end):
    with started("hold", "--load", "moderate", "--", "sleep", "600") as script:
        wait_for(lambda: any(command(pid).startswith(b"sleep") for pid in descendants(script.pid)))
        family = descendants(script.pid)
        assert len(family) > len(WORKERS["moderate"]) + 1, "the workers, their keeper and the command"
        script.send_signal(end)
        assert script.wait() != 0
    wait_for(lambda: not any(map(state, family)))


def test_what_was_stopped_goes_on_and_ends_when_the_script_is_killed():
    loops = ("--honest", "0", "--loop", "20", "--hog", "0", "--hostile", "0")
    with started("verdicts", "--load", "stopped", *loops) as script:
        wait_for(lambda: sum(state(pid) == "T" for pid in descendants(script.pid)) > 2)
        family = descendants(script.pid)
    wait_for(lambda: not any(map(state, family)))


def test_a_quota_is_taken_away_again_or_refused_in_one_line():
    ended = run("verdicts", "--load", "quota", *FEW)
    if ended.returncode == 2:
        assert ended.stderr.startswith("the load quota cannot be had") and ended.stderr.count("\n") == 1
    else:
        assert ended.returncode == 0, ended.stdout + ended.stderr
    mounts, groups = Path("/proc/self/mounts").read_text(), Path("/proc/self/cgroup").read_text()
    if "cgroup" in mounts:
        own, _ = own_group(mounts, groups)
        assert not [*own.glob("redqueen-stress-*"), *own.parent.glob("redqueen-stress-*")]


def test_our_group_is_found_in_either_version(tmp_path):
    (tmp_path / "cpu" / "box").mkdir(parents=True)
    first = (
        f"tmpfs /x tmpfs rw 0 0\ncgroup {tmp_path}/cpuset cgroup rw,cpuset 0 0\ncgroup {tmp_path}/cpu cgroup rw,cpu 0 0"
    )
    second = f"cgroup2 {tmp_path} cgroup2 rw 0 0"
    assert own_group(f"{second}\n{first}", "2:cpuset:/\n1:cpu,cpuacct:/box\n0::/") == (tmp_path / "cpu" / "box", False)
    assert own_group(first, "1:cpu:/not/seen/here") == (tmp_path / "cpu", False)
    assert own_group(second, "0::/cpu/box") == (tmp_path / "cpu" / "box", True)


def test_verdicts_are_right_under_a_load():
    ended = run("verdicts", "--load", "moderate", *FEW, "--json")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = json.loads(ended.stdout.splitlines()[-1])
    assert {kind: tally["count"] for kind, tally in found["classes"].items()} == {
        "honest": 8, "loop": 2, "hog": 1, "hostile": 2,
    }  # fmt: skip
    assert found["starts"] == 1 and found["runs"] == 26


def planted(expected: str) -> Case:
    return Case("honest", "planted", Job.calls("def f():\n    return 7", [""]), expected, expected.__eq__)


def found_of(*kinds: str) -> verdicts.Found:
    return verdicts.Found("quiet", "full", {kind: verdicts.Tally() for kind in kinds})


def test_a_wrong_verdict_is_counted_and_shown(capsys):
    found = found_of("honest")
    with LocalVerifier(workers=1) as verifier:
        found.tier = str(verifier.tier)
    verdicts.sit([planted("ok:7"), planted("ok:8"), planted("ok:7")], found, Random(0))
    assert (found.classes["honest"].count, found.classes["honest"].wrong, found.good) == (3, 1, False)
    verdicts.show(found)
    shown = capsys.readouterr().out
    assert "planted: expected ok:8, got ok:7" in shown
    assert "NOT every verdict is right" in shown


def test_a_refused_start_is_counted_and_its_programs_are_not_lost(monkeypatch):
    def refuse(**_):
        raise IsolationError("programs cannot be isolated as asked (full: a canary)", "mend it")

    monkeypatch.setattr(verdicts, "LocalVerifier", refuse)
    found = found_of("honest")
    verdicts.sit([planted("ok:7")], found, Random(0))
    assert (found.starts, len(found.refused)) == (verdicts.TRIES, verdicts.TRIES)
    assert (found.classes["honest"].count, found.classes["honest"].raised, found.good) == (1, 1, False)


def test_a_start_in_a_weaker_tier_is_counted(monkeypatch):
    class Weaker:
        tier, refusals = Tier.SECCOMP, (Refusal(Tier.FULL, "a loop came out as ok", ""),)

    monkeypatch.setattr(verdicts, "LocalVerifier", lambda **_: Weaker())
    found = found_of("honest")
    assert verdicts._open(found) is not None
    assert found.weaker == ["full: a loop came out as ok"] and not found.good


def test_programs_are_drawn_alike_from_one_seed():
    counts = {"honest": 60, "loop": 3, "hog": 3, "hostile": 5}
    one, same, other = (draw(counts, Random(seed)) for seed in (1, 1, 2))
    assert [case.job for case in one] == [case.job for case in same] != [case.job for case in other]
    assert {case.expected.partition(":")[0] for case in one if case.kind == "honest"} == {"ok", "exc"}


@pytest.mark.parametrize(("command", "status"), [("exit 7", 7), ("exit 0", 0), ("kill -9 $$", 137)])
def test_hold_passes_the_status_on(command, status):
    assert run("hold", "--load", "moderate", "--", "sh", "-c", command).returncode == status


@pytest.mark.parametrize("load", ["quota", "stopped"])
def test_hold_refuses_loads_of_the_pool(load):
    ended = run("hold", "--load", load, "--", "true")
    assert ended.returncode == 2 and "is for what this script runs itself" in ended.stderr


def test_a_race_killed_under_a_load_is_the_race_left_alone():
    ended = run("races", "--load", "moderate", "--races", "1", "--steps", "1", "--json", "--", *SMALL)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = json.loads(ended.stdout.splitlines()[-1])
    assert [bool(race["kills"]) for race in found["races"]] == [False, True]
    assert found["differing"] == 0 and found["files"] == 4 * 2 + 2


def test_the_first_verdict_that_differs_is_named_with_its_program():
    quiet = {
        (1, 0, 0, "", 0): ("accepted", "def f(): return 1"),
        (1, 0, 1, "", 0): ("accepted", "def f(): return 2"),
        (1, 1, 0, "s1", 2): ("right", "1"),
    }
    loaded = quiet | {(1, 0, 1, "", 0): ("rejected: timeout", "def f(): return 2"), (1, 1, 0, "s1", 2): ("wrong", "1")}
    assert first_difference(quiet, dict(quiet)) is None
    assert first_difference(quiet, loaded) == "step 1, proposal 1: accepted -> rejected: timeout:\ndef f(): return 2"
    del loaded[1, 0, 1, "", 0]
    assert first_difference(quiet, loaded) == "step 1, proposal 1: accepted -> missing:\ndef f(): return 2"
