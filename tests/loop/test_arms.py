"""Each arm is the population less one thing."""

from pathlib import Path
from random import Random

import pytest

from redqueen.commands.train import TrainCommand
from redqueen.errors import ConfigError, InputError
from redqueen.plugins import MATCHMAKERS
from redqueen.population.board import Board
from redqueen.population.matchmaking import schedule
from redqueen.population.members import founders
from redqueen.settings import Config, load, presets
from redqueen.training.arms import ARMS, apply
from redqueen.training.checks import check, refuse_idle
from redqueen.training.setup import Start

POPULATION = Config.model_validate({"tasks": {"prompts": 3, "proposals": 4, "attempts": 8}, "run": {"steps": 10}})


def changed(arm: str, of: Config = POPULATION) -> dict[str, object]:
    """The settings that an arm has otherwise."""
    before, after = of.model_dump(), apply(of, arm).model_dump()
    return {
        f"{section}.{name}": value
        for section, values in after.items()
        for name, value in values.items()
        if value != before[section][name]
    }


def sampled(of: Config) -> tuple[int, int]:
    """The proposals of a step, and its attempts if all are valid."""
    population = founders(of.population.teachers, of.population.students)
    matches = schedule(population, MATCHMAKERS.get(of.match.maker), Board(), Random(0), of.match.panel)
    proposals = of.tasks.prompts * of.tasks.proposals
    sittings = sum(len(match.students) for match in matches)
    return len(matches) * proposals, sittings * proposals * of.tasks.attempts


@pytest.mark.parametrize(
    ("arm", "settings"),
    [
        ("frozen-teachers", {"rl.frozen": "teachers"}),
        ("frozen-students", {"rl.frozen": "students"}),
        ("no-evolution", {"evolution.every": 0}),
        ("random-matching", {"match.maker": "uniform"}),
        ("shuffled-rewards", {"rl.shuffle": True}),
        ("1t1s", {"population.teachers": 1, "population.students": 1, "evolution.every": 0}),
    ],
)
def test_an_arm_changes_what_it_is_about(arm: str, settings: dict[str, object]):
    assert changed(arm) == settings


SHARED = Config.model_validate(
    {
        "tasks": {"replay": 2},
        "evolution": {"trial": 4, "pull": 0.5, "pull_rate": 2.0},
        "rl": {"share": "students", "teacher_lr": 1e-5, "teacher_temperature": 0.8, "full_rows": 8},
    }
)
"""What a study may have for all its arms."""
APART = {"evolution.pull": 0.0, "evolution.pull_rate": 1.0}
NOBODY_ELSE = {"rl.share": "nobody", "evolution.trial": 0, **APART}


@pytest.mark.parametrize(
    ("arm", "settings"),
    [
        ("single", {**NOBODY_ELSE, "rl.teacher_lr": None}),
        ("single-wide", {**NOBODY_ELSE, "rl.teacher_lr": None}),
        ("1t1s", NOBODY_ELSE),
        ("no-evolution", {"evolution.trial": 0, **APART}),
        ("frozen-teachers", {"rl.teacher_lr": None}),
        ("frozen-students", {"rl.share": "nobody", "tasks.replay": 0}),
        ("random-matching", {}),
    ],
)
def test_an_arm_has_nothing_that_it_cannot_use(arm: str, settings: dict[str, object]):
    own = changed(arm, SHARED)
    mechanisms = {*NOBODY_ELSE, "rl.teacher_lr", "rl.teacher_temperature", "rl.full_rows", "tasks.replay"}
    assert {name: value for name, value in own.items() if name in mechanisms} == settings
    refuse_idle(apply(SHARED, arm))


def test_what_an_arm_cannot_use_is_refused_as_a_setting_of_its_own():
    with pytest.raises(ConfigError, match=r'rl\.share = "students" would do nothing'):
        refuse_idle(apply(SHARED, "single rl.share=students"))


def test_what_had_no_use_before_is_left_to_be_refused():
    twice = Config.model_validate({"evolution": {"trial": 4, "every": 0}})
    with pytest.raises(ConfigError, match=r"evolution\.trial = 4 would do nothing: nobody is ever replaced"):
        refuse_idle(apply(twice, "random-matching"))


def test_a_single_agent_is_trained_as_each_of_the_population_is():
    single = apply(POPULATION, "single")
    assert single.population.single
    assert Start.new(single).adapters == ["solo"]
    assert sampled(single) == (3 * 4, 3 * 4 * 8)
    assert single.run == POPULATION.run


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"population": {"teachers": 4, "students": 2}},
        {"population": {"teachers": 2, "students": 4}},
        {"population": {"teachers": 2, "students": 4}, "match": {"panel": 2}},
        {"population": {"teachers": 4, "students": 4}, "match": {"panel": 4}},
        {"population": {"teachers": 3, "students": 5}, "match": {"maker": "all"}},
        {"population": {"teachers": 3, "students": 5}, "match": {"maker": "all", "panel": 2}},
    ],
    ids=str,
)
def test_a_wide_single_agent_samples_as_much_in_a_step_as_the_population(changes):
    of = Config.model_validate(changes)
    wide = apply(of, "single-wide")
    assert sampled(wide) == sampled(of)
    assert wide.run == of.run


@pytest.mark.parametrize("match", [{}, {"panel": 2}, {"maker": "all"}], ids=str)
def test_a_long_single_agent_samples_as_much_in_all_steps_as_the_population(match):
    of = Config.model_validate({**POPULATION.model_dump(), "match": match})
    long = apply(of, "single-long")
    assert long.tasks.prompts == of.tasks.prompts
    assert [long.run.steps * each for each in sampled(long)] == [of.run.steps * each for each in sampled(of)]


@pytest.mark.parametrize("preset", [None, *presets()])
@pytest.mark.parametrize("arm", ARMS)
def test_every_arm_of_every_preset_can_be_run(arm: str, preset: str | None):
    settings = apply(load(preset), arm)
    if settings.rl.update == "none" and settings.evolution.every == 0:
        with pytest.raises(ConfigError, match="nothing would ever change"):
            check(settings)
        return
    check(settings)
    refuse_idle(settings)


def test_a_run_that_is_called_after_its_arm_has_one_folder():
    command = TrainCommand(preset=("small",), arm="single rl.reward=./mine.py:shape")
    assert command.folder(1) == Path("runs/small-single+rl.reward=.%2Fmine.py:shape-seed1")


def test_no_arm_is_the_population():
    assert apply(POPULATION, None) is apply(POPULATION, "population") is POPULATION


def test_an_arm_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(InputError, match=r"there is no arm any; the arms are population, single, .*shuffled-rewards"):
        apply(POPULATION, "any")
