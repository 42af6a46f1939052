"""Each wall holds something up: with any one of them taken out, the corpus fails.

A layer is taken out by changing a copy of the guest's own files, so the product has no switch for it. The
canaries, which would refuse such a pool, are first asked whether they do, and then held off.
"""

import shutil
from pathlib import Path

import pytest
from conftest import FEW, start
from corpus import ATTACK_PRELOAD, OWN, load, wrong

from redqueen.errors import IsolationError
from redqueen.verifier import Job, Limits, LocalVerifier, Tier, jobs, pool, zygotes

PROGRAMS = load(OWN)
NO_ZYGOTE_FILTER = ("service.py", "isolation.install_zygote_filter(machine)", "pass")
NO_CHILD_FILTER = ("isolation.py", "return not seccomp or prctl(", "return True or prctl(")
NO_CPU_TIMER = ("isolation.py", "refused |= syscall(settime, user_timer, 0, user_limit, None)", "pass")
NO_MEMORY_LIMIT = ("isolation.py", "setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))", "pass")
NO_NAMESPACES = ("service.py", 'if "namespaces" in layers:', "if False:")
NO_LITERALS = (
    "runner.py",
    "_attempt(literals.read_arguments, text)",
    "_attempt(lambda t: eval(f'(lambda *a, **k: (a, k))({t})'), text)",
)

LAYERS = {
    "seccomp": ([NO_ZYGOTE_FILTER, NO_CHILD_FILTER], ("file_", "net_")),
    "the zygote's filter": ([NO_ZYGOTE_FILTER], ("file_", "net_", "kern_")),
    "the child's filter": ([NO_CHILD_FILTER], ("proc_",)),
    "the memory limit": ([NO_MEMORY_LIMIT], ("mem_",)),
    "literal parsing": ([NO_LITERALS], ("arg_",)),
}
"""Layer -> how to take it out, and how the programs are called that it stops. Not those that send signals: with nothing
in their way they would hit whatever else this user runs."""


def take_out(monkeypatch, tmp_path: Path, changes) -> None:
    folder = tmp_path / "guest"
    shutil.copytree(zygotes.GUEST, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in changes:
        text = (folder / name).read_text()
        assert text.count(old) == 1, f"{name} no longer says {old!r} once"
        (folder / name).write_text(text.replace(old, new))
    monkeypatch.setattr(zygotes, "GUEST", folder)


def hold_off_canaries(monkeypatch) -> None:
    monkeypatch.setattr(pool, "failed_canaries", lambda outcomes: [])
    monkeypatch.setattr(pool, "_shared_namespace", lambda supervisor: None)


@pytest.mark.parametrize("layer", LAYERS)
def test_without_one_layer_the_corpus_fails(layer: str, monkeypatch, tmp_path) -> None:
    changes, names = LAYERS[layer]
    programs = [program for program in PROGRAMS if program.name.startswith(names)]
    with start(Tier.SECCOMP, preload=ATTACK_PRELOAD) as whole:
        assert wrong(whole, programs) == {}
    take_out(monkeypatch, tmp_path, changes)
    hold_off_canaries(monkeypatch)
    with start(Tier.SECCOMP, preload=ATTACK_PRELOAD) as weakened:
        assert any(wrong(weakened, [program]) for program in programs)


@pytest.mark.parametrize(
    "changes", [[NO_ZYGOTE_FILTER], [NO_CHILD_FILTER], [NO_MEMORY_LIMIT]], ids=lambda c: c[0][2][:40]
)
def test_a_pool_that_lacks_a_layer_is_refused_by_its_canaries(changes, monkeypatch, tmp_path) -> None:
    take_out(monkeypatch, tmp_path, changes)
    with pytest.raises(IsolationError):
        LocalVerifier(tier=Tier.SECCOMP, workers=FEW)


def test_without_the_cpu_timer_a_loop_goes_on_past_its_limit(monkeypatch, tmp_path) -> None:
    source = "import os\ndef f():\n    while os.times().user < 0.5: sum(range(1000))\n    return 1"
    long = Job.calls(source, [""], seeds=1, limits=Limits(cpu_s=0.1))
    with start(Tier.SECCOMP) as whole:
        assert whole.run_sync([long])[0].results[0].verdict == "timeout"
    take_out(monkeypatch, tmp_path, [NO_CPU_TIMER])
    hold_off_canaries(monkeypatch)
    with start(Tier.SECCOMP) as weakened:
        assert weakened.run_sync([long])[0].results[0].verdict == "ok:1"


def test_with_one_hash_seed_order_dependence_goes_unseen(monkeypatch) -> None:
    programs = [program for program in PROGRAMS if program.expect == ("nondet",)]
    with start(Tier.SECCOMP, preload=ATTACK_PRELOAD) as whole:
        assert wrong(whole, programs) == {}
    monkeypatch.setattr(jobs, "HASH_SEEDS", (1, 1))
    with pytest.raises(IsolationError, match="hash seed"):
        LocalVerifier(tier=Tier.SECCOMP, workers=FEW)
    hold_off_canaries(monkeypatch)
    with start(Tier.SECCOMP, preload=ATTACK_PRELOAD) as weakened:
        assert wrong(weakened, programs)


SECOND_WALL = {
    "reading a file": ("import os\ndef f(): return open('/etc/passwd').read(4)", "exc:FileNotFoundError"),
    "listing the root": ("import os\ndef f(): return os.listdir('/')", "ok:[]"),
    "making a file": ("def f(): return open('/tmp/redqueen-mutation', 'w').write('x')", "exc:FileNotFoundError"),
    "seeing the host's processes": ("import os\ndef f(): return os.getppid()", "ok:1"),
    "reaching loopback": (
        "import socket\ndef f():\n    socket.create_connection(('127.0.0.1', 45992), 1)\n    return 1",
        "exc:OSError",
    ),
}


def test_namespaces_hold_when_seccomp_is_off_and_nothing_does_without_them(monkeypatch, tmp_path) -> None:
    import socket

    jobs = [Job.calls(source, [""], seeds=1) for source, _ in SECOND_WALL.values()]
    expected = [verdict for _, verdict in SECOND_WALL.values()]
    hold_off_canaries(monkeypatch)
    with socket.create_server(("127.0.0.1", 45992)):
        take_out(monkeypatch, tmp_path / "one", [NO_ZYGOTE_FILTER, NO_CHILD_FILTER])
        with start(Tier.FULL, preload=ATTACK_PRELOAD) as second_wall_only:
            verdicts = [outcome.results[0].verdict for outcome in second_wall_only.run_sync(jobs)]
            assert verdicts == expected
        take_out(monkeypatch, tmp_path / "two", [NO_NAMESPACES])
        with start(Tier.FULL, preload=ATTACK_PRELOAD) as nothing:
            verdicts = [outcome.results[0].verdict for outcome in nothing.run_sync(jobs)]
            Path("/tmp/redqueen-mutation").unlink(missing_ok=True)
            assert sum(got != right for got, right in zip(verdicts, expected, strict=True)) >= 4
