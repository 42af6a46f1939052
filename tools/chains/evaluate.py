"""How good a member is at chains, level by level, on a test that is the same every time.

    python tools/chains/evaluate.py                          the base `chains`
    python tools/chains/evaluate.py --member FOLDER          a member, from its PEFT folder

Through the engine that races use, and the code family's own prompts, verifier and grader. Also what the base (or the
member) proposes: how much of it is valid, and of which levels.
"""

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import torch
from chains import KIND, LEVELS, TRACE, draw, level, proposal, traced, uniform_test

from redqueen.engine import peft
from redqueen.engine.base import load
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import SampleRequest, Stop
from redqueen.keys import key
from redqueen.tasks.code import CodeTask
from redqueen.tasks.protocol import Attempt
from redqueen.tasks.verdicts import Rejection, Verdict
from redqueen.verifier import LocalVerifier, Verifier

TOKENS = 64
"""More than the longest trace or chain."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a member makes of the test."""

    accuracy: tuple[float, ...]
    """By level, from 1."""
    traces: tuple[float, ...]
    """How often an attempt has a trace, by level."""
    well_formed: float

    @property
    def mean(self) -> float:
        return sum(self.accuracy) / len(self.accuracy)


@dataclass(frozen=True, slots=True)
class Proposed:
    """What a member proposes."""

    valid: float
    levels: Mapping[int, int]
    """How many tasks there are of each."""

    @property
    def mean_level(self) -> float:
        return sum(at * count for at, count in self.levels.items()) / max(1, sum(self.levels.values()))


async def uniform_tasks(verifier: Verifier, per_level: int = 20) -> list[CodeTask]:
    """The uniform test, as proposals that the verifier has run."""
    drafts = []
    for chain in uniform_test(per_level):
        draft = KIND.parse_proposal(proposal(chain), {})
        assert not isinstance(draft, Rejection)
        drafts.append(draft)
    tasks = await KIND.validate(drafts, verifier)
    assert tasks == [chain.task for chain in uniform_test(per_level)], "the verifier computes what chains say"
    return [task for task in tasks if isinstance(task, CodeTask)]


async def examine(
    engine: LocalEngine,
    verifier: Verifier,
    members: Sequence[str | None],
    tasks: Sequence[CodeTask],
    *,
    attempts: int = 8,
    temperature: float = 1.0,
    begin: str = "",
) -> list[Result]:
    """A result for each member, None being the bare base. `begin` puts these words into their mouths."""
    rows = [(member, task, number) for member in members for task in tasks for number in range(attempts)]
    prefix = engine.base.encode(begin) if begin else ()
    samples = await engine.sample(
        [
            SampleRequest(
                prompt=engine.base.encode(KIND.solve_prompt(task).messages) + prefix,
                member=member,
                key=key("chains: the test", task.id, number),
                max_tokens=TOKENS,
                temperature=temperature,
            )
            for member, task, number in rows
        ]
    )
    texts = [begin + sample.text for sample in samples]
    verdicts = await KIND.grade(
        [
            Attempt(task, text, sample.stop is Stop.LENGTH)
            for (_, task, _), text, sample in zip(rows, texts, samples, strict=True)
        ],
        verifier,
    )
    size = len(tasks) * attempts
    return [
        _result(tasks, attempts, texts[at : at + size], verdicts[at : at + size]) for at in range(0, len(rows), size)
    ]


def _result(tasks: Sequence[CodeTask], attempts: int, texts: Sequence[str], verdicts: Sequence[Verdict]) -> Result:
    levels = [level(task.program) for task in tasks for _ in range(attempts)]
    count = Counter(levels)
    right = Counter(at for at, verdict in zip(levels, verdicts, strict=True) if verdict.correct)
    shown = Counter(at for at, text in zip(levels, texts, strict=True) if traced(text))
    every = range(1, LEVELS + 1)
    return Result(
        tuple(right[at] / count[at] for at in every),
        tuple(shown[at] / count[at] for at in every),
        sum(verdict.well_formed for verdict in verdicts) / len(verdicts),
    )


async def proposals(engine: LocalEngine, verifier: Verifier, member: str | None, count: int = 256) -> Proposed:
    """What a member writes when it is shown chains of any level."""
    rng = Random("chains: references")
    prompts = [
        KIND.propose_prompt([draw(rng.randint(1, LEVELS), rng).task for _ in range(2)], rng) for _ in range(count)
    ]
    samples = await engine.sample(
        [
            SampleRequest(
                prompt=engine.base.encode(prompt.messages),
                member=member,
                key=key("chains: proposals", number),
                max_tokens=TOKENS,
            )
            for number, prompt in enumerate(prompts)
        ]
    )
    drafts = [
        KIND.parse_proposal(sample.text, prompt.context)
        for sample, prompt in zip(samples, prompts, strict=True)
        if sample.stop is not Stop.LENGTH
    ]
    tasks = await KIND.validate([draft for draft in drafts if not isinstance(draft, Rejection)], verifier)
    levels = Counter(level(task.program) for task in tasks if isinstance(task, CodeTask))
    return Proposed(sum(levels.values()) / count, dict(sorted(levels.items())))


async def report(engine: LocalEngine, verifier: Verifier, member: str | None, attempts: int) -> dict[str, object]:
    tasks = await uniform_tasks(verifier)
    [sampled] = await examine(engine, verifier, [member], tasks, attempts=attempts)
    [greedy] = await examine(engine, verifier, [member], tasks, attempts=1, temperature=0.0)
    [with_trace] = await examine(engine, verifier, [member], tasks, attempts=attempts, begin=TRACE)
    proposed = await proposals(engine, verifier, member)
    return {
        "sampled": asdict(sampled) | {"mean": sampled.mean},
        "greedy": asdict(greedy) | {"mean": greedy.mean},
        "with_trace": asdict(with_trace) | {"mean": with_trace.mean},
        "proposed": asdict(proposed) | {"mean_level": proposed.mean_level},
    }


def main() -> None:
    options = argparse.ArgumentParser(description="How good a member is at chains, level by level.")
    options.add_argument("--base", default="chains")
    options.add_argument("--member", type=Path, help="a PEFT folder; by default the bare base")
    options.add_argument("--attempts", type=int, default=8, help="of each of the 200 tasks")
    options.add_argument("--device", type=torch.device, default=torch.device("cpu"))
    options.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    asked = options.parse_args()
    base = load(asked.base, device=asked.device, dtype=getattr(torch, asked.dtype))
    state = None if asked.member is None else peft.load(asked.member)
    shape = {} if state is None else {"rank": state.rank, "alpha": state.alpha}
    with LocalEngine(base, **shape) as engine, LocalVerifier() as verifier:
        if state is not None:
            engine.write("member", state)
        found = asyncio.run(report(engine, verifier, None if state is None else "member", asked.attempts))
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
