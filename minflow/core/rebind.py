"""Views and writing in place, by rebinding.

A tensor that is a view knows its base and the path of view ops from it. A write through a view computes the base anew
by one op (`view_write`) and rebinds the Value of the base; its other views take their Value again at their next use.
While tracing the same rebinding gives plain SSA. Eager also writes the storage, and its version moves.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from .errors import DTypeError, GradError, ShapeError
from .ir import Cell, Value, Where
from .op import MODE, NUMBERS, Op, caller, check_numbers, explain, fail, infer, outside, using
from .ops.shape import cast, clone, derive, detach, expand, full


class Alias(NamedTuple):
    """How a tensor looks into another: base, the view ops from it, and the base's Value when this was derived."""

    base: Any
    path: tuple[tuple[Op, dict], ...]
    bound: Value | None


new_alias = functools.partial(tuple.__new__, Alias)  # Alias(...) without the frame of its __new__


def cell_of(tensor) -> Cell:
    """The version cell of a tensor's storage, made at the first save or the first view."""
    if tensor.cell is None:
        tensor.cell = Cell()
    return tensor.cell


def bump(tensor, where: Where | None) -> None:
    """The storage was written. Without a cell nobody saved or viewed it, and there is nothing to tell."""
    if tensor.cell is not None:
        tensor.cell.version += 1
        tensor.cell.where = where


def make_view(result, source, op: Op, attrs: dict) -> None:
    """`result` looks into what `source` looks into, one step further."""
    alias = source.alias
    if alias is None:
        result.alias = new_alias((source, ((op, attrs),), source.value))
    else:
        result.alias = new_alias((alias.base, (*alias.path, (op, attrs)), alias.base.value))
    result.cell = source.cell if source.cell is not None else cell_of(source)


def refresh(tensor):
    """A view whose base was rebound takes its Value again from the base."""
    alias = tensor.alias
    if alias is not None and alias.base.value is not alias.bound:
        with using(MODE.get().but(grad=True)):
            fresh = derive(alias.base, alias.path)
        tensor.value, tensor.needs = fresh.value, fresh.needs
        tensor.alias = Alias(alias.base, alias.path, alias.base.value)
    return tensor


def phantom(tensor) -> np.ndarray:
    """An array of the strides that this tensor has or will have, without its numbers (a symbolic one has none)."""
    if tensor.array is not None:
        return tensor.array
    alias = tensor.alias
    shape = (alias.base if alias else tensor).spec.shape
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * max(shape[i + 1], 1)
    array = np.lib.stride_tricks.as_strided(np.empty(1, bool), shape, strides, writeable=False)
    for op, attrs in alias.path if alias else ():
        array = op.kernel(array, **attrs)
    return array


def is_contiguous(tensor) -> bool:
    """Are the elements in C order without gaps?"""
    return tensor.alias is None or phantom(tensor).flags.c_contiguous


def write(target, new):
    """Make `target`, perhaps a view, hold `new` (broadcast and cast to it): the storage is written, the base rebound."""
    mode, handle = MODE.get(), target
    target = mode.own(target)
    root, path = (target.alias.base, target.alias.path) if target.alias else (target, ())
    if any([op is detach for op, _ in path]):
        mode = mode.but(grad=False)
    guard(mode, handle, root)
    if target.array is not None and not target.array.flags.writeable:
        fail(ShapeError, "a write into a tensor that repeats or only lends its elements (expand, or a read-only array)",
             "clone() it first", target=handle)  # fmt: skip
    if not hasattr(new, "spec"):
        new = full(shape=target.spec.shape, value=new, dtype=target.dtype) if new.__class__ in NUMBERS else mode.tensor_of(new)
    if new.dtype is not target.dtype:
        new = cast(new, dtype=target.dtype)
    if new.spec.shape != target.spec.shape:
        lead = len(new.shape) - len(target.shape)
        if lead > 0 and set(new.shape[:lead]) == {1}:  # numpy and PyTorch drop leading axes of size 1
            new = new.reshape(new.shape[lead:])
        new = expand(new, shape=target.spec.shape) if new.spec.shape != target.spec.shape else new
    mode.write(target, root, path, mode.own(new))
    if path:
        refresh(target)
    return handle


def guard(mode, handle, root) -> None:
    if mode.grad and root.needs and mode.leaf(root.value) is not None:
        fail(
            GradError,
            "a leaf that requires grad is written in place: backward could not find its old numbers",
            "do it under `with flow.no_grad():`, or on a clone()",
            leaf=handle if handle.alias is None else root,
        )


def in_place(op: Op, target, *others, **attrs):
    """target = op(target, *others). Where nothing is recorded the kernel writes straight into the storage."""
    mode, inputs = MODE.get(), (target, *[x if x.__class__ in NUMBERS or hasattr(x, "spec") else MODE.get().tensor_of(x) for x in others])
    recorded = mode.grad and any([hasattr(x, "spec") and refresh(x).needs for x in inputs])
    dtype, specs = infer(op, inputs, attrs)
    if dtype is not None:
        if dtype.rank > target.dtype.rank:
            fail(DTypeError, f"{op.name}_: the result is {dtype.name}, which {target.dtype.name} cannot hold",
                 f"x = x.{op.name}(...) makes a new tensor; or convert first: x = x.to({dtype})", target=target)  # fmt: skip
        return write(target, op(*inputs, **attrs))
    if specs[0].shape != target.shape:
        raise explain(
            ShapeError(
                f"{op.name}_: the result has shape {specs[0].shape}, the tensor written has {target.spec.shape}",
                hint="a write in place cannot make a tensor larger: use the form without the underscore",
            ), op, inputs)  # fmt: skip
    shared = any([x is not target and hasattr(x, "spec") and x.cell is not None and x.cell is target.cell for x in inputs])
    if mode.trace or mode.told is not None or recorded or shared or specs[0] is not target.spec or not target.array.flags.writeable:
        return write(target, op(*inputs, **attrs))
    guard(mode, target, target)
    try:
        with np.errstate(all="ignore"):  # inf and NaN are results, also where warnings are errors
            op.kernel(*[x.array if hasattr(x, "spec") else x for x in inputs], **attrs, out=target.array)
    except OverflowError:
        raise outside(op, inputs) from None
    except TypeError:
        check_numbers(inputs)
        raise
    bump(target, caller(2))
    return target


def contiguous(tensor):
    """The tensor itself if it is contiguous, else a copy that is."""
    return tensor if is_contiguous(tensor) else clone(tensor)
