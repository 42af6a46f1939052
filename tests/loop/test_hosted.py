"""A race whose members are hosted is the race that it would be otherwise."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from kill import SETTINGS

from loop.making import CHANGES, Ran, race_to_the_end, same_moments, same_weights, settings
from redqueen.commands.main import main
from redqueen.engine import memory
from redqueen.phases.view import Quiet
from redqueen.runs import CHECKPOINTS, checkpoints
from redqueen.training.train import Fork, train

LEARNS: CHANGES = {
    "run": {"steps": 3, "keep_last": 3},
    "rl": {"lr": 1e-2},
    "evolution": {"every": 2, "pull": 0.5, "pull_every": 2, "operators": ("slot_noise", "layer_wise")},
}


@contextmanager
def hosted_members() -> Iterator[None]:
    """A CPU saves nothing by it, so no plan finds it by itself."""
    plan = memory.plan

    def hosted(*of: Any, **options: Any) -> memory.MemoryPlan:
        return plan(*of, **{**options, "hosted": True})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "plan", hosted)
        yield


def races(place: Path, name: str) -> list[Path]:
    """One that is resumed, and a fork of the plain one."""
    whole, fork = place / name, place / f"{name}-fork"
    race_to_the_end(whole, settings(changes=LEARNS))
    longer = settings(changes={**LEARNS, "run": {"steps": 5, "keep_last": 3}})
    train(longer, whole, Quiet())
    train(longer, fork, Quiet(), Fork(place / "plain", 3))
    return [whole, fork]


def test_a_race_ends_as_it_would_otherwise_resumed_or_forked(place: Path):
    plain = races(place, "plain")
    with hosted_members():
        hosted = races(place, "hosted")
    for ours, theirs in zip(hosted, plain, strict=True):
        assert Ran(ours, settings()).tables == Ran(theirs, settings()).tables
        mine, right = (checkpoints.load(each / CHECKPOINTS / checkpoints.name(5)).members for each in (ours, theirs))
        assert mine.keys() == right.keys()
        for member, state in right.items():
            assert same_weights(mine[member], state)
            own, moments = mine[member].optimiser, state.optimiser
            assert (own is None) == (moments is None)
            if own is not None and moments is not None:
                assert own.step == moments.step and same_moments(own, moments)


def test_a_plan_says_what_the_host_holds(place: Path, capsys):
    file = place / "hosted.toml"
    file.write_text(SETTINGS)
    words = ["train", str(file), "--plan"]
    assert main(words) == 0
    assert "host" not in capsys.readouterr().out
    with hosted_members():
        assert main(words) == 0
    out, err = capsys.readouterr()
    assert "beside it in the host's memory 0.0" in out
    assert "the members' masters and moments in" in err
