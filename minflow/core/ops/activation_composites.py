"""Activations that are composite ops. Their public functions, which check arguments, are in
`../functions/activation.py` and `../../nn/functional/piecewise_activation.py`.

At a kink, the gradient is the one that PyTorch returns. Half dtypes are computed in float32, with one rounding at the
end, except in prelu and rrelu. Read next: `activation.py`, the primitives.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..base.errors import DTypeError, ShapeError
from ..op import Op, define
from ..spec import Spec, default_dtype
from .compare import ge, gt, le, logical_or
from .elementwise import abs as absolute, erf, expm1, sigmoid, softplus, tanh, where
from .examples import Maker, case, floats, ints, strided
from .rules import need_axis, need_floating, need_spec
from .shape import in_float32

SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


def floating_rule(name: str) -> Callable:
    """The rule of an activation of floats, which ignores its attrs."""
    return lambda x, **attrs: need_floating(name, x)


def inputs(edge: float = 2.0) -> list[Maker]:
    """Inputs beyond `edge`: plain, 0-d, empty, strided, and in smaller dtypes."""
    low, high = -edge - 0.5, edge + 0.5
    return [
        floats(3, 4, low=low, high=high),
        floats((), low=low, high=high),
        floats(0, 3),
        strided(4, 5, low=low, high=high),
        floats(5, dtype="float32"),
        floats(5, dtype="float16"),
    ]


def activation(
    signature: str, decompose: Callable, doc: str, examples: list | None = None, slow_on_numpy: bool = False
) -> Op:
    """An activation of floats."""
    return define(
        signature,
        floating_rule(signature.partition("(")[0]),
        decompose=in_float32(decompose),
        module=__name__,
        examples=examples or inputs(),
        slow_on_numpy=slow_on_numpy,
        doc=doc,
    )


# ---- smooth ------------------------------------------------------------------------------------------------------


def gelu_parts(x, approximate):
    if approximate == "tanh":
        return x * (tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1.0) * 0.5
    return x * (erf(x * math.sqrt(0.5)) + 1.0) * 0.5


gelu = activation(
    "gelu(x; approximate)",
    gelu_parts,
    'x * Phi(x); approximate: "none" or "tanh". Hendrycks & Gimpel 2016, section 2.',
    [case(x, approximate=form) for x in inputs() for form in ("none", "tanh")],
    slow_on_numpy=True,
)
quick_gelu = activation(
    "quick_gelu(x)",
    lambda x: x * sigmoid(x * 1.702),
    "x * sigmoid(1.702 * x). Hendrycks & Gimpel 2016, section 2.",
    slow_on_numpy=True,
)
silu = activation("silu(x)", lambda x: x * sigmoid(x), "x * sigmoid(x).", slow_on_numpy=True)
mish = activation(
    "mish(x)", lambda x: x * tanh(softplus(x)), "x * tanh(log(1 + exp(x))). Misra 2019, eq. 1.", slow_on_numpy=True
)


def softsign_spec(x: Spec) -> Spec:
    return x if x.dtype.rank > 1 else x.replace(dtype=default_dtype())


softsign = define(
    "softsign(x)",
    softsign_spec,
    decompose=in_float32(lambda x: x / (absolute(x) + 1)),
    domain="complex",
    examples=[*inputs(), ints(5, low=-3, high=4)],
    slow_on_numpy=True,
    doc="x / (1 + |x|).",
)


# ---- piecewise ---------------------------------------------------------------------------------------------------


def elu_parts(x, alpha, scale, input_scale):
    low = le(x, 0)
    inside = where(low, x, 0.0)  # exp(x) of a large x would have an infinite gradient
    plain = isinstance(input_scale, float) and input_scale == 1
    below = expm1(inside if plain else inside * input_scale) * (alpha * scale)
    return where(low, below, x if scale == 1 else x * scale)


elu = activation(
    "elu(x; alpha, scale, input_scale)",
    elu_parts,
    "scale * x if x > 0, else scale * alpha * (exp(input_scale * x) - 1): elu, selu and celu.",
    [
        *[case(x, alpha=1.0, scale=1.0, input_scale=1.0) for x in inputs()],
        case(floats(3, 4), alpha=SELU_ALPHA, scale=SELU_SCALE, input_scale=1.0),
        case(floats(3, 4), alpha=0.3, scale=1.0, input_scale=1 / 0.3),
    ],
)


def prelu_spec(x: Spec, weight: Spec) -> Spec:
    need_floating("prelu", x)
    channels = x.shape[1] if x.ndim > 1 else 1
    if weight.ndim > 1 or weight.size not in (1, channels) or weight.dtype is not x.dtype:
        raise ShapeError(
            f"prelu: {{weight}} must have one element, or {channels} (axis 1 of {{x}}), and its dtype",
            hint=f"nn.PReLU({channels})",
        )
    return x


def prelu_parts(x, weight):
    return leak(x, weight.reshape(() if weight.spec.size == 1 else (weight.spec.size,) + (1,) * (x.spec.ndim - 2)))


def leak(x, slope):
    above = gt(x, 0)
    return where(above, x, where(above, 0.0, x) * slope)


prelu = define(
    "prelu(x, weight)",
    prelu_spec,
    decompose=prelu_parts,
    examples=[
        *[case(x, floats(1, dtype=x.dtype)) for x in inputs()],
        case(floats(2, 3, 4), floats(3)),
        case(floats(3), floats(())),
    ],
    doc="x if x > 0, else weight * x; weight: one element, or one per channel (axis 1). He et al. 2015, eq. 1.",
)


def rrelu_spec(x: Spec, slope: Spec | type) -> Spec:
    need_floating("rrelu", x)
    if isinstance(slope, Spec):
        need_spec("rrelu", x, slope=slope)
    elif slope is complex:
        raise DTypeError("rrelu: {slope} must be real", hint="slope=0.25")
    return x


rrelu = define(
    "rrelu(x, slope)",
    rrelu_spec,
    decompose=leak,
    number_inputs=["slope"],
    examples=[*[case(x, 0.25) for x in inputs()], case(floats(3, 4), floats(3, 4))],
    doc="x if x > 0, else slope * x, with a slope for each element, or a number. Xu et al. 2015, section 2.4.",
)


def piecewise(x, low: float, high: float, middle, below, above):
    """Select `below` up to low, `above` from high on, else `middle`: at both ends the slope is the outer one."""
    return where(le(x, low), below, where(ge(x, high), above, middle))


def hardswish_parts(x):
    inside = where(logical_or(le(x, -3), ge(x, 3)), 0.0, x)  # avoid the square of a large x; NaN is kept
    return piecewise(x, -3.0, 3.0, inside * (inside + 3) / 6, x * 0.0, x)


hardsigmoid = activation(
    "hardsigmoid(x)",
    lambda x: piecewise(x, -3.0, 3.0, (x + 3) / 6, 0.0, 1.0),
    "min(max(x / 6 + 1 / 2, 0), 1); the slope at the ends is 0.",
    inputs(3.0),
)
hardswish = activation(
    "hardswish(x)", hardswish_parts, "x * hardsigmoid(x). Howard et al. 2019, section 5.2.", inputs(3.0)
)


SELU_LIMIT = -1.7580993408473766  # limit of selu as x goes to -infinity


def saturated(x, kept, p):
    scale = 1 / math.sqrt((SELU_LIMIT**2 * p + 1) * (1 - p))
    return x * (kept * scale) + ((1 - kept) * SELU_LIMIT - SELU_LIMIT * p) * scale


alpha_dropout = define(
    "alpha_dropout(x, kept; p)",
    decompose=saturated,
    domain="complex",
    examples=[
        case(floats(3, 4), floats(3, 4, low=0.0, high=1.0), p=0.5),
        case(strided(2, 3, 4), floats(2, 3, 1, low=0.0, high=1.0), p=0.2),
        case(floats(5, dtype="float16"), floats(5, dtype="float16"), p=0.5),
    ],
    doc="x where kept is 1, the limit of selu where it is 0, mapped to the mean and variance of x. p: chance of a 0.",
)


# ---- gated -------------------------------------------------------------------------------------------------------


def glu_spec(x: Spec, axis: int) -> Spec:
    need_floating("glu", x)
    need_axis("glu", x, axis)
    if x.shape[axis] % 2:
        raise ShapeError(
            f"glu: axis {axis} of {{x}} has size {x.shape[axis]}, which has no halves", hint="an even size"
        )
    return x.replace(shape=(*x.shape[:axis], x.shape[axis] // 2, *x.shape[axis + 1 :]))


def glu_parts(x, axis):
    half = x.shape[axis] // 2
    return x.narrow(axis, 0, half) * sigmoid(x.narrow(axis, half, half))


glu = define(
    "glu(x; axis)",
    glu_spec,
    decompose=in_float32(glu_parts),
    examples=[
        case(floats(3, 4), axis=1),
        case(floats(2, 4, 3), axis=1),
        case(floats(0, 4), axis=1),
        case(strided(4, 5), axis=0),
        case(floats(6, dtype="float32"), axis=0),
        case(floats(6, dtype="float16"), axis=0),
    ],
    doc="a * sigmoid(b) of the two halves of x along an axis. Dauphin et al. 2017, eq. 1.",
)
