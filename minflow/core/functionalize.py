"""Functionalization: views and in-place writes by rebinding Values.

A view knows its base and the path of view ops from it. A write through a view computes a new Value of the base by one
op (`view_write`) and rebinds the base; other views derive their Values again at their next use. In a trace this gives
plain SSA; eager mode also writes the storage and bumps its version. Read next: `ops/shape.py`, `eager.py`, `trace.py`.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from .backend import Array, backend_of, namespace, on_device, on_host
from .base.errors import DeviceError, DTypeError, GradError, ShapeError
from .context import current_context
from .dispatch import apply, overflow_error, refuse_symbolic
from .host import HostArray, python_number
from .host.float_warnings import silent
from .infer import GLOBAL, infer
from .ir import NUMBERS, RETAIN, ExternalUsers, Value, VersionCounter, Where, hooks_at
from .kernels import launch
from .mode import MODE, bump_mutations, using
from .op import Op
from .ops.global_tensors import boxed_like, on_each_rank
from .ops.shape import apply_path, cast, clone, detach, expand, filled, overwritten
from .source_location import caller, explain, fail
from .spec import Spec
from .symbolic_shapes import RELATIONS, decide_structure, plain_structure


class Alias(NamedTuple):
    """The relation of a view to its base. bound: the Value of the base from which the view's Value was derived.

    If the path is empty, the tensor shares the storage of `base` but has a separate history, like a result of
    `detach()`. None means the same for views made under no_grad, which must not be written while recording gradients.
    `COPIED` if the view has its own copy of the elements (`Tensor._copied`).
    """

    base: Any
    path: tuple[tuple[Op, dict], ...] | None
    bound: Value | None


COPIED: Any = object()  # in place of a Value
new_alias = tuple.__new__  # new_alias(Alias, (...)) is Alias(...) without the frame of its __new__


def version_counter_of(tensor) -> VersionCounter:
    """The version counter of a tensor's storage, made at the first save or the first view."""
    if tensor._version_counter is None:
        tensor._version_counter = VersionCounter()
    return tensor._version_counter


def save(x) -> tuple | None:
    """The saved form of a tensor, (array, version counter, version now); None for a number."""
    if x.__class__ in NUMBERS:
        return None
    counter = x._version_counter or version_counter_of(x)
    return x.array, counter, counter.version


def writes_of(tensor) -> int:
    """Number of writes to the storage since its counter was made, including those through `x.data`."""
    if tensor._version_counter is None:
        return 0
    counter = tensor._version_counter.storage or tensor._version_counter
    return counter.version + counter.unseen


def share_storage(a, b) -> bool:
    """True if a and b are known to share a storage."""
    first, second = a._version_counter, b._version_counter
    return first is not None and second is not None and (first.storage or first) is (second.storage or second)


def with_own_version(tensor):
    """Give a detached tensor a version of its own and return it: the tape does not see writes through it (`x.data`)."""
    counter = tensor._version_counter = VersionCounter(tensor._version_counter.storage or tensor._version_counter)
    if tensor._alias is not None and tensor._alias.path:
        tensor._alias.base._version_counter = counter
    return tensor


def is_untracked(tensor) -> bool:
    """True if the tape does not see writes through `tensor` (`x.data`)."""
    return tensor._version_counter is not None and tensor._version_counter.storage is not None


def external_users_of(tensor) -> ExternalUsers:
    """The `ExternalUsers` of a tensor's storage."""
    counter = version_counter_of(tensor).storage or tensor._version_counter
    if counter.external_users is None:
        counter.external_users = ExternalUsers()
    return counter.external_users


def before_write(counter: VersionCounter | None) -> None:
    """Call before a write to this storage: wait for the steps in flight that read it."""
    if counter is not None:
        users = (counter.storage or counter).external_users
        if users is not None and users.order is not None:
            users.order.before_write(users)


def is_writable(tensor) -> bool:
    """False if the array of a concrete tensor must not be written."""
    return backend_of(tensor.spec.device).is_writable(tensor.array)


def lend(tensor) -> Array:
    """The array of a tensor, for another library, which may write to it at any time.

    In a callback of a job, which cannot wait for the steps that read the storage, the array is read-only.
    """
    users = external_users_of(tensor)
    if users.order is not None:
        if users.order.in_callback():
            return read_only(tensor.array) if on_host(tensor.array) else on_device(tensor.array, tensor.device)
        users.order.before_write(users)
        if not users.lent:
            bump_mutations()  # from now on, jobs that read it take a copy for each step
    users.lent = True
    return tensor.array


