"""Programs are judged on other machines as they are here, whatever becomes of those, and no guest is left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from stopping import descendants, of_pool

pytest.importorskip("ray")

from ray.cluster_utils import Cluster

import redqueen
from redqueen.cluster import connect, verifier_worker
from redqueen.cluster.patience import MOST_LOSSES
from redqueen.cluster.verifier import ClusterVerifier
from redqueen.cluster.versions import checker_versions, our_version, refuse_versions
from redqueen.errors import ConfigError, InputError, IsolationError, MachineError
from redqueen.settings import Config
from redqueen.verifier import Checker, Job, Limits, LocalVerifier, Outcome, Refusal, Tier

GUESTS = 1
"""Of each verifier: programs that run at the same time."""
DEADLINE_S = 180
QUICK = (
    "def f(x): return x * 7 + 1",
    "def f(x): return sorted({str(x), 'b', 'c'})",
    "def f(x): return list({str(x), 'b', 'c', 'dd', 'e'})",
    "def f(x): return 1 // (x - x)",
    "import datetime\ndef f(x): return str(datetime.date(2000 + abs(x), 1, 1))",
    "def f(x",
    "def f(x): return '\\ud800' + chr(x)",
)
LIMITED = ("def f(x):\n    while True: pass", "def f(x): return bytearray(1 << 30)")
CHECK = "def same(one, other):\n    return one == other\n"


def programs(count: int) -> list[Job]:
    """Programs of every kind; few of those that end by a limit."""
    jobs = [Job.calls(QUICK[at % len(QUICK)], [str(at), str(-at)]) for at in range(count)]
    limits = Limits(cpu_s=0.1, memory_mb=64)
    jobs[::25] = [Job.calls(LIMITED[at % 2], ["1"], limits=limits) for at in range(len(jobs[::25]))]
    return jobs


def verdicts(outcomes: Sequence[Outcome]) -> list[object]:
    """All of them that is no time."""
    return [(outcome.results, outcome.runs, outcome.tier, outcome.fault) for outcome in outcomes]


def judged(verifier: ClusterVerifier | LocalVerifier, jobs: Sequence[Job]) -> list[object]:
    return verdicts(asyncio.run(verifier.run(jobs)))


def until(true: Callable[[], object], seconds: float = DEADLINE_S) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.05)


def guests(process: int) -> list[int]:
    """Zygotes and runs below a process."""
    return [each for each in descendants(process) if of_pool(each)]


def remote(process: int) -> list[int]:
    """The verifiers of other machines."""
    return [each for each in descendants(process) if title(each).startswith(b"ray::VerifierWorker")]


def title(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """The driver's machine, and two others."""
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        for _ in range(2):
            made.add_node(num_cpus=1)
        yield made
    finally:
        made.shutdown()


@pytest.fixture(scope="module")
def expected() -> list[object]:
    with LocalVerifier(workers=GUESTS) as verifier:
        return judged(verifier, programs(150))


def settings(cluster: Cluster, verifiers: int, **of_cluster: object) -> Config:
    place = {"address": cluster.address, "verifiers": verifiers, **of_cluster}
    return Config.model_validate({"verifier": {"workers": GUESTS}, "cluster": place})


def opened(cluster: Cluster, verifiers: int = 2, **of_cluster: object) -> ClusterVerifier:
    verifier = connect.open_judges(settings(cluster, verifiers, **of_cluster))
    assert isinstance(verifier, ClusterVerifier)
    return verifier


def test_verdicts_are_those_of_one_machine_in_their_order_and_all_machines_make_them(cluster: Cluster, expected):
    others = set(guests(os.getpid()))  # of pools that other tests keep open
    with opened(cluster) as verifier:
        pools = remote(os.getpid())
        assert len(pools) == 2
        assert judged(verifier, programs(150)) == expected
        assert all(guests(pool) for pool in pools)

        async def many() -> list[list[Outcome]]:
            return await asyncio.gather(*(verifier.run([job]) for job in programs(60)))

        assert [each for [each] in map(verdicts, asyncio.run(many()))] == judged(verifier, programs(60))
        its = set(guests(os.getpid())) - others
    assert its
    until(lambda: not [each for each in its if of_pool(each)])
    assert not set(guests(os.getpid())) - others


