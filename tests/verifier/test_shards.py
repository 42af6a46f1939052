"""Shards: with many workers the supervisors are processes of their own, and nobody notices but the clock."""

import asyncio
import contextlib
import itertools
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import start
from corpus import ATTACK_PRELOAD, OWN, load, wrong
from test_machine import FEW_FILES
from test_pool import _NO_UNSHARE

from redqueen.bench import soak
from redqueen.errors import MachineError, VerifierFault
from redqueen.settings import Config
from redqueen.verifier import Job, Limits, LocalVerifier, Outcome, Result, Status, Tier, machine, parcels, pool
from redqueen.verifier.desk import Batch
from redqueen.verifier.link import Link
from redqueen.verifier.sharded_desk import ShardedDesk
from redqueen.verifier.supervisor import slots
from redqueen.verifier.zygotes import PRELOAD

ADD = "def f(x, n=1):\n    return x + n"
LOOP = "def f():\n    while True: pass"
SHARDS = 3
FORCED = "from redqueen.verifier import *\nfrom redqueen.verifier import pool\npool.WORKERS_PER_SHARD = 1\n"
"""How a script has a shard per worker."""


@pytest.fixture(autouse=True)
def one_worker_per_shard(monkeypatch) -> None:
    monkeypatch.setattr(pool, "WORKERS_PER_SHARD", 1)


@pytest.fixture(scope="module", params=[Tier.FULL, Tier.SECCOMP], ids=str)
def sharded(request) -> Iterator[LocalVerifier]:
    """Those that do it no harm share one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "WORKERS_PER_SHARD", 1)
        with start(request.param, preload=ATTACK_PRELOAD, workers=SHARDS) as verifier:
            yield verifier


def desk(verifier: LocalVerifier) -> ShardedDesk:
    found = verifier._desk
    assert isinstance(found, ShardedDesk)
    return found


def verdicts(verifier: LocalVerifier, *jobs: Job) -> list[str]:
    return [outcome.results[0].verdict for outcome in verifier.run_sync(jobs)]


def numbers(count: int) -> tuple[list[Job], list[str]]:
    """Jobs of one to three runs, and what must come of them."""
    jobs = [Job.calls(ADD, [str(n)], seeds=1 + n % 3) for n in range(count)]
    return jobs, [f"ok:{n + 1}" for n in range(count)]


def until(true: Callable[[], object], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.01)


def below(pid: int) -> list[int]:
    """All descendants of a process that are alive."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():  # a thread's children are not its process's
            for child in map(int, (task / "children").read_text().split()):
                found += [child, *below(child)] if alive(child) else []
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def inode(fd: int) -> int:
    with contextlib.suppress(OSError):  # that of the listing itself
        return os.fstat(fd).st_ino
    return 0


def test_how_many_shards_there_are_follows_from_the_workers(monkeypatch) -> None:
    monkeypatch.setattr(pool, "WORKERS_PER_SHARD", 2)
    for workers, parts in ((2, None), (3, [1, 2]), (4, [2, 2]), (5, [1, 2, 2])):
        made = pool._desk(Tier.SECCOMP, workers, ())
        assert parts == (sorted(place.workers for place in made._places) if isinstance(made, ShardedDesk) else None)
        made.abandon()


def test_zygotes_belong_to_shards_and_all_of_them_are_known(sharded) -> None:
    verdicts(sharded, *numbers(60)[0])
    shards = desk(sharded).shard_pids()
    assert len(shards) == SHARDS
    until(lambda: len(sharded.zygote_pids()) == sharded.zygote_count() >= SHARDS)
    of_shards = [pid for shard in shards for pid in below(shard)]
    assert set(sharded.zygote_pids()) <= set(of_shards)


def test_outcomes_come_in_the_order_of_the_jobs(sharded) -> None:
    jobs, expected = numbers(200)
    jobs[::40] = [Job.calls(LOOP, [""], seeds=1, limits=Limits(cpu_s=0.1))] * 5
    expected[::40] = ["timeout"] * 5
    assert verdicts(sharded, *jobs) == expected


def test_threads_and_event_loops_share_the_shards(sharded) -> None:
    answers: dict[int, list[str]] = {}

    async def several(seed: int) -> list[str]:
        batches = [sharded.run([Job.calls(ADD, [f"{seed}, {n}"])]) for n in range(20)]
        return [outcome.results[0].verdict for [outcome] in await asyncio.gather(*batches)]

    def work(seed: int) -> None:
        answers[seed] = asyncio.run(several(seed))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {seed: [f"ok:{seed + n}" for n in range(20)] for seed in range(4)}


