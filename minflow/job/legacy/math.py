"""`flow.math`: legacy mathematical functions, for Blobs and eager tensors.

Arguments have the legacy order (`name` last); comparisons return int8 (OneFlow had no bool), reductions of integers
keep their dtype, argmax and top_k return int32 along the last axis. Functions without an op of their own are composed
here. Segments and sums over lists: `segments.py`. Read next: `arrays.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...core import functions as F
from ...core.functions.arguments import as_operand, ensure_tensor, in_float32, normalize_axes, normalize_axis, to
from ...core.messages.suggestions import missing_names
from ...core.op import Op
from ...core.ops import elementwise as e, reduce as r
from ...core.spec import int8, int32
from .op_name import described, folded, public, takes_name
from .segments import (
    add_n as add_n,
    broadcast_to_compatible_with as broadcast_to_compatible_with,
    fused_scale_tril as fused_scale_tril,
    fused_scale_tril_softmax_dropout as fused_scale_tril_softmax_dropout,
    fused_scale_tril_softmax_mask_scale as fused_scale_tril_softmax_mask_scale,
    in_top_k as in_top_k,
    polyval as polyval,
    reduced_shape_elem_cnt as reduced_shape_elem_cnt,
    tril as tril,
    unsorted_batch_segment_sum as unsorted_batch_segment_sum,
    unsorted_segment_sum as unsorted_segment_sum,
    unsorted_segment_sum_like as unsorted_segment_sum_like,
)

if TYPE_CHECKING:
    from ...core.spec import DType
    from ...core.tensor import Tensor


def unary_function(name: str, op: Op | Callable) -> Callable:
    """A legacy function of one tensor: an op that also takes `name`."""

    def function(x):
        return op(ensure_tensor(x))

    return takes_name(described(function, name, op.__doc__))


def binary_function(name: str, op: Op | Callable, doc: str = "") -> Callable:
    """A legacy function of two tensors or numbers, broadcast against each other."""

    def function(x, y):
        return op(as_operand(x), as_operand(y))

    return takes_name(described(function, name, doc or op.__doc__))


def comparison(name: str, op: Op, symbol: str) -> Callable:
    def function(x, y):
        return to(op(as_operand(x), as_operand(y)), int8)

    return takes_name(described(function, name, f"`int8`: 1 where x {symbol} y, else 0; broadcast."))


# ---- elementwise -------------------------------------------------------------------------------------------------

abs = unary_function("abs", F.abs)
acos = unary_function("acos", F.acos)
acosh = unary_function("acosh", F.acosh)
asin = unary_function("asin", F.asin)
asinh = unary_function("asinh", F.asinh)
atan = unary_function("atan", F.atan)
atanh = unary_function("atanh", F.atanh)
ceil = unary_function("ceil", F.ceil)
cos = unary_function("cos", F.cos)
cosh = unary_function("cosh", F.cosh)
erf = unary_function("erf", F.erf)
erfc = unary_function("erfc", F.erfc)
exp = unary_function("exp", F.exp)
expm1 = unary_function("expm1", F.expm1)
floor = unary_function("floor", F.floor)
lgamma = unary_function("lgamma", F.lgamma)
log = unary_function("log", F.log)
log1p = unary_function("log1p", F.log1p)
negative = unary_function("negative", F.neg)
reciprocal = unary_function("reciprocal", F.reciprocal)
relu = unary_function("relu", F.relu)
rint = unary_function("rint", F.round)
round = unary_function("round", F.round)
rsqrt = unary_function("rsqrt", F.rsqrt)
sigmoid = unary_function("sigmoid", F.sigmoid)
sigmoid_v2 = unary_function("sigmoid_v2", F.sigmoid)
sign = unary_function("sign", F.sign)
sin = unary_function("sin", F.sin)
sinh = unary_function("sinh", F.sinh)
softplus = unary_function("softplus", e.softplus)
sqrt = unary_function("sqrt", F.sqrt)
square = unary_function("square", F.square)
tan = unary_function("tan", F.tan)
tanh = unary_function("tanh", F.tanh)
tanh_v2 = unary_function("tanh_v2", F.tanh)

add = binary_function("add", F.add, "x + y")
subtract = binary_function("subtract", F.sub, "x - y")
multiply = binary_function("multiply", F.mul, "x * y")
divide = binary_function("divide", F.div, "x / y; integers are promoted to floats, and division by 0 gives inf or NaN.")
mod = binary_function("mod", F.remainder, "x - floor(x / y) * y: the remainder, with the sign of y.")
floordiv = binary_function("floordiv", F.floor_divide, "floor(x / y)")
pow = binary_function("pow", F.pow, "x to the power y")
maximum = binary_function("maximum", F.maximum)
minimum = binary_function("minimum", F.minimum)
atan2 = binary_function(
    "atan2",
    F.atan2,
    "The angle of the point with height x and width y, in radians from -pi to pi; atan(x / y) where y > 0.",
)

equal = comparison("equal", F.eq, "==")
not_equal = comparison("not_equal", F.ne, "!=")
less = comparison("less", F.lt, "<")
less_equal = comparison("less_equal", F.le, "<=")
greater = comparison("greater", F.gt, ">")
greater_equal = comparison("greater_equal", F.ge, ">=")
logical_and = comparison("logical_and", F.logical_and, "!= 0 and 0 !=")


@folded
def squared_difference(x: Tensor, y: Tensor) -> Tensor:
    """(x - y) ** 2."""
    return F.square(F.sub(x, y))


@folded
def reciprocal_no_nan(x: Tensor) -> Tensor:
    """1 / x; where x is 0, the value and the gradient are 0."""
    zero = F.eq(x, 0)
    return e.where(zero, 0.0, F.reciprocal(e.where(zero, 1, x)))


@folded
def xdivy(x: Tensor, y: Tensor) -> Tensor:
    """x / y; 0 where x is 0, for any y."""
    x, y = ensure_tensor(x), ensure_tensor(y)
    zero = F.eq(x, 0)
    return e.where(zero, 0.0, F.div(x, e.where(zero, 1, y)))


@folded
def xlogy(x: Tensor, y: Tensor) -> Tensor:
    """x * log(y); 0 where x is 0, for any y."""
    x, y = ensure_tensor(x), ensure_tensor(y)
    zero = F.eq(x, 0)
    return e.where(zero, 0.0, F.mul(x, F.log(e.where(zero, 1, y))))


@folded
def log_sigmoid(x: Tensor) -> Tensor:
    """log(1 / (1 + exp(-x))) = -softplus(-x)."""
    return -e.softplus(-x)


@folded
@in_float32
def gelu(x: Tensor) -> Tensor:
    """x / 2 * (1 + erf(x / sqrt(2))), as OneFlow's kernels computed it, although its documentation shows the tanh
    form.
    """
    return x * (F.erf(x * math.sqrt(0.5)) + 1.0) * 0.5


@folded
def gelu_grad(x: Tensor, dy: Tensor) -> Tensor:
    """dy times the derivative of gelu at x."""
    density = F.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
    return dy * ((F.erf(x * math.sqrt(0.5)) + 1.0) * 0.5 + x * density)


@folded
def sigmoid_grad(y: Tensor, dy: Tensor) -> Tensor:
    """dy times the derivative of the sigmoid at value y: dy * y * (1 - y)."""
    return dy * (y * (1 - y))


@takes_name
def clip_by_value(values: Tensor, min_value: float | None = None, max_value: float | None = None) -> Tensor:
    """Clip values to min_value and max_value; one of them may be omitted."""
    return F.clamp(values, min_value, max_value)


# ---- over axes ---------------------------------------------------------------------------------------------------


def named_axes(axis: Any, x: Tensor) -> tuple[int, ...]:
    """The axes to reduce: all for None, none for an empty list."""
    if isinstance(axis, Sequence) and not axis:
        return ()
    axes = normalize_axes(axis, x)
    return tuple(range(x.spec.ndim)) if axes is None else axes


def reduction(name: str, compute: Callable, doc: str) -> Callable:
    """A legacy reduction `compute(x, axis=axes, keepdims=keepdims)`; returns x itself if there are no axes."""

    def function(x, axis=None, keepdims: bool = False):
        x = ensure_tensor(x)
        axes = named_axes(axis, x)
        out = compute(x, axis=axes, keepdims=keepdims) if axes or not isinstance(axis, Sequence) else x
        return at_least_one_axis(out) if x.spec.ndim else out

    doc = f"{doc} axis: an int, several, or None for all, which gives shape (1,); an empty list returns x."
    return takes_name(with_input_aliases(described(function, name, doc)))


def at_least_one_axis(x: Tensor) -> Any:
    """Give a 0-d result shape (1,), because OneFlow had no 0-d tensors."""
    return x if x.spec.ndim else F.reshape(x, (1,))


def with_input_aliases(function: Callable) -> Callable:
    """Accept the keywords input_tensor and input_blob for x, which some of these functions had."""

    @functools.wraps(function)
    def either(*args, **options):
        for other in ("input_tensor", "input_blob"):
            if other in options:
                options["x"] = options.pop(other)
        return function(*args, **options)

    return either


def in_dtype(op: Op, dtype: DType | None = None) -> Callable:
    """Cast the result of a reduction to a dtype, by default that of its input."""
    return lambda x, **options: to(op(x, **options), dtype or x.dtype)


def modern(function: Callable, **given: Any) -> Callable:
    """A modern reduction, which calls the axes dim and keepdims keepdim."""
    return lambda x, axis, keepdims: function(x, dim=axis, keepdim=keepdims, **given)


reduce_sum = reduction("reduce_sum", in_dtype(r.sum), "The sum.")
reduce_mean = reduction("reduce_mean", r.mean, "The mean.")
reduce_prod = reduction("reduce_prod", in_dtype(r.prod), "The product.")
reduce_max = reduction("reduce_max", r.amax, "The largest.")
reduce_min = reduction("reduce_min", r.amin, "The smallest.")
STAGES = "in OneFlow, in two stages: on each device, then over devices."
two_stage_reduce_max = reduction("two_stage_reduce_max", r.amax, f"The maximum; {STAGES}")
two_stage_reduce_min = reduction("two_stage_reduce_min", r.amin, f"The minimum; {STAGES}")
reduce_variance = reduction("reduce_variance", modern(F.var, unbiased=False), "The mean squared distance to the mean.")
reduce_std = reduction("reduce_std", modern(F.std, unbiased=False), "The square root of reduce_variance.")
reduce_euclidean_norm = reduction(
    "reduce_euclidean_norm", modern(F.norm, p=2), "The square root of the sum of squares."
)
reduce_logsumexp = reduction("reduce_logsumexp", modern(F.logsumexp), "log(sum(exp(x))), without overflow.")
reduce_any = reduction("reduce_any", in_dtype(r.any, int8), "`int8`: 1 if any element is not 0, else 0.")
reduce_all = reduction("reduce_all", in_dtype(r.all, int8), "`int8`: 1 if no element is 0, else 0.")


# ---- positions along an axis -------------------------------------------------------------------------------------


@takes_name
def argmax(input: Tensor, axis: int = -1) -> Tensor:
    """`int32`: index of the first maximum along `axis`, by default the last axis."""
    return to(r.argmax(input, axis=normalize_axis(axis, input.spec.ndim, input), keepdims=False), int32)


@folded
def top_k(input: Tensor, axis: int = -1, k: int | None = None, sorted: bool = True) -> Tensor:
    """`int32 (..., k)`: indices of the k (by default 1) largest elements along `axis`, largest first; no values.

    An axis that the input does not have is k, of the last axis: OneFlow 0.2 had no argument axis.
    """
    if k is None:
        axis, k = (-1, axis) if axis.__class__ is int and axis >= input.spec.ndim else (axis, 1)
    return to(F.topk(input, k, axis).indices, int32)


@folded
def l2_normalize(input: Tensor, axis: int = -1, epsilon: float = 1e-12) -> Tensor:
    """input / sqrt(max(sum of squares along `axis`, epsilon))."""
    total = r.sum(F.square(input), axis=(normalize_axis(axis, input.spec.ndim, input),), keepdims=True)
    return input / F.sqrt(F.clamp(total, min=epsilon))


__dir__ = public(globals())
__getattr__ = missing_names("flow.math", globals())
