"""The records: what goes in comes out, filters are answered by index, and what the disk does is one line."""

import math
import sqlite3
from contextlib import closing
from dataclasses import astuple, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redqueen.errors import Fault, InputError, RunError
from redqueen.population.board import Board, Meeting
from redqueen.population.ratings import MatchResult
from redqueen.runs import sqlite
from redqueen.runs.metrics import METRICS, MU, REWARD, SOLVE_RATE
from redqueen.runs.records_file import RECORDS
from redqueen.runs.rows import AlarmRow, AttemptRow, EventRow, MetricRow, RejectionRow, StepRecord, TaskRow, TimelineRow
from redqueen.runs.schema import VERSION
from redqueen.runs.store import Store
from runs.making import lost, quick_folder, record, task, workers

anything = st.text(max_size=20)
names = st.text("ts0123.", min_size=1, max_size=5)
whole_numbers = st.integers(0, 2**62)
numbers = st.floats(allow_nan=False)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | anything,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(anything, inner, max_size=3),
    max_leaves=5,
)


def rows_of(row: type, **fields) -> st.SearchStrategy:
    return st.builds(row, step=st.just(1), **fields)


TASKS = rows_of(
    TaskRow,
    place=st.integers(0, 50),
    match=whole_numbers,
    teacher=names,
    kind=names,
    group_=whole_numbers,
    id=anything,
    near_key=anything,
    descriptor=anything,
    record=st.dictionaries(anything, plain, max_size=3),
    text=anything,
    solved=whole_numbers,
    attempts=whole_numbers,
    reward=numbers,
    depth=whole_numbers,
    cyclomatic=whole_numbers,
    lines=whole_numbers,
    variables=whole_numbers,
    answer_chars=whole_numbers,
    trivial=st.none() | names,
    oversight=st.booleans(),
)
ATTEMPTS = rows_of(
    AttemptRow,
    place=st.integers(0, 50),
    student=names,
    number=whole_numbers,
    text=anything,
    grade=names,
    reason=st.none() | names,
    status=st.none() | names,
    detail=anything,
    reward=numbers,
    tokens=whole_numbers,
)
REJECTIONS = rows_of(
    RejectionRow,
    place=st.integers(0, 50),
    match=whole_numbers,
    teacher=names,
    kind=names,
    group_=whole_numbers,
    reason=names,
    detail=anything,
    text=anything,
    reward=numbers,
)
REJECTIONS |= st.builds(
    lambda row, program, runs: replace(row, program=program, runs=tuple(runs)),
    REJECTIONS,
    anything,
    st.lists(anything, max_size=3),
)
EVENTS = rows_of(
    EventRow,
    role=names,
    seat=names,
    dead=names,
    child=names,
    operator=st.none() | names,
    parents=st.lists(names, max_size=2).map(tuple),
    seed=st.integers(0, 2**64 - 1).map(str),
)
ALARMS = rows_of(
    AlarmRow,
    number=whole_numbers,
    subject=names,
    measure=names,
    value=st.none() | numbers,
    floor=st.none() | numbers,
    says=anything,
)
FIGURES = rows_of(MetricRow, subject=names, kind=names, name=st.sampled_from(sorted(METRICS)), value=numbers).map(
    lambda row: row if METRICS[row.name].by_kind else replace(row, kind="")
)
MEETINGS = rows_of(
    Meeting,
    match=whole_numbers,
    teacher=names,
    student=names,
    kind=names,
    tasks=whole_numbers,
    unsolved=whole_numbers,
    attempts=whole_numbers,
    unsolved_attempts=whole_numbers,
    solved=whole_numbers,
    foretold=numbers,
    result=st.sampled_from(MatchResult),
    match_result=st.sampled_from(MatchResult),
    teacher_reward=st.none() | numbers,
    student_reward=st.none() | numbers,
)


def some(rows: st.SearchStrategy, *key: str) -> st.SearchStrategy[list]:
    return st.lists(rows, max_size=4, unique_by=lambda row: tuple(getattr(row, each) for each in key))


