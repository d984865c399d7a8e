"""Converters of activations that ONNX has with exact parameters; other composites are exported as their decomposition.

Elu, Selu, HardSigmoid and HardSwish are not used: their parameters are float32, also for float64 inputs.
"""

from __future__ import annotations

from ...core.base.dtypes import HALF_DTYPES
from ...core.spec import float32, int64
from ..builder import converter


def in_float32(kind: str):
    """The converter of an op that computes half dtypes in float32."""

    def convert(b, node, x):
        dtype = node.out_specs[0].dtype
        wide = float32 if dtype in HALF_DTYPES else dtype
        y = b.op(kind, x if node.inputs[0].spec.dtype is wide else b.cast(x, wide))
        return y if wide is dtype else b.cast(y, dtype)

    return convert


for op, kind in {"mish": "Mish", "softsign": "Softsign"}.items():
    converter(op)(in_float32(kind))


@converter("prelu")
def _(b, node, x, weight):
    ndim, size = node.inputs[0].spec.ndim, node.inputs[1].spec.size
    shape = [1] * min(ndim, 1) if size == 1 else [-1] + [1] * (ndim - 2)
    return b.op("PRelu", x, b.op("Reshape", weight, b.const(shape, int64)))
