"""The messages between host, zygote and child, for both sides. Host -> guest is trusted, guest -> host never is."""

import signal
from typing import NamedTuple

MESSAGE_BYTES = 16
REPORT_BYTES = 40


def message(run, size):
    """Host -> zygote, with a child's two pipe ends: run number, size of the job. A size of 0 kills the run."""
    return run.to_bytes(8, "big") + size.to_bytes(8, "big")


def read_message(data):
    return int.from_bytes(data[:8], "big"), int.from_bytes(data[8:16], "big")


def report(*numbers):
    """Zygote -> host: run number, wait status, microseconds in user mode and in the kernel, most KB of memory."""
    return b"".join([number.to_bytes(8, "big") for number in numbers])


def read_report(data):
    return tuple(int.from_bytes(data[at : at + 8], "big") for at in range(0, REPORT_BYTES, 8))


def greeting(words):
    """Zygote -> host, once: a word on each line, after their length."""
    data = "\n".join(words).encode()
    return len(data).to_bytes(4, "big") + data


NOT_STARTED = int(signal.SIGUSR1)
"""As a wait status, which no guest can cause: the program was never started."""


class WireLimits(NamedTuple):
    """What a child confines itself with. Gone before the program begins: no frame holds it."""

    user_limit: bytes
    """User time, as an itimerspec."""
    cpu_limit: bytes
    """User and kernel time."""
    memory_bytes: int


class WireJob(NamedTuple):
    """A job as its host sends it, marshalled after its limits: this direction is trusted, and nothing reads faster."""

    token: str
    mode: str
    source: str
    texts: tuple
    """Argument or literal texts; arguments that the host has parsed are (positional, keyword) values."""
    entry: str
    stdin: str
    modules: tuple
    value_chars: int
    stdout_bytes: int
