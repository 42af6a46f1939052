"""What prompts share from their first token on."""

from collections.abc import Sequence

LEAST = 32
"""Tokens that are worth sharing."""


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two prompts share from the first on."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def followed(leader: Sequence[int], prompt: Sequence[int], following: Sequence[int] = ()) -> int:
    """How many tokens a prompt should take from its leader, where prompts are sorted and another follows it. None where
    they are few, or where the next shares far more with this one, which is then the better leader."""
    shared = common(leader, prompt)
    return shared if shared >= LEAST and 2 * shared >= common(prompt, following) else 0
