"""The simulation: its parts are right, and the method's two claims about ratings hold in it."""

import json
import math
import statistics
from dataclasses import replace
from random import Random

import pytest

from redqueen.commands.main import main
from redqueen.errors import ConfigError, InputError
from redqueen.evolution.replacement import Event
from redqueen.population.members import Member, Role
from redqueen.settings import Config, load, presets
from redqueen.training import simulate
from redqueen.training.simulate import kendall


@pytest.fixture(scope="module")
def report() -> simulate.RatingsReport:
    return simulate.ratings(8, 8, 24, 30, 64, 10, Config())


def test_ratings_find_out_who_is_good(report):
    taus = [report.figures[name].mean for name in ("tau_teachers", "tau_students")]
    assert min(taus) >= 0.8
    assert report.as_json()["tau"] == min(taus)


def test_our_rule_drops_the_truly_worst_and_the_papers_drops_newborns(report):
    figures = report.figures
    assert figures["worst_quarter_hit"].mean >= 0.65
    assert figures["worst_quarter_hit_best_parent"].mean >= 0.65
    assert figures["worst_quarter_hit"].low > figures["worst_quarter_hit_paper"].high
    assert 0.2 < figures["worst_quarter_hit_chance"].mean < 0.3
    assert figures["newborn_hit"].mean == 0
    assert figures["newborn_hit_paper"].mean > 0.5


def test_every_figure_comes_with_its_interval(report):
    answer = json.loads(json.dumps(report.as_json()))
    figures = [name for name in answer if name.startswith(("tau", "worst", "newborn")) and "interval" not in name]
    assert len(figures) == 12
    for name in figures:
        low, high = answer[f"{name}_interval"]
        assert low <= answer[name] <= high
    assert answer["settings"]["match"]["maker"] == "pfsp"


def test_without_information_ratings_find_out_nothing():
    """With all skills the same whatever the ratings say is chance: the simulation does not leak what it measures."""
    taus = [simulate._orders(seed, 10, 64, Config(), 1e-6) for seed in range(60)]
    assert abs(simulate.estimate([sum(each) / 2 for each in taus]).mean) < 0.15


def test_members_as_alike_as_in_a_race_are_told_apart_by_trials_and_not_by_matches():
    matches, trials = (
        simulate.ratings(4, 4, 40, 2, 96, 10, load(None, {"evolution.trial": size}), spread=0.018)
        for size in ("0", "4096")
    )
    hits = {role: trials.figures[f"worst_quarter_hit_{role}s"] for role in ("teacher", "student")}
    for role, hit in hits.items():
        assert matches.figures[f"worst_quarter_hit_{role}s"].high < hit.low
    assert hits["student"].mean >= 0.6
    assert matches.trials == {}
    assert trials.trials["teacher"] == 4096
    assert 400 < trials.trials["student"] < 480, "no more than there are: 12 tasks of 4 matches in 10 steps"
    with pytest.raises(InputError, match="--spread cannot be 2"):
        simulate.ratings(2, 2, 2, 2, 8, 2, Config(), spread=2)


def test_a_task_that_a_whole_panel_attempts_is_one_task():
    settings = load(None, {"evolution.trial": "4096", "match.panel": "4"})
    trials = simulate.ratings(4, 4, 2, 2, 96, 2, settings, spread=0.018).trials
    assert 400 < trials["student"] <= 480, "12 tasks of 4 matches in 10 steps"


def test_a_teacher_is_judged_by_a_reward_for_each_proposal_and_a_student_by_all_its_attempts():
    race = simulate._start(0, Config(), spread=0.0)
    tasks = {Role.TEACHER: 100, Role.STUDENT: 100}
    trials = [simulate._trials(race, tasks) for _ in range(300)]
    for role, judged in ((Role.TEACHER, 100), (Role.STUDENT, 100 * simulate.ATTEMPTS_PER_TASK)):
        worth = [trial[member.id] for trial in trials for member in race.population.of(role)]
        expected = math.sqrt(simulate.TRIAL_VARIANCE[role] / 2 / judged)
        assert statistics.stdev(worth) == pytest.approx(expected, rel=0.1)
    assert simulate._trials(race, {Role.TEACHER: 4, Role.STUDENT: 0}).keys() == {"t0", "t1", "t2", "t3"}


def test_a_trial_has_no_more_tasks_than_are_fit_and_whole_prompts_of_proposals():
    settings = load(None, {"evolution.trial": "30", "tasks.proposals": "8", "evolution.every": "2"})
    race = simulate._start(0, settings)
    race.fit = 500
    simulate._interval(race, 16, settings, 0)
    assert 0 < race.fit <= 2 * 2 * 4, "those of the interval: two tasks in each of four matches a step"
    assert simulate._trial_tasks(race, settings) == {Role.STUDENT: race.fit, Role.TEACHER: 32}
    race.fit = 500
    assert simulate._trial_tasks(race, settings) == {Role.STUDENT: 30, Role.TEACHER: 32}


def test_more_attempts_tell_more():
    few, many = ([simulate._orders(seed, 15, attempts, Config())[1] for seed in range(40)] for attempts in (8, 256))
    assert sum(few) < sum(many)


