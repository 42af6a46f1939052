"""Events on a real engine: who comes, who goes, and that evolution alone can drive a race."""

import asyncio
import statistics
from dataclasses import replace
from random import Random

import pytest
import torch
from engine import tiny

from redqueen.engine.protocol import Recipe, ScoreRequest, Trajectory
from redqueen.errors import ConfigError, InputError
from redqueen.evolution.breeding import breed, scattered
from redqueen.evolution.replacement import Event, apply, plan
from redqueen.evolution.variation import Kind, Operator, child
from redqueen.plugins import OPERATORS
from redqueen.population.board import Board, Meeting
from redqueen.population.members import Birth, Member, Population, Role, founders
from redqueen.population.ratings import MatchResult
from redqueen.settings.models import EvolutionConfig


def an_event(dead: str, child: str, operator: str, *parents: str, seed: int = 7) -> Event:
    member = Member(id=child, role=Role.STUDENT, seat=dead, birth=Birth(10, operator, parents))
    return Event(
        step=10, role=Role.STUDENT, seat=dead, dead=dead, child=member, operator=operator, parents=parents, seed=seed
    )


def test_a_child_takes_the_place_of_the_dead_and_its_parents_stay_as_they_are():
    with tiny.engine("llama", members=3) as opened:
        before = {id: opened.read(id) for id in opened.members}
        breed(opened, [an_event("m2", "m2.1", "svd_subspace", "m1", "m0")], OPERATORS.all())
        assert sorted(opened.members) == ["m0", "m1", "m2.1"]
        expected = child(OPERATORS.get("svd_subspace"), [before["m1"], before["m0"]], seed=7)
        assert tiny.difference(opened.read("m2.1"), expected) == 0
        assert tiny.difference(opened.read("m0"), before["m0"]) == 0
        assert tiny.difference(opened.read("m1"), before["m1"]) == 0


def test_a_fresh_member_says_what_the_base_says():
    with tiny.engine("llama", members=2) as opened:
        breed(opened, [an_event("m1", "m1.1", "fresh")], OPERATORS.all())
        state = opened.read("m1.1")
        assert all(not b_O_R.any() for _, b_O_R in state.factors.values())
        assert all(a_R_I.any() for a_R_I, _ in state.factors.values())
        opened.write("other", opened.fresh())
        assert tiny.difference(state, opened.read("other")) == 0, "fresh members share their A factors"


def test_an_optimiser_does_not_pass_on_to_a_child_but_fisher_sees_the_parents():
    with tiny.engine("llama", members=3) as opened:
        random = Random(0)
        completion = tiny.tokens(random, 6)
        batch = [
            Trajectory(
                member=id, prompt=tiny.tokens(random, 4), completion=completion, logprobs=(-4.0,) * 6, advantages=1.0
            )
            for id in ("m0", "m1")
        ]
        tiny.update(opened, batch, Recipe(lr=1e-2))
        states = [opened.read(id, optimiser=True) for id in ("m0", "m1")]
        assert all(state.optimiser is not None for state in states)
        breed(opened, [an_event("m2", "m2.1", "fisher", "m0", "m1")], OPERATORS.all())
        made = opened.read("m2.1", optimiser=True)
        assert made.optimiser is None
        blind = child(OPERATORS.get("fisher"), [replace(state, optimiser=None) for state in states], seed=7)
        assert tiny.difference(made, child(OPERATORS.get("fisher"), states, seed=7)) == 0
        assert tiny.difference(made, blind) > 1e-4


def test_who_is_not_there_cannot_go_and_nobody_else_does():
    with tiny.engine("llama", members=3) as opened:
        events = [an_event("m2", "m2.1", "copy_parent", "m0"), an_event("eve", "eve.1", "copy_parent", "m0")]
        with pytest.raises(InputError, match="no member 'eve'"):
            breed(opened, events, OPERATORS.all())
        assert opened.members == ["m0", "m1", "m2"]


def test_an_operator_that_forgets_a_slot_is_refused_before_anybody_goes():
    def forgetful(parents, draws):
        return replace(parents[0], stacks=parents[0].stacks[1:])

    operator = Operator(name="forgetful", kind=Kind.MUTATION, make=forgetful, reference="a test")
    with tiny.engine("llama", members=3) as opened:
        with pytest.raises(ConfigError, match="another shape"):
            breed(opened, [an_event("m2", "m2.1", "forgetful", "m0")], {"forgetful": operator})
        assert opened.members == ["m0", "m1", "m2"]


