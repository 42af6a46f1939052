"""Run prompts into the KV cache, in batches of similar length."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from redqueen.engine.attention import PrefillAttention
from redqueen.engine.body import Body
from redqueen.engine.decode_state import Completion
from redqueen.engine.kv_cache import SCRATCH, KVCache, rounded
from redqueen.engine.routing import Routing

Prompts = Sequence[Sequence[Completion]]
"""Completions grouped by member and prompt."""


def batches(prompts: Prompts, max_tokens: int) -> Iterator[list[Sequence[Completion]]]:
    """Longest prompts first, `max_tokens` at once, padding included; members in turn."""
    waiting = sorted(prompts, key=lambda group: -len(group[0].request.prompt))
    while waiting:
        size = max(1, max_tokens // max(1, _length(waiting)))
        yield sorted(waiting[:size], key=lambda group: group[0].member)
        waiting = waiting[size:]


def prefill(
    body: Body, cache: KVCache, prompts: Prompts, copies: Sequence[tuple[int, int, int]], *, by_span: bool
) -> None:
    """All tokens of the prompts but the last, which the first step takes. `copies` are the prompt, the start and the
    capacity of each region that gets one."""
    length = _length(prompts)
    if length == 0:
        return
    device = cache.k.device
    token_B_T = np.zeros((len(prompts), length), np.int64)
    known_B = np.array([len(group[0].request.prompt) - 1 for group in prompts])
    for row, group in enumerate(prompts):
        token_B_T[row, : known_B[row]] = group[0].request.prompt[:-1]
    regions_S_4 = np.array([(row, start, capacity, known_B[row]) for row, start, capacity in copies])
    row_S, start_S, capacity_S, known_S = torch.from_numpy(regions_S_4).to(device).unbind(1)
    at_T = torch.arange(length, device=device)
    place_S_T_G = cache.places(start_S, capacity_S, at_T.unsqueeze(0))
    scratch_G = torch.arange(cache.kv_heads, device=device) * SCRATCH
    inside_S_T = at_T < known_S.unsqueeze(1)
    position_N = at_T.clamp(max=body.positions - 1).repeat(len(prompts))
    attention = PrefillAttention(
        len(prompts),
        position_N,
        cache=cache,
        row_S=row_S,
        place_S_T_G=torch.where(inside_S_T.unsqueeze(2), place_S_T_G, scratch_G),
    )
    members = [group[0].member for group in prompts]
    if by_span:
        routing = Routing.by_span([(member, length) for member in members])
    else:
        routing = Routing(member_K=torch.tensor(members, device=device))
    body.hidden(torch.from_numpy(token_B_T).to(device).flatten(), routing, attention)


def _length(prompts: Prompts) -> int:
    return rounded(max(len(group[0].request.prompt) for group in prompts) - 1)
