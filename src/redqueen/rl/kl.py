"""An optional pull back to the bare base: a price on every token that the member makes likelier than the base does."""

from collections.abc import Sequence


def penalised(
    advantage: float, logprobs: Sequence[float], base_logprobs: Sequence[float], beta: float, scale: float
) -> tuple[float, ...]:
    """A row's advantages token by token: advantage - beta * scale * (log p - log p_base).

    `advantage` and `scale` are those of the rollout, so the KL term is divided by what the policy's term is
    divided by, and `beta` means the same whatever the batch's size. Both log-probabilities are of the sampled tokens,
    at the sampling temperature.

    What is in the gradient: a token's own log-ratio, times the gradient of its log p. In expectation this is the exact
    gradient of KL(p || p_base) of the next token, summed over the places that were visited. What is not: that a token
    leads to places where the member is farther from or nearer to the base; for that, each token would have to carry
    the log-ratios of all tokens after it, and their noise.
    """
    price = beta * scale
    return tuple(advantage - price * (own - base) for own, base in zip(logprobs, base_logprobs, strict=True))
