"""Registration of compiled kernels: what a builder offers to eager code and to plans.

A builder returns the tasks of an op for arrays that stay in place, or None if it does not support them
(`runtime/tasks.py`). Modules in `kernels/` register their builders at the end. Read next: `runtime/eager.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core.kernels import Kernel, register, select
from ...core.op import Op
from .config import COMPILED, PLATFORMS
from .runtime.eager import run_compiled
from .runtime.tasks import Builder, CheckedTasks, prepared

SMALL = 1 << 12  # elements; below, a call of NumPy costs less
MEDIUM = 1 << 16  # the same for kernels that NumPy runs in one pass, or in two over two arrays
SUMS = 32.0  # tolerance of kernels that add in another order
COPY_SETUP = 1 << 16  # bytes; copying a larger input to a fixed place costs more than a call of its own
BATCH_SETUP = 1 << 20  # the same for kernels that compute more than they read


class Lowering:
    """Lowers an op for a plan: a call gives its prepared tasks, or None if the builder does not support the arrays.

    steady: inputs of up to this many bytes that are new at each call are copied to a fixed place, which costs less than
    leaving a merged call.  lone: False if NumPy is faster for a graph of one call on small arrays.
    """

    def __init__(self, op: Op, builder: Builder, steady: int, lone: bool, pays: Callable[..., bool] | None):
        self.op, self.builder, self.steady, self.lone, self.pays = op, builder, steady, lone, pays

    def __call__(self, arrays: Sequence, outs: Sequence[np.ndarray], **attrs: Any) -> Any:
        if self.pays is not None and not self.pays(*arrays):
            return None
        tasks = prepared(self.builder, arrays, outs, **attrs)
        if tasks and any([task.refused is not None for task in tasks.steps or ()]):
            call = select(self.op, PLATFORMS).call
            return CheckedTasks(tasks, partial(call, *arrays, **attrs, out=outs if len(outs) > 1 else outs[0]))
        return tasks


def lowers(
    op: Op,
    builder: Builder,
    *,
    eager: bool | Callable[..., bool] = True,
    steady: int = BATCH_SETUP,
    lone: bool = True,
    same_rule: bool = False,
    tolerance: float = SUMS,
    accepts: Callable[..., bool] | None = None,
) -> None:
    """Register a builder as the compiled kernel of an op.

    eager: True if eager code uses it, too; or a function of the arrays that returns True if it is faster than NumPy.
    accepts: see `Kernel`.
    same_rule: True if plans follow that function, because the bits of the two kernels differ.
    """
    pays = eager if callable(eager) else None
    call = partial(run_if, pays, op, builder) if pays else partial(run_compiled, op, builder) if eager else None
    lower = Lowering(op, builder, steady, lone, pays if same_rule else None)
    register(op, COMPILED, Kernel(call, lower=lower, tolerance=tolerance, declines=True, accepts=accepts))


def run_if(pays: Callable[..., bool], op: Op, builder: Builder, *arrays: Any, out: Any = None, **attrs: Any) -> Any:
    """`run_compiled` for arrays for which it pays; NotImplemented for others."""
    return run_compiled(op, builder, *arrays, out=out, **attrs) if pays(*arrays) else NotImplemented
