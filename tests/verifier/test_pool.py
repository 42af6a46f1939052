"""The pool: jobs in, outcomes out, whatever happens to its processes."""

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import start

from redqueen.errors import IsolationError, MachineError, UserError, VerifierFault
from redqueen.verifier import Job, Limits, LocalVerifier, Status, Tier, available_tier, pool, tiers, zygotes
from redqueen.verifier.zygotes import PRELOAD

ADD = "def f(x, n=1):\n    return x + n"


def verdicts(verifier: LocalVerifier, *jobs: Job) -> list[str]:
    return [outcome.results[0].verdict for outcome in verifier.run_sync(jobs)]


def test_outcomes_come_in_the_order_of_the_jobs(verifier) -> None:
    jobs = [Job.calls(ADD, [str(n)], seeds=1 + n % 3) for n in range(100)]
    assert verdicts(verifier, *jobs) == [f"ok:{n + 1}" for n in range(100)]


def test_arguments_are_those_of_a_call(verifier) -> None:
    jobs = [Job.calls(ADD, [text]) for text in ("1, 2", "1, n=5", "x = -3, n = 4", "[1], [2, 3],", "'a', # why\n 'b'")]
    assert verdicts(verifier, *jobs) == ["ok:3", "ok:6", "ok:1", "ok:[1, 2, 3]", "ok:'ab'"]


def test_several_calls_share_one_process_and_each_has_its_result(verifier) -> None:
    source = "def f(x):\n    return 10 // x"
    [outcome] = verifier.run_sync([Job.calls(source, ["1", "0", "5", "object()"])])
    assert [result.verdict for result in outcome.results] == [
        "ok:10",
        "exc:ZeroDivisionError",
        "ok:2",
        "exc:ValueError",
    ]
    assert outcome.status is Status.EXCEPTION


def test_state_between_calls_is_nondeterminism(verifier) -> None:
    source = "seen = []\ndef f(x):\n    seen.append(x)\n    return len(seen)"
    assert verdicts(verifier, Job.calls(source, ["1"])) == ["ok:1"]
    [outcome] = verifier.run_sync([Job.calls(source, ["1", "2", "3"])])
    assert outcome.status is Status.NONDETERMINISTIC


def test_dicts_that_differ_only_in_order_agree(verifier) -> None:
    source = "def f():\n    return {k: len(k) for k in {'alpha', 'beta', 'gamma', 'delta', 'eps'}}"
    [outcome] = verifier.run_sync([Job.calls(source, [""])])
    assert outcome.status is Status.OK


def test_a_whole_program_reads_stdin_and_prints(verifier) -> None:
    source = (
        "import sys\n"
        "n = int(input())\n"
        "rows = [sys.stdin.readline().split() for _ in range(n)]\n"
        "print(sum(int(a) for row in rows for a in row), flush=True)\n"
        "if __name__ == '__main__':\n    sys.stdout.buffer.write(b'raw ')\n    sys.stdout.write(open(0).read())\n"
    )
    assert verdicts(verifier, Job.program(source, "2\n1 2\n3 4\nrest")) == ["ok:'10\\nraw rest'"]


def test_a_program_that_exits_with_0_is_ok_and_with_1_is_not(verifier) -> None:
    jobs = [Job.program(f"import sys\nprint('x')\nsys.exit({code})") for code in ("0", "", "1", "'no'")]
    assert verdicts(verifier, *jobs) == ["ok:'x\\n'", "ok:'x\\n'", "exc:SystemExit", "exc:SystemExit"]


def test_several_files_run_together(verifier) -> None:
    tests = (
        "from solution import add\nimport cases\nfor a, b, c in cases.CASES:\n    assert add(a, b) == c\nprint('done')"
    )
    modules = [("solution", "def add(a, b):\n    return a + b"), ("cases", "CASES = [(1, 2, 3), (2, 2, 4)]")]
    assert verdicts(verifier, Job.program(tests, modules=modules)) == ["ok:'done\\n'"]
    wrong = [("solution", "def add(a, b):\n    return a - b"), modules[1]]
    assert verdicts(verifier, Job.program(tests, modules=wrong)) == ["exc:AssertionError"]


def test_numpy_has_a_guest_of_its_own(verifier) -> None:
    source = (
        "def f(n):\n    import numpy as np\n"
        "    return float(np.trace(np.linalg.inv(np.eye(n) * 2))), (np.arange(n) ** 2).tolist()"
    )
    jobs = [Job.calls(source, ["3"], numpy=True), Job.calls(source, ["3"])]
    assert verdicts(verifier, *jobs) == ["ok:(1.5, [0, 1, 4])", "exc:ModuleNotFoundError"]


