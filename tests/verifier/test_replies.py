"""Whatever a guest writes and however it ends, there is one result per call, and no more is believed than must be."""

import signal
import time
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from redqueen.verifier.guest import literals, wire
from redqueen.verifier.jobs import Job, Limits, Mode, Result, Status
from redqueen.verifier.replies import Ending, KillReason, agree, judge, lone_deaths, max_reply_bytes, result_count

TOKEN = "5f2c"
LIMITS = Limits(cpu_s=1.0, value_chars=30, stdout_bytes=50)
JOBS = {
    Mode.CALLS: Job.calls("def f(x): return x", ["1", "2"], limits=LIMITS),
    Mode.PROGRAM: Job.program("print(1)", limits=LIMITS),
    Mode.LITERALS: Job.literals(["1", "2", "3"], limits=LIMITS),
    Mode.ARGUMENTS: Job.arguments(["1, n=2"], limits=LIMITS),
}
PERFECT = {Mode.CALLS: "ok 1", Mode.PROGRAM: "ok '1'", Mode.LITERALS: "ok 1", Mode.ARGUMENTS: "ok 1, n=2"}

modes = pytest.mark.parametrize("mode", JOBS, ids=str)
unhurried = settings(deadline=None)


def frame(*lines: str, token: str = TOKEN) -> bytes:
    return "\n".join([token, *lines, "end\n"]).encode()


def perfect(job: Job) -> bytes:
    return frame(*[PERFECT[job.mode]] * result_count(job))


def ended(data: bytes, wait_status: int = 0, **rest) -> Ending:
    return Ending(wait_status=int(wait_status), data=data, **rest)


def statuses(job: Job, ending: Ending) -> set[Status]:
    results = judge(job, TOKEN, ending)
    assert len(results) == result_count(job)
    return {result.status for result in results}


def line_result(line: str, mode: Mode = Mode.ARGUMENTS) -> Result:
    """What one line of an otherwise perfect reply comes to."""
    job = JOBS[mode]
    wanted = result_count(job)
    *others, last = judge(job, TOKEN, ended(frame(*[PERFECT[mode]] * (wanted - 1), line)))
    assert {result.status for result in others} <= {Status.OK}
    return last


lines = st.one_of(
    st.text(st.characters(max_codepoint=127), max_size=20),
    st.builds(
        "{} {}".format,
        st.sampled_from(["ok", "exc", "toolong", "end", ""]),
        st.sampled_from(["1", "'a'", "[1, 2]", "n=1", "1, n=2", "{2, 1}", "nan", "ValueError", "", " 1", "1 ", "a b"]),
    ),
    st.sampled_from(["toolong", "opaque", "memory", "ok", "exc", "timeout", "violation", TOKEN]),
)
replies = (
    st.binary(max_size=60)
    | st.lists(lines, max_size=4).map(lambda some: frame(*some))
    | st.sampled_from([b"", perfect(JOBS[Mode.CALLS])])
)
wait_statuses = st.just(0) | st.integers(0, 0xFFFF) | st.integers(-(2**31), 2**31 - 1)
ends = st.none() | st.sampled_from(KillReason)


@settings(unhurried, max_examples=400)
@given(st.sampled_from(list(JOBS.values())), replies, wait_statuses, st.booleans(), st.booleans(), ends, st.booleans())
@example(JOBS[Mode.CALLS], f"{TOKEN}\nend\n".encode(), 0, False, False, None, True)  # head and tail share a newline
@example(JOBS[Mode.PROGRAM], f"{TOKEN}\n\nend\n".encode(), 0, False, False, None, True)
@example(JOBS[Mode.PROGRAM], f"{TOKEN}\nok {'[' * 500}\nend\n".encode(), 0, False, False, None, True)
def test_any_ending_comes_to_one_result_per_call(job, data, wait_status, spent, early, killed_for, contained):
    ending = Ending(wait_status=wait_status, data=data, spent=spent, early=early, killed_for=killed_for)
    results = judge(job, TOKEN, ending, contained)
    assert len(results) == result_count(job)
    for result in results:
        assert (result.value is not None) == (result.status is Status.OK)
        assert (result.exception is not None) == (result.status is Status.EXCEPTION)
        if result.value is not None:
            assert wait_status == 0
            (literals.parse_arguments if job.mode is Mode.ARGUMENTS else literals.parse)(result.value)
        if result.exception is not None:
            assert result.exception.isidentifier()


