"""Activations that are primitives: those that mobile networks run after every convolution.

The others are composites in `nn/functional/activation.py`; relu is in `elementwise.py`.
"""

from __future__ import annotations

from ..host.float_warnings import silent
from ..kernels import kernel
from ..op import define
from .examples import case, floats, strided, unary
from .rules import broadcast, write_out

# A primitive for speed: mobile networks run it after each convolution.
relu6 = define(
    "relu6(x)",
    broadcast("relu6", "x", refuse_bool="x.int() first"),
    lambda g, x_or_out: relu6_grad(g, x_or_out),
    elementwise="same",
    scalar=lambda b, x: b.min(b.max(x, 0), 6),
    examples=[*unary(), floats(4, 5, low=2.0, high=10.0)],
    doc="min(max(x, 0), 6); the derivative at 0 and at 6 is 0.",
)
kernel(relu6, lambda xp, x, out=None: xp.clip(x, 0, 6, out=out))

relu6_grad = define(
    "relu6_grad(x, y)",
    broadcast("relu6_grad", "x", "y"),
    dict(x=lambda g, y: relu6_grad(g, y)),
    elementwise="same",
    scalar=lambda b, x, y: b.select(b.or_(b.le(y, 0), b.ge(y, 6)), 0, x),
    linear=("x",),
    examples=[
        case(floats(3, 4), floats(3, 4, high=8.0)),
        case(floats(()), floats(())),
        case(strided(4, 5), strided(4, 5, high=8.0)),
    ],
    doc="0 where y, the input or output of relu6, is <= 0 or >= 6, else x, also if it is NaN.",
    slow_on_numpy=True,
)


@kernel(relu6_grad)
def _(xp, x, y, out=None):
    flat = xp.less_equal(y, 0)
    flat |= xp.greater_equal(y, 6)
    return xp.multiply(x, ~flat, out=out)


# A primitive, because maximum(x, x * slope) would share the gradient at 0, where they tie.
leaky_relu = define(
    "leaky_relu(x, slope)",
    broadcast("leaky_relu", "x", "slope", refuse_bool="x.float() first"),
    dict(x=lambda g, x, slope: leaky_relu_grad(g, x, slope)),
    elementwise="same",
    scalar=lambda b, x, slope: b.select(b.gt(x, 0), x, b.mul(x, slope)),
    examples=[
        case(floats(3, 4), 0.01),
        case(floats(()), -0.5),
        case(floats(0, 3), 1.5),
        case(strided(4, 5), 0.0),
        case(floats(5, dtype="float32"), 0.2),
    ],
    doc="x if x > 0, else x * slope; the derivative at 0 is `slope`.",
)

leaky_relu_grad = define(
    "leaky_relu_grad(grad, x, slope)",
    broadcast("leaky_relu_grad", "grad", "x", "slope"),
    dict(grad=lambda g, x, slope: leaky_relu_grad(g, x, slope)),
    elementwise="same",
    scalar=lambda b, grad, x, slope: b.select(b.gt(x, 0), grad, b.mul(grad, slope)),
    linear=("grad",),
    examples=[
        case(floats(3, 4), floats(3, 4), 0.01),
        case(floats(()), floats(()), 0.5),
        case(strided(4, 5), strided(4, 5), -0.5),
    ],
    doc="grad if x > 0, else grad * slope.",
)


@kernel(leaky_relu)
def _(xp, x, slope, out=None):
    return leak(xp, x, x, slope, out)


@kernel(leaky_relu_grad)
def _(xp, grad, x, slope, out=None):
    return leak(xp, grad, x, slope, out)


def leak(xp, values, x, slope, out):
    with silent():
        return write_out(xp, xp.where(xp.greater(x, 0), values, xp.multiply(values, slope)), out)
