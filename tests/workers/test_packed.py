import asyncio
import pickle

import pytest
import torch

from redqueen.cluster.packed import pack, unpack, weights
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import MemberState, Recipe, Trajectory
from redqueen.errors import InputError
from redqueen.resources import open_engine
from workers.making import MEMBERS, SETTINGS


@pytest.fixture(scope="module")
def engine():
    with open_engine(SETTINGS, MEMBERS) as engine:
        text = Trajectory(member="t0", prompt=(1, 2), completion=(3, 4), logprobs=(-1.0, -1.0), advantages=1.0)
        asyncio.run(engine.update([text], Recipe(lr=1e-2)))
        yield engine


def numbers(state: MemberState) -> list[torch.Tensor]:
    optimiser = [] if state.optimiser is None else [state.optimiser.exp_avg, state.optimiser.exp_avg_sq]
    return [tensor for factors in (state.factors, *optimiser) for pair in factors.values() for tensor in pair]


@pytest.mark.parametrize("optimiser", [True, False])
def test_a_member_comes_out_as_it_went_in(engine: LocalEngine, optimiser: bool):
    state = engine.read("t0", optimiser=optimiser)
    packed = pickle.loads(pickle.dumps(pack("t0", state, engine.bank)))
    assert packed.values_N.ndim == 1 and len(packed.values_N) == engine.bank.width * (3 if optimiser else 1)
    packed.values_N.flags.writeable = False  # as a store gives it
    found = unpack(packed, engine.bank)
    assert (found.rank, found.alpha, found.factors.keys()) == (state.rank, state.alpha, state.factors.keys())
    assert (found.optimiser is None) is not optimiser
    if found.optimiser is not None and state.optimiser is not None:
        assert found.optimiser.step == state.optimiser.step == 1
    assert all(map(torch.equal, numbers(found), numbers(state)))


def test_one_that_has_not_learnt_has_no_optimiser(engine: LocalEngine):
    assert pack("s0", engine.read("s0", optimiser=True), engine.bank).step is None


def test_the_weights_alone_are_its_first_part(engine: LocalEngine):
    whole = pack("t0", engine.read("t0", optimiser=True), engine.bank)
    assert (
        weights(whole, engine.bank).values_N.tobytes() == pack("t0", engine.read("t0"), engine.bank).values_N.tobytes()
    )


def test_what_is_no_member_of_the_bank_is_refused(engine: LocalEngine):
    with pytest.raises(InputError, match="rank 5"):
        pack("t0", MemberState(5, 10.0, {}), engine.bank)