@given(
    some(MEETINGS, "match", "kind"),
    some(TASKS, "place"),
    some(REJECTIONS, "place"),
    some(ATTEMPTS, "place", "student", "number"),
    some(EVENTS, "seat"),
    some(ALARMS, "number"),
    some(FIGURES, "subject", "kind", "name"),
)
@settings(max_examples=40)
def test_rows_come_out_as_they_went_in(meetings, tasks, rejections, attempts, events, alarms, metrics):
    with quick_folder() as folder, Store.create(folder) as store:
        store.write(
            StepRecord(
                step=1,
                matches=meetings,
                tasks=tasks,
                rejections=rejections,
                attempts=attempts,
                events=events,
                alarms=alarms,
                metrics=metrics,
                timings={"solve": 0.25},
            )
        )
        assert list(store.meetings()) == meetings
        assert list(store.tasks()) == sorted(tasks, key=lambda row: row.place)
        assert list(store.rejections()) == sorted(rejections, key=lambda row: row.place)
        found = [row for place in range(51) for row in store.attempts(1, place)]
        assert found == sorted(attempts, key=lambda row: (row.place, row.student, row.number))
        assert list(store.events()) == events
        assert list(store.alarms()) == sorted(alarms, key=lambda row: row.number)
        assert list(store.metrics()) == sorted(metrics, key=lambda row: (row.subject, row.kind, row.name))
        assert [astuple(row) for row in store.timings()] == [(1, "solve", 0.25)]


@pytest.fixture
def store(tmp_path):
    with Store.create(tmp_path) as store:
        yield store


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ud800\udfff", "\0", "a\0b"])
def test_lone_surrogates_and_nuls_come_out_too(store, text):
    """Models write what they like."""
    [row] = record(1).rejections
    store.write(StepRecord(step=1, rejections=[replace(row, text=text)]))
    assert [each.text for each in store.rejections()] == [text]


def test_types_come_back_too(store):
    store.write(record(1))
    assert next(store.meetings()).result is MatchResult.STUDENT
    assert next(store.tasks()).oversight is False
    assert next(store.events()).parents == ("t1", "t0")


def test_a_metric_that_is_no_number_stays_one_and_infinity_stays_infinite(store):
    values = {"kl": math.nan, "ratio_max": math.inf, "loss": -math.inf}
    store.write(
        StepRecord(
            step=1,
            metrics=[
                MetricRow(step=1, subject="t0", kind="", name=name, value=value) for name, value in values.items()
            ],
        )
    )
    found = {each.name: each.value for each in store.metrics()}
    assert math.isnan(found["kl"])
    assert (found["ratio_max"], found["loss"]) == (math.inf, -math.inf)


@pytest.mark.parametrize(
    ("name", "kind", "why"), [("no_such", "", "there is no metric no_such"), ("mu", "code_o", "mu is not by kind")]
)
def test_a_metric_that_the_schema_does_not_know_is_refused_with_its_step(store, name, kind, why):
    with pytest.raises(Fault, match=why):
        store.write(replace(record(1), metrics=[MetricRow(step=1, subject="t0", kind=kind, name=name, value=0.5)]))
    assert store.last_step() == 0


def test_a_metric_of_another_version_is_read(store):
    store.write(record(1))
    store._db.execute("UPDATE metrics SET name = 'of_another_version'")
    assert {each.name for each in store.metrics()} == {"of_another_version"}


def test_the_board_is_restored_from_the_meetings(store):
    for step in (1, 2):
        store.write(record(step))
    board = Board(tuple(store.meetings()))
    assert board == Board((*record(1).matches, *record(2).matches))
    assert board.met("t0", "s0") == 2


# Filters

RATES = st.none() | st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.75, 1.0])
ARCHIVE = [
    task(
        step,
        place,
        solved=(3 * step + place) % 11,
        attempts=10 if place % 4 else 0,
        trivial="long_answer" if place % 3 == 1 else None,
        oversight=place % 5 == 0,
    )
    for step in range(1, 8)
    for place in range(9)
]


