"""What page and report show, against the records that it comes from."""

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from synthetic import make, records

from redqueen.analysis.browse import Filters
from redqueen.analysis.intervals import estimate
from redqueen.analysis.summary import summarise
from redqueen.commands.main import main
from redqueen.population.board import Board
from redqueen.population.members import Role
from redqueen.runs import FORKED_FROM, benchmarks, exams
from redqueen.runs.benchmarks import Result
from redqueen.runs.exams import ExamResult
from redqueen.runs.lock import take
from redqueen.runs.metrics import COVERAGE, ENTROPY, METRICS, MU, REWARD, SAMPLED_TOKENS, SOLVE_RATE
from redqueen.runs.store import Store
from redqueen.settings import load_run
from redqueen.ui.page import people, views
from redqueen.ui.page.assets import METRICS_SCRIPT, SCRIPTS, asset, words
from report.conftest import HOW, STEPS, TASKS


def test_series_are_the_metrics_of_the_records(recorded):
    view = views.run_view(recorded)
    assert (view["step"], view["steps"], view["counts"]["tasks"]) == (STEPS, STEPS + 1, TASKS)
    with Store.read(recorded) as store:
        for metric, subject, kind in [
            (SOLVE_RATE, "race", "code_i"),
            (COVERAGE, "race", ""),
            (MU, "t1", ""),
            (ENTROPY, "student", ""),
        ]:
            expected = [pytest.approx(each.value, rel=1e-4) for each in store.metrics(metric, subject, kind)]
            assert view["series"][f"{metric.name}/{subject}/{kind}"] == expected
            assert len(expected) == STEPS
        assert sum(map(sum, view["phases"].values())) == pytest.approx(
            sum(each.seconds for each in store.timings()), abs=0.01
        )


def test_the_timeline_is_that_of_the_newest_step(recorded, tmp_path):
    found = views.run_view(recorded, since=STEPS - 1)["timeline"]
    with Store.read(recorded) as store:
        written = store.timeline(STEPS).timeline
    assert (found["step"], found["seconds"]) == (STEPS, pytest.approx(3.1))
    for part in ("proposals", "attempts"):
        area = sum(found[part]) * found["seconds"] / len(found[part])
        assert area == pytest.approx(sum(written[part]) / 1000, rel=1e-3)
    assert [phase for phase, _, _ in found["others"]] == ["evolve", "verify", "grade", "update"]
    folder = tmp_path / "older"
    make(folder, steps=1, members=4, tasks=3)
    with Store.open(folder) as store:
        store._db.execute("DELETE FROM timelines")
    assert views.run_view(folder)["timeline"] is None


def test_a_race_that_has_spent_its_operations_is_at_its_end(recorded, tmp_path):
    shutil.copytree(recorded, folder := tmp_path / "spent")
    config = folder / "config.toml"
    for flops, steps in ((1.0, STEPS), (1e30, STEPS + 1)):
        config.write_text(
            re.sub(r"^\[run\]\n(flops.*\n)?", f"[run]\nflops = {flops}\n", config.read_text(), flags=re.M)
        )
        assert views.run_view(folder)["steps"] == steps


def test_scripts_name_the_metrics_that_the_views_send_them():
    """A name that is not there is an error in a browser, and a chart without a line at best."""
    scripts = "\n".join(asset(name) for name in SCRIPTS if name != METRICS_SCRIPT)
    named = set(re.findall(r"\bM\.(\w+)(?!\w|\.about)", scripts))
    sent = {metric.name for metric in views.DRAWN}
    assert named <= sent <= METRICS.keys()
    assert set(re.findall(r"\bM\.(\w+)", scripts)) <= METRICS.keys()
    groups = re.findall(r"RQ\.([A-Z_]+) = [\[{](?!\")(.*)[\]}];", asset(METRICS_SCRIPT))
    drawn = {name for group, names in groups if group != "COMPUTE" for name in re.findall(r"METRICS\.(\w+)", names)}
    assert sent == named | drawn


