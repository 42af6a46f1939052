"""From a member's rewarded sequences to the rows that it is trained on.

The engine sums `advantage * log p` over all tokens it is given. Whatever divides that sum is put into the advantages
here, so rows that are left out or a member with fewer sequences change nobody else's loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from redqueen.errors import Fault
from redqueen.rl.advantages import Method, Rewarded

MIN_ROWS = 8
"""Texts with an advantage that a member's step takes: with fewer it would follow a handful of samples, and Adam makes
it as long as any other."""


@dataclass(frozen=True, slots=True)
class Weighted:
    """A sequence to train on."""

    index: int
    """Into the member's sequences."""
    advantage: float
    """For each of its tokens, scaled."""
    scale: float
    """What its advantage was multiplied by; a KL term is multiplied by the same."""


def weigh(
    sequences: Sequence[Rewarded], lengths: Sequence[int], limits: Sequence[int], method: Method, keep_zeros: bool
) -> list[Weighted]:
    """One member's rows, in the order of its sequences; none if fewer than `MIN_ROWS` have an advantage.

    With N sequences, of which i has `lengths[i]` of at most `limits[i]` tokens, the rows' sum over tokens of
    advantage * log p is

        1/N * sum over i of  A_i / limit_i * sum over its tokens of log p

    or with the length in place of the limit, if the method says so. N counts all sequences, so leaving out the rows
    whose advantage is exactly zero changes nothing but the time. A KL term pulls at those as well: `keep_zeros`.
    """
    rows: list[Weighted] = []
    estimates = method.estimate(sequences)
    for index, (advantage, length, limit) in enumerate(zip(estimates, lengths, limits, strict=True)):
        if not 0 < length <= limit:
            raise Fault(f"a sequence has {length} tokens where 1 to {limit} can be")
        scale = 1 / (len(sequences) * (length if method.by_length else limit))
        rows.append(Weighted(index, advantage * scale, scale))
    telling = [row for row in rows if row.advantage != 0]
    if len(telling) < MIN_ROWS:
        return []
    return rows if keep_zeros else telling