@pytest.fixture(scope="module")
def archive():
    with quick_folder() as folder, Store.create(folder) as store:
        for step in range(1, 8):
            store.write(StepRecord(step=step, tasks=[row for row in ARCHIVE if row.step == step]))
        yield store


@given(
    kind=st.none() | st.sampled_from(["code_o", "code_f", "nothing"]),
    teacher=st.none() | st.sampled_from(["t0", "t1"]),
    since=st.none() | st.integers(0, 8),
    until=st.none() | st.integers(0, 8),
    min_rate=RATES,
    max_rate=RATES,
    trivial=st.none() | st.booleans(),
    oversight=st.none() | st.booleans(),
    newest_first=st.booleans(),
    limit=st.none() | st.integers(0, 5),
)
def test_filters_find_the_tasks_that_fit_all_of_them(archive, newest_first, limit, **asked):
    def fits(row: TaskRow) -> bool:
        rate = row.solve_rate
        return (
            asked["kind"] in (None, row.kind)
            and asked["teacher"] in (None, row.teacher)
            and (asked["since"] is None or row.step >= asked["since"])
            and (asked["until"] is None or row.step <= asked["until"])
            and (asked["min_rate"] is None or (rate is not None and rate >= asked["min_rate"]))
            and (asked["max_rate"] is None or (rate is not None and rate <= asked["max_rate"]))
            and asked["trivial"] in (None, row.trivial is not None)
            and asked["oversight"] in (None, row.oversight)
        )

    fitting = [row for row in (reversed(ARCHIVE) if newest_first else ARCHIVE) if fits(row)]
    assert list(archive.tasks(newest_first=newest_first, limit=limit, **asked)) == fitting[:limit]


@pytest.mark.parametrize(
    "index, ask",
    [
        ("browse_tasks", lambda store: store.tasks(kind="code_o", teacher="t0", trivial=False, newest_first=True)),
        ("browse_tasks", lambda store: store.tasks(oversight=True, min_rate=0.1, since=3)),
        ("browse_rejections", lambda store: store.rejections(reason="syntax", newest_first=True)),
        ("browse_metrics", lambda store: store.metrics(MU, "t0", "")),
        ("sqlite_autoindex_attempts_1", lambda store: iter(store.attempts(3, 1))),
        ("(step=? AND place=?)", lambda store: iter([store.task(3, 1)])),
    ],
)
def test_a_question_is_answered_by_an_index_and_without_sorting(archive, index, ask):
    asked = []
    archive._db.set_trace_callback(asked.append)
    next(ask(archive), None)
    archive._db.set_trace_callback(None)
    [sql] = asked
    plan = " ".join(step[3] for step in archive._db.execute(f"EXPLAIN QUERY PLAN {sql}"))
    assert index in plan
    assert "TEMP B-TREE" not in plan


def test_a_proposal_is_found_by_its_step_and_place(store):
    store.write(record(1))
    assert store.task(1, 2) == task(1, 2)
    assert store.task(1, 6) is None
    rejection = store.rejection(1, 6)
    assert rejection is not None
    assert rejection.reason == "syntax"


def test_rejections_are_filtered_and_their_reasons_counted(store):
    for step in (1, 2, 3):
        [one] = record(step).rejections
        rows = [replace(one, place=place, reason=("syntax", "timeout", "syntax")[place]) for place in range(3)]
        store.write(StepRecord(step=step, rejections=rows))
    assert store.reasons() == {"syntax": 6, "timeout": 3}
    assert store.reasons(since=3) == {"syntax": 2, "timeout": 1}
    assert store.reasons(teacher="t9") == {}
    assert [row.step for row in store.rejections(reason="timeout", newest_first=True, limit=2)] == [3, 2]


def test_metrics_are_found_by_name_subject_and_kind(store):
    for step in (1, 2):
        store.write(record(step))
    assert [each.step for each in store.metrics(SOLVE_RATE)] == [1, 2]
    assert [each.name for each in store.metrics(subject="race")] == ["reward", "reward"]
    assert [each.value for each in store.metrics(REWARD, kind="")] == [0.5, 0.5]
    assert list(store.metrics(REWARD, kind="code_o")) == []


