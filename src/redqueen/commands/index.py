"""The commands by name. None is imported before it is needed, so help and mistakes come at once."""

import ast
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING

from redqueen.errors import InputError

if TYPE_CHECKING:
    from redqueen.commands.command import Command


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command that need not be imported yet."""

    module: str
    """In this package."""
    class_name: str

    def load(self) -> "type[Command]":
        return getattr(import_module(f"redqueen.commands.{self.module}"), self.class_name)

    def about(self) -> str:
        """The first line of its docstring, read without importing it."""
        path = files("redqueen.commands") / f"{self.module}.py"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        [node] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == self.class_name]
        return (ast.get_docstring(node) or "").partition("\n")[0]


COMMANDS: Mapping[str, CommandEntry] = {
    "train": CommandEntry("train", "TrainCommand"),
    "study": CommandEntry("study", "StudyCommand"),
    "watch": CommandEntry("watch", "WatchCommand"),
    "report": CommandEntry("report", "ReportCommand"),
    "tasks": CommandEntry("tasks", "TasksCommand"),
    "compare": CommandEntry("compare", "CompareCommand"),
    "eval": CommandEntry("eval", "EvalCommand"),
    "exam": CommandEntry("exam", "ExamCommand"),
    "export": CommandEntry("export", "ExportCommand"),
    "retention": CommandEntry("retention", "RetentionCommand"),
    "doctor": CommandEntry("doctor", "DoctorCommand"),
    "verify": CommandEntry("verify", "VerifyCommand"),
    "examples": CommandEntry("examples", "ExamplesCommand"),
    "diversity": CommandEntry("diversity", "DiversityCommand"),
    "operators": CommandEntry("operators", "OperatorsCommand"),
    "breed": CommandEntry("breed", "BreedCommand"),
    "base list": CommandEntry("base", "BaseListCommand"),
    "base pull": CommandEntry("base", "BasePullCommand"),
    "bench verifier": CommandEntry("bench", "BenchVerifierCommand"),
    "bench sample": CommandEntry("bench", "BenchSampleCommand"),
    "bench update": CommandEntry("bench", "BenchUpdateCommand"),
    "bench members": CommandEntry("bench", "BenchMembersCommand"),
    "bench operators": CommandEntry("bench", "BenchOperatorsCommand"),
    "bench step": CommandEntry("bench", "BenchStepCommand"),
    "simulate ratings": CommandEntry("simulate", "SimulateRatingsCommand"),
    "simulate lineage": CommandEntry("simulate", "SimulateLineageCommand"),
}


def group(first: str) -> dict[str, CommandEntry]:
    return {name: command for name, command in COMMANDS.items() if name.startswith(f"{first} ")}


def find_command(argv: Sequence[str]) -> tuple[str, list[str]]:
    """The name of the command that `argv` begins with, and the words after it."""
    for count in (1, 2):
        name = " ".join(argv[:count])
        if name in COMMANDS:
            return name, list(argv[count:])
    first, *rest = argv
    if first.startswith("-"):
        raise InputError(f"unknown option {first}", "try `redqueen --help`")
    longer = group(first)
    if longer and (not rest or rest[0].startswith("-")):
        known = " or ".join(f"`redqueen {name}`" for name in longer)
        raise InputError(f"{first} needs a second word", f"try {known}")
    given = f"{first} {rest[0]}" if longer else first
    close = difflib.get_close_matches(given, COMMANDS, 1, 0.5)
    mend = f"did you mean `redqueen {close[0]}`?" if close else "try `redqueen --help`"
    raise InputError(f"unknown command {given}", mend)
