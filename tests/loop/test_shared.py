"""Several races on one engine: each is what it would be alone."""

import asyncio

import torch

from loop.making import clock, settings
from redqueen.loop import one_step
from redqueen.training.setup import Start, open_races

SEEDS = (1, 2)


async def two_steps(opened):
    state, found = opened.state, []
    for step in (1, 2):
        state, rows = await one_step(opened.race, state, clock(step))
        found.append(rows)
    return found


def factors(engine):
    return {id: engine.read(id).factors for id in engine.members}


def test_two_races_on_one_engine_are_what_each_is_alone():
    of = {seed: settings(changes={"run": {"seed": seed}, "evolution": {"every": 1}}) for seed in SEEDS}
    alone, weights = {}, {}
    for seed in SEEDS:
        with open_races([Start.new(of[seed])]) as stage:
            alone[seed] = asyncio.run(two_steps(stage.only))
            weights |= {f"race{seed}/{id}": own for id, own in factors(stage.engine).items()}

    with open_races([Start.new(of[seed], f"race{seed}/") for seed in SEEDS]) as stage:

        async def lead():
            return await asyncio.gather(*map(two_steps, stage.races.values()))

        together = asyncio.run(lead())
        for id, shared in factors(stage.engine).items():
            for module, pair in weights.pop(id).items():
                for ours, theirs in zip(pair, shared[module], strict=True):
                    assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-6)
    assert not weights, "everybody was there"
    for seed, found in zip(SEEDS, together, strict=True):
        for ours, theirs in zip(alone[seed], found, strict=True):
            for table in ("matches", "tasks", "rejections", "attempts", "events"):
                assert list(getattr(ours, table)) == list(getattr(theirs, table))
    assert alone[1][0].attempts != alone[2][0].attempts, "the two races are not one"
