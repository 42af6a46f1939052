"""Triton kernels for what a GPU would otherwise do in many small steps. `ops.py` has the same functions in plain torch,
but for those of decoding (`decode_products.py`, `decode_sums.py`), which do several steps of a block at once.

Everything is summed in float32 whatever the tensors hold. Rows that need no answer (padding) compute one all the same:
a captured graph has one shape.
"""

from redqueen.engine.kernels.adapters import expand_, expand_gated, expand_table, shrink
from redqueen.engine.kernels.attention import attend, attend_prompts, copy_prefixes_
from redqueen.engine.kernels.decode_products import MOST_ROWS, linear_gated, linear_parts, linear_rope
from redqueen.engine.kernels.decode_sums import add_norm_shrink_
from redqueen.engine.kernels.head import advance_, head_backward, head_forward, sample
from redqueen.engine.kernels.pointwise import add_rms_norm_, swiglu, swiglu_backward
from redqueen.engine.kernels.rotary import rope, rope_write_

__all__ = [
    "MOST_ROWS",
    "add_norm_shrink_",
    "add_rms_norm_",
    "advance_",
    "attend",
    "attend_prompts",
    "copy_prefixes_",
    "expand_",
    "expand_gated",
    "expand_table",
    "head_backward",
    "head_forward",
    "linear_gated",
    "linear_parts",
    "linear_rope",
    "rope",
    "rope_write_",
    "sample",
    "shrink",
    "swiglu",
    "swiglu_backward",
]
