"""math_w: work out the number that a story asks for.

A teacher tells who has what and what happens, in sentences of known forms; all numbers are drawn by lot where the story
is checked. What a student reads is written from what was understood, so that text and answer cannot part.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from redqueen.tasks.math.task import STORIES, MathDraft, StoryTask
from redqueen.tasks.math.whole import Whole, grade_number
from redqueen.tasks.math.word_prompts import propose_story, solve_story
from redqueen.tasks.math.word_seeds import WORD_SEEDS
from redqueen.tasks.protocol import Attempt, Form, Prompt
from redqueen.tasks.verdicts import Reason, Rejection, Verdict
from redqueen.verifier import Verifier

_WHOLE = Whole(name="math_w", label="story", checker=STORIES, task_type=StoryTask, lacking=Reason.NO_STORY)


@dataclass(frozen=True)
class MathW:
    """A story is given; a number is wanted."""

    form: Form = Form.LONG
    name = "math_w"
    title = "work out what a story asks for"
    task_type = StoryTask

    def propose_prompt(self, references: Sequence[StoryTask], rng: Random) -> Prompt:
        return propose_story(self.form, references or WORD_SEEDS, rng)

    def parse_proposal(self, text: str, context: Mapping[str, str]) -> MathDraft | Rejection:
        return _WHOLE.parse(text, context)

    async def validate(self, drafts: Sequence[MathDraft], verifier: Verifier) -> list[StoryTask | Rejection]:
        return await _WHOLE.validate(drafts, verifier)

    def solve_prompt(self, task: StoryTask) -> Prompt:
        return solve_story(self.form, task.text)

    async def grade(self, attempts: Sequence[Attempt[StoryTask]], verifier: Verifier) -> list[Verdict]:
        return await grade_number(attempts, verifier)
