"""M4, full noise: Gaussian noise on every factor, in proportion to its own spread."""

import torch
from torch import Tensor

from redqueen.evolution.variation.adapter import Adapter, Parents, Stack
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.operator import Use, mutation


@mutation("PopuLoRA M4", Use.LIVE, norm=(0.99, 1.05), cosine=(0.96, 0.99), keeps_factors=True)
def full_noise(parents: Parents, draws: Draws, *, sigma: float = 0.15) -> Adapter:
    """Gaussian noise on every factor, sigma times its standard deviation."""
    [parent] = parents
    return parent.map(lambda stack: noisy(stack, draws, sigma))


def noisy(stack: Stack, draws: Draws, sigma: float) -> Stack:
    def noise(factor_S_N_K: Tensor) -> Tensor:
        centred_S_N_K = factor_S_N_K - factor_S_N_K.mean(dim=(1, 2), keepdim=True)
        # A norm takes a tenth of the time of `std`.
        std_S_1_1 = torch.linalg.vector_norm(centred_S_N_K, dim=(1, 2), keepdim=True) / centred_S_N_K[0].numel() ** 0.5
        return draws.normal(*factor_S_N_K.shape).mul_(sigma * std_S_1_1).add_(factor_S_N_K)

    return stack.with_factors(noise(stack.a_S_R_I), noise(stack.b_S_O_R))
