"""Matches made by hand: what they pay and who wins them, in every case that the paper has."""

import asyncio
from dataclasses import replace

import pytest
from tasks.proposing import fence, pair
from tasks.proposing import propose as one_task

from loop.scripted import Script, race, refused, riddle, sample, state, tries
from redqueen.engine.protocol import Stop
from redqueen.phases.judge import outcomes, score, withdraw
from redqueen.phases.learn import lessons
from redqueen.phases.propose import propose, verify
from redqueen.phases.race import Posed, Proposal
from redqueen.phases.solve import grade, solve
from redqueen.population.matchmaking import Match
from redqueen.population.play import play
from redqueen.population.ratings import MatchResult
from redqueen.tasks import all_kinds
from redqueen.tasks.archive import Trivial
from redqueen.tasks.code import CodeTask
from redqueen.tasks.protocol import VOID_ATTEMPT, Grade, Reason, Rejection, Task

INVALID = Rejection(Reason.SYNTAX)
ALONE = [Match("t0", ("s0",))]


def paid(posed, tried, reward: str = "paper") -> list[float]:
    return [each.reward for each in score(race({"rl": {"reward": reward}}), state(), 1, posed, tried)]


def result(matches, posed, tried, rule: str = "ours") -> list[MatchResult]:
    """Who won each meeting, with everybody at the prior's rating: a solve rate of 0.5 is foretold."""
    where = state()
    scored = score(race(), where, 1, posed, tried)
    _, meetings = play(where.population, 1, outcomes(matches, scored, tried), rule)
    return [meeting.match_result for meeting in meetings]


# What is paid


@pytest.mark.parametrize(
    ("grades", "reward"),
    [
        ("CCCCCCCC", 0.0),
        ("WWWWWWWW", 0.0),
        ("MMMMMMMM", 0.0),
        ("CWWWWWWW", 0.875),
        ("CCCCWWWM", 0.5),
        ("CCCCCCCM", 0.125),
    ],
)
def test_a_task_pays_its_teacher_the_share_that_fails_unless_all_do(grades: str, reward: float):
    assert paid([riddle(0)], tries(0, grades)) == [reward]


def test_a_proposal_that_is_no_task_costs_its_teacher_one():
    assert paid([riddle(0), refused(1, INVALID), riddle(2)], [*tries(0, "CW"), *tries(2, "WW")]) == [0.5, -1.0, 0.0]


def test_a_panel_counts_as_a_whole():
    tried = [*tries(0, "CC", "s0"), *tries(0, "WW", "s1"), *tries(1, "WW", "s0"), *tries(1, "WC", "s1")]
    assert paid([riddle(0), riddle(1)], tried) == [0.5, 0.75]


def test_a_task_whose_truth_fails_is_rejected_after_all_and_its_attempts_count_for_nobody():
    """Also those of the panel that were graded while it still held."""
    posed, tried = withdraw(
        [riddle(0), riddle(1)], [*tries(0, "CW", "s0"), *tries(0, "VVM", "s1"), *tries(1, "CW", "s0")]
    )
    assert isinstance(posed[0].task, Rejection)
    assert posed[0].task.reason is Reason.NONDETERMINISTIC
    assert isinstance(posed[1].task, Task)
    assert [each.verdict.grade for each in tried] == [*[Grade.VOID] * 5, Grade.CORRECT, Grade.WRONG]
    scored = score(race(), state(), 1, posed, tried)
    assert [each.reward for each in scored] == [-1.0, 0.5]
    assert [each.entry is None for each in scored] == [True, False]
    given = lessons(race(), scored, tried)
    assert [(each.member, each.sound, each.reward) for each in given] == [
        ("t0", False, -1.0),
        ("t0", True, 0.5),
        ("s0", True, 1.0),
        ("s0", True, -0.5),
    ]
    first, second = outcomes([Match("t0", ("s0", "s1"))], scored, tried)
    [s0], [s1] = first.kinds.values(), second.kinds.values()
    assert (len(s0.scores), s0.student_reward, s1.student_reward) == (1, 0.25, None)