def test_numpy_without_a_seed_is_nondeterministic(verifier) -> None:
    source = "import numpy as np\ndef f():\n    return float(np.random.rand())"
    assert verdicts(verifier, Job.calls(source, [""], numpy=True)) == ["nondet"]


def test_limits_of_tens_of_seconds_are_kept(any_verifier) -> None:
    # Nearly all of it in user mode, which is what the limit is about.
    burn = "import time\ndef f(s):\n    while time.process_time() < s:\n        sum(range(100_000))\n    return 'burnt'"
    long = Limits(cpu_s=20)
    assert verdicts(any_verifier, Job.calls(burn, ["1.0"], seeds=1, limits=long)) == ["ok:'burnt'"]
    assert verdicts(any_verifier, Job.calls(burn, ["1.0"], seeds=1)) == ["timeout"]


def test_a_job_may_have_more_memory(any_verifier) -> None:
    source = "def f():\n    return len(bytes(300 << 20))"
    assert verdicts(any_verifier, Job.calls(source, [""], limits=Limits(memory_mb=600))) == [f"ok:{300 << 20}"]
    assert verdicts(any_verifier, Job.calls(source, [""])) == ["memory"]


WAITS = {
    "a lock": "import queue\ndef f():\n    queue.SimpleQueue().get()",
    "a lock, in naps": (
        "import queue\ndef f():\n    while True:\n        try: queue.SimpleQueue().get(timeout=0.001)\n"
        "        except queue.Empty: pass"
    ),
}


@pytest.mark.parametrize("source", WAITS.values(), ids=WAITS)
def test_a_guest_that_waits_uses_up_its_time(verifier, source) -> None:
    assert verdicts(verifier, Job.calls(source, [""], limits=Limits(cpu_s=0.1))) == ["timeout"]


def test_a_flood_is_ended_where_it_is_noticed(verifier) -> None:
    source = "import os\ndef f():\n    while True: os.write(3, bytes(1 << 16))"
    [outcome] = verifier.run_sync([Job.calls(source, [""], limits=Limits(cpu_s=600))])
    assert outcome.results[0].verdict == "toolong"


def test_what_the_host_ignores_its_guests_do_not(monkeypatch) -> None:
    ignored = (signal.SIGVTALRM, signal.SIGUSR1)
    before = [signal.signal(number, signal.SIG_IGN) for number in ignored]
    try:
        with LocalVerifier(workers=1) as verifier:
            [outcome] = verifier.run_sync([Job.calls("def f():\n    while True: pass", [""], seeds=1)])
    finally:
        for number, handler in zip(ignored, before, strict=True):
            signal.signal(number, handler)
    assert outcome.results[0].verdict == "timeout"
    assert outcome.user_ms < 1000, "by the first timer, and not by the last resort"


def test_results_and_prints_over_their_limit_are_refused_and_never_cut(any_verifier) -> None:
    limits = Limits(value_chars=100, stdout_bytes=100)
    jobs = [
        Job.calls("def f():\n    return 'a' * 98", [""], limits=limits),
        Job.calls("def f():\n    return 'a' * 99", [""], limits=limits),
        Job.program("print('a' * 99)", limits=limits),
        Job.program("print('a' * 100)", limits=limits),
    ]
    assert [v[:10] for v in verdicts(any_verifier, *jobs)] == ["ok:'aaaaaa", "toolong", "ok:'aaaaaa", "toolong"]


def test_a_large_reply_and_a_large_job_pass_whole(any_verifier) -> None:
    text = "x" * 900_000
    [outcome] = any_verifier.run_sync(
        [Job.calls(f"def f(): return {text!r}", [""], limits=Limits(value_chars=1_000_000))]
    )
    assert outcome.results[0].value == repr(text)
    assert verdicts(any_verifier, Job.calls("#" * 1_000_001, [""])) == ["toolong"]