@modes
def test_a_perfect_reply_is_believed(mode):
    results = judge(JOBS[mode], TOKEN, ended(perfect(JOBS[mode])))
    assert results == (Result(Status.OK, value=PERFECT[mode].removeprefix("ok ")),) * result_count(JOBS[mode])


def test_a_program_has_one_result_and_other_jobs_one_per_text():
    assert [result_count(JOBS[mode]) for mode in (Mode.CALLS, Mode.PROGRAM, Mode.LITERALS, Mode.ARGUMENTS)] == [
        2,
        1,
        3,
        1,
    ]


def test_each_line_is_the_result_of_its_own_call():
    results = judge(JOBS[Mode.LITERALS], TOKEN, ended(frame("ok 1", "exc ValueError", "opaque")))
    assert [result.verdict for result in results] == ["ok:1", "exc:ValueError", "opaque"]


# The exit status wins


CORE_DUMPED = 0x80


@pytest.mark.parametrize(
    ("wait_status", "status"),
    [
        (signal.SIGSYS, Status.VIOLATION),
        (signal.SIGSYS | CORE_DUMPED, Status.VIOLATION),
        (signal.SIGSEGV, Status.CRASH),
        (signal.SIGABRT, Status.CRASH),
        (signal.SIGBUS, Status.CRASH),
        (signal.SIGVTALRM, Status.TIMEOUT),
        (signal.SIGXCPU, Status.CRASH),
        (signal.SIGKILL, Status.FAULT),
        (wire.NOT_STARTED, Status.FAULT),
        (0 << 8 | 0x7F, Status.NO_RESULT),  # stopped
        (1 << 8, Status.NO_RESULT),
        (111 << 8, Status.NO_RESULT),
        (137 << 8, Status.NO_RESULT),
        (159 << 8, Status.NO_RESULT),
    ],
)
@modes
def test_the_exit_status_wins_over_a_perfect_reply(mode, wait_status, status):
    job = JOBS[mode]
    assert statuses(job, ended(perfect(job), wait_status)) == {status}


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ({"spent": True}, Status.TIMEOUT),
        ({"killed_for": KillReason.OVERDUE}, Status.FAULT),
    ],
    ids=["out of time", "overdue"],
)
def test_a_kill_is_the_machines_unless_we_know_what_it_was_for(how, status):
    job = JOBS[Mode.CALLS]
    assert statuses(job, ended(b"", signal.SIGKILL, **how)) == {status}


def test_where_nothing_contains_a_guest_a_kill_may_be_its_own_doing():
    job = JOBS[Mode.CALLS]
    for stopped, status in ((None, Status.CRASH), (KillReason.OVERDUE, Status.TIMEOUT)):
        results = judge(job, TOKEN, ended(b"", signal.SIGKILL, killed_for=stopped), contained=False)
        assert {result.status for result in results} == {status}


def test_only_an_end_by_the_wider_limit_is_doubted():
    doubted = [number for number in signal.valid_signals() if ended(b"", number, spent=True).doubtful]
    assert doubted == [signal.SIGKILL]
    assert not ended(b"", signal.SIGKILL).doubtful
    assert not ended(b"", 0, spent=True, early=True).doubtful


def test_a_timer_that_fires_before_the_time_is_over_is_not_believed():
    too_soon = [number for number in signal.valid_signals() if ended(b"", number, early=True).too_soon]
    assert too_soon == [signal.SIGVTALRM]
    assert ended(b"", signal.SIGVTALRM, early=True).doubtful
    assert not ended(b"", signal.SIGVTALRM).doubtful


