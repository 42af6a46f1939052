"""MMLU: 14,042 questions with four choices each, from 57 subjects; five worked examples of the subject come before."""

from collections.abc import Sequence
from typing import Any

from redqueen.evals.extraction import letter
from redqueen.evals.protocol import Grade, Hub, Item, Prompt, Prompts, Published, Row, Suite
from redqueen.verifier import Verifier

LETTERS = "ABCD"
SHOTS = 5


class Mmlu(Published):
    name = "mmlu"
    title = "MMLU"
    suite: Suite = "knowledge"
    rows = 14_042
    sha256 = "a0ad78e94f19c9f6"
    hub = Hub(repository="cais/mmlu", config="all", split="test", rows=14_042)
    beside: str | None = "../mmlu_dev/test.jsonl.gz"
    hub_beside: Hub | None = Hub(repository="cais/mmlu", config="all", split="dev", rows=285)
    tokens = 8
    graded = "the letter, generated after five examples"

    def from_hub(self, row: Row, number: int) -> dict[str, Any]:
        return {
            "id": f"mmlu/{number}",
            "subject": row["subject"],
            "question": row["question"],
            "choices": list(row["choices"]),
            "answer": LETTERS[row["answer"]],
        }

    def load(self, rows: Sequence[Row], beside: Sequence[Row] = ()) -> list[Item]:
        by_subject: dict[str, list[Row]] = {}
        for row in beside:
            by_subject.setdefault(row["subject"], []).append(row)
        items = []
        for row in rows:
            if len(row["choices"]) != len(LETTERS) or row["answer"] not in LETTERS:
                raise ValueError("a question does not have four choices")
            if len(by_subject.get(row["subject"], [])) < SHOTS:
                raise ValueError(
                    f"mmlu_dev/test.jsonl.gz beside it has fewer than {SHOTS} examples of {row['subject']}"
                )
            items.append(Item(row["id"], {**row, "shots": by_subject[row["subject"]][:SHOTS]}))
        return items

    def prompt(self, item: Item, prompts: Prompts) -> Prompt:
        row = item.row
        subject = row["subject"].replace("_", " ")
        shots = "".join(f"{_question(shot)} {shot['answer']}\n\n" for shot in row["shots"])
        head = f"Questions about {subject}, each with four choices and the letter of the right one."
        text = f"{head}\n\n{shots}{_question(row)}"
        if prompts is Prompts.RAW:
            return Prompt(text=text, stop=("\n",))
        return Prompt(text=f"{text}\n\nReply with the letter of the last question's answer alone.")

    def extract(self, item: Item, text: str, prompts: Prompts) -> str | None:
        return letter(text)

    async def grade(self, answers: Sequence[tuple[Item, str | None]], verifier: Verifier) -> list[Grade]:
        return [
            Grade(
                correct=text == item.row["answer"],
                vote=text,
                why="" if text == item.row["answer"] else "no answer" if text is None else "wrong",
            )
            for item, text in answers
        ]


def _question(row: Row) -> str:
    choices = "\n".join(f"{mark}. {choice}" for mark, choice in zip(LETTERS, row["choices"], strict=True))
    return f"{row['question'].strip()}\n{choices}\nAnswer:"
