"""Converters of norms, softmax and log_softmax. With running statistics, batch norm is a
scale and a shift, made of elementwise ops.
"""

from __future__ import annotations

from ...core.backend import namespace
from ...core.ops.norm import other_axes
from ..builder import converter

EVAL = "the module itself, which is exported in eval mode: flow.onnx.export(model, x, path); or model.eval()"


@converter("batch_norm")
def _(b, node, x, weight, bias):
    """Only for layers with track_running_stats=False, which do not update running statistics."""
    if node in b.updating:
        b.refuse("changes running statistics, as batch norm does in training mode", EVAL)
    spec = node.inputs[0].spec
    wide = b.const([1, -1] + [1] * (spec.ndim - 2))
    axes = b.const(list(other_axes(spec.ndim)))
    mean = b.op("ReduceMean", x, axes, keepdims=1)
    moved = b.op("Sub", x, mean)
    var = b.op("ReduceMean", b.op("Mul", moved, moved), axes, keepdims=1)
    root = b.op("Sqrt", b.op("Add", var, b.const(node.attrs["eps"], spec.dtype)))
    scaled = b.op("Mul", moved, b.op("Div", b.op("Reshape", weight, wide), root))
    y = b.op("Add", scaled, b.op("Reshape", bias, wide))
    return y, *[b.op("Squeeze", s, axes) if b.is_used(node, i) else None for i, s in ((1, mean), (2, var))]


@converter("layer_norm")
def _(b, node, x, weight, bias):
    spec, axes = node.inputs[0].spec, node.attrs["axes"]
    shape = [spec.shape[axis] for axis in axes]
    if not isinstance(weight, str):
        weight = b.const(namespace().ones(shape), spec.dtype)
    given = [x, weight, bias] if isinstance(bias, str) else [x, weight]
    return b.op("LayerNormalization", *given, axis=axes[0], epsilon=node.attrs["eps"])


@converter("group_norm")
def _(b, node, x, weight, bias):
    """Instance norm of the groups; GroupNormalization of opset 18 has one weight per group."""
    spec, groups = node.inputs[0].spec, node.attrs["groups"]
    ones, zeros = (b.const([n] * groups, spec.dtype) for n in (1.0, 0.0))
    rows = b.op("Reshape", x, b.const([0, groups, -1]))
    hat = b.op("InstanceNormalization", rows, ones, zeros, epsilon=node.attrs["eps"])
    y = b.op("Reshape", hat, b.op("Shape", x))
    wide = b.const([1, -1] + [1] * (spec.ndim - 2))
    y = b.op("Mul", y, b.op("Reshape", weight, wide)) if isinstance(weight, str) else y
    return b.op("Add", y, b.op("Reshape", bias, wide)) if isinstance(bias, str) else y


@converter("batch_norm_inference")
def _(b, node, x, mean, var, weight, bias):
    dtype, channels = node.out_specs[0].dtype, node.inputs[1].spec.size
    x, mean, var, weight, bias = (
        b.cast(v, dtype, node.inputs[i].spec.dtype) if isinstance(v, str) else b.const([v] * channels, dtype)
        for i, v in enumerate((x, mean, var, weight, bias))
    )
    return b.op("BatchNormalization", x, weight, bias, mean, var, epsilon=node.attrs["eps"])


def along(b, node, x, operator: str) -> str:
    """Softmax or LogSoftmax; a 0-d tensor is treated as one class."""
    if node.inputs[0].spec.ndim:
        return b.op(operator, x, axis=node.attrs["dim"])
    one = b.const([1])
    return b.op("Reshape", b.op(operator, b.op("Reshape", x, one), axis=0), b.const([], "int64"))


@converter("softmax")
def _(b, node, x):
    return along(b, node, x, "Softmax")


@converter("log_softmax")
def _(b, node, x):
    return along(b, node, x, "LogSoftmax")
