"""The board and play: what a step's outcomes do to ratings, and what stays on the board."""

import pytest

from redqueen.errors import InputError
from redqueen.population.board import Board
from redqueen.population.members import founders
from redqueen.population.play import KindOutcome, MatchOutcome, play
from redqueen.population.ratings import PRIOR, MatchResult, Rating, rate
from redqueen.population.results import TaskScore


def part(*solved: int, **rewards: float) -> KindOutcome:
    return KindOutcome(tuple(TaskScore(each, 8) for each in solved), **rewards)


def test_a_match_moves_both_ratings_and_nobody_elses():
    before = founders(2, 2)
    after, _ = play(before, 1, [MatchOutcome("t0", "s1", {"code_o": part(8, 8)})], "ours")
    student, teacher = rate(PRIOR, PRIOR, MatchResult.STUDENT)
    assert [each.rating for each in after.members] == [teacher, PRIOR, PRIOR, student]


def test_all_matches_of_a_step_are_judged_by_the_ratings_before_it():
    # Alone, the second match would be a draw: by then the first one has made the teacher the favourite.
    population = founders(1, 2)
    outcomes = [MatchOutcome("t0", "s0", {"k": part(1)}), MatchOutcome("t0", "s1", {"k": part(4)})]
    after, meetings = play(population, 1, outcomes, "paper")
    assert [meeting.match_result for meeting in meetings] == [MatchResult.TEACHER, MatchResult.DRAW]
    assert [meeting.foretold for meeting in meetings] == [0.5, 0.5]
    lost, ahead = rate(PRIOR, PRIOR, MatchResult.TEACHER)
    drew, teacher = rate(PRIOR, ahead, MatchResult.DRAW)
    assert [each.rating for each in after.members] == [teacher, lost, drew]


def test_a_match_is_judged_over_all_its_kinds_and_each_kind_by_itself():
    kinds = {"code_o": part(8, 8, 0), "code_i": part(1), "code_f": part()}
    _, meetings = play(founders(1, 1), 3, [MatchOutcome("t0", "s0", kinds)], "ours")
    assert [meeting.result for meeting in meetings] == [MatchResult.STUDENT, MatchResult.TEACHER, MatchResult.STUDENT]
    assert {meeting.match_result for meeting in meetings} == {MatchResult.STUDENT}
    first = meetings[0]
    assert (first.step, first.tasks, first.unsolved, first.attempts, first.unsolved_attempts, first.solved) == (
        3,
        3,
        1,
        24,
        8,
        16,
    )


def test_who_is_not_alive_cannot_play_and_a_match_has_a_kind():
    with pytest.raises(InputError, match="no living member 's7'"):
        play(founders(1, 1), 1, [MatchOutcome("t0", "s7", {"k": part(1)})], "ours")
    with pytest.raises(InputError, match="no kind"):
        play(founders(1, 1), 1, [MatchOutcome("t0", "s0", {})], "ours")


def board() -> Board:
    population, played = founders(2, 2), Board()
    for step in (1, 2, 3):
        outcomes = [
            MatchOutcome("t0", "s0", {"a": part(8, 0), "b": part(2)}),
            MatchOutcome("t1", "s1", {"a": part(4, teacher_reward=-0.5)}),
            # The same pair twice in one step, as a panel of two may have it.
            MatchOutcome("t1", "s1", {"a": part(4)}),
        ]
        population, meetings = play(population, step, outcomes, "paper")
        played = played.add(meetings)
    return played


def test_a_match_counts_once_however_many_kinds_it_has():
    assert [board().met(*pair) for pair in (("t0", "s0"), ("t1", "s1"), ("t0", "s1"))] == [3, 6, 0]


def test_possible_rates_leave_out_the_tasks_that_nobody_solved():
    rates = board().possible_rates()
    assert rates == {("t0", "s0"): pytest.approx(10 / 16), ("t1", "s1"): 0.5}
    _, meetings = play(founders(1, 1), 1, [MatchOutcome("t0", "s0", {"k": part(0)})], "ours")
    assert Board(tuple(meetings)).possible_rates() == {("t0", "s0"): None}


def test_since_takes_the_step_and_all_after_it():
    assert {meeting.step for meeting in board().since(2).meetings} == {2, 3}


def test_ratings_given_to_members_are_those_that_play_sees():
    population = founders(1, 1).rated({"s0": Rating(40, 1), "t0": Rating(20, 1)})
    _, [meeting] = play(population, 1, [MatchOutcome("t0", "s0", {"k": part(6)})], "ours")
    assert meeting.foretold > 0.99
    assert meeting.result is MatchResult.TEACHER
