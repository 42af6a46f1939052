"""Norms and the gated activation, each in one pass over its rows."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from redqueen.engine.kernels.tiles import power


@triton.jit
def _add_rms_norm(h_ptr, delta_ptr, w_ptr, out_ptr, width, eps, ADD: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < width
    h = tl.load(h_ptr + row * width + column, mask=mask, other=0.0).to(tl.float32)
    if ADD:
        h += tl.load(delta_ptr + row * width + column, mask=mask, other=0.0).to(tl.float32)
        # Rounded as it is stored, so that the norm sees what the next layer will see.
        h = h.to(h_ptr.dtype.element_ty)
        tl.store(h_ptr + row * width + column, h, mask=mask)
        h = h.to(tl.float32)
    scale = tl.rsqrt(tl.sum(h * h) / width + eps)
    w = tl.load(w_ptr + column, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * width + column, (h * scale * w).to(out_ptr.dtype.element_ty), mask=mask)


def add_rms_norm_(h_N_H: Tensor, delta_N_H: Tensor | None, weight_H: Tensor, eps: float) -> Tensor:
    rows, width = h_N_H.shape
    out_N_H = torch.empty_like(h_N_H)
    delta = h_N_H if delta_N_H is None else delta_N_H
    _add_rms_norm[(rows,)](
        h_N_H, delta, weight_H, out_N_H, width, eps, ADD=delta_N_H is not None, BLOCK=power(width), num_warps=4
    )
    return out_N_H


@triton.jit
def _swiglu(gate_up_ptr, out_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < width
    gate = tl.load(gate_up_ptr + row * 2 * width + column, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(gate_up_ptr + row * 2 * width + width + column, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * width + column, (gate * tl.sigmoid(gate) * up).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _swiglu_backward(gate_up_ptr, grad_ptr, out_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < width
    gate = tl.load(gate_up_ptr + row * 2 * width + column, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(gate_up_ptr + row * 2 * width + width + column, mask=mask, other=0.0).to(tl.float32)
    grad = tl.load(grad_ptr + row * width + column, mask=mask, other=0.0).to(tl.float32)
    half = tl.sigmoid(gate)
    d_gate = grad * up * half * (1 + gate * (1 - half))
    tl.store(out_ptr + row * 2 * width + column, d_gate.to(out_ptr.dtype.element_ty), mask=mask)
    d_up = grad * gate * half
    tl.store(out_ptr + row * 2 * width + width + column, d_up.to(out_ptr.dtype.element_ty), mask=mask)


def swiglu(gate_up_N_2F: Tensor) -> Tensor:
    rows, twice = gate_up_N_2F.shape
    out_N_F = gate_up_N_2F.new_empty(rows, twice // 2)
    block = min(1024, power(twice // 2))
    _swiglu[(rows, triton.cdiv(twice // 2, block))](gate_up_N_2F, out_N_F, twice // 2, BLOCK=block)
    return out_N_F


def swiglu_backward(gate_up_N_2F: Tensor, grad_N_F: Tensor) -> Tensor:
    rows, twice = gate_up_N_2F.shape
    out_N_2F = torch.empty_like(gate_up_N_2F)
    block = min(1024, power(twice // 2))
    grid = (rows, triton.cdiv(twice // 2, block))
    _swiglu_backward[grid](gate_up_N_2F, grad_N_F, out_N_2F, twice // 2, BLOCK=block)
    return out_N_2F
