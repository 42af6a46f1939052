"""MATH-500: 500 problems of mathematics contests."""

from typing import Any

from redqueen.evals.maths import Maths
from redqueen.evals.protocol import Hub, Row


class Math500(Maths):
    name = "math500"
    title = "MATH-500"
    rows = 500
    sha256 = "41d624f5719a0cc1"
    hub = Hub(repository="HuggingFaceH4/MATH-500", config="default", split="test", rows=500)

    def from_hub(self, row: Row, number: int) -> dict[str, Any]:
        return super().from_hub(row, number) | {"id": row["unique_id"]}
