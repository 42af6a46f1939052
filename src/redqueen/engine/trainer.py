"""One optimiser step for every member that has trajectories, and the scores of given tokens.

All members' sequences go through the base together, sorted by length into micro-batches; those of one member with the
same prompt go as one row, in which the prompt stands once. The loss is a sum over tokens whose derivative is known in
closed form once a token's log-probability is, so the head needs no graph of its own: logits exist for a slice of the
tokens at a time, and are gone when the next slice comes.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.optim.adamw import adamw

from redqueen.engine import ops
from redqueen.engine.attention import Shared, Whole
from redqueen.engine.bank import Bank
from redqueen.engine.body import Body
from redqueen.engine.lora import Gradients, Routing
from redqueen.engine.protocol import MemberId, Recipe, Score, ScoreRequest, Trajectory, UpdateStats
from redqueen.errors import InputError

T = TypeVar("T")
HEAD_BYTES = 1 << 30
"""Logits that exist at the same time."""
WORTH = 4
"""A prompt is shared where one of this many tokens is saved by it, or more: attention takes longer with a mask."""
KEYS = 8
"""For completions that share a prompt, its keys and values are laid out once more. So many tokens' together take at
most the memory of one token in all: fewer key heads than query heads need less, and a mask then needs some of that."""


@dataclass(frozen=True, slots=True)
class _Row:
    """What goes through the base as one sequence: a prompt, and the completions that go on from it."""

    items: tuple[int, ...]
    """The places of its sequences in the call."""
    length: int
    keys: int
    """Tokens of all its sequences, the prompt with each, where they share it; 0 where there is but one."""

    @property
    def width(self) -> int:
        return -(-self.length // 16) * 16

    @property
    def room(self) -> int:
        """As many tokens as take its memory."""
        return self.width + -(-self.keys // KEYS)


@dataclass(slots=True)
class _Batch:
    """Rows of similar length, padded at their ends."""

    items: list[int]
    """The places of their sequences in the call."""
    token_N: Tensor
    attention: Whole
    member_K: Tensor
    """The bank's row of each."""
    place_M: Tensor
    """The tokens before each token whose probability matters."""
    target_M: Tensor
    item_M: np.ndarray
    """The sequence (of this batch's) of each."""
    temperature_M: Tensor
    last_S: list[int]
    """The last token of each sequence."""


