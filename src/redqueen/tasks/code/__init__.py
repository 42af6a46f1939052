"""The code family: tasks about small Python programs.

    code_o   predict what a program returns        code_i   find an input that gives the output
    code_f   write the function from examples

A kind is one file with one class and one line in `_KINDS`. What they share: `blocks` (from a text to its fenced
parts), `program` and `names` (what a program may be and reach for), `plain` (without remarks), `order` (what a set's
order may reach), `running` (the way to the verifier), `key` (near-duplicates), `prompts`, `seeds`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from redqueen.tasks.code.code_f import CodeF
from redqueen.tasks.code.code_i import CodeI
from redqueen.tasks.code.code_o import CodeO
from redqueen.tasks.code.seeds import SEEDS
from redqueen.tasks.code.task import DEFAULT_LIMITS, CodeDraft, CodeTask
from redqueen.tasks.protocol import Form, Kind
from redqueen.verifier import Limits

_KINDS: dict[str, Callable[[Form, Limits], Kind[Any, Any]]] = {
    "code_o": CodeO,
    "code_i": CodeI,
    "code_f": CodeF,
}


@dataclass(frozen=True)
class CodeFamily:
    """The kinds, with one form of prompt and one set of limits."""

    form: Form = Form.LONG
    limits: Limits = DEFAULT_LIMITS

    @property
    def kinds(self) -> Mapping[str, Kind[Any, Any]]:
        return {name: kind(self.form, self.limits) for name, kind in _KINDS.items()}


__all__ = ["SEEDS", "CodeDraft", "CodeF", "CodeFamily", "CodeI", "CodeO", "CodeTask"]