def test_members_of_a_kind_alone_are_left_out(recorded):
    keys = views.run_view(recorded)["series"]
    assert "reward/t0/" in keys
    assert "reward/t0/code_o" not in keys


def test_what_came_later_is_asked_for_alone_and_fits_behind(recorded):
    whole, late = views.run_view(recorded), views.run_view(recorded, since=9)
    assert late["since"] == 9
    for key, values in late["series"].items():
        assert values == whole["series"][key][9:]
    assert late["members"] == whole["members"]


def test_matches_are_those_of_the_board(recorded):
    with Store.read(recorded) as store:
        board = Board(tuple(store.meetings()))
        tallies = store.tallies(1, STEPS)
        for (teacher, student), tally in tallies.items():
            own = [each for each in board.meetings if (each.teacher, each.student) == (teacher, student)]
            assert tally.solved == sum(each.solved for each in own)
            assert tally.attempts == sum(each.attempts for each in own)
            results = {(each.step, each.match): each.match_result for each in own}
            counted = [list(results.values()).count(result) for result in ("student", "draw", "teacher")]
            assert [tally.student_wins, tally.draws, tally.teacher_wins] == counted
            assert tally.matches == len(results)
        assert sum(tally.attempts for tally in tallies.values()) == 4 * TASKS
        late = store.tallies(STEPS, STEPS)
        assert 0 < sum(tally.matches for tally in late.values()) < sum(tally.matches for tally in tallies.values())


def test_members_have_a_birth_and_a_death(recorded):
    members = {each["id"]: each for each in views.run_view(recorded)["members"]}
    with Store.read(recorded) as store:
        [event] = store.events()
    assert members[event.dead]["died"] == event.step
    child = members[event.child]
    assert (child["born"], child["parents"], child["seat"]) == (event.step, list(event.parents), event.seat)
    assert child["from"] == f"{event.operator} of {', '.join(event.parents)}; generation 1, step {event.step}"
    assert members["t0"]["from"] == "founder"


def test_pages_of_tasks_are_all_tasks_once(recorded):
    seen: list[tuple[int, int]] = []
    before = None
    while True:
        found = views.tasks_view(recorded, Filters(before=before))
        seen += [(row["step"], row["place"]) for row in found["rows"]]
        if not found["more"]:
            break
        before = seen[-1]
    assert len(seen) == len(set(seen)) == TASKS
    assert seen == sorted(seen, reverse=True)


def test_rejections_can_be_asked_for_by_reason(recorded):
    found = views.tasks_view(recorded, Filters(rejected=True, reason="syntax"))["rows"]
    with Store.read(recorded) as store:
        assert len(found) == store.reasons()["syntax"]
    assert {row["reason"] for row in found} == {"syntax"}


def test_arms_have_the_intervals_of_their_seeds(tmp_path):
    for name, seed, lr in (("a-0", 0, "1e-3"), ("a-1", 1, "1e-3"), ("a-2", 2, "1e-3"), ("b-0", 0, "2e-3")):
        make(tmp_path / name, steps=4, members=4, tasks=40, seed=seed, overrides=[("rl.lr", lr)])
    folders = [tmp_path / name for name in ("a-0", "a-1", "a-2", "b-0")]
    first, second = views.arms_view(folders)
    assert (first["name"], first["seeds"], second["name"], second["seeds"]) == ("a", [0, 1, 2], "b-0", [0])
    curve = first["series"]["solve_rate/race/"]
    values = []
    for folder in folders[:3]:
        with Store.read(folder) as store:
            values.append(next(each.value for each in store.metrics(SOLVE_RATE, "race", "") if each.step == 3))
    expected = estimate(values)
    assert expected is not None and expected.half is not None
    assert curve["mean"][2] == pytest.approx(expected.mean, rel=1e-3)
    assert curve["half"][2] == pytest.approx(expected.half, rel=1e-3)
    assert second["series"]["solve_rate/race/"]["half"] is None
    [pair] = views.arms_view(folders[:2])
    two = pair["series"]["solve_rate/race/"]
    assert two["half"][2] == pytest.approx(abs(values[0] - values[1]) / 2, rel=1e-3)


