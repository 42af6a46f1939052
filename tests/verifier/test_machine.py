"""A verdict is about the program: what the machine does to a run is tried again, and never becomes one."""

import asyncio
import contextlib
import errno
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import start
from test_mutation import take_out

from redqueen.errors import IsolationError, MachineError
from redqueen.verifier import (
    Job,
    Limits,
    LocalVerifier,
    Result,
    Status,
    StrictVerifier,
    Tier,
    machine,
    pool,
    tiers,
    zygotes,
)
from redqueen.verifier.replies import agree

ADD = "def f(x, n=1):\n    return x + n"
BURN = "def f(n):\n    total = 0\n    for at in range(n):\n        total += at % 7\n    return total"
BURNT = sum(at % 7 for at in range(2_000_000))
LONG = Limits(cpu_s=20)
LOOP = "def f(x):\n    while True: pass"


def verdicts(verifier: LocalVerifier, *jobs: Job) -> list[str]:
    return [outcome.results[0].verdict for outcome in verifier.run_sync(jobs)]


def children() -> list[int]:
    """The runs of this process's pools that are under way now: they have a session of their own, as zygotes have."""
    runs, pending = [], [os.getpid()]
    while pending:
        pid = pending.pop()
        with contextlib.suppress(OSError):
            tasks = Path(f"/proc/{pid}/task").iterdir()  # a thread's children are not its process's
            below = [int(child) for task in tasks for child in (task / "children").read_text().split()]
            pending += below
            runs += [child for child in below if _is_run(child)]
    return runs


def _is_run(pid: int) -> bool:
    """Runs may start no further process, zygotes do nothing else."""
    limits = Path(f"/proc/{pid}/limits").read_text()
    return next(line for line in limits.splitlines() if line.startswith("Max processes")).split()[2] == "0"


@contextlib.contextmanager
def doing_to_children(*signals: int, most: int = 10**9) -> Iterator[list[int]]:
    """Send every run these signals, a moment apart, until so many have had them."""
    had: list[int] = []
    over = threading.Event()

    def work() -> None:
        while not over.is_set() and len(had) < most:
            for pid in [pid for pid in children() if pid not in had or len(signals) > 1][: most - len(had)]:
                with contextlib.suppress(OSError):
                    for number in signals:
                        os.kill(pid, number)
                        time.sleep(0.02)
                    had.append(pid)
            time.sleep(0.01)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield had
    finally:
        over.set()
        thread.join()


NO_TIMER = ("isolation.py", "refused |= syscall(settime, user_timer, 0, user_limit, None)", "refused |= -1")


def test_a_child_that_cannot_be_confined_never_begins_and_is_no_verdict(monkeypatch, tmp_path) -> None:
    """As where a user has no timers left."""
    take_out(monkeypatch, tmp_path, [NO_TIMER])
    monkeypatch.setattr(machine, "RETRY_S", 0.3)
    for tier in (Tier.FULL, Tier.SECCOMP):
        with pytest.raises(MachineError, match="could not be started"):
            start(tier, workers=1)


def test_what_the_machine_ended_is_not_counted_as_the_programs_time(any_verifier) -> None:
    job = Job.calls(BURN, ["2_000_000"], limits=LONG)
    with doing_to_children(signal.SIGKILL, most=3):
        [disturbed] = any_verifier.run_sync([job])
    [quiet] = any_verifier.run_sync([job])
    assert 0 < disturbed.user_ms <= disturbed.cpu_ms < 2.5 * quiet.cpu_ms


def test_a_run_that_gets_no_time_at_all_is_tried_again(monkeypatch) -> None:
    monkeypatch.setattr("redqueen.verifier.supervisor.Supervisor._max_duration", lambda pool, run: 2.0)
    with LocalVerifier(workers=1) as verifier, doing_to_children(signal.SIGSTOP, most=1) as stopped:
        assert verdicts(verifier, Job.calls(BURN, ["2_000_000"], limits=LONG, seeds=1)) == [f"ok:{BURNT}"]
    assert len(stopped) == 1


def test_a_run_that_is_killed_from_outside_is_run_again(verifier) -> None:
    with doing_to_children(signal.SIGKILL, most=3) as killed:
        assert verdicts(verifier, *[Job.calls(BURN, ["2_000_000"], limits=LONG)] * 3) == [f"ok:{BURNT}"] * 3
    assert len(killed) == 3


