"""The page and the report in a real browser: what is drawn, what can be done, what cannot happen."""

import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser import Watched, open_page
from look import watching
from playwright.sync_api import Browser, expect
from runs.making import lost, workers
from synthetic import make, records

from redqueen.analysis.kinds import by_kind
from redqueen.analysis.quarters import quarters
from redqueen.analysis.summary import summarise
from redqueen.commands.main import main
from redqueen.runs import FORKED_FROM, benchmarks, exams
from redqueen.runs.benchmarks import Result
from redqueen.runs.exams import TITLES, ExamResult
from redqueen.runs.lock import take
from redqueen.runs.metrics import COMPLEXITY, MU, REWARD
from redqueen.runs.records_file import RECORDS
from redqueen.runs.store import Store
from redqueen.settings import load_run
from redqueen.tasks.families import Families
from redqueen.ui.live import MEMBER_HEADS
from redqueen.ui.page import people, views
from report.conftest import HOW, MEMBERS, STEPS, TASKS

pytestmark = pytest.mark.usefixtures("browser")
CHARTS = {
    "ratings-teachers": MEMBERS // 2,
    "ratings-students": MEMBERS // 2,
    "solve-rate": 5,
    "ruler": 4,
    "copies": 3,
    "complexity": 4,
    "coverage": 1,
    "behaviours": 1,
    "reward": 2,
    "valid": 2,
    "entropy": 2,
    "length": 2,
    "speed": 1,
    "phases": 7,
}
"""How many lines each has."""


@contextmanager
def page_of(browser: Browser, *runs: Path, **how: object) -> Iterator[Watched]:
    """A live page, which must neither complain nor ask anybody else."""
    with watching(list(runs)) as (url, _):
        watched = open_page(browser, url, **how).ready()  # pyright: ignore[reportArgumentType]
        yield watched
        assert watched.complaints == []
        assert {urlsplit(each).netloc for each in watched.asked} == {urlsplit(url).netloc}
        watched.page.context.close()


@contextmanager
def report_of(browser: Browser, file: Path, *runs: Path, **how: object) -> Iterator[Watched]:
    """A report, which must ask nobody."""
    assert main(["report", *map(str, runs), "-o", str(file)]) == 0
    watched = open_page(browser, file.as_uri(), **how).ready()  # pyright: ignore[reportArgumentType]
    yield watched
    assert watched.complaints == []
    assert {each.partition("#")[0] for each in watched.asked} == {file.as_uri()}
    watched.page.context.close()


@pytest.fixture(scope="module")
def live(browser, recorded) -> Iterator[Watched]:
    with page_of(browser, recorded) as watched:
        yield watched


@pytest.fixture(scope="module")
def report(browser, recorded, tmp_path_factory) -> Iterator[Watched]:
    with report_of(browser, tmp_path_factory.mktemp("report") / "report.html", recorded) as watched:
        yield watched


@pytest.fixture(params=["live", "report"])
def either(request) -> Watched:
    return request.getfixturevalue(request.param)


def drawn(watched: Watched, chart: str) -> list[dict[str, list[float | None]]]:
    """The lines of a chart, without the edges of bands."""
    return watched.page.evaluate(
        f"document.querySelector('#chart-{chart} .plot').data.filter((trace) => !trace.fill)"
        ".map((trace) => ({name: trace.name, y: [...trace.y]}))"
    )


def places(watched: Watched) -> list[str]:
    return watched.page.locator("#task-table tbody tr td:first-child").all_inner_texts()


def filtered(watched: Watched, choices: dict[str, str]) -> list[list[str]]:
    """The rows that fit, after these choices alone."""
    page = watched.page
    page.locator("#filters button[type=reset]").click()
    for name, value in choices.items():
        field = page.locator(f"#filters [name={name}]")
        if field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
            field.blur()
    page.evaluate("() => new Promise((done) => setTimeout(done))")  # a form that is cleared says so a moment later
    watched.until("document.getElementById('task-region').getAttribute('aria-busy') === 'false'")
    rows = page.locator("#task-table tbody tr").all()
    return [row.locator("td").all_inner_texts() for row in rows]


def test_every_chart_has_its_points(either, recorded):
    either.draw_all()
    for chart, lines in CHARTS.items():
        found = drawn(either, chart)
        assert len(found) == lines, chart
        for line in found:
            # A seat that changed hands has a gap there.
            assert len(line["y"]) - line["y"].count(None) == STEPS, (chart, line["name"])
    with Store.read(recorded) as store:
        for metric in COMPLEXITY:
            expected = [each.value for each in store.metrics(metric, "race", "")]
            [line] = [each for each in drawn(either, "complexity") if each["name"] == metric.title]
            assert line["y"] == pytest.approx(expected, rel=1e-4)
        expected = [each.value for each in store.metrics(MU, "s0", "")]
        [line] = [each for each in drawn(either, "ratings-students") if each["name"] == "s0"]
        assert line["y"][: len(expected)] == pytest.approx(expected, rel=1e-4)
    bands = either.page.evaluate("document.querySelectorAll('#chart-ratings-teachers .plot path.band').length")
    assert bands == MEMBERS // 2


