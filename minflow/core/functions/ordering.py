"""Sorting and what follows from it: argsort, topk, median. Read next: `shape.py`."""

from __future__ import annotations

from ..errors import OutOfRangeError
from ..op import fail
from ..ops import sort as s
from ..ops.shape import reshape
from . import return_types
from .arguments import axis_of, integer, numpy_names
from .shape import narrow, select


@numpy_names
def sort(input, dim=-1, descending: bool = False, stable: bool = False):
    """`(values, indices)` sorted along `dim`; equal ones always stay as they stood, NaN counts as the largest."""
    axis = axis_of(dim, input.spec.ndim, input)
    if not input.spec.ndim:
        values, indices = s.sort(reshape(input, shape=(1,)), axis=0, descending=descending)
        return return_types.sort(reshape(values, shape=()), reshape(indices, shape=()))
    return return_types.sort(*s.sort(input, axis=axis, descending=descending))


@numpy_names
def argsort(input, dim=-1, descending: bool = False, stable: bool = False):
    """`int64`: the indices that sort along `dim`."""
    return sort(input, dim, descending, stable).indices


@numpy_names
def topk(input, k: int, dim=-1, largest: bool = True, sorted: bool = True):
    """`(values, indices)` of the k largest (or smallest) along `dim`, in order."""
    axis, k = axis_of(dim, input.spec.ndim, input), integer(k, "k")
    size = input.spec.shape[axis] if input.spec.ndim else 1
    if not 0 <= k <= size:
        fail(OutOfRangeError, f"topk: k is {k}, but axis {axis} has size {size}", f"k from 0 to {size}", input=input)
    values, indices = sort(input, dim, descending=largest)
    if input.spec.ndim:
        values, indices = narrow(values, axis, 0, k), narrow(indices, axis, 0, k)
    return return_types.topk(values.contiguous(), indices.contiguous())


@numpy_names
def median(input, dim=None, keepdim: bool = False):
    """The middle one (of an even number the lower of the two); with `dim`, `(values, indices)` along it."""
    if dim is None:
        flat = reshape(input.contiguous(), shape=(input.spec.size,))
        if not input.spec.size:
            fail(OutOfRangeError, "median: there are no elements", "check x.numel() first", input=input)
        return select(s.sort(flat, axis=0, descending=False)[0], 0, (input.spec.size - 1) // 2)
    values, indices = sort(input, dim)
    if input.spec.ndim:
        axis = axis_of(dim, input.spec.ndim, input)
        middle = (input.spec.shape[axis] - 1) // 2
        pick = (lambda x: narrow(x, axis, middle, 1)) if keepdim else (lambda x: select(x, axis, middle))
        values, indices = pick(values), pick(indices)
    return return_types.median(values, indices)
