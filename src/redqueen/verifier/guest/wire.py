"""The messages between host, zygote and child, for both sides. Host -> guest is trusted, guest -> host never is."""

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


class Job(NamedTuple):
    """A job as its host sends it, marshalled: this direction is trusted, and nothing reads faster."""

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
    cpu_limit: bytes
    wall_limit: bytes
    memory_bytes: int