def exam_of(subject: str, step: int, value: float, exam: str = "own") -> ExamResult:
    figures = {"sampled": value, "greedy": value + 0.1, "pass_at_k": value + 0.2}
    return ExamResult(exam=exam, sha256="1", how=HOW, step=step, subject=subject, tasks=99, figures=figures)


def test_the_exam_that_was_held_last_is_there_step_by_step(tmp_path):
    make(tmp_path / "run", steps=4, members=4, tasks=8)
    assert views.run_view(tmp_path / "run")["exam"] is None
    exams.keep(tmp_path / "run", [exam_of("student", 2, 0.9, exam="other")])
    both = [exam_of("student", 4, 0.4), exam_of("student", 2, 0.3), exam_of("base", 2, 0.1)]
    both += [exam_of("s0", 2, 0.6), exam_of("s1", 2, 0.5), exam_of("t0", 2, 0.7)]
    exams.keep(tmp_path / "run", both)
    found = views.run_view(tmp_path / "run")["exam"]
    assert (found["title"], found["steps"]) == ("own (99 tasks)", [2, 4])
    assert [(each["name"], each["values"], each["base"]) for each in found["figures"]] == [
        ("sampled", [0.3, 0.4], 0.1), ("greedy", [0.4, 0.5], 0.2), ("pass@8", [0.5, 0.6], 0.3)
    ]  # fmt: skip
    assert [each["best"] for each in found["figures"]] == [[0.6, None], [0.7, None], [0.8, None]], "of the students"


def test_arms_have_their_exams_and_what_they_had_spent(tmp_path):
    folders = [tmp_path / name for name in ("a-0", "a-1", "b-0")]
    for folder, seed, lr, tasks in zip(folders, (0, 1, 0), ("1e-3", "1e-3", "2e-3"), (40, 80, 40), strict=True):
        make(folder, steps=4, members=4, tasks=tasks, seed=seed, overrides=[("rl.lr", lr)])
    before = [arm["spent"]["sampled_tokens"] for arm in views.arms_view(folders)]
    for folder, subject, value in zip(folders, ("student", "student", "solo"), (0.2, 0.4, 0.5), strict=True):
        exams.keep(folder, [exam_of(subject, step, value) for step in (2, 4)])
    first, second = views.arms_view(folders)
    assert first["series"]["exam//sampled"]["mean"] == [None, 0.3, None, 0.3]
    assert second["series"]["exam//greedy"]["mean"] == [None, 0.6, None, 0.6]
    tokens = []
    for folder in folders[:2]:
        with Store.read(folder) as store:
            tokens.append(sum(row.value for row in store.metrics(SAMPLED_TOKENS, "race", "")))
    spent = first["spent"]["sampled_tokens"]
    assert [arm["spent"]["sampled_tokens"] for arm in (first, second)] == before and tokens[0] != tokens[1]
    assert spent[-1] == pytest.approx(sum(tokens) / 2, rel=1e-3) and spent == sorted(spent)
    assert len(first["spent"]["hours"]) == 4 and first["spent"]["hours"] == sorted(first["spent"]["hours"])
    exams.keep(folders[2], [exam_of("solo", 4, 0.5, exam="other")])
    assert all("exam//sampled" not in arm["series"] for arm in views.arms_view(folders)), "of one exam alone"


def benchmark_of(role: str | None, step: int, value: float, **other: Any) -> Result:
    about = {"benchmark": "gsm8k", "title": "GSM8K", "measure": "greedy", "prompts": "chat", "sha256": "1"}
    return Result(**about, role=role, step=step, tasks=9, value=value, error=None, tokens=1, **other)