# Steps


def test_a_step_is_there_whole_or_not_at_all(store):
    store.write(record(1))
    before = store.counts()
    twice = record(2)
    with pytest.raises(sqlite3.IntegrityError):
        store.write(replace(twice, metrics=[*twice.metrics, twice.metrics[0]]))
    assert store.counts() == before
    assert store.last_step() == 1
    store.write(twice)
    assert store.last_step() == 2


def test_dropping_leaves_what_was_there_after_that_step(store):
    for step in (1, 2):
        store.write(record(step))
    before = (store.counts(), list(store.tasks()), list(store.metrics()), list(store.timings()))
    store.write(record(3))
    store.write(record(4))
    store.journal_put(4, {"a": 1})
    store.drop_after(2)
    assert (store.counts(), list(store.tasks()), list(store.metrics()), list(store.timings())) == before
    assert store.last_step() == 2
    assert store.journal_get(["a"]) == {"a": 1}
    store.drop_after(0)
    assert set(store.counts().values()) == {0}
    assert store.last_step() == 0


def test_what_a_phase_took_can_be_told_later(store):
    store.write(record(1))
    store.add_timing(1, "checkpoint", 2.5)
    assert {each.phase: each.seconds for each in store.timings()} == {"checkpoint": 2.5, "record": 0.01, "solve": 1.5}


def test_facts_are_kept_and_changed_by_name(store):
    store.set_facts({"device": "cpu", "base": "pico"})
    store.set_facts({"device": "cuda"})
    assert store.facts() == {"base": "pico", "device": "cuda"}


def test_the_journal_gives_what_was_put_there_until_it_is_pruned(store):
    entries = {f"key {index}": {"status": "timeout", "value": [index, None]} for index in range(1200)}
    store.journal_put(1, entries)
    store.journal_put(2, {"later": 0.1})
    assert store.journal_get([*entries, "later", "never"]) == entries | {"later": 0.1}
    store.journal_prune(1)
    assert store.journal_get([*entries, "later"]) == {"later": 0.1}


# Readers and files


def test_a_reader_sees_steps_as_they_are_written_and_cannot_write(store):
    with Store.read(store.folder) as reader:
        assert reader.last_step() == 0
        store.write(record(1))
        assert reader.last_step() == 1
        reading = reader.tasks()
        next(reading)
        store.write(record(2))
        assert {row.step for row in reading} == {1}, "a reader that is at it sees one state"
        assert reader.last_step() == 2
        with pytest.raises(RunError, match="cannot be written to"):
            reader.set_facts({"a": "b"})


def test_what_is_no_run_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="is not a run folder"):
        Store.read(tmp_path)
    with pytest.raises(InputError, match="is not a run folder"):
        Store.read(tmp_path / "missing")
    (tmp_path / RECORDS).touch()
    with pytest.raises(RunError, match="does not hold the records of a run"):
        Store.read(tmp_path)


def tampered(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / RECORDS)) as db:
        for each in statements:
            db.execute(each)
        db.commit()


LACKING = {
    "DROP TABLE tasks": "browse_tasks, tasks",
    "DROP TABLE journal": "journal, journal_steps",
    "DROP TABLE metrics": "browse_metrics, metrics",
    "DROP INDEX browse_tasks": "browse_tasks",
    "DROP TABLE evidence": "evidence",
    "ALTER TABLE attempts DROP COLUMN tokens": "attempts.tokens",
}


@pytest.mark.parametrize("way", [Store.open, Store.read])
@pytest.mark.parametrize("statement", LACKING)
def test_records_that_lack_something_are_said_to_be_damaged_when_they_are_opened(tmp_path, way, statement):
    Store.create(tmp_path).close()
    tampered(tmp_path, statement)
    with pytest.raises(RunError, match=f"is damaged: it has no {LACKING[statement]};"):
        way(tmp_path)


