"""Matrix products, by cuBLAS."""

from __future__ import annotations

from ....core.backend import backend_of_array
from ....core.kernels import kernel
from ....core.ops.linalg import matmul
from ..cublas import type_of
from ..gemm import gemms

TOLERANCE = 8  # another order of summation


@kernel(matmul, platform="cupy", declines=True, tolerance=TOLERANCE, bfloat16=True)
def product(xp, a, b, ta, tb, out=None):
    if type_of(a.dtype) is None or not a.size or not b.size:
        return NotImplemented
    if ta:
        a = a.swapaxes(-1, -2)
    if tb:
        b = b.swapaxes(-1, -2)
    shape = (*xp.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    result = out if out is not None else xp.empty(shape, a.dtype)
    calls = gemms((a.shape, a.strides), (b.shape, b.strides), (shape, result.strides), a.itemsize)
    if calls is None:
        a, b = xp.ascontiguousarray(a), xp.ascontiguousarray(b)
        result = result if result.flags.c_contiguous else xp.empty(shape, a.dtype)
        calls = gemms((a.shape, a.strides), (b.shape, b.strides), (shape, result.strides), a.itemsize, copied=True)
        if calls is None:
            return NotImplemented
    backend = backend_of_array(a)
    for call in calls:
        backend.gemm(call, b, a, result)
    if out is None:
        return result
    if out is not result:
        out[...] = result
    return out
