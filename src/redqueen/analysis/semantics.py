"""How varied tasks are in meaning, by how the bare base reads them: the distance between its hidden states after them.

What tasks do, which is the other way to tell, is their family's to say (`Family.behaviours`).
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from redqueen.analysis.distance import mean_distance
from redqueen.engine.protocol import Engine, ScoreRequest
from redqueen.errors import InputError


async def embeddings(engine: Engine, prompts: Sequence[tuple[int, ...]]) -> Tensor:
    """The bare base's last hidden state after each prompt: N_D, float32. A prompt has at least two tokens."""
    if not prompts:
        return torch.zeros(0, 0)
    if any(len(prompt) < 2 for prompt in prompts):
        raise InputError("a text of fewer than two tokens cannot be embedded", "leave it out")
    scores = await engine.score(
        [ScoreRequest(prompt=prompt[:-1], completion=prompt[-1:], hidden=True) for prompt in prompts]
    )
    return torch.stack([score.hidden for score in scores if score.hidden is not None])


def semantic_distance(embedding_N_D: Tensor) -> float:
    """The mean of one minus the cosine over all pairs; 0 where there is no pair.

    The embeddings are taken as they are. They share a large part, so the figure is small, and it can be compared within
    one base only. To take their mean away first would make it useless: the cosines of centred vectors add up to about
    the same whether the texts are alike or not.
    """
    unit_N_D = torch.nn.functional.normalize(embedding_N_D.double(), dim=1)
    return mean_distance(1 - unit_N_D @ unit_N_D.T)
