"""Everybody answers the same tasks, in one mixed batch, graded while others still write.

Random numbers come from the benchmark, the task and the attempt's number alone: everybody shares them, so what differs
between two is their weights.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from redqueen.engine.base import Base
from redqueen.engine.body import MAX_POSITIONS
from redqueen.engine.flow import sample_and_check
from redqueen.engine.protocol import Engine, MemberId, Sample, SampleRequest, Stop
from redqueen.errors import InputError
from redqueen.evals.answers import GREEDY, Answer
from redqueen.evals.data import Loaded
from redqueen.evals.protocol import Item, Prompt, Prompts
from redqueen.keys import key
from redqueen.verifier import Verifier
from redqueen.verifier.zygotes import available_cores

AT_ONCE = 2_048
"""Tasks that are sampled together."""
GRADED_AT_ONCE = 2 * available_cores()
"""Enough to keep the cores busy; with more, a program's later tests would wait behind everybody's first ones."""
TOO_LONG = "the prompt is too long for the base"
Encode = Callable[[Prompt, Prompts], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class How:
    """How everybody is asked."""

    prompts: Prompts
    attempts: int
    """Beside the greedy one."""
    temperature: float
    max_tokens: int | None
    """The longest answer; the benchmark's own when None."""
    positions: int
    """Tokens that the base can take, prompt and answer together."""


@dataclass(frozen=True, slots=True)
class Slices:
    """Benchmarks that a race looks at now and then."""

    loaded: tuple[Loaded, ...]
    encode: Encode
    prompts: Prompts


async def ask(
    engine: Engine,
    encode: Encode,
    verifier: Verifier,
    loaded: Loaded,
    examinees: Mapping[str, MemberId | None],
    how: How,
    known: Mapping[tuple[str, str, int], Answer],
    keep: Callable[[Answer], None],
) -> float:
    """Ask for the answers that are not known yet, and hand each to `keep` as soon as it is graded; the seconds of that.
    An examinee, by any name, is a member of the engine, or None for the bare base."""
    start = time.perf_counter()
    numbers = (GREEDY, *range(how.attempts))
    for first in range(0, len(loaded.items), AT_ONCE):
        wanted: list[tuple[str, Item, int]] = [
            (who, item, number)
            for item in loaded.items[first : first + AT_ONCE]
            for who in examinees
            for number in numbers
            if (who, item.id, number) not in known
        ]
        await _ask(engine, encode, verifier, loaded, examinees, how, wanted, keep)
    return time.perf_counter() - start


async def _ask(
    engine: Engine,
    encode: Encode,
    verifier: Verifier,
    loaded: Loaded,
    examinees: Mapping[str, MemberId | None],
    how: How,
    wanted: Sequence[tuple[str, Item, int]],
    keep: Callable[[Answer], None],
) -> None:
    benchmark = loaded.benchmark
    prompts: dict[str, tuple[tuple[int, ...], Prompt]] = {}
    asked: list[tuple[str, Item, int]] = []
    requests: list[SampleRequest] = []
    for who, item, number in wanted:
        if item.id not in prompts:
            prompt = benchmark.prompt(item, how.prompts)
            prompts[item.id] = encode(prompt, how.prompts), prompt
        tokens, prompt = prompts[item.id]
        room = min(how.max_tokens or benchmark.tokens, how.positions - len(tokens))
        if room < 1:
            keep(Answer(who, item.id, number, "", 0, True, None, False, why=TOO_LONG))
            continue
        asked.append((who, item, number))
        requests.append(
            SampleRequest(
                prompt=tokens,
                member=examinees[who],
                key=key("eval", benchmark.name, item.id, number),
                max_tokens=room,
                temperature=0.0 if number == GREEDY else how.temperature,
                stop=prompt.stop,
            )
        )
    if not requests:
        return

    few = asyncio.Semaphore(GRADED_AT_ONCE)

    async def check(place: int, samples: Sequence[Sample]) -> None:
        [sample] = samples
        who, item, number = asked[place]
        found = benchmark.extract(item, sample.text, how.prompts)
        async with few:
            [grade] = await benchmark.grade([(item, found)], verifier)
        keep(
            Answer(
                who, item.id, number, sample.text, len(sample.tokens), sample.stop is Stop.LENGTH, found,
                grade.correct, grade.vote, grade.parts, grade.why,
            )
        )  # fmt: skip

    checked = await sample_and_check(engine, requests, [(place,) for place in range(len(requests))], check)
    await checked.results()


def encoder(base: Base, prompts: Prompts) -> Encode:
    """How prompts become the base's tokens; refuses a chat with a base that was not made for one."""
    if prompts is Prompts.CHAT and not getattr(base.tokenizer, "chat_template", None):
        raise InputError(f"the base {base.name} has no chat template", "ask with raw prompts")

    def encode(prompt: Prompt, how: Prompts) -> tuple[int, ...]:
        if how is Prompts.RAW:
            return base.encode(prompt.text)
        return base.encode([{"role": "user", "content": prompt.text}], prefill=prompt.prefill)

    return encode


def positions(base: Base) -> int:
    """Tokens that the base can take."""
    return min(base.model.config.get_text_config().max_position_embeddings, MAX_POSITIONS)
