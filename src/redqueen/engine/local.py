"""The engine on this machine: one base, its members, one device.

Calls are coroutines, so that several races can share an engine: what they ask for while it is busy is answered
together, in one batch. The work itself runs on one thread of its own.
"""

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from redqueen.engine import memory
from redqueen.engine.attention import Whole
from redqueen.engine.bank import Bank
from redqueen.engine.base import Base
from redqueen.engine.body import adaptable, groups, llama_family, open_body
from redqueen.engine.lora import Routing
from redqueen.engine.products import quick_products
from redqueen.engine.protocol import (
    Done,
    MemberId,
    MemberState,
    Recipe,
    Sample,
    SampleRequest,
    Score,
    ScoreRequest,
    Trajectory,
    UpdateStats,
)
from redqueen.engine.sampler import Sampler
from redqueen.engine.steps import Steps
from redqueen.engine.trainer import Trainer
from redqueen.errors import InputError, UserError

R = TypeVar("R")
SWITCH_S = 0.0005
"""After this long Python's other threads give way to the engine's, which comes back for a moment in every step; the
usual 5 ms are several steps of a small base, and whoever judges answers meanwhile would take them each time."""
PATIENCE_S, LOOK_S = 0.3, 0.002
"""How long a turn waits for those who share the engine and have not asked yet, and how often it looks."""
ROWS = 512
"""Completions that grow at the same time, on CUDA."""
CPU_ROWS, CPU_WORK = (64, 1024), 1 << 30
"""On a CPU the step of a small base takes hardly longer with more rows: rows times parameters is about `CPU_WORK`,
within these."""


@dataclass(slots=True, eq=False)
class _Asked:
    what: str
    items: list[Any]
    recipe: Recipe | None
    done: Done | None
    answer: asyncio.Future


