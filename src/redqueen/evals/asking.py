"""Everybody answers the same items, in one mixed batch, graded while others still write.

The one asker of exams, benchmarks and the evaluations during a race. A question brings its own random numbers, made of
what is evaluated, the item and the attempt alone: all subjects share them, so what differs between two is their
weights. Subjects that are one member of the engine are asked once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from redqueen.engine.base import Base
from redqueen.engine.body import MAX_POSITIONS
from redqueen.engine.flow import sample_and_check
from redqueen.engine.protocol import Engine, MemberId, Sample, SampleRequest, Stop
from redqueen.errors import InputError
from redqueen.evals.answers import GREEDY, TOO_LONG, Answer, AnswerId
from redqueen.evals.data import LoadedBenchmark
from redqueen.evals.protocol import Benchmark, Grade, Item, Prompt, Prompts, Reply
from redqueen.verifier.zygotes import available_cores

AT_ONCE = 2_048
"""Items that are sampled together."""
GRADED_AT_ONCE = 2 * available_cores()
"""Enough to keep the cores busy; with more, a program's later tests would wait behind everybody's first ones."""
Encode = Callable[[Prompt, Prompts], tuple[int, ...]]
Judge = Callable[[Sequence[Reply]], Awaitable[Sequence[Grade]]]
Together = Literal["answer", "item", "batch"]
"""What is judged in one go: each answer alone, all answers to an item, or all of a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How everybody is asked."""

    prompts: Prompts
    temperature: float
    """Of all attempts but the greedy one."""
    max_tokens: int
    """The longest answer."""
    positions: int | None
    """Tokens that the base can take, prompt and answer together: an answer has what the prompt leaves of them. None
    leaves it to the engine to refuse what is too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One answer that is wanted."""

    subject: str
    member: MemberId | None
    item: Item
    attempt: int
    """From 0 on; GREEDY for the one at temperature 0."""
    key: int
    """Where its random numbers come from."""

    @property
    def id(self) -> AnswerId:
        """Of its answer."""
        return self.subject, self.item.id, self.attempt


@dataclass(frozen=True, slots=True)
class Slices:
    """Benchmarks that are put to members during a race."""

    loaded: tuple[LoadedBenchmark, ...]
    encode: Encode
    prompts: Prompts
    every: int
    """Steps from one time to the next."""


def questions(
    items: Iterable[Item],
    subjects: Mapping[str, MemberId | None],
    attempts: Sequence[int],
    key_of: Callable[[Item, int], int],
) -> list[Question]:
    """Every attempt of every subject at every item. A subject, by any name, is a member of the engine, or None for the
    bare base."""
    return [
        Question(subject=subject, member=member, item=item, attempt=attempt, key=key_of(item, attempt))
        for item in items
        for subject, member in subjects.items()
        for attempt in attempts
    ]


async def ask(
    engine: Engine,
    encode: Encode,
    benchmark: Benchmark,
    all_questions: Sequence[Question],
    sampling: Sampling,
    *,
    judge: Judge,
    together: Together,
    keep: Callable[[Answer], None],
) -> None:
    """Put the questions, and hand each answer to `keep` as soon as it is judged."""
    place = {id: number for number, id in enumerate(dict.fromkeys(question.item.id for question in all_questions))}
    for first in range(0, len(place), AT_ONCE):
        batch = [question for question in all_questions if first <= place[question.item.id] < first + AT_ONCE]
        await _ask(engine, encode, benchmark, batch, sampling, judge=judge, together=together, keep=keep)


async def _ask(
    engine: Engine,
    encode: Encode,
    benchmark: Benchmark,
    batch: Sequence[Question],
    sampling: Sampling,
    *,
    judge: Judge,
    together: Together,
    keep: Callable[[Answer], None],
) -> None:
    prompts: dict[str, tuple[Prompt, tuple[int, ...]]] = {}
    put: dict[tuple[MemberId | None, str, int], list[Question]] = {}
    requests: list[SampleRequest] = []
    groups: dict[object, list[int]] = {}
    for question in batch:
        item = question.item
        asked = question.member, item.id, question.attempt
        if asked in put:
            put[asked].append(question)
            continue
        if item.id not in prompts:
            prompt = benchmark.prompt(item, sampling.prompts)
            prompts[item.id] = prompt, encode(prompt, sampling.prompts)
        prompt, tokens = prompts[item.id]
        room = sampling.max_tokens
        if sampling.positions is not None:
            room = min(room, sampling.positions - len(tokens))
        if room < 1:
            keep(_answer(question, Reply(item, "", False), 0, Grade(correct=False, why=TOO_LONG)))
            continue
        group = {"answer": question.id, "item": item.id, "batch": None}[together]
        groups.setdefault(group, []).append(len(put))
        put[asked] = [question]
        requests.append(_request(question, tokens, prompt.stop, room, sampling))
    if not requests:
        return
    places, put_by_place = list(groups.values()), list(put.values())
    few = asyncio.Semaphore(GRADED_AT_ONCE)

    async def check(number: int, samples: Sequence[Sample]) -> None:
        own = [put_by_place[place] for place in places[number]]
        replies = [
            Reply(alike[0].item, sample.text, sample.stop is Stop.LENGTH)
            for alike, sample in zip(own, samples, strict=True)
        ]
        async with few:
            grades = await judge(replies)
        for alike, reply, sample, grade in zip(own, replies, samples, grades, strict=True):
            for question in alike:
                keep(_answer(question, reply, len(sample.tokens), grade))

    checked = await sample_and_check(engine, [[requests[place] for place in own] for own in places], check)
    await checked.results()


def _request(
    question: Question, tokens: tuple[int, ...], stop: tuple[str, ...], room: int, sampling: Sampling
) -> SampleRequest:
    return SampleRequest(
        prompt=tokens,
        member=question.member,
        key=question.key,
        max_tokens=room,
        temperature=0.0 if question.attempt == GREEDY else sampling.temperature,
        stop=stop,
    )


def _answer(question: Question, reply: Reply, tokens: int, grade: Grade) -> Answer:
    return Answer(
        who=question.subject,
        item=question.item.id,
        attempt=question.attempt,
        text=reply.text,
        tokens=tokens,
        cut=reply.cut,
        answer=grade.answer,
        correct=grade.correct,
        vote=grade.vote,
        parts=grade.parts,
        why=grade.why,
    )


def is_chat(base: Base) -> bool:
    """Whether it was made for chats."""
    return bool(getattr(base.tokenizer, "chat_template", None))


def encoder(base: Base, prompts: Prompts) -> Encode:
    """How prompts become the base's tokens; refuses a chat with a base that was not made for one."""
    if prompts is Prompts.CHAT and not is_chat(base):
        raise InputError(f"the base {base.name} has no chat template", "ask with raw prompts")
    return lambda prompt, how: encoded(base, prompt, how)


def encoded(base: Base, prompt: Prompt, prompts: Prompts) -> tuple[int, ...]:
    if prompts is Prompts.RAW:
        return base.encode(prompt.text)
    return base.encode([*prompt.before, {"role": "user", "content": prompt.text}], prefill=prompt.prefill)


def positions(base: Base) -> int:
    """Tokens that the base can take."""
    return min(base.model.config.get_text_config().max_position_embeddings, MAX_POSITIONS)