def test_every_outcome_is_what_one_process_makes_of_the_job(sharded, monkeypatch) -> None:
    jobs = [
        Job.calls("def f(x):\n    return 10 // x", ["1", "0", "object()"]),
        Job.calls("def f():\n    return list({'a', 'b', 'c', 'd', 'e'})", [""]),
        Job.program("print(input(), '\\udc80'.encode('utf-8', 'surrogateescape'))", "\udcff"),
        Job.calls("import decimal, m\ndef f():\n    return str(decimal.Decimal(m.X))", [""], modules=[("m", "X = 1")]),
        Job.calls("def f():\n    import numpy\n    return numpy.arange(3).tolist()", [""], numpy=True),
        Job.literals(["0x10", "x"]),
        Job.arguments(["1,[2,3],n = 5"]),
        Job.calls("#" * 1_000_001, [""]),
        Job.calls(f"def f(): return {'x' * 300_000!r}", [""], limits=Limits(value_chars=1_000_000)),
    ]
    monkeypatch.setattr(pool, "WORKERS_PER_SHARD", 2)
    with start(sharded.tier, preload=ATTACK_PRELOAD, workers=1) as local:
        expected = [(one.results, one.runs, one.tier, one.fault) for one in local.run_sync(jobs)]
    assert [(one.results, one.runs, one.tier, one.fault) for one in sharded.run_sync(jobs)] == expected


def test_hostile_programs_are_contained(sharded) -> None:
    before = {pid for shard in desk(sharded).shard_pids() for pid in [shard, *below(shard)]}
    assert wrong(sharded, load(OWN)) == {}
    assert verdicts(sharded, *numbers(60)[0]) == numbers(60)[1]
    assert set(desk(sharded).shard_pids()) <= before, "a shard died"


def test_a_shard_that_gets_no_further_holds_up_what_it_has_in_hand_and_no_more(sharded) -> None:
    stopped = desk(sharded).shard_pids()[0]
    os.kill(stopped, signal.SIGSTOP)
    try:
        under_way = sharded.submit([Job.calls(ADD, [str(n)], seeds=1) for n in range(400)])
        until(lambda: any(batch.future is under_way for batch in list(desk(sharded)._open)))
        [batch] = [batch for batch in list(desk(sharded)._open) if batch.future is under_way]
        until(lambda: batch.left <= slots(1))
        assert verdicts(sharded, *[Job.calls(ADD, ["1"], seeds=1)] * 5) == ["ok:2"] * 5
        assert not under_way.done()
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert [outcome.results[0].verdict for outcome in under_way.result()] == [f"ok:{n + 1}" for n in range(400)]


def test_loops_are_spread_and_a_long_batch_does_not_hold_up_a_short_one(sharded) -> None:
    loops = sharded.submit([Job.calls(LOOP, [""], seeds=1, limits=Limits(cpu_s=0.02))] * (3 * SHARDS * slots(1)))
    until(lambda: all(shard.runs for shard in desk(sharded)._shards()))
    assert {shard.runs for shard in desk(sharded)._shards()} <= {slots(1), slots(1) - 1}
    assert verdicts(sharded, Job.calls("import json\ndef f(): return json.dumps(1)", [""])) == ["ok:'1'"]
    assert verdicts(sharded, *[Job.calls(ADD, ["1"], seeds=1)] * 5) == ["ok:2"] * 5
    assert not loops.done()
    loops.result()


@pytest.mark.parametrize("tier", [Tier.FULL, Tier.SECCOMP], ids=str)
def test_shards_that_are_killed_are_replaced_and_no_job_is_lost_or_answered_twice(tier, monkeypatch) -> None:
    with start(tier, workers=SHARDS) as verifier:
        added: list[tuple[object, int]] = []
        add = Batch.add

        def counted(batch: Batch, index: int, outcome: Outcome) -> None:
            added.append((batch, index))
            add(batch, index, outcome)

        monkeypatch.setattr(Batch, "add", counted)
        jobs, expected = numbers(300)
        killed: set[int] = set()
        zygotes: set[int] = set()
        for _ in range(4):
            until(lambda: len(desk(verifier).shard_pids()) == SHARDS)
            answer = verifier.submit(jobs)
            until(lambda: any(shard.under_way for shard in desk(verifier)._shards()))
            [victim] = [shard.process.pid for shard in desk(verifier)._shards() if shard.under_way][:1]
            zygotes |= set(below(victim))
            os.kill(victim, signal.SIGKILL)
            killed.add(victim)
            assert [outcome.results[0].verdict for outcome in answer.result()] == expected
        assert len(killed) == 4
        assert len(added) == len(set(added)) == 4 * len(jobs)
        until(lambda: len(desk(verifier).shard_pids()) == SHARDS)
        assert not killed & set(desk(verifier).shard_pids())
        until(lambda: not [pid for pid in zygotes if alive(pid)])


