"""The schema of metrics: a name is spelled once, and the documentation says of every metric what the schema says."""

import ast
from pathlib import Path

import pytest

import redqueen
from redqueen.population.members import Role
from redqueen.runs.metrics import COVERAGE, ENTROPY, LENGTH, METRICS, VALID, Metric

ROOT = Path(redqueen.__file__).parent
USAGE = ROOT.parents[1] / "docs" / "usage.md"
OTHER_MEANINGS = {
    "analysis/browse.py": {"lines", "solve_rate"},  # of one task
    "analysis/table_files.py": {"solve_rate"},
    "engine/protocol.py": {"length"},  # why a text ended
    "engine/trainer.py": {"lr"},  # an optimiser's
    "commands/study.py": {"flops"},  # what arms are matched on
    "evals/taskset.py": {"length"},  # why a text ended
    "evolution/variation/operator.py": {"sigma"},
    "loop.py": {"ruler"},  # a phase
    "phases/journal.py": {"behaviours"},  # of which program
    "phases/ruler.py": {"ruler"},  # what random numbers are for
    "phases/trial.py": {"trial"},
    "plugins.py": {"benchmark", "reward"},  # what plug-ins are called
    "settings/models.py": {"reward"},
    "tasks/guards.py": {"depth", "lines"},
    "tasks/sources/environments.py": {"reward"},  # another package's word
    "training/rules.py": {"depth", "lines"},
    "training/study/design.py": {"flops"},
    "training/study/sweep.py": {"lr"},
    "ui/page/views.py": {"lines", "solve_rate"},  # of one task, of one match
}
"""Texts that are spelled like a metric and mean something else, by file."""


def metric_like(text: str) -> set[str]:
    """The texts of a program that are spelled like metrics."""
    nodes = ast.walk(ast.parse(text))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and node.value in METRICS}


def test_no_file_but_the_schema_spells_the_name_of_a_metric():
    spelled = {
        path.relative_to(ROOT).as_posix(): names
        for path in ROOT.rglob("*.py")
        if "guest" not in path.parts and (names := metric_like(path.read_text(encoding="utf-8")))
    }
    assert spelled.pop("runs/metrics.py") == METRICS.keys()
    assert spelled == OTHER_MEANINGS


def test_a_name_that_somebody_spells_would_be_found():
    assert metric_like('series(store, "solve_rate", "race")') == {"solve_rate"}


def table() -> list[str]:
    """All metrics, in Markdown."""
    head = ["metric", "title", "unit", "of", "by kind", "what it says"]
    cells = [
        [f"`{each.name}`", each.title, each.unit, each.of, "yes" if each.by_kind else "", each.about]
        for each in METRICS.values()
    ]
    return [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in (head, ["---"] * len(head), *cells)]


def test_the_documentation_has_the_table_of_all_metrics():
    rows = [line for line in USAGE.read_text().splitlines() if line.startswith("|")]
    start = rows.index(table()[0])
    assert rows[start : start + len(table())] == table()


@pytest.mark.parametrize(
    ("metric", "role", "title"),
    [
        (ENTROPY, Role.TEACHER, "entropy of teachers"),
        (VALID, Role.TEACHER, "valid proposals"),
        (LENGTH, Role.STUDENT, "tokens of an attempt"),
    ],
)
def test_a_role_has_titles_of_its_own_where_words_differ(metric: Metric, role: Role, title: str):
    assert metric.title_of(role) == title


def test_a_share_is_at_most_one():
    assert VALID.most == 1
    assert COVERAGE.most > 1e9
