"""The engine on this machine: one base, its members, one device."""

import platform
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from redqueen.engine import memory, ops
from redqueen.engine.adaptable import adaptable, fused_groups, llama_family
from redqueen.engine.bank import Bank
from redqueen.engine.base import Base
from redqueen.engine.body import Body
from redqueen.engine.call_queue import Kind
from redqueen.engine.flops import ModelSize
from redqueen.engine.general import GeneralBody
from redqueen.engine.llama import LlamaBody
from redqueen.engine.logits_check import check_logits, own_logits
from redqueen.engine.messages import say
from redqueen.engine.products import quick_products
from redqueen.engine.protocol import MemberId, Recipe
from redqueen.engine.quantised import frozen
from redqueen.engine.queued import QueuedEngine
from redqueen.engine.sampler import Sampler
from redqueen.engine.split.part import Part
from redqueen.engine.switch_interval import SHORT_SWITCH_INTERVAL
from redqueen.engine.trainer import Trainer
from redqueen.errors import InputError

ROWS = 512
"""Completions that are sampled at once, on CUDA."""
CPU_ROWS, CPU_WORK = (64, 1024), 1 << 30
"""On a CPU a step of a small base takes hardly longer with more rows: rows times parameters is about `CPU_WORK`, within
these bounds."""