def test_where_shards_go_on_dying_the_machine_is_named_and_the_next_call_works(monkeypatch) -> None:
    monkeypatch.setattr(machine, "RETRY_S", 0.5)
    with start(Tier.SECCOMP, workers=2) as verifier:
        answer = verifier.submit([Job.calls(LOOP, [""], limits=Limits(cpu_s=60))])
        while not answer.done():
            with contextlib.suppress(ProcessLookupError):
                for shard in [shard for shard in desk(verifier)._shards() if shard.under_way]:
                    os.kill(shard.process.pid, signal.SIGKILL)
            time.sleep(0.02)
        with pytest.raises(MachineError, match=r"a shard died.*same command"):
            answer.result()
        assert verdicts(verifier, Job.calls(ADD, ["1"])) == ["ok:2"]


def test_shards_that_cannot_be_started_are_waited_for_and_then_named(monkeypatch) -> None:
    desks, popen, failures = "redqueen.verifier.sharded_desk", subprocess.Popen, itertools.count()

    def failing(*arguments, **options):
        if next(failures) < times:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return popen(*arguments, **options)

    monkeypatch.setattr(f"{desks}.subprocess.Popen", failing)
    times = 3
    with start(Tier.SECCOMP, workers=2) as verifier:
        assert verdicts(verifier, Job.calls(ADD, ["1"])) == ["ok:2"]
    times = 10**9
    monkeypatch.setattr(machine, "RETRY_S", 0.3)
    with pytest.raises(MachineError, match="Resource temporarily unavailable"):
        LocalVerifier(workers=2, run_unprotected=True)


def test_a_killed_zygote_is_replaced_by_its_shard() -> None:
    jobs, expected = numbers(100)
    with start(Tier.FULL, workers=SHARDS) as verifier:
        assert verdicts(verifier, *jobs) == expected
        until(lambda: len(verifier.zygote_pids()) == verifier.zygote_count())
        before, count, shards = verifier.zygote_pids(), verifier.zygote_count(), desk(verifier).shard_pids()
        for pid in before[::2]:
            os.kill(pid, signal.SIGKILL)
        assert verdicts(verifier, *jobs) == expected
        until(lambda: len(verifier.zygote_pids()) == count and not set(before[::2]) & set(verifier.zygote_pids()))
        assert desk(verifier).shard_pids() == shards


def test_closing_ends_every_process_and_fails_what_is_under_way() -> None:
    verifier = start(Tier.FULL, workers=SHARDS)
    answers = [verifier.submit([Job.calls(LOOP, [""], limits=Limits(cpu_s=60))] * count) for count in (1, 500)]
    until(lambda: all(shard.under_way for shard in desk(verifier)._shards()))
    family = [pid for shard in desk(verifier).shard_pids() for pid in [shard, *below(shard)]]
    verifier.close()
    for answer in answers:
        with pytest.raises(VerifierFault, match="closed"):
            answer.result(timeout=60)
    assert len(family) > 2 * SHARDS
    until(lambda: not [pid for pid in family if alive(pid)])
    with pytest.raises(VerifierFault, match="closed"):
        verifier.submit([Job.calls(ADD, ["1"])])


@pytest.mark.parametrize("tier", [Tier.FULL, Tier.SECCOMP], ids=str)
def test_when_the_host_is_killed_nothing_is_left(tier) -> None:
    script = FORCED + (
        f"import time\nverifier = LocalVerifier(workers=3, tier={str(tier)!r})\n"
        "verifier.submit([Job.calls('def f():\\n    while True: pass', [''], limits=Limits(cpu_s=60))] * 60)\n"
        "time.sleep(1)\nprint('now', flush=True)\ntime.sleep(60)\n"
    )
    host = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    if host.stdout.readline() != "now\n":
        pytest.skip(f"no tier {tier}")
    family = below(host.pid)
    assert len(family) > 60
    host.kill()
    host.wait()
    host.stdout.close()
    until(lambda: not [pid for pid in family if alive(pid)])


def test_the_child_of_a_fork_gets_shards_of_its_own_and_keeps_no_end_of_the_parents() -> None:
    with start(Tier.SECCOMP, workers=2) as verifier:
        before = set(desk(verifier).shard_pids())
        links = {os.fstat(shard.link._socket.fileno()).st_ino for shard in desk(verifier)._shards()}
        ours, childs = socket.socketpair()
        child = os.fork()
        if child == 0:
            try:
                ours.close()
                [verdict] = verdicts(verifier, Job.calls(ADD, ["1"]))
                shared = before & set(desk(verifier).shard_pids())
                kept = [fd for fd in os.listdir("/proc/self/fd") if inode(int(fd)) in links]
                childs.send(f"{verdict} {len(shared)} {len(kept)}".encode())
                childs.recv(1)  # until the parent has closed its pool
            finally:
                os._exit(0)
        with ours, childs:
            assert ours.recv(100) == b"ok:2 0 0"
            assert verdicts(verifier, Job.calls(ADD, ["2"])) == ["ok:3"]
            assert set(desk(verifier).shard_pids()) == before
            verifier.close()
            until(lambda: not [pid for pid in before if alive(pid)])
            ours.send(b"x")
            os.waitpid(child, 0)