class LocalEngine:
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
        seed: int = 0,
    ) -> None:
        """`alpha` is twice the rank when left out; `target_modules` None adapts all linear layers of the base's
        blocks; `rows` completions grow at the same time; `memory_bytes` bounds what is planned for, the device's free
        memory when left out; `seed` draws the A factors that fresh members share."""
        if rank < 1 or (alpha is not None and not 0 < alpha < float("inf")):
            raise InputError(f"an adapter cannot have rank {rank} and alpha {alpha}", "use numbers above 0")
        if rows is not None and rows < 1:
            raise InputError(f"an engine cannot have {rows} rows", "use 1 or more")
        for name, given in (("members", members), ("target_modules", target_modules)):
            if isinstance(given, str) or not all(isinstance(one, str) and one for one in given or ()):
                raise InputError(f"{name} cannot be {given!r}", "give a list of names")
        if len(set(members)) < len(members):
            raise InputError("two members have the same name", "give each its own")
        model = base.model
        self.base = base
        parameter = next(model.parameters())
        self.device, self.dtype = parameter.device, parameter.dtype
        kind = "cuda" if self.device.type == "cuda" else "cpu"
        linears = adaptable(model, target_modules)
        self.target_modules = None if target_modules is None else tuple(target_modules)
        self.shape = memory.Shape.of(model, fast=llama_family(model) is None)
        expected = _own_logits(base)
        available = memory.available(self.device) if memory_bytes is None else memory_bytes
        held = self.shape.parameters * self.dtype.itemsize
        self.plan = memory.plan(
            self.shape, linears, rank=rank, members=len(members), memory=available + held, device=kind, dtype=self.dtype
        )
        if self.plan.micro_tokens == 0:
            raise InputError(
                f"{len(members)} members of rank {rank} on {base.name} leave no room to train",
                "use fewer members, a lower rank or a smaller base (`redqueen doctor --base` says what fits)",
            )
        self.bank = Bank(
            groups(model, linears), rank=rank, alpha=2.0 * rank if alpha is None else alpha, members=members,
            device=self.device, dtype=self.dtype, seed=seed,
        )  # fmt: skip
        self.body = open_body(model, self.bank)
        self._agree(expected)
        self.sampler = Sampler(
            base,
            Steps(self.body, self.bank, rows or usual_rows(kind, self.shape.parameters)),
            self.plan.cache_tokens,
            self.plan.micro_tokens,
        )
        self.trainer = Trainer(
            self.body, self.bank, self.plan.micro_tokens, self.plan.checkpointing, self.sampler.steps.drop
        )
        self._sharers = 0
        self._thread = ThreadPoolExecutor(1, "engine")
        self._asked: list[_Asked] = []
        self._server: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        self._closed = False

    @property
    def members(self) -> list[MemberId]:
        return list(self.bank.rows)

    @property
    def path(self) -> str:
        """`llama` or `general`: which code runs this base."""
        return self.body.path

    async def sample(self, requests: Sequence[SampleRequest], done: Done | None = None) -> list[Sample]:
        return await self._ask("sample", requests, done=done)

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Score]:
        return await self._ask("score", requests)

    async def update(self, batch: Sequence[Trajectory], recipe: Recipe) -> dict[MemberId, UpdateStats]:
        return await self._ask("update", batch, recipe)

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """For each of several races that take the same phases: as long as they are within, a turn waits a little until
        all of them have asked, since one batch for all takes hardly longer than that of one."""
        self._sharers += 1
        try:
            yield
        finally:
            self._sharers -= 1

    def read(self, member: MemberId, *, optimiser: bool = False) -> MemberState:
        return self._on_thread(self.bank.read, member, optimiser=optimiser)

    def write(self, member: MemberId, state: MemberState) -> None:
        self._on_thread(self.bank.write, member, state)

    def fresh(self) -> MemberState:
        return self._on_thread(self.bank.fresh)

    def remove(self, member: MemberId) -> None:
        self._on_thread(self.bank.remove, member)

    def close(self) -> None:
        self._closed = True
        self._thread.shutdown()

    def __enter__(self) -> "LocalEngine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _sample(self, requests: list[SampleRequest], done: Done) -> list[Sample]:
        with quick_products(self.device, self.dtype), _GIVING_WAY:
            return self.sampler.run(requests, done)

    def _score(self, requests: list[ScoreRequest]) -> list[Score]:
        with quick_products(self.device, self.dtype), _GIVING_WAY:
            return self.trainer.score(requests)

    def _update(self, batch: list[Trajectory], recipe: Recipe) -> dict[MemberId, UpdateStats]:
        with quick_products(self.device, self.dtype), _GIVING_WAY:
            return self.trainer.update(batch, recipe)

    async def _ask(
        self, what: str, items: Sequence[Any], recipe: Recipe | None = None, done: Done | None = None
    ) -> Any:
        loop = asyncio.get_running_loop()
        self._open()
        asked = _Asked(what, list(items), recipe, done, loop.create_future())
        with self._lock:
            if self._server is not None and (self._server.done() or self._server.get_loop().is_closed()):
                # Whoever asked in a loop that has ended waits for no answer any more.
                self._server, self._asked = None, []
            if self._server is not None and self._server.get_loop() is not loop:
                raise InputError("this engine is in use in another event loop", "use one loop, or an engine for each")
            self._asked.append(asked)
            if self._server is None:
                self._server = loop.create_task(self._serve())
        return await asked.answer

    async def _serve(self) -> None:
        """Answer what was asked until nothing is left. Whoever is ready to ask gets the chance to before each turn."""
        while True:
            await self._company()
            with self._lock:
                turn = self._turn()
                if not turn:
                    self._server = None
                    return
            await self._answer(turn)

    async def _company(self) -> None:
        """Wait a little for those who share the engine and have not asked yet."""
        await asyncio.sleep(0)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            waiting = sum(not asked.answer.done() for asked in self._asked)
            if not 0 < waiting < self._sharers:
                return
            await asyncio.sleep(LOOK_S)

    def _turn(self) -> list[_Asked]:
        """The oldest call and those that can share its batch. Calls that were cancelled meanwhile are forgotten."""
        self._asked = [asked for asked in self._asked if not asked.answer.done()]
        if not self._asked:
            return []
        first, *rest = self._asked
        turn, taken = [first], _members(first)
        for asked in rest:
            if (asked.what, asked.recipe) != (first.what, first.recipe):
                continue
            if first.what == "update":
                # Two steps of one member are two steps.
                if _members(asked) & taken:
                    continue
                taken |= _members(asked)
            turn.append(asked)
        self._asked = [asked for asked in self._asked if asked not in turn]
        return turn

    async def _answer(self, turn: list[_Asked]) -> None:
        items = [item for asked in turn for item in asked.items]
        loop = asyncio.get_running_loop()
        try:
            if turn[0].what == "update":
                recipe = turn[0].recipe
                assert recipe is not None
                stats = await loop.run_in_executor(self._thread, self._update, items, recipe)
                split = [{m: stats[m] for m in dict.fromkeys(t.member for t in asked.items)} for asked in turn]
            else:
                if turn[0].what == "sample":
                    answers = await loop.run_in_executor(self._thread, self._sample, items, _heard(turn, loop))
                else:
                    answers = await loop.run_in_executor(self._thread, self._score, items)
                at = 0
                split: list[Any] = []
                for asked in turn:
                    split.append(answers[at : at + len(asked.items)])
                    at += len(asked.items)
        except Exception as error:
            # One caller's mistake is not the others': each gets an answer of its own. An update is checked before it
            # changes anybody, so what a user can mend has changed nobody; anything else all must hear of.
            if len(turn) > 1 and (turn[0].what != "update" or isinstance(error, UserError)):
                for asked in turn:
                    await self._answer([asked])
                return
            for asked in turn:
                _settle(asked, error=error)
            return
        for asked, answer in zip(turn, split, strict=True):
            _settle(asked, answer)

    def _open(self) -> None:
        if self._closed:
            raise InputError("this engine is closed", "open another")

    def _on_thread(self, work: Callable[..., R], *args: Any, **options: Any) -> R:
        self._open()
        return self._thread.submit(work, *args, **options).result()

    def _agree(self, expected: torch.Tensor) -> None:
        """Refuse a base whose logits do not come out of our path as they come out of its own code."""
        tokens = _probe(self.base)
        where = Whole(1, torch.arange(len(tokens), device=self.device))
        routing = Routing(torch.zeros(1, dtype=torch.int64, device=self.device))
        kind = self.base.model.config.model_type
        try:
            with torch.no_grad():
                logits = self.body.head(self.body.hidden(tokens, routing, where)).double()
        except UserError:
            raise
        except Exception as error:
            # Modules of `transformers` that expect to be called otherwise fail in ways of their own.
            what = f"{self.base.name} ({kind}) cannot be run by this engine: {type(error).__name__}: {error}"
            raise InputError(what, "use another base") from error
        allowed = 0.05 if self.dtype in (torch.bfloat16, torch.float16) else 1e-3
        error = float((logits - expected).norm() / expected.norm().clamp(min=1e-12))
        if not error <= allowed:
            raise InputError(
                f"{self.base.name} ({kind}) computes something that this engine does not know: "
                f"its logits differ by {error:.2g}",
                "use another base",
            )


