"""The host's end of one zygote: start it, pass it runs, read how they ended.

A zygote is a fresh interpreter (exec, never a fork of this process, so CUDA and threads here don't matter) with an
empty environment. It exits when the host's end of its control socket closes.
"""

import contextlib
import os
import platform
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from redqueen.verifier import checkers, jobs
from redqueen.verifier.checkers import Checker
from redqueen.verifier.guest import wire
from redqueen.verifier.jobs import Job
from redqueen.verifier.tiers import Tier

GUEST = checkers.GUEST
_PADDING = 7
"""More objects of each size in each further seed's zygotes, so that the low bits of addresses differ too."""
_TIME_ZONES = ("UTC0", "LATER-24")
"""Every other run of a job has a local time a day ahead, so that what depends on the date shows."""

CORE = (
    "__future__", "abc", "bisect", "collections.abc", "copy", "enum", "functools", "heapq", "io", "itertools",
    "marshal", "math", "operator", "os", "re", "string", "sys", "time", "types", "typing",
    # Plain arithmetic on long integers imports it from Python 3.12 on.
    *(["_pylong"] if sys.version_info >= (3, 12) else []),
)  # fmt: skip
"""What most programs need. The more modules a zygote holds, the more a fork costs; the rest is in other zygotes."""
_CORE_NAMES = frozenset(name.partition(".")[0] for name in CORE)
_IMPORTS = re.compile(r"\bfrom\s+([\w.]+)\s+import\b|\bimport\s+([^\n;#]+)")
_OTHER_IMPORTS = re.compile(
    r"\b(?:__import__|importlib|modules|eval|exec|compile|encode|decode|codecs)\b|\\\n|\\N|[Uu][Tt][Ff]|[Ll]atin|cp\d"
)
"""Imports by a computed name, codecs, which are modules too, and characters by name, which want `unicodedata`."""
PRELOAD = (
    *CORE,
    "_strptime", "array", "ast", "base64", "calendar", "cmath", "codecs", "contextlib", "dataclasses", "datetime",
    "decimal", "fractions", "hashlib", "inspect", "json", "keyword", "numbers", "queue", "random", "signal",
    "statistics", "struct", "textwrap", "traceback", "unicodedata", "encodings.ascii", "encodings.cp1252",
    "encodings.hex_codec", "encodings.latin_1", "encodings.rot_13", "encodings.shift_jis", "encodings.unicode_escape",
    "encodings.utf_16", "encodings.utf_16_be", "encodings.utf_16_le", "encodings.utf_32", "encodings.utf_32_be",
    "encodings.utf_32_le", "encodings.utf_8_sig",
)  # fmt: skip
"""What programs may import: a guest cannot open a file to import anything else from."""
NUMPY_PRELOAD = ("numpy", "numpy.linalg", "numpy.fft", "numpy.random", "numpy.polynomial", "numpy.ma")
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""A zygote must have a single thread when it forks."""


class Modules(StrEnum):
    """Which modules a zygote holds for programs; the last has all, and numpy."""

    CORE = "core"
    ALL = "all"
    NUMPY = "numpy"


@dataclass(frozen=True, slots=True)
class Flavour:
    seed: int
    modules: Modules
    checker: Checker | None = None
    """Loaded on top of the modules, with all that it imports."""

    def __str__(self) -> str:
        return f"{self.modules} modules" if self.checker is None else f"the checker {self.checker.file}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildExit:
    """How a child ended, as its zygote reports it."""

    run: int
    wait_status: int
    user_s: float
    cpu_s: float
    """In user mode and in the kernel."""
    most_kb: int
    """The most memory that it had, its interpreter's included."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a zygote says of itself when it is ready."""

    inner_pid: int
    """Its process id as it sees it: 1 in a pid namespace of its own."""
    namespaces: Mapping[str, str]