@modes
@pytest.mark.parametrize("wait_status", [0, signal.SIGKILL, signal.SIGSYS, signal.SIGVTALRM])
def test_a_flood_is_too_long_wherever_it_was_noticed(mode, wait_status):
    flood = b"x" * (max_reply_bytes(JOBS[mode]) + 1)
    assert statuses(JOBS[mode], ended(flood, wait_status, killed_for=KillReason.FLOOD)) == {Status.TOO_LONG}


@modes
def test_time_alone_condemns_no_one_who_came_back(mode):
    assert statuses(JOBS[mode], ended(perfect(JOBS[mode]), 0, spent=True)) == {Status.OK}


# Then the frame


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: b"x" + data,
        lambda data: b"\n" + data,
        lambda data: data + b"x",
        lambda data: data + b"\n",
        lambda data: data + data,
        lambda data: data[:-1],
        lambda data: data[1:],
        lambda data: data[:-5] + b"end",
        lambda data: data.replace(b"end", b"END"),
        lambda data: data.replace(TOKEN.encode(), b"0000"),
        lambda data: data.replace(TOKEN.encode() + b"\n", TOKEN.encode() + b"0\n"),
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.replace(b"ok", b"\xff"),
        lambda data: data.replace(b"ok", "ök".encode()),
        lambda data: data.replace(b"\nend\n", b"\nok 1\nend\n"),
        lambda data: data.replace(b"\nend\n", b"\n\nend\n"),
        lambda data: data.replace(b"\nend\n", b"\nend\nend\n"),
        lambda data: TOKEN.encode() + b"\nend\n",
        lambda data: TOKEN.encode() + b"\n",
        lambda data: b"end\n",
    ],
)
@modes
def test_a_reply_that_is_not_exactly_one_frame_is_no_result(mode, spoil):
    job = JOBS[mode]
    spoilt = spoil(perfect(job))
    assert spoilt != perfect(job)
    assert statuses(job, ended(spoilt)) == {Status.NO_RESULT}


@pytest.mark.parametrize("count", [0, 1, 2, 4, 5])
def test_a_wrong_number_of_results_is_no_result(count):
    assert statuses(JOBS[Mode.LITERALS], ended(frame(*["ok 1"] * count))) == {Status.NO_RESULT}


@modes
def test_a_reply_longer_than_any_right_one_is_too_long(mode):
    job = JOBS[mode]
    for size, status in ((max_reply_bytes(job), Status.NO_RESULT), (max_reply_bytes(job) + 1, Status.TOO_LONG)):
        assert statuses(job, ended(b"x" * size)) == {status}


@modes
def test_the_longest_right_reply_fits(mode):
    job = replace(JOBS[mode], limits=Limits(value_chars=4000, stdout_bytes=4000))
    longest = "\udcff" * 4000 if mode is Mode.PROGRAM else 10**3999
    line = "ok " + ascii(longest)
    assert statuses(job, ended(frame(*[line] * result_count(job)))) == {Status.OK}


# Then the lines


@pytest.mark.parametrize(
    "text", [" 1", "1 ", "01", "[1,2]", "{2, 1}", '"a"', "x", "f(1)", "(1", "[" * 25, "1\r", "'\\x41'", "\0"]
)
@modes
def test_a_value_that_is_not_canonical_is_a_bad_reply(mode, text):
    assert line_result(f"ok {text}", mode) == Result(Status.BAD_REPLY)


@pytest.mark.parametrize("mode", [Mode.CALLS, Mode.LITERALS], ids=str)
def test_a_value_is_one_value(mode):
    assert line_result("ok ", mode) == Result(Status.BAD_REPLY)
    assert line_result("ok", mode) == Result(Status.BAD_REPLY)
    assert line_result("ok 1, 2", mode) == Result(Status.BAD_REPLY)
    assert line_result("ok n=1", mode) == Result(Status.BAD_REPLY)


