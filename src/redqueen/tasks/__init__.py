"""Families and kinds of tasks: prompt, parse, validate, grade.

`protocol` has the protocols and the data. A family is a package that provides kinds; a kind is one small file,
entered in its family's dict; a family is one line in `FAMILIES`. docs/extending.md has a worked example.
"""

from collections.abc import Callable, Mapping
from typing import Any

from redqueen.errors import InputError
from redqueen.tasks.code import CodeFamily
from redqueen.tasks.protocol import (
    Attempt,
    Draft,
    Family,
    Form,
    Grade,
    Kind,
    Message,
    Prompt,
    Reason,
    Rejection,
    Task,
    Verdict,
    count_rejections,
)

FAMILIES: dict[str, Callable[[Form], Family]] = {
    "code": CodeFamily,
}


def all_kinds(form: Form = Form.LONG) -> dict[str, Kind[Any, Any]]:
    """Every kind of every family, by name."""
    return {name: kind for family in FAMILIES.values() for name, kind in family(form).kinds.items()}


def restore(record: Mapping[str, Any]) -> Task:
    """The task that `Task.record` wrote down."""
    kind = all_kinds().get(record["kind"])
    if kind is None:
        raise InputError(f"no such task kind: {record['kind']!r}", f"the kinds are {', '.join(all_kinds())}")
    return kind.task_type.from_record(record)


__all__ = [
    "FAMILIES",
    "Attempt",
    "Draft",
    "Family",
    "Form",
    "Grade",
    "Kind",
    "Message",
    "Prompt",
    "Reason",
    "Rejection",
    "Task",
    "Verdict",
    "all_kinds",
    "count_rejections",
    "restore",
]
