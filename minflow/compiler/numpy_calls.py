"""How a plan calls NumPy, with little around it: of small arrays a kernel takes no longer than a few lines of Python.

Plans run where NumPy's warnings are off: of a kernel that is a ufunc without them, the ufunc is called.
Read next: `plan.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.ir import Node, Value
from ..core.op import Op

BY_NAME = {np.maximum, np.minimum}  # ufuncs that do not like to be told by position where to write


def kernels_of(op: Op, machine: bool, lone: bool) -> tuple[Any, Callable]:
    """What runs an op: of the machine, or None; and of NumPy. machine: is it to be used?  lone: is there one call, of a
    few numbers? Then one of NumPy's takes less time than to copy them.
    """
    steps = op.steps if machine else None
    if steps is not None and lone and steps.once is not None:
        return None, steps.once
    kernel = op.kernel if steps is None else steps.at_once
    ufunc = getattr(getattr(kernel, "func", None), "ufunc", None)
    return steps, kernel if ufunc is None else getattr(np, ufunc)


def call_of(op: Op, kernel: Callable, args: Sequence, places: Sequence[np.ndarray]) -> functools.partial:
    """The kernel with what it reads and where it writes."""
    if op.fast_path and places[0].ndim and places[0].dtype.kind == "f":
        with np.errstate(all="ignore"):  # numpy would make arrays of the numbers at each call: half of its time
            args = [
                np.asarray(x, places[0].dtype)
                if x.__class__ is float or (x.__class__ is int and abs(x) < 1 << 53)
                else x
                for x in args
            ]
    if isinstance(kernel, np.ufunc) and kernel not in BY_NAME:
        return functools.partial(kernel, *args, *places)  # which takes it less time than by name
    return functools.partial(kernel, *args, out=places if op.many else places[0])


def direct(node: Node, call: functools.partial, inputs: Sequence[np.ndarray], out: np.ndarray) -> Callable | None:
    """A plan's only call as a function of its inputs' arrays, with the result in a new one: to copy them to and from
    their places would take as long. None where it does not take each input once, side by side in their order.
    """
    kernel, by_name, names = call.func, call.keywords, [*map(id, inputs)]
    args = call.args if by_name else call.args[:-1]
    taken = [i for i, x in enumerate(args) if id(x) in names]
    if [id(args[i]) for i in taken] != names or (taken and taken[-1] - taken[0] >= len(names)):
        return None
    specs = [x.spec if x.__class__ is Value else x.__class__ for x in node.inputs]
    own = node.op.specialize and len(specs) == len(names) and node.op.specialize(*specs, **node.attrs)
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


def straight(plan: Any) -> tuple[list, list] | None:
    """Where the inputs and the results of a plan are; None if some are elsewhere at each run, or it writes states."""
    if plan.slots or plan.reads or plan.written:
        return None
    return [place for _, place in plan.inputs], [array for array, _, _ in plan.outs]


def run_straight(plan: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What `Plan.run` does, of a plan that is `straight`."""
    calls, plan.node_of = plan.units
    plan.running = left = iter(calls)
    plan.runs += 1
    if plan.direct is not None:
        next(left)
        return plan.direct(arrays)
    places, results = plan.straight
    for place, array in zip(places, arrays):
        place[...] = array
    for call in left:
        call()
    return [results[0].copy()] if len(results) == 1 else [array.copy() for array in results]