class _GivingWay:
    """Within it Python's threads take shorter turns; there may be several engines in a process."""

    def __init__(self) -> None:
        self._lock, self._within, self._before = threading.Lock(), 0, 0.0

    def __enter__(self) -> None:
        with self._lock:
            if not self._within:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, SWITCH_S))
            self._within += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._within -= 1
            if not self._within:
                sys.setswitchinterval(self._before)


_GIVING_WAY = _GivingWay()


def _heard(turn: Sequence[_Asked], loop: asyncio.AbstractEventLoop) -> Done:
    """Passes samples on from the engine's thread to whoever asked for them, each once: a batch that ran out of memory
    begins anew."""
    places = [(asked.done, place) for asked in turn for place in range(len(asked.items))]
    told: set[int] = set()

    def hear(at: int, sample: Sample) -> None:
        done, place = places[at]
        if done is not None and at not in told:
            told.add(at)
            loop.call_soon_threadsafe(done, place, sample)

    return hear


def usual_rows(device: str, parameters: int) -> int:
    """How many completions grow at the same time, where nobody says it."""
    least, most = CPU_ROWS
    return ROWS if device == "cuda" else min(most, max(least, CPU_WORK // parameters))


def _probe(base: Base) -> torch.Tensor:
    vocabulary = base.model.config.get_text_config().vocab_size
    generator = torch.Generator().manual_seed(0)
    return torch.randint(vocabulary, (12,), generator=generator).to(next(base.model.parameters()).device)


def _own_logits(base: Base) -> torch.Tensor:
    """What the untouched base says, before its modules are replaced."""
    with torch.no_grad():
        return base.model(input_ids=_probe(base).unsqueeze(0), use_cache=False).logits[0].double()


def _members(asked: _Asked) -> set[Any]:
    return {getattr(item, "member", None) for item in asked.items}


def _settle(asked: _Asked, answer: Any = None, *, error: BaseException | None = None) -> None:
    with contextlib.suppress(asyncio.InvalidStateError):  # whoever asked has been cancelled
        if error is None:
            asked.answer.set_result(answer)
        else:
            asked.answer.set_exception(error)