def test_literals_are_read_in_a_guest_and_come_back_canonical(any_verifier) -> None:
    texts = ["0x10", "'a' 'b'", "{2, 1}", "[1,\n2]", "1+2j", "x", "__import__('os')", "[" * 6000, "set()", "1, 2"]
    [outcome] = any_verifier.run_sync([Job.literals(texts[:7])])
    [deep, rest] = any_verifier.run_sync([Job.literals([texts[7]]), Job.literals(texts[8:])])
    got = [result.verdict for result in (*outcome.results, *rest.results)]
    assert got[:5] == ["ok:16", "ok:'ab'", "ok:{1, 2}", "ok:[1, 2]", "ok:(1+2j)"]
    assert got[5:] == ["exc:ValueError", "exc:ValueError", "ok:set()", "ok:(1, 2)"]
    assert deep.status is not Status.OK
    [outcome] = any_verifier.run_sync([Job.arguments(["1,[2,3],n = 5", "0) or (True"])])
    assert [result.verdict for result in outcome.results] == ["ok:1, [2, 3], n=5", "exc:ValueError"]


def test_text_that_is_not_unicode_enough_is_still_only_text(any_verifier) -> None:
    jobs = [
        Job.calls("def f(): return '\udc80'", [""]),
        Job.calls(ADD, ["'\ud800'"]),
        Job.program("print(1)", "\udcff"),
    ]
    assert [verdict.split(":")[0] for verdict in verdicts(any_verifier, *jobs)] == ["exc", "exc", "ok"]


def test_an_empty_batch_is_an_empty_answer(any_verifier) -> None:
    assert any_verifier.run_sync([]) == []


def test_a_job_without_calls_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Job.calls(ADD, [])


def test_batches_from_threads_and_event_loops_share_one_pool(any_verifier) -> None:
    answers: dict[int, list[str]] = {}

    async def several(seed: int) -> list[str]:
        batches = [any_verifier.run([Job.calls(ADD, [f"{seed}, {n}"])]) for n in range(5)]
        return [outcome.results[0].verdict for [outcome] in await asyncio.gather(*batches)]

    def work(seed: int) -> None:
        answers[seed] = asyncio.run(several(seed))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {seed: [f"ok:{seed + n}" for n in range(5)] for seed in range(4)}


@pytest.mark.parametrize("tier", [Tier.FULL, Tier.SECCOMP], ids=str)
def test_zygotes_that_are_killed_are_replaced_and_no_job_is_lost(tier) -> None:
    with start(tier) as verifier:
        jobs = [Job.calls(ADD, [str(n)]) for n in range(300)]
        killed: set[int] = set()
        while len(killed) < 4:
            answer = verifier.submit(jobs)
            for pid in [pid for pid in verifier.zygote_pids() if pid not in killed][:1]:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            assert [outcome.results[0].verdict for outcome in answer.result()] == [f"ok:{n + 1}" for n in range(300)]
        assert verdicts(verifier, Job.calls(ADD, ["1"])) == ["ok:2"]


def test_a_zygote_that_stops_answering_is_replaced(monkeypatch) -> None:
    monkeypatch.setattr("redqueen.verifier.supervisor._GRACE_S", 0.3)
    monkeypatch.setattr("redqueen.verifier.supervisor.Supervisor._max_duration", lambda pool, run: 1.0)
    with start(Tier.SECCOMP, workers=1) as verifier:
        for pid in verifier.zygote_pids():
            os.kill(pid, signal.SIGSTOP)
        assert verdicts(verifier, Job.calls(ADD, ["1"], limits=Limits(cpu_s=0.01))) == ["ok:2"]


def test_the_child_of_a_fork_gets_a_pool_of_its_own_and_leaves_the_parents_alone(any_verifier) -> None:
    before = set(any_verifier.zygote_pids())
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            [outcome] = any_verifier.run_sync([Job.calls(ADD, ["1"])])
            shared = before & set(any_verifier.zygote_pids())
            any_verifier.close()
            os.write(write, f"{outcome.results[0].verdict} {len(shared)}".encode())
        finally:
            os._exit(0)
    os.close(write)
    assert os.read(read, 100) == b"ok:2 0"
    os.close(read)
    os.waitpid(child, 0)
    assert verdicts(any_verifier, Job.calls(ADD, ["2"])) == ["ok:3"]
    assert set(any_verifier.zygote_pids()) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may look into a zygote")
def test_zygotes_inherit_neither_descriptors_nor_environment() -> None:
    with open(os.devnull) as held:
        os.set_inheritable(held.fileno(), True)
        with start(Tier.SECCOMP) as verifier:
            for pid in verifier.zygote_pids():
                assert b"PATH=" not in Path(f"/proc/{pid}/environ").read_bytes()
                assert {path.name for path in Path(f"/proc/{pid}/fd").iterdir()} == {"0", "1", "2", "10", "11", "12"}


