"""Elementwise arithmetic and mathematical functions. Comparisons and logic are in `compare.py`.

Inputs are broadcast and promoted before an op runs, so gradient rules need not handle either. Kernels that may divide
by zero or overflow do so silently: inf and NaN are results, and NumPy's warnings would point to minflow's lines.
Read next: `compare.py`, `reduce.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from ..backend import backend_with, on_host
from ..base.errors import DTypeError
from ..deferred import defer
from ..host.float_warnings import silent
from ..kernels import kernel
from ..op import define
from ..scalar import elementary
from ..spec import Spec, promote, spec_of
from .checks import check_divisor, refuse
from .compare import eq, ge, gt, le, logical_and, logical_or, lt
from .complex import real
from .examples import binary, bools, case, floats, ints, positive, strided, unary
from .rules import broadcast, broadcast_shape, constant, same_spec, via_float32, write_out
from .shape import cast, zeros_of


def ufunc_kernel(op, ufunc: str) -> None:
    """A kernel of one ufunc that may overflow or leave its domain."""

    def run(xp, *arrays, out=None):
        with silent():
            return getattr(xp, ufunc)(*arrays, out=out)

    run.ufunc = ufunc  # for plans, which suppress warnings themselves
    kernel(op, run)


def division_kernel(op, ufunc: str) -> None:
    """The kernel of a division that keeps integer dtypes; an integer divisor of 0 is refused."""

    @kernel(op)
    def _(xp, a, b, out=None):
        check_divisor(xp, op.name, a, b)
        with silent():
            return getattr(xp, ufunc)(a, b, out=out)


def not_bool(name: str, hint: str = "x.int() or x.float() first"):
    """The shape rule of a unary function that is not defined for bool."""
    return broadcast(name, "x", refuse_bool=hint)


def no_gradient(g):
    """The gradient of a step function."""
    return zeros_of(g.spec)


# ---- arithmetic --------------------------------------------------------------------------------------------------

add = define(
    "add(a, b)",
    broadcast("add", "a", "b"),
    dict(a=lambda g: g, b=lambda g: g),
    elementwise="same",
    scalar=lambda b, x, y: b.add(x, y),
    domain="holomorphic",
    linear=("a, b",),
    examples=binary(),
    doc="a + b; logical or for bools.",
)
kernel(add, ufunc="add")

sub = define(
    "sub(a, b)",
    broadcast("sub", "a", "b", refuse_bool="a ^ b (logical_xor) if they differ, ~b for not"),
    dict(a=lambda g: g, b=lambda g: -g),
    elementwise="same",
    scalar=lambda b, x, y: b.sub(x, y),
    domain="holomorphic",
    linear=("a, b",),
    examples=binary(),
    doc="a - b.",
)
kernel(sub, ufunc="subtract")

mul = define(
    "mul(a, b)",
    broadcast("mul", "a", "b"),
    dict(a=lambda g, b: g * b, b=lambda g, a: g * a),
    elementwise="same",
    scalar=lambda b, x, y: b.mul(x, y),
    domain="holomorphic",
    linear=("a", "b"),
    examples=binary(),
    doc="a * b; logical and for bools.",
)
kernel(mul, ufunc="multiply")

div = define(
    "div(a, b)",
    broadcast("div", "a", "b"),
    dict(a=lambda g, b: g / b, b=lambda g, a, b: -(g * (a / b) / b)),
    elementwise="float",
    scalar=lambda b, x, y: b.div(x, y),
    domain="holomorphic",
    linear=lambda a, b: ("a",) if isinstance(b, type) else (),  # terms divided by 0 would add up to NaN
    examples=binary(low=0.3, high=2.0),
    doc="a / b; integers give the default float dtype.",
)
ufunc_kernel(div, "true_divide")

pow = define(
    "pow(a, b)",
    broadcast("pow", "a", "b", refuse_bool="a.int() first"),
    dict(a=lambda g, a, b: power_base_grad(g, a, b), b=lambda g, a, b, out: g * power_exponent_grad(a, b, out)),
    elementwise="same",
    scalar=lambda b, x, y: b.pow(x, y),
    domain="holomorphic",
    examples=[
        *binary(low=0.3, high=2.0),
        case(floats(3, 4), 2),
        case(floats(3), 3.0),
        case(positive(3), -0.5),
        case(floats(3), 0),
        case(ints(3), 3),
    ],
    doc="a to the power b; for integers b must not be negative.",
)


def power_base_grad(g, a, b):
    """d a**b / da = b * a**(b - 1); 0 if b is 0, also at a = 0."""
    if not hasattr(b, "spec"):
        return no_gradient(g) if b == 0 else g * (2 * a) if b == 2 else g * (b * pow(a, b - 1))
    flat = eq(b, 0)
    return g * where(flat, 0.0, b * pow(where(flat, 1.0, a), b - 1))


def power_exponent_grad(a, b, out):
    """d a**b / db = a**b * log(a); 0 if a is 0 and b >= 0, where a**b is constant."""
    if hasattr(a, "spec"):
        exponent = real(b) if hasattr(b, "spec") and b.spec.dtype.is_complex else b
        return out * log(where(logical_and(eq(a, 0), ge(exponent, 0)), 1.0, a))
    return out * math.log(a) if a > 0 else where(ge(b, 0), 0.0, -out) if a == 0 else out * math.nan


def check_exponent(a, b) -> None:
    """Refuse negative powers of integers."""
    if on_host(b) and not (b.min(initial=0) < 0 if hasattr(b, "dtype") else b < 0):
        return
    values = {name: spec_of(x) if hasattr(x, "dtype") else x for name, x in (("a", a), ("b", b))}

    def error() -> DTypeError:
        return DTypeError("pow: integers cannot be raised to negative integers", values=values, hint="a.float() ** b")

    if not on_host(b):
        defer(("pow", *values.values()), [(b < 0).any()], lambda wrong: error() if wrong else None)
    else:
        refuse(error())


@kernel(pow)
def _(xp, a, b, out=None):
    if b.__class__ is int and b == 2:
        return xp.multiply(a, a, out=out)
    dtypes = [x.dtype.kind if hasattr(x, "dtype") else "i" if x.__class__ is int else "f" for x in (a, b)]
    if not {"f", "c"} & {*dtypes}:
        check_exponent(a, b)
    with silent():
        return xp.power(a, b, out=out)


floor_divide = define(
    "floor_divide(a, b)",
    broadcast("floor_divide", "a", "b", refuse_bool="a.int() first"),
    dict(a=no_gradient, b=no_gradient),
    elementwise="same",
    examples=binary(low=0.3, high=2.0),
    doc="a / b rounded down.",
)
division_kernel(floor_divide, "floor_divide")


def remainder_formula(b, x, y):
    """The remainder of C, moved to the sign of y."""
    rest = b.fmod(x, y)
    moved = b.or_(b.and_(b.lt(rest, 0), b.gt(y, 0)), b.and_(b.gt(rest, 0), b.lt(y, 0)))
    return b.select(moved, b.add(rest, y), rest)


remainder = define(
    "remainder(a, b)",
    broadcast("remainder", "a", "b", refuse_bool="a.int() first"),
    dict(a=lambda g: g, b=lambda g, a, b: -(g * floor_divide(a, b))),
    elementwise="same",
    scalar=remainder_formula,
    examples=[*binary(low=0.3, high=2.0), case(floats(4), -0.7), case(floats(3, 4), positive(4))],
    doc="The remainder of a / b, with the sign of b (Python's %).",
)
division_kernel(remainder, "remainder")

fmod = define(
    "fmod(a, b)",
    broadcast("fmod", "a", "b", refuse_bool="a.int() first"),
    dict(a=lambda g: g, b=lambda g, a, b: -(g * trunc(a / b))),
    elementwise="same",
    scalar=lambda b, x, y: b.fmod(x, y),
    examples=[*binary(low=0.3, high=2.0), case(floats(4), -0.7), case(floats(3, 4), positive(4))],
    doc="The remainder of a / b, with the sign of a (C's fmod).",
)
division_kernel(fmod, "fmod")

# A primitive: trunc(a / b) has derivative 0 too, but at b = 0 the rule of a / b would give 0 * inf.
trunc_divide = define(
    "trunc_divide(a, b)",
    broadcast("trunc_divide", "a", "b"),
    dict(a=no_gradient, b=no_gradient),
    elementwise="float",
    scalar=lambda b, x, y: b.trunc(b.div(x, y)),
    examples=binary(low=0.3, high=2.0),
    doc="a / b rounded towards 0.",
)


@kernel(trunc_divide)
def _(xp, a, b, out=None):
    with silent():
        return xp.trunc(xp.true_divide(a, b), out=out)


def lerp_formula(b, start, end, weight):
    way = b.sub(end, start)
    back = b.sub(end, b.mul(way, b.sub(1, weight)))
    return b.select(b.lt(b.abs(weight), 0.5), b.add(start, b.mul(weight, way)), back)


# A primitive: near b it is computed from b, so that weight 1 gives b exactly, as in PyTorch.
lerp = define(
    "lerp(a, b, weight)",
    broadcast("lerp", "a", "b", "weight"),
    dict(
        a=lambda g, weight: g * (1 - weight),
        b=lambda g, weight: g * weight,
        weight=lambda g, a, b: g * (b - a),
    ),
    elementwise="float",
    scalar=lerp_formula,
    linear=("a, b",),
    examples=[
        case(floats(3, 4), floats(3, 4), floats(3, 4)),
        case(floats(3, 1), floats(4), 0.3),
        case(floats(()), floats(()), 0.75),
        case(strided(4, 5), floats(5), floats(4, 1)),
        case(floats(0, 3), floats(3), 1),
        case(floats(3, dtype="float32"), floats(3, dtype="float32"), 0.5),
    ],
    doc="Interpolate from a (weight 0) to b (weight 1): a + weight * (b - a).",
)


@kernel(lerp)
def _(xp, a, b, weight, out=None):
    with silent():
        way = b - a
        return write_out(xp, xp.where(xp.abs(weight) < 0.5, a + weight * way, b - way * (1 - weight)), out)


mix = define(
    "mix(a, b, keep, take)",
    broadcast("mix", "a", "b", "keep", "take"),
    dict(
        a=lambda g, keep: g * keep,
        b=lambda g, take: g * take,
        keep=lambda g, a: g * a,
        take=lambda g, b: g * b,
    ),
    elementwise="float",
    scalar=lambda b, x, y, keep, take: b.add(b.mul(x, keep), b.mul(y, take)),
    linear=("a, b",),
    examples=[
        case(floats(3, 4), floats(3, 4), floats(3, 4), floats(3, 4)),
        case(floats(3, 1), floats(4), 0.9, 0.1),
        case(floats(0, 3), floats(3), 1, 0),
        case(floats(3, dtype="float32"), floats(3, dtype="float32"), 0.75, 0.5),
    ],
    doc="a * keep + b * take: one step of a running average of b, if the weights add up to 1.",
)


@kernel(mix)
def _(xp, a, b, keep, take, out=None):
    return xp.add(a * keep, b * take, out=out)


atan2 = define(
    "atan2(y, x)",
    broadcast("atan2", "y", "x"),
    dict(y=lambda g, y, x: g * (x * one_over(x * x + y * y)), x=lambda g, y, x: -(g * (y * one_over(x * x + y * y)))),
    elementwise="float",
    scalar=lambda b, y, x: b.atan2(y, x),
    examples=binary(low=0.3, high=2.0),
    doc="The angle of the point (x, y), in radians from -pi to pi; its gradient at (0, 0) is 0.",
)
ufunc_kernel(atan2, "arctan2")


def one_over(x):
    zero = eq(x, 0)
    return where(zero, 0.0, reciprocal(where(zero, 1.0, x)))


maximum = define(
    "maximum(a, b)",
    broadcast("maximum", "a", "b"),
    dict(a=lambda g, a, b: g * tie_factor(a, b, g), b=lambda g, a, b: g * tie_factor(b, a, g)),
    elementwise="same",
    scalar=lambda b, x, y: b.max(x, y),
    examples=binary(),
    doc="The elementwise maximum; NaN wins; ties share the gradient.",
)
kernel(maximum, ufunc="maximum")

minimum = define(
    "minimum(a, b)",
    broadcast("minimum", "a", "b"),
    dict(a=lambda g, a, b: g * tie_factor(b, a, g), b=lambda g, a, b: g * tie_factor(a, b, g)),
    elementwise="same",
    scalar=lambda b, x, y: b.min(x, y),
    examples=binary(),
    doc="The elementwise minimum; NaN wins; ties share the gradient.",
)
kernel(minimum, ufunc="minimum")


def tie_factor(large, small, g):
    """The factor of g: 0 if `large` is the smaller, 1/2 for ties, else 1, also if one is NaN, as in PyTorch."""
    return 1 - (cast(lt(large, small), dtype=g.spec.dtype) + cast(le(large, small), dtype=g.spec.dtype)) * 0.5


clamp = define(
    "clamp(x, min, max)",
    broadcast("clamp", "x", "min", "max", refuse_bool="x.int() first"),
    dict(
        x=lambda g, x, min, max: where(logical_and(ge(x, min), le(x, max)), g, 0),
        min=lambda g, x, min, max: where(clamped_to_min(x, min, max), g, 0),
        max=lambda g, x, min, max: where(logical_or(gt(x, max), lt(max, min)), g, 0),
    ),
    elementwise="same",
    scalar=lambda b, x, low, high: b.min(b.max(x, low), high),
    examples=[
        case(floats(3, 4), -0.5, 0.5),
        case(floats(3, 4), floats(4, low=-1.5, high=-0.2), floats(3, 1, low=0.2, high=1.5)),
        case(strided(4, 5), -1.0, math.inf),
        case(floats(()), 0.5, 1.0),
        case(floats(0, 3), -1, 1),
        case(ints(5), 1, 3),
        case(floats(5, dtype="float32"), -0.5, 0.5),
    ],
    doc="x limited to [min, max]; max if min > max.",
)


def clamped_to_min(x, min, max):
    """True where the result of clamp is min. An infinite max counts as missing: then min is the result if x < min."""
    missing = not hasattr(max, "spec") and max == math.inf
    return lt(x, min) if missing else logical_and(lt(x, min), lt(min, max))


@kernel(clamp)
def _(xp, x, min, max, out=None):
    low = xp.maximum(x, min)  # not into out, which may be max itself
    return xp.minimum(low, max, out=out)


def where_spec(cond, a, b):
    """The shape rule of where."""
    if not isinstance(cond, Spec) or cond.dtype.rank:
        raise DTypeError("where: {cond} must be bool", hint="a comparison, such as x > 0, or {cond}.bool()")
    arrays = {name: s for name, s in (("cond", cond), ("a", a), ("b", b)) if isinstance(s, Spec)}
    dtype = promote(a, b)
    for name in ("a", "b"):
        if name in arrays and arrays[name].dtype is not dtype:
            raise DTypeError(
                f"where: {{{name}}} is {arrays[name].dtype.name}, and the result would be {dtype.name}",
                hint=f"{{{name}}}.to(flow.{dtype.name})",
            )
    return cond.replace(shape=broadcast_shape("where", {name: s.shape for name, s in arrays.items()}), dtype=dtype)


where = define(
    "where(cond, a, b)",
    where_spec,
    dict(a=lambda g, cond: where(cond, g, 0), b=lambda g, cond: where(cond, 0, g)),
    alias_safe=True,
    scalar=lambda b, condition, x, y: b.select(condition, x, y),
    domain="holomorphic",
    number_inputs=("a", "b"),
    sharding="..., ..., ... -> ...",
    linear=("a, b",),
    examples=[
        case(bools(3, 4), floats(3, 4), floats(3, 4)),
        case(bools(4), floats(3, 1), floats(())),
        case(bools(3, 1), strided(3, 4), 0.5),
        case(bools(()), 1.5, floats(3)),
        case(bools(0, 3), floats(3), 0),
        case(bools(4), ints(4), 7),
        case(bools(4), floats(4, dtype="float32"), 7),
    ],
    doc="a where cond is True, else b.",
)


@kernel(where)
def _(xp, cond, a, b, out=None):
    chosen = xp.where(cond, a, b)
    if out is None:
        return chosen
    xp.copyto(out, chosen, casting="unsafe")  # two Python numbers give NumPy's float64
    return out


# ---- unary functions -------------------------------------------------------------------------------------

neg = define(
    "neg(x)",
    not_bool("neg", "~x for not"),
    lambda g: -g,
    elementwise="same",
    scalar=lambda b, x: b.neg(x),
    domain="holomorphic",
    linear=("x",),
    examples=unary(),
    doc="-x.",
)


@kernel(neg)
def _(xp, x, out=None):
    if out is None or out.flags.c_contiguous:
        return xp.negative(x, out=out)
    xp.copyto(out, xp.negative(x))  # NumPy 2.4 reads wrong addresses if both are strided
    return out


abs = define(
    "abs(x)",
    lambda x: same_spec(x).replace(dtype=x.dtype.to_real()) if isinstance(x, Spec) else same_spec(x),
    lambda g, x: g * (sign(x) if x.spec.floating else complex_sign(x, abs(x))),
    elementwise="same",
    scalar=lambda b, x: b.abs(x),
    domain="complex",
    examples=unary(),
    doc="|x|; the derivative at 0 is 0.",
)
kernel(abs, ufunc="absolute")


def complex_sign(x, size):
    """x / |x| of a complex number; 0 at 0."""
    zero = eq(size, 0)
    return where(zero, 0.0, x / where(zero, 1.0, size))


sign = define(
    "sign(x)",
    same_spec,
    no_gradient,
    elementwise="same",
    scalar=lambda b, x: b.select(b.gt(x, 0), 1, b.select(b.lt(x, 0), -1, 0)),
    examples=unary(),
    doc="-1, 0 or 1; 0 for NaN.",
)


@kernel(sign)
def _(xp, x, out=None):
    if x.dtype.kind == "b":
        return xp.greater(x, 0, out=out)
    return xp.subtract(xp.greater(x, 0), xp.less(x, 0), out=out, dtype=x.dtype)


square = define(
    "square(x)",
    not_bool("square"),
    lambda g, x: g * 2 * x,  # in this order: twice a large float16 would be infinite
    elementwise="same",
    scalar=lambda b, x: b.mul(x, x),
    domain="holomorphic",
    examples=unary(),
    doc="x * x.",
)
ufunc_kernel(square, "square")


def unary_float(
    name: str,
    rule,
    doc: str,
    *,
    ufunc: str = "",
    scalar: Callable | None = None,
    low: float = -2.0,
    high: float = 2.0,
    domain: str = "real",
    slow_on_numpy: bool = False,
    module: str = __name__,
):
    """Define a unary op that converts integers to floats; its kernel is the ufunc, if one is named."""
    op = define(
        f"{name}(x)",
        same_spec,
        rule,
        elementwise="float",
        scalar=scalar or elementary(name),
        domain=domain,
        slow_on_numpy=slow_on_numpy,
        examples=unary(low=low, high=high),
        doc=doc,
        module=module,
    )
    if ufunc:
        ufunc_kernel(op, ufunc)
    return op


holomorphic = functools.partial(unary_float, domain="holomorphic")  # those that are defined for complex numbers too

exp = holomorphic("exp", lambda g, out: g * out, "e to the power x.", ufunc="exp")
exp2 = unary_float("exp2", lambda g, out: g * out * math.log(2), "2 to the power x.", ufunc="exp2")
expm1 = unary_float("expm1", lambda g, out: g * (out + 1), "exp(x) - 1, exact for small x.", ufunc="expm1")
log = holomorphic(
    "log", lambda g, x: g / x, "The natural logarithm; -inf at 0, NaN below.", ufunc="log", low=0.2, high=3.0
)
log1p = unary_float("log1p", lambda g, x: g / (x + 1), "log(1 + x), exact for small x.", ufunc="log1p", low=-0.8)
log10 = holomorphic(
    "log10", lambda g, x: g / (x * math.log(10)), "The logarithm to base 10.", ufunc="log10", low=0.2, high=3.0
)
log2 = holomorphic(
    "log2", lambda g, x: g / (x * math.log(2)), "The logarithm to base 2.", ufunc="log2", low=0.2, high=3.0
)
sqrt = holomorphic("sqrt", lambda g, out: g * 0.5 / out, "The square root.", ufunc="sqrt", low=0.2, high=3.0)
reciprocal = holomorphic(
    "reciprocal",
    lambda g, out: -(g * out * out),
    "1 / x.",
    ufunc="reciprocal",
    scalar=lambda b, x: b.div(1, x),
    low=0.2,
    high=3.0,
)
sin = holomorphic("sin", lambda g, x: g * cos(x), "The sine, x in radians.", ufunc="sin")
cos = holomorphic("cos", lambda g, x: -(g * sin(x)), "The cosine, x in radians.", ufunc="cos")
tan = holomorphic(
    "tan", lambda g, out: g * (out * out + 1), "The tangent, x in radians.", ufunc="tan", low=-1.2, high=1.2
)
asin = unary_float(
    "asin", lambda g, x: g * rsqrt(1 - x * x), "The inverse sine, in radians.", ufunc="arcsin", low=-0.8, high=0.8
)
acos = unary_float(
    "acos", lambda g, x: -(g * rsqrt(1 - x * x)), "The inverse cosine, in radians.", ufunc="arccos", low=-0.8, high=0.8
)
atan = unary_float("atan", lambda g, x: g / (x * x + 1), "The inverse tangent, in radians.", ufunc="arctan")
tanh = holomorphic("tanh", lambda g, out: g * (1 - out * out), "The hyperbolic tangent.", ufunc="tanh")
sinh = holomorphic("sinh", lambda g, x: g * cosh(x), "The hyperbolic sine.", ufunc="sinh")
cosh = holomorphic("cosh", lambda g, x: g * sinh(x), "The hyperbolic cosine.", ufunc="cosh")
asinh = unary_float("asinh", lambda g, x: g * rsqrt(x * x + 1), "The inverse hyperbolic sine.", ufunc="arcsinh")
acosh = unary_float(
    "acosh",
    lambda g, x: g * rsqrt(x * x - 1),
    "The inverse hyperbolic cosine, at least 0.",
    ufunc="arccosh",
    low=1.2,
    high=3.0,
)
atanh = unary_float(
    "atanh", lambda g, x: g / (1 - x * x), "The inverse hyperbolic tangent.", ufunc="arctanh", low=-0.8, high=0.8
)
rsqrt = holomorphic(
    "rsqrt",
    lambda g, out: g * (out * out * out * -0.5),
    "1 / sqrt(x).",
    scalar=lambda b, x: b.div(1, b.sqrt(x)),
    low=0.2,
    high=3.0,
)
sigmoid = unary_float(
    "sigmoid",
    lambda g, out: g * (out * (1 - out)),
    "1 / (1 + exp(-x)).",
    scalar=lambda b, x: b.div(1, b.add(1, b.exp(b.neg(x)))),
)
erf = unary_float(
    "erf",
    lambda g, x: g * (exp(-(x * x)) * (2 / math.sqrt(math.pi))),
    "The error function: 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x.",
    slow_on_numpy=True,
)


@kernel(rsqrt)
def _(xp, x, out=None):
    with silent():
        root = xp.sqrt(x, out=out)
        return xp.true_divide(root.dtype.type(1), root, out=out)


@kernel(sigmoid)
@via_float32
def _(xp, x, out=None):
    with silent():
        t = xp.exp(xp.multiply(x, constant(xp, x.dtype, -1), out=out), out=out)  # not negative(): see neg
        t = xp.add(t, constant(xp, t.dtype, 1), out=out)
        return xp.reciprocal(t, out=out)


# A primitive: max(x, 0) + log1p(exp(-|x|)) has the same value, but two kinks at 0, whose derivatives do not sum to 1/2.
softplus = unary_float(
    "softplus",
    lambda g, x: g * sigmoid(x),
    "log(1 + exp(x)), without overflow.",
    scalar=lambda b, x: b.add(b.max(x, 0), b.log1p(b.exp(b.neg(b.abs(x))))),
)


@kernel(softplus)
@via_float32
def _(xp, x, out=None):
    with silent():
        return xp.add(xp.maximum(x, 0), xp.log1p(xp.exp(-xp.abs(x))), out=out)


@kernel(erf)
def _(xp, x, out=None):
    special = backend_with(xp).special("erf")
    out = xp.empty(x.shape, x.dtype) if out is None else out
    return special.erf(x, out=out, casting="same_kind")


relu = define(
    "relu(x)",
    not_bool("relu"),
    lambda g, out: relu_grad(g, out),
    elementwise="same",
    scalar=lambda b, x: b.max(x, 0),
    examples=unary(),
    doc="max(x, 0); the derivative at 0 is 0.",
    slow_on_numpy=True,
)
kernel(relu, lambda xp, x, out=None: xp.maximum(x, 0, out=out))

# A primitive for speed: networks run it at each step, and a composite would create two more arrays.
relu_grad = define(
    "relu_grad(x, y)",
    broadcast("relu_grad", "x", "y"),
    dict(x=lambda g, y: relu_grad(g, y)),
    elementwise="same",
    scalar=lambda b, x, y: b.select(b.eq(y, 0), 0, x),
    linear=("x",),
    examples=[
        case(floats(3, 4), floats(3, 4, low=0)),
        case(floats(()), floats((), low=0)),
        case(strided(4, 5), strided(4, 5, low=0)),
    ],
    doc="x where y, an output of relu, is not 0 (NaN included), else 0.",
    slow_on_numpy=True,
)
kernel(relu_grad, lambda xp, x, y, out=None: xp.multiply(x, xp.not_equal(y, 0), out=out))


# ---- rounding ----------------------------------------------------------------------------------------------------


def rounding(name: str, ufunc: str, doc: str):
    op = define(
        f"{name}(x)",
        same_spec,
        no_gradient,
        elementwise="same",
        scalar=elementary(name),
        examples=unary(),
        doc=doc,
    )

    @kernel(op)
    def _(xp, x, out=None):
        if x.dtype.kind == "f":
            return getattr(xp, ufunc)(x, out=out)
        if out is None:
            return x.copy()
        xp.copyto(out, x)
        return out

    return op


floor = rounding("floor", "floor", "x rounded down.")
ceil = rounding("ceil", "ceil", "x rounded up.")
round = rounding("round", "rint", "x rounded to the nearest integer, halves to even.")
trunc = rounding("trunc", "trunc", "x rounded towards 0.")
