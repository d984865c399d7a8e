"""Views and writing in place, by rebinding.

A tensor that is a view knows its base and the path of view ops from it. A write through a view computes the base anew
by one op (`view_write`) and rebinds the Value of the base; its other views take their Value again at their next use.
While tracing the same rebinding gives plain SSA. Eager also writes the storage, and its version moves.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np

from .backend.silence import silent
from .base.errors import DTypeError, GradError, ShapeError
from .door import apply, does_not_fit, refuse_symbolic
from .infer import infer
from .ir import NUMBERS, RETAIN, Cell, Outside, Value, Where, hooks_at
from .mode import MODE, touch, using
from .op import Op
from .ops.shape import cast, clone, derive, detach, expand, full, overwritten
from .where import caller, explain, fail


class Alias(NamedTuple):
    """How a tensor looks into another: base, the view ops from it, and the base's Value when this was derived.

    An empty path is a tensor apart: the storage of `base` with a history of its own, as `detach()` gives. None is one
    for views that were made under no_grad, which may not be written where gradients are recorded.
    """

    base: Any
    path: tuple[tuple[Op, dict], ...] | None
    bound: Value | None


new_alias = tuple.__new__  # new_alias(Alias, (...)) is Alias(...) without the frame of its __new__


def cell_of(tensor) -> Cell:
    """The version cell of a tensor's storage, made at the first save or the first view."""
    if tensor.cell is None:
        tensor.cell = Cell()
    return tensor.cell


def writes_of(tensor) -> int:
    """Number of writes into the storage since it has a cell, also through `x.data`."""
    if tensor.cell is None:
        return 0
    cell = tensor.cell.storage or tensor.cell
    return cell.version + cell.unseen


def share_storage(a, b) -> bool:
    """True if both are known to look into one storage."""
    return a.cell is not None and b.cell is not None and (a.cell.storage or a.cell) is (b.cell.storage or b.cell)


def untracked(tensor):
    """`tensor`, a detached one, with a version of its own: writes through it do not concern the tape (`x.data`)."""
    cell = tensor.cell = Cell(tensor.cell.storage or tensor.cell)
    if tensor.alias is not None and tensor.alias.path:
        tensor.alias.base.cell = cell
    return tensor


def is_untracked(tensor) -> bool:
    """True if the tape does not see writes through `tensor`, which `x.data` gave."""
    return tensor.cell is not None and tensor.cell.storage is not None


def outside_of(tensor) -> Outside:
    """Who else uses a tensor's storage."""
    cell = cell_of(tensor).storage or tensor.cell
    if cell.outside is None:
        cell.outside = Outside()
    return cell.outside


def before_write(cell: Cell | None) -> None:
    """The storage of this cell will be written: steps in flight that read it end first."""
    if cell is not None:
        outside = (cell.storage or cell).outside
        if outside is not None and outside.order is not None:
            outside.order.before_write(outside)


def lend(tensor) -> np.ndarray:
    """The array of a tensor for another library, which may write into it at any time. In a callback of a job, which
    cannot wait for steps that read it, it is read-only."""
    outside = outside_of(tensor)
    if outside.order is not None:
        if outside.order.in_callback():
            return read_only(tensor.array)
        outside.order.before_write(outside)
        if not outside.lent:
            touch()  # from now on, jobs that read it take a copy for each step
    outside.lent = True
    return tensor.array


def read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def bump(tensor, where: Where | None) -> None:
    """The storage was written. Without a cell nobody saved or viewed it, and there is nothing to tell."""
    if tensor.cell is not None:
        tensor.cell.version += 1
        tensor.cell.where = where
        if tensor.cell.storage is not None:
            tensor.cell.storage.unseen += 1


def root_of(tensor) -> tuple:
    """The tensor that has the history of this one, and the path of views from it."""
    alias = tensor.alias
    return (tensor, ()) if alias is None or not alias.path else (alias.base, alias.path)


def make_view(mode, result, source, op: Op, attrs: dict) -> None:
    """`result` looks into what `source` looks into, one step further; outside the tape (`detach`) with a history of its
    own."""
    if len(op.inputs) > 1:  # made by a write (`overwritten`), which takes the Value alone
        return
    root, path = root_of(source)
    result.cell = source.cell if source.cell is not None else cell_of(source)
    if op is not detach:
        path = (*path, (op, attrs))
        if root.needs and not mode.grad:
            root = mode.apart(root, True)
    elif path:
        root = mode.apart(root, False)
    else:
        return mode.set_apart(result, root)
    result.alias = new_alias(Alias, (root, path, root.value))


