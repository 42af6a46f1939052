"""The engine on a GPU: kernels and captured graphs against the same engine in plain torch on the CPU."""

import asyncio
import copy
import gc
from dataclasses import replace
from random import Random

import pytest
import torch

from engine import tiny
from redqueen.engine import memory, ops, pinned
from redqueen.engine.base import Base
from redqueen.engine.cap import capped
from redqueen.engine.local import LocalEngine
from redqueen.engine.pinned import host_zeros
from redqueen.engine.protocol import MemberState, Recipe, SampleRequest, ScoreRequest, Trajectory
from redqueen.engine.quantised import quantise
from redqueen.engine.shapes import random_base
from redqueen.errors import InputError

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
MEMBERS = ["a", "b", "c"]


def engines(architecture: str, dtype: torch.dtype = torch.float32, *, rows: int = 6) -> tuple[LocalEngine, LocalEngine]:
    """The same members on the CPU and on the GPU; some tokens end a completion."""
    model = tiny.model(architecture)
    pair = []
    for device in ("cpu", "cuda"):
        base = Base(architecture, copy.deepcopy(model).to(device=device, dtype=dtype), None, frozenset(range(5)))
        pair.append(LocalEngine(base, members=MEMBERS, rank=4, rows=rows))
    numbers = torch.Generator().manual_seed(1)
    for member in MEMBERS:
        state = pair[0].read(member)
        factors = {name: (a, 0.3 * torch.randn(b.shape, generator=numbers)) for name, (a, b) in state.factors.items()}
        for engine in pair:
            engine.write(member, MemberState(state.rank, state.alpha, factors))
    return pair[0], pair[1]


