"""The messages between host, zygote and child, for both sides. Host -> guest is trusted, guest -> host never is."""

import signal
from typing import NamedTuple

MESSAGE_BYTES = 16
REPORT_BYTES = 24


def message(run, size):
    """Host -> zygote, with a child's two pipe ends: run number, size of the job. A size of 0 asks for the run's end."""
    return run.to_bytes(8, "big") + size.to_bytes(8, "big")


def read_message(data):
    return int.from_bytes(data[:8], "big"), int.from_bytes(data[8:16], "big")


def report(run, wait_status, cpu_us):
    """Zygote -> host: run number, wait status, CPU microseconds."""
    return run.to_bytes(8, "big") + wait_status.to_bytes(8, "big") + cpu_us.to_bytes(8, "big")


def read_report(data):
    return tuple(int.from_bytes(data[at : at + 8], "big") for at in (0, 8, 16))


def greeting(words):
    """Zygote -> host, once: a word on each line, after their length."""
    data = "\n".join(words).encode()
    return len(data).to_bytes(4, "big") + data


NOT_STARTED = int(signal.SIGUSR1)
"""As a wait status, which no guest can die of: the program was never begun."""


class Limits(NamedTuple):
    """What a child shuts itself in with. Gone before the program begins: no frame holds it."""

    name: bytes
    """What the process is called, by which the host finds it."""
    own_limit: bytes
    """User time, as an itimerspec."""
    all_limit: bytes
    """User and kernel time."""
    seconds: int
    """The same once more, rounded up, for a guest that blocks the timers' signals."""
    memory_bytes: int


class Job(NamedTuple):
    """A job as its host sends it, marshalled after its limits: this direction is trusted, and nothing reads faster."""

    token: str
    mode: str
    source: str
    texts: tuple
    """Argument or literal texts; arguments that the host could read are in it as (positional, keyword) values."""
    entry: str
    stdin: str
    modules: tuple
    value_chars: int
    stdout_bytes: int