def base_of(alias: Alias):
    """The tensor that a path begins at. After `base.t_()` it is what `base` was before."""
    base = alias.base
    return base.alias.base if base.alias is not None and base.alias.path else base


def refresh(tensor):
    """A view whose base was rebound takes its Value again from the base."""
    alias = tensor.alias
    if alias is None:
        return tensor
    base = base_of(alias)
    if base is not alias.base:
        tensor.alias = alias = new_alias(Alias, (base, alias.path, alias.bound))
    if not alias.path:
        MODE.get().follow(tensor)
        return tensor
    if base.alias is not None:
        refresh(base)
    if base.value is not alias.bound:
        mode = MODE.get()
        with using(mode.but(grad=True)):
            fresh = derive(base, alias.path)
        mode.renew(tensor, fresh)
        tensor.alias = new_alias(Alias, (base, alias.path, base.value))
    return tensor


def phantom(tensor) -> np.ndarray:
    """An array of the strides that this tensor has or will have, without its numbers (a symbolic one has none)."""
    if tensor.array is not None:
        return tensor.array
    if tensor.alias is None:
        array = np.empty(1, tensor.spec.np)
        strides = np.cumprod([array.itemsize, *[max(n, 1) for n in tensor.spec.shape[:0:-1]]])[::-1]
        return np.lib.stride_tricks.as_strided(array, tensor.spec.shape, strides[len(strides) - tensor.spec.ndim :],
                                               writeable=False)
    array = phantom(base_of(tensor.alias))
    for op, attrs in tensor.alias.path or ():
        array = array if op.checks else op.kernel(array, **attrs)  # what checks numbers gives them as they are
    return array


def is_contiguous(tensor) -> bool:
    """Are the elements in C order without gaps?"""
    return tensor.alias is None or phantom(tensor).flags.c_contiguous


def refuse_outdated_view(view) -> NoReturn:
    fail(GradError, "a view made under no_grad is used, and its base was written where gradients are recorded",
         "make the view outside no_grad, or detach() it", base=view)


def repeated_axes(tensor) -> list[int]:
    """The axes along which all elements lie in one place (`expand`)."""
    array = phantom(tensor) if tensor.alias is not None else tensor.array
    if array is None or not array.size or 0 not in array.strides:
        return []
    return [d for d, (n, stride) in enumerate(zip(array.shape, array.strides)) if n > 1 and not stride]


def carry(tensor, before: Value | None) -> None:
    """`retain_grad` is about what a tensor is now: after the other hooks, and with it when it is rebound."""
    number = RETAIN + id(tensor.retains)
    if before is not None:
        hooks_at(before.node, before.index).pop(number, None)
    if tensor.value is not None:
        hooks_at(tensor.value.node, tensor.value.index)[number] = tensor.retains


def write(target, new, *, unread: bool = False):
    """Make `target`, perhaps a view, hold `new` (broadcast and cast to it): the storage is written, the base
    rebound.

    unread: `new` was computed without the target. If the target is on the tape it stays there, with the gradient 0.
    """
    mode, handle = MODE.get(), target
    target = mode.own(target)
    root, path = root_of(target)
    guard(mode, handle, target)
    if repeated_axes(target) or target.array is not None and not target.array.flags.writeable:
        fail(ShapeError, "a write into a tensor that repeats or only lends its elements (expand, or a read-only array)",
             "clone() it first", target=handle)
    if not hasattr(new, "spec"):
        new = new.item() if isinstance(new, np.generic) else new
        number = new.__class__ in NUMBERS
        new = full(shape=target.spec.shape, value=new, dtype=target.dtype) if number else mode.tensor_of(new)
        if new.dtype.rank > target.dtype.rank:
            fail(DTypeError, f"{new.dtype.name} numbers are written into a tensor of {target.dtype.name}, which cannot "
                 "hold them", f"x = x.to({new.dtype}) first", target=handle)
    if new.dtype is not target.dtype:
        new = cast(new, dtype=target.dtype)
    if new.spec.shape != target.spec.shape:
        lead = len(new.shape) - len(target.shape)
        if lead > 0 and set(new.shape[:lead]) == {1}:  # numpy and PyTorch drop leading axes of size 1
            new = new.reshape(new.shape[lead:])
        new = expand(new, shape=target.spec.shape) if new.spec.shape != target.spec.shape else new
    new = mode.own(new)
    if mode.grad and root.alias is not None and root.alias.path is None and (new.needs or root.alias.base.needs):
        fail(GradError, "a view made under no_grad is written where gradients are recorded: none can pass through it",
             "make the view outside no_grad, or detach() it", target=handle)
    if mode.grad and not path and root.needs and (unread or not new.needs):
        new = apply(overwritten, contiguous(new), root)
    mode.write(target, root, path, new)
    if path:
        refresh(target)
    return handle


