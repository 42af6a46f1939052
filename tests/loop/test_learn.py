"""Who is trained on what: every text that tells something, by members that are fit to learn."""

import asyncio
from collections import Counter

import pytest

from loop.scripted import Script, race, riddle, state, tries
from redqueen.phases.judge import judge
from redqueen.phases.learn import Learned, entropy, learn
from redqueen.phases.state import Health
from redqueen.population.members import SOLO
from redqueen.rl.batch import MIN_ROWS


def learned(changes=None, *, engine: Script | None = None, health: Health | None = None, step: int = 9, grades=None):
    """What t0 with two prompts of four and s0 with a task of each come to; the rows, and what was said."""
    engine = engine or Script()
    of = race(changes, engine)
    sampled = {"temperature": of.settings.rl.temperature}
    proposals = [riddle(place, group=place // 4, tokens=2, **sampled) for place in range(8)]
    grades = grades or ["CWWW", "CCWW", "CCCW", "CCCC", "WWWW", "CWWW", "CCWW", "CCCM"]
    attempts = [each for place, grade in enumerate(grades) for each in tries(place, grade, tokens=3, **sampled)]
    where = state(health=health)
    rollouts = judge(of, where, step, proposals, attempts)
    return asyncio.run(learn(of, where, step, rollouts)), engine.batch


def rows(batch) -> dict[str, int]:
    return dict(Counter(row.member for row in batch))


def says(done: Learned) -> dict[str, str]:
    return {skip.member: skip.measure for skip in done.skips}


def test_every_text_trains_but_those_of_prompts_that_agree():
    done, batch = learned()
    assert rows(batch) == {"t0": 8, "s0": 6 * 4}
    assert done.skips == ()
    places = {row.prompt[0] for row in batch if row.member == "s0"}
    assert places == {0, 1, 2, 5, 6, 7}, "all solved 3, and nobody 4"


def test_an_estimator_without_prompts_trains_on_all():
    _, batch = learned({"rl": {"estimator": "trr++"}})
    assert rows(batch)["s0"] == 8 * 4


def test_texts_are_trained_on_as_they_were_sampled():
    _, batch = learned({"rl": {"temperature": 0.7}})
    row = next(row for row in batch if row.member == "s0")
    assert (row.completion, row.logprobs, row.temperature) == ((0, 1, 2), (-0.5,) * 3, 0.7)
    assert isinstance(row.advantages, float)
    assert row.advantages > 0, "it was right"


def test_the_rate_warms_up():
    lr = {"rl": {"lr": 0.5, "warmup": 5}}
    assert [learned(lr, step=step)[0].lrs["s0"] for step in (1, 2, 5, 9)] == [0.1, 0.2, 0.5, 0.5]
    assert learned({"rl": {"lr": 0.5, "warmup": 0}}, step=1)[0].lrs["s0"] == 0.5


def test_who_was_called_back_learns_at_its_own_rate():
    lr = {"rl": {"lr": 0.5, "warmup": 0}}
    rates = learned(lr, health=Health(rates={"s0": 0.25}))[0].lrs
    assert rates == {"t0": 0.5, "s0": 0.125}


@pytest.mark.parametrize(("frozen", "trained"), [("teachers", {"s0"}), ("students", {"t0"}), ("nobody", {"t0", "s0"})])
def test_the_frozen_are_not_trained_and_not_reported(frozen: str, trained: set[str]):
    done, batch = learned({"rl": {"frozen": frozen}})
    assert rows(batch).keys() == trained
    assert done.skips == ()


def test_without_updates_nobody_is_trained():
    done, batch = learned({"rl": {"update": "none"}})
    assert (batch, done.stats, done.skips) == ([], {}, ())


def test_a_single_agent_learns_from_both_roles():
    single = {"population": {"teachers": 1, "students": 1, "single": True}, "evolution": {"every": 0}}
    _, batch = learned(single)
    assert rows(batch) == {SOLO: 8 + 6 * 4}


def test_too_few_telling_texts_are_no_step():
    done, batch = learned(grades=["CWWW", "CCCC", "CCCC", "CCCC", "WWWW", "WWWW", "WWWW", "CCCC"])
    assert rows(batch) == {}
    assert says(done) == {"t0": "rows", "s0": "rows"}
    assert done.skips[0].floor == MIN_ROWS


def test_who_is_too_sure_of_itself_is_skipped():
    done, batch = learned({"guard": {"entropy_floor": 0.5}})
    assert done.skips == ()
    done, batch = learned({"guard": {"entropy_floor": 0.51}})
    assert (batch, done.stats) == ([], {})
    assert {(skip.member, skip.measure, skip.value, skip.floor) for skip in done.skips} == {
        ("t0", "entropy", 0.5, 0.51),
        ("s0", "entropy", 0.5, 0.51),
    }


def test_who_has_fallen_below_the_floor_of_sound_texts_is_skipped_and_who_never_was_above_is_not():
    grades = ["CMMM"] * 8
    guard = {"guard": {"valid_floor": 0.5}}
    fallen, batch = learned(guard, grades=grades, health=Health({"s0": 0.6}))
    assert says(fallen)["s0"] == "valid"
    assert "s0" not in rows(batch)
    low, batch = learned(guard, grades=grades, health=Health({"s0": 0.4}))
    assert "s0" not in says(low)
    assert rows(batch)["s0"] == 8 * 4
    new, batch = learned(guard, grades=grades)
    assert "s0" not in says(new)
    assert rows(batch)["s0"] == 8 * 4


def test_a_broken_gradient_is_said():
    done, _ = learned(engine=Script(broken=("s0",)))
    assert [(skip.member, skip.measure) for skip in done.skips] == [("s0", "grad_norm")]
    assert done.stats["s0"].skipped
    assert not done.stats["t0"].skipped


def test_shuffled_rewards_are_the_same_ones_dealt_to_others():
    _, plain = learned()
    _, dealt = learned({"rl": {"shuffle": True}})
    _, again = learned({"rl": {"shuffle": True}})
    assert [row.advantages for row in dealt] == [row.advantages for row in again]
    assert [row.advantages for row in dealt] != [row.advantages for row in plain]


def test_a_price_on_leaving_the_base_is_put_on_every_row_and_token():
    _, free = learned()
    _, held = learned({"rl": {"kl": 0.25}})
    free, held = ([row for row in batch if row.member == "s0"] for batch in (free, held))
    assert len(held) == 8 * 4, "texts that agree too"
    # A token of the student has a log-probability of -0.5, and the base gives it -1.
    price = 0.25 * 0.5 / (8 * 4 * 512)
    advantages = Counter(round(row.advantages, 12) for row in free if isinstance(row.advantages, float))
    advantages[0.0] += 8
    priced = Counter(round(row.advantages[0] + price, 12) for row in held if isinstance(row.advantages, tuple))
    assert priced == advantages
    assert all(len(row.advantages) == 3 for row in held if isinstance(row.advantages, tuple))


def test_entropy_is_the_mean_over_tokens_and_not_over_texts():
    attempts = [*tries(0, "C", tokens=3, logprob=-1.0), *tries(0, "W", tokens=1, logprob=-0.2)]
    assert entropy(attempts) == pytest.approx(3.2 / 4)


def test_health_remembers_the_best_that_was_seen():
    health = Health().see({"t0": 0.5, "s0": 0.2}, {}).see({"t0": 0.1, "s0": 0.4}, {})
    assert health.best_valid == {"t0": 0.5, "s0": 0.4}
    assert health.see({"t1": 0.3}, {}).best_valid == {"t0": 0.5, "s0": 0.4, "t1": 0.3}
