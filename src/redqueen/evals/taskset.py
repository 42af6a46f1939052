"""What the folders of `redqueen tasks RUN --to FOLDER` are made of: a taskset of verifiers (v1) whose tasks are graded
here.

It is imported where verifiers is installed, and by such a folder alone. A task's reward is 1 for a right answer and 0
for any other; an answer is graded in a guest, as in a race.
"""

import json
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from redqueen.tasks.families import Families
from redqueen.tasks.protocol import Attempt
from redqueen.verifier import LocalVerifier


@cache
def verifier() -> LocalVerifier:
    """One for the process, which ends with it."""
    return LocalVerifier()


@cache
def _families(names: tuple[str, ...], form: str, unfenced: bool) -> Families:
    return Families.of(names, form, unfenced=unfenced)


def families_of(folder: Path) -> Families:
    """Those that the tasks of a folder are of."""
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    return _families(tuple(about["families"]), about["form"], about["unfenced"])


def rows(folder: Path) -> list[dict[str, Any]]:
    """The tasks of a folder."""
    lines = (folder / "tasks.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


async def graded(folder: Path, record: dict[str, Any], text: str, *, cut: bool) -> tuple[float, float]:
    """Whether an answer to a task is right, and whether it is well formed."""
    families = families_of(folder)
    task = families.restore(record)
    [verdict] = await families.kinds[task.kind].grade([Attempt(task, text, cut)], verifier())
    return float(verdict.correct), float(verdict.well_formed)


def archive(folder: Path) -> type[Any]:
    """The taskset of a folder."""
    vf: Any = import_module("verifiers.v1")

    class ArchiveData(vf.TaskData):
        record: dict[str, Any]
        """The task, as its family writes it down."""

    class ArchiveTask(vf.Task[ArchiveData]):
        @vf.reward
        async def correct(self, trace: Any) -> float:
            right, _ = await self._graded(trace)
            return right

        @vf.metric
        async def well_formed(self, trace: Any) -> float:
            _, formed = await self._graded(trace)
            return formed

        async def _graded(self, trace: Any) -> tuple[float, float]:
            cut = bool(trace.calls) and trace.calls[-1].finish_reason == "length"
            return await graded(folder, self.data.record, trace.last_reply, cut=cut)

    class Archive(vf.Taskset[ArchiveTask]):
        """The archive of a race."""

        def load(self) -> Iterable[Any]:
            families = families_of(folder)
            for row in rows(folder):
                task = families.restore(row["record"])
                asked = families.kinds[task.kind].solve_prompt(task).messages
                prompt = [_message(vf, turn["role"], turn["content"]) for turn in asked]
                yield ArchiveTask(ArchiveData(id=row["id"], prompt=prompt, record=row["record"]), self.config.task)

    return Archive


def _message(vf: Any, role: str, content: str) -> Any:
    made = {"user": vf.UserMessage, "assistant": vf.AssistantMessage, "system": vf.SystemMessage}
    return made[role](content=content)
