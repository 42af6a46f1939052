"""The tables of a study in Markdown: the arms side by side, their differences, and their gains over the base."""

import math
from collections.abc import Mapping, Sequence

from redqueen.analysis.compare import steps_text
from redqueen.analysis.intervals import Estimate, estimate
from redqueen.analysis.quarters import count_text, shown
from redqueen.analysis.resampling import Interval
from redqueen.population.members import Role
from redqueen.runs.metrics import COMPLEXITY, COMPUTE, COVERAGE, ENTROPY, RULER, SOLVE_RATE, VALID
from redqueen.training.arms import POPULATION
from redqueen.training.study.exam import MAIN_NAME, NO_SHORTCUT
from redqueen.training.study.outcomes import PER, ArmGain, RaceOutcome, arm_means, differences


def arms_table(outcomes: Sequence[RaceOutcome], base: Mapping[str, float], k: int) -> str:
    """The arms side by side, and what the population is ahead of each."""
    means, names = arm_means(outcomes), _table_figures(k)
    columns = [_column("bare base", {name: estimate([value]) for name, value in base.items()}, names)]
    for arm, figures in means.items():
        runs = [outcome for outcome in outcomes if outcome.arm == arm]
        short = sum(outcome.short for outcome in runs)
        unmatched = f", {short} of them not matched" if short else ""
        title = f"{arm} ({len(runs)} seed{'' if len(runs) == 1 else 's'}{unmatched})"
        rates = ", ".join(sorted({"-" if outcome.lr is None else f"{outcome.lr:g}" for outcome in runs}))
        steps = steps_text([outcome.steps for outcome in runs])
        columns.append(_column(title, figures, names) | {"learning rate": rates, "steps": steps})
    blocks = [_side_by_side(columns, ["learning rate", "steps", *names])]
    others = [arm for arm in means if arm != POPULATION]
    if POPULATION in means and others:
        main = _main_figures(k)
        less = [_column(f"{POPULATION} less {arm}", differences(outcomes, POPULATION, arm), main) for arm in others]
        blocks += [f"The {POPULATION} less each arm, seed by seed:", _side_by_side(less, main)]
    blocks.append(
        f"± is half of the 95 % interval over seeds (Student's t), not corrected for the number of comparisons. "
        f"A slope is what {PER} steps add, by least squares over all steps: between arms of different lengths compare "
        f"quarters. A learning rate is the highest that students had. Exam figures are means over a run's students at "
        f"the odd places of the exam, counted from 0; a sweep of learning rates has the even ones. All examinees have "
        f"the same tasks and random numbers: ± says nothing of other ones."
    )
    return "\n\n".join(blocks)


def gains_table(gains: Mapping[str, Mapping[str, ArmGain]], k: int) -> str:
    """A table for each arm, in %."""
    names = {"sampled": "sampled", "greedy": "greedy", "pass_at_k": f"pass@{k}"}
    blocks = []
    for arm, parts in gains.items():
        rows = [["exam", "tasks", *(t for name in names.values() for t in (f"base, {name}", arm, "less the base"))]]
        for part, beside in parts.items():
            row = [part, str(beside.tasks)]
            for name in names:
                base, ours = (100 * getattr(figures, name) for figures in (beside.base, beside.arm))
                row += [f"{base:.1f}", f"{ours:.1f}", _gain(getattr(beside.gain, name))]
            rows.append(row)
        blocks.append(_markdown(rows))
    rule = "[ ] is the 95 % interval by resampling tasks, the same ones for both sides: it says nothing of other seeds."
    return "\n\n".join([*blocks, f"In %; {rule}"])


def _main_figures(k: int) -> list[str]:
    exam = [f"exam {MAIN_NAME}, {name}" for name in ("sampled", "greedy", f"pass@{k}", "weakest", "soup")]
    exam.append(f"exam {NO_SHORTCUT}, sampled")
    late = [f"{title}, last quarter" for title in (VALID.title_of(Role.TEACHER), SOLVE_RATE.title)]
    slopes = [f"{metric.title}, {growth}" for growth in ("a slope", "last quarter less first") for metric in COMPLEXITY]
    ends = [f"{COVERAGE.title} at the end", f"{COVERAGE.title}, growth in the last quarter"]
    entropy = f"{ENTROPY.title_of(Role.STUDENT)}, last quarter"
    return [*exam, "exam 5, sampled", "exam pairs, sampled", *late, *slopes, *ends, entropy]


def _table_figures(k: int) -> list[str]:
    names = _main_figures(k)
    names.insert(names.index(f"{SOLVE_RATE.title}, last quarter"), f"{SOLVE_RATE.title}, first quarter")
    ruler = [f"{RULER.title}, {quarter} quarter" for quarter in ("first", "last")]
    return [*names, *ruler, *(metric.title for metric in COMPUTE)]


def _column(title: str, figures: Mapping[str, Estimate | None], names: Sequence[str]) -> dict[str, str]:
    return {"": title} | {name: _mean(figures[name]) for name in names if name in figures}


def _side_by_side(columns: Sequence[Mapping[str, str]], names: Sequence[str]) -> str:
    """A column for each mapping, with its title under ""; rows that no column has are left out."""
    known = [name for name in names if any(name in column for column in columns)]
    return _markdown([[name, *(column.get(name, "-") for column in columns)] for name in ("", *known)])


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    """Columns of figures are aligned right."""
    head, *body = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, [":--", *("--:" for _ in head[1:])], *body))


def _mean(figure: Estimate | None) -> str:
    if figure is not None and math.isfinite(figure.mean) and abs(figure.mean) >= 1000:
        mean = count_text(figure.mean)
        return mean if figure.half is None else f"{mean} ±{count_text(figure.half)}"
    return shown(figure)


def _gain(gain: Interval) -> str:
    if gain.low is None or gain.high is None:
        return f"{100 * gain.value:+.1f}"
    return f"{100 * gain.value:+.1f} [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]"