@dataclass(slots=True)
class Trainer:
    body: Body
    bank: Bank
    micro_tokens: int
    """Tokens, padding included, that go forward and backward at once."""
    checkpointing: bool
    """Keep the inputs of the blocks only, and compute the rest once more on the way back."""
    release: Callable[[], None] = lambda: None
    """Frees what others keep for later, before less is done at once."""

    def update(self, batch: Sequence[Trajectory], recipe: Recipe) -> dict[MemberId, UpdateStats]:
        _check_recipe(recipe)
        for trajectory in batch:
            self._check(trajectory)
        members = list(dict.fromkeys(trajectory.member for trajectory in batch))
        if not members:
            return {}
        rows = [self.bank.row(member) for member in members]
        masters = self.bank.masters_A_D
        gradients = Gradients(
            torch.zeros(len(rows), self.bank.width, dtype=masters.dtype, device=masters.device),
            torch.tensor(rows, device=masters.device),
        )
        tally = self._with_room(lambda: self._accumulate(batch, recipe, gradients), batch)
        norm_T = gradients.sum_T_D.norm(dim=1)
        if not norm_T.isfinite().all():
            gradients.isolate = True
            tally = self._with_room(lambda: self._accumulate(batch, recipe, gradients), batch)
            norm_T = gradients.sum_T_D.norm(dim=1)
        stats = self._stats(members, batch, tally, norm_T.tolist())
        self._step([row for row, one in zip(rows, stats, strict=True) if not one.skipped], gradients, norm_T, recipe)
        return dict(zip(members, stats, strict=True))

    def score(self, requests: Sequence[ScoreRequest]) -> list[Score]:
        for request in requests:
            self._check(request)
        found: list[Score | None] = [None] * len(requests)

        def run() -> None:
            for part in self._batches(requests):
                routing = Routing(part.member_K)
                hidden_N_H = self.body.hidden(part.token_N, routing, part.attention)
                logprob_M = torch.cat(
                    [
                        ops.head_forward(self.body.head(hidden_M_H), part.target_M[piece], part.temperature_M[piece])[0]
                        for piece, hidden_M_H in self._pieces(hidden_N_H, part.place_M)
                    ]
                ).cpu()
                sizes = np.bincount(part.item_M, minlength=len(part.items)).tolist()
                for item, logprobs in zip(part.items, logprob_M.split(sizes), strict=True):
                    found[item] = Score(tuple(logprobs.tolist()), self._last(requests[item], hidden_N_H, part, item))

        with torch.no_grad():
            self._with_room(run, requests)
        return [score for score in found if score is not None]

    def _last(self, request: ScoreRequest, hidden_N_H: Tensor, part: _Batch, item: int) -> Tensor | None:
        if not request.hidden:
            return None
        return hidden_N_H[part.last_S[part.items.index(item)]].float().cpu()

    def _accumulate(self, batch: Sequence[Trajectory], recipe: Recipe, gradients: Gradients) -> Tensor:
        """Every member's gradient, and sums for its statistics."""
        gradients.sum_T_D.zero_()
        device, exact = gradients.sum_T_D.device, gradients.sum_T_D.dtype
        tally_5_T = torch.zeros(5, len(gradients.trained_T), dtype=exact, device=device)
        for part in self._batches(batch):
            sequences = [batch[item] for item in part.items]
            sampled_M = _tensor(np.concatenate([np.asarray(s.logprobs) for s in sequences]), exact, device)
            advantage_M = _tensor(np.concatenate([_advantages(s) for s in sequences]), exact, device)
            member_M = part.member_K[part.place_M // (len(part.token_N) // part.attention.batch)]
            of_M = (gradients.trained_T.unsqueeze(1) == member_M.unsqueeze(0)).int().argmax(0)
            routing = Routing.training(part.member_K, gradients)
            hidden_N_H = self.body.hidden(part.token_N, routing, part.attention, checkpointing=self.checkpointing)
            hidden_M_H = hidden_N_H.index_select(0, part.place_M)
            grad_M_H = torch.empty_like(hidden_M_H)
            with torch.no_grad():
                for piece, hidden in self._pieces(hidden_M_H.detach(), None):
                    target_m, temperature_m = part.target_M[piece], part.temperature_M[piece]
                    logits_m_V = self.body.head(hidden)
                    logprob_m, total_m, entropy_m = ops.head_forward(logits_m_V, target_m, temperature_m)
                    log_ratio_m = logprob_m - sampled_M[piece]
                    ratio_m = log_ratio_m.exp()
                    weight_m = -ratio_m.clamp(max=recipe.ratio_cap) * advantage_M[piece] / recipe.normaliser
                    grad_M_H[piece] = self.body.head.backward(logits_m_V, target_m, temperature_m, total_m, weight_m)
                    of_m = of_M[piece]
                    sums = [weight_m * logprob_m, entropy_m, ratio_m, torch.expm1(log_ratio_m) - log_ratio_m]
                    tally_5_T[:4].index_add_(1, of_m, torch.stack(sums).to(exact))
                    tally_5_T[4].scatter_reduce_(0, of_m, ratio_m.to(exact), "amax")
            torch.autograd.backward(hidden_M_H, grad_M_H)
        return tally_5_T

    def _step(self, rows: list[int], gradients: Gradients, norm_T: Tensor, recipe: Recipe) -> None:
        """AdamW on the members' rows, and on nothing else."""
        if not rows:
            return
        places = {row: at for at, row in enumerate(gradients.trained_T.tolist())}
        grads = [gradients.sum_T_D[places[row]] for row in rows]
        if recipe.max_grad_norm is not None:
            gradients.sum_T_D.mul_((recipe.max_grad_norm / (norm_T + 1e-6)).clamp(max=1.0).unsqueeze(1))
        moments = [self.bank.adam(row) for row in rows]
        # What torch counts up itself: the steps before this one.
        before = torch.tensor([float(self.bank.advance(row) - 1) for row in rows], device=gradients.sum_T_D.device)
        adamw(
            [self.bank.masters_A_D[row] for row in rows],
            grads,
            [first for first, _ in moments],
            [second for _, second in moments],
            [],
            list(before.unbind(0)),
            fused=True,
            amsgrad=False,
            beta1=recipe.betas[0],
            beta2=recipe.betas[1],
            lr=recipe.lr,
            weight_decay=recipe.weight_decay,
            eps=recipe.eps,
            maximize=False,
        )
        for row in rows:
            self.bank.refresh(row)

    def _stats(
        self, members: list[MemberId], batch: Sequence[Trajectory], tally_5_T: Tensor, norms: list[float]
    ) -> list[UpdateStats]:
        found = []
        for at, (member, tally) in enumerate(zip(members, tally_5_T.t().tolist(), strict=True)):
            mine = [t for t in batch if t.member == member]
            trained = sum(len(t.completion) for t in mine)
            loss, entropy, ratio, kl, ratio_max = tally
            found.append(
                UpdateStats(
                    sequences=len(mine),
                    tokens=sum(len(t.prompt) + len(t.completion) for t in mine),
                    trained_tokens=trained,
                    loss=loss,
                    grad_norm=norms[at],
                    entropy=entropy / trained,
                    ratio_mean=ratio / trained,
                    ratio_max=ratio_max,
                    kl=kl / trained,
                    skipped=not np.isfinite(norms[at]),
                )
            )
        return found

    def largest(self, items: Sequence[Trajectory] | Sequence[ScoreRequest]) -> tuple[int, int]:
        """The batch of these that takes the most memory: its sequences, and how many tokens take as much."""
        sizes = [(sum(len(row.items) for row in rows), len(rows) * rows[0].room) for rows in self._parts(items)]
        return max(sizes, key=lambda size: size[1])

    def _batches(self, items: Sequence[Trajectory] | Sequence[ScoreRequest]) -> Iterator[_Batch]:
        for rows in self._parts(items):
            yield self._batch(items, rows)

    def _parts(self, items: Sequence[Trajectory] | Sequence[ScoreRequest]) -> Iterator[list[_Row]]:
        """Longest first: should memory not suffice, it shows at once. Who shares nothing has no part in the slower
        attention of those who do."""
        every = _rows(items, self.micro_tokens)
        for shared in (True, False):
            rows = [row for row in every if (len(row.items) > 1) == shared]
            rows.sort(key=lambda row: (-row.room, -row.length, row.items))
            at = 0
            for count in _shares([row.room for row in rows], self.micro_tokens):
                yield rows[at : at + count]
                at += count

    def _batch(self, items: Sequence[Trajectory] | Sequence[ScoreRequest], rows: list[_Row]) -> _Batch:
        device = self.bank.device
        chosen = [at for row in rows for at in row.items]
        width = max(row.width for row in rows)
        token_B_T = np.zeros((len(rows), width), np.int64)
        position_B_T = np.tile(np.minimum(np.arange(width), self.body.positions - 1), (len(rows), 1))
        place, last = [], []
        for index, row in enumerate(rows):
            prompt = items[row.items[0]].prompt
            end = len(prompt)
            token_B_T[index, :end] = prompt
            for at in row.items:
                start, end = end, end + len(items[at].completion)
                token_B_T[index, start:end] = items[at].completion
                position_B_T[index, start:end] = np.arange(len(prompt), len(prompt) + end - start)
                before_C = np.arange(start - 1, end - 1)
                before_C[0] = len(prompt) - 1
                place.append(index * width + before_C)
                last.append(index * width + end - 1)
        count_S = np.array([len(items[at].completion) for at in chosen])
        if len(chosen) > len(rows):
            prompt_B = np.array([len(items[row.items[0]].prompt) for row in rows])
            row_S = np.repeat(np.arange(len(rows)), [len(row.items) for row in rows])
            attention = Shared.of(position_B_T, prompt_B, row_S, count_S, device)
        else:
            attention = Whole(len(rows), torch.from_numpy(position_B_T.reshape(-1)).to(device))
        return _Batch(
            chosen,
            torch.from_numpy(token_B_T).to(device).flatten(),
            attention,
            torch.tensor([self.bank.row(items[row.items[0]].member) for row in rows], device=device),
            torch.from_numpy(np.concatenate(place)).to(device),
            torch.from_numpy(np.concatenate([np.asarray(items[at].completion, np.int64) for at in chosen])).to(device),
            np.repeat(np.arange(len(chosen)), count_S),
            _tensor(np.repeat([items[at].temperature for at in chosen], count_S), self.bank.masters_A_D.dtype, device),
            last,
        )

    def _pieces(self, hidden: Tensor, place_M: Tensor | None) -> list[tuple[slice, Tensor]]:
        """Slices of the tokens that matter, few enough at a time for their logits to fit."""
        count = len(hidden) if place_M is None else len(place_M)
        size = max(64, HEAD_BYTES // (4 * self.body.head.weight_V_H.shape[0]))
        pieces = [slice(at, min(at + size, count)) for at in range(0, count, size)]
        return [(piece, hidden[piece] if place_M is None else hidden[place_M[piece]]) for piece in pieces]

    def _with_room(self, work: Callable[[], T], items: Sequence[Trajectory] | Sequence[ScoreRequest]) -> T:
        """Do the work; when memory runs out, begin again with half as much at once."""
        while True:
            try:
                return work()
            except RuntimeError as error:
                if not out_of_memory(error):
                    raise
                if self.largest(items)[0] == 1:
                    longest = max(_length(one) for one in items)
                    what = f"a sequence of {longest} tokens does not fit into memory"
                    raise InputError(what, "shorten it, or use fewer members or a lower rank") from None
            # Outside the handler: the exception holds on to the tensors that filled the memory.
            self.micro_tokens //= 2
            print(f"redqueen: out of memory; going on with {self.micro_tokens} tokens at once", file=sys.stderr)
            self.release()
            if self.bank.device.type == "cuda":
                torch.cuda.empty_cache()

    def _check(self, one: Trajectory | ScoreRequest) -> None:
        _ = self.bank.own_row(one.member) if isinstance(one, Trajectory) else self.bank.row(one.member)
        if not one.prompt or not one.completion:
            raise InputError("a sequence has an empty prompt or completion", "give both at least one token")
        total = len(one.prompt) + len(one.completion)
        if total > self.body.positions:
            raise InputError(f"a sequence of {total} tokens is longer than the base's {self.body.positions}", "cut it")
        vocabulary = self.body.head.weight_V_H.shape[0]
        ids = (*one.prompt, *one.completion)
        if not 0 <= min(ids) <= max(ids) < vocabulary:
            raise InputError("a sequence holds a token that the base does not know", f"use ids below {vocabulary}")
        if not one.temperature > 0:
            raise InputError(f"a temperature cannot be {one.temperature} here", "use one above 0")
        if isinstance(one, Trajectory):
            count = len(one.completion)
            if len(one.logprobs) != count or np.shape(one.advantages) not in ((), (count,)):
                raise InputError(
                    "a trajectory's log-probabilities or advantages are not as many as its tokens",
                    "give one for each token of the completion",
                )


def _rows(items: Sequence[Trajectory] | Sequence[ScoreRequest], room: int) -> list[_Row]:
    """Each member's sequences, those with the same prompt together as far as there is room."""
    groups: dict[tuple[MemberId | None, tuple[int, ...]], list[int]] = {}
    for at, one in enumerate(items):
        groups.setdefault((one.member, tuple(one.prompt)), []).append(at)
    found = []
    for group in groups.values():
        while group:
            row = _Row((group[0],), _length(items[group[0]]), 0)
            keys = row.length
            for at in group[1:]:
                keys += _length(items[at])
                longer = _Row((*row.items, at), row.length + len(items[at].completion), keys)
                if longer.room > room:
                    break
                row = longer
            group = group[len(row.items) :]
            if (row.keys - row.length) * WORTH >= row.keys:
                found.append(row)
            else:
                found += [_Row((at,), _length(items[at]), 0) for at in row.items]
    return found


def _shares(widths: Sequence[int], room: int) -> list[int]:
    """How many sequences (widest first) go into each batch: as few batches as have room, of about equal sizes, since
    a small rest costs nearly as much time as a full one."""
    counts = _cut(widths, room)
    for even in range(-(-sum(widths) // max(1, len(counts))), room, 256):
        closer = _cut(widths, even)
        if len(closer) == len(counts):
            return closer
    return counts


def _cut(widths: Sequence[int], room: int) -> list[int]:
    counts, at = [], 0
    while at < len(widths):
        counts.append(min(max(1, room // widths[at]), len(widths) - at))
        at += counts[-1]
    return counts


def _length(one: Trajectory | ScoreRequest) -> int:
    return len(one.prompt) + len(one.completion)


def _advantages(trajectory: Trajectory) -> np.ndarray:
    return np.broadcast_to(np.asarray(trajectory.advantages, np.float64), len(trajectory.completion))


def _tensor(values: np.ndarray, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, np.float64)).to(dtype).to(device)


def out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError):
        return True
    said = ("not enough memory", "can't allocate memory", "out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
    return isinstance(error, RuntimeError) and any(words in str(error) for words in said)


def _check_recipe(recipe: Recipe) -> None:
    """AdamW with a number that is none would leave a member of numbers that are none."""
    above = {"eps": recipe.eps, "ratio_cap": recipe.ratio_cap, "normaliser": recipe.normaliser}
    if recipe.max_grad_norm is not None:
        above["max_grad_norm"] = recipe.max_grad_norm
    for name, value in {**above, "lr": recipe.lr, "weight_decay": recipe.weight_decay}.items():
        if not (value > 0 if name in above else value >= 0) or value == float("inf"):
            least = "a number above 0" if name in above else "0 or more"
            raise InputError(f"a recipe's {name} cannot be {value}", f"use {least}")
    if not all(0 <= beta < 1 for beta in recipe.betas):
        raise InputError(f"a recipe's betas cannot be {recipe.betas}", "use numbers from 0 to below 1")
