"""Samples that are checked while others still grow."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import pytest

from loop.scripted import Script, race, sample
from redqueen.engine.flow import sample_and_check
from redqueen.engine.protocol import Chain, Sample, SampleRequest
from redqueen.tasks.protocol import Prompt

T = TypeVar("T")
REQUESTS = [SampleRequest(prompt=(1,), key=place, max_tokens=1) for place in range(4)]
SAMPLES = [sample(str(place)) for place in range(4)]
PAIRS = [REQUESTS[:2], REQUESTS[2:]]


async def texts(number: int, samples: Sequence[Sample]) -> str:
    return f"{number}:" + "".join(each.text for each in samples)


class Slow(Script):
    """An engine whose last sample does not end before it is told to."""

    def __init__(self) -> None:
        super().__init__(SAMPLES)
        self.go_on = asyncio.Event()

    async def stream(self, chains: Sequence[Chain[T]]) -> list[T]:
        async def ask(requests: Sequence[SampleRequest]) -> list[Sample]:
            if REQUESTS[3] in requests:
                await self.go_on.wait()
            return [SAMPLES[request.key] for request in requests]

        return list(await asyncio.gather(*(chain(ask) for chain in chains)))


def test_results_come_in_the_order_of_the_groups_whatever_ends_first():
    async def lead():
        groups = [REQUESTS[:2], REQUESTS[2:3], REQUESTS[3:]]
        return await (await sample_and_check(Script(SAMPLES), groups, texts)).results()

    assert asyncio.run(lead()) == ["0:01", "1:2", "2:3"]


def test_a_group_is_checked_while_others_still_grow():
    async def lead():
        engine, begun = Slow(), []

        async def check(number: int, samples: Sequence[Sample]) -> str:
            begun.append(number)
            if number == 0:
                # The engine waits for this check: if it began only at the end, both would wait for ever.
                engine.go_on.set()
            return await texts(number, samples)

        async with asyncio.timeout(600):
            return begun, await (await sample_and_check(engine, PAIRS, check)).results()

    begun, results = asyncio.run(lead())
    assert begun[0] == 0
    assert results == ["0:01", "1:23"]


def test_a_check_that_fails_is_raised_and_the_others_are_dropped():
    async def lead():
        async def check(number: int, samples: Sequence[Sample]) -> str:
            if number == 1:
                raise ValueError("broken")
            await asyncio.sleep(60)
            return ""

        checked = await sample_and_check(Script(SAMPLES), PAIRS, check)
        with pytest.raises(ValueError, match="broken"):
            await checked.results()
        await asyncio.sleep(0)
        return [each.cancelled() or each.done() for each in checked.checks]

    assert asyncio.run(lead()) == [True, True]


def test_when_sampling_fails_no_check_is_left_behind():
    async def lead():
        class Failing(Slow):
            async def stream(self, chains: Sequence[Chain[T]]) -> list[T]:
                async def ask(requests: Sequence[SampleRequest]) -> list[Sample]:
                    return [SAMPLES[request.key] for request in requests]

                await chains[0](ask)
                await asyncio.sleep(0)
                raise ValueError("broken")

        async def check(number: int, samples: Sequence[Sample]) -> str:
            await asyncio.sleep(60)
            return ""

        with pytest.raises(ValueError, match="broken"):
            await sample_and_check(Failing(), [[request] for request in REQUESTS], check)
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(lead()) == 1


def test_nothing_is_sampled_for_nothing():
    async def lead():
        return await (await sample_and_check(Script(), [], texts)).results()

    assert asyncio.run(lead()) == []


def test_a_question_is_encoded_once():
    encoded: list[object] = []

    def encode(chat: object) -> tuple[int, ...]:
        encoded.append(chat)
        return (len(encoded),)

    asking = replace(race(), encode=encode)
    one, other = (Prompt(({"role": "user", "content": text},)) for text in ("one?", "other?"))
    assert [asking.tokens(each) for each in (one, other, one)] == [(1,), (2,), (1,)]
    assert encoded == [[{"role": "user", "content": "one?"}], [{"role": "user", "content": "other?"}]]
