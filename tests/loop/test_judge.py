"""Matches made by hand: what they pay and who wins them, in every case that the paper has."""

import asyncio
from dataclasses import replace

import pytest
from tasks.proposing import Failing, fence, pair
from tasks.proposing import propose as one_task

from loop.scripted import Script, proposal, race, riddle, sample, state, tries
from redqueen.engine.protocol import Stop
from redqueen.phases.judge import judge, outcomes
from redqueen.phases.propose import ask, askings, screen
from redqueen.phases.sampling import settle
from redqueen.phases.solve import sit, sittings
from redqueen.population.matchmaking import Match
from redqueen.population.members import Role
from redqueen.population.play import play
from redqueen.population.ratings import MatchResult
from redqueen.tasks.archive import Trivial
from redqueen.tasks.code import FAMILY, CodeTask
from redqueen.tasks.protocol import Form, Task
from redqueen.tasks.verdicts import VOID_ATTEMPT, Grade, Reason, Rejection

INVALID = Rejection(Reason.SYNTAX)
ALONE = [Match("t0", ("s0",))]


def paid(proposals, attempts, reward: str = "paper") -> list[float]:
    """To teachers."""
    rollouts = judge(race({"rl": {"reward": reward}}), state(), 1, proposals, attempts)
    return [each.reward for each in rollouts if each.role is Role.TEACHER]


def result(matches, proposals, attempts, rule: str = "ours") -> list[MatchResult]:
    """Who won each meeting, with everybody at the prior's rating: a solve rate of 0.5 is foretold."""
    where = state()
    rollouts = judge(race(), where, 1, proposals, attempts)
    _, meetings = play(where.population, 1, outcomes(matches, rollouts), rule)
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
    assert paid([riddle(0), proposal(1, INVALID), riddle(2)], [*tries(0, "CW"), *tries(2, "WW")]) == [0.5, -1.0, 0.0]


def test_a_panel_counts_as_a_whole():
    attempts = [*tries(0, "CC", "s0"), *tries(0, "WW", "s1"), *tries(1, "WW", "s0"), *tries(1, "WC", "s1")]
    assert paid([riddle(0), riddle(1)], attempts) == [0.5, 0.75]


def test_a_task_whose_truth_fails_is_rejected_after_all_and_its_attempts_count_for_nobody():
    """Also those of the panel that were graded while it still held."""
    attempts = [*tries(0, "CW", "s0"), *tries(0, "VVM", "s1"), *tries(1, "CW", "s0")]
    rollouts = judge(race(), state(), 1, [riddle(0), riddle(1)], attempts)
    first, second, *graded = rollouts
    assert isinstance(first.became, Rejection)
    assert first.became.reason is Reason.NONDETERMINISTIC
    assert isinstance(second.became, Task)
    assert [each.became.grade for each in graded] == [*[Grade.VOID] * 5, Grade.CORRECT, Grade.WRONG]
    assert [each.entry is None for each in (first, second)] == [True, False]
    assert [(each.member, each.sound, each.reward) for each in rollouts if each.counts] == [
        ("t0", False, -1.0),
        ("t0", True, 0.5),
        ("s0", True, 1.0),
        ("s0", True, -0.5),
    ]
    one, other = outcomes([Match("t0", ("s0", "s1"))], rollouts)
    [s0], [s1] = one.kinds.values(), other.kinds.values()
    assert (len(s0.scores), s0.student_reward, s1.student_reward) == (1, 0.25, None)


def test_learnability_pays_most_for_what_is_solved_half_the_time():
    proposals = [riddle(place) for place in range(4)]
    attempts = [*tries(0, "WWWW"), *tries(1, "CWWW"), *tries(2, "CCWW"), *tries(3, "CCCC")]
    assert paid(proposals, attempts, "learnability") == [0.0, 0.75, 1.0, 0.0]


def test_what_differs_in_constants_alone_is_not_paid_as_hard():
    proposals = [riddle(0, like="same"), riddle(1, like="same"), riddle(2, "t1", like="same")]
    attempts = [*tries(0, "CWWW"), *tries(1, "CWWW"), *tries(2, "CWWW")]
    rollouts = judge(race(), state(), 1, proposals, attempts)[:3]
    assert [each.reward for each in rollouts] == [0.75, 0.0, 0.75]
    assert [each.entry and each.entry.trivial for each in rollouts] == [None, Trivial.NEAR_DUPLICATE, None]


