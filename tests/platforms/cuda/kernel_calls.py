"""Calls of the kernels of the platform "cupy": the examples of ops and `ragged_cases.py`, in each float dtype."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import minflow as flow
from minflow.core.dispatch import apply
from minflow.core.kernels import KERNELS
from minflow.core.op import OPS, Op
from minflow.core.ops import update, update_adaptive, update_moments  # noqa: F401  (define the ops of optimizers)
from minflow.core.ops.examples import Case, Maker, cases, floats
from minflow.core.spec import Device
from minflow.platforms.cupy import kernels  # noqa: F401  (registers them)
from minflow.platforms.cupy.device_code import FLOATS
from minflow.platforms.cupy.kernels.elementwise import LoopKernel
from tests.core.test_ops_on_device import tensors
from tests.platforms.cuda.ragged_cases import RAGGED

PLATFORM = "cupy"
OURS = {op: entry.call for (op, platform), entry in KERNELS.items() if platform == PLATFORM}
KERNEL_OPS = [op for op in OPS.values() if op in OURS and not isinstance(OURS[op], LoopKernel)]  # else generated


class Call(NamedTuple):
    """A call of an op."""

    op: Op
    arrays: list
    attrs: dict

    def __str__(self):
        types = sorted({x.dtype.name for x in self.arrays if isinstance(x, np.ndarray)})
        return f"{[getattr(x, 'shape', x) for x in self.arrays]} {' '.join(types)} {self.attrs}"

    def run(self, device: str) -> list[np.ndarray]:
        inputs = tensors(self.op, self.arrays, Device(device), needs=False)
        attrs = self.attrs | ({"device": Device(device)} if "device" in self.op.attrs else {})
        results = apply(self.op, *inputs, **attrs)
        for before, x in zip(self.arrays, inputs):
            unchanged = not isinstance(x, flow.Tensor) or x.cpu().array.tobytes() == before.tobytes()
            assert unchanged, "an input was written"
        return [t.cpu().array for t in (results if self.op.many else [results])]

    def in_float64(self) -> "Call":
        return self._replace(arrays=[in_float64(self.op, x) for x in self.arrays])


def calls(op: Op) -> Iterator[Call]:
    for example in [*cases(op), *ragged(op)]:
        for dtype in sorted(FLOATS):
            yield Call(op, in_dtype(op, example, dtype).arrays(), example.attrs)


def ragged(op) -> list[Case]:
    """The calls of `ragged_cases.py`; by default of elementwise ops, equal shapes and broadcasting."""
    if op.name in RAGGED or not op.elementwise:
        return RAGGED[op.name]
    attrs = cases(op)[0].attrs
    makers = [x if isinstance(x, Maker) else floats() for x in cases(op)[0].inputs]
    shapes = [(1000,)] * len(makers), [(3, 7, 11)[i % 2 :] for i in range(len(makers))]
    return [Case(tuple(m(shape=s) for m, s in zip(makers, one)), attrs) for one in shapes]


def changes_dtype(op: Op, x) -> bool:
    """True for floats, except 0-d ones of optimizers, such as learning rates."""
    return x.shape != () or not op.__module__.startswith(update.__name__)


def in_dtype(op: Op, case: Case, dtype: str) -> Case:
    """The call with floats of this dtype."""
    changed = [isinstance(x, Maker) and x.floating and changes_dtype(op, x) for x in case.inputs]
    return Case(tuple(x(dtype=dtype) if change else x for x, change in zip(case.inputs, changed)), case.attrs)


def in_float64(op: Op, x):
    floating = isinstance(x, np.ndarray) and x.dtype.name in FLOATS
    return x.astype("float64") if floating and changes_dtype(op, x) else x
