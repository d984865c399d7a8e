"""Call NumPy from a plan with little overhead: on small arrays a kernel takes no longer than a few lines of Python.

Plans run with NumPy's warnings off, so if a kernel is a ufunc that suppresses them, the ufunc itself is called.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

from ...core.ir import Node, Value
from ...core.kernels import select_for
from ...core.op import Op

BY_NAME = {np.maximum, np.minimum}  # ufuncs that are slower with a positional `out`


def bare(kernel: Callable) -> Callable:
    """Return the ufunc that a kernel calls with NumPy's warnings off; any other kernel unchanged."""
    ufunc = getattr(getattr(kernel, "func", None), "ufunc", None)
    return kernel if ufunc is None else getattr(np, ufunc)


def bind(op: Op, kernel: Callable, args: Sequence, places: Sequence[np.ndarray]) -> functools.partial:
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
