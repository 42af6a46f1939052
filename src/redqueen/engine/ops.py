"""The arithmetic of a forward pass besides the matrix products with the base's weights.

Each function is written here in plain torch, for every device and dtype; on CUDA those of `kernels/` do the same in one
step. Tests compare the two.
"""

import importlib.util
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

HAVE_TRITON = importlib.util.find_spec("triton") is not None
NOT_CUDNN = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
"""torch prefers cuDNN's attention on some GPUs; that is compiled for every new shape, and every batch has a new one."""


def fused(tensor: Tensor) -> bool:
    """Whether the kernels handle tensors like this one."""
    return tensor.is_cuda and HAVE_TRITON and tensor.dtype != torch.float64


def add_rms_norm_(h_N_H: Tensor, delta_N_H: Tensor | None, weight_H: Tensor, eps: float) -> Tensor:
    """Add `delta` to `h` in place; returns the norm of the sum. Not differentiable."""
    if fused(h_N_H):
        from redqueen.engine import kernels

        return kernels.add_rms_norm_(h_N_H, delta_N_H, weight_H, eps)
    if delta_N_H is not None:
        h_N_H += delta_N_H
    return F.rms_norm(h_N_H, weight_H.shape, weight_H, eps)


class _SwiGLU(torch.autograd.Function):
    """silu(gate) * up. Saves only its input, the widest tensor of a layer."""

    @staticmethod
    def forward(ctx, gate_up_N_2F: Tensor) -> Tensor:
        ctx.save_for_backward(gate_up_N_2F)
        return _swiglu(gate_up_N_2F)

    @staticmethod
    def backward(ctx, *grads: Tensor) -> Tensor:
        (grad_N_F,) = grads
        (gate_up_N_2F,) = ctx.saved_tensors
        if fused(gate_up_N_2F):
            from redqueen.engine import kernels

            return kernels.swiglu_backward(gate_up_N_2F, grad_N_F.contiguous())
        gate_N_F, up_N_F = gate_up_N_2F.chunk(2, -1)
        half_N_F = torch.sigmoid(gate_N_F)
        d_gate_N_F = grad_N_F * up_N_F * half_N_F * (1 + gate_N_F * (1 - half_N_F))
        return torch.cat([d_gate_N_F, grad_N_F * gate_N_F * half_N_F], -1)


def swiglu(gate_up_N_2F: Tensor) -> Tensor:
    if gate_up_N_2F.requires_grad:
        return _SwiGLU.apply(gate_up_N_2F)  # pyright: ignore[reportReturnType]
    return _swiglu(gate_up_N_2F)


def _swiglu(gate_up_N_2F: Tensor) -> Tensor:
    if fused(gate_up_N_2F):
        from redqueen.engine import kernels

        return kernels.swiglu(gate_up_N_2F)
    gate_N_F, up_N_F = gate_up_N_2F.chunk(2, -1)
    return F.silu(gate_N_F).mul_(up_N_F)


class _Rope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, qkv_N_O: Tensor, position_N: Tensor, cos_T_D: Tensor, sin_T_D: Tensor, rotated: int) -> Tensor:
        ctx.save_for_backward(position_N, cos_T_D, sin_T_D)
        ctx.rotated = rotated
        return _rotate(qkv_N_O, position_N, cos_T_D, sin_T_D, rotated, inverse=False)

    @staticmethod
    def backward(ctx, *grads: Tensor):
        position_N, cos_T_D, sin_T_D = ctx.saved_tensors
        grad_N_O = _rotate(grads[0].contiguous(), position_N, cos_T_D, sin_T_D, ctx.rotated, inverse=True)
        return grad_N_O, None, None, None, None


def rope(qkv_N_O: Tensor, position_N: Tensor, cos_T_D: Tensor, sin_T_D: Tensor, rotated: int) -> Tensor:
    """Rotary embedding of the first `rotated` heads of every row; the others are copied.

    `cos_T_D` and `sin_T_D` are tables by position whose two halves are equal, as `transformers` makes them.
    """
    if qkv_N_O.requires_grad:
        return _Rope.apply(qkv_N_O, position_N, cos_T_D, sin_T_D, rotated)  # pyright: ignore[reportReturnType]
    return _rotate(qkv_N_O, position_N, cos_T_D, sin_T_D, rotated, inverse=False)