def test_when_the_host_is_killed_its_zygotes_and_their_children_go_too() -> None:
    script = (
        "import os\nfrom redqueen.verifier import *\n"
        "verifier = LocalVerifier()\n"
        "verifier.submit([Job.calls('def f():\\n    while True: pass', [''], limits=Limits(cpu_s=60))])\n"
        "import time; time.sleep(0.5)\n"
        "print(*verifier.zygote_pids(), flush=True)\ntime.sleep(60)\n"
    )
    host = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    zygotes = [int(pid) for pid in host.stdout.readline().split()]
    family = zygotes + [pid for zygote in zygotes for pid in _descendants(zygote)]
    assert len(family) > len(zygotes) >= 2
    host.kill()
    host.wait()
    host.stdout.close()
    deadline = time.monotonic() + 120
    while any(_alive(pid) for pid in family) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in family if _alive(pid)]


def _descendants(pid: int) -> list[int]:
    try:
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return children + [further for child in children for further in _descendants(child)]


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_closed_pool_says_so() -> None:
    verifier = LocalVerifier(workers=1)
    verifier.close()
    verifier.close()
    with pytest.raises(VerifierFault, match="closed"):
        verifier.run_sync([Job.calls(ADD, ["1"])])


def test_closing_fails_what_is_under_way() -> None:
    verifier = LocalVerifier(workers=1)
    answer = verifier.submit([Job.calls("def f():\n    while True: pass", [""], limits=Limits(cpu_s=30))])
    verifier.close()
    with pytest.raises(VerifierFault):
        answer.result(timeout=120)


def test_a_pool_below_the_minimum_is_refused_with_a_way_out(monkeypatch) -> None:
    refusal = tiers.Refusal(Tier.FULL, "no namespaces here", "allow them")
    monkeypatch.setattr(pool, "unsupported", lambda tier: refusal if tier is Tier.FULL else None)
    with LocalVerifier() as weaker:
        assert weaker.tier is Tier.SECCOMP
        assert weaker.refusals == (refusal,)
    with pytest.raises(IsolationError, match=r"no namespaces here.*allow them.*run-unprotected"):
        LocalVerifier(minimum=Tier.FULL)


def test_elsewhere_than_on_linux_nothing_runs_unless_the_user_insists(monkeypatch) -> None:
    monkeypatch.setattr(tiers.sys, "platform", "darwin")
    assert available_tier().tier is Tier.NONE
    with pytest.raises(UserError, match="run-unprotected"):
        LocalVerifier()
    monkeypatch.undo()
    with LocalVerifier(tier=Tier.NONE, run_unprotected=True) as unprotected:
        [outcome] = unprotected.run_sync([Job.calls(ADD, ["1"])])
        assert (outcome.tier, outcome.results[0].verdict) == (Tier.NONE, "ok:2")
    with pytest.raises(UserError):
        LocalVerifier(tier=Tier.NONE)