def test_where_the_seconds_of_the_newest_step_go_is_drawn(either, recorded):
    either.draw_all()
    timeline = views.run_view(recorded)["timeline"]
    proposals, attempts = drawn(either, "timeline")
    assert (proposals["name"], proposals["y"]) == ("proposals", timeline["proposals"])
    assert (attempts["name"], attempts["y"]) == ("attempts", timeline["attempts"])
    chart = either.page.locator("#chart-timeline")
    behind = chart.locator(".inner > rect:not(.chosen)").evaluate_all(
        "all => all.map((each) => [Number(each.getAttribute('x')), Number(each.getAttribute('width'))])"
    )
    width = sum(behind[-1])
    expected = [(0, 0.1), (2.05, 2.2), (2.2, 2.25), (2.25, 3.1)]
    assert behind == [pytest.approx([width * a / 3.1, width * (b - a) / 3.1], abs=0.5) for a, b in expected]
    names = chart.locator(".legend").inner_text().split()
    assert names == ["proposals", "attempts", "evolve", "verify", "grade", "update"]
    assert f"Step {STEPS}, 3.10 s: up to 2" in chart.locator("small").inner_text()
    assert "update 0.85 s" in chart.locator(".plot").get_attribute("aria-label")
    chart.locator("summary").click()
    chart.locator("tbody tr").first.wait_for()
    assert chart.locator("tbody tr").count() == len(timeline["proposals"])
    assert chart.locator("thead th").all_inner_texts() == ["second", "proposals", "attempts"]
    chart.locator("summary").click()


def test_lines_are_where_the_axes_say(either, recorded):
    """By the labels of the grid, each point of a line is at its step and its value."""
    either.draw_all()
    axes = """([part, anchor]) => [...document.querySelectorAll(
            `#chart-ratings-students .axes text[text-anchor=${anchor}]`)]
        .filter((text) => !isNaN(Number(text.textContent)))
        .map((text) => [Number(text.textContent), Number(text.getAttribute(part)) - (part === 'y' ? 3.5 : 0)])"""
    (x0, left), *_, (x1, right) = either.page.evaluate(axes, ["x", "middle"])
    (y0, low), *_, (y1, high) = either.page.evaluate(axes, ["y", "end"])
    line = either.page.locator("#chart-ratings-students .line[data-name=s0]")
    edge = line.evaluate(
        "line => [Number(line.parentNode.getAttribute('x')), Number(line.parentNode.getAttribute('y'))]"
    )
    points = [[float(each) for each in pair.split()] for pair in re.split("[ML]", line.get_attribute("d"))[1:]]
    with Store.read(recorded) as store:
        expected = [(each.step, each.value) for each in store.metrics(MU, "s0", "")]
    assert len(points) == len(expected) == STEPS
    for (x, y), (step, value) in zip(points, expected, strict=True):
        assert x + edge[0] == pytest.approx(left + (step - x0) * (right - left) / (x1 - x0), abs=0.2)
        assert y + edge[1] == pytest.approx(low + (value - y0) * (high - low) / (y1 - y0), abs=0.2)


def test_the_pointer_reads_values_and_chooses_a_part_and_names_leave_lines_out(either):
    either.draw_all()
    chart = either.page.locator("#chart-solve-rate")
    chart.scroll_into_view_if_needed()
    box = chart.locator(".drawing").bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    either.page.mouse.move(box["x"] + box["width"] - 14, middle)
    tip = chart.locator(".tip")
    expect(tip).to_contain_text(f"step {STEPS}")
    assert [each.split()[0] for each in tip.inner_text().splitlines()[1:4]] == ["code_o", "code_i", "code_f"]
    either.page.mouse.move(box["x"] + box["width"] * 0.4, middle)
    either.page.mouse.down()
    either.page.mouse.move(box["x"] + box["width"] * 0.7, middle)
    either.page.mouse.up()
    steps = (
        "each => [...each.querySelectorAll('.axes text[text-anchor=middle]')].map((text) => Number(text.textContent))"
    )
    chosen = [each for each in chart.evaluate(steps) if each == each]
    assert chosen and min(chosen) > 1 and max(chosen) < STEPS
    chart.get_by_role("button", name="whole range").click()
    expect(chart.locator(".whole")).to_have_count(0)
    lines = chart.locator(".line")
    known = lines.count()
    chart.get_by_role("button", name="code_i", exact=True).click()
    expect(lines).to_have_count(known - 1)
    chart.get_by_role("button", name="code_i", exact=True).click()
    expect(lines).to_have_count(known)


def test_a_chart_is_there_as_a_table_too(either):
    chart = either.page.locator("#chart-solve-rate")
    chart.locator("summary").click()
    # The table is made when the browser says that it is open, a moment after the click.
    chart.locator("tbody tr").first.wait_for()
    assert chart.locator("tbody tr").count() == STEPS
    assert chart.locator("thead th").all_inner_texts() == [
        "step", "code_o", "code_i", "code_f", "all kinds", "bare base, all kinds",
    ]  # fmt: skip
    chart.locator("summary").click()


def test_kinds_of_task_stand_side_by_side_with_what_became_of_their_proposals(either, recorded):
    with Store.read(recorded) as store:
        expected = by_kind(store, ("code_o", "code_i", "code_f"), quarters(STEPS)[1][0])
    rows = either.page.locator("#kind-table tbody tr")
    shown = [row.locator("th, td").all_inner_texts() for row in rows.all()]
    titles = {name: kind.title for name, kind in Families.of(["code"]).kinds.items()}
    assert [row[:4] for row in shown] == [
        [each.kind, titles[each.kind], f"{each.proposals:,}", f"{each.valid:.2f}"] for each in expected
    ]
    assert [row[4] for row in shown] == [f"{each.solve_rate:.2f}" for each in expected]
    reasons = [[part.rsplit(" ", 2)[0] for part in row[-1].split(", ")] for row in shown]
    assert reasons == [[why for why, _ in each.rejected] or ["-"] for each in expected]
    assert any(each.rejected for each in expected)


