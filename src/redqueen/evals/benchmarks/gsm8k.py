"""GSM8K: 1,319 word problems of grade school, whose answers are whole numbers."""

from typing import Any, ClassVar

from redqueen.evals.extraction import boxed, last_number, number_in_box
from redqueen.evals.maths import Maths
from redqueen.evals.protocol import Hub, Item, Prompts, Row


class Gsm8k(Maths):
    name = "gsm8k"
    title = "GSM8K"
    rows = 1_319
    sha256 = "0de8f1c90b12a068"
    hub = Hub(repository="openai/gsm8k", config="main", split="test", rows=1_319)
    tokens = 512
    algebra = False
    graded = "the number in the box, or else the last one"
    examples: ClassVar = (
        (
            "A baker fills 6 trays with 12 rolls each and sells 50 rolls before noon. How many rolls are left?",
            "There are 6 * 12 = 72 rolls. After 50 are sold, 72 - 50 = 22 are left. The answer is \\boxed{22}.",
        ),
        (
            "Nora is 4 years older than twice the age of her brother Tim, who is 9. How old will Nora be in 3 years?",
            "Twice Tim's age is 2 * 9 = 18, so Nora is 18 + 4 = 22. In 3 years she will be 22 + 3 = 25. "
            "The answer is \\boxed{25}.",
        ),
        (
            "A bicycle costs $240 and is sold at a quarter off. Ravi pays half of the price at once and the rest in 5 "
            "equal payments. How much is each payment?",
            "A quarter of $240 is $60, so the price is 240 - 60 = 180. Half of it is 180 / 2 = 90, and 90 are left. "
            "Each payment is 90 / 5 = 18. The answer is \\boxed{18}.",
        ),
        (
            "A pump fills 30 litres in 4 minutes. How many litres does it fill in an hour?",
            "An hour has 60 / 4 = 15 times 4 minutes. The pump fills 15 * 30 = 450 litres. The answer is \\boxed{450}.",
        ),
    )

    def from_hub(self, row: Row, number: int) -> dict[str, Any]:
        answer = row["answer"].rpartition("####")[2].strip().replace(",", "")
        return {"id": f"gsm8k/{number}", "question": row["question"], "answer": answer}

    def extract(self, item: Item, text: str, prompts: Prompts) -> str | None:
        box = boxed(text)
        return (number_in_box(box) if box else None) or last_number(text)
