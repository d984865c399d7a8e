"""Elementwise and special functions: graphs, gradients, and errors. Values: `../oracle/`."""

import math

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import DTypeError, GradError, OutOfRangeError, ShapeError
from tests.core.refusals import refusals

X, Y = flow.tensor([0.25, 0.5, 0.75]), flow.tensor([0.5, 0.125, 2.0])
ONE = """acos acosh asin asinh atan atanh cosh sinh digamma erfc erfinv exp2 frac i0 lgamma log10 sinc deg2rad rad2deg
logit nan_to_num""".split()
TWO = """atan2 copysign float_power heaviside hypot igamma igammac ldexp nextafter xlogy""".split()


def test_constants():
    assert (flow.pi, flow.e, flow.inf, flow.newaxis) == (math.pi, math.e, math.inf, None) and math.isnan(flow.nan)
    assert X[:, flow.newaxis].shape == (3, 1)


def test_comparisons_in_place_keep_the_dtype():
    x = flow.tensor([1.0, 2.0, 3.0])
    assert x.clone().ge_(2).tolist() == [0.0, 1.0, 1.0] and x.clone().not_equal_(2).tolist() == [1.0, 0.0, 1.0]
    assert x.clone().less_(x).dtype is flow.float32


def test_shifts_and_divmod():
    x = flow.tensor([5, -3])
    assert (x << 2).tolist() == [20, -12] and (x >> 1).tolist() == [2, -2] and (1 << flow.tensor([3])).tolist() == [8]
    assert (64 >> flow.tensor([3])).tolist() == [8] and (np.array([1]) << flow.tensor([3])).tolist() == [8]
    y = x
    y <<= 1
    y >>= 2
    assert y is x and x.tolist() == [2, -2]
    quotient, rest = divmod(flow.tensor([7, -7]), 3)
    assert quotient.tolist() == [2, -3] and rest.tolist() == [1, 2]
    assert [t.tolist() for t in divmod(7, flow.tensor([2.0]))] == [[3.0], [1.0]]


def test_float_decomposition():
    x = flow.tensor([0.0, -3.0, 0.1, math.inf])
    mantissa, exponent = flow.frexp(x)
    assert exponent.dtype is flow.int32 and exponent.tolist() == [0, 2, -3, 0]
    assert flow.ldexp(mantissa, exponent).equal(x)
    assert flow.signbit(flow.tensor([-0.0, 0.0, -1.0])).tolist() == [True, False, True]
    assert flow.nextafter(flow.tensor(1.0), flow.tensor(2.0)).item() == 1 + 2**-23


def test_predicates():
    x = flow.tensor([1.0, math.inf, -math.inf, math.nan])
    assert flow.isposinf(x).tolist() == [False, True, False, False]
    assert flow.isneginf(x).tolist() == [False, False, True, False] and flow.isreal(x).all()
    assert flow.is_nonzero(flow.tensor([2])) is True and flow.is_floating_point(x) and not flow.is_signed(x.byte())
    assert flow.is_same_size(x, x + 1) and not x.is_same_size(x[:2])


def test_polygamma_and_mvlgamma():
    x = flow.tensor([0.5, 2.0], dtype=flow.float64, requires_grad=True)
    assert flow.autograd.gradcheck(lambda x: flow.polygamma(2, x), (x,))
    assert math.isclose(flow.polygamma(1, flow.tensor(1.0, dtype=flow.float64)).item(), math.pi**2 / 6)
    assert flow.polygamma(0, x).equal(flow.digamma(x))
    want = math.log(math.pi) / 2 + math.lgamma(3) + math.lgamma(2.5)
    assert math.isclose(flow.tensor(3.0, dtype=flow.float64).mvlgamma(2).item(), want)


test_refused = refusals([
    (OutOfRangeError, lambda: flow.polygamma(-1, X), "polygamma: n must be at least 0, got -1"),
    (OutOfRangeError, lambda: flow.mvlgamma(X, 0), "mvlgamma: p must be from 1 to 10,000, got 0"),
    (DTypeError, lambda: flow.frac(flow.tensor([1])), "frac: input must be floating, got int64"),
    (DTypeError, lambda: flow.frexp(flow.tensor([1])), "frexp: x must be floating, got int64"),
    (DTypeError, lambda: flow.gcd(X, X), "gcd: bitwise ops are not defined for float32"),
    (DTypeError, lambda: X ^ 2, r"bitwise_xor: bitwise ops are not defined for float32[\s\S]*Try: x \*\* 2 is a power"),
    (DTypeError, lambda: X << 1, "bitwise_left_shift: bitwise ops are not defined for float32"),
    (DTypeError, lambda: flow.heaviside(X, X.double()), "heaviside: input is float32, values are float64"),
    (DTypeError, lambda: flow.positive(X > 0), "positive: not defined for bool"),
    (DTypeError, lambda: flow.nextafter(flow.tensor([1]), 2), "nextafter: a must be floating, got int64"),
    (ShapeError, lambda: flow.hypot(X, flow.ones(2)), "hypot: sizes differ, 3 .axis 0 of a. and 2 .axis 0 of b."),
    (ShapeError, lambda: flow.is_nonzero(X), "3 elements has no single answer"),
    (GradError, lambda: flow.igamma(X.clone().requires_grad_(), Y).sum().backward(), "derivative in the first"),
    (GradError, lambda: flow.special.zeta((X + 1).requires_grad_(), Y).sum().backward(), "zeta: its derivative"),
])  # fmt: skip


@pytest.mark.parametrize("function", [flow.igamma, flow.igammac, flow.xlogy, flow.special.xlog1py, flow.special.zeta])
def test_python_scalar_does_not_widen(function):
    for number in (3, 2.5, True):
        for result in (function(X, number), function(number, X + 1)):
            assert result.array.dtype == "float32" and result.dtype is flow.float32, number


def test_polynomials():
    x = flow.tensor([0.25, -0.5, 2.0], dtype=flow.float64)
    legendre = flow.special.legendre_polynomial_p
    np.testing.assert_allclose(legendre(x, 2).numpy(), (3 * x.numpy() ** 2 - 1) / 2)
    assert legendre(x, -1).tolist() == [0, 0, 0] and legendre(x, 1.9).equal(x)
    assert legendre(x, -0.5).tolist() == [1, 1, 1]
    assert legendre(x, 1001).isnan().all() and legendre(x, 2**62).isnan().all()  # without a loop over that many steps
    np.testing.assert_allclose(flow.special.chebyshev_polynomial_v(x, flow.tensor([0, 1, 2])).numpy(), [1, -2, 11])
