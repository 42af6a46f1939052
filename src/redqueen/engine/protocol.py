"""The protocol of an engine, and its data.

An engine holds one frozen base and any number of members, and does not know what they are for: prompts are token ids,
advantages are data. Calls that come at the same time share a batch; each is answered in the order of its requests.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:  # torch takes seconds to import
    from torch import Tensor

    Factors = Mapping[str, tuple[Tensor, Tensor]]

MemberId = str
T = TypeVar("T")


class Stop(StrEnum):
    """Why a completion ended."""

    EOS = "eos"
    """The base's end token was sampled; it is the last token of the sample."""
    STRING = "string"
    """The text contains one of the request's stop strings."""
    LENGTH = "length"
    """It has `max_tokens`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRequest:
    prompt: tuple[int, ...]
    """Token ids, at least one."""
    member: MemberId | None = None
    """None is the bare base."""
    key: int
    """The seed (64 bits) of this request's random numbers, which do not depend on the rest of the batch. The rounding
    of products does: in float32 that hardly ever changes a token, in bfloat16 it often does."""
    max_tokens: int
    temperature: float = 1.0
    """0 takes the likeliest token."""
    stop: tuple[str, ...] = ()
    """Strings that end the completion."""


@dataclass(frozen=True, slots=True)
class Sample:
    tokens: tuple[int, ...]
    """As sampled and trained on: the end token or the tokens of the stop string included."""
    logprobs: tuple[float, ...]
    """Of each token, under the distribution that it was drawn from (at temperature 0: at temperature 1)."""
    stop: Stop
    text: str
    """Without special tokens, and cut off before the stop string."""
    _: KW_ONLY
    seconds: tuple[float, float] = field(default=(0.0, 0.0), compare=False)
    """When it began and ended, by `time.perf_counter`."""


Ask = Callable[[Sequence[SampleRequest]], Awaitable[list[Sample]]]
Chain = Callable[[Ask], Awaitable[T]]
"""Asks for samples, and for more that depend on them. Between two calls it must not score, update or stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRequest:
    """Tokens to compute the log-probabilities of."""

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    member: MemberId | None = None
    temperature: float = 1.0
    hidden: bool = False
    """Also return the last hidden state of the last token."""


@dataclass(frozen=True, slots=True)
class Score:
    logprobs: tuple[float, ...]
    """One for each token of the completion."""
    hidden: "Tensor | None" = None
    """float32, on the CPU, one vector of the base's width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """A sampled completion with its advantages."""

    member: MemberId
    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    logprobs: tuple[float, ...]
    """The sampler's, one per token of the completion."""
    advantages: tuple[float, ...] | float
    """One per token of the completion, or one for all."""
    temperature: float = 1.0
    """Of the sampler; above 0."""
    lr_factor: float = 1.0
    """What the recipe's learning rate is multiplied by: one number for all trajectories of a member."""


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
    """Clips each member's gradient; None does not clip."""
    ratio_cap: float = 2.0
    """Of the importance weight that corrects for the difference between sampler and trainer."""
    normaliser: float = 1.0
    """A constant, so that tokens of long completions do not count less than those of short ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStats:
    sequences: int
    tokens: int
    """Of prompts and completions."""
    trained_tokens: int
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
    """The gradient was not finite, and the member is unchanged."""


@dataclass(frozen=True, slots=True)
class OptimiserState:
    """AdamW's state of one member, by module as in `MemberState.factors`."""

    step: int
    exp_avg: "Factors"
    exp_avg_sq: "Factors"


@dataclass(frozen=True, slots=True)
class MemberState:
    """A member's weights outside an engine: a module's Delta W is `alpha / rank * B @ A`."""

    rank: int
    alpha: float
    factors: "Factors"
    """The base's module (`model.layers.0.self_attn.q_proj`) -> (A_R_I, B_O_R), float32 masters on the CPU."""
    optimiser: OptimiserState | None = None

    def scaled(self, by: float) -> "MemberState":
        """With its Delta W times this."""
        return replace(self, factors={module: (a_R_I, b_O_R * by) for module, (a_R_I, b_O_R) in self.factors.items()})


class Engine(Protocol):
    """One base with its members; `member=None` is the bare base."""

    async def sample(self, requests: Sequence[SampleRequest]) -> list[Sample]:
        """Any mix of members, lengths, temperatures and limits in one batch."""
        ...

    async def stream(self, chains: Sequence[Chain[T]]) -> list[T]:
        """The results of all chains. What one asks for joins the batch that the others are in, so that nobody waits for
        the slowest."""
        ...

    async def update(self, batch: Sequence[Trajectory], recipe: Recipe) -> dict[MemberId, UpdateStats]:
        """One optimiser step for every member in `batch`: up to rounding, the step that it would take alone."""
        ...

    async def score(self, requests: Sequence[ScoreRequest]) -> list[Score]: ...

    def read(self, member: MemberId, *, optimiser: bool = False) -> MemberState: ...

    def look(self, members: Sequence[MemberId], make: Callable[[Sequence[MemberState]], T]) -> T:
        """What `make` makes of these members. It gets them where they are, and must neither change nor keep them."""
        ...

    def write(self, member: MemberId, state: MemberState) -> None:
        """Give the member, which may be new to the engine, these weights. Without an optimiser state it starts with a
        fresh one."""
        ...

    def fresh(self) -> MemberState:
        """The state of a new member: A factors that all new members share, and B = 0."""
        ...

    def remove(self, member: MemberId) -> None: ...