class Zygote:
    """One zygote process. It is not ready until `receive` has read its greeting."""

    def __init__(self, flavour: Flavour, tier: Tier, preload: Sequence[str]) -> None:
        self.flavour = flavour
        self.runs: set[int] = set()
        self.ready = False
        self.dead = False
        self.refused = False
        """The machine's rules do not allow it, for the reason in `why`."""
        self.broken = False
        """Its checker cannot be loaded, for the reason in `why`: trying again would change nothing."""
        self.why: str | None = None
        """Why it could not start: refused, or short of something just now."""
        self.greeting: Greeting | None = None
        self._received = bytearray()
        self.started = time.monotonic()
        self.control, child_end = socket.socketpair()
        with child_end:
            self.process = self._spawn(child_end.fileno(), tier, preload)
        self.control.setblocking(False)

    def _spawn(self, control_fd: int, tier: Tier, preload: Sequence[str]) -> subprocess.Popen[bytes]:
        layers = ["linux"] if sys.platform == "linux" else []
        layers += {Tier.FULL: ["namespaces", "seccomp"], Tier.SECCOMP: ["seccomp"], Tier.NONE: []}[tier]
        seed_index = jobs.HASH_SEEDS.index(self.flavour.seed)
        modules, checker = self.flavour.modules, self.flavour.checker
        if modules is Modules.CORE:
            preload = [name for name in preload if name in CORE]
        paths = [] if checker is None else checkers.folders(checker)
        if modules is Modules.NUMPY:
            preload, paths = [*preload, *NUMPY_PRELOAD], numpy_paths()
        words = [platform.machine(), ",".join(layers), str(_PADDING * seed_index), ",".join(preload)]
        words += ["", "", ""] if checker is None else [checker.file, ",".join(checker.imports), checker.data]
        command = [sys.executable, "-s", "-P", "-S", "-B", str(GUEST / "zygote.py")]
        return subprocess.Popen(
            [*command, str(control_fd), *words, *paths],
            env={
                "PYTHONHASHSEED": str(self.flavour.seed),
                "TZ": _TIME_ZONES[seed_index % 2],
                "PYTHONUTF8": "1",
                **_ONE_THREAD,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[control_fd],
            start_new_session=True,
        )

    def start_run(self, number: int, job_bytes: int, fds: Sequence[int]) -> None:
        """Fork a child for a run, whose job travels through the run's own pipe."""
        self.runs.add(number)
        socket.send_fds(self.control, [wire.message(number, job_bytes)], fds)

    def kill_run(self, number: int) -> None:
        self.control.send(wire.message(number, 0))

    def receive(self) -> Iterator[ChildExit]:
        """Read what the zygote has reported; raises ConnectionError when it is gone."""
        try:
            data = self.control.recv(1 << 16)
        except ConnectionResetError:  # it died with messages unread
            data = b""
        if not data:
            self.dead = True
            raise ConnectionError("the zygote is gone")
        self._received += data
        if not self.ready:
            self._read_greeting()
        while self.ready and len(self._received) >= wire.REPORT_BYTES:
            number, wait_status, user_us, kernel_us, most_kb = wire.read_report(self._received)
            del self._received[: wire.REPORT_BYTES]
            yield ChildExit(
                run=number,
                wait_status=wait_status,
                user_s=user_us / 1e6,
                cpu_s=(user_us + kernel_us) / 1e6,
                most_kb=most_kb,
            )

    def _read_greeting(self) -> None:
        size = 4 + int.from_bytes(self._received[:4], "big")
        if len(self._received) < max(4, size):
            return
        word, *rest = self._received[4:size].decode("utf-8", "replace").split("\n")
        del self._received[:size]
        self.ready = word == "ready"
        if self.ready:
            self.greeting = Greeting(int(rest[0]), dict(line.split(" ", 1) for line in rest[1:]))
        else:
            self.why = " ".join(rest)
            self.refused, self.broken = word == "refused", word == "broken"

    def close(self) -> None:
        """End the zygote and, with it, every child that still runs."""
        self.control.close()
        self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)


def flavour_for(job: Job, order: int) -> Flavour:
    """Of the zygotes that take the run of this order."""
    return Flavour(jobs.HASH_SEEDS[order], modules_for(job), job.checker)


def modules_for(job: Job) -> Modules:
    """The smallest zygote that has what the job's texts import. What a checker imports comes with it."""
    if job.numpy:
        return Modules.NUMPY
    if job.checker is not None:
        return Modules.CORE
    if not all(text.isascii() and "\\N" not in text for text in job.texts):
        return Modules.ALL
    sources = (job.source, *(text for _, text in job.modules))
    return Modules.CORE if all(_needs_only_core(text) for text in sources) else Modules.ALL


def _needs_only_core(text: str) -> bool:
    """Whether every import is of a core module, and nothing in the text imports in another way."""
    if not text.isascii() or _OTHER_IMPORTS.search(text):
        return False
    for source, names in _IMPORTS.findall(text):
        imported = [source] if source else [name.split()[0] for name in names.split(",") if name.split()]
        if not all(name.partition(".")[0] in _CORE_NAMES for name in imported):
            return False
    return True


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def numpy_paths() -> list[str]:
    """The folder that numpy would be imported from; none where it is not installed."""
    found = checkers.folder("numpy")
    return [] if found is None else [found]