def test_benchmarks_are_there_step_by_step_for_runs_and_arms(tmp_path):
    folders = [tmp_path / name for name in ("a-0", "a-1", "b-0")]
    for folder, seed, lr in zip(folders, (0, 1, 0), ("1e-3", "1e-3", "2e-3"), strict=True):
        make(folder, steps=4, members=4, tasks=40, seed=seed, overrides=[("rl.lr", lr)])
    assert views.run_view(folders[0])["benchmarks"] == []
    others = [benchmark_of("teacher", 4, 0.9), benchmark_of("student", 4, 0.8, member="s0")]
    for folder, values in zip(folders[:2], ((0.2, 0.4), (0.4, 0.8)), strict=True):
        both = [benchmark_of("student", step, value, base=0.1) for step, value in zip((2, 4), values, strict=True)]
        benchmarks.keep(folder, [*reversed(both), *others])
    benchmarks.keep(folders[2], [benchmark_of(None, 4, 0.5)])
    name = "GSM8K (9 tasks), chat, greedy"
    [found] = views.run_view(folders[0])["benchmarks"]
    assert found == {"name": name, "steps": [2, 4], "values": [0.2, 0.4], "base": 0.1}
    first, second = views.arms_view(folders)
    assert first["series"][f"benchmark//{name}"]["mean"] == [None, 0.3, None, 0.6]
    assert first["series"][f"benchmark//{name}"]["half"] == [None, pytest.approx(0.1), None, pytest.approx(0.2)]
    assert second["series"][f"benchmark//{name}"]["mean"] == [None, None, None, 0.5]
    assert (first["bases"], second["bases"]) == ({f"benchmark//{name}": 0.1}, {})
    benchmarks.keep(folders[0], [benchmark_of("student", 3, 0.9)])
    again = views.arms_view(folders)[0]["series"][f"benchmark//{name}"]["mean"]
    assert again == [None, 0.3, None, 0.6], "where all seeds were asked"
    benchmarks.keep(folders[0], [replace(benchmark_of("student", 4, 0.7), sha256="2")])
    assert [(each["steps"], each["values"]) for each in views.run_view(folders[0])["benchmarks"]] == [([4], [0.7])]


def test_compare_gives_verdicts_where_runs_were_examined(tmp_path, capsys):
    folders = [tmp_path / name for name in ("a-0", "a-1", "b-0", "b-1")]
    for folder, lr in zip(folders, ("1e-3", "1e-3", "2e-3", "2e-3"), strict=True):
        make(folder, steps=4, members=4, tasks=40, seed=int(folder.name[-1]), overrides=[("rl.lr", lr)])
    words = ["compare", *map(str, folders)]
    assert main(words) == 0 and "verdict" not in capsys.readouterr().out
    for folder, value in zip(folders, (0.2, 0.3, 0.4, 0.5001), strict=True):
        exams.keep(folder, [exam_of("student", 4, value)])
    assert main(words) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Those who solve tasks" in out and "+20.0 ±0.1 ahead" in out
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["claims"]
    assert [(each["arm"], each["against"], each["verdict"], each["seeds"]) for each in found] == 3 * [
        ("b", "a", "ahead", 2)
    ]


def test_seeds_are_compared_as_far_as_all_have_come_and_each_once(tmp_path):
    make(tmp_path / "a-0", steps=6, members=4, tasks=40, seed=0, wanted=6)
    make(tmp_path / "a-1", steps=3, members=4, tasks=40, seed=1, wanted=6)
    make(tmp_path / "copy", steps=6, members=4, tasks=40, seed=0, wanted=6)
    [arm] = views.arms_view([tmp_path / "a-0", tmp_path / "a-1"])
    assert {len(each["mean"]) for each in arm["series"].values()} == {3}
    [arm] = views.arms_view([tmp_path / "a-0", tmp_path / "copy"])
    assert (arm["runs"], arm["seeds"]) == (["a-0"], [0])
    assert arm["again"] == [{"run": str(tmp_path / "copy"), "as": str(tmp_path / "a-0"), "seed": 0}]