def test_smoothing_is_over_steps_before(either):
    either.page.evaluate("document.querySelector('#charts').scrollIntoView()")
    raw = drawn(either, "reward")[0]["y"]
    either.page.select_option("#smooth", "5")
    either.page.evaluate("RQ.redraw(true)")
    smooth = drawn(either, "reward")[0]["y"]
    either.page.select_option("#smooth", "1")
    assert smooth[0] == raw[0]
    assert smooth[-1] == pytest.approx(sum(raw[-5:]) / 5)


def test_members_and_matches_say_what_the_records_say(either, recorded):
    heads = either.page.locator("#member-table thead th").all_inner_texts()
    assert heads == [*MEMBER_HEADS, "from"]
    assert either.page.locator("#member-table tbody tr").count() == MEMBERS
    either.page.check("#dead")
    assert either.page.locator("#member-table tbody tr").count() == MEMBERS + 1
    either.page.uncheck("#dead")
    with Store.read(recorded) as store:
        (teacher, student), tally = next(iter(store.tallies(1, STEPS).items()))
    cell = either.page.locator(f"#matrix td[aria-label^='{teacher} against {student}:']")
    wins = f"{tally.teacher_wins}-{tally.draws}-{tally.student_wins}"
    assert cell.inner_text().split() == [f"{tally.solve_rate:.2f}", wins]


def test_members_are_in_the_terminals_order_with_its_figures(either, recorded):
    with Store.read(recorded) as store:
        there = people.population(store, list(store.events()), STEPS)
        rows = summarise(store, load_run(recorded / "config.toml"), there).members.rows
    shown = [row.locator("td").all_inner_texts() for row in either.page.locator("#member-table tbody tr").all()]
    names = [[row[0].split()[0], row[1], row[2].removesuffix("prior").strip(), *row[3:6]] for row in shown]
    assert names == [list(row[:6]) for row in rows]


def test_a_member_without_a_match_is_said_to_have_its_first_rating(browser, recorded, tmp_path):
    shutil.copytree(recorded, run := tmp_path / "run")
    with closing(sqlite3.connect(run / RECORDS)) as db, db:
        db.execute("DELETE FROM matches WHERE student = 's1'")
    with Store.open(run) as store:
        store.mark_saved(STEPS)
    with page_of(browser, run) as watched:
        row = watched.page.locator("#member-table tbody tr").filter(has=watched.page.get_by_text("s1", exact=True))
        expect(row).to_contain_text("prior")
        notes = watched.page.locator("#member-notes")
        expect(notes).to_contain_text("has played no match yet")
        best = [each["id"] for each in views.run_view(run)["best"]]
        tagged = watched.page.locator("#member-table tr", has=watched.page.locator(".best"))
        assert sorted(row.locator("button").first.inner_text() for row in tagged.all()) == sorted(best)
        expect(notes).to_contain_text(f"{best[1]} is the best student by its rating")


def test_a_stopped_run_looks_stopped_and_a_running_one_does_not(browser, recorded, tmp_path):
    shutil.copytree(recorded, run := tmp_path / "run")
    with page_of(browser, run) as watched:
        state = watched.page.locator("#status .state")
        expect(state).to_have_class("state stopped")
        expect(state).to_contain_text("stopped at 92 %")
        lock = take(run)
        try:
            expect(state).to_have_class("state running")
        finally:
            os.close(lock)
        expect(state).to_have_class("state stopped")


def test_a_fork_is_marked(browser, recorded, tmp_path):
    shutil.copytree(recorded, run := tmp_path / "run")
    with Store.open(run) as store:
        store.set_facts({FORKED_FROM: "/runs/first, step 5"})
    with page_of(browser, run) as watched:
        expect(watched.page.locator("#totals")).to_contain_text("fork of /runs/first")
        watched.draw_all()
        expect(watched.page.locator("#chart-solve-rate text.mark")).to_have_text("fork")
        expect(watched.page.locator("#chart-timeline text.mark")).to_have_count(0)


def test_the_solve_rate_says_why_it_may_fall_and_the_exam_stands_beside_it(browser, recorded, tmp_path):
    shutil.copytree(recorded, run := tmp_path / "run")
    with page_of(browser, run) as watched:
        note = watched.page.locator("#chart-solve-rate small")
        expect(note).to_contain_text("a falling line does not show that students got worse")
        expect(note).to_contain_text("No exam was held")
        expect(note).to_contain_text("code_o, predict a program's output")
    figures = dict.fromkeys(TITLES, 0.3)
    about = {"exam": "own", "sha256": "1", "how": HOW, "step": 2, "tasks": 9, "figures": figures}
    exams.keep(run, [ExamResult(subject=subject, **about) for subject in ("student", "base")])
    with page_of(browser, run) as watched:
        first = watched.page.locator("#charts figure").evaluate_all("all => all.slice(0, 3).map((each) => each.id)")
        assert first == ["chart-exam", "chart-solve-rate", "chart-ruler"]
        expect(watched.page.locator("#chart-solve-rate small")).to_contain_text("The exam asks the same tasks")