def _rotate(
    qkv_N_O: Tensor, position_N: Tensor, cos_T_D: Tensor, sin_T_D: Tensor, rotated: int, *, inverse: bool
) -> Tensor:
    if fused(qkv_N_O):
        from redqueen.engine import kernels

        return kernels.rope(qkv_N_O, position_N, cos_T_D, sin_T_D, rotated, inverse=inverse)
    dim = cos_T_D.shape[1]
    out_N_O = qkv_N_O.clone()
    heads_N_H_D = out_N_O[:, : rotated * dim].unflatten(1, (rotated, dim))
    first, second = qkv_N_O[:, : rotated * dim].unflatten(1, (rotated, 2, dim // 2)).unbind(2)
    cos = cos_T_D[position_N, : dim // 2].unsqueeze(1).to(qkv_N_O.dtype)
    sin = sin_T_D[position_N, : dim // 2].unsqueeze(1).to(qkv_N_O.dtype)
    if inverse:
        sin = -sin
    torch.sub(first * cos, second * sin, out=heads_N_H_D[..., : dim // 2])
    torch.add(second * cos, first * sin, out=heads_N_H_D[..., dim // 2 :])
    return out_N_O


def masked(q_S_C_H_D: Tensor, k_S_T_G_D: Tensor, v_S_T_G_D: Tensor, mask_S_1_E_T: Tensor, scale: float) -> Tensor:
    """Attention of some of each sequence's tokens to its keys, with an additive mask.

    Queries that share a key head become several queries of one head, and the mask has a row for each (E = H / G * C):
    the fast kernels take no mask together with fewer key heads than query heads."""
    sequences, count, heads, dim = q_S_C_H_D.shape
    out_S_G_E_D = _attention(
        q_S_C_H_D.transpose(1, 2).reshape(sequences, k_S_T_G_D.shape[2], -1, dim),
        k_S_T_G_D.transpose(1, 2),
        v_S_T_G_D.transpose(1, 2),
        attn_mask=mask_S_1_E_T,
        scale=scale,
    )
    return out_S_G_E_D.reshape(sequences, heads, count, dim).transpose(1, 2)


def folded(q_B_T_H_D: Tensor, k_B_T_G_D: Tensor, v_B_T_G_D: Tensor, seen_T_T: Tensor, scale: float) -> Tensor:
    """Attention with one mask for all sequences, by `masked`. Not on a CPU, where the lengths of neighbours would show
    in the last bits."""
    mask_T_T = torch.zeros(seen_T_T.shape, dtype=q_B_T_H_D.dtype, device=seen_T_T.device)
    mask_E_T = mask_T_T.masked_fill_(~seen_T_T, float("-inf")).repeat(q_B_T_H_D.shape[2] // k_B_T_G_D.shape[2], 1)
    return masked(q_B_T_H_D, k_B_T_G_D, v_B_T_G_D, mask_E_T[None, None], scale)


def causal(q_B_T_H_D: Tensor, k_B_T_G_D: Tensor, v_B_T_G_D: Tensor, *, scale: float, window: int) -> Tensor:
    """Causal attention of whole sequences. Padding at their ends needs no mask: nothing before it sees it. `window` > 0
    is the number of positions that a token sees, its own included."""
    length = q_B_T_H_D.shape[1]
    mask_T_T = None
    if 0 < window < length:
        at = torch.arange(length, device=q_B_T_H_D.device)
        mask_T_T = (at[None, :] <= at[:, None]) & (at[None, :] > at[:, None] - window)
        if q_B_T_H_D.is_cuda:
            return folded(q_B_T_H_D, k_B_T_G_D, v_B_T_G_D, mask_T_T, scale)
    out_B_H_T_D = _attention(
        q_B_T_H_D.transpose(1, 2),
        k_B_T_G_D.transpose(1, 2),
        v_B_T_G_D.transpose(1, 2),
        attn_mask=mask_T_T,
        is_causal=mask_T_T is None,
        scale=scale,
        enable_gqa=q_B_T_H_D.shape[2] != k_B_T_G_D.shape[2],
    )
    return out_B_H_T_D.transpose(1, 2)


def ragged(
    q_N_H_D: Tensor,
    k_X_G_D: Tensor,
    v_X_G_D: Tensor,
    until_query_Z: Tensor,
    until_key_Z: Tensor,
    most_queries: int,
    most_keys: int,
    *,
    scale: float,
    window: int,
) -> Tensor:
    """Causal attention of runs of queries, each to its own run of keys, of which its queries are the last."""
    if flash(q_N_H_D):
        return torch.ops.aten._flash_attention_forward(
            q_N_H_D, k_X_G_D, v_X_G_D, until_query_Z, until_key_Z, most_queries, most_keys, 0.0, True, False,
            scale=scale, window_size_left=window - 1 if window else None, window_size_right=0 if window else None,
        )[0]  # fmt: skip
    out = []
    for query, key in zip(pairwise(until_query_Z.tolist()), pairwise(until_key_Z.tolist()), strict=True):
        q_H_C_D = q_N_H_D[slice(*query)].transpose(0, 1)
        k_G_T_D, v_G_T_D = (x[slice(*key)].transpose(0, 1) for x in (k_X_G_D, v_X_G_D))
        at_T = torch.arange(k_G_T_D.shape[1], device=q_N_H_D.device)
        at_C = at_T[len(at_T) - q_H_C_D.shape[1] :, None]
        seen_C_T = at_T <= at_C
        if window:
            seen_C_T &= at_T > at_C - window
        gqa = q_H_C_D.shape[0] != k_G_T_D.shape[0]
        out.append(_attention(q_H_C_D, k_G_T_D, v_G_T_D, attn_mask=seen_C_T, scale=scale, enable_gqa=gqa))
    return torch.cat(out, 1).transpose(0, 1)


def flash(tensor: Tensor) -> bool:
    """Whether flash attention of ragged lengths takes queries like this one."""
    if not tensor.is_cuda or tensor.dtype not in (torch.bfloat16, torch.float16):
        return False
    if not torch.backends.cuda.is_flash_attention_available() or torch.cuda.get_device_capability(tensor.device) < (8,):
        return False
    return tensor.shape[-1] % 8 == 0 and tensor.shape[-1] <= 256


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x_N_G_D: Tensor, at_X: Tensor) -> Tensor:
        ctx.save_for_backward(at_X)
        ctx.rows = len(x_N_G_D)
        return x_N_G_D.index_select(0, at_X)

    @staticmethod
    def backward(ctx, *grads: Tensor):
        (at_X,) = ctx.saved_tensors
        [grad_X_G_D] = grads
        exact = torch.promote_types(grad_X_G_D.dtype, torch.float32)
        sum_N_G_D = torch.zeros(ctx.rows, *grad_X_G_D.shape[1:], dtype=exact, device=grad_X_G_D.device)
        sum_N_G_D.index_add_(0, at_X, grad_X_G_D.to(exact))
        return sum_N_G_D.to(grad_X_G_D.dtype), None


def gathered(x_N_G_D: Tensor, at_X: Tensor) -> Tensor:
    """The rows at these places. A row may be taken hundreds of times, so its gradient is summed in float32 at least."""
    return _Gathered.apply(x_N_G_D, at_X)  # pyright: ignore[reportReturnType]


def _attention(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    if not q.is_cuda:
        return F.scaled_dot_product_attention(q, k, v, **options)
    with sdpa_kernel(NOT_CUDNN):
        return F.scaled_dot_product_attention(q, k, v, **options)


def attend_part(
    q_B_H_T_D: Tensor, k_B_H_L_D: Tensor, v_B_H_L_D: Tensor, mask: Tensor, scale: float
) -> tuple[Tensor, Tensor]:
    """Attention to a part of the keys, and the log of the sum of its weights, with which two parts can be merged."""
    if q_B_H_T_D.device.type == "cpu":
        flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        return flash(q_B_H_T_D, k_B_H_L_D, v_B_H_L_D, attn_mask=mask, scale=scale)
    score_B_H_T_L = q_B_H_T_D @ k_B_H_L_D.transpose(2, 3) * scale + mask
    return score_B_H_T_L.softmax(-1) @ v_B_H_L_D, score_B_H_T_L.logsumexp(-1)


def sample(logits_R_V: Tensor, temperature_R: Tensor, key_R: Tensor, index_R: Tensor) -> tuple[Tensor, Tensor]:
    """A token for each row and its log-probability under the distribution that it is drawn from. The random number of a
    row depends on its key and index alone."""
    if fused(logits_R_V):
        from redqueen.engine import kernels

        return kernels.sample(logits_R_V, temperature_R, key_R, index_R)
    greedy_R = temperature_R <= 0
    exact = torch.float64 if logits_R_V.dtype == torch.float64 else torch.float32
    scaled_R_V = logits_R_V.to(exact) / torch.where(greedy_R, 1.0, temperature_R).to(exact).unsqueeze(1)
    scaled_R_V -= scaled_R_V.amax(-1, keepdim=True)
    # Exponentials take most of the time on a CPU: one for both the draw and the log-probability.
    running_R_V = scaled_R_V.exp().cumsum(-1)
    total_R_1 = running_R_V[:, -1:]
    wanted_R_1 = uniform(key_R, index_R).to(exact).unsqueeze(1) * total_R_1
    token_R = torch.searchsorted(running_R_V, wanted_R_1, right=True).squeeze(1)
    # Where rounding puts the drawn number at the very end of the sum, the likeliest token is taken.
    likeliest_R = greedy_R | (token_R >= logits_R_V.shape[1])
    if logits_R_V.is_cuda or likeliest_R.any():
        token_R = torch.where(likeliest_R, logits_R_V.argmax(-1), token_R)
    return token_R, (scaled_R_V.gather(1, token_R.unsqueeze(1)) - total_R_1.log()).squeeze(1).float()


def uniform(key_R: Tensor, index_R: Tensor) -> Tensor:
    """One number in (0, 1) for each key and index, by splitmix64; as many bits as float32 can tell apart from 1."""
    drawn_R = _mix(_mix(key_R) + (index_R.to(torch.int64) + 1) * signed(0x9E3779B97F4A7C15))
    return (_shifted(drawn_R, 41).double() + 0.5) * 2.0**-23


def _mix(x: Tensor) -> Tensor:
    x = (x ^ _shifted(x, 30)) * signed(0xBF58476D1CE4E5B9)
    x = (x ^ _shifted(x, 27)) * signed(0x94D049BB133111EB)
    return x ^ _shifted(x, 31)


def _shifted(x: Tensor, by: int) -> Tensor:
    """A logical shift: torch's own is arithmetic."""
    return (x >> by) & ((1 << (64 - by)) - 1)


def signed(x: int) -> int:
    return x - (1 << 64) if x >= 1 << 63 else x


def logits(hidden_M_H: Tensor, weight_V_H: Tensor) -> Tensor:
    """In float32 where the device can, even if the weights are not: rounded logits would make sampler and trainer
    disagree."""
    if hidden_M_H.is_cuda and hidden_M_H.dtype in (torch.bfloat16, torch.float16):
        return torch.mm(hidden_M_H, weight_V_H.t(), out_dtype=torch.float32)
    out_M_V = hidden_M_H @ weight_V_H.t()
    return out_M_V if out_M_V.dtype == torch.float64 else out_M_V.float()


def head_forward(logits_M_V: Tensor, target_M: Tensor, temperature_M: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probabilities of the targets, log-sum-exps, entropies."""
    if fused(logits_M_V):
        from redqueen.engine import kernels

        return kernels.head_forward(logits_M_V, target_M, temperature_M)
    scaled_M_V = logits_M_V / temperature_M.unsqueeze(1)
    total_M = scaled_M_V.logsumexp(-1)
    logprob_M = scaled_M_V.gather(1, target_M.unsqueeze(1)).squeeze(1) - total_M
    entropy_M = total_M - ((scaled_M_V - total_M.unsqueeze(1)).exp() * scaled_M_V).sum(-1)
    return logprob_M, total_M, entropy_M


def head_backward(
    logits_M_V: Tensor, target_M: Tensor, temperature_M: Tensor, total_M: Tensor, weight_M: Tensor, dtype: torch.dtype
) -> Tensor:
    """The gradient of the logits, where that of each target's log-probability is `weight_M`."""
    if fused(logits_M_V):
        from redqueen.engine import kernels

        return kernels.head_backward(logits_M_V, target_M, temperature_M, total_M, weight_M, dtype)
    scaled_M_V = logits_M_V / temperature_M.unsqueeze(1)
    grad_M_V = (scaled_M_V - total_M.unsqueeze(1)).exp_().neg_()
    grad_M_V.scatter_add_(1, target_M.unsqueeze(1), torch.ones_like(target_M, dtype=grad_M_V.dtype).unsqueeze(1))
    return grad_M_V.mul_((weight_M / temperature_M).unsqueeze(1)).to(dtype)