def test_an_attempt_pays_one_if_right_and_costs_half_if_wrong_and_one_if_malformed():
    rollouts = judge(race(), state(), 1, [riddle(0)], tries(0, "CWM"))
    assert [(each.member, each.reward, each.sound) for each in rollouts] == [
        ("t0", pytest.approx(2 / 3), True),
        ("s0", 1.0, True),
        ("s0", -0.5, True),
        ("s0", -1.0, False),
    ]


def test_a_task_that_is_withdrawn_shows_its_program_and_what_its_truth_gave():
    task = CodeTask("code_i", program="def f(x):\n    return x", inputs=("5",), outputs=("5",))
    truth = [replace(VOID_ATTEMPT, runs=(f"beside an attempt, f(5): ok:{value}",)) for value in (7, 8)]
    attempts = [replace(each, became=verdict) for each, verdict in zip(tries(0, "VV"), truth, strict=True)]
    withdrawn, *graded = judge(race(), state(), 1, [proposal(0, task)], attempts)
    assert isinstance(withdrawn.became, Rejection)
    assert withdrawn.became.program == task.program
    assert withdrawn.became.runs == ("when validated, f(5): 5 in each run", "beside an attempt, f(5): ok:7")
    assert [each.became for each in graded] == [VOID_ATTEMPT] * 2


# Who wins


@pytest.mark.parametrize(
    ("grades", "won"),
    [("CCCCCCCC", "student"), ("CWWWWWWW", "teacher"), ("CCCCWWWW", "draw"), ("CCCWWWWW", "draw")],
)
def test_a_solve_rate_above_what_was_foretold_wins_for_the_student(grades: str, won: str):
    assert result(ALONE, [riddle(0)], tries(0, grades)) == [won]


def test_by_the_papers_rule_chance_makes_no_draw():
    assert result(ALONE, [riddle(0)], tries(0, "CCCWWWWW"), "paper") == [MatchResult.TEACHER]
    assert result(ALONE, [riddle(0)], tries(0, "CCCCWWWW"), "paper") == [MatchResult.DRAW]


def test_a_teacher_without_a_valid_task_loses():
    assert result(ALONE, [proposal(0, INVALID)], []) == [MatchResult.STUDENT]
    assert result(ALONE, [proposal(0, INVALID)], [], "paper") == [MatchResult.STUDENT]


def test_tasks_that_nobody_solves_win_no_match_but_by_the_papers_rule():
    assert result(ALONE, [riddle(0)], tries(0, "WWWWWWWW")) == [MatchResult.STUDENT]
    assert result(ALONE, [riddle(0)], tries(0, "WWWWWWWW"), "paper") == [MatchResult.TEACHER]


def test_tasks_whose_difficulty_does_not_count_decide_no_match():
    proposals = [riddle(0, like="same"), riddle(1, like="same")]
    attempts = [*tries(0, "CCCCCCCC"), *tries(1, "CWWWWWWW")]
    assert result(ALONE, proposals, attempts) == [MatchResult.STUDENT]
    assert result(ALONE, proposals, [*tries(0, "CWWWWWWW"), *tries(1, "CCCCCCCC")]) == [MatchResult.TEACHER]
    assert result(ALONE, proposals, [*tries(0, "CWWWWWWW"), *tries(1, "CCCCCCCC")], "paper") == [MatchResult.STUDENT]


def test_solve_rates_are_over_all_valid_tasks_also_those_that_decide_nothing():
    proposals = [riddle(0, like="same"), riddle(1, like="same")]
    attempts = [*tries(0, "CCCCCCCC"), *tries(1, "CWWWWWWW")]
    [outcome] = outcomes(ALONE, judge(race(), state(), 1, proposals, attempts))
    _, [meeting] = play(state().population, 1, [outcome], "ours")
    assert (meeting.tasks, meeting.solved, meeting.attempts) == (2, 9, 16)


def test_a_task_that_another_student_of_the_panel_solves_counts_against_the_one_who_does_not():
    panel = [Match("t0", ("s0", "s1"))]
    attempts = [*tries(0, "CCCCCCCC", "s0"), *tries(0, "WWWWWWWW", "s1")]
    assert result(panel, [riddle(0)], attempts) == [MatchResult.STUDENT, MatchResult.TEACHER]