def killed(process: int) -> None:
    os.kill(process, signal.SIGKILL)


def stopped(process: int) -> None:
    os.kill(process, signal.SIGSTOP)


@pytest.mark.parametrize("strike, patience_s, became", [(killed, 60.0, "died"), (stopped, 4.0, "stopped answering")])
def test_one_that_is_killed_or_stopped_changes_nothing_and_leaves_no_guest(
    cluster: Cluster, expected, capsys, strike: Callable[[int], None], patience_s: float, became: str
):
    with opened(cluster, patience_s=patience_s) as verifier:
        one, other = remote(os.getpid())
        its = guests(one)

        async def struck() -> list[Outcome]:
            answer = asyncio.ensure_future(verifier.run(programs(150)))
            await asyncio.sleep(0.3)
            strike(one)
            return await answer

        assert its
        assert verdicts(asyncio.run(struck())) == expected
        assert "verifier 0 on " in (said := capsys.readouterr().err) or "verifier 1 on " in said
        assert " is lost (" in said and "judged by others" in said
        [lost] = [event for event in verifier.events if event.what != "opened"]
        assert lost.worker in ("verifier 0", "verifier 1") and f"{lost.worker} on " in said and lost.cause in said
        assert lost.what == became
        until(lambda: not [each for each in its if of_pool(each)])
        until(lambda: len(set(remote(os.getpid())) - {one, other}) == 1)
        assert judged(verifier, programs(150)) == expected


def test_a_machine_that_is_lost_changes_nothing_and_the_next_takes_its_place(cluster: Cluster, expected, capsys):
    with opened(cluster, 2) as verifier:
        its = [each for pool in remote(os.getpid()) for each in guests(pool)]
        nodes = [node for node in cluster.list_all_nodes() if node is not cluster.head_node]

        async def struck() -> list[Outcome]:
            answer = asyncio.ensure_future(verifier.run(programs(150)))
            await asyncio.sleep(0.3)
            for node in nodes:
                await asyncio.to_thread(cluster.remove_node, node, False)
            return await answer

        # Without any other machine the driver's own pool does it all.
        assert verdicts(asyncio.run(struck())) == expected
        until(lambda: capsys.readouterr().err.count(" is lost (") or not remote(os.getpid()))
        until(lambda: not [each for each in its if of_pool(each)])
        assert judged(verifier, programs(150)) == expected
        for _ in nodes:
            cluster.add_node(num_cpus=1)
        until(lambda: len(remote(os.getpid())) == 2)


def test_one_that_is_lost_again_and_again_before_it_judged_anything_is_given_up(cluster: Cluster, monkeypatch, capsys):
    monkeypatch.setattr("redqueen.cluster.verifier.AGAIN_S", 0.1)
    with opened(cluster, 1) as verifier:
        for _ in range(MOST_LOSSES):
            until(lambda: remote(os.getpid()))
            before = remote(os.getpid())
            killed(before[0])
            until(lambda before=before: before[0] not in remote(os.getpid()))
        said = ""

        def given_up() -> bool:
            nonlocal said
            said += capsys.readouterr().err
            return "none is started again" in said

        until(given_up)
        assert judged(verifier, programs(20)) and not remote(os.getpid())


def test_nothing_is_left_of_a_verifier_whose_driver_is_killed(tmp_path: Path):
    script = textwrap.dedent("""
        import asyncio
        from redqueen.cluster import connect
        from redqueen.settings import Config
        from redqueen.verifier import Job
        cluster = {"address": "local", "workers": 1, "verifiers": 1}
        settings = Config.model_validate({"verifier": {"workers": 1}, "cluster": cluster})
        with connect.open_judges(settings) as verifier:
            loops = [Job.calls("def f(x):\\n    while True: pass", ["1"])] * 200
            print("judging", flush=True)
            asyncio.run(verifier.run(loops))
    """)
    driver = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    try:
        assert driver.stdout is not None and driver.stdout.readline() == b"judging\n"
        [pool] = remote(driver.pid)
        until(lambda: guests(pool))
        there = guests(driver.pid)
    finally:
        driver.kill()
        driver.wait()
    until(lambda: not [each for each in there if of_pool(each)])
    until(lambda: not title(pool))


