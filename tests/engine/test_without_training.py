"""An engine that does not train: it samples and scores as any other, keeps nothing to train with, and has the room."""

import asyncio
from random import Random
from typing import Any

import pytest

from engine import tiny
from redqueen.engine import memory
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import Recipe, SampleRequest, ScoreRequest, Trajectory
from redqueen.errors import InputError


def trajectory(member: str) -> Trajectory:
    random = Random(0)
    prompt, completion = tiny.tokens(random, 4), tiny.tokens(random, 6)
    return Trajectory(member=member, prompt=prompt, completion=completion, logprobs=(-4.0,) * 6, advantages=1.0)


@pytest.mark.parametrize("architecture", ["llama", "gemma2"])
def test_it_says_what_an_engine_that_trains_says(architecture: str):
    random = Random(1)
    prompts = [tiny.tokens(random, 5) for _ in range(4)]
    asked = [
        SampleRequest(prompt=prompt, member=member, key=key, max_tokens=8)
        for key, prompt in enumerate(prompts)
        for member in ("m0", "m1", None)
    ]
    scored = [ScoreRequest(prompt=one.prompt, completion=one.prompt, member=one.member) for one in asked]

    def answers(*, trains: bool) -> tuple[list[tuple[int, ...]], list[tuple[float, ...]]]:
        with tiny.engine(architecture, members=2, trains=trains) as engine:
            samples, scores = asyncio.run(engine.sample(asked)), asyncio.run(engine.score(scored))
        return [sample.tokens for sample in samples], [score.logprobs for score in scores]

    assert answers(trains=False) == answers(trains=True)


def test_what_it_does_not_keep_is_room_for_three_times_as_many_members():
    with tiny.engine("llama", trains=True) as learns, tiny.engine("llama", trains=False) as stays:
        assert stays.plan.member == learns.plan.member
        assert (stays.plan.trained_member, learns.plan.trained_member) == (0, 3 * learns.plan.member)
        assert stays.plan.activation_token < learns.plan.activation_token
        assert stays.plan.passing < learns.plan.passing
    members = [f"m{number}" for number in range(60)]
    each = learns.plan.member
    most = int((learns.plan.weights + learns.plan.passing + 100 * each) / (1 - memory.SPARE))
    options: dict[str, Any] = {"members": members, "rank": 4, "alpha": 6.0, "memory_bytes": 1 << 30, "most_bytes": most}
    with pytest.raises(InputError, match=r"leave no room to train within engine\.memory"):
        LocalEngine(tiny.base("llama"), **options)
    with LocalEngine(tiny.base("llama"), trains=False, **options) as engine:
        assert engine.plan.micro_tokens > 0
        assert engine.plan.peak(engine.plan.micro_tokens, engine.plan.cache_tokens) <= most
    with pytest.raises(InputError, match=r"leave no room to sample within engine\.memory"):
        LocalEngine(tiny.base("llama"), trains=False, **options | {"most_bytes": most // 2})


def test_it_refuses_an_update_and_keeps_no_optimiser_that_it_is_given():
    with tiny.engine("llama", members=2) as learns:
        tiny.update(learns, [trajectory("m0")], Recipe(lr=1e-2))
        learnt = learns.read("m0", optimiser=True)
    assert learnt.optimiser is not None
    with tiny.engine("llama", members=2, trains=False) as stays:
        with pytest.raises(InputError, match="keeps no room to train; open it with trains=True"):
            tiny.update(stays, [trajectory("m0")], Recipe(lr=1e-2))
        stays.write("m0", learnt)
        assert stays.read("m0", optimiser=True).optimiser is None
        assert tiny.difference(stays.read("m0"), learnt) == 0
