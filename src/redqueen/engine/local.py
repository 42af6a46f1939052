"""The engine on this machine: one base, its members, one device."""

import platform
from collections.abc import Sequence
from typing import Any

import torch

from redqueen.engine import memory, ops
from redqueen.engine.adaptable import adaptable, fused_groups, llama_family
from redqueen.engine.bank import Bank, Linear
from redqueen.engine.base import Base
from redqueen.engine.body import Body
from redqueen.engine.call_queue import Kind
from redqueen.engine.cap import capped, kept_plan, uncap
from redqueen.engine.flops import ModelSize
from redqueen.engine.general import GeneralBody
from redqueen.engine.llama import LlamaBody
from redqueen.engine.logits_check import check_logits, own_logits
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
        host_bytes: int | None = None,
        hosted: bool | None = None,
    ) -> None:
        """Defaults: `alpha` twice the rank, `target_modules` all linear layers of the base's blocks, `memory_bytes` the
        device's free memory, `host_bytes` the host's. With `most_bytes` the engine keeps to so many, the base included,
        and on CUDA this process is refused more until it is closed. `rows` completions are sampled at once; `seed`
        draws the A factors that new members share; there is memory for so many members that come later as `room` says.
        An engine that does not train samples and scores, and has more room for it. With a `part` the engine has that of
        the base, and does all that it does together with the processes that have the others. `hosted` decides whether
        masters and moments are in the host's memory; otherwise they are where that is the only way to have room."""
        _check_adapters(rank, alpha, members, target_modules)
        if rows is not None and rows < 1:
            raise InputError(f"an engine cannot have {rows} rows", "use 1 or more")
        self.base = base
        self.target_modules = None if target_modules is None else tuple(target_modules)
        linears = adaptable(base.model, target_modules)
        groups = fused_groups(base.model, linears)
        expected = own_logits(base)
        self._describe(linears, rank, part)
        self._capped = most_bytes is not None
        with capped(self.device, most_bytes):
            self.plan = self._planned(
                linears, rank=rank, members=len(members) + room, trains=trains, memory_bytes=memory_bytes,
                most_bytes=most_bytes, host_bytes=host_bytes, hosted=hosted,
            )  # fmt: skip
            self.bank = Bank(
                groups, rank=rank, alpha=2.0 * rank if alpha is None else alpha, members=members, device=self.device,
                dtype=self.dtype, seed=seed, trains=trains, hosted=self.plan.hosted,
            )  # fmt: skip
            self.bank.reserve(room)
            fast = self.shape.fast
            self.body: Body = LlamaBody(base.model, self.bank, part) if fast else GeneralBody(base.model, self.bank)
            check_logits(base, self.body, expected.to(self.device))
            self._ready(rows)
        super().__init__(self.bank, exact=self.device_type == "cpu")

    def _describe(self, linears: list[Linear], rank: int, part: Part | None) -> None:
        """The base and where it is; of a part, once it is there."""
        model: Any = self.base.model
        self.shape = memory.Shape.of(model, fast=llama_family(model) is None)
        self.size = ModelSize.of(
            model,
            attention=self.shape.layers * self.shape.heads * self.shape.dim,
            adapter=rank * sum(linear.inputs + linear.outputs for linear in linears),
        )
        # The other parts are not asked.
        whole = [] if part is not None and part.rank else linears
        self.norms = {linear.name: frozen(model.get_submodule(linear.name)).norm() for linear in whole}
        if part is not None:
            part.take(model)
            here = sum(weight.numel() for weight in {id(each): each for each in model.parameters()}.values())
            self.shape = self.shape.part(part.size, here)
        parameter = next(model.parameters())
        self.device, self.dtype = parameter.device, parameter.dtype
        self.device_type = "cuda" if self.device.type == "cuda" else "cpu"
        on_cuda = self.device_type == "cuda"
        self.computes_on = torch.cuda.get_device_name() if on_cuda else f"cpu ({platform.machine()})"

    def _planned(
        self,
        linears: list[Linear],
        *,
        rank: int,
        members: int,
        trains: bool,
        memory_bytes: int | None,
        most_bytes: int | None,
        host_bytes: int | None,
        hosted: bool | None,
    ) -> memory.MemoryPlan:
        """For a base that is loaded already."""
        free = memory.available(self.device) if memory_bytes is None else memory_bytes

        def planned(size: int, host: int | None) -> memory.MemoryPlan:
            return memory.plan(
                self.shape, linears, rank=rank, members=members, memory=size, device=self.device_type,
                dtype=self.dtype, trains=trains, host=host, hosted=hosted,
            )  # fmt: skip

        return kept_plan(
            planned,
            free=free + self.shape.nbytes(self.dtype),
            most_bytes=most_bytes,
            host=memory.available(torch.device("cpu")) if host_bytes is None else host_bytes,
            members=f"{members} members of rank {rank} on {self.base.name}",
            does="train" if trains else "sample",
        )

    def _ready(self, rows: int | None) -> None:
        self.sampler = Sampler(
            self.base,
            self.body,
            self.bank,
            rows=rows or usual_rows(self.device_type, self.shape.parameters),
            max_cache_tokens=self.plan.cache_tokens,
            prefill_tokens=self.plan.micro_tokens,
        )
        self.trainer = Trainer(
            body=self.body,
            bank=self.bank,
            micro_tokens=self.plan.micro_tokens,
            checkpointing=self.plan.checkpointing,
            together=self.plan.together if self.plan.hosted else None,
            packed=ops.flash(torch.empty(self.body.heads.dim, dtype=self.dtype, device=self.device)),
            release=self.sampler.backend.drop,
        )

    @property
    def members(self) -> list[MemberId]:
        return list(self.bank.rows)

    @property
    def limits(self) -> memory.Limits:
        trainer, sampler = self.trainer, self.sampler
        return memory.Limits(trainer.micro_tokens, sampler.prefill_tokens, sampler.max_cache_tokens, trainer.together)

    def agree(self, limits: memory.Limits) -> None:
        """Keep to these from the next turn on."""
        self.trainer.micro_tokens, self.trainer.together = limits.micro_tokens, limits.together
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

    def close(self) -> None:
        super().close()
        if self._capped:
            uncap(self.device)


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
