"""Call NumPy from a plan with little overhead: on small arrays a kernel takes no longer than a few lines of Python.

Plans run with NumPy's warnings off, so if a kernel is a ufunc that suppresses them, the ufunc itself is called.
Read next: `plan.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.ir import Node, Value
from ..core.kernels import HOST_PLATFORMS, Selection, select, select_for
from ..core.op import Op

BY_NAME = {np.maximum, np.minimum}  # ufuncs that are slower with a positional `out`


def kernels_of(node: Node, platforms: Sequence[str] | None, lone: bool) -> Selection:
    """Return the kernels of these platforms that run a node in a plan.

    lone: True if the plan is one call on few elements: then NumPy's kernel may take less time than copying them to a
    fixed address.
    """
    selected = select_for(node, platforms)
    if lone and selected.lower is not None and not selected.lower.lone:
        selected = select(node.op, HOST_PLATFORMS)
    ufunc = getattr(getattr(selected.call, "func", None), "ufunc", None)
    return selected if ufunc is None else selected._replace(call=getattr(np, ufunc))


def call_of(op: Op, kernel: Callable, args: Sequence, places: Sequence[np.ndarray]) -> functools.partial:
    """Bind a kernel to its inputs and outputs."""
    if op.fast_path and places[0].ndim and places[0].dtype.kind == "f":
        # otherwise NumPy would convert Python numbers to arrays at each call: half of its time
        with np.errstate(all="ignore"):
            args = [
                np.asarray(x, places[0].dtype)
                if x.__class__ is float or (x.__class__ is int and abs(x) < 1 << 53)
                else x
                for x in args
            ]
    if isinstance(kernel, np.ufunc) and kernel not in BY_NAME:
        return functools.partial(kernel, *args, *places)  # faster than by name
    return functools.partial(kernel, *args, out=places if op.many else places[0])


def direct(
    node: Node, call: functools.partial, inputs: Sequence[np.ndarray], out: np.ndarray, platforms: Sequence[str] | None
) -> Callable | None:
    """Return a plan's only call as a function of its input arrays that returns a new array.

    Copying inputs and output to fixed addresses would take as long as the kernel. None unless the call takes each input
    once, in order.
    """
    kernel, by_name, names = call.func, call.keywords, [*map(id, inputs)]
    args = call.args if by_name else call.args[:-1]
    taken = [i for i, x in enumerate(args) if id(x) in names]
    if [id(args[i]) for i in taken] != names or (taken and taken[-1] - taken[0] >= len(names)):
        return None
    specs = [x.spec if x.__class__ is Value else x.__class__ for x in node.inputs]
    specialize = select_for(node, platforms).specialize
    own = specialize and len(specs) == len(names) and specialize(*specs, **node.attrs)
    if own:
        return lambda arrays: [own(*arrays)]
    first = taken[0] if taken else 0
    before, rest, new, shape, dtype = args[:first], args[first + len(names) :], np.empty, out.shape, out.dtype
    if isinstance(kernel, np.ufunc) and not first and shape and all([getattr(x, "dtype", None) is dtype for x in args]):
        return lambda arrays: [kernel(*arrays, *rest)]  # NumPy's own result is of this shape and dtype
    kernel = functools.partial(kernel, *before, **{name: x for name, x in by_name.items() if name != "out"})

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        kernel(*arrays, *rest, out=(result := new(shape, dtype)))
        return [result]

    return run


def static_io(plan: Any) -> tuple[list, list] | None:
    """Return the fixed inputs and outputs of a plan; None if some move between runs, or if it writes states."""
    if plan.slots or plan.reads or plan.written:
        return None
    return [place for _, place in plan.inputs], [array for array, _, _ in plan.outs]


def run_static(plan: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run a plan that is `static_io`, as `Plan.run` does."""
    calls, plan.node_of = plan.units
    plan.running = left = iter(calls)
    plan.runs += 1
    if plan.direct is not None:
        next(left)
        return plan.direct(arrays)
    places, results = plan.static_io
    for place, array in zip(places, arrays):
        place[...] = array
    for call in left:
        call()
    return [results[0].copy()] if len(results) == 1 else [array.copy() for array in results]