def test_learnability_pays_most_for_what_is_solved_half_the_time():
    posed = [riddle(place) for place in range(4)]
    tried = [*tries(0, "WWWW"), *tries(1, "CWWW"), *tries(2, "CCWW"), *tries(3, "CCCC")]
    assert paid(posed, tried, "learnability") == [0.0, 0.75, 1.0, 0.0]


def test_what_differs_in_constants_alone_is_not_paid_as_hard():
    posed = [riddle(0, like="same"), riddle(1, like="same"), riddle(2, teacher="t1", like="same")]
    tried = [*tries(0, "CWWW"), *tries(1, "CWWW"), *tries(2, "CWWW")]
    scored = score(race(), state(), 1, posed, tried)
    assert [each.reward for each in scored] == [0.75, 0.0, 0.75]
    assert [each.entry and each.entry.trivial for each in scored] == [None, Trivial.NEAR_DUPLICATE, None]


def test_an_attempt_pays_one_if_right_and_costs_half_if_wrong_and_one_if_malformed():
    posed = [riddle(0)]
    tried = tries(0, "CWM")
    given = lessons(race(), score(race(), state(), 1, posed, tried), tried)
    assert [(each.member, each.reward, each.sound) for each in given] == [
        ("t0", pytest.approx(2 / 3), True),
        ("s0", 1.0, True),
        ("s0", -0.5, True),
        ("s0", -1.0, False),
    ]


def test_a_task_that_is_withdrawn_shows_its_program_and_what_its_truth_gave():
    task = CodeTask("code_i", "def f(x):\n    return x", ("5",), ("5",))
    truth = [replace(VOID_ATTEMPT, runs=(f"beside an attempt, f(5): ok:{value}",)) for value in (7, 8)]
    tried = [replace(each, verdict=verdict) for each, verdict in zip(tries(0, "VV"), truth, strict=True)]
    [posed], tried = withdraw([replace(riddle(0), task=task)], tried)
    assert isinstance(posed.task, Rejection)
    assert posed.task.program == task.program
    assert posed.task.runs == ("when validated, f(5): 5 in each run", "beside an attempt, f(5): ok:7")
    assert [each.verdict for each in tried] == [VOID_ATTEMPT] * 2


# Who wins


@pytest.mark.parametrize(
    ("grades", "won"),
    [
        ("CCCCCCCC", MatchResult.STUDENT),
        ("CWWWWWWW", MatchResult.TEACHER),
        ("CCCCWWWW", MatchResult.DRAW),
        ("CCCWWWWW", MatchResult.DRAW),
    ],
)
def test_a_solve_rate_above_what_was_foretold_wins_for_the_student(grades: str, won: MatchResult):
    assert result(ALONE, [riddle(0)], tries(0, grades)) == [won]


def test_by_the_papers_rule_chance_makes_no_draw():
    assert result(ALONE, [riddle(0)], tries(0, "CCCWWWWW"), "paper") == [MatchResult.TEACHER]
    assert result(ALONE, [riddle(0)], tries(0, "CCCCWWWW"), "paper") == [MatchResult.DRAW]


def test_a_teacher_without_a_valid_task_loses():
    assert result(ALONE, [refused(0, INVALID)], []) == [MatchResult.STUDENT]
    assert result(ALONE, [refused(0, INVALID)], [], "paper") == [MatchResult.STUDENT]


def test_tasks_that_nobody_solves_win_no_match_but_by_the_papers_rule():
    assert result(ALONE, [riddle(0)], tries(0, "WWWWWWWW")) == [MatchResult.STUDENT]
    assert result(ALONE, [riddle(0)], tries(0, "WWWWWWWW"), "paper") == [MatchResult.TEACHER]


