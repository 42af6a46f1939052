"""What an engine takes and gives: data, and the protocol that every engine keeps.

An engine holds one frozen base and any number of members, and is blind to what the members are for: prompts are token
ids, advantages are data. Whatever it is asked in one call is answered in one batch, in the order of the requests.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # whoever needs no more than the names should not wait for torch
    from torch import Tensor

    Factors = Mapping[str, tuple[Tensor, Tensor]]

MemberId = str


class Stop(StrEnum):
    """Why a row ended."""

    EOS = "eos"
    """The base's own end token was sampled; it is the last token of the sample."""
    STRING = "string"
    """The text came to hold one of the request's stop strings."""
    LENGTH = "length"
    """The request's `max_tokens` are used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest:
    """One completion that is wanted."""

    prompt: tuple[int, ...]
    """Token ids, at least one."""
    member: MemberId | None = None
    """Who writes; None is the bare base."""
    key: int
    """Where this request's random numbers come from (64 bits): they do not depend on what else is in the batch. What
    does, in the last bits, is the rounding of products: in float32 it hardly ever changes a token, in bfloat16 it
    often does."""
    max_tokens: int
    temperature: float = 1.0
    """0 takes the likeliest token."""
    stop: tuple[str, ...] = ()
    """Strings that end the completion when they appear in its text."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One completion."""

    tokens: tuple[int, ...]
    """As sampled, the end token or the tokens of the stop string included: this is what is trained on."""
    logprobs: tuple[float, ...]
    """Of each token, under the distribution that it was drawn from (at temperature 0: of the untempered one)."""
    stop: Stop
    text: str
    """For people and parsers: without special tokens, and cut off before the stop string."""


Done = Callable[[int, Sample], None]
"""Called in the event loop with a request's place and its sample; each place once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRequest:
    """Tokens whose log-probabilities are wanted."""

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    member: MemberId | None = None
    temperature: float = 1.0
    hidden: bool = False
    """Also give the last hidden state of the last token."""


@dataclass(frozen=True, slots=True)
class Score:
    logprobs: tuple[float, ...]
    """One for each token of the completion."""
    hidden: "Tensor | None" = None
    """float32, on the CPU, one vector of the base's width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """A sampled completion and what it was worth."""

    member: MemberId
    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    logprobs: tuple[float, ...]
    """The sampler's, one for each token of the completion."""
    advantages: tuple[float, ...] | float
    """One for each token of the completion, or one for all."""
    temperature: float = 1.0
    """That it was sampled at; above 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How trajectories become one optimiser step: AdamW on the policy gradient

        -1 / normaliser * sum over tokens of  min(p / p_sampler, ratio_cap) * advantage * log p

    where the weight min(...) is not differentiated.
    """

    lr: float
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    max_grad_norm: float | None = 1.0
    """Each member's gradient is scaled down to this norm; None leaves it as it is."""
    ratio_cap: float = 2.0
    """Bounds the weight that corrects for the difference between sampler and trainer."""
    normaliser: float = 1.0
    """A constant, so that long completions do not count less by token than short ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStats:
    """One member's step."""

    sequences: int
    tokens: int
    """All that went through the base: prompts and completions."""
    trained_tokens: int
    """Those of the completions."""
    loss: float
    grad_norm: float
    """Before clipping."""
    entropy: float
    """Mean over the trained tokens, at the sampling temperature."""
    ratio_mean: float
    ratio_max: float
    """p / p_sampler over the trained tokens: 1 where sampler and trainer agree."""
    kl: float
    """Of the sampler's distribution from the trainer's, estimated on the sampled tokens: mean of r - 1 - log r."""
    skipped: bool = False
    """The gradient was not finite: the member is as it was before."""


@dataclass(frozen=True, slots=True)
class OptimiserState:
    """AdamW's memory of one member."""

    step: int
    exp_avg: "Factors"
    exp_avg_sq: "Factors"
    """By module, as in `MemberState.factors`."""


@dataclass(frozen=True, slots=True)
class MemberState:
    """A member's weights apart from any engine: the update of a module's weight is `alpha / rank * B @ A`."""

    rank: int
    alpha: float
    factors: "Factors"
    """The base's module (`model.layers.0.self_attn.q_proj`) -> (A_R_I, B_O_R), float32 masters on the CPU."""
    optimiser: OptimiserState | None = None


class Engine(Protocol):
    """One base with its members; `member=None` is the bare base."""

    async def sample(self, requests: Sequence[SampleRequest], done: Done | None = None) -> list[Sample]:
        """Any mix of members, lengths, temperatures and limits in one batch. `done` hears of each sample as soon as it
        ends, in whatever order they do, so that it can be worked on while others still grow."""
        ...

    async def update(self, batch: Sequence[Trajectory], recipe: Recipe) -> dict[MemberId, UpdateStats]:
        """One optimiser step for every member in `batch`; each gets what it would get alone, up to rounding."""
        ...

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Score]: ...

    def read(self, member: MemberId, *, optimiser: bool = False) -> MemberState:
        """A copy: what is done to it does not change the member."""
        ...

    def write(self, member: MemberId, state: MemberState) -> None:
        """Give the member these weights. Without an optimiser state it starts with a fresh one. A member that the
        engine does not have yet joins it."""
        ...

    def fresh(self) -> MemberState:
        """What new members start as: A factors that all of them share, and B = 0."""
        ...

    def remove(self, member: MemberId) -> None:
        """Let a member go; its place is the next newcomer's."""
        ...
