"""MBPP+: 378 functions to write from a sentence and an example, with EvalPlus' tests."""

import math
import re
from collections.abc import Sequence
from typing import Any, ClassVar

from redqueen.evals.code import Oracle
from redqueen.evals.evalplus import EvalPlus, program_in
from redqueen.evals.protocol import Hub, Item, Prompt, Prompts, Row


def _as_sets(inputs: Sequence[Any], value: Any, expected: Any) -> bool:
    try:
        return set(value) == set(expected)
    except TypeError:
        return False


def _anything(inputs: Sequence[Any], value: Any, expected: Any) -> bool:
    """The task's own tests contradict each other, so any result passes."""
    return True


def _or_zero(inputs: Sequence[Any], value: Any, expected: Any) -> bool | None:
    return True if value == 0 else None


def _pyramid(inputs: Sequence[Any], value: Any, expected: Any) -> bool | None:
    """The height may also be read as that of the pyramid instead of its sides."""
    edge, height = inputs
    area = round(edge**2 + 2 * edge * math.sqrt((edge / 2) ** 2 + height**2))
    return True if value == area else None


def _padded_digits(inputs: Sequence[Any], value: Any, expected: Any) -> bool | None:
    """The shorter of two numbers may also be padded with zeros."""
    first, second = map(str, inputs)
    width = max(len(first), len(second))
    pairs = zip(first.zfill(width), second.zfill(width), strict=True)
    try:
        return True if value == sum(abs(int(a) - int(b)) for a, b in pairs) else None
    except ValueError:  # a sign
        return None


_SETS = (
    "similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly", "larg_nnum",
    "intersection_array", "find_dissimilar", "Diff",
)  # fmt: skip
_ORACLES: dict[str, Oracle] = {
    **dict.fromkeys(_SETS, _as_sets),
    "are_equivalent": _anything,
    "sum_div": _or_zero,
    "surface_Area": _pyramid,
    "digit_distance_nums": _padded_digits,
}


class MbppPlus(EvalPlus):
    name = "mbpp_plus"
    title = "MBPP+"
    rows = 378
    sha256 = "f37861278d0f4d70"
    hub = Hub(repository="evalplus/mbppplus", config="default", split="test", rows=378)
    beside: str | None = "MbppPlus.jsonl.gz"
    oracles: ClassVar = _ORACLES
    not_none: ClassVar = frozenset({"check_str", "text_match_three", "text_starta_endb"})
    # EvalPlus' own variant without extreme inputs leaves out the first, too.
    extreme: ClassVar = {
        "sum_average": lambda number: number > 10**7,
        "combinations_colors": lambda _, count: count > 75,
    }

    def from_hub(self, row: Row, number: int) -> dict[str, Any]:
        call = re.search(r"assertion\((\w+)\(\*inp\)", row["test"])
        if call is None:
            raise ValueError("its test does not call a function")
        prompt = f'"""\n{row["prompt"].strip()}\n{row["test_list"][0].strip()}\n"""\n'
        return {
            "id": f"Mbpp/{row['task_id']}",
            "prompt": prompt,
            "entry_point": call[1],
            "canonical_solution": row["code"],
            "test": row["test"],
            "base_tests": len(set(row["test_list"])),
        }

    def solution(self, row: Row) -> str:
        return row["canonical_solution"]

    def prompt(self, item: Item, prompts: Prompts) -> Prompt:
        text = item.row["prompt"].strip()
        if prompts is Prompts.RAW:
            stop = ('\n"""', "\nassert ", "\nprint(", "\nif __name__", "\n```", "\n#")
            return Prompt(text=f"{text}\n", stop=stop)
        return Prompt(
            text=f"Write this function. Reply with one Python code block that stands on its own:\n"
            f"```python\n{text}\n```",
            prefill="Here is the function:\n```python\n",
            stop=("\n```",),
        )

    def extract(self, item: Item, text: str, prompts: Prompts) -> str | None:
        return text if prompts is Prompts.RAW and text.strip() else program_in(text)
