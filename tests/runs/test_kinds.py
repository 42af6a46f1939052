"""Figures by kind: what becomes of each kind's proposals and tasks, from the records alone."""

from pathlib import Path

from redqueen.analysis.compare import measure
from redqueen.analysis.kinds import by_kind
from redqueen.analysis.summary import summarise
from redqueen.population.members import founders
from redqueen.runs.atomic import write_text
from redqueen.runs.rows import MetricRow, StepRecord
from redqueen.runs.store import Store
from redqueen.settings import dump, load
from redqueen.ui.page.views import run_view
from runs.making import meeting, rejection, task

KINDS = ("code_o", "logic_s")


def step(number: int) -> StepRecord:
    """Three programs, of which one is refused; two puzzles are refused for every one that is none."""
    figures = {"coverage": {"code_o": 3 + number, "logic_s": 1}, "guess_rate": {"code_o": number / 10}}
    return StepRecord(
        step=number,
        matches=[meeting(number, solved=2, attempts=8), meeting(number, "logic_s", solved=1, attempts=4)],
        tasks=[task(number, 0, kind="code_o"), task(number, 1, kind="code_o"), task(number, 2, kind="logic_s")],
        rejections=[
            rejection(number, 3, kind="code_o", reason="syntax"),
            rejection(number, 4, kind="logic_s", reason="guessable"),
            rejection(number, 5, kind="logic_s", reason="guessable"),
            rejection(number, 6, kind="logic_s", reason="joined"),
        ],
        metrics=[
            MetricRow(step=number, subject="race", kind=kind, name=name, value=value)
            for name, values in figures.items()
            for kind, value in values.items()
        ],
        timeline={"ms": 900, "proposals": [], "attempts": [], "others": [], "checks": {"logic_s": [30, 100 * number]}},
    )


def recorded(folder: Path, steps: int = 4) -> Path:
    folder.mkdir()
    with Store.create(folder) as store:
        for number in range(1, steps + 1):
            store.write(step(number))
    write_text(
        folder / "config.toml", dump(load(None, [("tasks.families", "code,logic"), ("tasks.kinds", ",".join(KINDS))]))
    )
    return folder


def test_every_kind_has_its_own_figures_from_a_step_on(tmp_path):
    with Store.read(recorded(tmp_path / "run")) as store:
        code, logic = by_kind(store, KINDS, 3)
    assert (code.proposals, code.valid, code.solve_rate) == (6, 2 / 3, 1 / 4)
    assert (code.guess_rate, code.cells, code.checks_a_second) == (0.35, 7, None)
    assert code.rejected == (("syntax", 1 / 3),)
    assert (logic.proposals, logic.valid, logic.solve_rate) == (8, 1 / 4, 1 / 4)
    assert (logic.guess_rate, logic.cells) == (None, 1)
    assert logic.rejected == (("guessable", 1 / 2), ("joined", 1 / 4))
    assert logic.checks_a_second == 60 / 0.7


def test_a_kind_of_which_nothing_was_asked_has_no_figures(tmp_path):
    with Store.read(recorded(tmp_path / "run")) as store:
        [nothing] = by_kind(store, ("code_f",), 1)
    assert (nothing.proposals, nothing.rejected) == (0, ())
    known = (nothing.valid, nothing.solve_rate, nothing.guess_rate, nothing.cells, nothing.checks_a_second)
    assert set(known) == {None}


def test_terminal_report_comparison_and_page_show_them(tmp_path):
    folder = recorded(tmp_path / "run")
    with Store.read(folder) as store:
        summary = summarise(store, load(str(folder / "config.toml")), founders(1, 1))
    shown = [" ".join(line.split()) for line in summary.lines(120)]
    assert "logic_s 4 0.25 0.25 - 1 75 guessable 50%, joined 25%" in shown
    assert "| logic\\_s | 4 | 0.25 |" in summary.markdown("run") or "| logic_s | 4 | 0.25 |" in summary.markdown("run")
    figures = measure(folder).figures
    assert figures["valid proposals logic_s"].value == 0.25
    assert figures["coverage code_o"].value == 7 and figures["guess rate code_o"].value == 0.4
    assert figures["checks a second logic_s"].value == 75
    [_, logic] = run_view(folder)["by_kind"]
    assert (logic["kind"], logic["proposals"], logic["rejected"][0]) == ("logic_s", 4, ("guessable", 0.5))