def test_tasks_whose_difficulty_does_not_count_decide_no_match():
    posed = [riddle(0, like="same"), riddle(1, like="same")]
    tried = [*tries(0, "CCCCCCCC"), *tries(1, "CWWWWWWW")]
    assert result(ALONE, posed, tried) == [MatchResult.STUDENT]
    assert result(ALONE, posed, [*tries(0, "CWWWWWWW"), *tries(1, "CCCCCCCC")]) == [MatchResult.TEACHER]
    assert result(ALONE, posed, [*tries(0, "CWWWWWWW"), *tries(1, "CCCCCCCC")], "paper") == [MatchResult.STUDENT]


def test_solve_rates_are_over_all_valid_tasks_also_those_that_decide_nothing():
    posed = [riddle(0, like="same"), riddle(1, like="same")]
    tried = [*tries(0, "CCCCCCCC"), *tries(1, "CWWWWWWW")]
    [outcome] = outcomes(ALONE, score(race(), state(), 1, posed, tried), tried)
    _, [meeting] = play(state().population, 1, [outcome], "ours")
    assert (meeting.tasks, meeting.solved, meeting.attempts) == (2, 9, 16)


def test_a_task_that_another_student_of_the_panel_solves_counts_against_the_one_who_does_not():
    panel = [Match("t0", ("s0", "s1"))]
    tried = [*tries(0, "CCCCCCCC", "s0"), *tries(0, "WWWWWWWW", "s1")]
    assert result(panel, [riddle(0)], tried) == [MatchResult.STUDENT, MatchResult.TEACHER]


def test_matches_are_judged_by_their_own_tasks_and_kinds_by_theirs():
    matches = [Match("t0", ("s0",)), Match("t1", ("s1",))]
    posed = [riddle(0), refused(1, INVALID, kind="code_i"), riddle(2, 1, "t1"), riddle(3, 1, "t1", "code_f")]
    tried = [*tries(0, "CW"), *tries(2, "MM", "s1"), *tries(3, "CC", "s1")]
    scored = score(race(), state(), 1, posed, tried)
    first, second = outcomes(matches, scored, tried)
    assert (first.teacher, first.student, second.teacher, second.student) == ("t0", "s0", "t1", "s1")
    assert {kind: (len(one.scores), one.teacher_reward, one.student_reward) for kind, one in first.kinds.items()} == {
        "code_o": (1, 0.5, 0.25),
        "code_i": (0, -1.0, None),
    }
    assert {kind: (len(one.scores), one.teacher_reward, one.student_reward) for kind, one in second.kinds.items()} == {
        "code_o": (1, 0.0, -1.0),
        "code_f": (1, 0.0, 1.0),
    }


# Tricks, through the phases and the real graders