def test_tables_can_be_sorted_up_and_down_and_back(either):
    table = either.page.locator("#member-table")
    column = table.locator("tbody tr td:nth-child(4)")
    known = column.all_inner_texts()
    head = table.get_by_role("button", name="reward", exact=True)
    head.click()
    assert column.all_inner_texts() == sorted(known, key=float, reverse=True)
    assert table.locator("th[aria-sort=descending]").inner_text() == "reward"
    head.click()
    assert column.all_inner_texts() == sorted(known, key=float)
    head.click()
    assert column.all_inner_texts() == known
    assert table.locator("th[aria-sort]").count() == 0


def test_an_address_names_what_is_looked_at_and_reads_the_same_again(either):
    page = either.page
    place = places(either)[0]
    page.get_by_role("button", name=place, exact=True).click()
    expect(page.locator("#detail")).to_be_visible()
    assert page.url.endswith(f"#task={place}")
    title = page.locator("#detail-title").inner_text()
    page.reload()
    expect(page.locator("#detail-title")).to_have_text(title)
    page.keyboard.press("Escape")
    expect(page.locator("#detail")).not_to_be_visible()
    assert "#task" not in page.url
    page.locator("#member-table").get_by_role("button", name="t2", exact=True).click()
    assert page.url.endswith("#member=t2")
    page.go_back()
    expect(page.locator("#detail")).not_to_be_visible()
    page.go_forward()
    expect(page.locator("#detail-title")).to_have_text("t2, teacher")
    page.keyboard.press("Escape")
    rows = filtered(either, {"kind": "code_i", "text": "gcd"})
    assert rows and page.url.endswith("#tasks&kind=code_i&text=gcd")
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert places(either) == [row[0] for row in rows]
    assert page.evaluate("document.getElementById('tasks').getBoundingClientRect().top < innerHeight")
    filtered(either, {})


def test_the_lineage_has_every_replacement(either, recorded):
    with Store.read(recorded) as store:
        [event] = store.events()
    tree = either.page.locator("#tree")
    tree.locator("summary").click()
    assert tree.locator("tbody tr td").all_inner_texts() == [
        str(event.step), event.child, event.operator, ", ".join(event.parents), event.dead,
    ]  # fmt: skip
    tree.locator("summary").click()


def test_the_lineage_goes_by_ancestry_and_names_parents(either, recorded):
    either.draw_all()
    with Store.read(recorded) as store:
        [event] = store.events()
    names = either.page.locator("#tree text.name").all_text_contents()
    assert f"{event.child} {event.operator} of {', '.join(event.parents)}" in names
    rows = [name.split()[0] for name in names]
    assert rows.index(event.child) == rows.index(event.parents[0]) + 1, "a child is under its better parent"
    expect(either.page.locator("#tree path.kin")).to_have_count(len(event.parents))
    assert event.dead in rows
    either.page.uncheck("#extinct")
    either.draw_all()
    assert event.dead not in [name.split()[0] for name in either.page.locator("#tree text.name").all_text_contents()]
    either.page.check("#extinct")


def test_the_lineage_says_when_members_were_averaged(either, recorded):
    assert views.run_view(recorded)["pulls"] == [10]
    assert "upright: all move to the mean" in either.page.locator("#tree").inner_text()
    expect(either.page.locator("#tree line.mark")).to_have_count(1)


def test_the_filters_of_the_live_page_are_those_of_the_records(live, recorded):
    with Store.read(recorded) as store:
        for choices, expected in [
            ({"kind": "code_i", "until": "2"}, store.tasks(kind="code_i", until=2)),
            ({"teacher": "t1", "since": "11"}, store.tasks(teacher="t1", since=11)),
            ({"min_rate": "0.75", "since": "12"}, store.tasks(min_rate=0.75, since=12)),
            ({"max_rate": "0", "since": "9"}, store.tasks(max_rate=0, since=9)),
            ({"text": "GCD", "since": "11"}, store.tasks(text="gcd", since=11)),
            ({"rejected": "1", "reason": "syntax"}, store.rejections(reason="syntax")),
        ]:
            found = [row[0] for row in filtered(live, choices)]
            assert found == [f"{row.step}:{row.place}" for row in expected][::-1], choices
            assert found
    assert filtered(live, {"since": "99"}) == []
    assert live.page.locator("#task-count").inner_text() == "nothing fits these filters"
    filtered(live, {})


def test_every_task_can_be_reached(live):
    filtered(live, {})
    while live.page.locator("#more").is_visible():
        known = len(places(live))
        live.page.click("#more")
        expect(live.page.locator("#task-table tbody tr")).not_to_have_count(known)
    assert len(set(places(live))) == TASKS
    filtered(live, {})


def test_the_filters_of_a_report_are_of_what_it_brings(report):
    assert "of 300 tasks" in report.page.locator("#tasks-note").inner_text()
    rows = filtered(report, {"kind": "code_f", "teacher": "t2"})
    assert rows and {(row[1], row[2]) for row in rows} == {("code_f", "t2")}
    assert all("gcd" in row[5] for row in filtered(report, {"text": "gcd"}))
    rows = filtered(report, {"min_rate": "0.9", "rejected": "1", "reason": "duplicate"})
    assert rows and {row[3] for row in rows} == {"duplicate"}
    filtered(report, {})


