"""The retention test on a real engine with a toy reward: how often the completion holds even tokens."""

import statistics

import pytest
from engine import tiny

from redqueen.commands.main import main
from redqueen.engine.protocol import Recipe, SampleRequest, Trajectory
from redqueen.evolution.retention import WINDOW, RetentionReport, back_after, measure
from redqueen.keys import key
from redqueen.plugins import OPERATORS

ATTEMPTS = 24
PROMPT = (5, 17, 42)
RECIPE = Recipe(lr=3e-2, normaliser=8 * ATTEMPTS)


def even_tokens(opened):
    """A race in which even tokens are rewarded."""

    async def practice(members, frozen, update):
        asked = [
            SampleRequest(prompt=PROMPT, member=id, key=key(update, index), max_tokens=8)
            for id in members
            for index in range(ATTEMPTS)
        ]
        samples = await opened.sample(asked)
        rewards = [statistics.fmean(token % 2 == 0 for token in sample.tokens) for sample in samples]
        of = {id: rewards[at * ATTEMPTS : (at + 1) * ATTEMPTS] for at, id in enumerate(members)}
        means = {id: statistics.fmean(values) for id, values in of.items()}
        batch = [
            Trajectory(
                member=request.member,
                prompt=PROMPT,
                completion=sample.tokens,
                logprobs=sample.logprobs,
                advantages=reward - means[request.member],
            )
            for request, sample, reward in zip(asked, samples, rewards, strict=True)
            if request.member not in frozen
        ]
        await opened.update(batch, RECIPE)
        return means

    return practice


@pytest.fixture(scope="module")
def found() -> RetentionReport:
    import asyncio

    async def run(opened) -> RetentionReport:
        practice = even_tokens(opened)
        for update in range(25):
            await practice(["m0", "m1"], [], 1000 + update)
        before = {id: opened.read(id) for id in opened.members}
        names = ("spectral", "svd_subspace")
        result = await measure(
            opened, "m0", "m1", [OPERATORS.get(name) for name in names], practice, seeds=2, updates=8
        )
        assert opened.members == ["m0", "m1"], "the children have gone"
        assert all(tiny.difference(state, opened.read(id)) == 0 for id, state in before.items())
        return result

    with tiny.engine("llama", members=0, rows=64) as opened:
        for id in ("m0", "m1"):
            opened.write(id, opened.fresh())
        return asyncio.run(run(opened))


def test_every_operator_both_controls_and_a_fresh_adapter_are_tested(found):
    assert [row.operator for row in found.rows] == ["spectral", "svd_subspace", "copy_parent", "linear_0_5", "fresh"]
    assert all(row.children == 2 for row in found.rows)
    assert all(len(curve.rewards) == 8 for curve in found.curves)


def test_a_copy_is_back_at_once_and_a_fresh_adapter_starts_far_below(found):
    rows = {row.operator: row for row in found.rows}
    assert rows["copy_parent"].updates == 0
    assert rows["copy_parent"].back == 1
    assert rows["fresh"].first_reward < found.level - 0.15
    assert rows["fresh"].updates > rows["copy_parent"].updates


def test_children_learn_on(found):
    fresh = [curve for curve in found.curves if curve.operator == "fresh"]
    first = statistics.fmean(curve.rewards[0] for curve in fresh)
    last = statistics.fmean(curve.rewards[-1] for curve in fresh)
    assert last > first + 0.05


def test_the_report_is_plain_json_and_renders(found, capsys):
    import json

    from redqueen.console import show

    show(found, as_json=True)
    answer = json.loads(capsys.readouterr().out)
    assert answer["parent"] == "m0"
    show(found, as_json=False)
    assert "copy_parent" in capsys.readouterr().out


def test_back_is_when_a_mean_of_several_updates_reaches_the_level():
    assert WINDOW == 3
    assert back_after([0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0], 1.0) == 4
    assert back_after([1.0, 1.0, 1.0], 1.0) == 0
    assert back_after([0.0, 1.0, 0.0, 1.0], 0.9) is None


def test_a_test_of_nothing_is_refused(capsys):
    assert main(["retention", "nowhere", "--member", "s0", "--updates", "2"]) == 2
    assert "--updates cannot be 2; use 3 or more" in capsys.readouterr().err
    assert main(["retention", "nowhere", "--member", "s0", "--children", "0"]) == 2
    assert "--children cannot be 0" in capsys.readouterr().err


def test_a_child_within_the_parents_own_spread_is_back():
    from redqueen.evolution.retention import _report

    played = [{"p": 0.6 + 0.1 * (-1) ** update, "near": 0.56, "far": 0.5} for update in range(6)]
    found = _report("p", {"near": ("near", 0), "far": ("far", 0)}, played)
    assert found.level == pytest.approx(0.6)
    assert {row.operator: row.back for row in found.rows} == {"near": 1, "far": 0}


@pytest.mark.parametrize(
    ("copies", "fresh", "told"),
    [
        (0.6, 0.1, []),
        (0.6, 0.6, ["100% of the fresh members are back too"]),
        (0.1, 0.1, ["of the copies of the parent 0% are back"]),
    ],
)
def test_a_warning_is_given_where_a_control_speaks_against_the_test_and_nowhere_else(copies, fresh, told, capsys):
    from redqueen.console import show
    from redqueen.evolution.retention import _report

    played = [{"p": 0.6 + 0.01 * (-1) ** update, "copy": copies, "fresh": fresh} for update in range(6)]
    found = _report("p", {"copy": ("copy_parent", 0), "fresh": ("fresh", 0)}, played)
    assert len(found.warnings) == len(told)
    assert all(warning.startswith(words) for warning, words in zip(found.warnings, told, strict=True))
    assert found.as_json()["warnings"] == found.warnings
    show(found, as_json=False)
    shown = capsys.readouterr().out
    assert all(warning in shown for warning in found.warnings)
