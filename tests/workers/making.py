"""Work for an engine in which everything happens that happens in a race, and what came of it as one digest."""

import asyncio
import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from redqueen.cluster.engine import ClusterEngine
from redqueen.cluster.inside import Inside
from redqueen.cluster.links import Workers
from redqueen.engine.protocol import Ask, MemberState, Recipe, Sample, SampleRequest, ScoreRequest, Trajectory
from redqueen.engine.queued import QueuedEngine
from redqueen.engine.shapes import described
from redqueen.settings.models import EngineConfig

SETTINGS = EngineConfig(base="chains", rank=4, device="cpu", dtype="float32")
MEMBERS = ("t0", "t1", "s0", "s1")
PATIENCE_S = 120.0


def opened(
    shards: int,
    workers: int = 1,
    of: Workers | None = None,
    patience_s: float = PATIENCE_S,
    settings: EngineConfig = SETTINGS,
) -> ClusterEngine:
    """Over workers of this process, if no others are given."""
    return ClusterEngine(
        described(settings.base, settings.quantise),
        of or Inside(),
        settings,
        members=MEMBERS,
        shards=shards,
        count=workers,
        patience_s=patience_s,
        seed=3,
    )


def worked(engine: QueuedEngine, steps: int = 3) -> str:
    return asyncio.run(_work(engine, steps))


async def _work(engine: QueuedEngine, steps: int) -> str:
    """Every step samples in chains, scores, trains, looks at members, and has one replaced and one read whole."""
    seen: list[Any] = []
    members = list(MEMBERS)
    for step in range(steps):
        prompts = [engine.base.encode(f"def f(x): return x + {number}") for number in range(3)]

        async def chain(ask: Ask, number: int, step: int, prompts: Sequence[tuple[int, ...]]) -> list[Sample]:
            def request(member: str | None, key: int, tokens: int) -> SampleRequest:
                return SampleRequest(prompt=prompts[key % 3], member=member, key=1000 * step + key, max_tokens=tokens)

            first = await ask([request(members[number % 4], number, 12)])
            # Of members of several shards, and of the bare base.
            others = [request(member, 7 * number + at, 10) for at, member in enumerate([*members, None])]
            return first + await ask(others)

        texts = await engine.stream([partial(chain, number=n, step=step, prompts=prompts) for n in range(8)])
        samples = [sample for each in texts for sample in each]
        scored = await engine.score(
            [
                ScoreRequest(prompt=prompts[0], completion=sample.tokens, member=member, hidden=True)
                for sample, member in zip(samples, [*members, None] * 10, strict=False)
            ]
        )
        batch = [
            Trajectory(
                member=members[number % 4],
                prompt=prompts[number % 3],
                completion=text[0].tokens,
                logprobs=text[0].logprobs,
                advantages=float(number % 5 - 2),
            )
            for number, text in enumerate(texts)
        ]
        learned = await engine.update(batch, Recipe(lr=1e-2))
        looked = engine.look(members, lambda states: [_sum(state) for state in states])
        seen.append([[(s.tokens, s.logprobs, s.text, s.stop) for s in samples], [s.logprobs for s in scored]])
        seen.append([[s.hidden.tolist() for s in scored if s.hidden is not None], learned, looked])
        if step == 1:
            child = engine.read("s1", optimiser=True).scaled(0.5)
            engine.remove("s1")
            engine.write("s1.1", child)
            members[members.index("s1")] = "s1.1"
    seen.append([_sum(engine.read(member, optimiser=True)) for member in members])
    return hashlib.sha256(repr(seen).encode()).hexdigest()


def _sum(state: MemberState) -> str:
    """Of weights and moments."""
    found = hashlib.sha256()
    optimiser = [] if state.optimiser is None else [state.optimiser.exp_avg, state.optimiser.exp_avg_sq]
    for factors in (state.factors, *optimiser):
        for name in sorted(factors):
            for tensor in factors[name]:
                found.update(tensor.contiguous().numpy().tobytes())
    return found.hexdigest()
