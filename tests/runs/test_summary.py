"""The summary of a finished run: its quarters, its members and its totals are those of the records."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from redqueen.analysis.quarters import Series, quarters
from redqueen.analysis.summary import MOST_MEMBERS, Summary, summarise, write_report
from redqueen.errors import RunError
from redqueen.population.members import Birth, Member, Population, Role, founders
from redqueen.population.ratings import Rating
from redqueen.runs import REPORT
from redqueen.runs.atomic import leftover
from redqueen.runs.rows import EventRow, MetricRow, StepRecord
from redqueen.runs.store import Store
from redqueen.settings import load
from runs.making import meeting, task

STEPS = 8
HOSTILE = "x|y`\x1b[2J<b>*[a](b)\n"


def step(number: int) -> StepRecord:
    """In the first quarter 1 of 10 attempts at code_o is solved, in the last 9 of 30; code_i always 10 of 10."""
    early, late = number <= 2, number > 6
    attempts = 30 if number == STEPS else 10
    solved = 1 if early else 9 if number == STEPS else 3 if late else 5

    figures: Mapping[tuple[str, str], float] = {
        ("teacher", "valid"): 0.5 if early else 0.75, ("student", "length"): 20.0 + number,
        ("race", "depth"): 4.0, ("race", "cyclomatic"): number, ("race", "lines"): float("nan"),
        ("race", "coverage"): 10 * number, ("race", "new_cells"): 10,
        ("race", "sampled_tokens"): 1000, ("race", "trained_tokens"): 500, ("race", "verifier_runs"): 7,
        ("race", "flops"): 3e12,
        ("t0", "sampled_tokens"): 400, ("s0", "sampled_tokens"): 600,
        ("s0", "reward"): 0.25 if late else -1.0, ("s0", "valid"): 1.0, ("s0", "solve_rate"): 0.5 if late else 0.0,
    }  # fmt: skip
    event = EventRow(
        step=number,
        role="student",
        seat="s1",
        dead="s1",
        child="s1.1",
        operator="slerp",
        parents=("s0", "s1"),
        seed="1",
    )
    return StepRecord(
        step=number,
        matches=[
            meeting(number, tasks=3, solved=solved, attempts=attempts),
            meeting(number, "code_i", tasks=3, solved=10, attempts=10),
        ],
        tasks=[task(number, place, solved=place, attempts=8) for place in range(3)],
        events=[event] if number == 4 else [],
        metrics=[
            MetricRow(step=number, subject=subject, kind="", name=name, value=value)
            for (subject, name), value in figures.items()
        ],
        timings={"solve": 2.0, "update": 1.0, "record": 0.25, "match": 0.01},
    )


def population(operator: str = "slerp") -> Population:
    """Two teachers and two students, one of which has a child of a child."""
    began = founders(2, 2).rated({"s0": Rating(31.0, 2.0), "t1": Rating(27.0, 3.0)})
    child = Member(
        id="s1.1", role=Role.STUDENT, seat="s1", rating=Rating(25.0, 8.0), birth=Birth(4, operator, ("s0", "s1"))
    )
    grandchild = Member(
        id="s1.2", role=Role.STUDENT, seat="s1", rating=Rating(24.0, 8.0), birth=Birth(8, operator, ("s1.1",))
    )
    return began.replaced("s1", child, 4).replaced("s1.1", grandchild, 8)


def made(
    folder: Path, records: Sequence[StepRecord], members: Population, facts: Mapping[str, str] | None = None
) -> Summary:
    folder.mkdir()
    with Store.create(folder) as store:
        store.set_facts(facts or {"isolation": "full"})
        for each in records:
            store.write(each)
        return summarise(store, load(None, [("tasks.kinds", "code_o,code_i"), ("run.steps", "8")]), members)


@pytest.fixture
def summary(tmp_path: Path) -> Summary:
    return made(tmp_path / "run", [step(number) for number in range(1, STEPS + 1)], population())


@given(st.integers(1, 10_000))
def test_quarters_are_equally_long_at_either_end_and_share_no_step_where_there_are_two(steps: int):
    first, last = quarters(steps)
    assert (first[0], last[-1], len(first)) == (1, steps, len(last))
    assert len(first) == max(1, steps // 4)
    assert steps == 1 or first[-1] < last[0]


@given(st.integers(2, 8).flatmap(lambda long: st.lists(st.integers(0, 9), min_size=5 * long, max_size=5 * long)))
def test_the_blocks_of_a_quarter_are_all_of_it(values: list[int]):
    whole = Series({step: (value, 1) for step, value in enumerate(values, 1)})
    found = whole.over(range(1, len(values) + 1))
    assert found is not None and len(found.blocks) == 5
    assert found.value == pytest.approx(fmean(values)) == pytest.approx(fmean(found.blocks))
    short = whole.over(range(1, 10))
    assert short is not None and not short.blocks


def test_the_quarters_are_those_of_the_records(summary: Summary):
    assert summary.quarters.head == ("", "steps 1-2", "steps 7-8")
    assert {name: cells for name, *cells in summary.quarters.rows} == {
        # All attempts of a quarter count alike: 3 of 10 and 9 of 30, not the mean of two steps.
        "solve rate code_o": ["0.100", "0.300"],
        "solve rate code_i": ["1.000", "1.000"],
        "solve rate, all kinds": ["0.550", "0.533"],
        "valid proposals": ["0.500", "0.750"],
        "depth": ["4.000", "4.000"],
        "cyclomatic": ["1.500", "7.500"],
        "lines": ["-", "-"],
        "variables": ["-", "-"],
        "tokens of an attempt": ["21.5", "27.5"],
        "structural cells, by then": ["20", "80"],
        "structural cells, new": ["20", "20"],
    }
    assert summary.note.startswith("one seed: too few steps for an interval; tasks are the teachers' own")


def test_members_come_with_rating_last_quarter_and_descent_the_best_of_each_role_first(summary: Summary):
    assert summary.members.rows == (
        ("t1", "teacher", "27.0 ±3.0", "-", "-", "-", "founder"),
        ("t0", "teacher", "25.0 ±8.3", "-", "-", "-", "founder"),
        ("s0", "student", "31.0 ±2.0", "0.25", "1.00", "0.50", "founder"),
        ("s1.2", "student", "24.0 ±8.0", "-", "-", "-", "slerp of s1.1; generation 2, step 8"),
    )


def test_the_totals_are_one_line(summary: Summary):
    assert summary.totals == (
        "8 steps, 1 replacement, 24 tasks, 8,000 sampled tokens, 4,000 trained tokens, 56 verifier runs, "
        "2.4e+13 floating-point operations; "
        "26 s (solve 16 s, update 8 s, record 2 s)"
    )


def test_those_who_never_learnt_anything_are_named(tmp_path: Path):
    def updated(number: int) -> StepRecord:
        values = {"t0": 0.0, "s0": float(number == 3), "s1": 0.0}
        rows = [
            MetricRow(step=number, subject=subject, kind="", name="updated", value=value)
            for subject, value in values.items()
        ]
        return StepRecord(step=number, metrics=rows)

    said = made(tmp_path / "run", [updated(number) for number in (1, 2, 3)], founders(1, 2)).totals
    assert said.endswith("; never updated: s1, t0")


def test_the_hardest_task_is_the_newest_of_the_hardest_that_somebody_solved(summary: Summary):
    assert summary.hardest is not None
    assert (summary.hardest.step, summary.hardest.place, summary.hardest.solved) == (8, 1, 1)


def test_compute_is_by_adapter_and_the_race_comes_last(summary: Summary):
    own = ("t0", "3,200", *"-----"), ("s0", "4,800", *"-----")
    assert summary.usage.rows == (*own, ("race", "8,000", "-", "4,000", "-", "56", "2.4e+13"))


def test_a_race_without_tasks_or_figures_has_a_summary(tmp_path: Path):
    bare = made(tmp_path / "bare", [StepRecord(step=1)], founders(1, 1))
    assert bare.hardest is None
    assert {cell for _, *cells in bare.quarters.rows for cell in cells} == {"-"}
    assert bare.totals.startswith("1 step, 0 replacements, 0 tasks; ")


def test_enough_steps_have_intervals_that_are_marked(tmp_path: Path):
    long = made(tmp_path / "long", [replace(step(8), step=number, matches=[
        replace(each, step=number) for each in step(8).matches], tasks=[], metrics=[], events=[])
        for number in range(1, 41)], population())  # fmt: skip
    assert long.quarters.rows[0] == ("solve rate code_o", "0.300 ~0.000", "0.300 ~0.000")
    assert "~ is over blocks of steps" in long.note


@pytest.mark.parametrize("width", [40, 80, 100])
def test_no_table_is_wider_than_asked(summary: Summary, width: int):
    tables = [line for line in summary.lines(width) if line not in (summary.totals, summary.note)]
    assert max(map(cell_len, tables)) <= width


def test_a_terminal_gets_the_best_of_a_large_population_and_the_report_all(tmp_path: Path):
    many = made(tmp_path / "many", [step(1)], founders(MOST_MEMBERS + 3, MOST_MEMBERS))
    shown = [line for line in many.lines(100) if re.match(r"[ts]\d", line)]
    assert [line[0] for line in shown] == ["t"] * MOST_MEMBERS + ["s"] * MOST_MEMBERS
    assert f"3 more in {REPORT}" in many.lines(100)
    assert len(re.findall(r"^\| [ts]\d+ \| (?:teacher|student)", many.markdown("many"), re.M)) == 2 * MOST_MEMBERS + 3


def test_the_report_has_the_tables_the_environment_and_the_settings(summary: Summary, tmp_path: Path):
    path = write_report(tmp_path / "run", summary)
    text = path.read_text()
    assert text.startswith("# run\n")
    assert "| solve rate code_o | 0.100 | 0.300 |" in text
    assert "| s1.2 | student | 24.0 ±8.0 | - | - | - | slerp of s1.1; generation 2, step 8 |" in text
    assert (
        "| isolation | full |" in text and "| race | 8,000 | - | 4,000 | - | 56 |" in text and "| match | 0.1 |" in text
    )
    assert load(_settings_of(text, tmp_path)).tasks.kinds == ("code_o", "code_i")
    assert summary.totals in text


def _settings_of(text: str, place: Path) -> str:
    path = place / "again.toml"
    path.write_text(text.partition("```toml\n")[2].partition("```")[0])
    return str(path)


def test_names_from_outside_act_neither_on_a_terminal_nor_on_the_report(tmp_path: Path):
    hostile = made(tmp_path / "run", [step(1)], population(HOSTILE), {HOSTILE: HOSTILE})
    text, lines = hostile.markdown(HOSTILE), hostile.lines(100)
    assert "\x1b" not in text + "".join(lines)
    assert r"x\|y\`\\x1b\[2J\<b>\*\[a\](b)\\n" in text
    [row] = [line for line in text.splitlines() if line.startswith("| s1.2")]
    assert len(re.findall(r"(?<!\\)\|", row)) == 8, "a cell has ended early"


def test_a_report_that_cannot_be_written_is_one_line_and_leaves_nothing(summary: Summary, tmp_path: Path):
    (tmp_path / "run" / REPORT / "inside").mkdir(parents=True)
    with pytest.raises(RunError, match="the run is whole") as caught:
        write_report(tmp_path / "run", summary)
    assert "\n" not in str(caught.value)
    assert not [each for each in (tmp_path / "run").iterdir() if leftover(each.name)]
