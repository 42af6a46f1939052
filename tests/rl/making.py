"""Rollouts of which the reward alone matters, or the length too."""

from typing import Any

from redqueen.engine.protocol import Sample, SampleRequest, Stop
from redqueen.population.members import Role
from redqueen.rl.rollout import Rollout
from redqueen.tasks.verdicts import Grade, Verdict


def rewarded(
    role: str, kind: str, group: Any, reward: float, *, number: int = 0, length: int = 1, limit: int = 1
) -> Rollout:
    return Rollout(
        role=Role(role),
        member="m0",
        kind=kind,
        match=0,
        place=0,
        group=group,
        number=number,
        request=SampleRequest(prompt=(1,), member="m0", key=0, max_tokens=limit),
        sample=Sample((2,) * length, (-0.5,) * length, Stop.EOS, ""),
        became=Verdict(grade=Grade.WRONG),
        reward=reward,
    )