def test_a_loop_that_is_killed_from_outside_is_still_a_time_out(any_verifier) -> None:
    with doing_to_children(signal.SIGKILL, most=2) as killed:
        assert verdicts(any_verifier, Job.calls(LOOP, ["1"])) == ["timeout"]
    assert len(killed) == 2


def test_runs_that_are_stopped_and_continued_come_out_as_ever(any_verifier) -> None:
    jobs = [Job.calls(BURN, ["2_000_000"], limits=LONG), Job.calls(LOOP, ["1"]), Job.calls(ADD, ["1"])]
    with doing_to_children(signal.SIGSTOP, signal.SIGCONT):
        assert verdicts(any_verifier, *jobs) == [f"ok:{BURNT}", "timeout", "ok:2"]


@contextlib.contextmanager
def killing(victims: Callable[[], list[int]]) -> Iterator[list[int]]:
    """SIGKILL to all of these, time and again, from outside."""
    killed: list[int] = []
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.02):
            with contextlib.suppress(OSError):  # gone by itself
                for pid in victims():
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def heavy(megabytes: int) -> list[int]:
    """The runs that have more memory than that."""
    return [pid for pid in children() if _resident_mb(pid) > megabytes]


def _resident_mb(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20
    return 0


def test_a_run_that_the_machine_goes_on_failing_is_a_fault_and_the_pool_lives(monkeypatch) -> None:
    monkeypatch.setattr(machine, "RETRY_S", 0.5)
    with LocalVerifier(workers=1) as verifier:
        with doing_to_children(signal.SIGKILL) as killed:
            [outcome] = verifier.run_sync([Job.calls(BURN, ["50_000_000", "1"], limits=LONG)])
        assert [result.verdict for result in outcome.results] == ["fault", "fault"]
        assert outcome.fault is not None and "killed from outside" in outcome.fault
        assert len(killed) >= 4, "it was tried again"
        assert verdicts(verifier, Job.calls(ADD, ["1"])) == ["ok:2"]


def test_who_needs_every_verdict_gets_an_error_for_a_fault(monkeypatch) -> None:
    monkeypatch.setattr(machine, "RETRY_S", 0.5)
    with LocalVerifier(workers=1) as verifier, doing_to_children(signal.SIGKILL):
        jobs = [Job.calls(BURN, ["50_000_000"], limits=LONG, seeds=1)]
        with pytest.raises(MachineError, match=r"failed a program .*killed from outside.*same command"):
            asyncio.run(StrictVerifier(verifier).run(jobs))


def test_what_a_program_does_in_one_run_counts_more_than_a_fault_of_another() -> None:
    ok, crash, fault = ((Result(status),) for status in (Status.OK, Status.CRASH, Status.FAULT))
    assert [agree(runs) for runs in ([fault, crash], [crash, fault], [ok, fault], [fault, ok])] == [
        crash,
        crash,
        fault,
        fault,
    ]


NO_FORK = "raise BlockingIOError(11, 'Resource temporarily unavailable')"
FEW_FORKS = [
    ("service.py", "_padding = []\n", "_padding = []\n_refused = iter(range({times}))\n"),
    ("service.py", "        return os.fork()\n", f"        for _ in _refused: {NO_FORK}\n        return os.fork()\n"),
]
NO_LONG_JOBS = ("service.py", "pid = _fork()", "pid = _fork() if size < 10_000 else None")


def test_zygotes_that_cannot_fork_for_a_while_are_waited_for(monkeypatch, tmp_path) -> None:
    take_out(monkeypatch, tmp_path, [(name, old, new.format(times=3)) for name, old, new in FEW_FORKS])
    for tier in (Tier.FULL, Tier.SECCOMP):
        with start(tier, workers=1) as verifier:
            assert verdicts(verifier, *[Job.calls(ADD, ["1"])] * 5) == ["ok:2"] * 5
            assert verifier.refusals == ()


def test_what_cannot_be_forked_for_good_is_a_fault_and_what_can_be_is_judged(monkeypatch, tmp_path) -> None:
    take_out(monkeypatch, tmp_path, [NO_LONG_JOBS])
    monkeypatch.setattr(machine, "RETRY_S", 0.5)
    with LocalVerifier(workers=1) as verifier:
        long = Job.calls(ADD + "\n" + "# a comment\n" * 1_000, ["1"])
        one, other = verifier.run_sync([long, Job.calls(ADD, ["1"])])
    assert (one.results[0].verdict, other.results[0].verdict) == ("fault", "ok:2")
    assert one.fault is not None and "could not be started" in one.fault
    assert other.fault is None


def test_a_program_that_fills_a_short_memory_is_not_excused_for_being_killed(monkeypatch) -> None:
    """The kernel's out-of-memory killer, but for who sends the signal: what it ends is a fault, or nobody could be
    judged; unless it is by what the program takes."""
    kills = itertools.count()
    monkeypatch.setattr(machine, "oom_kills", lambda: next(kills))
    monkeypatch.setattr(machine, "RETRY_S", 0.5)
    hog = "def f(n):\n    held = b'x' * (n << 20)\n    while True: pass"
    for megabytes, verdict in ((60, "fault"), (200, "memory")):
        with LocalVerifier(workers=1) as verifier, killing(lambda: heavy(megabytes - 10)) as killed:  # noqa: B023
            assert verdicts(verifier, Job.calls(hog, [str(megabytes)], limits=LONG, seeds=1)) == [verdict]
        assert len(killed) >= 4


OWN_ENDS = {
    "import os\ndef f(x):\n    os.kill(os.getpid(), 9)": "exc:PermissionError",
    "import os\ndef f(x):\n    os.kill(os.getppid(), 9)": "exc:PermissionError",
    "import os, signal\ndef f(x):\n    os.kill(os.getpid(), signal.SIGUSR1)": "exc:PermissionError",
    "import signal\ndef f(x):\n    signal.raise_signal(signal.SIGKILL)": "exc:PermissionError",
    "import os\ndef f(x):\n    while True: os.fork()": "exc:PermissionError",
    "import os\ndef f(x):\n    os._exit(9)": "noresult",
    "import os\ndef f(x):\n    os.abort()": "crash",
    "def f(x):\n    held = []\n    while True: held.append(b'x' * (1 << 20))": "memory",
}


@pytest.mark.parametrize("source", OWN_ENDS)
def test_no_program_ends_itself_in_a_way_that_is_the_machines(source, verifier) -> None:
    assert verdicts(verifier, Job.calls(source, ["1"])) == [OWN_ENDS[source]]


def test_a_death_in_one_run_alone_is_looked_at_again_and_then_believed(any_verifier) -> None:
    """It loops under the first hash seed alone."""
    order = any_verifier.run_sync([Job.calls("def f(x): return list({'a', 'b', 'c', 'd'})", ["1"], seeds=1)])
    first = order[0].results[0].value
    source = f"def f(x):\n    while list({{'a', 'b', 'c', 'd'}}) == {first}: pass\n    return x"
    [outcome] = any_verifier.run_sync([Job.calls(source, ["1"], limits=Limits(cpu_s=0.1))])
    assert [run[0].verdict for run in outcome.runs] == ["timeout", "ok:1"]
    assert outcome.results[0].verdict == "timeout"
    assert outcome.cpu_ms > 1.5 * 100, "it was run again, for longer"


def test_a_program_that_barely_misses_its_limit_once_gets_its_value(any_verifier, monkeypatch) -> None:
    """Only the first run has a limit that is too short for it, as on a day when it was slow."""
    from redqueen.verifier.runs import GuestRun

    def tighter(run: GuestRun) -> float:
        return 0.004 if run.order == 0 and run.time_factor == 1 else 20.0

    monkeypatch.setattr(GuestRun, "user_limit_s", property(tighter))
    [outcome] = any_verifier.run_sync([Job.calls(BURN, ["2_000_000"])])
    assert outcome.results[0].verdict == f"ok:{BURNT}"


def test_nobody_is_timed_out_before_the_time_is_over_by_the_exact_clock(any_verifier, monkeypatch) -> None:
    """Ticks that charge a program with others' time: the timer fires far too early, time and again."""
    from redqueen.verifier.runs import GuestRun

    monkeypatch.setattr(GuestRun, "user_limit_s", property(lambda run: 0.01 * run.time_factor))
    burn, loop = any_verifier.run_sync([Job.calls(BURN, ["1_000_000"], limits=LONG), Job.calls(LOOP, ["1"])])
    assert burn.results[0].verdict == f"ok:{sum(at % 7 for at in range(1_000_000))}"
    assert loop.results[0].verdict == "timeout"
    assert loop.cpu_ms >= 2 * 300


def test_time_in_the_kernel_ends_a_run_too(any_verifier, monkeypatch) -> None:
    """With no limit of user time to speak of, the wider one is what ends a loop."""
    from redqueen.verifier.runs import GuestRun

    looks: set[int] = set()

    def short(run: GuestRun) -> float:
        looks.add(run.time_factor)
        return 0.2 * run.time_factor

    monkeypatch.setattr(GuestRun, "user_limit_s", property(lambda run: 600.0))
    monkeypatch.setattr(GuestRun, "cpu_limit_s", property(short))
    [outcome] = any_verifier.run_sync([Job.calls(LOOP, ["1"], seeds=1)])
    assert outcome.results[0].verdict == "timeout"
    assert looks == {1, 2}, "one look more, of twice the time"


def test_memory_that_the_machine_does_not_have_is_not_the_programs_fault(any_verifier, monkeypatch) -> None:
    hog = Job.calls("def f(x): return len(bytes(400 << 20))", ["1"])
    requests: list[int] = []

    def refused(memory_mb: int) -> bool:
        requests.append(memory_mb)
        return len(requests) <= 3

    monkeypatch.setattr("redqueen.verifier.machine.memory_refused", refused)
    assert verdicts(any_verifier, hog) == ["memory"]
    assert len(requests) == 5, "three were tried again"
    monkeypatch.setattr("redqueen.verifier.machine.memory_refused", lambda memory_mb: True)
    monkeypatch.setattr(machine, "RETRY_S", 0.5)
    with pytest.raises(MachineError, match="memory is short"):
        any_verifier.run_sync([hog])


def test_memory_counts_as_refused_where_promises_are_counted_and_few_are_left(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(machine, "_PROC", tmp_path)
    assert not machine.memory_refused(256)
    (tmp_path / "sys/vm").mkdir(parents=True)
    (tmp_path / "meminfo").write_text("CommitLimit:  1000000 kB\nCommitted_AS:  900000 kB\nHugePages_Total:  0\n")
    for mode, megabytes, refused in (("0", 256, False), ("2", 256, True), ("2", 64, False)):
        (tmp_path / "sys/vm/overcommit_memory").write_text(f"{mode}\n")
        assert machine.memory_refused(megabytes) is refused


def test_a_machine_that_cannot_start_processes_for_a_while_is_waited_for(monkeypatch) -> None:
    spawn, failures = zygotes.Zygote._spawn, []

    def failing(zygote, *arguments):
        if len(failures) < 3:
            failures.append(1)
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return spawn(zygote, *arguments)

    monkeypatch.setattr(zygotes.Zygote, "_spawn", failing)
    with LocalVerifier(workers=1) as verifier:
        assert verifier.refusals == ()
        assert verdicts(verifier, Job.calls(ADD, ["1"])) == ["ok:2"]
    assert len(failures) == 3


def test_a_machine_that_never_starts_processes_is_named_and_no_weaker_isolation_taken(monkeypatch) -> None:
    def failing(*_: object) -> None:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(zygotes.Zygote, "_spawn", failing)
    monkeypatch.setattr(machine, "RETRY_S", 0.3)
    with pytest.raises(MachineError, match="Resource temporarily unavailable") as caught:
        LocalVerifier(workers=1, run_unprotected=True)
    assert "unprotected" not in str(caught.value)


SLOW_CANARY = ("an honest program", "def f():\n    while True: pass", ("ok:1",))


def test_a_canary_that_runs_out_of_time_is_tried_again_and_lowers_nothing(monkeypatch) -> None:
    monkeypatch.setattr(tiers, "CANARIES", (SLOW_CANARY,))
    monkeypatch.setattr(machine, "RETRY_S", 0.3)
    with pytest.raises(MachineError, match="honest program came out as timeout") as caught:
        LocalVerifier(workers=1, run_unprotected=True)
    assert "unprotected" not in str(caught.value)


def test_a_canary_that_got_through_is_not_tried_again(monkeypatch) -> None:
    reached = ("opening a file", "def f():\n    return 'reached'", ("exc:PermissionError",))
    monkeypatch.setattr(tiers, "CANARIES", (reached, SLOW_CANARY))
    with pytest.raises(IsolationError, match="came out as ok:'reached'"):
        LocalVerifier(tier=Tier.SECCOMP, workers=1)


def test_a_start_that_takes_long_says_so(monkeypatch, capfd) -> None:
    monkeypatch.setattr(pool, "_SLOW_START_S", 0.0)
    LocalVerifier(workers=1).close()
    assert "the machine is busy: still starting the verifier" in capfd.readouterr().err


FEW_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[1])))
from redqueen.errors import IsolationError, MachineError
from redqueen.verifier import Job, LocalVerifier
try:
    with LocalVerifier() as verifier:
        outcomes = verifier.run_sync([Job.calls("def f(x): return x + 1", [str(n)]) for n in range(100)])
        print(sum(outcome.results[0].verdict == f"ok:{n + 1}" for n, outcome in enumerate(outcomes)))
