"""What follows the logits: drawing a token, and the loss of training with its derivative."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from redqueen.engine.kernels.tiles import power


@triton.jit
def _mix(x):
    """The finaliser of splitmix64."""
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    return x ^ (x >> 31)


@triton.jit
def _weigh(logits_ptr, temperature_ptr, high_ptr, sum_ptr, vocabulary, parts, span, BLOCK: tl.constexpr):
    """One program per row and part of the vocabulary: the largest logit, and the sum of weights relative to it."""
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    temperature = tl.load(temperature_ptr + row)
    inverse = 1.0 / tl.where(temperature <= 0, 1.0, temperature)
    base = logits_ptr + row * vocabulary
    lane = tl.arange(0, BLOCK)
    highs = tl.full([BLOCK], -1e30, tl.float32)
    sums = tl.zeros([BLOCK], tl.float32)
    stop = tl.minimum((part + 1) * span, vocabulary)
    for at in range(part * span, stop, BLOCK):
        logit = tl.load(base + at + lane, mask=at + lane < stop, other=-1e30).to(tl.float32)
        new = tl.maximum(highs, logit)
        sums = sums * tl.exp((highs - new) * inverse) + tl.exp((logit - new) * inverse)
        highs = new
    high = tl.max(highs)
    tl.store(high_ptr + row * parts + part, high)
    # A lane without a logit has none of the weight, whatever it is relative to.
    weight = tl.where(highs > -1e30, sums * tl.exp((highs - high) * inverse), 0.0)
    tl.store(sum_ptr + row * parts + part, tl.sum(weight))


@triton.jit
def _draw(
    logits_ptr, temperature_ptr, key_ptr, index_ptr, high_ptr, sum_ptr, token_ptr, logprob_ptr, vocabulary, parts, span,
    BLOCK: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """One program per row: the part, and in it the token, where the running sum passes the row's random share of the
    sum of weights."""
    row = tl.program_id(0).to(tl.int64)
    temperature = tl.load(temperature_ptr + row)
    greedy = temperature <= 0
    inverse = 1.0 / tl.where(greedy, 1.0, temperature)
    part = tl.arange(0, PARTS)
    highs = tl.load(high_ptr + row * parts + part, mask=part < parts, other=-1e30)
    sums = tl.load(sum_ptr + row * parts + part, mask=part < parts, other=0.0)
    high = tl.max(highs)
    sums = sums * tl.exp((highs - high) * inverse)
    total = tl.sum(sums)
    key = tl.load(key_ptr + row).to(tl.uint64)
    index = tl.load(index_ptr + row).to(tl.uint64)
    drawn = _mix(_mix(key) + (index + 1) * 0x9E3779B97F4A7C15)
    share = ((drawn >> 41).to(tl.int32).to(tl.float32) + 0.5) * 1.1920928955078125e-07
    wanted = share * total
    # Rounding may leave the wanted share at the very end of the sum: the likeliest token then.
    passed = tl.where(greedy, highs == high, (tl.cumsum(sums) > wanted) & (sums > 0))
    chosen = tl.min(tl.where(passed, part, PARTS))
    likeliest = greedy | (chosen == PARTS)
    chosen = tl.where(chosen == PARTS, tl.min(tl.where(highs == high, part, parts - 1)), chosen)
    # Summed in another order than the running sum, it may be larger by a rounding.
    before = tl.minimum(tl.sum(tl.where(part < chosen, sums, 0.0)), wanted)
    peak = tl.max(tl.where(part == chosen, highs, -1e30))
    base = logits_ptr + row * vocabulary
    lane = tl.arange(0, BLOCK)
    stop = tl.minimum((chosen + 1) * span, vocabulary)
    token = -1
    at = chosen * span
    while (token < 0) & (at < stop):
        logit = tl.load(base + at + lane, mask=at + lane < stop, other=-1e30).to(tl.float32)
        weight = tl.exp((logit - high) * inverse)
        block = tl.sum(weight)
        if likeliest:
            if tl.max(logit) == peak:
                token = at + tl.argmax(logit, 0)
        elif before + block > wanted:
            running = before + tl.cumsum(weight)
            # Rounding may leave the running sum short of the block's own: then it is the block's likeliest.
            first = tl.min(tl.where((running > wanted) & (weight > 0), lane, BLOCK))
            token = at + tl.where(first < BLOCK, first, tl.argmax(weight, 0))
        before += block
        at += BLOCK
    # The same for a part that falls short of its own sum.
    at = chosen * span
    while (token < 0) & (at < stop):
        logit = tl.load(base + at + lane, mask=at + lane < stop, other=-1e30).to(tl.float32)
        if tl.max(logit) == peak:
            token = at + tl.argmax(logit, 0)
        at += BLOCK
    # Logits that are not numbers lead anywhere; the token must still be one.
    token = tl.minimum(tl.maximum(token, 0), vocabulary - 1)
    logit = tl.load(base + token).to(tl.float32)
    tl.store(token_ptr + row, token.to(tl.int64))
    tl.store(logprob_ptr + row, (logit - high) * inverse - tl.log(total))


PROGRAMS = 2048
"""Enough to keep a GPU busy with drawing tokens."""


def sample(logits_R_V: Tensor, temperature_R: Tensor, key_R: Tensor, index_R: Tensor) -> tuple[Tensor, Tensor]:
    rows, vocabulary = logits_R_V.shape
    token_R = torch.empty(rows, dtype=torch.int64, device=logits_R_V.device)
    logprob_R = torch.empty(rows, dtype=torch.float32, device=logits_R_V.device)
    block = span = min(4096, power(vocabulary))
    while span < vocabulary and rows * triton.cdiv(vocabulary, span) > PROGRAMS:
        span *= 2
    parts = triton.cdiv(vocabulary, span)
    high_R_P, sum_R_P = torch.empty(2, rows, parts, dtype=torch.float32, device=logits_R_V.device)
    _weigh[(rows, parts)](
        logits_R_V, temperature_R, high_R_P, sum_R_P, vocabulary, parts, span, BLOCK=block, num_warps=8
    )
    _draw[(rows,)](
        logits_R_V, temperature_R, key_R, index_R, high_R_P, sum_R_P, token_R, logprob_R, vocabulary, parts, span,
        BLOCK=block, PARTS=power(parts, 1), num_warps=8,
    )  # fmt: skip
    return token_R, logprob_R


@triton.jit
def _advance(state_ptr, slot_ptr, token_ptr, slots, rows, last, TOKEN: tl.constexpr, POSITION: tl.constexpr,
    INDEX: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    slot = tl.load(slot_ptr + row, mask=row < rows, other=0)
    # Rows without a sequence are in slot 0, which stays as it is.
    mask = (row < rows) & (slot != 0)
    tl.store(state_ptr + TOKEN * slots + slot, tl.load(token_ptr + row, mask=mask, other=0), mask=mask)
    position_at, index_at = state_ptr + POSITION * slots + slot, state_ptr + INDEX * slots + slot
    tl.store(position_at, tl.minimum(tl.load(position_at, mask=mask, other=0) + 1, last), mask=mask)
    tl.store(index_at, tl.load(index_at, mask=mask, other=0) + 1, mask=mask)


def advance_(
    state_F_S: Tensor, slot_R: Tensor, token_R: Tensor, last: int, *, token: int, position: int, index: int
) -> None:
    """Give each row's slot its new token, and make its position, up to the last, and its index one larger; the three
    are rows of the state."""
    rows, block = len(slot_R), 128
    _advance[(triton.cdiv(rows, block),)](
        state_F_S, slot_R, token_R, state_F_S.shape[1], rows, last,
        TOKEN=token, POSITION=position, INDEX=index, BLOCK=block,
    )  # fmt: skip


@triton.jit
def _head_forward(
    logits_ptr, target_ptr, temperature_ptr, logprob_ptr, total_ptr, entropy_ptr, vocabulary, BLOCK: tl.constexpr
):
    """One program per token: log of the sum of weights, the target's log-probability, the entropy."""
    row = tl.program_id(0).to(tl.int64)
    inverse = 1.0 / tl.load(temperature_ptr + row)
    base = logits_ptr + row * vocabulary
    lane = tl.arange(0, BLOCK)
    highs = tl.full([BLOCK], -1e30, tl.float32)
    sums = tl.zeros([BLOCK], tl.float32)
    moments = tl.zeros([BLOCK], tl.float32)
    for at in range(0, vocabulary, BLOCK):
        inside = at + lane < vocabulary
        logit = tl.load(base + at + lane, mask=inside, other=0.0).to(tl.float32) * inverse
        logit = tl.where(inside, logit, -1e30)
        new = tl.maximum(highs, logit)
        shrink = tl.exp(highs - new)
        weight = tl.where(inside, tl.exp(logit - new), 0.0)
        # moments: sum of weight * (logit - high), kept relative to the current high.
        moments = shrink * (moments + (highs - new) * sums) + weight * (logit - new)
        sums = sums * shrink + weight
        highs = new
    high = tl.max(highs)
    shrink = tl.exp(highs - high)
    moment = tl.sum(shrink * (moments + (highs - high) * sums))
    total = tl.sum(sums * shrink)
    log_total = tl.log(total) + high
    target = tl.load(base + tl.load(target_ptr + row)).to(tl.float32) * inverse
    tl.store(logprob_ptr + row, target - log_total)
    tl.store(total_ptr + row, log_total)
    tl.store(entropy_ptr + row, tl.log(total) - moment / total)