def test_arms_say_what_tells_them_apart_which_are_forks_and_which_are_the_same(tmp_path):
    for name, lr in (("a", "1e-3"), ("b", "2e-3")):
        make(tmp_path / name, steps=3, members=4, tasks=20, overrides=[("rl.lr", lr)])
    make(tmp_path / "c", steps=3, members=4, tasks=20, seed=1, overrides=[("rl.lr", "3e-3")])
    with Store.open(tmp_path / "c") as store:
        store.set_facts({FORKED_FROM: "/runs/a, step 2"})
    first, second, third = views.arms_view([tmp_path / name for name in "abc"])
    assert [arm["differs"] for arm in (first, second, third)] == [[], ["rl.lr = 0.002"], ["rl.lr = 0.003"]]
    assert [arm["twin"] for arm in (first, second, third)] == ["b", "a", None]
    assert third["forks"] == [{"run": "c", "from": "/runs/a, step 2"}] and not first["forks"]
    assert views.run_view(tmp_path / "c")["forked_from"] == "/runs/a, step 2"


def test_members_are_those_of_the_terminal_in_its_order(recorded):
    """The page's table is made of this view; the terminal's of the population that a checkpoint holds."""
    with Store.read(recorded) as store:
        there = people.population(store, list(store.events()), STEPS)
        table = summarise(store, load_run(recorded / "config.toml"), there).members
    view = views.run_view(recorded)
    living = [each["id"] for each in view["members"] if each["died"] is None]
    assert sorted(living) == sorted(row[0] for row in table.rows)
    mu = {id: view["series"][f"mu/{id}/"][-1] for id in living}
    assert [row[2].split()[0] for row in table.rows] == [f"{mu[row[0]]:.1f}" for row in table.rows]


def test_who_would_be_exported_is_who_did_best_and_else_who_is_rated_best(recorded, tmp_path):
    shutil.copytree(recorded, run := tmp_path / "run")
    assert views.run_view(run)["best"] == [], "there is no checkpoint"
    with Store.open(run) as store:
        store.mark_saved(STEPS)
        there = people.population(store, list(store.events()), STEPS)
    found = {each["role"]: each["id"] for each in views.run_view(run)["best"]}
    assert found == {role: there.best(role).id for role in Role}
    worst = min(there.students, key=lambda member: member.rating.lower)
    values = {member.id: 0.1 for member in there.students} | {worst.id: 0.9}
    exams.keep(run, [exam_of(id, STEPS, value) for id, value in values.items()])
    student = views.run_view(run)["best"][1]
    assert (student["id"], student["step"]) == (worst.id, STEPS) and "by the exam own" in student["why"]


def test_a_population_is_read_from_the_records_as_it_was_after_each_step(recorded):
    with Store.read(recorded) as store:
        [event] = events = list(store.events())
        before, after = (people.population(store, events, step) for step in (event.step - 1, event.step))
        mu = {row.subject: row.value for row in store.metrics(MU, kind="") if row.step == event.step}
    assert event.dead in {member.id for member in before.members} and not before.graves
    assert [grave.member.id for grave in after.graves] == [event.dead]
    child = after.member(event.child)
    assert (child.seat, child.birth.parents, child.rating.mu) == (event.seat, event.parents, mu.get(event.child, 25.0))


def test_a_run_is_running_while_a_process_has_it_and_stopped_otherwise(recorded, tmp_path):
    shutil.copytree(recorded, run := tmp_path / "run")
    assert views.run_view(run)["state"] == "stopped"
    lock = take(run)
    try:
        assert views.state_of(run) == views.run_view(run)["state"] == "running"
    finally:
        os.close(lock)
    assert views.state_of(run) == "stopped"
    make(tmp_path / "done", steps=2, members=4, tasks=8)
    assert views.state_of(tmp_path / "done") == "finished"