def everything(store: Store) -> None:
    """All ways to read, but those that show one row."""
    rows = (store.tasks, store.rejections, store.meetings, store.events, store.metrics, store.timings, store.outline)
    for each in (*rows, store.keys, store.shapes, store.alarms):
        list(each())
    list(store.figures(REWARD, 0, "race"))
    for each in (store.reasons, store.facts, store.players, store.counts):
        each()
    store.attempts(1, 0), store.tallies(1, 9), store.journal_get(["job"])


TAMPERED = {
    "UPDATE tasks SET record = '{nope'": "Expecting property name",
    "UPDATE tasks SET record = '[]'": "JSON that is no dict",
    "UPDATE tasks SET record = printf('%.*c', 200000, '[')": "JSON that is nested too deeply",
    "UPDATE tasks SET text = CAST(x'fffe' AS TEXT)": "text that is not UTF-8",
    "UPDATE tasks SET text = x'fffe'": "codec can't decode",
    "UPDATE tasks SET solved = 'abc'": "no whole number",
    "UPDATE tasks SET depth = x'00'": "no whole number",
    "UPDATE rejections SET reward = 'abc'": "no number",
    "UPDATE evidence SET runs = '{}'": "JSON that is no list",
    "UPDATE metrics SET value = 'abc'": "no number",
    "UPDATE metrics SET step = 'abc'": "no whole number",
    "UPDATE timings SET seconds = 'abc'": "no number",
    "UPDATE matches SET match_result = 'abc'": "'abc' is not a valid MatchResult",
    "UPDATE events SET parents = '5'": "JSON that is no list",
    "UPDATE events SET parents = '[5]'": "no text",
    "UPDATE facts SET value = 5.5": None,
    "UPDATE facts SET value = x'ff'": "codec can't decode",
    "UPDATE journal SET value = 'nope'": "Expecting value",
}


@pytest.mark.parametrize("statement", TAMPERED)
def test_records_that_hold_what_nobody_writes_are_said_to_be_damaged(tmp_path, statement):
    with Store.create(tmp_path) as store:
        store.write(record(1))
        store.set_facts({"base": "pico"})
        store.journal_put(2, {"job": 1})
        everything(store)
    tampered(tmp_path, statement)
    with Store.read(tmp_path) as store:
        if TAMPERED[statement] is None:
            everything(store)
            return
        with pytest.raises(RunError, match=TAMPERED[statement]) as caught:
            everything(store)
    assert str(caught.value).startswith(f"{tmp_path / RECORDS} is damaged: it holds ")
    assert "\n" not in str(caught.value)


def test_records_are_not_written_over(store):
    with pytest.raises(RunError, match="is there already"):
        Store.create(store.folder)


def old_records(folder: Path) -> Path:
    """Two steps as version 1 of the records has them: without the tables that later ones brought."""
    with Store.create(folder) as store:
        for step in (1, 2):
            store.write(record(step))
    later = ("evidence", "timelines", "workers", "worker_events")
    tampered(folder, *(f"DROP TABLE {table}" for table in later), "PRAGMA user_version = 1")
    return folder


def without_evidence(step: int) -> list[RejectionRow]:
    return [replace(row, program=None, runs=None) for row in record(step).rejections]


def test_records_of_the_first_version_are_read_as_they_are(tmp_path):
    before = (old_records(tmp_path) / RECORDS).read_bytes()
    with Store.read(tmp_path) as store:
        everything(store)
        assert list(store.rejections()) == [*without_evidence(1), *without_evidence(2)]
        assert store.rejection(2, 6) == without_evidence(2)[0]
        assert store.timeline(until=2) is None
    assert (tmp_path / RECORDS).read_bytes() == before


def test_records_of_the_first_version_are_gone_on_with(tmp_path):
    with Store.open(old_records(tmp_path)) as store:
        store.drop_after(1)
        for step in (2, 3):
            store.write(record(step))
    for way in (Store.open, Store.read):
        with way(tmp_path) as store:
            expected = [*without_evidence(1), *record(2).rejections, *record(3).rejections]
            assert list(store.rejections()) == expected
            assert [row.step for row in store.tasks(limit=1, newest_first=True)] == [3]
            assert store.timeline(until=3) == TimelineRow(3, record(3).timeline)


