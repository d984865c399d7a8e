"""The fast kernel of `expand`, `../../core/ops/shape.py`."""

from __future__ import annotations

import numpy as np

from ...core.kernels import kernel
from ...core.ops.shape import expand, writable_like


@kernel(expand, platform="numpy", tolerance=0)
def _(xp, x, shape):
    """A view made directly if x is contiguous, which is faster than broadcast_to."""
    if not x.flags.c_contiguous or not x.size:
        return writable_like(np.broadcast_to(x, shape), x)
    lead = (0,) * (len(shape) - x.ndim)
    strides = lead + tuple([0 if n == 1 else stride for n, stride in zip(x.shape, x.strides)])
    return np.ndarray(shape, x.dtype, x, 0, strides)
