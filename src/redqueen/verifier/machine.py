"""Failures of the machine itself, and how long they are tolerated.

A verdict is about a program. A machine that is short of memory, processes or time ends or delays programs that did
nothing wrong. Such ends are told apart here and in `replies`, retried, and at last reported as what they are: a `fault`
of one job, or an error where nothing can be run at all.
"""

import errno
import time
from dataclasses import dataclass
from pathlib import Path

from redqueen.errors import MachineError, NotJudged

RETRY_S = 60.0
"""How long failures of the machine are retried."""
_MIN_TRIES = 4
"""At least: a single try may take longer than that."""
_PAUSE_S, _MAX_PAUSE_S = 0.1, 5.0
_MENDS = {
    errno.EMFILE: "allow this process more open files (`ulimit -n 1024`)",
    errno.ENFILE: "close something, or allow the system more open files (`sysctl fs.file-max`)",
    errno.ENOMEM: "free some memory",
    errno.EAGAIN: "end some processes, or allow this user more of them (`ulimit -u`)",
}
_MEND = "free memory or end other work"
_PROC = Path("/proc")


@dataclass(slots=True)
class Retries:
    """The tries of one operation that the machine keeps failing."""

    since: float
    tries: int = 0
    oom_kills: int = 0
    """The kernel's count at the first failure."""
    idle_deaths: int = 0
    """Zygotes that had died by then with no program in them."""

    @classmethod
    def start(cls, idle_deaths: int = 0) -> "Retries":
        return cls(time.monotonic(), oom_kills=oom_kills(), idle_deaths=idle_deaths)

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel has ended processes for want of memory since the first failure."""
        return oom_kills() != self.oom_kills

    def next_pause(self) -> float | None:
        """Seconds to wait before the next try; None to give up."""
        self.tries += 1
        if self.tries >= _MIN_TRIES and time.monotonic() - self.since > RETRY_S:
            return None
        return min(_PAUSE_S * 2.0**self.tries, _MAX_PAUSE_S)

    def error(self, why: str) -> MachineError:
        waited = time.monotonic() - self.since
        return MachineError(
            f"the machine keeps failing what the verifier starts ({why}; {self.tries} tries in {waited:.0f} s)",
            f"{_MEND}, then go on with the same command",
        )


def not_judged(what: str, why: str | None) -> NotJudged:
    """For work that cannot do without a verdict on what the machine keeps failing."""
    because = f" ({why})" if why else ""
    return NotJudged(f"the machine failed {what} time and again{because}", f"{_MEND}, then go on with the same command")


def exhausted(error: OSError) -> MachineError:
    """For a resource that the system refuses to the host itself."""
    what = f"the verifier cannot go on: {error.strerror or error}"
    return MachineError(what, f"{_MENDS.get(error.errno or 0, _MEND)}, then go on with the same command")


def oom_kills() -> int:
    """Processes that the kernel's out-of-memory killer has ended since boot; 0 where it does not say."""
    try:
        text = (_PROC / "vmstat").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")), 0)


def memory_refused(memory_mb: int) -> bool:
    """Whether the machine, not the program's own limit, may have refused this much: with `vm.overcommit_memory = 2` it
    refuses whatever it could not back."""
    try:
        if (_PROC / "sys/vm/overcommit_memory").read_text().strip() != "2":
            return False
        text = (_PROC / "meminfo").read_text()
    except OSError:
        return False
    kilobytes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in text.splitlines())}
    return kilobytes["CommitLimit"] - kilobytes["Committed_AS"] < memory_mb << 10