def read_only(array: HostArray) -> HostArray:
    view = array.view()
    view.flags.writeable = False
    return view


def bump_version(tensor, where: Where | None) -> None:
    """Count a write to the storage. A storage without a counter has neither views nor saved copies, so nothing depends
    on its version.
    """
    if tensor._version_counter is not None:
        tensor._version_counter.version += 1
        tensor._version_counter.where = where
        if tensor._version_counter.storage is not None:
            tensor._version_counter.storage.unseen += 1


def root_of(tensor) -> tuple:
    """(the tensor that owns the history of this one, the view path from it)."""
    alias = tensor._alias
    return (tensor, ()) if alias is None or not alias.path else (alias.base, alias.path)


def make_view(mode, result, source, op: Op, attrs: dict) -> None:
    """Make `result` a view of the base of `source`: append `op` to the path, or for `detach` separate the history."""
    if len(op.inputs) > 1:  # made by a write (`overwritten`), which uses only the Value
        return
    root, path = root_of(source)
    result._version_counter = (
        source._version_counter if source._version_counter is not None else version_counter_of(source)
    )
    if op is not detach:
        path = (*path, (op, attrs))
        if root._needs and not mode.grad:
            root = mode.separate(root, True)
    elif path:
        root = mode.separate(root, False)
    else:
        return mode.make_separate(result, root)
    result._alias = new_alias(Alias, (root, path, root._value))
    if source._copied is not None:
        follow_writes(result)


def follow_writes(view) -> None:
    """Let each use of a view with its own copy of elements look for writes to its base, after which it is outdated."""
    view._copied = writes_of(view), view._alias.base._value
    view._alias = view._alias._replace(bound=COPIED)


def base_of(alias: Alias):
    """The tensor where the path begins. After `base.t_()`, which makes `base` a view, that is the base of this view."""
    base = alias.base
    return base._alias.base if base._alias is not None and base._alias.path else base


def refresh(tensor):
    """Derive the Value of a view again if its base was rebound, and the elements of a copy if its base was written;
    return the tensor.
    """
    alias = tensor._alias
    if alias is None:
        return tensor
    base, path, bound = alias
    if path and base._value is bound and base._alias is None:  # the most frequent case: nothing has changed
        return tensor
    base = base_of(alias)
    if base is not alias.base:
        tensor._alias = alias = new_alias(Alias, (base, alias.path, alias.bound))
    if not alias.path:
        MODE.get().refresh_separate(tensor)
        return tensor
    if base._alias is not None:
        refresh(base)
    copied = tensor._copied
    if base._value is not alias.bound and (copied is None or copied != (writes_of(tensor), base._value)):
        mode = MODE.get()
        with using(mode.replace(grad=True)):
            fresh = apply_path(base, alias.path)
        mode.set_derived_value(tensor, fresh)
        tensor._alias = new_alias(Alias, (base, alias.path, base._value))
        if tensor._copied is not None:
            tensor.array = fresh.array
            follow_writes(tensor)
    return tensor


def view_path(tensor) -> tuple[Any, tuple]:
    """The origin of a tensor's strides: an array, or (shape, NumPy dtype) of one to come, and (op, attrs) of views."""
    if tensor.array is not None and tensor.spec.placement is None:
        return tensor.array, ()
    if tensor._alias is None:
        return (tensor.spec.shape, tensor.spec.np), ()
    storage, path = view_path(base_of(tensor._alias))
    return storage, (*path, *(tensor._alias.path or ()))


def strided_array(storage: Any, path: tuple) -> Array:
    """An array with the strides of a `view_path`, and arbitrary elements if it is yet to come."""
    if storage.__class__ is tuple:
        (shape, dtype), xp = storage, namespace()
        one = read_only(xp.empty(1, dtype))
        sizes = [one.itemsize, *[max(n, 1) for n in shape[:0:-1]]]
        strides = [*itertools.accumulate(sizes, operator.mul)][::-1]
        storage = xp.lib.stride_tricks.as_strided(one, shape, strides[len(strides) - len(shape) :])
    for op, attrs in path:
        storage = storage if op.checks else launch(op, (storage,), attrs)  # those that check return it unchanged
    return storage


def stride_probe(tensor) -> Array:
    """An array with the strides of this tensor but arbitrary elements; for a symbolic tensor, those it will have; for a
    global one, those of the whole, so that all ranks decide alike whether a view exists.
    """
    if tensor.array is not None and tensor.spec.placement is None:
        return tensor.array
    return strided_array(*plain_structure(view_path(tensor)))


