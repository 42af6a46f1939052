"""The store of answers: each is written as soon as it is graded, and none is sampled twice.

A folder has `settings.json`, with all that an answer depends on, and `answers/NAME.jsonl` for each benchmark. A line
that a crash left unfinished is dropped.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from redqueen.errors import InputError
from redqueen.runs.atomic import write_text

GREEDY = -1
"""The number of the attempt at temperature 0."""
TOO_LONG = "the prompt is too long for the base"
"""Why a task that could not be asked counts as wrong."""
SETTINGS = "settings.json"
RESULTS = "results.json"
AnswerId = tuple[str, str, int]
"""The subject, the item and the number of the attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    who: str
    item: str
    attempt: int
    """From 0 on; GREEDY for the greedy one."""
    text: str
    tokens: int
    cut: bool
    """It was cut off at the longest that was allowed."""
    answer: str | None
    correct: bool
    vote: str | None = None
    parts: Mapping[str, bool] = field(default_factory=dict)
    why: str = ""

    @property
    def id(self) -> AnswerId:
        return self.who, self.item, self.attempt


class AnswerStore:
    """The answers to one benchmark, on the disk and in memory."""

    def __init__(self, folder: Path, benchmark: str) -> None:
        path = _path(folder, benchmark)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.answers, length = _read(path)
        self._file: IO[str] = path.open("a", encoding="utf-8", errors="backslashreplace")
        self._file.truncate(length)

    def add(self, answer: Answer) -> None:
        self._file.write(json.dumps(asdict(answer)) + "\n")
        self._file.flush()
        self.answers[answer.id] = answer

    def close(self) -> None:
        self._file.close()


def read_answers(folder: Path, benchmark: str) -> dict[AnswerId, Answer]:
    return _read(_path(folder, benchmark))[0]


def _path(folder: Path, benchmark: str) -> Path:
    return folder / "answers" / f"{benchmark}.jsonl"


def _read(path: Path) -> tuple[dict[AnswerId, Answer], int]:
    """The answers in a file, and the length of its complete lines in bytes."""
    answers: dict[AnswerId, Answer] = {}
    data = path.read_bytes() if path.is_file() else b""
    length = data.rfind(b"\n") + 1
    for number, line in enumerate(data[:length].splitlines(), 1):
        try:
            answer = Answer(**json.loads(line))
        except (ValueError, TypeError, RecursionError):
            mend = "remove that line: the same command samples it again"
            raise InputError(f"line {number} of {path} is not an answer", mend) from None
        answers[answer.id] = answer
    return answers, length


def note_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Write the settings of an evaluation into its folder, or refuse a folder that was begun with others."""
    path = folder / SETTINGS
    old: dict[str, Any] = {}
    if path.is_file():
        try:
            old = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(old, dict):
                raise ValueError
            old = {"quantise": "none", **old}  # not said of a base that is stored as it is
        except (OSError, ValueError):
            raise InputError(f"{path} cannot be read", "remove the folder, or name another one with --to") from None
    elif folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} exists already and holds no evaluation", "name another folder with --to")
    merged = _merged(old, settings, folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(merged, indent=1, sort_keys=True) + "\n")


def _merged(old: Mapping[str, Any], new: Mapping[str, Any], folder: Path, prefix: str = "") -> dict[str, Any]:
    """Both together; a key that both have must have the same value in both."""
    merged = {**old, **new}
    for key in sorted(old.keys() & new.keys()):
        if isinstance(old[key], Mapping) and isinstance(new[key], Mapping):
            merged[key] = _merged(old[key], new[key], folder, f"{prefix}{key}.")
        elif old[key] != new[key]:
            what = f"{folder} was begun with another {prefix}{key} ({old[key]}, not {new[key]})"
            raise InputError(what, "name another folder with --to, or remove it")
    return merged