def test_a_container_that_forbids_namespaces_gets_the_seccomp_tier() -> None:
    script = (
        "import json\nfrom redqueen.verifier import available_tier\nanswer = available_tier()\n"
        "print(json.dumps([answer.tier, [(r.tier, r.why, r.mend) for r in answer.refusals]]))"
    )
    forbid = (
        "import ctypes, os, resource, sys\n"
        + _NO_UNSHARE
        + "os.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])"
    )
    done = subprocess.run([sys.executable, "-c", forbid, script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    tier, refusals = json.loads(done.stdout)
    assert tier == "seccomp"
    assert refusals[0][0] == "full"
    assert "unshare" in refusals[0][1]
    assert "SYS_ADMIN" in refusals[0][2]


_NO_UNSHARE = """
import struct, platform
nr = {"x86_64": 272, "aarch64": 97}[platform.machine()]
program = [(0x20, 0, 0, 0), (0x15, 0, 1, nr), (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
class P(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("c", ctypes.c_char_p)]
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(P(4, code)), 0, 0) == 0
"""


def test_the_pool_is_as_good_after_cuda_or_threads_have_started() -> None:
    script = (
        "import threading, torch\n"
        "torch.ones(64, 64) @ torch.ones(64, 64)\n"
        "torch.cuda.is_available() and torch.zeros(1, device='cuda')\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "from redqueen.verifier import *\n"
        "with LocalVerifier() as verifier:\n"
        "    print(verifier.run_sync([Job.calls('def f(x): return x', ['7'])])[0].results[0].verdict)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "ok:7\n", done.stderr


@pytest.mark.parametrize(
    "limits",
    [
        {"cpu_s": 0},
        {"cpu_s": -1.0},
        {"cpu_s": float("nan")},
        {"cpu_s": float("inf")},
        {"memory_mb": 0},
        {"memory_mb": 1 << 40},
        {"value_chars": 0},
        {"stdout_bytes": -1},
    ],
    ids=str,
)
def test_a_limit_that_limits_nothing_is_refused(limits) -> None:
    with pytest.raises(ValueError, match="limit"):
        Limits(**limits)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Job.calls(ADD, [12]),
        lambda: Job.calls(ADD, "12"),
        lambda: Job.calls(b"def f(): pass", [""]),
        lambda: Job.program("", modules={"name": "source"}),
    ],
    ids=["a number", "one text", "bytes", "a dict"],
)
def test_a_job_that_is_not_text_is_refused_when_it_is_made(make) -> None:
    with pytest.raises(TypeError, match=r"text|list"):
        make()


def test_nothing_but_a_literal_is_an_argument(any_verifier) -> None:
    jobs = [Job.calls("def f(x): return 1", [text]) for text in ("nan", "inf", "-inf", "[nan]", "'nan'", "'inf'")]
    assert verdicts(any_verifier, *jobs) == ["exc:ValueError"] * 4 + ["ok:1"] * 2


def test_a_fault_of_the_supervisor_fails_its_batches_and_the_next_one_starts_afresh(monkeypatch) -> None:
    from redqueen.verifier import supervisor

    def no_descriptors(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with LocalVerifier(workers=1) as verifier:
        with monkeypatch.context() as broken:
            broken.setattr(supervisor, "Channel", no_descriptors)
            with pytest.raises(MachineError, match=r"Too many open files.*ulimit -n"):
                verifier.submit([Job.calls(ADD, ["1"])] * 3).result(timeout=120)
        assert verdicts(verifier, Job.calls(ADD, ["1"])) == ["ok:2"]


def test_zygotes_that_cannot_start_fail_only_the_jobs_that_need_them(monkeypatch) -> None:
    spawn, spawned = zygotes.Zygote._spawn, []

    def counted(zygote, *arguments):
        spawned.append(zygote.flavour.modules)
        return spawn(zygote, *arguments)

    monkeypatch.setattr(zygotes.Zygote, "_spawn", counted)
    with LocalVerifier(workers=1, preload=(*PRELOAD, "no_such_module")) as verifier:
        with pytest.raises(VerifierFault, match="no_such_module"):
            verifier.run_sync([Job.calls("import json\ndef f(): return 1", [""], seeds=1)])
        tries = spawned.count(zygotes.Modules.ALL)
        for number in range(20):
            assert verdicts(verifier, Job.calls(ADD, [str(number)])) == [f"ok:{number + 1}"]
        assert spawned.count(zygotes.Modules.ALL) == tries, "nobody asks for them any more"


def test_a_long_queue_of_one_flavour_does_not_hold_up_another(any_verifier) -> None:
    loops = [Job.calls("def f():\n    while True: pass", [""], seeds=1, limits=Limits(cpu_s=0.05))] * 200
    under_way = any_verifier.submit(loops)
    assert verdicts(any_verifier, Job.calls("import json\ndef f(): return json.dumps(1)", [""])) == ["ok:'1'"]
    assert not under_way.done()
    under_way.result()


def test_programs_get_all_the_modules_that_they_name(any_verifier) -> None:
    sources = {
        "import decimal, fractions": "str(decimal.Decimal('0.1') + 1) + str(fractions.Fraction(1, 3))",
        "from collections import abc": "isinstance([], abc.Sequence)",
        "import math, statistics as s": "s.mean([1, 2, 3]) + math.floor(1.5)",
        "m = __import__('textwrap')": "m.dedent('  a')",
        "# nothing": "'\\N{BULLET}' + str(b'\\x80', 'cp1252')",
    }
    jobs = [Job.calls(f"{head}\ndef f(): return {body}", [""]) for head, body in sources.items()]
    assert all(verdict.startswith("ok:") for verdict in verdicts(any_verifier, *jobs)), verdicts(any_verifier, *jobs)


def test_two_runs_see_different_addresses_down_to_the_last_bits(any_verifier) -> None:
    made = ("object()", "f", "[]", "{}", "str(1) + 'a'", "1.5 * len('ab')", "range(len('ab'))", "bytes([1, 2])")
    # Of two runs one in 256 has the same by chance: of four, hardly one.
    jobs = [Job.calls(f"def f():\n    return id({one}) % 4096 // 16", [""], seeds=4) for one in made]
    assert verdicts(any_verifier, *jobs) == ["nondet"] * len(made)
