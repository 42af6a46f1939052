"""The check that another process, with another hash seed, comes to the same tasks, keys, prompts and verdicts.

A run is resumed, its tasks are compared with those of other runs, and races run on several machines: what depends on
the order of a set or on an address would differ there. `other_process` is what runs in the other one.
"""

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from redqueen.keys import numbers
from redqueen.tasks.protocol import Attempt, Prompt, Task
from redqueen.tasks.soundness.findings import Finding, excerpt, failed, graded, named, ok, said
from redqueen.tasks.soundness.material import Material
from redqueen.verifier import Tier, Verifier

HASH_SEEDS = ("1", "2")
"""Fixed ones, so that a fault is found every time or never."""
TASKS = 24
"""Of each kind; what depends on a hash seed shows in a few."""
_SECONDS = 600
Parts = Mapping[str, Sequence[str]]
"""Of each task, in their order: what is compared, by name."""
Found = Sequence[dict[str, Parts] | str]
"""By each other process: the parts of every kind, or why it came to nothing."""
_PARTS = ("id", "keys", "prompts", "verdicts")


async def parts_of(material: Material, verifier: Verifier) -> dict[str, list[str]]:
    """What must be the same everywhere, as hashes."""
    tasks = material.tasks[:TASKS]
    golds = _golds(material)
    attempts = [Attempt(task, text) for task, text in golds]
    attempts += [Attempt(task, golds[at - 1][1]) for at, (task, _) in enumerate(golds)]
    verdicts = await graded(material.kind, attempts, verifier)
    asked = [
        kind.propose_prompt(tasks, numbers("check", kind.name, number))
        for kind in (() if material.drawn else material.forms.values())
        for number in range(4)
    ]
    solved = [[_text(kind.solve_prompt(task)) for kind in material.forms.values()] for task in tasks]
    return {
        "id": [task.id for task in tasks],
        "keys": [_digest(keys_of(task)) for task in tasks],
        "prompts": [*map(_digest, solved), *(_digest(_text(prompt)) for prompt in asked)],
        "verdicts": [_digest([said(verdict), verdict.status, verdict.shortcut]) for verdict in verdicts],
    }


def _golds(material: Material) -> list[tuple[Task, str]]:
    """Of these tasks alone: the other process has no others."""
    pairs = zip(material.tasks[:TASKS], material.answers[:TASKS], strict=True)
    return [(task, text) for task, text in pairs if text is not None]


def keys_of(task: Task) -> list[Any]:
    """All keys and figures that records keep of a task, as plain values."""
    complexity = task.complexity
    return [
        task.near_key, task.shape_key, task.body_key, sorted(task.part_keys), task.descriptor, task.guess_key,
        [complexity.depth, complexity.cyclomatic, complexity.lines, complexity.variables],
    ]  # fmt: skip


def _text(prompt: Prompt) -> Any:
    return [list(map(dict, prompt.messages)), dict(prompt.context)]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("ascii")).hexdigest()[:16]


async def elsewhere(name: str, tier: Tier, most: int, unfenced: bool = False) -> Found:
    """What other processes find of a family, with at most so many tasks of each kind."""
    words = (name, str(tier), str(min(most, TASKS)), *(["unfenced"] if unfenced else []))
    return await asyncio.gather(*(asyncio.to_thread(_other_process, words, seed) for seed in HASH_SEEDS))


def _other_process(words: Sequence[str], hash_seed: str) -> dict[str, Parts] | str:
    # The same modules by the same names: a family may be a package that only this process was shown.
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "redqueen.tasks.soundness.other_process", *words],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {_SECONDS} seconds"
    if ended.returncode:
        return next(reversed(ended.stderr.strip().splitlines()), f"it ended with status {ended.returncode}")
    return json.loads(ended.stdout.splitlines()[-1])


async def processes_agree(material: Material, verifier: Verifier, others: Found) -> Finding:
    """This process and the others have found the same of a kind."""
    own = await parts_of(material, verifier)
    count = len(own["id"])
    mend = "sort what comes from a set, and take no `hash`, `id`, clock or random number that is not handed in"
    for seed, other in zip(HASH_SEEDS, others, strict=True):
        if isinstance(other, str):
            what = f"another process, with hash seed {seed}, fails"
            return failed("fails elsewhere", what, example=other, mend="mend what it says")
        for part in _PARTS:
            pairs = enumerate(zip_longest(own[part], other[material.kind.name][part]))
            differing = [at for at, (here, there) in pairs if here != there]
            if differing:
                return failed(
                    f"{part} differ" if part != "id" else "ids differ",
                    f"another process, with hash seed {seed}, comes to other {part if part != 'id' else 'tasks'}",
                    example=_example(material, part, differing[0]),
                    mend=mend,
                )
    return ok(f"{count:,} tasks agree", {"tasks": count, "processes": 1 + len(others)})


def _example(material: Material, part: str, at: int) -> str:
    tasks = material.tasks[:TASKS]
    if part == "prompts" and at < len(tasks):
        message = material.kind.solve_prompt(tasks[at]).messages[-1]["content"]
        return f"{named(tasks[at])}: the prompt {excerpt(message)}"
    if part == "prompts":
        return f"the prompt for teachers number {at - len(tasks) + 1}"
    if part == "verdicts":
        golds = _golds(material)
        return f"{named(golds[at % len(golds)][0])}: the verdict on an answer"
    return named(tasks[at]) if at < len(tasks) else "a task that this process has not"