def test_what_fails_in_a_shard_is_the_same_error_here() -> None:
    with start(Tier.SECCOMP, workers=2, preload=(*PRELOAD, "no_such_module")) as verifier:
        for _ in range(2):
            with pytest.raises(VerifierFault, match="no_such_module"):
                verifier.run_sync([Job.calls("import json\ndef f(): return 1", [""], seeds=1)])
        assert verdicts(verifier, Job.calls(ADD, ["1"])) == ["ok:2"]


@pytest.mark.parametrize(("most", "message"), [(40, "100\n"), (8, "open files")])
def test_with_few_open_files_shards_do_less_at_a_time_or_say_what_they_need(most, message) -> None:
    script = FEW_FILES.replace("try:\n", FORCED + "try:\n", 1).replace("LocalVerifier()", "LocalVerifier(workers=2)")
    done = subprocess.run([sys.executable, "-c", script, str(most)], capture_output=True, text=True)
    assert message in done.stdout, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_tier_that_shards_find_refused_gives_way_to_the_next() -> None:
    script = FORCED + (
        "with LocalVerifier(workers=2) as verifier:\n"
        "    print(verifier.tier, [(str(r.tier), 'unshare' in r.why) for r in verifier.refusals])"
    )
    forbid = "import ctypes, os, sys\n" + _NO_UNSHARE + "os.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])"
    done = subprocess.run([sys.executable, "-c", forbid, script], capture_output=True, text=True)
    assert done.stdout == "seccomp [('full', True)]\n", done.stderr


def test_shards_and_zygotes_have_no_environment_of_the_hosts(monkeypatch) -> None:
    monkeypatch.setenv("REDQUEEN_TEST_SECRET", "for nobody else")
    with start(Tier.SECCOMP, workers=2) as verifier:
        for pid in desk(verifier).shard_pids():
            assert b"for nobody else" not in Path(f"/proc/{pid}/environ").read_bytes()
            assert b"PYTHONPATH=" in Path(f"/proc/{pid}/environ").read_bytes()


def test_jobs_outcomes_and_errors_arrive_as_they_were_sent() -> None:
    jobs = [
        Job.calls(ADD, ["1", "'\ud800'"], entry="g", modules=[("m", "")], seeds=5, limits=Limits(7, 300, 5, 6)),
        Job.program("", "\udcff", numpy=True),
        Job.answers([("1", "2")], limits=Limits(cpu_s=2)),
    ]
    assert [parcels.unpack_job(parcels.pack_job(job)) for job in jobs] == jobs
    ok, error = (Result(Status.OK, value="1"), Result(Status.EXCEPTION, exception="E")), (Result(Status.FAULT),) * 2
    for results, runs, fault in ((ok, (ok, ok), None), (error, (ok, error), "why"), (error, (), None)):
        outcome = Outcome(results=results, tier="full", cpu_ms=1.5, runs=runs, user_ms=0.5, fault=fault)
        assert parcels.unpack_outcome(parcels.pack_outcome(outcome), "full") == outcome
    for failure in (VerifierFault("why"), MachineError("what", "mend")):
        back = parcels.unpack_error(parcels.pack_error(failure))
        assert (type(back), str(back)) == (type(failure), str(failure))


def test_a_link_carries_messages_of_any_size_both_ways_at_once() -> None:
    selector, got, ended = selectors.DefaultSelector(), ([], []), []
    ends = socket.socketpair()
    links = [Link(end, selector, into.append, lambda: ended.append(1)) for end, into in zip(ends, got, strict=True)]
    sent = [("x" * size, size) for size in (0, 1, 5_000_000, 3, 20_000_000)]
    for link in links:
        for message in sent:
            link.send(message)
    while not all(len(into) == len(sent) for into in got):
        for key, events in selector.select(60):
            key.data(events)
    assert got == (sent, sent)
    links[0].close()
    while not ended:
        for key, events in selector.select(60):
            key.data(events)
    assert ended == [1]
    selector.close()


def test_the_soak_holds_with_shards() -> None:
    config = Config.model_validate({"verifier": {"workers": 2}})
    report = soak.soak(2000, config)
    assert report.flat and report.tally.wrong == 0 and report.tally.zygotes_killed