def test_arguments_are_none_or_some_or_many():
    for text in ("", "1", "1, 2", "n=1", "1, [2], n={3}"):
        assert line_result(f"ok {text}", Mode.ARGUMENTS) == Result(Status.OK, value=text)


UNKNOWN = [
    "", " ", "OK 1", "okay", "ok1", " ok 1", "oops", "end", "1", "Exc ValueError", "excValueError",
    "timeout", "violation", "crash", "noresult", "nondet", "badreply", "toolong ", "toolong 1", "opaque x", "memory\r",
]  # fmt: skip


@pytest.mark.parametrize("line", UNKNOWN)
@modes
def test_an_unknown_word_is_a_bad_reply(mode, line):
    """The words for how a process ended are the host's to say, not the guest's."""
    assert line_result(line, mode) == Result(Status.BAD_REPLY)


@pytest.mark.parametrize(
    ("word", "status"), [("toolong", Status.TOO_LONG), ("opaque", Status.OPAQUE), ("memory", Status.MEMORY)]
)
@modes
def test_a_guest_may_say_why_it_has_no_value(mode, word, status):
    assert line_result(word, mode) == Result(status)


@pytest.mark.parametrize("name", ["ValueError", "E", "_Private1", "a" * 100])
@modes
def test_an_exception_has_its_name(mode, name):
    assert line_result(f"exc {name}", mode) == Result(Status.EXCEPTION, exception=name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a" * 101,
        "a b",
        "1a",
        "a.b",
        "<b>",
        "\x1b[31m",
        "a\r",
        "ok:1",
        "a|b",
        "ValueError ",
        " ValueError",
        "\0",
    ],
)
@modes
def test_an_evil_exception_name_is_not_repeated(mode, name):
    assert line_result(f"exc {name}", mode) == Result(Status.EXCEPTION, exception="badname")
    assert line_result("exc", mode) == Result(Status.EXCEPTION, exception="badname")


@pytest.mark.parametrize("mode", [Mode.CALLS, Mode.LITERALS, Mode.ARGUMENTS], ids=str)
def test_a_value_over_its_limit_is_too_long_and_never_cut(mode):
    most = LIMITS.value_chars
    assert line_result("ok " + "1" * most, mode) == Result(Status.OK, value="1" * most)
    assert line_result("ok " + "1" * (most + 1), mode) == Result(Status.TOO_LONG)


@pytest.mark.parametrize("text", ["1", "None", "[]", "b'a'", "{'a'}"])
def test_what_a_program_printed_is_text(text):
    assert line_result(f"ok {text}", Mode.PROGRAM) == Result(Status.BAD_REPLY)


def test_what_a_program_says_is_read_at_once():
    """Integers that hash alike: a set of them is built in time that grows with the square of its size."""
    job = Job.program("")
    data = frame("ok {" + ", ".join(str((2**61 - 1) * at) for at in range(8_000)) + "}")
    assert len(data) < max_reply_bytes(job)
    start = time.process_time()
    judge(job, TOKEN, ended(data))
    assert time.process_time() - start < 0.3


