"""The messages between host, zygote and child, for both sides. Host -> guest is trusted, guest -> host never is."""

import struct
from typing import NamedTuple

MESSAGE = struct.Struct("!QQ")
"""Host -> zygote, with a child's two pipe ends: run number and size of the job. A size of 0 asks for the run's end."""
REPORT = struct.Struct("!QiQ")
"""Zygote -> host: run number, wait status, CPU microseconds."""


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