@pytest.mark.parametrize(
    ("reason", "ran"), [("raises", "when validated, f(1): exc:ValueError in each run"), ("syntax", "not run")]
)
def test_a_rejection_opens_with_its_program_and_what_each_run_gave(either, reason, ran):
    filtered(either, {"rejected": "1", "reason": reason})
    either.page.get_by_role("button", name=places(either)[0], exact=True).click()
    expect(either.page.locator("#detail-body h3")).to_have_text(["program", "runs", "proposal"])
    program, runs, proposal = either.page.locator("#detail-body pre").all_inner_texts()
    assert program.startswith("def f(") and program in proposal
    assert runs == ran
    either.page.keyboard.press("Escape")
    filtered(either, {})


def test_a_task_opens_with_its_program_and_all_attempts(either, recorded):
    place = places(either)[0]
    step, number = map(int, place.split(":"))
    with Store.read(recorded) as store:
        task, attempts = store.task(step, number), store.attempts(step, number)
    assert task is not None
    # By the keyboard alone.
    link = either.page.get_by_role("button", name=place, exact=True)
    link.focus()
    either.page.keyboard.press("Enter")
    dialog = either.page.locator("#detail")
    expect(dialog).to_be_visible()
    assert dialog.locator("pre").first.inner_text() == task.record["program"]
    assert "def" in dialog.locator("pre .k").all_inner_texts()
    assert dialog.locator(".attempt strong").all_inner_texts() == [each.grade for each in attempts]
    either.page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()


def test_the_life_of_a_member(either, recorded):
    with Store.read(recorded) as store:
        [event] = store.events()
    either.page.check("#dead")
    either.page.locator("#member-table").get_by_role("button", name=event.child, exact=True).click()
    dialog = either.page.locator("#detail")
    expect(dialog).to_contain_text(f"born at step {event.step}")
    expect(dialog).to_contain_text(f"parents: {', '.join(event.parents)}")
    either.until("document.querySelector('#chart-member-rating .plot').data")
    assert drawn(either, "member-rating")[0]["y"].count(None) == event.step - 1
    dialog.get_by_role("button", name=event.parents[0], exact=True).first.click()
    expect(dialog).to_contain_text(f"children: {event.child}")
    either.page.keyboard.press("Escape")
    either.page.uncheck("#dead")


def test_a_new_step_arrives_without_a_reload(browser, recorded, tmp_path):
    run = tmp_path / "growing"
    shutil.copytree(recorded, run)
    with page_of(browser, run) as watched:
        watched.page.evaluate("window.mark = 1")
        expect(watched.page.locator("#status")).to_contain_text(f"step {STEPS}/{STEPS + 1}")
        further, second, third = list(records(STEPS + 3, MEMBERS, TASKS))[STEPS:]
        with Store.open(run) as store:
            store.write(further)
        expect(watched.page.locator("#status")).to_contain_text(f"step {STEPS + 1}/{STEPS + 1}")
        watched.draw_all()
        for chart in ("solve-rate", "ratings-teachers", "phases"):
            assert {len(line["y"]) for line in drawn(watched, chart)} == {STEPS + 1}
        watched.page.click("#newer")
        expect(watched.page.locator("#task-table tbody tr td").first).to_contain_text(f"{STEPS + 1}:")
        # What a step took is known whole only after it was written.
        with Store.open(run) as store:
            store.add_timing(STEPS + 1, "checkpoint", 100.0)
            store.write(second)
        expect(watched.page.locator("#status")).to_contain_text(f"step {STEPS + 2}/{STEPS + 1}")
        assert watched.page.evaluate("RQ.run.phases.checkpoint") == [0] * STEPS + [100, 0]
        # Another past: a run of the same name whose steps are others. Nothing of both may be joined.
        with Store.open(run) as store:
            store._db.execute("UPDATE metrics SET value = value + 0.5 WHERE name = 'reward'")
            store.write(third)
        expect(watched.page.locator("#status")).to_contain_text(f"step {STEPS + 3}/{STEPS + 1}")
        with Store.read(run) as store:
            rewards = [each.value for each in store.metrics(REWARD, "teacher", "")]
        assert watched.page.evaluate("RQ.run.series['reward/teacher/']") == pytest.approx(rewards, rel=1e-4)
        # A run that was resumed from a checkpoint has lost steps.
        with Store.open(run) as store:
            store.drop_after(STEPS - 2)
        expect(watched.page.locator("#status")).to_contain_text(f"step {STEPS - 2}/{STEPS + 1}")
        watched.draw_all()
        assert {len(line["y"]) for line in drawn(watched, "solve-rate")} == {STEPS - 2}
        assert watched.page.evaluate("window.mark") == 1