except MachineError as error:
    print(error)
"""


@pytest.mark.parametrize(("most", "message"), [(40, "100\n"), (8, "open files")])
def test_with_few_open_files_the_pool_does_less_at_a_time_or_says_what_it_needs(most, message) -> None:
    done = subprocess.run([sys.executable, "-c", FEW_FILES, str(most)], capture_output=True, text=True)
    assert message in done.stdout, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_whose_zygote_dies_with_it_every_time_is_a_crash_and_stops_nobody(monkeypatch) -> None:
    with start(Tier.SECCOMP, workers=1) as verifier:
        answer = verifier.submit([Job.calls(LOOP, ["1"], limits=Limits(cpu_s=60))])
        while not answer.done():
            for pid in verifier.zygote_pids():
                with contextlib.suppress(OSError):
                    if any(_parent(child) == pid for child in children()):
                        os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        assert [outcome.results[0].verdict for outcome in answer.result()] == ["crash"]
        assert verdicts(verifier, Job.calls(ADD, ["1"])) == ["ok:2"]


def test_who_is_beside_a_program_whose_zygote_dies_with_it_is_judged_all_the_same() -> None:
    hostile = "def f(x):\n    held = b'x' * (120 << 20)\n    while True: pass"
    jobs = [Job.calls(hostile, ["1"], limits=Limits(cpu_s=60), seeds=1)]
    jobs += [Job.calls(BURN, ["2_000_000"], limits=LONG, seeds=1)] * 12
    with start(Tier.SECCOMP, workers=1) as verifier, killing(lambda: [_parent(pid) for pid in heavy(100)]):
        assert verdicts(verifier, *jobs) == ["crash", *[f"ok:{BURNT}"] * 12]


def test_a_program_is_not_blamed_for_its_zygotes_where_idle_ones_die_too(monkeypatch) -> None:
    monkeypatch.setattr(machine, "RETRY_S", 6.0)
    with start(Tier.SECCOMP, workers=2) as verifier:
        with killing(verifier.zygote_pids) as killed:
            assert verdicts(verifier, Job.calls(LOOP, ["1"], limits=Limits(cpu_s=60), seeds=1)) == ["fault"]
        assert len(killed) > 10
        assert verdicts(verifier, Job.calls(ADD, ["1"])) == ["ok:2"]


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_no_frame_of_the_guest_holds_its_limits_or_figures_of_other_runs(any_verifier) -> None:
    source = (
        "import sys\ndef f(x):\n    frame, seen = sys._getframe(), []\n    while frame:\n"
        "        for value in frame.f_locals.values():\n"
        "            seen += value if type(value) is tuple else [value]\n"
        "        frame = frame.f_back\n    return sorted({v for v in seen if type(v) is int and v > 1000})"
    )
    jobs = [Job.calls(source, ["1"], limits=Limits(cpu_s=cpu_s, memory_mb=mb)) for cpu_s, mb in ((1, 256), (7, 301))]
    spin = Job.calls("def f(x):\n    return sum(range(x))", ["200000"])
    for _ in range(8):
        any_verifier.run_sync([spin])
        one, other = any_verifier.run_sync(jobs)
        assert one.results == other.results
        assert one.results[0].status is Status.OK
