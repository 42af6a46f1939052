"""The command line: one small frozen dataclass per command, and the frame around them.

Exit status 0 is done, 2 the user's mistake (one line: what, and how to mend it), 1 our fault. Whatever is heavy
(torch, the verifier) is imported by the command that needs it, so that help and mistakes come at once.
"""

import dataclasses
import io
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from redqueen import __version__, arguments, open_files
from redqueen.bench.commands import (
    BenchMembers,
    BenchOperators,
    BenchSample,
    BenchStep,
    BenchUpdate,
    BenchVerifier,
)
from redqueen.command import Command, Configured, console, positive, print_json, printable, show
from redqueen.config import load, open_verifier
from redqueen.engine.commands import BaseList, BasePull
from redqueen.errors import Fault, InputError, RedQueenError, UserError
from redqueen.evals.commands import Eval
from redqueen.evolution.commands import Breed, Operators
from redqueen.exam.commands import Exam
from redqueen.report.commands import Report, Watch
from redqueen.runs.commands import Compare, Export, Tasks
from redqueen.training.commands import RetentionTest, Train

if TYPE_CHECKING:
    from redqueen.verifier import Job, Outcome

MAX_FILE_BYTES = 8_000_000
"""More than any job may hold in any encoding; a longer file (or an endless device) is not read to its end."""


@dataclass(frozen=True, kw_only=True)
class Doctor(Configured):
    """What this machine offers: cores, device, isolation, and what is missing."""

    uses = (
        "verifier.minimum", "verifier.run_unprotected",
        "engine.device", "engine.dtype", "engine.rank", "engine.target_modules",
    )  # fmt: skip
    base: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Also say what fits with this base: a known name, a folder, a .gguf file or a hub id, or random:tiny, random:135m,
    random:0.5b, random:7b for the shape alone."""
    members: int = 8
    """How many members it shall carry, of the rank in --engine.rank."""
    json: bool = False
    """Print one line of JSON."""

    def run(self) -> None:
        from redqueen import doctor

        members = positive("--members", self.members)
        base = None if self.base is None else doctor.check_base(self.base, members, self.settings.engine)
        show(doctor.check(self.settings.verifier, base), as_json=self.json)


@dataclass(frozen=True, kw_only=True)
class Verify(Configured):
    """Run one program as the trainer would, and say what happened.

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
    """A further file that the program may import by its name."""
    numpy: bool = False
    """Let the program import numpy."""
    cpu: Annotated[float | None, tyro.conf.arg(metavar="SECONDS")] = None
    """Its limit of CPU time; the trainer's when left out."""
    memory: Annotated[int | None, tyro.conf.arg(metavar="MB")] = None
    """Its limit of memory; the trainer's when left out."""
    json: bool = False
    """Print one line of JSON: verdict, value, tier, cpu_ms."""

    def run(self) -> None:
        from redqueen.verifier import Job, Status

        job = self._job()
        with open_verifier(self.settings.verifier) as verifier:
            [outcome, read] = verifier.run_sync([job, Job.arguments([self.input])])
        result = outcome.results[0]
        if self.json:
            print_json(
                {
                    "verdict": result.verdict,
                    "value": result.value,
                    "tier": outcome.tier,
                    "cpu_ms": round(outcome.cpu_ms, 3),
                    "runs": [run[0].verdict for run in outcome.runs],
                }
            )
        else:
            print(_account(job, outcome))
            if read.status is not Status.OK:
                print("--input is not the literal arguments of a call: write '1, [2, 3]', n=5, or \"'text'\"")

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
        modules = [(_module_name(path), _read(path)) for path in self.module]
        if self.stdin is None:
            return Job.calls(source, [self.input], modules=modules, numpy=self.numpy, limits=limits)
        stdin = _read(None if self.stdin == "-" else Path(self.stdin))
        return Job.program(source, stdin, modules=modules, numpy=self.numpy, limits=limits)


@dataclass(frozen=True, kw_only=True)
class Examples(Configured):
    """Bundled example tasks, through the real verifier and graders."""

    uses = ("verifier",)

    def run(self) -> None:
        import asyncio

        from redqueen.tasks.examples import run_examples

        with open_verifier(self.settings.verifier) as verifier:
            report = asyncio.run(run_examples(verifier))
        report.render(console())
        if not report.ok:
            raise Fault("an example did not come out as stated; please report it with the table above")