def test_workers_of_a_cluster_are_shown_with_what_became_of_them(browser, tmp_path):
    run = tmp_path / "cluster"
    make(run, steps=3, members=4, tasks=12, wanted=5)
    with page_of(browser, run) as watched:
        # A race in one process has none.
        expect(watched.page.locator("#workers")).to_be_hidden()
        expect(watched.page.locator("#to-workers")).to_be_hidden()
        *_, further, last = records(5, 4, 20)
        with Store.open(run) as store:
            store.add_worker_events([lost(4)])
            store.write(replace(further, workers=workers(4)))
        expect(watched.page.locator("#status")).to_contain_text("step 4/5")
        shown = watched.page.locator("#worker-table tbody tr")
        assert watched.page.locator("#worker-table thead th").all_inner_texts() == [
            "worker", "on", "process", "members", "sample, s", "update, s", "beside the others",
        ]  # fmt: skip
        assert [row.locator("td").all_inner_texts() for row in shown.all()] == [
            ["worker 0", "gpu-0", "100", "t0, s0", "0.05", "0.2", "1.0 x"],
            ["worker 1", "gpu-1", "101", "t1, s1", "0.15", "0.2", "3.0 x"],
        ]
        events = watched.page.locator("#worker-events")
        events.locator("summary").click()
        expect(events.locator("summary")).to_have_text("what became of workers: 1 event, the newest first")
        [told] = events.locator("li").all_inner_texts()
        assert told.endswith(", step 4: worker 1 died: exit code 137 <b>") and "2027" in told
        watched.page.locator("#worker-table").get_by_role("button", name="s1", exact=True).click()
        expect(watched.page.locator("#detail-title")).to_contain_text("s1")
        watched.page.keyboard.press("Escape")
        # The same race goes on in one process: what became of workers stays.
        with Store.open(run) as store:
            store.write(last)
        expect(watched.page.locator("#status")).to_contain_text("step 5/5")
        expect(shown).to_have_count(0)
        assert events.locator("li").all_inner_texts() == [told]
    with report_of(browser, tmp_path / "cluster.html", run) as watched:
        watched.page.locator("#worker-events summary").click()
        expect(watched.page.locator("#worker-events li")).to_have_count(1)


def test_a_run_that_has_just_begun_is_shown(browser, tmp_path):
    make(tmp_path / "new", steps=0, members=4, tasks=0, wanted=5)
    with watching([tmp_path / "new"]) as (url, _):
        watched = open_page(browser, url)
        watched.page.wait_for_selector("html[data-ready]")
        expect(watched.page.locator("#status")).to_contain_text("step 0/5")
        with Store.open(tmp_path / "new") as store:
            store.write(next(records(5, 4, 20)))
        expect(watched.page.locator("#status")).to_contain_text("step 1/5")
        watched.until("document.querySelectorAll('.plot .drawing').length > 0")
        assert watched.complaints == []


def test_arms_are_laid_over_each_other(browser, tmp_path):
    for name, seed, lr in (("wide-0", 0, "1e-3"), ("wide-1", 1, "1e-3"), ("other-0", 0, "2e-3")):
        make(tmp_path / name, steps=5, members=4, tasks=50, seed=seed, overrides=[("rl.lr", lr)])
    runs = [tmp_path / name for name in ("wide-0", "wide-1", "other-0")]
    figures = dict.fromkeys(TITLES, 0.3)
    for run in runs:
        about = {"exam": "own", "sha256": "1", "how": HOW, "step": 2, "tasks": 9, "figures": figures}
        exams.keep(run, [ExamResult(subject=subject, **about) for subject in ("student", "base")])
        exams.keep(run, [ExamResult(subject="s0", **about | {"figures": dict.fromkeys(TITLES, 0.6)})])
    for run, value, base in zip(runs, (0.2, 0.4, 0.5), (0.1, 0.1, 0.4), strict=True):
        asked = {"benchmark": "gsm8k", "title": "GSM8K", "measure": "greedy", "prompts": "chat", "sha256": "1"}
        at = {"role": "student", "tasks": 9, "error": None, "tokens": 1, "base": base}
        benchmarks.keep(run, [Result(**asked, **at, step=step, value=value) for step in (2, 4)])
    with page_of(browser, *runs) as page, report_of(browser, tmp_path / "arms.html", *runs) as file:
        for watched in (page, file):
            watched.draw_all()
            gsm8k = "arm-benchmark-0"
            assert {each["name"]: each["y"] for each in drawn(watched, gsm8k)} == {
                "wide": [None, 0.3, None, 0.3],
                "other-0": [None, 0.5, None, 0.5],
                "wide, base": [0.1] * 4,
                "other-0, base": [0.4] * 4,
            }
            edges = watched.page.evaluate(
                f"""document.querySelector("#chart-{gsm8k} .plot").data
                .filter((each) => each.fill).map((each) => [...each.x])"""
            )
            assert edges == [[2, 4, 4, 2, None]], "an interval reaches from one checkpoint to the next"
            of_run = {each["name"]: each["y"] for each in drawn(watched, "evaluated")}
            assert of_run["GSM8K (9 tasks), chat, greedy"] == [None, 0.2, None, 0.2, None]
            assert [each["name"] for each in drawn(watched, "arm-solve_rate-race-code_o")] == ["wide", "other-0"]
            assert [row.split("\t")[:3] for row in watched.page.locator("#arm-table tbody tr").all_inner_texts()] == [
                ["wide", "wide-0, wide-1", "0, 1"], ["other-0", "other-0", "0"],
            ]  # fmt: skip
            assert "rl.lr = 0.002" in watched.page.locator("#arm-table").inner_text()
            assert "95 % intervals" in watched.page.locator("#arms-note").inner_text()
            assert [each["y"] for each in drawn(watched, "arm-exam--sampled")] == [[None, 0.3], [None, 0.3], [0.3, 0.3]]
            verdicts = watched.page.locator("#arm-claims tbody tr").all_inner_texts()
            assert [row.split("\t") for row in verdicts] == [
                ["GSM8K (9 tasks), chat, greedy", "other-0", "+30.0", "1", "one seed"],
                *(
                    [
                        f"exam own (9 tasks), long prompts, 8 attempts at temperature 0.8, {measure}",
                        "other-0",
                        "0.0",
                        "1",
                        "one seed",
                    ]
                    for measure in ("sampled", "greedy", "pass@8")
                ),
            ]
            of_base = {each["name"]: each["y"] for each in drawn(watched, "exam")}
            assert of_base["greedy"] == [None, 0.3, None, None, None] and of_base["greedy, base"] == [0.3] * 5
            assert of_base["greedy, best member"] == [None, 0.6, None, None, None]
            chart = "document.querySelector('#chart-arm-solve_rate-race-code_o .plot')"
            watched.page.evaluate(f"{chart}.zoom = [1, 2]")
            watched.page.select_option("#over", "sampled_tokens")
            watched.draw_all()
            assert watched.page.evaluate(f"{chart}.zoom") is None, "a part of one axis is none of another"
            spent = [arm["spent"]["sampled_tokens"] for arm in views.arms_view(runs)]
            over = watched.page.evaluate(
                """document.querySelector("#chart-arm-solve_rate-race-code_o .plot").data
                .filter((each) => !each.fill).map((each) => each.x)"""
            )
            assert over == spent
            watched.page.select_option("#over", "")
            watched.page.select_option("#run", "2")
            expect(watched.page.locator("#run-name")).to_have_text("other-0")
            watched.page.locator("nav a[href='#members']").click()
            watched.until("location.hash === '#members&run=2'")
            expect(watched.page.locator("#run-name")).to_have_text("other-0")


