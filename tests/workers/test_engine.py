"""An engine with shards does what the engine of one process does, whatever number of workers it has."""

import asyncio
from collections.abc import Iterator
from functools import partial

import pytest

from redqueen.cluster.engine import ClusterEngine
from redqueen.engine.protocol import Ask, Recipe, Sample, SampleRequest, Trajectory
from redqueen.engine.queued import QueuedEngine
from redqueen.errors import Fault, InputError
from redqueen.resources import open_engine
from workers.making import MEMBERS, SETTINGS, opened, worked


@pytest.fixture(scope="module")
def two_shards() -> str:
    with opened(2) as engine:
        return worked(engine)


def test_with_one_shard_all_is_bit_for_bit_as_in_one_process():
    with open_engine(SETTINGS, MEMBERS, 3) as local:
        expected = worked(local)
    with opened(1) as engine:
        assert worked(engine) == expected


def test_workers_quantise_the_base_as_one_process_does():
    settings = SETTINGS.model_copy(update={"quantise": "int8"})
    with open_engine(settings, MEMBERS, 3) as local:
        expected, size = worked(local), local.size
    with opened(1, settings=settings) as engine:
        assert engine.base.quantise == "int8" and engine.size == size
        assert worked(engine) == expected


@pytest.mark.parametrize("workers", [2, 3])
def test_the_number_of_workers_changes_nothing(two_shards: str, workers: int):
    with opened(2, workers) as engine:
        assert worked(engine) == two_shards


def test_where_batches_may_depend_on_the_time_chains_join_what_is_under_way(monkeypatch):
    """As on a GPU, where a call goes to its workers as soon as it is made."""
    made = QueuedEngine.__init__
    monkeypatch.setattr(QueuedEngine, "__init__", lambda self, members, exact: made(self, members, exact=False))
    prompts = [(number, 2, 3) for number in range(1, 13)]

    async def chain(ask: Ask, number: int) -> list[Sample]:
        samples: list[Sample] = []
        for turn in range(3):
            members = [MEMBERS[(number + turn) % 4], MEMBERS[turn], None]
            key = 10 * number + turn
            samples += await ask(
                [
                    SampleRequest(prompt=prompts[number], member=each, key=key, max_tokens=2 + key % 9)
                    for each in members
                ]
            )
        return samples

    def texts(engine: QueuedEngine) -> list[list[tuple[int, ...]]]:
        found = asyncio.run(engine.stream([partial(chain, number=number) for number in range(12)]))
        return [[sample.tokens for sample in samples] for samples in found]

    with open_engine(SETTINGS, MEMBERS, 3) as local, opened(2, 2) as engine:
        assert not engine.exact
        assert texts(engine) == texts(local)
        assert worked(engine)


def test_the_driver_holds_no_weights_of_the_base():
    with opened(1) as engine:
        assert {weight.device.type for weight in engine.base.model.parameters()} == {"meta"}
        assert engine.device.type == "cpu" and engine.computes_on.startswith("cpu")


@pytest.fixture(scope="module")
def engine() -> Iterator[ClusterEngine]:
    with opened(2) as engine:
        yield engine


def test_nobody_is_read_who_is_not_there(engine: ClusterEngine):
    for read in (engine.read, lambda member: engine.look([member], len), engine.remove):
        with pytest.raises(InputError, match=r"there is no member 't9'; the members are t0, s1, t1, s0"):
            read("t9")


def test_one_mistaken_call_fails_alone(engine: ClusterEngine):
    good = SampleRequest(prompt=(1, 2), member="t0", key=1, max_tokens=4)
    bad = [SampleRequest(prompt=(1, 2), member=member, key=1, max_tokens=0) for member in ("t0", "t1", "s0")]

    async def both():
        return await asyncio.gather(engine.sample([good]), engine.sample([good, *bad]), return_exceptions=True)

    answer, error = asyncio.run(both())
    assert isinstance(answer, list) and len(answer[0].tokens) <= 4
    assert isinstance(error, InputError) and "max_tokens" in str(error)
    assert asyncio.run(engine.sample([good])) == answer


def test_an_update_that_is_refused_is_not_tried_again(engine: ClusterEngine):
    def text(member: str, temperature: float = 1.0) -> Trajectory:
        return Trajectory(
            member=member, prompt=(1,), completion=(2,), logprobs=(-1.0,), advantages=1.0, temperature=temperature
        )

    with pytest.raises(Fault, match="an update was refused: a temperature cannot be -1"):
        asyncio.run(engine.update([text("t0"), text("t1", -1.0)], Recipe(lr=1e-3)))
