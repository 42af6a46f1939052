"""A race's archive as a taskset of verifiers (v1): a folder that can be installed, whose tasks this package grades.

What the folder holds is data and a dozen lines that name `evals/taskset.py`, where the grading is. Nothing of
verifiers is needed to write it.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from redqueen import __version__
from redqueen.errors import InputError
from redqueen.plugins import file_and_name
from redqueen.runs.atomic import put_in_place, write_text
from redqueen.runs.rows import TaskRow
from redqueen.settings import Config

TASKS = "tasks.jsonl"
_NAME = re.compile("[a-z][a-z0-9_]*", re.ASCII)
_MODULE = '''\
"""Tasks of a race of Red Queen, as a verifiers v1 taskset. They are graded in isolated guests."""

from pathlib import Path

from redqueen.evals.taskset import archive

Archive = archive(Path(__file__).parent)

__all__ = ["Archive"]
'''
_PROJECT = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "{project}"
version = "0.1.0"
description = "Tasks of a race of Red Queen, as a verifiers v1 taskset"
requires-python = ">=3.11"
dependencies = ["redqueen>={version}", "verifiers>=0.4"]

[tool.hatch.build.targets.wheel]
packages = ["{module}"]
"""


def write(folder: Path, settings: Config, rows: Iterable[TaskRow]) -> int:
    """Write the tasks, each once, into a folder that is not there yet; how many there are."""
    module = folder.name.replace("-", "_").lower()
    if not _NAME.fullmatch(module):
        what = f"{folder} has a name that cannot be imported"
        raise InputError(what, "use letters, digits and underscores, a letter first")
    if folder.exists():
        raise InputError(f"{folder} is there already", "name another folder, or remove it")
    own = [name for name in settings.tasks.families if file_and_name(name) is not None]
    if own:
        what = f"the task family {own[0]} is a file, which a taskset does not bring along"
        raise InputError(what, "provide it by a package, with an entry point (docs/extending.md)")
    count = 0
    (folder / module).mkdir(parents=True)
    with put_in_place(folder / module / TASKS) as aside, aside.open("w", encoding="utf-8") as file:
        for record in _each_once(rows):
            file.write(json.dumps(record) + "\n")
            count += 1
    asked = settings.tasks
    about = {"families": list(asked.families), "form": asked.form, "unfenced": asked.unfenced}
    write_text(folder / module / "about.json", json.dumps(about, indent=2) + "\n")
    write_text(folder / module / "__init__.py", _MODULE)
    project = _PROJECT.format(project=module.replace("_", "-"), module=module, version=__version__)
    write_text(folder / "pyproject.toml", project)
    return count


def _each_once(rows: Iterable[TaskRow]) -> Iterable[dict[str, Any]]:
    seen: set[str] = set()
    for row in rows:
        if row.id not in seen:
            seen.add(row.id)
            yield {"id": row.id, "solved": row.solved, "attempts": row.attempts, "record": dict(row.record)}
