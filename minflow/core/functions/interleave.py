"""Repeat each element by its own count. Read next: `shape.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..backend import namespace
from ..base.errors import OutOfRangeError, ShapeError, TraceError
from ..mode import MODE
from ..ops import index as i
from ..ops.order_statistics import searchsorted
from ..ops.reduce import cumsum
from ..ops.rules import need_index
from ..ops.shape import constant_beside, expand
from ..source_location import fail
from ..spec import int64
from .arguments import integer, normalize_axis

if TYPE_CHECKING:
    from ..tensor import Tensor


def interleaved(input: Tensor, repeats: Tensor, dim: int, output_size: int | None) -> Tensor:
    """Repeat the elements of input along `dim` (None: their indices), each by its count in a vector of integers."""
    need_index("repeat_interleave", repeats.spec, "repeats")
    if repeats.spec.ndim != 1:
        what = f"repeat_interleave: repeats must be a vector, got {repeats.spec.ndim} axes"
        fail(ShapeError, what, "repeats.flatten()", repeats=repeats)
    if input is not None:
        axis = normalize_axis(dim, input.spec.ndim, input)
        size = input.spec.shape[axis] if input.spec.ndim else 1
        if repeats.spec.size not in (1, size):
            what = f"repeat_interleave: {repeats.spec.size} repeats for {size} elements along axis {axis}"
            fail(ShapeError, what, "one for each, or one for all", input=input, repeats=repeats)
        repeats = expand(repeats, shape=(size,))
    if output_size is None:
        if MODE.get().trace is not None:
            fail(
                TraceError,
                "repeat_interleave: output_size is required while a graph is built, because the elements are not known",
                "output_size=n, the sum of repeats",
                repeats=repeats,
            )
        if repeats.spec.size and int(repeats.min()) < 0:
            fail(OutOfRangeError, "repeat_interleave: repeats must not be negative", "0 or more", repeats=repeats)
        output_size = int(repeats.sum())
    places = constant_beside(repeats, namespace().arange(integer(output_size, "output_size")))
    source = searchsorted(cumsum(repeats, axis=0), places, right=True, dtype=int64)
    if input is None:
        return source
    return i.take(input.reshape(1) if not input.spec.ndim else input, source, axis=axis, by="repeat_interleave")
