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
def _sample(logits_ptr, temperature_ptr, key_ptr, index_ptr, token_ptr, logprob_ptr, vocabulary, BLOCK: tl.constexpr):
    """One program per row: the largest logit and the sum of weights, then the token where the running sum passes the
    row's random share of it."""
    row = tl.program_id(0).to(tl.int64)
    temperature = tl.load(temperature_ptr + row)
    greedy = temperature <= 0
    inverse = 1.0 / tl.where(greedy, 1.0, temperature)
    base = logits_ptr + row * vocabulary
    lane = tl.arange(0, BLOCK)
    highs = tl.full([BLOCK], -1e30, tl.float32)
    sums = tl.zeros([BLOCK], tl.float32)
    for at in range(0, vocabulary, BLOCK):
        logit = tl.load(base + at + lane, mask=at + lane < vocabulary, other=-1e30).to(tl.float32)
        new = tl.maximum(highs, logit)
        sums = sums * tl.exp((highs - new) * inverse) + tl.exp((logit - new) * inverse)
        highs = new
    high = tl.max(highs)
    total = tl.sum(sums * tl.exp((highs - high) * inverse))
    key = tl.load(key_ptr + row).to(tl.uint64)
    index = tl.load(index_ptr + row).to(tl.uint64)
    drawn = _mix(_mix(key) + (index + 1) * 0x9E3779B97F4A7C15)
    share = ((drawn >> 41).to(tl.int32).to(tl.float32) + 0.5) * 1.1920928955078125e-07
    wanted = share * total
    before = 0.0
    token = -1
    at = 0
    while (token < 0) & (at < vocabulary):
        logit = tl.load(base + at + lane, mask=at + lane < vocabulary, other=-1e30).to(tl.float32)
        weight = tl.exp((logit - high) * inverse)
        part = tl.sum(weight)
        if greedy:
            if tl.max(logit) == high:
                token = at + tl.argmax(logit, 0)
        elif before + part > wanted:
            running = before + tl.cumsum(weight)
            # Rounding may leave the running sum short of the block's own: then it is the block's likeliest.
            passed = tl.min(tl.where((running > wanted) & (weight > 0), lane, BLOCK))
            token = at + tl.where(passed < BLOCK, passed, tl.argmax(weight, 0))
        before += part
        at += BLOCK
    # Rounding may leave the wanted share at the very end of the sum: the likeliest token then.
    at = 0
    while (token < 0) & (at < vocabulary):
        logit = tl.load(base + at + lane, mask=at + lane < vocabulary, other=-1e30).to(tl.float32)
        if tl.max(logit) == high:
            token = at + tl.argmax(logit, 0)
        at += BLOCK
    # Logits that are not numbers lead anywhere; the token must still be one.
    token = tl.minimum(tl.maximum(token, 0), vocabulary - 1)
    chosen = tl.load(base + token).to(tl.float32)
    tl.store(token_ptr + row, token.to(tl.int64))
    tl.store(logprob_ptr + row, (chosen - high) * inverse - tl.log(total))


def sample(logits_R_V: Tensor, temperature_R: Tensor, key_R: Tensor, index_R: Tensor) -> tuple[Tensor, Tensor]:
    rows, vocabulary = logits_R_V.shape
    token_R = torch.empty(rows, dtype=torch.int64, device=logits_R_V.device)
    logprob_R = torch.empty(rows, dtype=torch.float32, device=logits_R_V.device)
    _sample[(rows,)](
        logits_R_V, temperature_R, key_R, index_R, token_R, logprob_R, vocabulary,
        BLOCK=min(4096, power(vocabulary)), num_warps=8,
    )  # fmt: skip
    return token_R, logprob_R


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
