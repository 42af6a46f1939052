"""`redqueen verify`: one program, run as the trainer would."""

import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from redqueen.commands.command import Configured, Reporting, positive
from redqueen.console import TextReport, printable
from redqueen.errors import InputError
from redqueen.resources import open_verifier

if TYPE_CHECKING:
    from redqueen.verifier import Job, Outcome

MAX_FILE_BYTES = 8_000_000
"""More than any job may hold in any encoding; a longer file (or an endless device) is not read to its end."""


@dataclass(frozen=True, kw_only=True)
class VerifyCommand(Reporting, Configured):
    """Run one program as the trainer would, and print the verdict.

    Without --stdin the program's function `f` is called. The exit status is 0 whatever the verdict.
    """

    uses = ("verifier",)
    file: Annotated[Path, tyro.conf.arg(metavar="FILE.py")]
    """The program."""
    input: Annotated[str, tyro.conf.arg(metavar="LITERALS")] = ""
    """The arguments of `f`, as in a call: '1, [2, 3]' or 'n=5'."""
    stdin: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """Run FILE.py as a whole program that reads this file (- for what is piped in), and show what it prints."""
    module: Annotated[tyro.conf.UseAppendAction[tuple[Path, ...]], tyro.conf.arg(metavar="FILE.py")] = ()
    """Another file that the program may import by its name; may be given several times."""
    numpy: bool = False
    """Let the program import numpy."""
    cpu: Annotated[float | None, tyro.conf.arg(metavar="SECONDS")] = None
    """The limit of CPU time; by default the trainer's."""
    memory: Annotated[int | None, tyro.conf.arg(metavar="MB")] = None
    """The limit of memory; by default the trainer's."""

    def report(self) -> TextReport:
        from redqueen.verifier import Job, Status

        job = self._job()
        with open_verifier(self.settings.verifier) as verifier:
            [outcome, arguments] = verifier.run_sync([job, Job.arguments([self.input])])
        result, lines = outcome.results[0], _lines(job, outcome)
        if arguments.status is not Status.OK:
            lines.append("--input is not the literal arguments of a call: write '1, [2, 3]', n=5, or \"'text'\"")
        answer = {
            "verdict": result.verdict,
            "value": result.value,
            "tier": outcome.tier,
            "cpu_ms": round(outcome.cpu_ms, 3),
            "runs": [run[0].verdict for run in outcome.runs],
        }
        return TextReport(answer, lines)

    def _job(self) -> "Job":
        from redqueen.verifier import Job, Limits

        limits = Limits()
        if self.cpu is not None:
            limits = dataclasses.replace(limits, cpu_s=positive("--cpu", self.cpu))
        if self.memory is not None:
            limits = dataclasses.replace(limits, memory_mb=positive("--memory", self.memory))
        if self.stdin is not None and self.input:
            raise InputError("--input and --stdin exclude each other", "--input calls `f`, --stdin runs the whole file")
        source = _read(self.file)
        for path in self.module:
            if path.suffix != ".py" or not path.stem.isidentifier():
                raise InputError(f"{path} cannot be imported by its name", "rename it to NAME.py, with a Python name")
        modules = [(path.stem, _read(path)) for path in self.module]
        if self.stdin is None:
            return Job.calls(source, [self.input], modules=modules, numpy=self.numpy, limits=limits)
        stdin = _read(None if self.stdin == "-" else Path(self.stdin))
        return Job.program(source, stdin, modules=modules, numpy=self.numpy, limits=limits)


_HINTS = {
    "ModuleNotFoundError": "it imports a module that programs do not have here (docs/verifier.md; numpy needs --numpy)",
    "PermissionError": "programs may not use files, the network, processes, threads or sleep",
    "SyntaxError": "the program, or what is given as --input, is not Python",
    "NameError": "a name is not defined; the function to call must be named f",
}


def _lines(job: "Job", outcome: "Outcome") -> list[str]:
    from redqueen.verifier import Mode, Status
    from redqueen.verifier.guest.literals import parse

    result = outcome.results[0]
    reasons = {
        Status.TIMEOUT: f"it ran past its limit of {job.limits.cpu_s:g} s, or waits for something that never comes",
        Status.MEMORY: f"it wanted more than its {job.limits.memory_mb} MB of memory",
        Status.CRASH: "its process was killed by a signal that it caused",
        Status.VIOLATION: "it tried a forbidden system call",
        Status.TOO_LONG: "the program, its result or what it printed is over the size limit",
        Status.OPAQUE: "its result is not a plain value (numbers, strings, lists, dicts and the like)",
        Status.NO_RESULT: "it ended without a result",
        Status.NONDETERMINISTIC: "its runs disagree",
        Status.BAD_REPLY: "its process sent a reply that no honest run sends",
        Status.FAULT: f"the machine failed it, which says nothing about the program ({outcome.fault})",
    }
    if result.status is Status.OK and job.mode is Mode.PROGRAM:
        # Indented, so that nothing a program prints can pass for a line of ours.
        printed = printable(str(parse(result.value)), keep="\n\t")
        lines = ["ok", *(f"  {line}" for line in printed.removesuffix("\n").split("\n"))]
    elif result.status in reasons:
        lines = [f"{result.verdict}: {reasons[result.status]}"]
    else:
        hint = _HINTS.get(result.exception or "")
        lines = [printable(result.verdict) + (f": {hint}" if hint else "")]
    if result.status is Status.NONDETERMINISTIC:
        lines += [f"  run {number}: {printable(run[0].verdict)}" for number, run in enumerate(outcome.runs, 1)]
    runs = "one run" if job.seeds == 1 else "two runs"
    return [*lines, f"({outcome.cpu_ms:.1f} ms of CPU time in {runs}, isolation {outcome.tier})"]


def _read(path: Path | None) -> str:
    name = "standard input" if path is None else str(path)
    try:
        if path is None:
            if sys.stdin is None:
                raise InputError("standard input is closed", "pipe something in, or name a file")
            data = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{name} cannot be read: {reason}", "give a readable file") from None
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"{name} has more than {MAX_FILE_BYTES // 1_000_000} MB", "no job may be that long")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8 text (byte {error.start})", "save it as UTF-8") from None
