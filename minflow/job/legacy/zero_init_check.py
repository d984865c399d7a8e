"""Check for zero-initialized layers, as OneFlow's dense is by default: a single one learns, two in sequence do not.

`layers.py` calls it for each such layer while a train job is built. Read next: `../build.py`.
"""

from __future__ import annotations

from typing import Any

from ...core.ir import Value
from ...core.source_location import warn
from ...core.tensor import Tensor


def check_zero_kernel(build: Any, name: str, weight: Tensor, inputs: Tensor) -> None:
    """Warn, once per job, if a layer reads the output of another layer with a kernel of zeros.

    The gradient of each of the two is multiplied by the weights or the output of the other, which are 0: after relu
    only the last bias ever learns, and otherwise all units of the first layer stay equal. A kernel that another job has
    trained, or that was loaded, is no longer 0. name, weight, inputs: name, weight and inputs of the layer.
    """
    variable = build.session.variables[f"{name}-weight"]
    if not build.training or build.replica or build.zero_warned or not weight._needs or variable.tensor.array.any():
        return
    before = read_by(inputs) if build.zeros else ()
    first = next((other for value, other in build.zeros if value in before), None)
    build.zeros.append((weight._value, name))
    if first is not None:
        build.zero_warned = True
        what = (
            f"job {build.job.name}: the weights of the layers {first!r} and {name!r}, one behind the other, all start "
            f"at 0, so the units of {first!r} stay equal to each other, and with relu at 0: it learns nothing"
        )
        hint = (
            "kernel_initializer=flow.truncated_normal(0.1) for both; flow.layers.dense starts at 0 unless another "
            "initializer is passed"
        )
        warn(what, hint)


def read_by(x: Tensor) -> set[Value]:
    """All values that a symbolic tensor was computed from."""
    seen: set[Value] = set()
    stack = [x._value]
    while stack:
        value = stack.pop()
        if value.__class__ is Value and value not in seen:
            seen.add(value)
            stack += value.node.inputs
    return seen