def is_contiguous(tensor) -> bool:
    """True if the elements are in C order without gaps."""
    if tensor._alias is None:
        return True
    if tensor.array is not None and tensor.spec.placement is None:
        return tensor.array.flags.c_contiguous
    return decide_structure("contiguous", view_path(tensor), ())


RELATIONS["contiguous"] = lambda path, _: bool(strided_array(*path).flags.c_contiguous)


def refuse_outdated_view(view) -> NoReturn:
    what = "a view made under no_grad is used, and its base was written where gradients are recorded"
    fail(GradError, what, "make the view outside no_grad, or detach() it", base=view)


def repeated_axes(tensor) -> list[int]:
    """The axes of stride 0, along which all elements share one address (`expand`)."""
    array = stride_probe(tensor) if tensor._alias is not None else tensor.array
    if array is None or not array.size or 0 not in array.strides:
        return []
    return [d for d, (n, stride) in enumerate(zip(array.shape, array.strides)) if n > 1 and not stride]


def move_retain_hook(tensor, before: Value | None) -> None:
    """Move the hook of `retain_grad` to the current Value of a tensor that was rebound; it runs after other hooks."""
    number = RETAIN + id(tensor._retains)
    if before is not None:
        hooks_at(before.node, before.index).pop(number, None)
    if tensor._value is not None:
        hooks_at(tensor._value.node, tensor._value.index)[number] = tensor._retains


def write_into(target, new, *, target_unused: bool = False):
    """Write `new`, broadcast and cast, into `target`, which may be a view: write the storage and rebind the base.

    target_unused: True if `new` was computed without the target. A target on the tape stays there, with gradient 0.
    """
    mode, handle = MODE.get(), target
    target = mode.resolve(target)
    root, path = root_of(target)
    check_inplace(mode, handle, target)
    if repeated_axes(target) or (target.array is not None and not is_writable(target)):
        what = "an in-place write to a tensor whose elements are repeated or read-only (expand, or a read-only array)"
        fail(ShapeError, what, "clone() it first", target=handle)
    if not hasattr(new, "spec"):
        new = python_number(new)
        number = new.__class__ in NUMBERS
        new = filled(target.spec, new) if number else mode.tensor_of(new)
        if target.spec.placement is not None and not number:
            new = on_each_rank(new, target.spec.placement)
        if new.dtype.rank > target.dtype.rank:
            what = f"{new.dtype.name} elements are written into a tensor of {target.dtype.name}, which cannot hold them"
            fail(DTypeError, what, f"x = x.to({new.dtype}) first", target=handle)
    if new.spec.device is not target.spec.device:
        new = new.to(target.spec.device)
    if new.dtype is not target.dtype:
        new = cast(new, dtype=target.dtype)
    if new.spec.shape != target.spec.shape:
        lead = len(new.shape) - len(target.shape)
        if lead > 0 and set(new.shape[:lead]) == {1}:  # numpy and PyTorch drop leading axes of size 1
            new = new.reshape(new.shape[lead:])
        new = expand(new, shape=target.spec.shape) if new.spec.shape != target.spec.shape else new
    if target.spec.placement is not None:
        if new.spec.placement is None and new.spec.ndim:
            what = "a local tensor is written into a global one"
            hint = "x.to_global(placement, sbp) of the new elements first"
            fail(DeviceError, what, hint, target=handle, new=new)
        new = boxed_like(new, target.spec, current_context().rank)
    elif new.spec.placement is not None:
        hint = "x.item() of one element, or x.to_global(sbp=flow.sbp.broadcast).to_local()"
        fail(DeviceError, "a global tensor is written into a local one", hint, target=handle, new=new)
    new = mode.resolve(new)
    if mode.grad and root._alias is not None and root._alias.path is None and (new._needs or root._alias.base._needs):
        what = "a view made under no_grad is written where gradients are recorded: none can pass through it"
        fail(GradError, what, "make the view outside no_grad, or detach() it", target=handle)
    if mode.grad and not path and root._needs and (target_unused or not new._needs):
        new = apply(overwritten, contiguous(new), root)
    mode.write(target, root, path, new)
    if path:
        refresh(target)
    return handle


def check_inplace(mode, handle, target) -> None:
    """Raise GradError for an in-place write to a leaf that requires grad. handle: the tensor that the user named."""
    root = root_of(target)[0]
    for t in (target, root) if mode.grad else ():
        if t._needs and (mode.leaf(t._value) is not None or not root._needs):  # the last: a view of a view made a leaf
            what = "a leaf that requires grad is written in place: backward could not find its old values"
            hint = "do it under `with flow.no_grad():`, or on a clone()"
            fail(GradError, what, hint, leaf=handle if t is target else t)


