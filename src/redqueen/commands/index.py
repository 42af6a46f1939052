"""The commands by name, and where each of them is. None is imported before it is asked for: help comes at once."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redqueen.commands.command import Command


@dataclass(frozen=True, slots=True)
class Entry:
    """A command that need not be imported yet."""

    module: str
    """In this package."""
    name: str
    """The class."""

    def load(self) -> "type[Command]":
        return getattr(import_module(f"redqueen.commands.{self.module}"), self.name)

    def about(self) -> str:
        """The first line of its docstring, read and not imported."""
        path = files("redqueen.commands") / f"{self.module}.py"
        tree = ast.parse(path.read_text(encoding="utf-8"))
        [found] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == self.name]
        return (ast.get_docstring(found) or "").partition("\n")[0]


COMMANDS: Mapping[str, Entry] = {
    "train": Entry("train", "Train"),
    "study": Entry("study", "Study"),
    "watch": Entry("watch", "Watch"),
    "report": Entry("report", "Report"),
    "tasks": Entry("tasks", "Tasks"),
    "compare": Entry("compare", "Compare"),
    "eval": Entry("eval", "Eval"),
    "exam": Entry("exam", "Exam"),
    "export": Entry("export", "Export"),
    "retention": Entry("retention", "RetentionTest"),
    "doctor": Entry("doctor", "Doctor"),
    "verify": Entry("verify", "Verify"),
    "examples": Entry("examples", "Examples"),
    "diversity": Entry("diversity", "Diversity"),
    "operators": Entry("operators", "Operators"),
    "breed": Entry("breed", "Breed"),
    "base list": Entry("base", "BaseList"),
    "base pull": Entry("base", "BasePull"),
    "bench verifier": Entry("bench", "BenchVerifier"),
    "bench sample": Entry("bench", "BenchSample"),
    "bench update": Entry("bench", "BenchUpdate"),
    "bench members": Entry("bench", "BenchMembers"),
    "bench operators": Entry("bench", "BenchOperators"),
    "bench step": Entry("bench", "BenchStep"),
    "simulate ratings": Entry("simulate", "SimulateRatings"),
    "simulate lineage": Entry("simulate", "SimulateLineage"),
}