def test_more_verifiers_than_machines_are_refused(cluster: Cluster):
    with pytest.raises(InputError, match="has 2 machines for verifiers, which do not share one, and 3 are asked for"):
        opened(cluster, 3)


def test_a_machine_that_goes_while_verifiers_are_opened_ends_it_with_one_line():
    with LocalVerifier(workers=GUESTS) as own, pytest.raises(MachineError, match="a machine that was to have a verif"):
        ClusterVerifier(own, lambda: None, lambda: None, count=2, workers=None, patience_s=60)


def test_verifiers_without_a_cluster_are_refused():
    alone = Config.model_validate({"cluster": {"verifiers": 2}})
    with pytest.raises(ConfigError, match=r"cluster.verifiers run on machines of a cluster, and cluster.address names"):
        connect.open_judges(alone)


def test_a_machine_that_cannot_isolate_programs_is_named(monkeypatch):
    monkeypatch.setattr("redqueen.verifier.pool.unsupported", lambda tier: Refusal(tier, "no namespaces here", ""))
    worker = verifier_worker.VerifierWorker()
    with pytest.raises(IsolationError) as caught:
        asyncio.run(worker.open({}, Tier.FULL, GUESTS))
    said = str(caught.value)
    assert said.startswith(f"{os.uname().nodename} cannot isolate programs as the driver's machine does: ")
    assert "no namespaces here" in said and "\n" not in said


def test_another_checker_or_package_is_refused_by_name(tmp_path: Path):
    file = tmp_path / "redqueen_test_check.py"
    file.write_text(CHECK)
    here = checker_versions(Checker(str(file), ("numpy",)))
    assert set(here) == {str(file), "numpy"}
    file.write_text(CHECK + "\n")
    with pytest.raises(
        InputError, match=r"has .*redqueen_test_check.py \w{12}, and the race is started with \w{12}; inst"
    ):
        refuse_versions(here, checker_versions(Checker(str(file), ("numpy",))))
    file.write_text(CHECK)
    beside = tmp_path / "beside"
    beside.mkdir()
    for name in ("__init__.py", "rules.py"):
        (beside / name).write_text("LIMIT = 1\n")
        assert checker_versions(Checker(str(file), ("numpy",))) != here, name
    file.unlink()
    with pytest.raises(InputError, match=r"has .*redqueen_test_check.py none, and"):
        refuse_versions(here, checker_versions(Checker(str(file), ("numpy",))))


def test_another_file_of_red_queen_is_another_version(tmp_path: Path, monkeypatch):
    package = tmp_path / "redqueen" / "verifier" / "guest"
    package.mkdir(parents=True)
    (tmp_path / "redqueen" / "__init__.py").write_text("")
    (package / "zygote.py").write_text("LIMIT = 1\n")
    monkeypatch.setattr(redqueen, "__file__", str(tmp_path / "redqueen" / "__init__.py"))
    here = our_version.__wrapped__()
    assert here.startswith(f"{redqueen.__version__} (")
    (package / "zygote.py").write_text("LIMIT = 2\n")
    assert our_version.__wrapped__() != here


def test_a_checkers_functions_are_called_elsewhere_as_here(cluster: Cluster, tmp_path: Path):
    file = tmp_path / "redqueen_test_check.py"
    file.write_text(CHECK)
    jobs = [Job.check(Checker(str(file)), "same", [("a", "a"), ("a", str(number))]) for number in range(40)]
    with LocalVerifier(workers=GUESTS) as local, opened(cluster) as verifier:
        assert judged(verifier, jobs) == judged(local, jobs)
        absent = Job.check(Checker(str(tmp_path / "absent.py")), "same", [("a", "a")])
        with pytest.raises(InputError, match=r"there is no checker .*absent.py"):
            judged(verifier, [absent])
