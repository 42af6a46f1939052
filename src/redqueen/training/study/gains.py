"""What the students of each arm have on the bare base, and how sure that is over tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redqueen.evals.figures import Figures, Gain, Tally, figures, gain, scores


@dataclass(frozen=True, slots=True)
class ArmGain:
    """An arm's students beside the base, on some tasks."""

    tasks: int
    base: Figures
    arm: Figures
    gain: Gain


def gains(
    answers: Mapping[str, Sequence[Tally]], base: Tally, parts: Mapping[str, Sequence[int]]
) -> dict[str, dict[str, ArmGain]]:
    """By arm and part of the exam: the mean over all students of all of its races, and that less the base's, task by
    task."""
    base_N_F = scores(base)
    by_arm: dict[str, dict[str, ArmGain]] = {}
    for arm, students in answers.items():
        arm_N_F = scores(*students)
        by_arm[arm] = {
            part: ArmGain(
                len(at),
                figures(base_N_F[list(at)]),
                figures(arm_N_F[list(at)]),
                gain(arm_N_F[list(at)], base_N_F[list(at)]),
            )
            for part, at in parts.items()
        }
    return by_arm
