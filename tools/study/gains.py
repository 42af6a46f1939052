"""What the students of each arm have on the bare base, and how sure that is over tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redqueen.analysis.resampling import Interval
from redqueen.evals.figures import Figures, Gain, Tally, figures, gain, scores


@dataclass(frozen=True, slots=True)
class Beside:
    """An arm's students beside the base, on some tasks."""

    tasks: int
    base: Figures
    arm: Figures
    gain: Gain


def gains(
    answers: Mapping[str, Sequence[Tally]], base: Tally, parts: Mapping[str, Sequence[int]]
) -> dict[str, dict[str, Beside]]:
    """By arm and part of the exam: the mean over all students of all of its races, and that less the base's, task by
    task."""
    base_N_F = scores(base)
    found: dict[str, dict[str, Beside]] = {}
    for arm, given in answers.items():
        arm_N_F = scores(*given)
        found[arm] = {
            part: Beside(
                len(places),
                figures(base_N_F[list(places)]),
                figures(arm_N_F[list(places)]),
                gain(arm_N_F[list(places)], base_N_F[list(places)]),
            )
            for part, places in parts.items()
        }
    return found


def markdown(found: Mapping[str, Mapping[str, Beside]], attempts: int) -> str:
    """A table for each arm, in %."""
    blocks = []
    for arm, parts in found.items():
        names = ("sampled", "greedy", f"pass@{attempts}")
        titles = [title for name in names for title in (f"base, {name}", arm, "less the base")]
        rows = [["exam", "tasks", *titles], [":--", *("--:" for _ in ["", *titles])]]
        for part, each in parts.items():
            cells = [
                cell
                for name in ("sampled", "greedy", "pass_at_k")
                for cell in (_percent(each.base, name), _percent(each.arm, name), _cell(getattr(each.gain, name)))
            ]
            rows.append([part, str(each.tasks), *cells])
        blocks.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
    rule = "[ ] is the 95 % interval by resampling tasks, the same ones for both sides: it says nothing of other seeds."
    return "\n\n".join([*blocks, f"In %; {rule}"])


def _percent(found: Figures, name: str) -> str:
    return f"{100 * getattr(found, name):.1f}"


def _cell(found: Interval) -> str:
    if found.low is None or found.high is None:
        return f"{100 * found.value:+.1f}"
    return f"{100 * found.value:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"
