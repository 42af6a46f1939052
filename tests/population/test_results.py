"""Who wins a match: the two rules, and what impossible tasks do under each."""

from hypothesis import given
from hypothesis import strategies as st

from redqueen.population.ratings import MatchResult
from redqueen.population.results import TaskScore, judge

scores = st.lists(st.integers(0, 8).map(lambda solved: TaskScore(solved, 8)), max_size=8)


def tasks(*solved: int) -> list[TaskScore]:
    return [TaskScore(each, 8) for each in solved]


def test_above_the_foretold_rate_the_student_wins_and_below_it_the_teacher():
    for rule in ("ours", "paper"):
        assert judge(0.5, tasks(8, 8, 6), rule) is MatchResult.STUDENT
        assert judge(0.5, tasks(1, 1, 1), rule) is MatchResult.TEACHER


def test_what_chance_explains_is_a_draw_by_our_rule_only():
    # One standard error of 64 attempts at one half is 4 of them.
    assert judge(0.5, tasks(*[4] * 7, 8), "ours") is MatchResult.DRAW
    assert judge(0.5, tasks(*[4] * 6, 6, 8), "ours") is MatchResult.STUDENT
    assert judge(0.5, tasks(*[4] * 6, 1, 1), "ours") is MatchResult.TEACHER
    assert judge(0.5, tasks(*[4] * 7, 5), "paper") is MatchResult.STUDENT
    assert judge(0.5, tasks(*[4] * 8), "paper") is MatchResult.DRAW


def test_impossible_tasks_win_matches_by_the_papers_rule_only():
    assert judge(0.5, tasks(0, 0, 0, 8), "paper") is MatchResult.TEACHER
    assert judge(0.5, tasks(0, 0, 0, 8), "ours") is MatchResult.STUDENT
    assert judge(0.5, tasks(0, 0, 0), "paper") is MatchResult.TEACHER
    assert judge(0.5, tasks(0, 0, 0), "ours") is MatchResult.STUDENT


def test_a_task_that_another_of_the_panel_solved_counts():
    assert judge(0.5, [TaskScore(0, 8, elsewhere=1)], "ours") is MatchResult.TEACHER


def test_without_a_valid_task_the_student_wins():
    assert judge(0.9, [], "ours") is judge(0.9, [], "paper") is MatchResult.STUDENT


@given(st.floats(0, 1), scores, st.data())
def test_solving_more_never_turns_a_win_into_less(foretold, played, data):
    order = [MatchResult.TEACHER, MatchResult.DRAW, MatchResult.STUDENT]
    possible = [score for score in played if score.solved]
    better = [TaskScore(data.draw(st.integers(score.solved, 8)), 8) for score in possible]
    for rule in ("ours", "paper"):
        assert order.index(judge(foretold, better, rule)) >= order.index(judge(foretold, possible, rule))
