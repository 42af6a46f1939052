"""How far apart members are: in their weights, and in what they say.

Weights: one minus the cosine between the whole updates of the base's weights, so that only the direction counts and
two factorisations of one update are the same member. What they say: how differently they find the same texts likely.
Both are symmetric matrices, in the order in which the members are given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from redqueen.engine.protocol import Engine, MemberId, MemberState, SampleRequest, ScoreRequest
from redqueen.errors import InputError
from redqueen.keys import key as random_key

ZERO = 1e-12
"""An update whose squared norm is below this part of what its factors could make counts as zero: factors in float32
cannot cancel each other better."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A text on which members are compared."""

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    """What the bare base wrote."""


def weight_cosines(states: Sequence[MemberState], device: torch.device | str = "cpu") -> Tensor:
    """The cosine between the updates of every two members, over all modules together: float64, on the CPU.

    `<B1 A1, B2 A2> = sum((B1^T B2) * (A1 A2^T))`, so no update is ever written out, and members may differ in rank.
    Their alpha / rank is one factor for all modules, which changes no direction. A member that changes nothing has
    none: it counts as equal to others of its sort and as unrelated to the rest, which keeps the matrix positive
    semi-definite.
    """
    for state in states[1:]:
        if differ := difference(states[0], state):
            raise InputError(f"two members cannot be compared: {differ}", "compare members of one base and setting")
    count = len(states)
    # Rows of A and columns of B of all members side by side, and whose each of them is.
    of_K = torch.repeat_interleave(torch.arange(count), torch.tensor([state.rank for state in states]))
    of_N_K = torch.nn.functional.one_hot(of_K, count).T.to(device, torch.float64)
    inner_N_N = torch.zeros(count, count, dtype=torch.float64, device=device)
    bound_N = torch.zeros(count, dtype=torch.float64, device=device)
    for module in states[0].factors:
        a_K_I = torch.cat([state.factors[module][0] for state in states]).to(device).double()
        b_K_O = torch.cat([state.factors[module][1] for state in states], 1).to(device).T.contiguous().double()
        a_K_K, b_K_K = a_K_I @ a_K_I.T, b_K_O @ b_K_O.T
        inner_N_N += of_N_K @ (a_K_K * b_K_K) @ of_N_K.T
        bound_N += (of_N_K @ a_K_K.diagonal()) * (of_N_K @ b_K_K.diagonal())
    square_N = inner_N_N.diagonal()
    zero_N = square_N <= ZERO * bound_N
    norm_N = torch.where(zero_N, 1.0, square_N).sqrt()
    cosine_N_N = (inner_N_N / norm_N / norm_N.unsqueeze(1)).clamp(-1, 1)
    either_N_N, both_N_N = zero_N | zero_N.unsqueeze(1), zero_N & zero_N.unsqueeze(1)
    cosine_N_N = torch.where(either_N_N, both_N_N.double(), cosine_N_N)
    # Rounding must make neither a member unlike itself nor one distance two.
    return ((cosine_N_N + cosine_N_N.T) / 2).fill_diagonal_(1).cpu()


def difference(first: MemberState, second: MemberState) -> str | None:
    """Why the updates of two members cannot be compared; None when they can, whatever their ranks."""
    if odd := first.factors.keys() ^ second.factors.keys():
        return f"only one of them adapts {min(odd)}"
    for module, (a_R_I, b_O_R) in first.factors.items():
        mine, other = (b_O_R.shape[0], a_R_I.shape[1]), second.factors[module]
        if mine != (other[1].shape[0], other[0].shape[1]):
            return f"{module} is {mine} for one and {(other[1].shape[0], other[0].shape[1])} for the other"
    return None


def first_alike(states: Mapping[str, MemberState]) -> dict[str, str]:
    """Everybody, and the first who has the same weights: itself, or another after averaging."""
    first: dict[str, str] = {}
    for name, state in states.items():
        first[name] = next((other for other in dict.fromkeys(first.values()) if _same(states[other], state)), name)
    return first


def _same(one: MemberState, other: MemberState) -> bool:
    return (one.rank, one.alpha, one.factors.keys()) == (other.rank, other.alpha, other.factors.keys()) and all(
        a.equal(other.factors[module][0]) and b.equal(other.factors[module][1])
        for module, (a, b) in one.factors.items()
    )


def weight_distances(cosine_N_N: Tensor) -> Tensor:
    """0 for one direction, 1 for unrelated ones, 2 for opposite ones."""
    return 1 - cosine_N_N


async def probes(engine: Engine, prompts: Sequence[tuple[int, ...]], key: int, max_tokens: int) -> list[Probe]:
    """The bare base's completion of every prompt; the same `key` gives the same ones."""
    samples = await engine.sample(
        [
            SampleRequest(prompt=prompt, key=random_key(key, "probe", index), max_tokens=max_tokens)
            for index, prompt in enumerate(prompts)
        ]
    )
    return [Probe(prompt, sample.tokens) for prompt, sample in zip(prompts, samples, strict=True)]


async def function_distances(engine: Engine, members: Sequence[MemberId | None], on: Sequence[Probe]) -> Tensor:
    """Half the mean squared difference between two members' log-probabilities of the probes' tokens; None is the base.

    The tokens are the base's, and as long as members stay near it this is to second order the divergence (KL) of one
    member from the other, in nats a token. Far from it the figure is still a distance, but no divergence.
    """
    if not on:
        raise InputError("members cannot be compared on no text at all", "give at least one probe")
    scores = await engine.score(
        [
            ScoreRequest(prompt=probe.prompt, completion=probe.completion, member=member)
            for member in members
            for probe in on
        ]
    )
    logprobs = torch.tensor([logprob for score in scores for logprob in score.logprobs], dtype=torch.float64)
    logprob_N_T = logprobs.view(len(members), -1)
    return torch.stack([(logprob_T - logprob_N_T).square().mean(1) / 2 for logprob_T in logprob_N_T])


def effective_size(similarity_N_N: Tensor) -> float:
    """How many unrelated members these count for: 1 if all are alike, their number if none is like another.

    The Vendi score (Friedman and Dieng 2023, arXiv 2210.02410): the exponential of the entropy of the eigenvalues of
    the similarities divided by their number. They must form a positive semi-definite matrix with ones on its diagonal,
    as cosines do; clipping negative ones would spoil that. Opposite members count as one: they share a direction.
    """
    count = len(similarity_N_N)
    share_N = torch.linalg.eigvalsh(similarity_N_N.double() / count).clamp(min=0)
    return min(max(float(torch.special.entr(share_N).sum().exp()), 1.0), float(count))


def mean_distance(distance_N_N: Tensor) -> float:
    """Over all pairs of different members; 0 where there is no pair."""
    count = len(distance_N_N)
    off_diagonal = float(distance_N_N.sum() - distance_N_N.diagonal().sum())
    return off_diagonal / (count * (count - 1)) if count > 1 else 0.0


def pairs(members: Sequence[MemberId], distance_N_N: Tensor) -> Mapping[tuple[MemberId, MemberId], float]:
    """The distance from each member to each, by name: both orders of a pair, and a member's to itself."""
    rows = zip(members, distance_N_N.tolist(), strict=True)
    return {(first, second): value for first, row in rows for second, value in zip(members, row, strict=True)}
