"""M5, input noise: uniform noise on A, in the manner of NEFTune's noise on embeddings.

NEFTune's bound, alpha / sqrt(length * width), gives noise of a fixed length whatever it is added to. On a factor of
LoRA alpha = 10 would be larger than the factor itself, so here alpha is a percentage of its norm.
"""

from math import sqrt

from redqueen.evolution.variation.adapter import Adapter, Parents, Stack
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.operator import Use, mutation


@mutation("PopuLoRA M5; NEFTune, arXiv 2310.05914", Use.TRIED, norm=(0.98, 1.03), cosine=(0.98, 1), keeps_factors=True)
def input_noise(parents: Parents, draws: Draws, *, alpha: float = 10.0) -> Adapter:
    """Uniform noise on A alone, of alpha per cent of its norm."""
    [parent] = parents

    def change(stack: Stack) -> Stack:
        a_S_R_I = stack.a_S_R_I
        rms_S_1_1 = a_S_R_I.square().mean(dim=(1, 2), keepdim=True).sqrt()
        noise_S_R_I = draws.uniform(*a_S_R_I.shape, low=-1, high=1).mul_(sqrt(3) * alpha / 100 * rms_S_1_1)
        return stack.with_factors(noise_S_R_I.add_(a_S_R_I), stack.b_S_O_R)

    return parent.map(change)
