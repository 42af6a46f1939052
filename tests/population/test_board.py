"""The board and play: what a step's outcomes do to ratings, and what stays on the board."""

import pytest

from redqueen.errors import InputError
from redqueen.population.board import Board, Tally
from redqueen.population.members import founders
from redqueen.population.play import KindOutcome, Outcome, play
from redqueen.population.ratings import PRIOR, Rating, Result, rate
from redqueen.population.results import TaskScore


def part(*solved: int, **rewards: float) -> KindOutcome:
    return KindOutcome(tuple(TaskScore(each, 8) for each in solved), **rewards)


def test_a_match_moves_both_ratings_and_nobody_elses():
    before = founders(2, 2)
    after, _ = play(before, 1, [Outcome("t0", "s1", {"code_o": part(8, 8)})], "ours")
    student, teacher = rate(PRIOR, PRIOR, Result.STUDENT)
    assert [each.rating for each in after.members] == [teacher, PRIOR, PRIOR, student]


def test_all_matches_of_a_step_are_judged_by_the_ratings_before_it():
    # Alone, the second match would be a draw: by then the first one has made the teacher the favourite.
    population = founders(1, 2)
    outcomes = [Outcome("t0", "s0", {"k": part(1)}), Outcome("t0", "s1", {"k": part(4)})]
    after, meetings = play(population, 1, outcomes, "paper")
    assert [meeting.match_result for meeting in meetings] == [Result.TEACHER, Result.DRAW]
    assert [meeting.foretold for meeting in meetings] == [0.5, 0.5]
    lost, ahead = rate(PRIOR, PRIOR, Result.TEACHER)
    drew, teacher = rate(PRIOR, ahead, Result.DRAW)
    assert [each.rating for each in after.members] == [teacher, lost, drew]


def test_a_match_is_judged_over_all_its_kinds_and_each_kind_by_itself():
    kinds = {"code_o": part(8, 8, 0), "code_i": part(1), "code_f": part()}
    _, meetings = play(founders(1, 1), 3, [Outcome("t0", "s0", kinds)], "ours")
    assert [meeting.result for meeting in meetings] == [Result.STUDENT, Result.TEACHER, Result.STUDENT]
    assert {meeting.match_result for meeting in meetings} == {Result.STUDENT}
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
        play(founders(1, 1), 1, [Outcome("t0", "s7", {"k": part(1)})], "ours")
    with pytest.raises(InputError, match="no kind"):
        play(founders(1, 1), 1, [Outcome("t0", "s0", {})], "ours")


def board() -> Board:
    population, played = founders(2, 2), Board()
    for step in (1, 2, 3):
        outcomes = [
            Outcome("t0", "s0", {"a": part(8, 0), "b": part(2)}),
            Outcome("t1", "s1", {"a": part(4, teacher_reward=-0.5)}),
            # The same pair twice in one step, as a panel of two may have it.
            Outcome("t1", "s1", {"a": part(4)}),
        ]
        population, meetings = play(population, step, outcomes, "paper")
        played = played.add(meetings)
    return played


def test_a_match_counts_once_however_many_kinds_it_has():
    pairs = board().pairs()
    assert pairs["t0", "s0"].matches == 3
    assert (pairs["t0", "s0"].tasks, pairs["t0", "s0"].unsolved, pairs["t0", "s0"].solved) == (9, 3, 30)
    assert pairs["t1", "s1"].matches == board().met("t1", "s1") == 6
    assert board().met("t0", "s1") == 0
    assert Board(board().meetings[:2]).pairs()["t0", "s0"].teacher_wins == 1
    for tally in pairs.values():
        assert tally.matches == tally.student_wins + tally.draws + tally.teacher_wins


def test_rates_are_over_all_tasks_or_over_the_possible_ones():
    tally = board().pairs()["t0", "s0"]
    assert tally.solve_rate == pytest.approx(10 / 24)
    assert tally.possible_rate == pytest.approx(10 / 16)
    assert Tally().solve_rate is Tally().possible_rate is None


def test_since_takes_the_step_and_all_after_it():
    assert {meeting.step for meeting in board().since(2).meetings} == {2, 3}


@pytest.mark.parametrize("step", range(1, 5))
def test_parts_of_a_board_add_up_to_the_whole(step):
    whole = board()
    parts = [Board(tuple(each for each in whole.meetings if each.step < step)).pairs(), whole.since(step).pairs()]
    for pair, tally in whole.pairs().items():
        assert parts[0].get(pair, Tally()) + parts[1].get(pair, Tally()) == tally


def test_ratings_given_to_members_are_those_that_play_sees():
    population = founders(1, 1).rated({"s0": Rating(40, 1), "t0": Rating(20, 1)})
    _, [meeting] = play(population, 1, [Outcome("t0", "s0", {"k": part(6)})], "ours")
    assert meeting.foretold > 0.99
    assert meeting.result is Result.TEACHER