@triton.jit
def _head_backward(
    logits_ptr, target_ptr, temperature_ptr, total_ptr, weight_ptr, out_ptr, vocabulary, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < vocabulary
    inverse = 1.0 / tl.load(temperature_ptr + row)
    logit = tl.load(logits_ptr + row * vocabulary + column, mask=mask, other=0.0).to(tl.float32) * inverse
    weight = tl.load(weight_ptr + row) * inverse
    target = tl.load(target_ptr + row)
    grad = (tl.where(column == target, 1.0, 0.0) - tl.exp(logit - tl.load(total_ptr + row))) * weight
    tl.store(out_ptr + row * vocabulary + column, grad.to(out_ptr.dtype.element_ty), mask=mask)


def head_forward(logits_M_V: Tensor, target_M: Tensor, temperature_M: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    rows, vocabulary = logits_M_V.shape
    logprob_M, total_M, entropy_M = torch.empty(3, rows, dtype=torch.float32, device=logits_M_V.device)
    _head_forward[(rows,)](
        logits_M_V, target_M, temperature_M, logprob_M, total_M, entropy_M, vocabulary,
        BLOCK=min(2048, power(vocabulary)), num_warps=8,
    )  # fmt: skip
    return logprob_M, total_M, entropy_M


def head_backward(
    logits_M_V: Tensor, target_M: Tensor, temperature_M: Tensor, total_M: Tensor, weight_M: Tensor, dtype: torch.dtype
) -> Tensor:
    rows, vocabulary = logits_M_V.shape
    out_M_V = torch.empty(rows, vocabulary, dtype=dtype, device=logits_M_V.device)
    block = min(4096, power(vocabulary))
    _head_backward[(rows, triton.cdiv(vocabulary, block))](
        logits_M_V, target_M, temperature_M, total_M, weight_M, out_M_V, vocabulary, BLOCK=block, num_warps=8
    )
    return out_M_V
