"""Dr. GRPO, "GRPO done right" (arXiv 2503.20783): GRPO without its two divisions, by deviation and by length."""

from collections.abc import Sequence

from redqueen.rl.advantages.groups import Rewarded, by_prompt, centred, within


def estimate(sequences: Sequence[Rewarded]) -> list[float]:
    """r - mean over a prompt's sequences; 0 for a prompt that was sampled once."""
    return within(sequences, (by_prompt(one) for one in sequences), centred)