def test_an_events_seed_decides_what_its_operator_draws():
    with tiny.engine("llama", members=3) as opened:
        events = [
            an_event("m1", "m1.1", "full_noise", "m0", seed=1),
            an_event("m2", "m2.1", "full_noise", "m0", seed=2),
        ]
        breed(opened, events, OPERATORS.all())
        assert tiny.difference(opened.read("m1.1"), opened.read("m2.1")) > 0


def test_founders_without_gradients_differ_and_repeat():
    with tiny.engine("llama", members=0) as opened:
        first, second, again = (scattered(opened.fresh(), seed, 0.02, opened.norms) for seed in (1, 2, 1))
        assert tiny.difference(first, second) > 0
        assert tiny.difference(first, again) == 0


@pytest.mark.parametrize("rank", [1, 4])
def test_a_scattered_member_changes_every_weight_by_its_share_of_it(rank: int):
    share = 0.03
    with tiny.engine("llama", members=0, rank=rank, alpha=5.0) as opened:
        made = scattered(opened.fresh(), 3, share, opened.norms)
        for name, (a_R_I, b_O_R) in made.factors.items():
            weight = opened.base.model.get_submodule(name).weight
            assert isinstance(weight, torch.Tensor)
            assert (5.0 / rank * b_O_R @ a_R_I).norm() == pytest.approx(share * float(weight.norm()), rel=1e-4)
        unscaled = scattered(opened.fresh(), 3, 0.0, opened.norms)
        drawn = torch.cat([b_O_R.flatten() for _, b_O_R in unscaled.factors.values()])
        assert float(drawn.std()) == pytest.approx(0.1, rel=0.1), "as before there was a share"


def evolved(steps: int, settings: EvolutionConfig) -> list[float]:
    """The students' mean reward before each step of a race without gradients: the log-probability of a text."""
    random = Random(3)
    prompt, wanted = tiny.tokens(random, 5), tiny.tokens(random, 12)
    population = founders(1, 6)
    operators = [OPERATORS.get(name) for name in settings.operators]
    means = []
    with tiny.engine("llama", members=0) as opened:
        for number, member in enumerate(population.members):
            opened.write(member.id, scattered(opened.fresh(), number, 0.5, opened.norms))
        for step in range(1, steps + 1):
            rewards = _rewards(opened, population, prompt, wanted)
            means.append(statistics.fmean(rewards.values()))
            board = Board(tuple(_meeting(step, id, reward) for id, reward in rewards.items()))
            events = plan(population, step, settings, board, operators, run_seed=1)
            breed(opened, events, OPERATORS.all())
            population = apply(population, events)
            assert sorted(opened.members) == sorted(member.id for member in population.members)
    return means


def _rewards(opened, population: Population, prompt, wanted) -> dict[str, float]:
    asked = [ScoreRequest(prompt=prompt, completion=wanted, member=each.id) for each in population.students]
    scores = asyncio.run(opened.score(asked))
    return {each.id: statistics.fmean(score.logprobs) for each, score in zip(population.students, scores, strict=True)}


def _meeting(step: int, student: str, reward: float) -> Meeting:
    return Meeting(
        step=step,
        match=0,
        teacher="t0",
        student=student,
        kind="code_o",
        tasks=1,
        unsolved=0,
        attempts=1,
        unsolved_attempts=0,
        solved=1,
        foretold=0.5,
        result=MatchResult.DRAW,
        match_result=MatchResult.DRAW,
        student_reward=reward,
    )


def test_evolution_alone_raises_the_reward_and_without_it_nothing_changes():
    # Every step, so that the race is short: children are then old enough after two.
    on = EvolutionConfig(every=1, fitness="reward", operators=("full_noise", "spectral", "extrapolation"))
    rewards = evolved(40, on)
    assert rewards[-1] > rewards[0] + 0.2
    assert rewards == evolved(40, on), "the same run seed gives the same race"
    still = evolved(3, on.model_copy(update={"every": 0}))
    assert still[0] == still[-1]


@pytest.mark.skipif(
    not torch.cuda.is_available(), reason="needs a GPU, as the CUDA half of every operator's tests does"
)
def test_children_can_be_made_on_the_gpu():
    with tiny.engine("llama", members=2) as opened:
        breed(opened, [an_event("m1", "m1.1", "spectral", "m0")], OPERATORS.all(), torch.device("cuda"))
        assert "m1.1" in opened.members
