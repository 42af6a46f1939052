"""Where a step's seconds go: rows in flight, and what is done while there are none."""

import xml.etree.ElementTree as ET

import pytest

from redqueen.phases.clock import STREAM
from redqueen.phases.timeline import BINS, Timeline, gaps, merged, rows_in_flight
from redqueen.training.step_picture import picture, text_plot

PHASES = [
    ("evolve", (100.0, 101.0)),
    (STREAM, (101.0, 105.0)),
    ("grade", (105.0, 105.5)),
    ("update", (105.5, 109.0)),
    ("evolve", (109.0, 109.0001)),
    ("measure", (109.0001, 110.0)),
]
PROPOSALS = [(101.0, 102.0), (101.0, 102.5), (101.3, 103.0)]
ATTEMPTS = [(102.75, 104.0), (104.5, 104.75)]
STEP = Timeline.of(PHASES, PROPOSALS, ATTEMPTS, {"code_o": (24, 0.5)})


def lasting(spans) -> float:
    return sum(ended - began for began, ended in spans)


def test_rows_are_counted_by_the_part_of_a_bin_that_they_take():
    assert rows_in_flight([(0.0, 4.0), (1.0, 1.5), (3.75, 9.0)], (0.0, 4.0), 4) == (1.0, 1.5, 1.0, 1.25)
    assert rows_in_flight([(-5.0, -1.0), (0.0, 0.0), (7.0, 8.0)], (0.0, 4.0), 2) == (0.0, 0.0)


def test_what_rows_take_is_the_area_under_them():
    assert STEP.seconds == pytest.approx(10.0)
    assert len(STEP.proposals) == len(STEP.attempts) == BINS
    for rows, spans in ((STEP.proposals, PROPOSALS), (STEP.attempts, ATTEMPTS), (STEP.rows, PROPOSALS + ATTEMPTS)):
        assert sum(rows) * STEP.seconds / BINS == pytest.approx(lasting(spans))
    assert max(STEP.proposals) == pytest.approx(3.0)


def test_other_phases_and_what_the_stream_waited_for_are_told_apart():
    assert [phase for phase, _, _ in STEP.others] == [
        "evolve",
        "verify",
        "verify",
        "grade",
        "update",
        "evolve",
        "measure",
    ]
    assert [span for phase, *span in STEP.others if phase == "verify"] == [[4.0, 4.5], [4.75, 5.0]]
    assert lasting((began, ended) for _, began, ended in STEP.others) + lasting(merged(PROPOSALS + ATTEMPTS)) == (
        pytest.approx(STEP.seconds)
    )


def test_a_step_without_a_text_is_all_waiting():
    bare = Timeline.of(PHASES, [], [(0.0, 0.0)], {})
    assert set(bare.rows) == {0.0}
    assert ("verify", 1.0, 5.0) in bare.others
    assert text_plot(bare, 0.0) == " " * BINS
    assert ET.fromstring(picture({"bare": bare})) is not None


def test_spans_that_touch_or_overlap_are_one():
    assert merged([(5, 6), (0, 2), (1, 1.5), (2, 3), (8, 9)]) == [(0, 3), (5, 6), (8, 9)]
    assert merged([]) == []
    assert gaps([(1, 2), (4, 9)], (0, 5)) == [(0, 1), (2, 4)]
    assert gaps([(-3, -1), (6, 7)], (0, 5)) == [(0, 5)]
    assert gaps([(-1, 7)], (0, 5)) == []


def test_what_is_written_down_is_short_and_comes_back():
    record = STEP.as_record()
    numbers = [*record["proposals"], *record["attempts"], *(ms for _, *span in record["others"] for ms in span)]
    assert all(type(number) is int for number in (record["ms"], *numbers))
    again = Timeline.of_record(record)
    assert again.seconds == pytest.approx(STEP.seconds, abs=1e-3)
    assert again.rows == pytest.approx(STEP.rows, abs=0.02)
    assert sum(record["proposals"]) == pytest.approx(1000 * lasting(PROPOSALS), abs=BINS / 2)
    # What took less than a millisecond is not among them.
    assert [phase for phase, _, _ in again.others] == ["evolve", "verify", "verify", "grade", "update", "measure"]


def test_a_line_of_text_rises_and_falls_with_the_rows():
    line = text_plot(STEP, max(STEP.rows))
    assert len(line) == BINS
    assert line[:6] == " " * 6 and line[33:] == " " * (BINS - 33)
    assert line[10] == "█" and line[15] == "▃"
    assert text_plot(STEP, 100 * max(STEP.rows))[10] == "▁"


def test_a_picture_has_a_panel_for_each_arm_with_axes_and_a_legend():
    half = Timeline.of([(STREAM, (0.0, 5.0))], [(0.0, 5.0)], [], {})
    root = ET.fromstring(picture({"population <&>": STEP, "single": half}))
    svg = "{http://www.w3.org/2000/svg}"
    texts = [each.text for each in root.iter(f"{svg}text")]
    assert "population <&>: a step of 10.00 s" in texts and "single: a step of 5.00 s" in texts
    assert texts.count("seconds") == texts.count("rows in flight") == 2
    assert {"0", "2", "10"} <= set(texts), "both panels have the longer step's scale"
    assert {"proposals", "attempts", "evolve", "verify", "grade", "update", "measure"} <= set(texts)
    named = [each.find(f"{svg}title").text for each in root.iter(f"{svg}rect") if each.find(f"{svg}title") is not None]
    assert "update, 3.50 s" in named and len(named) == 6, "what is too short to be seen is not drawn"
    assert root.find(f"{svg}rect").get("fill") == "#ffffff"
