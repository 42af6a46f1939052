"""HumanEval+: 164 functions to write from a signature and a docstring, with EvalPlus' tests."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from redqueen.evals.evalplus import EvalPlus, program_in
from redqueen.evals.protocol import Hub, Item, Prompt, Prompts, Row


def _find_zero(inputs: Sequence[Any], value: Any, expected: Any) -> bool:
    """Any zero of the polynomial passes. Where it is steep, even the closest float misses the tolerance, so the zero of
    the benchmark's own solution passes too."""
    try:
        residual = sum(factor * math.pow(value, power) for power, factor in enumerate(inputs[0]))
        return abs(residual) <= 1e-4 or math.isclose(value, expected, rel_tol=1e-6)
    except (TypeError, ValueError, OverflowError):
        return False


class HumanEvalPlus(EvalPlus):
    name = "humaneval_plus"
    title = "HumanEval+"
    rows = 164
    sha256 = "772926e7f596fb69"
    hub = Hub(repository="evalplus/humanevalplus", config="default", split="test", rows=164)
    beside: str | None = "HumanEvalPlus.jsonl.gz"
    oracles: ClassVar = {"find_zero": _find_zero}

    def from_hub(self, row: Row, number: int) -> dict[str, Any]:
        names = ("prompt", "entry_point", "canonical_solution", "test")
        return {"id": row["task_id"], **{name: row[name] for name in names}}

    def prompt(self, item: Item, prompts: Prompts) -> Prompt:
        text = item.row["prompt"]
        if prompts is Prompts.RAW:
            stop = ("\nclass ", "\ndef ", "\n#", "\n@", "\nif __name__", "\nprint(", "\nassert ", "\n```")
            return Prompt(text=text.rstrip() + "\n", stop=stop)
        return Prompt(
            text=f"Complete this function. Reply with one Python code block that stands on its own:\n"
            f"```python\n{text.strip()}\n```",
            prefill="Here is the complete function:\n```python\n",
            stop=("\n```",),
        )

    def extract(self, item: Item, text: str, prompts: Prompts) -> str | None:
        if prompts is Prompts.RAW:
            return item.row["prompt"].rstrip() + "\n" + text
        return program_in(text)
