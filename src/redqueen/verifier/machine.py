"""What the host can see of the machine's own trouble, and how long it bears with it.

A verdict is about a program. A machine that is short of memory, processes or time ends or delays programs that did
nothing; such ends are told apart here and in `replies`, tried again, and at last reported as what they are.
"""

import errno
import time
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from redqueen.errors import MachineError

PATIENCE_S = 60.0
"""How long we try again what the machine fails."""
_TRIES = 4
"""And how often at least: a single try may take longer than that."""
_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_MENDS = {
    errno.EMFILE: "allow this process more open files (`ulimit -n 1024`)",
    errno.ENFILE: "close something, or allow the system more open files (`sysctl fs.file-max`)",
    errno.ENOMEM: "free some memory",
    errno.EAGAIN: "end some processes, or allow this user more of them (`ulimit -u`)",
}
_MEND = "free memory or end other work"
_PROC = Path("/proc")


@dataclass(slots=True)
class Trouble:
    """What the machine keeps doing to one thing that we try."""

    since: float
    tries: int = 0
    kills: int = 0
    """Processes that the kernel had killed for want of memory when it began."""

    @classmethod
    def begins(cls) -> "Trouble":
        return cls(time.monotonic(), kills=kills_for_memory())

    def again(self) -> float | None:
        """Seconds to wait before the next try; None when it has been enough."""
        self.tries += 1
        if self.tries >= _TRIES and time.monotonic() - self.since > PATIENCE_S:
            return None
        return min(_PAUSE_S * 2.0**self.tries, _LONGEST_PAUSE_S)

    def error(self, why: str) -> MachineError:
        waited = time.monotonic() - self.since
        return MachineError(
            f"the machine fails what the verifier starts ({why}; {self.tries} tries in {waited:.0f} s)",
            f"{_MEND}, then go on with the same command",
        )


def refusal(error: OSError) -> MachineError:
    """What the system said when it would give us nothing more."""
    what = f"the verifier cannot go on: {error.strerror or error}"
    return MachineError(what, f"{_MENDS.get(error.errno or 0, _MEND)}, then go on with the same command")


def kills_for_memory() -> int:
    """Processes that the kernel has killed for want of memory since it started; 0 where it does not say."""
    try:
        text = (_PROC / "vmstat").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")), 0)


def memory_refused(memory_mb: int) -> bool:
    """Whether a request for so much may have been refused by the machine, which counts every promise that it makes
    (`vm.overcommit_memory = 2`), and not by the program's own limit."""
    try:
        if (_PROC / "sys/vm/overcommit_memory").read_text().strip() != "2":
            return False
        text = (_PROC / "meminfo").read_text()
    except OSError:
        return False
    kilobytes = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in text.splitlines())}
    return kilobytes["CommitLimit"] - kilobytes["Committed_AS"] < memory_mb << 10


class Stopped(Enum):
    """Why the host ends a run itself."""

    FLOOD = auto()
    """It writes more than any reply can be."""
    OVERDUE = auto()
    """The machine has not let it end."""
