"""OlympiadBench: 675 problems of mathematics olympiads in English, with answers that can be compared."""

from typing import Any

from redqueen.evals.maths import Maths
from redqueen.evals.protocol import Hub, Row


class OlympiadBench(Maths):
    name = "olympiadbench"
    title = "OlympiadBench"
    rows = 675
    sha256 = "053e42951d84e22a"
    hub = Hub(repository="Hothan/OlympiadBench", config="OE_TO_maths_en_COMP", split="train", rows=674)

    def from_hub(self, row: Row, number: int) -> dict[str, Any]:
        return {
            "id": f"olympiadbench/{row['id']}",
            "question": row["question"],
            "answer": ", ".join(row["final_answer"]),
        }
