"""Several races on one engine: each is what it would be alone."""

import asyncio

import torch

from loop.making import at_the_start, clock, settings
from redqueen.config import open_engine
from redqueen.engine.namespaced import NamespacedEngine
from redqueen.evolution import variation
from redqueen.loop import one_step
from redqueen.phases.journal import Forgetful
from redqueen.training.train import adapters, new_state, open_guards, open_race, open_seeds

SEEDS = (1, 2)


async def two_steps(race, verifier):
    state = new_state(race, await open_seeds(race.settings, verifier))
    found = []
    for step in (1, 2):
        state, rows = await one_step(race, state, clock(step))
        found.append(rows)
    return found


def factors(engine):
    return {id: engine.read(id).factors for id in engine.members}


def test_two_races_on_one_engine_are_what_each_is_alone(verifier):
    of = {seed: settings(changes={"run": {"seed": seed}, "evolution": {"every": 1}}) for seed in SEEDS}
    alone, weights = {}, {}
    for seed in SEEDS:
        with at_the_start(of[seed], verifier) as (race, _, engine):
            alone[seed] = asyncio.run(two_steps(race, verifier))
            weights |= {f"race{seed}-{id}": own for id, own in factors(engine).items()}

    names = [NamespacedEngine(None, f"race{seed}-").name(id) for seed in SEEDS for id in adapters(of[seed])]  # type: ignore
    with open_engine(of[1].engine, names) as engine:
        operators = variation.resolve(of[1].evolution.operators)
        corners = {seed: NamespacedEngine(engine, f"race{seed}-") for seed in SEEDS}
        races = [
            open_race(of[seed], corners[seed], engine.base, verifier, open_guards(of[seed])[0], operators, Forgetful())
            for seed in SEEDS
        ]

        async def lead():
            return await asyncio.gather(*(two_steps(race, verifier) for race in races))

        together = asyncio.run(lead())
        for id, shared in factors(engine).items():
            for module, pair in weights.pop(id).items():
                for ours, theirs in zip(pair, shared[module], strict=True):
                    assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-6)
    assert not weights, "everybody was there"
    for seed, found in zip(SEEDS, together, strict=True):
        for ours, theirs in zip(alone[seed], found, strict=True):
            for table in ("matches", "tasks", "rejections", "attempts", "events"):
                assert list(getattr(ours, table)) == list(getattr(theirs, table))
    assert alone[1][0].attempts != alone[2][0].attempts, "the two races are not one"
