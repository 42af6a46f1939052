"""One optimiser step for every member that has trajectories, and the scores of given tokens.

All members' sequences go through the base together. The loss is a sum over tokens whose derivative has a closed form
given the tokens' log-probabilities, so the head needs no autograd graph: logits exist for a slice of the tokens at a
time.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.optim.adamw import adamw

from redqueen.engine import ops, packed_batches
from redqueen.engine.bank import Bank
from redqueen.engine.body import Body
from redqueen.engine.memory import HEAD_BYTES, out_of_memory
from redqueen.engine.messages import say
from redqueen.engine.micro_batches import MicroBatch, Sequences, largest, micro_batches, to_tensor
from redqueen.engine.protocol import MemberId, Recipe, Score, ScoreRequest, Trajectory, UpdateStats
from redqueen.engine.routing import Gradients, Routing
from redqueen.errors import InputError, MachineError

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Trainer:
    body: Body
    bank: Bank
    micro_tokens: int
    """Of a micro-batch, padding included."""
    checkpointing: bool
    """Keep only the inputs of the blocks and recompute the rest in the backward pass."""
    together: int | None = None
    """Members whose gradients are there at the same time; None is all of an update."""
    packed: bool = False
    """Sequences side by side (`packed_batches.py`), not in rows of one length."""
    release: Callable[[], None] = lambda: None
    """Frees the sampler's memory when memory runs out."""

    def update(self, batch: Sequence[Trajectory], recipe: Recipe) -> dict[MemberId, UpdateStats]:
        _check_recipe(recipe)
        factors: dict[MemberId, float] = {}
        self._check(batch)
        for trajectory in batch:
            if factors.setdefault(trajectory.member, trajectory.lr_factor) != trajectory.lr_factor:
                raise InputError(f"{trajectory.member} has trajectories with different factors", "give it one")
        members = list(factors)
        stats: dict[MemberId, UpdateStats] = {}
        size = self.together or max(1, len(members))
        try:
            for at in range(0, len(members), size):
                group = set(members[at : at + size])
                own = [trajectory for trajectory in batch if trajectory.member in group]
                stats |= self._update(own, recipe, {member: factors[member] for member in members if member in group})
        except InputError as error:
            if stats:  # whoever asks may only ask again where nobody has changed
                raise MachineError(error.what, error.mend) from error
            raise
        finally:
            self.bank.settle()
        return stats

    def _update(
        self, batch: Sequence[Trajectory], recipe: Recipe, factors: dict[MemberId, float]
    ) -> dict[MemberId, UpdateStats]:
        """Of members whose gradients are there together; `factors` are those of their learning rates."""
        members = list(factors)
        rows = [self.bank.row(member) for member in members]
        exact, device = self.bank.masters_A_D.dtype, self.bank.device
        gradients = Gradients(
            torch.zeros(len(rows), self.bank.width, dtype=exact, device=device), torch.tensor(rows, device=device)
        )
        tally = self._with_room(lambda: self._accumulate(batch, recipe, gradients), batch)
        norm_T = gradients.sum_T_D.norm(dim=1)
        if not norm_T.isfinite().all():
            gradients.isolate = True
            tally = self._with_room(lambda: self._accumulate(batch, recipe, gradients), batch)
            norm_T = gradients.sum_T_D.norm(dim=1)
        stats = _stats(members, batch, tally, norm_T.tolist())
        sound = [at for at, member in enumerate(members) if not stats[member].skipped]
        if recipe.max_grad_norm is not None:
            gradients.sum_T_D.mul_((recipe.max_grad_norm / (norm_T + 1e-6)).clamp(max=1.0).unsqueeze(1))
        for factor in dict.fromkeys(factors[members[at]] for at in sound):
            alike = [at for at in sound if factors[members[at]] == factor]
            # What is hosted passes through the device one row after the other.
            for group in [[at] for at in alike] if self.bank.hosted else [alike]:
                self._step([rows[at] for at in group], [gradients.sum_T_D[at] for at in group], recipe, factor)
        return stats

    def score(self, requests: Sequence[ScoreRequest]) -> list[Score]:
        self._check(requests)
        scores: dict[int, Score] = {}

        def run() -> None:
            for part in self._micro_batches(requests):
                hidden_N_H = self.body.hidden(part.token_N, Routing(member_K=part.member_K), part.attention)
                logprob_M = torch.cat(
                    [
                        ops.head_forward(self.body.head(hidden_M_H), part.target_M[piece], part.temperature_M[piece])[0]
                        for piece, hidden_M_H in self._pieces(hidden_N_H, part.place_M)
                    ]
                ).cpu()
                split = logprob_M.split(part.counts)
                for item, logprobs, last in zip(part.items, split, part.last, strict=True):
                    hidden = hidden_N_H[last].float().cpu() if requests[item].hidden else None
                    scores[item] = Score(tuple(logprobs.tolist()), hidden)

        with torch.no_grad():
            self._with_room(run, requests)
        return [scores[at] for at in range(len(requests))]

    def _accumulate(self, batch: Sequence[Trajectory], recipe: Recipe, gradients: Gradients) -> Tensor:
        """Computes every member's gradient; returns the sums of its statistics."""
        gradients.sum_T_D.zero_()
        device, exact = gradients.sum_T_D.device, gradients.sum_T_D.dtype
        tally_5_T = torch.zeros(5, len(gradients.trained_T), dtype=exact, device=device)
        for part in self._micro_batches(batch):
            sequences = [batch[item] for item in part.items]
            sampled_M = to_tensor(np.concatenate([np.asarray(s.logprobs) for s in sequences]), exact, device)
            advantages = [np.broadcast_to(s.advantages, len(s.completion)) for s in sequences]
            advantage_M = to_tensor(np.concatenate(advantages), exact, device)
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
        if self.body.part is not None:
            self.body.part.sum_(gradients.sum_T_D)
        return tally_5_T

    def _step(self, rows: list[int], grads: list[Tensor], recipe: Recipe, lr_factor: float) -> None:
        """AdamW on these rows of the bank, and on nothing else."""
        lent = [self.bank.lent(row) for row in rows]
        # torch adds this step itself.
        before = torch.tensor([float(self.bank.advance(row) - 1) for row in rows], device=grads[0].device)
        adamw(
            [master for master, _, _ in lent],
            grads,
            [first for _, first, _ in lent],
            [second for _, _, second in lent],
            [],
            list(before.unbind(0)),
            fused=True,
            amsgrad=False,
            beta1=recipe.betas[0],
            beta2=recipe.betas[1],
            lr=recipe.lr * lr_factor,
            weight_decay=recipe.weight_decay,
            eps=recipe.eps,
            maximize=False,
        )
        for row, states in zip(rows, lent, strict=True):
            self.bank.take_back(row, states)

    def largest(self, items: Sequences) -> tuple[int, int]:
        """The micro-batch that takes the most memory: its sequences, and its memory as a number of tokens."""
        if self.packed:
            return packed_batches.largest(items, self.micro_tokens, self.bank)
        return largest(items, self.micro_tokens)

    def _micro_batches(self, items: Sequences) -> Iterator[MicroBatch]:
        if self.packed:
            return packed_batches.packed_batches(items, self.micro_tokens, self.bank)
        return micro_batches(items, self.micro_tokens, self.bank, self.body.positions)

    def _pieces(self, hidden: Tensor, place_M: Tensor | None) -> list[tuple[slice, Tensor]]:
        """Slices of the hidden states whose logits fit into memory."""
        count = len(hidden) if place_M is None else len(place_M)
        size = max(64, HEAD_BYTES // (4 * self.body.head.weight_V_H.shape[0]))
        pieces = [slice(at, min(at + size, count)) for at in range(0, count, size)]
        return [(piece, hidden[piece] if place_M is None else hidden[place_M[piece]]) for piece in pieces]

    def _with_room(self, work: Callable[[], T], items: Sequences) -> T:
        """Do the work; when memory runs out, start again with half as much at once."""
        while True:
            try:
                return work()
            except RuntimeError as error:
                # Other processes with parts of the base have room, and cannot know.
                if not out_of_memory(error) or self.body.part is not None:
                    raise
                if self.largest(items)[0] == 1:
                    longest = max(len(item.prompt) + len(item.completion) for item in items)
                    what = f"a sequence of {longest} tokens does not fit into memory"
                    raise InputError(what, "shorten it, or use fewer members or a lower rank") from None
            # Outside the handler: the exception keeps the tensors that filled the memory alive.
            self.micro_tokens //= 2
            say(f"out of memory; going on with {self.micro_tokens} tokens at once")
            self.release()
            if self.bank.device.type == "cuda":
                torch.cuda.empty_cache()

    def _check(self, items: Sequences) -> None:
        for prompt in {id(item.prompt): item.prompt for item in items}.values():
            self._check_tokens(prompt)
        for item in items:
            self._check_one(item)

    def _check_tokens(self, tokens: Sequence[int]) -> None:
        if not tokens:
            raise InputError("a sequence has an empty prompt or completion", "give both at least one token")
        head = self.body.head
        if not head.knows(tokens):
            raise InputError("a sequence holds a token that the base does not know", f"use ids below {head.vocabulary}")

    def _check_one(self, item: Trajectory | ScoreRequest) -> None:
        _ = self.bank.own_row(item.member) if isinstance(item, Trajectory) else self.bank.row(item.member)
        self._check_tokens(item.completion)
        total = len(item.prompt) + len(item.completion)
        if total > self.body.positions:
            raise InputError(f"a sequence of {total} tokens is longer than the base's {self.body.positions}", "cut it")
        if not item.temperature > 0:
            raise InputError(f"a temperature cannot be {item.temperature} here", "use one above 0")
        if isinstance(item, Trajectory):
            count = len(item.completion)
            if len(item.logprobs) != count or np.shape(item.advantages) not in ((), (count,)):
                raise InputError(
                    "a trajectory's log-probabilities or advantages are not as many as its tokens",
                    "give one for each token of the completion",
                )
            if not 0 <= item.lr_factor < float("inf"):
                raise InputError(f"a learning rate cannot be multiplied by {item.lr_factor}", "use 0 or more")


def _stats(
    members: list[MemberId], batch: Sequence[Trajectory], tally_5_T: Tensor, norms: list[float]
) -> dict[MemberId, UpdateStats]:
    stats = {}
    for member, norm, (loss, entropy, ratio, kl, ratio_max) in zip(members, norms, tally_5_T.t().tolist(), strict=True):
        trajectories = [trajectory for trajectory in batch if trajectory.member == member]
        trained = sum(len(trajectory.completion) for trajectory in trajectories)
        stats[member] = UpdateStats(
            sequences=len(trajectories),
            tokens=trained + sum(len(trajectory.prompt) for trajectory in trajectories),
            trained_tokens=trained,
            loss=loss,
            grad_norm=norm,
            entropy=entropy / trained,
            ratio_mean=ratio / trained,
            ratio_max=ratio_max,
            kl=kl / trained,
            skipped=not np.isfinite(norm),
        )
    return stats


def _check_recipe(recipe: Recipe) -> None:
    """A recipe with NaN would turn the members' weights into NaN."""
    above = {"eps": recipe.eps, "ratio_cap": recipe.ratio_cap, "normaliser": recipe.normaliser}
    if recipe.max_grad_norm is not None:
        above["max_grad_norm"] = recipe.max_grad_norm
    for name, value in {**above, "lr": recipe.lr, "weight_decay": recipe.weight_decay}.items():
        if not (value > 0 if name in above else value >= 0) or value == float("inf"):
            least = "a number above 0" if name in above else "0 or more"
            raise InputError(f"a recipe's {name} cannot be {value}", f"use {least}")
    if not all(0 <= beta < 1 for beta in recipe.betas):
        raise InputError(f"a recipe's betas cannot be {recipe.betas}", "use numbers from 0 to below 1")