def test_kendalls_tau():
    assert kendall([1, 2, 3], [10, 20, 30]) == 1
    assert kendall([1, 2, 3], [3, 2, 1]) == -1
    assert kendall([1, 2, 3], [1, 3, 2]) == pytest.approx(1 / 3)
    assert kendall([1, 1, 1], [1, 3, 2]) == 0


def test_binomials_have_the_mean_and_the_bounds_they_should():
    drawn = simulate._binomials(5000, 8, 0.3, Random(0))
    assert sum(drawn) / 5000 == pytest.approx(2.4, abs=0.08)
    assert simulate._binomials(2, 8, 1.0, Random(0)) == [8, 8]
    assert simulate._binomials(2, 8, 0.0, Random(0)) == [0, 0]


def test_the_same_seeds_give_the_same_races():
    assert simulate._orders(3, 5, 24, Config()) == simulate._orders(3, 5, 24, Config())


@pytest.mark.parametrize(
    "settings",
    [
        {"evolution.fitness": "reward", "match.maker": "round_robin"},
        {"evolution.fitness": "rate", "evolution.selection": "tournament", "match.panel": "2"},
        {"match.maker": "all", "match.rule": "paper", "match.exclude": "t0:s0"},
    ],
)
def test_other_settings_are_raced_too(settings):
    assert simulate.ratings(3, 4, 2, 4, 24, 3, load(None, settings)).seconds > 0


@pytest.mark.parametrize("preset", presets())
def test_every_preset_can_be_simulated(preset, capsys):
    count = str(max(2, load(preset).match.panel or 0))
    words = ["--teachers", count, "--students", count, "--seeds", "2", "--rounds", "2", "--births", "2", "--json"]
    assert main(["simulate", "ratings", "--config", preset, *words]) == 0
    found = json.loads(capsys.readouterr().out)
    births = 2 if load(preset).evolution.every else 0
    assert found["births"] == births and ("worst_quarter_hit" in found) == bool(births)
    assert -1 <= found["tau"] <= 1


def test_a_simulation_without_births_says_so(capsys):
    words = ["--seeds", "2", "--rounds", "2", "--evolution.every", "0"]
    assert main(["simulate", "ratings", *words]) == 0
    said = capsys.readouterr().out
    assert "no events: evolution.every is 0" in said and "worst quarter" not in said


def test_what_cannot_be_simulated_is_refused():
    for sizes in ((1, 8, 4), (8, 1, 4), (8, 8, 1)):
        with pytest.raises(InputError):
            simulate.ratings(*sizes, 2, 8, 2, Config())
    with pytest.raises(InputError, match="--births 2"):
        simulate.ratings(2, 2, 2, 2, 8, 1, Config())
    with pytest.raises(InputError, match="a multiple of 8"):
        simulate.ratings(2, 2, 2, 2, 7, 2, Config())
    with pytest.raises(ConfigError, match="sharing"):
        simulate.ratings(2, 2, 2, 2, 8, 2, load(None, {"evolution.selection": "sharing"}))
    with pytest.raises(ConfigError, match="there is no such seat"):
        simulate.ratings(2, 2, 2, 2, 8, 2, load(None, {"match.exclude": "t3:s3"}))


def test_the_command_answers_people_and_scripts(capsys):
    words = [
        "simulate",
        "ratings",
        "--seeds",
        "2",
        "--rounds",
        "3",
        "--births",
        "2",
        "--teachers",
        "4",
        "--students",
        "5",
    ]
    assert main([*words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["teachers"], answer["students"], answer["seeds"]) == (4, 5, 2)
    assert main(words) == 0
    assert "worst quarter" in capsys.readouterr().out
    assert main([*words, "--evolution.trial", "6"]) == 0
    assert "each after a trial of 6 tasks for students and 8 proposals for teachers" in capsys.readouterr().out
    assert main(["simulate", "ratings", "--seeds", "0"]) == 2
    assert "--seeds cannot be 0" in capsys.readouterr().err


def test_a_lineage_can_be_drawn(capsys):
    assert main(["simulate", "lineage", "--births", "3"]) == 0
    tree = capsys.readouterr().out
    assert tree.count(" +\n") + tree.count(" +  ") == 6, "one dead in each role at each of three events"
    assert "step 31" in tree
    assert main(["simulate", "lineage", "--births", "1", "--dot", "--evolution.operators", "dare"]) == 0
    graph = capsys.readouterr().out
    assert graph.startswith("digraph lineage {")
    assert graph.count('label="dare"') == 4, "two children of two parents"
    assert main(["simulate", "lineage", "--evolution.every", "0"]) == 2
    assert "no births" in capsys.readouterr().err


def test_a_child_takes_after_both_parents_or_after_the_better_one(monkeypatch):
    monkeypatch.setattr(simulate, "CHILD_SPREAD", 0.0)
    race = simulate._start(0, Config())
    race.skills |= {"s1": 20.0, "s2": 30.0}
    child = Member(id="s0.1", role=Role.STUDENT, seat="s0")
    event = Event(
        step=10, role=Role.STUDENT, seat="s0", dead="s0", child=child, operator="dare", parents=("s1", "s2"), seed=0
    )
    for inheritance, skill in (("mean", 25.0), ("best", 30.0)):
        again = replace(race, skills=dict(race.skills))
        simulate._replace(again, [event], inheritance)
        assert again.skills["s0.1"] == skill