def test_how_far_members_are_from_the_base_is_drawn_with_the_ceiling(browser, tmp_path):
    make(tmp_path / "run", steps=4, members=4, tasks=8, overrides=[("guard.drift_ceiling", "0.02")])
    found = [
        (step, who, "", name, value)
        for step in (2, 4)
        for who, name, value in (
            ("s0", "elsewhere", 0.01 * step),
            ("t0", "elsewhere", 0.001),
            ("s0", "elsewhere_length", 90.0),
            ("base", "elsewhere_length", 100.0),
        )
    ]
    with closing(sqlite3.connect(tmp_path / "run" / RECORDS)) as records, records:
        records.executemany("insert into metrics (step, subject, kind, name, value) values (?, ?, ?, ?, ?)", found)
    with page_of(browser, tmp_path / "run") as page, report_of(browser, tmp_path / "r.html", tmp_path / "run") as file:
        for watched in (page, file):
            watched.draw_all()
            lines = {each["name"]: each["y"] for each in drawn(watched, "elsewhere")}
            assert lines == {"s0": [None, 0.02, None, 0.04], "t0": [None, 0.001] * 2, "ceiling": [0.02] * 4}
            lengths = {each["name"]: each["y"] for each in drawn(watched, "elsewhere-length")}
            assert lengths == {"s0": [None, 90] * 2, "base": [None, 100] * 2}


def test_a_band_ends_where_values_do(browser, tmp_path):
    make(tmp_path / "run", steps=2, members=2, tasks=4, seed=0)
    edges = {"valid/teacher/": [0, 1], "lines/race/": [0, 9], "reward/teacher/": [-7, 9]}
    with report_of(browser, tmp_path / "run.html", tmp_path / "run") as watched:
        found = watched.page.evaluate(
            """(keys) => keys.map((key) => {
                RQ.drawArms([{name: "a", seeds: [0, 1, 2], runs: [], again: [], forks: [], differs: [], twin: null,
                    series: {[key]: {mean: [1, 1], half: [8, 8]}}}]);
                RQ.redraw(true);
                const plot = document.getElementById(`chart-arm-${key.replaceAll("/", "-")}`).children[1];
                const [band] = plot.data.filter((each) => each.fill);
                const known = band.y.filter((value) => value != null);
                return [Math.min(...known), Math.max(...known)];
            })""",
            list(edges),
        )
    assert dict(zip(edges, found, strict=True)) == edges