def test_matches_are_judged_by_their_own_tasks_and_kinds_by_theirs():
    matches = [Match("t0", ("s0",)), Match("t1", ("s1",))]
    proposals = [
        riddle(0),
        proposal(1, INVALID, kind="code_i"),
        riddle(2, "t1", match=1),
        riddle(3, "t1", "code_f", match=1),
    ]
    attempts = [*tries(0, "CW"), *tries(2, "MM", "s1"), *tries(3, "CC", "s1")]
    first, second = outcomes(matches, judge(race(), state(), 1, proposals, attempts))
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
    text, answers = ANSWERS[kind]
    task = one_task(FAMILY.kinds()[kind], verifier, text, {"program": "def f(x):\n    return x * 3"})
    assert isinstance(task, Task)
    engine = Script([sample(answer) for answer in answers])
    of = race({"tasks": {"attempts": len(answers)}}, engine, verifier)
    proposals = [proposal(0, task, kind=kind)]

    async def lead():
        return await settle(of, 1, await sit(of, 1, sittings(proposals[0], ALONE), len(answers)))

    attempts, runs = asyncio.run(lead())
    assert attempts[0].became.grade is Grade.CORRECT
    assert not any(each.became.correct for each in attempts[1:])
    _, honest, *others = judge(of, state(), 1, proposals, attempts)
    assert honest.reward == 1.0
    assert all(each.reward < 0 for each in others)
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
    of = replace(of, kinds={"code_o": FAMILY.kinds(Form.SHORT)["code_o"]})

    async def lead():
        proposals, runs = await settle(of, 1, await ask(of, 1, askings(of, state(), 1, ALONE)))
        return await screen(of, state(), proposals), runs

    proposals, runs = asyncio.run(lead())
    reasons = [each.became.reason if isinstance(each.became, Rejection) else None for each in proposals]
    assert reasons == list(PROGRAMS.values())
    rollouts = judge(of, state(), 1, proposals, tries(0, "CW"))
    assert [each.reward for each in rollouts[: len(texts)]] == [0.5, *[-1.0] * (len(texts) - 1)]
    assert runs.keys() == {"t0"}


def test_a_proposal_whose_shortcuts_the_machine_keeps_from_being_tried_costs_nobody_anything(verifier):
    programs = [f"def f(x):\n    return [x + {number}, x]" for number in range(1, 5)]
    engine = Script([sample(pair(program, "41")) for program in programs])
    lost = Failing(verifier, lambda job: job.source == programs[1] and job.seeds == 1)
    of = race({"tasks": {"prompts": 1, "proposals": len(programs)}}, engine, lost)
    of = replace(of, kinds={"code_i": FAMILY.kinds(Form.SHORT)["code_i"]})

    async def lead():
        proposals, runs = await settle(of, 1, await ask(of, 1, askings(of, state(), 1, ALONE)))
        return await screen(of, state(), proposals), runs

    proposals, _ = asyncio.run(lead())
    assert [isinstance(each.became, Task) for each in proposals] == [True, False, True, True]
    rollouts = judge(of, state(), 1, proposals, [attempt for place in (0, 2, 3) for attempt in tries(place, "CW")])
    lost_one = rollouts[1]
    assert isinstance(lost_one.became, Rejection) and lost_one.became.reason is Reason.NOT_JUDGED
    assert (lost_one.reward, lost_one.counts, lost_one.entry) == (0.0, False, None)


def test_a_proposal_that_was_cut_is_refused_whatever_it_says(verifier):
    text = pair("def f(x):\n    return x + 1", "1")
    engine = Script([sample(text), sample(text, stop=Stop.LENGTH)])
    tasks = {"prompts": 1, "proposals": 2}
    of = race({"tasks": tasks, "guard": {"duplicates": "allow"}, "rl": {"frozen": "teachers"}}, engine, verifier)
    of = replace(of, kinds={"code_o": FAMILY.kinds(Form.SHORT)["code_o"]})

    async def lead():
        proposals, runs = await settle(of, 1, await ask(of, 1, askings(of, state(), 1, ALONE)))
        return await screen(of, state(), proposals), runs

    [first, second], _ = asyncio.run(lead())
    assert isinstance(first.became, Task)
    assert isinstance(second.became, Rejection)
    assert second.became.reason is Reason.CUT
    assert (second.became.program, second.became.runs) == ("def f(x):\n    return x + 1", ())