def apply_inplace(op: Op, target, *others, **attrs):
    """target = op(target, *others). If nothing is recorded, the kernel writes directly into the storage."""
    mode, inputs, wanted = MODE.get(), (target, *others), 0
    for x in others:
        if x.__class__ not in NUMBERS and not hasattr(x, "spec"):
            inputs = tuple([x if x.__class__ in NUMBERS or hasattr(x, "spec") else mode.tensor_of(x) for x in inputs])
            break
    if mode.grad:
        wanted = sum([1 << i for i, x in enumerate(inputs) if hasattr(x, "spec") and mode.resolve(x)._needs])
    dtype, specs, _ = infer(op, inputs, attrs)
    if dtype is GLOBAL:
        return write_result(target, op(*kept_for_gradient(op, inputs, wanted, target), **attrs))
    if dtype is not None:
        if dtype.rank > target.dtype.rank:
            what = f"{op.name}_: the result is {dtype.name}, which {target.dtype.name} cannot hold"
            hint = f"x = x.{op.name}(...) makes a new tensor; or convert first: x = x.to({dtype})"
            fail(DTypeError, what, hint, target=target)
        return write_result(target, op(*inputs, **attrs))
    if specs[0] is not target.spec:
        refuse_result(op, inputs, specs[0], target)
    alias = target._alias
    if (
        not mode.writes_directly()
        or wanted
        or any([x.__class__ not in NUMBERS and shares(x, target) for x in inputs[1:]])
        or not is_writable(target)
        or (alias is not None and (alias.base._alias is not None or 0 in target.array.strides))
    ):
        return write_into(target, op(*kept_for_gradient(op, inputs, wanted, target), **attrs))
    check_inplace(mode, target, target)
    before_write(target._version_counter)
    try:
        with silent():  # inf and NaN are valid results, even if the program turns warnings into errors
            arrays = [x.array if hasattr(x, "spec") else x for x in inputs]
            launch(op, arrays, attrs, target.spec.as_tuple, target.array)
    except OverflowError:
        raise overflow_error(op, inputs) from None
    except TypeError:
        refuse_symbolic(inputs)
        raise
    bump_version(target, caller(2))
    return target


def shares(x, target) -> bool:
    """True if a write to the target changes the elements of x."""
    return x is target or (hasattr(x, "spec") and x._version_counter is not None and share_storage(x, target))


def kept_for_gradient(op: Op, inputs: Sequence, wanted: int, target) -> list:
    """The inputs of an op, with copies of those that a gradient needs as they are before a write to the target."""
    kept = op.saves[wanted & op.differentiable] if wanted else ()
    return [clone(x) if i in kept and shares(x, target) else x for i, x in enumerate(inputs)]


def refuse_result(op: Op, inputs, result: Spec, target) -> None:
    """Raise an error if the result of an in-place op has another shape than its target, or is on another device."""
    if result.shape != target.spec.shape:
        error = ShapeError(
            f"{op.name}_: the result has shape {result.shape}, the tensor written has {target.spec.shape}",
            hint="an in-place write cannot change the shape: use the form without the underscore",
        )
        raise explain(error, op, inputs)
    if result.device is not target.spec.device:
        error = DeviceError(
            f"{op.name}_: the result is on {result.device}, the tensor written is on {target.spec.device}",
            hint=f'x = x.to("{result.device}") first',
        )
        raise explain(error, op, inputs)


def call_inplace(function, target, *args, **options):
    """target = function(target, ...). The function gets a copy if backward may need the old elements."""
    mode = MODE.get()
    return write_result(
        target, function(clone(target) if mode.grad and mode.resolve(target)._needs else target, *args, **options)
    )


def write_result(target, new):
    """target = new, the result of an in-place method: `new` must have the target's shape, and a dtype whose kind the
    target can hold.
    """
    if new.dtype.rank > target.dtype.rank:
        what = f"an in-place method gives {new.dtype.name}, which {target.dtype.name} cannot hold"
        hint = f"the form without the underscore; or convert first: x = x.to({new.dtype})"
        fail(DTypeError, what, hint, target=target)
    if new.shape != target.shape:
        what = f"an in-place method gives the shape {tuple(new.shape)}, the tensor has {tuple(target.shape)}"
        hint = "an in-place write cannot change the shape: use the form without the underscore"
        fail(ShapeError, what, hint, target=target)
    return write_into(target, new)


def contiguous(tensor):
    """The tensor itself if it is contiguous, else a contiguous copy."""
    return tensor if is_contiguous(tensor) else clone(tensor)