def requests(count: int = 20) -> list[SampleRequest]:
    rng = Random(0)
    return [
        SampleRequest(
            prompt=tuple(rng.randrange(tiny.VOCABULARY) for _ in range(rng.randint(1, 40))),
            member=rng.choice([None, *MEMBERS]),
            key=rng.getrandbits(64),
            max_tokens=rng.randint(1, 30),
            temperature=rng.choice([0.0, 0.7, 1.0]),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("architecture", tiny.ARCHITECTURES)
def test_tokens_are_those_of_the_cpu(architecture):
    cpu, gpu = engines(architecture)
    assert ops.fused(gpu.bank.compute_A_D), "the kernels take part"
    wanted = requests()
    mine, twin = (asyncio.run(engine.sample(wanted)) for engine in (gpu, cpu))
    assert gpu.sampler.backend.graphs, "steps were captured"
    assert [sample.tokens for sample in mine] == [sample.tokens for sample in twin]
    for one, other in zip(mine, twin, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-3)


@pytest.mark.parametrize("architecture", tiny.ARCHITECTURES)
def test_updates_are_those_of_the_cpu(architecture):
    cpu, gpu = engines(architecture)
    wanted = [request for request in requests(12) if request.member is not None]
    samples = asyncio.run(cpu.sample(wanted))
    batch = [
        Trajectory(
            member=request.member or "",
            prompt=request.prompt,
            completion=sample.tokens,
            logprobs=sample.logprobs,
            advantages=float(at % 3 - 1),
            temperature=request.temperature or 1.0,
        )
        for at, (request, sample) in enumerate(zip(wanted, samples, strict=True))
    ]
    recipe = Recipe(lr=1e-2, eps=1e-3, normaliser=10.0)
    for checkpointing in (False, True):
        gpu.trainer.checkpointing = checkpointing
        mine, twin = (asyncio.run(engine.update(batch, recipe)) for engine in (gpu, cpu))
        for member in mine:
            assert mine[member].grad_norm == pytest.approx(twin[member].grad_norm, rel=1e-3)
            for (a, b), (c, d) in zip(
                gpu.read(member).factors.values(), cpu.read(member).factors.values(), strict=True
            ):
                assert (a - c).norm() <= 1e-3 * c.norm()
                assert (b - d).norm() <= 1e-3 * d.norm()


@pytest.mark.parametrize("architecture", ["llama", "qwen2"])
def test_half_precision_agrees_with_itself(architecture):
    _, gpu = engines(architecture, torch.bfloat16)
    wanted = [request for request in requests(40) if request.temperature]
    samples = asyncio.run(gpu.sample(wanted))
    scores = asyncio.run(
        gpu.score(
            [
                ScoreRequest(prompt=r.prompt, completion=s.tokens, member=r.member, temperature=r.temperature)
                for r, s in zip(wanted, samples, strict=True)
            ]
        )
    )
    errors = [
        abs(a - b) for s, t in zip(samples, scores, strict=True) for a, b in zip(s.logprobs, t.logprobs, strict=True)
    ]
    assert sum(errors) / len(errors) < 0.05


def test_a_member_whose_b_is_broken_spoils_nobody_else():
    _, gpu = engines("qwen2", rows=16)
    own = [request for request in requests(40) if request.member == "a"]
    right = [one.tokens for one in asyncio.run(gpu.sample(own))]
    state = gpu.read("b")
    factors = {name: (a_R_I, b_O_R * float("nan")) for name, (a_R_I, b_O_R) in state.factors.items()}
    gpu.write("b", replace(state, factors=factors))
    both = [one for request in own for one in (request, replace(request, member="b"))]
    assert [one.tokens for one in asyncio.run(gpu.sample(both))[::2]] == right


@pytest.mark.parametrize("together", [1, 2, None])
def test_hosted_members_do_what_others_do(together):
    base = Base("llama", tiny.model("llama").to(device="cuda", dtype=torch.bfloat16), None, frozenset())
    wanted = [request for request in requests(30) if request.member is not None]
    batch: list[Trajectory] = []
    found = []
    for hosted in (False, True):
        with LocalEngine(base, members=MEMBERS, rank=4, rows=6, hosted=hosted) as engine:
            engine.trainer.together = together
            for number, member in enumerate(MEMBERS):
                engine.write(member, tiny.shaken(engine.read(member), number))
            samples = asyncio.run(engine.sample(wanted))
            batch = batch or [
                Trajectory(
                    member=request.member or "", prompt=request.prompt, completion=sample.tokens,
                    logprobs=sample.logprobs, advantages=1.0 if at % 2 else -1.0,
                )
                for at, (request, sample) in enumerate(zip(wanted, samples, strict=True))
            ]  # fmt: skip
            for _ in range(3):
                asyncio.run(engine.update(batch, Recipe(lr=1e-2, normaliser=10.0, eps=1e-2)))
            engine.write("late", engine.read("b", optimiser=True))
            engine.remove("a")
            bank = engine.bank
            assert (bank.masters_A_D.device.type == "cpu") == hosted and bank.compute_A_D.is_cuda
            assert bank.masters_A_D.is_pinned() == hosted
            assert torch.equal(bank.compute_A_D.float().cpu(), bank.masters_A_D.bfloat16().float().cpu())
            found.append([engine.read(member, optimiser=True) for member in engine.members])
    for plain, mine in zip(*found, strict=True):
        assert tiny.difference(plain, mine) <= 1e-3
        assert plain.optimiser is not None and mine.optimiser is not None
        assert plain.optimiser.step == mine.optimiser.step == 3


def test_pages_of_the_host_are_given_back(monkeypatch):
    given_back: list[int] = []
    unregister = pinned._unregister

    def spy(address: int) -> None:
        unregister(address)
        given_back.append(address)

    monkeypatch.setattr(pinned, "_unregister", spy)
    device = torch.device("cuda")
    first = host_zeros(3, 5000, dtype=torch.float32, beside=device)
    address, row = first.data_ptr(), first[1]
    assert row.is_pinned() and host_zeros(7, dtype=torch.float32, beside=device).is_pinned()
    del first
    assert row.fill_(2.0).to(device, non_blocking=True).sum().item() == 10_000 and row.is_pinned()
    assert address not in given_back
    del row
    gc.collect()
    assert address in given_back and len(given_back) == 2


def test_a_cap_holds_until_the_engine_is_closed():
    size = memory.whole(torch.device("cuda"))
    base = Base("llama", tiny.model("llama").to(device="cuda", dtype=torch.bfloat16), None, frozenset())
    with LocalEngine(base, members=MEMBERS, rank=4, rows=6, most_bytes=size // 10), pytest.raises(RuntimeError):
        torch.empty(size // 5, dtype=torch.uint8, device="cuda")
    torch.empty(size // 5, dtype=torch.uint8, device="cuda")
    torch.cuda.empty_cache()
    device = torch.device("cuda")
    with pytest.raises(InputError, match=r"does not fit within engine\.memory"), capped(device, size // 10):
        torch.empty(size // 5, dtype=torch.uint8, device="cuda")


def test_graphs_follow_a_bank_that_grows():
    cpu, gpu = engines("llama", rows=2)  # so few that the layout does not grow with the bank
    asyncio.run(gpu.sample(requests()))
    for engine in (cpu, gpu):
        engine.write("newcomer", engine.read("b"))
        engine.write("a", engine.read("c"))
    wanted = [
        SampleRequest(prompt=(1, 2, 3), member=member, key=5, max_tokens=12) for member in ("newcomer", "b", "a", "c")
    ]
    mine, twin = (asyncio.run(engine.sample(wanted)) for engine in (gpu, cpu))
    assert [sample.tokens for sample in mine] == [sample.tokens for sample in twin]
    assert mine[0].tokens == mine[1].tokens
    assert mine[2].tokens == mine[3].tokens


@pytest.mark.parametrize("architecture", ["llama", "mistral", "qwen2"])
def test_sequences_side_by_side_train_as_in_rows(architecture):
    """In half precision, where flash attention takes runs of any lengths; the rounding differs, the direction not."""
    _, gpu = engines(architecture, torch.bfloat16)
    assert gpu.trainer.packed
    rng = Random(0)
    head = tuple(rng.randrange(tiny.VOCABULARY) for _ in range(50))
    batch = [
        Trajectory(
            member=member,
            prompt=(*head, *prompt),
            completion=tuple(rng.randrange(tiny.VOCABULARY) for _ in range(rng.randint(1, 40))),
            logprobs=(),
            advantages=rng.choice([-1.0, 1.0]),
        )
        for member in MEMBERS
        for prompt in ((3, 1), (4, 1, 5), (9,))
        for _ in range(5)
    ]
    batch = [replace(one, logprobs=(-4.0,) * len(one.completion)) for one in batch]
    moved = []
    for packed in (True, False):
        gpu.trainer.packed = packed
        before = {member: gpu.read(member, optimiser=True) for member in MEMBERS}
        stats = asyncio.run(gpu.update(batch, Recipe(lr=1e-2, eps=1e-3, normaliser=10.0)))
        moved.append({member: _numbers(gpu.read(member)) - _numbers(before[member]) for member in MEMBERS})
        for member in MEMBERS:
            assert not stats[member].skipped
            gpu.write(member, before[member])
    for member in MEMBERS:
        mine, twin = moved[0][member], moved[1][member]
        assert (mine - twin).norm() <= 0.1 * twin.norm()


def _numbers(state: MemberState) -> torch.Tensor:
    return torch.cat([factor.flatten() for pair in state.factors.values() for factor in pair])


@pytest.mark.parametrize("how", ["nf4", "int8"])
@pytest.mark.parametrize("architecture", ["qwen2", "gemma3"])
def test_a_quantised_base_does_what_its_numbers_written_out_do(architecture, how):
    pytest.importorskip("bitsandbytes")
    model = tiny.model(architecture, **tiny.BLOCKS)
    quantise(model, how, torch.device("cuda"))
    base = Base(architecture, model, None, frozenset())
    plain = tiny.written_out(base)
    found = []
    wanted = [request for request in requests() if request.member is not None]
    batch: list[Trajectory] = []
    for of in (base, plain):
        with LocalEngine(of, members=MEMBERS, rank=4, rows=6) as engine:
            for number, member in enumerate(MEMBERS):
                engine.write(member, tiny.shaken(engine.read(member), number))
            if not batch:
                samples = asyncio.run(engine.sample(wanted))
                assert engine.sampler.backend.graphs, "steps were captured"
                batch = [
                    Trajectory(
                        member=request.member or "", prompt=request.prompt, completion=sample.tokens,
                        logprobs=sample.logprobs, advantages=1.0 if at % 2 else -1.0,
                    )
                    for at, (request, sample) in enumerate(zip(wanted, samples, strict=True))
                ]  # fmt: skip
            asked = [ScoreRequest(prompt=each.prompt, completion=each.completion, member=each.member) for each in batch]
            scores = asyncio.run(engine.score(asked))
            asyncio.run(engine.update(batch, Recipe(lr=1e-2, normaliser=10.0, eps=1e-2)))
            found.append(([score.logprobs for score in scores], engine.read("a")))
    (scores, state), (right_scores, right) = found
    for mine, twin in zip(scores, right_scores, strict=True):
        assert mine == pytest.approx(twin, abs=1e-3)
    assert tiny.difference(state, right) <= 1e-3


def test_the_card_never_holds_the_base_as_it_was_before_it_was_quantised():
    pytest.importorskip("bitsandbytes")
    device, before = torch.device("cuda"), torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    base = random_base("135m", device=device, dtype=torch.bfloat16, quantise="nf4")
    peak, held = torch.cuda.max_memory_allocated() - before, torch.cuda.memory_allocated() - before
    plain = 2 * 134_515_008
    assert base.quantise == "nf4"
    assert held < plain / 2 and peak < 0.75 * plain