def guard(mode, handle, target) -> None:
    for t in (target, root := root_of(target)[0]) if mode.grad else ():
        if t.needs and (mode.leaf(t.value) is not None or not root.needs):  # the last: a view of a view made a leaf
            fail(GradError, "a leaf that requires grad is written in place: backward could not find its old numbers",
                 "do it under `with flow.no_grad():`, or on a clone()", leaf=handle if t is target else t)


def in_place(op: Op, target, *others, **attrs):
    """target = op(target, *others). Where nothing is recorded the kernel writes straight into the storage."""
    mode, inputs = MODE.get(), (
        target, *[x if x.__class__ in NUMBERS or hasattr(x, "spec") else MODE.get().tensor_of(x) for x in others]
    )
    wanted = sum([1 << i for i, x in enumerate(inputs) if hasattr(x, "spec") and mode.own(x).needs]) if mode.grad else 0
    dtype, specs, _ = infer(op, inputs, attrs)
    if dtype is not None:
        if dtype.rank > target.dtype.rank:
            fail(DTypeError, f"{op.name}_: the result is {dtype.name}, which {target.dtype.name} cannot hold",
                 f"x = x.{op.name}(...) makes a new tensor; or convert first: x = x.to({dtype})", target=target)
        return store(target, op(*inputs, **attrs))
    if specs[0].shape != target.shape:
        raise explain(
            ShapeError(
                f"{op.name}_: the result has shape {specs[0].shape}, the tensor written has {target.spec.shape}",
                hint="a write in place cannot make a tensor larger: use the form without the underscore",
            ), op, inputs)
    shares = [x is target or hasattr(x, "spec") and x.cell is not None and share_storage(x, target) for x in inputs]
    alias = target.alias
    if (not mode.writes_at_once() or wanted or any(shares[1:]) or specs[0] is not target.spec
            or not target.array.flags.writeable
            or alias is not None and (alias.base.alias is not None or 0 in target.array.strides)):
        # a rule that asks for the old numbers gets a copy of them
        kept = op.saves[wanted & op.differentiable] if wanted else ()
        return write(target, op(*[clone(x) if i in kept and shares[i] else x for i, x in enumerate(inputs)], **attrs))
    guard(mode, target, target)
    before_write(target.cell)
    try:
        with silent():  # inf and NaN are results, also where warnings are errors
            op.kernel(*[x.array if hasattr(x, "spec") else x for x in inputs], **attrs, out=target.array)
    except OverflowError:
        raise does_not_fit(op, inputs) from None
    except TypeError:
        refuse_symbolic(inputs)
        raise
    bump(target, caller(2))
    return target


def overwrite(function, target, *args, **options):
    """target = function(target, ...). Where backward may ask for the old numbers, the function gets a copy of them."""
    mode = MODE.get()
    return store(target, function(clone(target) if mode.grad and mode.own(target).needs else target, *args, **options))


def store(target, new):
    """target = new, the result of an in-place method: of the target's shape, and of a kind of number that it can
    hold."""
    if new.dtype.rank > target.dtype.rank:
        fail(DTypeError, f"an in-place method gives {new.dtype.name}, which {target.dtype.name} cannot hold",
             f"the form without the underscore; or convert first: x = x.to({new.dtype})", target=target)
    if new.shape != target.shape:
        fail(ShapeError, f"an in-place method gives the shape {tuple(new.shape)}, the tensor has {tuple(target.shape)}",
             "a write in place cannot make a tensor larger: use the form without the underscore", target=target)
    return write(target, new)


def contiguous(tensor):
    """The tensor itself if it is contiguous, else a copy that is."""
    return tensor if is_contiguous(tensor) else clone(tensor)
