"""Every hostile program comes out as its header says, and leaves no trace, in both tiers.

REDQUEEN_HOSTILE names a folder with more programs of the same format.
"""

import contextlib
import os
import secrets
import select
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import start
from corpus import ATTACK_PRELOAD, IMPORT_FAILED, OWN, Program, load

from redqueen.verifier import Job, Tier
from redqueen.verifier.zygotes import GUEST, PRELOAD

MORE = os.environ.get("REDQUEEN_HOSTILE")
CANARY_FOLDER = Path("/tmp/redqueen-canary")
PORT = 45991
SECRET = f"CANARY-SECRET-{secrets.token_hex(8)}"
HONEST = "def f(x):\n    return sorted({x, 3, 1}), len('abc'), repr(1.5), {'k': [None, True]}"
HONEST_VERDICT = "ok:([1, 2, 3], 3, '1.5', {'k': [None, True]})"


class House:
    """A pool under attack, and everything around it that must stay as it is."""

    def __init__(self, tier: Tier, preload: tuple[str, ...]) -> None:
        os.environ["REDQUEEN_TEST_SECRET"] = SECRET
        # With one worker each zygote is the only one of its kind, and two jobs reach them all.
        self.verifier = start(tier, preload=preload, workers=1)
        CANARY_FOLDER.mkdir(exist_ok=True)
        CANARY_FOLDER.chmod(0o777)
        (CANARY_FOLDER / "secret.txt").write_text(SECRET)
        users = {} if os.geteuid() else {"user": 65534}
        self.bystanders = [subprocess.Popen(["sleep", "3600"], **user) for user in ({}, users)]
        self.listeners = [socket.socket(socket.AF_INET, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM)]
        for listener in self.listeners:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", PORT))
        self.listeners[0].listen()
        self.honest_everywhere()
        while len(self.verifier.zygote_pids()) < self.verifier.zygote_count():
            time.sleep(0.01)  # the jobs may have been done before the last zygote was up
        self.processes = _processes()

    def honest_everywhere(self) -> None:
        """An honest program gets the right answer on every zygote, those with few modules and those with all."""
        jobs = [Job.calls(source, ["2"]) for source in (HONEST, f"import decimal\n{HONEST}")]
        for outcome in self.verifier.run_sync(jobs):
            assert outcome.results[0].verdict == HONEST_VERDICT

    def check(self) -> None:
        self.honest_everywhere()
        assert all(bystander.poll() is None for bystander in self.bystanders), "a bystander died"
        assert [path.name for path in CANARY_FOLDER.iterdir()] == ["secret.txt"], "a file was made"
        assert (CANARY_FOLDER / "secret.txt").read_text() == SECRET, "a file was changed"
        assert not select.select(self.listeners, [], [], 0)[0], "something went out over the network"
        deadline = time.monotonic() + 60
        while (processes := _processes()) != self.processes and time.monotonic() < deadline:
            time.sleep(0.01)
        assert processes == self.processes, "a process was left, or a zygote died"

    def close(self) -> None:
        self.verifier.close()
        for bystander in self.bystanders:
            bystander.kill()
            bystander.wait()
        for listener in self.listeners:
            listener.close()
        (CANARY_FOLDER / "secret.txt").unlink()
        CANARY_FOLDER.rmdir()


def _processes() -> set[int]:
    """Our descendants, and orphans that were once a zygote's."""
    parents: dict[int, int] = {}
    orphans: set[int] = set()
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if entry.isdigit():
                parents[int(entry)] = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
                command = Path(f"/proc/{entry}/cmdline").read_bytes()
                if parents[int(entry)] == 1 and os.fsencode(GUEST) in command:
                    orphans.add(int(entry))
    family = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return family | orphans


@pytest.fixture(scope="module", params=[Tier.FULL, Tier.SECCOMP], ids=str)
def house(request) -> Iterator[House]:
    house = House(request.param, ATTACK_PRELOAD)
    yield house
    house.close()


def survive(house: House, program: Program) -> None:
    [outcome] = house.verifier.run_sync([program.job()])
    [result] = outcome.results
    assert program.allows(result.verdict), f"{result.verdict[:200]} is none of {' '.join(program.expect)}"
    assert SECRET not in repr(outcome)
    house.check()


@pytest.mark.parametrize("program", load(OWN), ids=lambda program: program.name)
def test_our_own_hostile_program_is_contained(house: House, program: Program) -> None:
    survive(house, program)


@pytest.mark.skipif(not MORE, reason="REDQUEEN_HOSTILE names no folder with further programs")
@pytest.mark.parametrize("program", load(Path(MORE)) if MORE else [], ids=lambda program: program.name)
def test_further_hostile_program_is_contained(house: House, program: Program) -> None:
    survive(house, program)


@pytest.mark.skipif(not MORE, reason="REDQUEEN_HOSTILE names no folder with further programs")
def test_the_folder_of_further_programs_has_some() -> None:
    assert load(Path(MORE or "")), f"REDQUEEN_HOSTILE={MORE} has no programs: name a folder of .py files"


@pytest.mark.parametrize("tier", [Tier.FULL, Tier.SECCOMP], ids=str)
def test_the_corpus_is_contained_with_the_usual_modules_too(tier: Tier) -> None:
    programs = load(OWN) + (load(Path(MORE)) if MORE else [])
    # All at once, and an honest one beside each; many workers, because some programs only wait.
    jobs = [job for program in programs for job in (program.job(), Job.calls(HONEST, ["2"], seeds=1))]
    with start(tier, preload=PRELOAD, workers=4) as pool:
        verdicts = [outcome.results[0].verdict for outcome in pool.run_sync(jobs)]
    assert set(verdicts[1::2]) == {HONEST_VERDICT}
    came = zip(programs, verdicts[::2], strict=True)
    assert [(program.name, verdict) for program, verdict in came if not _allows(program, verdict)] == []


def _allows(program: Program, verdict: str) -> bool:
    """An attack may also fail for want of its module."""
    return program.allows(verdict) or (program.group != "honest" and verdict in IMPORT_FAILED)


def test_the_corpus_is_large_enough_to_mean_something() -> None:
    assert len(load(OWN)) >= 60