@dataclass(frozen=True, kw_only=True)
class Diversity(Configured):
    """How far apart adapters are: in their weights, and with --base in what they say."""

    uses = ("engine.device", "engine.dtype", "engine.rows")
    folders: Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FOLDER FOLDER...", help_behavior_hint="")]
    """PEFT folders of one base, two or more."""
    base: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Also compare what they say on a few bundled prompts, with this base: a known name, a folder or a
    hub id (minutes on a CPU)."""
    json: bool = False
    """Print one line of JSON."""

    def run(self) -> None:
        if len(self.folders) < 2:
            raise InputError("one adapter has nothing to be compared with", "name two folders or more")
        from redqueen.measure import folders

        show(folders.compare(self.folders, self.base, self.settings.engine), as_json=self.json)


_SIMULATED = (
    "population.teachers", "population.students", "match",
    "evolution.every", "evolution.share", "evolution.elites", "evolution.fitness", "evolution.selection",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SimulateRatings(Configured):
    """Whether ratings find out who is good, and evolution drops the right ones: races with known skills, no model.

    Births are raced under our rules and the paper's, whatever match.rule and evolution.rule say.
    """

    uses = _SIMULATED
    teachers: int = 8
    """How many, instead of --population.teachers."""
    students: int = 8
    """How many, instead of --population.students."""
    seeds: int = 200
    """Races of each sort."""
    rounds: int = 30
    """Steps of the races without births."""
    attempts: int = 64
    """Attempts of a match, eight for each task."""
    births: int = 10
    """Events in the races with births, one every --evolution.every steps."""
    json: bool = False
    """Print one line of JSON."""

    def run(self) -> None:
        from redqueen import simulate

        report = simulate.ratings(
            positive("--teachers", self.teachers),
            positive("--students", self.students),
            positive("--seeds", self.seeds),
            positive("--rounds", self.rounds),
            positive("--attempts", self.attempts),
            positive("--births", self.births),
            self.settings,
        )
        show(report, as_json=self.json)


@dataclass(frozen=True, kw_only=True)
class SimulateLineage(Configured):
    """Who descends from whom in a race with known skills and no model, as a tree."""

    uses = (*_SIMULATED, "evolution.rule", "evolution.operators")
    births: int = 5
    """Events, one every --evolution.every steps."""
    seed: int = 0
    """Which race."""
    dot: bool = False
    """Print it for Graphviz instead, with both parents of every child."""

    def run(self) -> None:
        from redqueen import simulate
        from redqueen.evolution.lineage import dot, draw

        population = simulate.lineage(positive("--births", self.births), self.seed, self.settings)
        print(dot(population) if self.dot else f"{draw(population)}\n+ has been replaced")


COMMANDS: dict[str, type[Command]] = {
    "train": Train,
    "watch": Watch,
    "report": Report,
    "tasks": Tasks,
    "compare": Compare,
    "eval": Eval,
    "exam": Exam,
    "export": Export,
    "retention": RetentionTest,
    "doctor": Doctor,
    "verify": Verify,
    "examples": Examples,
    "diversity": Diversity,
    "operators": Operators,
    "breed": Breed,
    "base list": BaseList,
    "base pull": BasePull,
    "bench verifier": BenchVerifier,
    "bench sample": BenchSample,
    "bench update": BenchUpdate,
    "bench members": BenchMembers,
    "bench operators": BenchOperators,
    "bench step": BenchStep,
    "simulate ratings": SimulateRatings,
    "simulate lineage": SimulateLineage,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        _run(sys.argv[1:] if argv is None else argv)
        # Here and not at exit, where a reader that has gone could only be reported by a traceback.
        print(end="", flush=True)
        return 0
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone. Python would try to flush once more at exit: let it reach nobody.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as raised:
        error = raised if isinstance(raised, UserError) else open_files.exhausted(raised) or raised
        if isinstance(error, RedQueenError):
            print(f"redqueen: {printable(str(error))}", file=sys.stderr)
            return error.exit_status
        traceback.print_exc()
        print("redqueen: this is a fault of Red Queen's; please report it with the lines above", file=sys.stderr)
        return 1


def _run(argv: Sequence[str]) -> None:
    match list(argv):
        case []:
            raise InputError("a command is missing", "try `redqueen --help`")
        case ["-h" | "--help", *_]:
            print(_overview(COMMANDS))
        case ["--version"]:
            print(f"redqueen {__version__}")
        case [first, "-h" | "--help", *_] if group := arguments.group(first, COMMANDS):
            print(_overview(group))
        case words:
            name, rest = arguments.match(words, COMMANDS)
            try:
                command, overrides = arguments.parse(COMMANDS[name], name, rest)
            except SystemExit:  # --help has printed what was asked for
                return
            if isinstance(command, Configured):
                command = dataclasses.replace(command, settings=load(command.source, overrides))
            command.run()


def _overview(commands: Mapping[str, type[Command]]) -> str:
    width = max(len(name) for name in commands)
    listed = [f"  {name:<{width}}  {(command.__doc__ or '').splitlines()[0]}" for name, command in commands.items()]
    return "\n".join(
        [
            "usage: redqueen COMMAND [OPTIONS]",
            "",
            "Populations of teacher and student LoRA adapters that teach themselves to reason.",
            "",
            *listed,
            "",
            "`redqueen COMMAND --help` lists a command's options, `redqueen --version` says which this is.",
        ]
    )


_HINTS = {
    "ModuleNotFoundError": "it wants a module that programs do not have here (docs/verifier.md; numpy needs --numpy)",
    "PermissionError": "programs may not use files, the network, processes, threads or sleep",
    "SyntaxError": "the program, or what is given as --input, is not Python",
    "NameError": "a name is not defined; the function to call must be named f",
}


def _account(job: "Job", outcome: "Outcome") -> str:
    """What happened, for people."""
    from redqueen.verifier import Mode, Status
    from redqueen.verifier.guest.literals import parse

    result = outcome.results[0]
    reasons = {
        Status.TIMEOUT: f"it ran past its limit of {job.limits.cpu_s:g} s, or waits for what cannot come",
        Status.MEMORY: f"it wanted more than its {job.limits.memory_mb} MB of memory",
        Status.CRASH: "its process died of a signal of its own making",
        Status.VIOLATION: "it tried a system call that no program may make",
        Status.TOO_LONG: "the program, its result or what it printed is over the size limit",
        Status.OPAQUE: "its result is not made of plain values",
        Status.NO_RESULT: "it ended without giving a result",
        Status.NONDETERMINISTIC: "its runs disagree",
        Status.BAD_REPLY: "its process sent a reply that no honest run sends",
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
    return "\n".join([*lines, f"({outcome.cpu_ms:.1f} ms of CPU time in {runs}, isolation {outcome.tier})"])


def _read(path: Path | None) -> str:
    """The text of a file, or of our standard input."""
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


def _module_name(path: Path) -> str:
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise InputError(f"{path} cannot be imported by its name", "call it NAME.py, with a name that Python allows")
    return path.stem