EQUAL = "class Any:\n    def __eq__(self, other):\n        return True\n\n"
ANSWERS = {
    "code_o": (
        pair("def f(x):\n    return x * 3", "4"),
        [
            fence("output", "12"),
            fence("output", "0) or (True"),
            fence("output", "type('Any', (), {'__eq__': lambda a, b: True})()"),
            fence("output", "__import__('os')._exit(0)"),
            fence("output", "4 * 3"),
            fence("output", "1..."),
        ],
    ),
    "code_i": (
        pair("def f(x):\n    return x * 3", "4"),
        [
            fence("input", "4"),
            fence("input", "0) or (True"),
            fence("input", "4) == 12 or f(4"),
            fence("input", "type('Any', (), {'__mul__': lambda a, b: a, '__eq__': lambda a, b: True})()"),
            fence("input", "2 + 2"),
            fence("input", "12"),
        ],
    ),
    "code_f": (
        fence("inputs", "1\n2\n3\n4\n5\n6\n7\n8"),
        [
            fence("python", "def f(x):\n    return x + x + x"),
            fence("python", f"{EQUAL}def f(x):\n    return Any()"),
            fence("python", "def f(x):\n    return float('nan')"),
            fence("python", "def f(x):\n    raise StopIteration(x * 3)"),
            fence("python", "def f(x):\n    return {1: 3, 2: 6, 3: 9, 4: 12}.get(x)"),
            fence("python", "def f(x):\n    import os\n    os._exit(0)"),
        ],
    ),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_of_a_students_answers_the_honest_one_alone_is_paid(kind: str, verifier):
    proposal, answers = ANSWERS[kind]
    task = one_task(all_kinds()[kind], verifier, proposal, {"program": "def f(x):\n    return x * 3"})
    assert isinstance(task, Task)
    engine = Script([sample(answer) for answer in answers])
    of = race({"tasks": {"attempts": len(answers)}}, engine, verifier)
    posed = [Posed(Proposal(0, 0, "t0", kind, 0, (7,), sample(proposal)), task)]

    async def lead():
        return await grade(of, 1, await solve(of, 1, ALONE, posed))

    tried, runs = asyncio.run(lead())
    assert tried[0].verdict.grade is Grade.CORRECT
    assert not any(each.verdict.correct for each in tried[1:])
    given = lessons(of, score(of, state(), 1, posed, tried), tried)
    assert given[1].reward == 1.0
    assert all(each.reward < 0 for each in given[2:])
    assert runs.keys() == {"s0"}


PROGRAMS = {
    "def f(x):\n    return x + 1": None,
    "def f(x):\n    return ''.join({'red', 'queen', 'race', 'run', str(x)})": Reason.NONDETERMINISTIC,
    "def f(x):\n    raise StopIteration": Reason.RAISES,
    "class Odd(Exception):\n    pass\n\ndef f(x):\n    raise Odd": Reason.RAISES,
    "def f(x):\n    return float('nan')": Reason.NOT_FINITE,
    "def f(x):\n    return 'a' * 100_000": Reason.OUTPUT_TOO_LONG,
    f"{EQUAL}def f(x):\n    return Any()": Reason.NOT_PLAIN,
    "def f(x):\n    return [x": Reason.SYNTAX,
}


def test_a_teacher_is_paid_for_none_of_the_tasks_that_cannot_be_answered(verifier):
    texts = [pair(program, "1") for program in PROGRAMS]
    engine = Script([*map(sample, texts)])
    tasks = {"prompts": 1, "proposals": len(texts), "kinds": ["code_o"]}
    of = race({"tasks": tasks, "rl": {"frozen": "teachers"}}, engine, verifier)
    of = replace(of, kinds={"code_o": all_kinds()["code_o"]})

    async def lead():
        return await verify(of, state(), 1, await propose(of, state(), 1, ALONE))

    posed, runs = asyncio.run(lead())
    reasons = [each.task.reason if isinstance(each.task, Rejection) else None for each in posed]
    assert reasons == list(PROGRAMS.values())
    scored = score(of, state(), 1, posed, tries(0, "CW"))
    assert [each.reward for each in scored] == [0.5, *[-1.0] * (len(texts) - 1)]
    assert runs.keys() == {"t0"}


def test_a_proposal_that_was_cut_is_refused_whatever_it_says(verifier):
    text = pair("def f(x):\n    return x + 1", "1")
    engine = Script([sample(text), sample(text, stop=Stop.LENGTH)])
    tasks = {"prompts": 1, "proposals": 2}
    of = race({"tasks": tasks, "guard": {"duplicates": "allow"}, "rl": {"frozen": "teachers"}}, engine, verifier)
    of = replace(of, kinds={"code_o": all_kinds()["code_o"]})

    async def lead():
        return await verify(of, state(), 1, await propose(of, state(), 1, ALONE))

    [first, second], _ = asyncio.run(lead())
    assert isinstance(first.task, Task)
    assert isinstance(second.task, Rejection)
    assert second.task.reason is Reason.CUT
    assert (second.task.program, second.task.runs) == ("def f(x):\n    return x + 1", ())