class LocalEngine(QueuedEngine):
    """Implements `Engine` on one device. Close it, or use it in a `with` statement."""

    def __init__(
        self,
        base: Base,
        *,
        members: Sequence[MemberId] = (),
        rank: int = 16,
        alpha: float | None = None,
        target_modules: Sequence[str] | None = None,
        rows: int | None = None,
        memory_bytes: int | None = None,
        most_bytes: int | None = None,
        seed: int = 0,
        room: int = 0,
        trains: bool = True,
        part: Part | None = None,
    ) -> None:
        """Defaults: `alpha` twice the rank, `target_modules` all linear layers of the base's blocks, `memory_bytes` the
        device's free memory. With `most_bytes` the engine keeps to so many, the base included, and on CUDA this process
        is refused more. `rows` completions are sampled at once; `seed` draws the A factors that new members
        share; there is memory for so many members that come later as `room` says. An engine that does not train samples
        and scores, and has more room for it. With a `part` the engine has that of the base, and does all that it does
        together with the processes that have the others."""
        _check_adapters(rank, alpha, members, target_modules)
        if rows is not None and rows < 1:
            raise InputError(f"an engine cannot have {rows} rows", "use 1 or more")
        model = base.model
        self.base = base
        linears = adaptable(model, target_modules)
        groups = fused_groups(model, linears)
        self.target_modules = None if target_modules is None else tuple(target_modules)
        fast = llama_family(model) is None
        self.shape = memory.Shape.of(model, fast=fast)
        self.size = ModelSize.of(
            model,
            attention=self.shape.layers * self.shape.heads * self.shape.dim,
            adapter=rank * sum(linear.inputs + linear.outputs for linear in linears),
        )
        expected = own_logits(base)
        # The other parts are not asked.
        whole = [] if part is not None and part.rank else linears
        self.norms = {linear.name: frozen(model.get_submodule(linear.name)).norm() for linear in whole}
        if part is not None:
            part.take(model)
            here = sum(weight.numel() for weight in {id(each): each for each in model.parameters()}.values())
            self.shape = self.shape.part(part.size, here)
        parameter = next(model.parameters())
        self.device, self.dtype = parameter.device, parameter.dtype
        kind = "cuda" if self.device.type == "cuda" else "cpu"
        self.device_type = kind
        self.computes_on = torch.cuda.get_device_name() if kind == "cuda" else f"cpu ({platform.machine()})"
        available = memory.available(self.device) if memory_bytes is None else memory_bytes
        held = self.shape.nbytes(self.dtype)
        planned = partial(
            memory.plan, self.shape, linears, rank=rank, members=len(members) + room, device=kind, dtype=self.dtype,
            trains=trains,
        )  # fmt: skip
        free = planned(memory=available + held)
        self.plan = free if most_bytes is None else planned(memory=min(available + held, most_bytes))
        capped = self.plan != free
        if self.plan.micro_tokens == 0:
            raise InputError(
                f"{len(members) + room} members of rank {rank} on {base.name} leave no room to "
                + ("train" if trains else "sample")
                + " within engine.memory" * capped,
                "raise engine.memory, or " * bool(free.micro_tokens)
                + "use fewer members, a lower rank or a smaller base (`redqueen doctor --base` says what fits)",
            )
        if capped:
            say(f"within engine.memory there is room for {self.plan.described()}; without it for {free.described()}")
        if kind == "cuda":
            share = 1.0 if most_bytes is None else min(1.0, most_bytes / memory.whole(self.device))
            torch.cuda.set_per_process_memory_fraction(share, self.device)
        self.bank = Bank(
            groups, rank=rank, alpha=2.0 * rank if alpha is None else alpha, members=members, device=self.device,
            dtype=self.dtype, seed=seed, trains=trains,
        )  # fmt: skip
        self.bank.reserve(room)
        self.body: Body = LlamaBody(model, self.bank, part) if fast else GeneralBody(model, self.bank)
        check_logits(base, self.body, expected.to(self.device))
        self.sampler = Sampler(
            base,
            self.body,
            self.bank,
            rows=rows or usual_rows(kind, self.shape.parameters),
            max_cache_tokens=self.plan.cache_tokens,
            prefill_tokens=self.plan.micro_tokens,
        )
        self.trainer = Trainer(
            body=self.body,
            bank=self.bank,
            micro_tokens=self.plan.micro_tokens,
            checkpointing=self.plan.checkpointing,
            packed=ops.flash(torch.empty(self.body.heads.dim, dtype=self.dtype, device=self.device)),
            release=self.sampler.backend.drop,
        )
        super().__init__(self.bank, exact=kind == "cpu")

    @property
    def members(self) -> list[MemberId]:
        return list(self.bank.rows)

    @property
    def limits(self) -> memory.Limits:
        return memory.Limits(self.trainer.micro_tokens, self.sampler.prefill_tokens, self.sampler.max_cache_tokens)

    def agree(self, limits: memory.Limits) -> None:
        """Keep to these from the next turn on."""
        self.trainer.micro_tokens = limits.micro_tokens
        self.sampler.prefill_tokens, self.sampler.max_cache_tokens = limits.prefill_tokens, limits.cache_tokens

    def run(self, kind: Kind, items: Any, recipe: Recipe | None) -> Any:
        with quick_products(self.device, self.dtype), SHORT_SWITCH_INTERVAL:
            if kind == "sample":
                return self.sampler.run(items)
            if kind == "score":
                return self.trainer.score(items)
            assert recipe is not None
            if not self.bank.trains:
                raise InputError("this engine keeps no room to train", "open it with trains=True")
            return self.trainer.update(items, recipe)


def usual_rows(device: str, parameters: int) -> int:
    """The default number of completions that are sampled at once."""
    least, most = CPU_ROWS
    return ROWS if device == "cuda" else min(most, max(least, CPU_WORK // parameters))


def _check_adapters(
    rank: int, alpha: float | None, members: Sequence[MemberId], target_modules: Sequence[str] | None
) -> None:
    if rank < 1 or (alpha is not None and not 0 < alpha < float("inf")):
        raise InputError(f"an adapter cannot have rank {rank} and alpha {alpha}", "use numbers above 0")
    for name, names in (("members", members), ("target_modules", target_modules)):
        if isinstance(names, str) or not all(isinstance(item, str) and item for item in names or ()):
            raise InputError(f"{name} cannot be {names!r}", "give a list of names")
    if len(set(members)) < len(members):
        raise InputError("two members have the same name", "give each its own")