@pytest.mark.parametrize("way", [Store.open, Store.read])
def test_records_of_the_second_version_get_what_they_lack(tmp_path, way):
    with Store.create(tmp_path) as store:
        store.write(record(1))
    later = ("timelines", "workers", "worker_events")
    tampered(tmp_path, *(f"DROP TABLE {table}" for table in later), "PRAGMA user_version = 2")
    with way(tmp_path) as store:
        assert list(store.rejections()) == list(record(1).rejections)
        assert store.timeline(until=1) is None


def test_the_newest_timeline_is_kept_with_its_step(store):
    for step in (1, 2, 3):
        store.write(replace(record(step), timeline=None) if step == 2 else record(step))
    assert [store.timeline(until=step) for step in (0, 1, 2, 3)] == [
        None,
        TimelineRow(1, record(1).timeline),
        TimelineRow(1, record(1).timeline),
        TimelineRow(3, record(3).timeline),
    ]
    store.drop_after(1)
    assert store.timeline(until=3) == TimelineRow(1, record(1).timeline)


def test_workers_are_kept_with_their_step_and_what_became_of_them_stays(store):
    for step in (1, 2):
        store.write(replace(record(step), workers=workers(step)))
        store.add_worker_events([lost(step)])
    assert store.workers(2) == workers(2)
    assert store.worker_events(newest=5) == [lost(1), lost(2)]
    assert store.worker_events(newest=1) == [lost(2)]
    store.drop_after(1)
    assert store.workers(2) == [] and store.workers(1) == workers(1)
    assert store.worker_events(newest=5) == [lost(1), lost(2)]


def test_records_of_the_first_version_that_lack_something_are_damaged_too(tmp_path):
    tampered(old_records(tmp_path), "DROP TABLE attempts")
    for way in (Store.open, Store.read):
        with pytest.raises(RunError, match="is damaged: it has no attempts;"):
            way(tmp_path)


@pytest.mark.parametrize("way", [Store.open, Store.read])
def test_records_of_a_newer_version_are_refused(tmp_path, way):
    Store.create(tmp_path).close()
    db = sqlite3.connect(tmp_path / RECORDS)
    db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    with pytest.raises(RunError, match="newer Red Queen"):
        way(tmp_path)


@pytest.mark.parametrize("way", [Store.open, Store.read])
def test_damaged_records_are_said_to_be(tmp_path, way):
    with Store.create(tmp_path) as store:
        store.write(record(1, tasks=200))
    path = tmp_path / RECORDS
    sound = path.read_bytes()
    path.write_bytes(b"not a database, but long enough to be one" * 100)
    with pytest.raises(RunError, match="is damaged"):
        way(tmp_path)
    path.write_bytes(sound[:4096] + bytes(len(sound) - 4096))
    with pytest.raises(RunError, match="is damaged"), way(tmp_path) as store:
        list(store.tasks())


def test_records_that_another_program_locks_are_said_to_be(tmp_path, monkeypatch):
    Store.create(tmp_path).close()
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    other = sqlite3.connect(tmp_path / RECORDS, isolation_level=None)
    with Store.open(tmp_path) as store:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RunError, match="locked by another program"):
            store.write(record(1))
        other.execute("ROLLBACK")
        other.close()
        store.write(record(1))
        assert store.last_step() == 1


def test_records_are_on_the_disk_before_write_returns(store):
    """What synchronous = FULL (2) and a log are for: a checkpoint must not outlive its records."""
    assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_closed_store_leaves_one_file(tmp_path):
    with Store.create(tmp_path) as store:
        store.write(record(1))
    assert [each.name for each in tmp_path.iterdir()] == [RECORDS]


def test_a_run_whose_name_is_misspelt_is_told_by_the_one_beside_it(tmp_path):
    (tmp_path / "demo").mkdir()
    Store.create(tmp_path / "demo").close()
    with pytest.raises(InputError) as refused:
        Store.read(tmp_path / "dmeo")
    assert refused.value.mend == f"did you mean {tmp_path / 'demo'}?"
