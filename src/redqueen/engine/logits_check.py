"""Check, whenever an engine opens, that our path computes the logits that the base's own code computes."""

import math

import torch

from redqueen.engine.attention import CausalAttention
from redqueen.engine.base import Base
from redqueen.engine.body import Body
from redqueen.engine.routing import Routing
from redqueen.errors import InputError, UserError

TOKENS = 12


def own_logits(base: Base) -> torch.Tensor:
    """Of the base before its modules are replaced."""
    with torch.no_grad():
        return base.model(input_ids=_tokens(base).unsqueeze(0), use_cache=False).logits[0].double()


def check_logits(base: Base, body: Body, expected_T_V: torch.Tensor) -> None:
    tokens_T = _tokens(base)
    attention = CausalAttention(1, torch.arange(TOKENS, device=tokens_T.device))
    routing = Routing(member_K=torch.zeros(1, dtype=torch.int64, device=tokens_T.device))
    kind = base.model.config.model_type
    try:
        with torch.no_grad():
            logits_T_V = body.head(body.hidden(tokens_T, routing, attention)).double()
    except UserError:
        raise
    except Exception as error:
        # Modules of `transformers` that must be called differently fail in many ways.
        what = f"{base.name} ({kind}) cannot be run by this engine: {type(error).__name__}: {error}"
        raise InputError(what, "use another base") from error
    allowed = rounding(body.head.weight_V_H.dtype, base.model.config.get_text_config().num_hidden_layers)
    error = float((logits_T_V - expected_T_V).norm() / expected_T_V.norm().clamp(min=1e-12))
    if not error <= allowed:
        raise InputError(
            f"{base.name} ({kind}) computes what this engine does not support: its logits differ by {error:.2g}",
            "use another base",
        )


def rounding(dtype: torch.dtype, layers: int) -> float:
    """How far two right ways to compute logits may be from each other, relative to their size. In 16 bits each layer
    rounds anew, so it grows with the root of their number: 28 layers of random weights in NF4, of which the library
    chooses its kernels by shape, were 0.056 apart on a GPU. What an engine does not support is much further off."""
    return max(0.05, 0.015 * math.sqrt(layers)) if dtype in (torch.bfloat16, torch.float16) else 1e-3


def _tokens(base: Base) -> torch.Tensor:
    vocabulary = base.model.config.get_text_config().vocab_size
    generator = torch.Generator().manual_seed(0)
    return torch.randint(vocabulary, (TOKENS,), generator=generator).to(next(base.model.parameters()).device)
