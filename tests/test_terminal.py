"""What a race shows: enough in 80 columns, plain lines for pipes, and nothing of a model that acts on a terminal."""

import io
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from runs.making import lost, workers

from redqueen.console import cut, span_text
from redqueen.phases.view import HardTask, MemberLine, Quiet, StepSummary, View
from redqueen.runs.metrics import METRICS
from redqueen.settings.models import RunConfig
from redqueen.ui.live import MOST_WORKERS, Live, Pace, Plain, open_view, step_line, worker_event_line

CSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m[red]x[/red] :skull: \u202eabc\r\x08\u2028[link=file:///etc]y[/link]"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\x9b31m[red]x[/red] :skull: \u202eabc\r\x08\u2028[link=file:///etc]y[/link]"


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def member(id: str, mu: float | None = 25.0, **more: float | None) -> MemberLine:
    """With these figures by name; None for none."""
    figures = {"mu": mu, "sigma": 2.5, "reward": 0.1, "valid": 0.9, "solve_rate": 0.4, "entropy": 0.61} | more
    known = {METRICS[name]: value for name, value in figures.items() if value is not None}
    return MemberLine(id=id, role="teacher" if id[0] == "t" else "student", born=0, figures=known)


def summary(**more) -> StepSummary:
    facts = {
        "step": 12, "steps": 200, "steps_left": 200 - more.get("step", 12), "seconds": 3.1,
        "phases": {"propose": 1.0, "solve": 1.6, "update": 0.5},
        "sampled_tokens": 29177,
        "members": [member("t0", reward=-0.2), member("t1", reward=-0.04), member("s0", reward=0.08)],
        "solve_rates": {"code_o": 0.42, "code_i": 0.3, "code_f": None}, "proposals": 48, "tasks": 31,
        "hard_task": None, "alarms": [], "events": [],
    }  # fmt: skip
    return StepSummary(**{**facts, **more})


def hard(text: str = "def f(x):\n    return x", asked: str = "3") -> HardTask:
    return HardTask(kind="code_o", teacher="t1", solve_rate=0.25, text=text, asked=asked)


def live_output(summaries: Sequence[StepSummary], said: Sequence[str] = (), width: int = 80, height: int = 40) -> str:
    file = Tty()
    console = Console(file=file, force_terminal=True, width=width, height=height, color_system="truecolor")
    view = Live(console)
    view.started({"base": "tiny"}, 0, "200", ["a note"])
    for each in summaries:
        view.phase(each.step, "propose")
        view.step_done(each)
    for line in said:
        view.say(line)
    view.finished(["the end"])
    view.close()
    return file.getvalue()


def last_frame(summaries: Sequence[StepSummary], **size: int) -> list[str]:
    """What stays on the screen."""
    text = CSI.sub("", live_output(summaries, **size)).replace("\r", "")
    return text[text.rindex(f"step {summaries[-1].step}/200") :].splitlines()


def plain_output(summaries: Sequence[StepSummary], said: Sequence[str] = ()) -> str:
    file = io.StringIO()
    view = Plain(Console(file=file))
    view.started({"base": "tiny", "device": "cpu"}, 11, "200", ["a note"])
    for each in summaries:
        view.phase(each.step, "propose")
        view.step_done(each)
    for line in said:
        view.say(line)
    view.finished(["the end"])
    view.close()
    return file.getvalue()


def test_a_step_is_one_plain_line():
    assert step_line(summary(), "9 min") == (
        "step 12/200  31 of 48 tasks  solved code_o 0.42 code_i 0.30 code_f -  reward t -0.12 s 0.08"
        "  9,412 tok/s  3.1 s  eta 9 min"
    )


def test_plain_lines_are_not_wrapped_and_hold_notes_events_and_alarms():
    lines = plain_output([summary(alarms=["t0 is mute"], events=["s3 dies, s3.1 is born"])]).splitlines()
    assert lines[:3] == ["base tiny, device cpu", "going on after step 11 of 200", "a note"]
    assert lines[3].startswith("step 12/200  31 of 48 tasks") and lines[3].endswith("eta 10 min")
    assert lines[4:] == ["step 12: s3 dies, s3.1 is born", "step 12: alarm: t0 is mute", "the end"]


def test_a_step_without_anything_to_measure_is_shown():
    bare = summary(
        members=[member("t0", None, sigma=None, reward=None, valid=None, solve_rate=None, entropy=None)],
        solve_rates={}, proposals=0, tasks=0, seconds=0.0, phases={}, sampled_tokens=0,
    )  # fmt: skip
    assert step_line(bare, "") == "step 12/200  0 of 0 tasks  - tok/s  0.0 s"
    assert any(re.fullmatch(r"t0 +teacher +- +- +- +- +- +0 *", line) for line in last_frame([bare]))


def test_the_view_suits_where_the_output_goes(monkeypatch):
    assert isinstance(open_view(True, Console(file=Tty(), force_terminal=True)), Quiet)
    assert isinstance(open_view(False, Console(file=Tty(), force_terminal=True)), Live)
    assert isinstance(open_view(False, Console(file=io.StringIO())), Plain)
    assert isinstance(open_view(False, Console(file=io.StringIO(), force_terminal=True)), Plain)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(open_view(False, Console(file=Tty())), Plain)


def test_a_quiet_view_shows_nothing(capfd):
    view: View = Quiet()
    view.started({"base": "tiny"}, 0, "200", ["a note"])
    view.phase(1, "propose")
    view.step_done(summary(alarms=["t0 is mute"]))
    view.say("a line")
    view.finished(["the end"])
    view.close()
    assert capfd.readouterr() == ("", "")


def test_the_live_view_shows_all_there_is_to_see_in_80_columns():
    whole = summary(
        members=[member("t0", 22.0), member("s1.12", 31.25, sigma=1.04), member("s0", None, sigma=None)],
        hard_task=hard("def f(x):\n\treturn sorted(x)[" + "0" * 100 + "]"),
        alarms=["the entropy of t0 fell to 0.01"],
    )
    frame = last_frame([whole])
    text = "\n".join(frame)
    assert frame[0].split("  ") == ["step 12/200", "9,412 tok/s", "3.1 s a step", "eta 10 min"]
    assert "31 of 48 tasks  solved code_o 0.42 code_i 0.30 code_f -" in text
    assert "time propose 32%  solve 52%  update 16%" in text
    ranked = [line.split()[0] for line in frame if re.match(r"[ts]\d", line)]
    assert ranked == ["s1.12", "t0", "s0"], "the table is not sorted by rating"
    assert re.search(r"s1\.12 +student +31\.2 ±1\.0", text)
    assert "hard task of step 12: code_o by t1, solved 0.25" in text
    assert "      return sorted(x)[000" in text and "0..." in text and "asked: 3" in text
    assert "step 12: the entropy of t0 fell to 0.01" in text
    assert max(cell_len(line) for line in frame) <= 80
    assert frame[-1] == "the end"


def test_the_last_hard_task_stays_until_there_is_another():
    text = "\n".join(last_frame([summary(hard_task=hard()), summary(step=13)]))
    assert "hard task of step 12" in text


def test_long_programs_are_cut():
    frame = last_frame([summary(hard_task=hard("\n".join(f"x{n} = {n}" for n in range(30))))])
    assert "  x7 = 7" in frame and "  x8 = 8" not in frame and "  ... 22 more lines" in frame


@pytest.mark.parametrize("height", [24, 40])
def test_a_large_population_fits_the_terminal(height):
    many = [member(f"s{n}", float(n)) for n in range(64)]
    frame = last_frame([summary(members=many, hard_task=hard(), alarms=["x"])], height=height)[:-1]
    assert len(frame) < height
    shown = [line.split()[0] for line in frame if re.match(r"s\d", line)]
    assert {"s63", "s0"} <= set(shown)
    [left_out] = [int(line.split()[0]) for line in frame if line.rstrip().endswith("more")]
    assert left_out + len(shown) == 64


def test_the_live_view_says_where_members_are_who_is_slow_and_who_died():
    frame = last_frame([summary(workers=workers(12), worker_events=[lost(12)]), summary(step=13, workers=workers(13))])
    assert "worker 0 on gpu-0: t0, s0  1.0 times the others  sample 0.05 s  update 0.2 s" in frame
    assert "worker 1 on gpu-1: t1, s1  3.0 times the others  sample 0.15 s  update 0.2 s" in frame
    assert worker_event_line(lost(12)).endswith(" worker 1 died: exit code 137 <b>")
    assert worker_event_line(lost(12)) in frame
    assert not any("worker" in line for line in last_frame([summary()]))


def test_of_many_workers_the_slowest_are_shown():
    [first, slow] = workers(12)
    many = [replace(first, worker=f"worker {number}") for number in range(3 * MOST_WORKERS)]
    frame = last_frame([summary(workers=[*many, replace(slow, worker="worker 99")])])
    shown = [line for line in frame if line.startswith("worker ")]
    assert len(shown) == MOST_WORKERS and shown[-1].startswith("worker 99 on gpu-1")
    assert f"{2 * MOST_WORKERS + 1} workers more" in frame


def test_a_narrow_terminal_breaks_no_line():
    frame = last_frame([summary(hard_task=hard("x = '" + "漢" * 60 + "'"), members=[])], width=40)
    assert max(cell_len(line) for line in frame) <= 40
    assert any(line.endswith("漢...") for line in frame)


def test_what_a_model_wrote_is_shown_and_never_obeyed():
    told = summary(hard_task=hard(f"a{HOSTILE}", HOSTILE), alarms=[HOSTILE], events=[HOSTILE])
    live = live_output([told], [HOSTILE], width=200)
    assert SHOWN in CSI.sub("", live), "it is not shown as it was written"
    plain = plain_output([told], [HOSTILE])
    assert plain.count(SHOWN) == 3
    for output in (CSI.sub("", live), plain):
        assert not set(re.findall(r"[^\x20-\x7e\n\r]", output)) - set("±─━╌"), "a control character came through"
    # Nothing but what rich uses to draw: colours, lines up and cleared, the cursor off and on.
    assert {code[-1] for code in CSI.findall(live)} <= set("mAKhl")
    assert "\x1b]" not in live


@given(st.text(), st.integers(0, 30))
def test_a_cut_text_is_never_wider_than_it_may_be(text, width):
    short = cut(text, width)
    assert cell_len(short) <= width
    assert short == text or (cell_len(text) > width and (width < 3 or short.endswith("...")))


def test_the_eta_goes_by_the_median_of_recent_steps():
    pace = Pace()
    assert pace.eta(10) == ""
    for seconds in (100.0, 2.0, 2.0):
        pace.add(seconds)
    assert pace.eta(10) == "20 s" and pace.eta(0) == ""
    for _ in range(20):
        pace.add(60.0)
    assert pace.eta(9) == "9 min"


def test_a_race_that_ends_by_its_operations_says_about_when():
    soon = summary(steps_left=18)
    assert step_line(soon, "1 min").startswith("step 12/~30  31 of 48 tasks")
    [line] = [line for line in plain_output([soon]).splitlines() if line.startswith("step 12/~30")]
    assert line.endswith("eta 56 s")
    assert step_line(summary(steps_left=0), "").startswith("step 12/12  31")
    last = CSI.sub("", live_output([soon])).replace("\r", "")
    assert "step 12/~30  9,412 tok/s  3.1 s a step  eta 56 s" in last


@pytest.mark.parametrize(
    ("flops", "spent", "left"),
    [(None, 100, 88), (1000, 100, 88), (500, 100, 48), (105, 100, 1), (100, 100, 0), (90, 100, 0), (500, 0, 88)],
)
def test_how_many_steps_are_left_goes_by_those_so_far(flops, spent, left):
    assert RunConfig(steps=100, flops=flops).steps_left(12, spent) == left


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (99, "99 s"), (540, "9 min"), (12_000, "3 h 20 min"), (10_800, "3 h"), (187_200, "2 d 4 h"),
     (172_800, "2 d")],
)  # fmt: skip
def test_spans_of_time_read_well(seconds, text):
    assert span_text(seconds) == text


def test_a_closed_view_gives_the_terminal_back():
    file = Tty()
    view = Live(Console(file=file, force_terminal=True, width=80, height=24))
    view.started({}, 0, "2", [])
    view.phase(1, "solve")
    view.close()
    view.close()
    text = file.getvalue()
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l"), "the cursor is still hidden"
    view.say("after")
    assert file.getvalue().endswith("after\n")


def test_a_summary_may_come_without_members():
    assert "reward" not in step_line(replace(summary(), members=[]), "")
