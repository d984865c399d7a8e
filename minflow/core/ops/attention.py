"""Scaled dot-product attention, as one composite op.

Source: Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.1. A tiled kernel, which never stores the weights, is in
`../../platforms/compiled/kernels/attention.py`.
"""

from __future__ import annotations

import math

from ..op import define
from ..spec import bool_
from .elementwise import where
from .examples import case, floats, strided
from .softmax import softmax


def attention_weights(query, key, mask, scale, nowhere):
    """The weights of all keys for each query. nowhere: a query that may attend to no key has weights 0, not NaN."""
    scores = (query * scale) @ key.transpose(-2, -1)
    if not isinstance(mask, int):
        scores = where(mask, scores, -math.inf) if mask.dtype is bool_ else scores + mask.to(scores.dtype)
    if not nowhere:
        return softmax(scores, dim=scores.spec.ndim - 1)
    hidden = (scores == -math.inf).all(-1, keepdim=True)
    return softmax(scores.masked_fill(hidden, 0.0), dim=scores.spec.ndim - 1).masked_fill(hidden, 0.0)


def attention_parts(query, key, value, mask, scale, nowhere):
    return attention_weights(query, key, mask, scale, nowhere) @ value


scaled_dot_product_attention = define(
    "scaled_dot_product_attention(query, key, value, mask; scale, nowhere)",
    decompose=attention_parts,
    number_inputs=["mask"],
    autocast="lower",
    dtype_agnostic=False,
    examples=[
        case(floats(2, 3, 4), floats(2, 5, 4), floats(2, 5, 3), 0, scale=0.5, nowhere=False),
        case(floats(3, 4), strided(5, 4), floats(5, 2), floats(3, 5), scale=1.0, nowhere=True),
    ],
    doc="softmax(query @ key.mT * scale + mask) @ value. A bool mask is True where a query may attend; 0 for no mask.",
    slow_on_numpy=True,
)
