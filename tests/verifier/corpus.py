"""The hostile corpus: programs with a header that says what may come of them, and how a verdict is held against it."""

import re
from dataclasses import dataclass
from pathlib import Path

from redqueen.verifier import Job, Limits, LocalVerifier
from redqueen.verifier.zygotes import PRELOAD

OWN = Path(__file__).parent.parent / "hostile"
ATTACK_PRELOAD = (
    *PRELOAD, "_posixsubprocess", "asyncio", "concurrent.futures.process", "concurrent.futures.thread", "ctypes",
    "ctypes.util", "encodings.idna", "fcntl", "importlib.util", "mmap", "multiprocessing.connection",
    "multiprocessing.pool", "multiprocessing.popen_fork", "multiprocessing.queues", "multiprocessing.synchronize",
    "pty", "resource", "select", "shutil", "socket", "subprocess", "tempfile", "threading",
)  # fmt: skip
"""The usual modules, and those that an attacker would bring: the boundary is the kernel, not the import list."""

_HEADER = re.compile(r"^# (group|input|expect|why): ?(.*?)\r?$", re.MULTILINE)
IMPORT_FAILED = ("exc:ModuleNotFoundError", "exc:ImportError")


@dataclass(frozen=True)
class Program:
    name: str
    group: str
    source: str
    arguments: str
    expect: tuple[str, ...]

    def job(self) -> Job:
        # What is there to run out of time does so after a tenth of a second as after the usual time.
        limits = Limits(cpu_s=0.1) if self.expect[0] == "timeout" else Limits()
        return Job.calls(self.source, [self.arguments], limits=limits)

    def allows(self, verdict: str) -> bool:
        return any(_matches(verdict, expected) for expected in self.expect) or (
            verdict in IMPORT_FAILED and not all(expected.startswith("ok") for expected in self.expect)
        )


def _matches(verdict: str, expected: str) -> bool:
    if expected == "ok*":
        return verdict.startswith("ok:")
    if expected == "exc*":
        return verdict.startswith("exc:")
    if expected == "error":
        return not verdict.startswith("ok:")
    return verdict == expected


def load(folder: Path) -> list[Program]:
    programs = []
    for path in sorted(folder.glob("*.py")):
        source = path.read_bytes().decode("utf-8")
        header = dict(_HEADER.findall(source)[:4])
        arguments = header["input"]
        if arguments.startswith("@") and arguments.endswith("@"):
            arguments = eval(arguments[1:-1])  # our own files: how to spell a very long argument
        programs.append(Program(path.stem, header["group"], source, arguments, tuple(header["expect"].split("|"))))
    return programs


def wrong(verifier: LocalVerifier, programs: list[Program]) -> dict[str, str]:
    """Name -> verdict of the programs that came out as they must not."""
    outcomes = verifier.run_sync([program.job() for program in programs])
    verdicts = {program: outcome.results[0].verdict for program, outcome in zip(programs, outcomes, strict=True)}
    return {program.name: verdict for program, verdict in verdicts.items() if not program.allows(verdict)}