def test_a_program_that_printed_more_than_it_may_is_too_long():
    for printed in ("a" * LIMITS.stdout_bytes, "é" * (LIMITS.stdout_bytes // 2), "\udcff" * LIMITS.stdout_bytes):
        assert line_result("ok " + ascii(printed), Mode.PROGRAM).status is Status.OK
        assert line_result("ok " + ascii(printed + "a"), Mode.PROGRAM) == Result(Status.TOO_LONG)


def test_a_program_prints_no_lone_surrogates_but_those_that_stand_for_bytes():
    assert line_result("ok '\\ud800'", Mode.PROGRAM) == Result(Status.BAD_REPLY)


# Several runs


def ok(text: str) -> Result:
    return Result(Status.OK, value=text)


def exception(name: str) -> Result:
    return Result(Status.EXCEPTION, exception=name)


def together(one: Result, other: Result) -> Result:
    (result,) = agree([(one,), (other,)])
    return result


DEATHS = [status for status in Status if status not in (Status.OK, Status.EXCEPTION)]


@pytest.mark.parametrize(
    "result", [ok("1"), ok("nan"), ok("{1: 2}"), exception("E"), *map(Result, DEATHS)], ids=lambda r: r.verdict
)
def test_equal_results_are_the_result(result):
    assert together(result, result) == result


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ok("1"), ok("2")),
        (ok("1"), ok("1.0")),
        (ok("1"), ok("True")),
        (ok("[1]"), ok("(1,)")),
        (ok("[1, 2]"), ok("[2, 1]")),
        (ok("{1: 2}"), ok("{True: 2}")),
        (ok("0.3"), ok("0.30000000000000004")),
        (ok("[0.3]"), ok("[0.30000000000000004]")),
        (ok("nan"), ok("inf")),
        (ok("1"), exception("ValueError")),
        (exception("ValueError"), exception("KeyError")),
    ],
)
def test_results_that_differ_are_nondeterministic(one, other):
    assert together(one, other) == Result(Status.NONDETERMINISTIC)
    assert together(other, one) == Result(Status.NONDETERMINISTIC)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("{1: 2, 3: 4}", "{3: 4, 1: 2}"),
        ("[{'a': {1: 2, 3: 4}, 'b': 1}]", "[{'b': 1, 'a': {3: 4, 1: 2}}]"),
        ("{1: nan, 2: 0.5}", "{2: 0.5, 1: nan}"),
    ],
)
def test_runs_that_differ_in_the_order_of_a_dict_agree_on_the_first(one, other):
    assert together(ok(one), ok(other)) == ok(one)
    assert together(ok(other), ok(one)) == ok(other)


@pytest.mark.parametrize("death", DEATHS, ids=str)
def test_a_death_wins_over_a_value_and_an_exception(death):
    for alive in (ok("1"), exception("ValueError")):
        assert together(alive, Result(death)) == Result(death)
        assert together(Result(death), alive) == Result(death)


def test_of_two_deaths_the_first_run_tells():
    assert together(Result(Status.TIMEOUT), Result(Status.MEMORY)) == Result(Status.TIMEOUT)


def test_calls_agree_one_by_one_and_none_is_forgotten():
    first = (ok("1"), ok("2"), exception("E"))
    second = (ok("1"), ok("3"), Result(Status.TIMEOUT))
    assert [result.verdict for result in agree([first, second])] == ["ok:1", "nondet", "timeout"]
    with pytest.raises(ValueError):
        agree([first, second[:2]])


def test_one_run_of_many_that_differs_is_enough():
    same, other = (ok("1"),), (ok("2"),)
    assert agree([same] * 7) == same
    for place in range(7):
        assert agree([*[same] * place, other, *[same] * (7 - place)])[0].status is Status.NONDETERMINISTIC


def test_a_death_asks_for_a_second_look_where_another_run_lived():
    lived, died, raised = (ok("1"), ok("2")), (ok("1"), Result(Status.MEMORY)), (ok("1"), exception("E"))
    late = (Result(Status.TIMEOUT),) * 2
    assert lone_deaths([lived, died]) == [1]
    assert lone_deaths([late, raised, died]) == [0, 2]
    assert lone_deaths([late, died]) == []
    assert lone_deaths([late]) == []
    assert lone_deaths([lived, raised]) == []


@pytest.mark.parametrize("mode", [Mode.LITERALS, Mode.ARGUMENTS], ids=str)
def test_reading_text_is_never_done_twice(mode):
    with pytest.raises(ValueError, match="several seeds"):
        Job(mode=mode, texts=("1",), seeds=2)
    assert JOBS[mode].seeds == 1
