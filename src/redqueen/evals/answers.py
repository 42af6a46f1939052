"""Every answer, written down as soon as it is graded: what is there is not asked for again.

A folder has `settings.json`, with whatever makes an answer this one and no other, and `answers/NAME.jsonl` for each
benchmark. A line that a crash left unfinished is dropped.
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
SETTINGS = "settings.json"
RESULTS = "results.json"
AnswerId = tuple[str, str, int]
"""Whose it is, to which item, and the number of the attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One completion and what became of it."""

    who: str
    item: str
    attempt: int
    """From 0 on; GREEDY for the greedy one."""
    text: str
    tokens: int
    cut: bool
    """It ended at the longest that was allowed."""
    answer: str | None
    """What was read out of it."""
    correct: bool
    vote: str | None = None
    parts: Mapping[str, bool] = field(default_factory=dict)
    why: str = ""

    @property
    def id(self) -> AnswerId:
        return self.who, self.item, self.attempt


class AnswerStore:
    """The answers to one benchmark, on the disk and here."""

    def __init__(self, folder: Path, benchmark: str) -> None:
        path = _path(folder, benchmark)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.answers, whole = _read(path)
        self._file: IO[str] = path.open("a", encoding="utf-8", errors="backslashreplace")
        self._file.truncate(whole)

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
    """The answers of a file, and the bytes of its whole lines."""
    answers: dict[AnswerId, Answer] = {}
    data = path.read_bytes() if path.is_file() else b""
    whole = data.rfind(b"\n") + 1
    for number, line in enumerate(data[:whole].splitlines(), 1):
        try:
            answer = Answer(**json.loads(line))
        except (ValueError, TypeError, RecursionError):
            what = f"line {number} of {path} is no answer"
            raise InputError(what, "remove that line: the same command asks for it again") from None
        answers[answer.id] = answer
    return answers, whole


def note_settings(folder: Path, settings: Mapping[str, Any]) -> None:
    """Note what the answers in a folder come from, or refuse a folder whose answers come from something else."""
    path = folder / SETTINGS
    noted: dict[str, Any] = {}
    if path.is_file():
        try:
            noted = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(noted, dict):
                raise ValueError
        except (OSError, ValueError):
            raise InputError(f"{path} cannot be read", "remove the folder, or name another one with --to") from None
    elif folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} is there already and holds no evaluation", "name another folder with --to")
    if difference := _difference(noted, settings):
        raise InputError(f"{folder} was begun with another {difference}", "name another folder with --to, or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(_merged(noted, settings), indent=1, sort_keys=True) + "\n")


def _difference(noted: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> str | None:
    """The first key that both have and that differs."""
    for key in sorted(noted.keys() & now.keys()):
        mine, other = noted[key], now[key]
        if isinstance(mine, Mapping) and isinstance(other, Mapping):
            if found := _difference(mine, other, f"{prefix}{key}."):
                return found
        elif mine != other:
            return f"{prefix}{key} ({mine}, not {other})"
    return None


def _merged(noted: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    both = {key: _merged(noted[key], now[key]) for key in noted.keys() & now.keys() if isinstance(noted[key], Mapping)}
    return {**noted, **now, **both}