def test_kinds_say_what_their_family_says_and_no_code_that_a_run_names_is_run():
    assert views.titles(["code", "logic"])["logic_s"] == "find values that keep all clues"
    assert views.titles([f"{Path(__file__)}:FAMILY"]) == {}


def test_words_are_those_of_the_glossary_and_the_page_uses_no_others():
    scripts = "\n".join(asset(name) for name in SCRIPTS if name != METRICS_SCRIPT)
    used = {word for call in re.findall(r"meaning\(([^)]*)\)", scripts) for word in re.findall(r'"([^"]+)"', call)}
    used |= set(re.findall(r"RQ\.WORDS\.(\w+)", scripts))
    assert {"seat", "rating", "cell", "behaviour", "ruler", "newborn", "arm"} <= used <= words().keys()
    assert words()["seat"] == (
        "a member's place in the population (t0, s3). A child takes the seat of the member it replaces."
    )


def test_programs_are_listed_with_their_line_breaks(recorded):
    row = views.tasks_view(recorded, Filters())["rows"][0]
    with Store.read(recorded) as store:
        task = store.task(row["step"], row["place"])
    assert task is not None
    lines = task.record["program"].split("\n")
    assert row["program"].split("\n") == lines[: views.PROGRAM_LINES]
    assert row["further"] == max(0, len(lines) - views.PROGRAM_LINES)


def test_tasks_are_found_by_their_text(recorded, capsys):
    with Store.read(recorded) as store:
        expected = [(row.step, row.place) for row in store.tasks() if "gcd" in row.text][::-1]
    found = views.tasks_view(recorded, Filters(text="GCD("))
    assert [(row["step"], row["place"]) for row in found["rows"]] == expected[: views.PAGE_ROWS] and expected
    assert views.tasks_view(recorded, Filters(text="no such text"))["rows"] == []
    assert views.tasks_view(recorded, Filters(text="GCD(", rejected=True))["rows"]
    assert main(["tasks", str(recorded), "--text", "GCD(", "--json", "--limit", "999"]) == 0
    assert len(json.loads(capsys.readouterr().out)["tasks"]) == len(expected)


def test_a_figure_that_is_none_is_left_open(tmp_path):
    make(tmp_path / "run", steps=2, members=4, tasks=8)
    with Store.open(tmp_path / "run") as store:
        store._db.execute("UPDATE metrics SET value = NULL WHERE name = 'entropy' AND step = 1")
        store._db.execute("UPDATE metrics SET value = 9e999 WHERE name = 'reward' AND step = 2")
    view = views.run_view(tmp_path / "run")
    assert view["series"]["entropy/student/"][0] is None
    assert view["series"]["reward/student/"][1] is None
    json.dumps(view, allow_nan=False)


def test_a_run_without_a_step_is_shown(tmp_path):
    make(tmp_path / "run", steps=0, members=4, tasks=0, wanted=5)
    view = views.run_view(tmp_path / "run")
    assert (view["step"], view["series"], view["members"]) == (0, {}, [])


def test_the_archive_is_read_by_its_indices_alone(recorded):
    with Store.read(recorded) as store:
        plans: list[str] = []
        database = store._db

        class Explaining:
            def execute(self, sql: str, values: tuple[object, ...] = ()):
                plans.extend(row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {sql}", values))
                return database.execute(sql, values)

        store._db = Explaining()  # pyright: ignore[reportAttributeAccessIssue]
        list(store.figures(REWARD, 0, "race"))
        list(store.tasks(kind="code_o", newest_first=True, limit=51, before=(9, 3)))
        list(store.outline())
        store._db = database
    assert plans
    assert all("INDEX" in plan for plan in plans), plans


def test_steps_are_appended_as_a_race_does(recorded: Path):
    """The made-up steps go on where they end: what the page is tested with can grow."""
    assert [each.step for each in records(3, 4, 6)] == [1, 2, 3]