def test_what_models_wrote_is_shown_and_never_obeyed(browser, hostile, tmp_path, capsys):
    for kind, opened in (
        ("page", page_of(browser, hostile)),
        ("report", report_of(browser, tmp_path / "h.html", hostile)),
    ):
        with opened as watched:
            seen = set()
            for row in watched.page.locator("#task-table tbody tr").all():
                place = row.locator("button").inner_text()
                row.locator("button").click()
                expect(watched.page.locator("#detail-title")).to_contain_text(
                    "step {}, place {},".format(*place.split(":"))
                )
                text = watched.page.locator("#detail pre").first.inner_text()
                seen |= {mark for mark in ("</script><script>", "\\x1b[2J", "\\u202e", "9" * 10_000) if mark in text}
                watched.page.keyboard.press("Escape")
                if len(seen) == 4:
                    break
            assert len(seen) == 4, (kind, seen)
            assert watched.page.evaluate("window.hacked") is None
            assert watched.page.evaluate("document.querySelectorAll('img').length") == 0
            assert watched.page.evaluate("document.documentElement.scrollWidth") <= 1280
    capsys.readouterr()
    with Store.read(hostile) as store:
        rows = [row for row in store.tasks() if "\x1b" in row.text]
    assert main(["tasks", str(hostile), "--show", f"{rows[0].step}:{rows[0].place}"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and "\\x1b[2J" in shown


def test_what_goes_on_beyond_an_edge_fades_out_there(browser, recorded):
    with page_of(browser, recorded, width=400, height=800) as watched:
        watched.draw_all()
        edges = watched.page.evaluate(
            """[...document.querySelectorAll('.wide')].filter((each) => each.offsetParent)
            .map((each) => [each.scrollWidth > each.clientWidth + 2, (each.dataset.more ?? '').includes('right')])"""
        )
        assert edges and all(beyond == said for beyond, said in edges) and any(beyond for beyond, _ in edges)
        # Whatever else is wider than its place is cut off without a word.
        cut = watched.page.evaluate(
            """[...document.querySelectorAll('main *, header *')]
            .filter((each) => each.offsetParent && !each.closest('.wide') && !each.closest('svg'))
            .filter((each) => each.getBoundingClientRect().right > innerWidth + 1)
            .map((each) => each.outerHTML.slice(0, 80))"""
        )
        assert cut == []
        member = watched.page.locator("#member-table").locator("..")
        member.evaluate("each => { each.scrollLeft = 9999; }")
        watched.until("document.querySelector('#member-table').parentNode.dataset.more === 'left'")


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (400, "dark")])
def test_both_widths_and_both_themes(browser, recorded, width, theme):
    with page_of(browser, recorded, width=width, theme=theme) as watched:
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
        assert watched.page.evaluate("document.documentElement.dataset.theme") == theme
        watched.page.select_option("#theme", "light" if theme == "dark" else "dark")
        assert watched.page.evaluate("document.documentElement.dataset.theme") != theme


def test_every_control_has_a_name_and_every_chart_a_description(either):
    nameless = either.page.evaluate(
        "[...document.querySelectorAll('select, input, button')].filter((each) => !each.closest('label')"
        " && !each.textContent.trim() && !each.getAttribute('aria-label')).map((each) => each.outerHTML)"
    )
    assert nameless == []
    described = either.page.locator(".plot").evaluate_all(
        "plots => plots.map((plot) => plot.getAttribute('aria-label'))"
    )
    assert all(each and each.startswith("Chart: ") for each in described)


def test_names_are_no_markup_in_charts_either(browser, tmp_path):
    folder = tmp_path / "<b>bold & <i>run"
    make(folder, steps=2, members=4, tasks=20)
    make(tmp_path / "other", steps=2, members=4, tasks=20, overrides=[("rl.lr", "3e-3")])
    with page_of(browser, folder, tmp_path / "other") as watched:
        watched.draw_all()
        chart = watched.page.locator("#chart-arm-coverage-race-")
        assert "<b>bold & <i>run" in chart.evaluate("each => each.textContent")
        assert watched.page.locator("#arm-charts a").count() == 0


def test_the_reader_keeps_her_place_when_a_step_comes(browser, recorded, tmp_path):
    run = tmp_path / "growing"
    shutil.copytree(recorded, run)
    with page_of(browser, run) as watched:
        link = watched.page.locator("#member-table").get_by_role("button", name="t2", exact=True)
        link.focus()
        watched.page.keyboard.press("Enter")
        expect(watched.page.locator("#detail")).to_contain_text("seat t2")
        with Store.open(run) as store:
            store.write(list(records(STEPS + 1, MEMBERS, TASKS))[-1])
        expect(watched.page.locator("#status")).to_contain_text(f"step {STEPS + 1}/")
        watched.until(f"document.querySelector('#chart-member-rating .plot').data.at(-1).y.length === {STEPS + 1}")
        watched.page.keyboard.press("Escape")
        watched.until("document.activeElement.textContent === 't2'")
        assert watched.page.evaluate("document.querySelectorAll('#detail-body .plot').length") == 0


def test_a_report_can_be_printed_and_is_small(report, recorded, tmp_path):
    report.page.emulate_media(media="print")
    report.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert not report.page.locator("#filters").is_visible()
    assert report.page.evaluate("document.documentElement.dataset.theme") == "light"
    assert len(report.page.pdf()) > 50_000
    report.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    report.page.emulate_media(media="screen")
    assert main(["report", str(recorded), "-o", str(tmp_path / "again.html")]) == 0
    assert (tmp_path / "again.html").stat().st_size < 2_000_000
    text = (tmp_path / "again.html").read_text(encoding="utf-8")
    assert "isolation" in text and "verifier_runs" in text


def test_when_the_server_ends_the_page_says_so(browser, recorded):
    with watching([recorded]) as (url, _):
        watched = open_page(browser, url).ready()
    expect(watched.page.locator("#status")).to_contain_text("the server is gone")
    watched.page.context.close()


def test_reports_need_a_name_and_a_run(recorded, tmp_path, capsys):
    assert main(["report", str(recorded), str(recorded)]) == 2
    assert "--to FILE.html" in capsys.readouterr().err
    assert main(["report", str(recorded), "-o", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err
    assert main(["report", str(tmp_path)]) == 2
    make(tmp_path / "new", steps=0, members=4, tasks=0, wanted=5)
    assert main(["report", str(tmp_path / "new")]) == 2
    assert "has no step yet" in capsys.readouterr().err
