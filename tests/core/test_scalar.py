"""Formulas of elementwise ops: each computes what the reference kernel does, and builders agree on the operations."""

import math

import numpy as np
import pytest
from scipy import special

import minflow as flow
from minflow.core import scalar
from minflow.core.base.errors import InternalError
from minflow.core.kernels import call_on
from minflow.core.op import OPS
from minflow.core.scalar import OPERATIONS, ScalarBuilder, flops_per_element, is_cheap, operations_of

FORMULAS = [name for name, op in OPS.items() if op.scalar is not None]
NUMPY = {
    **{name: getattr(np, name) for name in "floor ceil trunc sqrt exp exp2 expm1 log log1p log2 log10".split()},
    **{name: getattr(np, name) for name in "sin cos tan sinh cosh tanh hypot fmod copysign nextafter cbrt".split()},
    **{name: getattr(np, name) for name in "isnan isinf isfinite signbit".split()},
    **{f"a{name}": getattr(np, f"arc{name}") for name in "sin cos tan sinh cosh tanh".split()},
    **dict(add=np.add, sub=np.subtract, mul=np.multiply, div=np.divide, neg=np.negative, abs=np.abs, pow=np.power),
    **dict(max=np.maximum, min=np.minimum, round=np.rint, atan2=np.arctan2, select=np.where),
    **dict(eq=np.equal, ne=np.not_equal, lt=np.less, le=np.less_equal, gt=np.greater, ge=np.greater_equal),
    **dict(and_=np.logical_and, or_=np.logical_or, not_=np.logical_not),
    **dict(erf=special.erf, erfc=special.erfc, lgamma=lambda x: np.where(x == -np.inf, np.inf, special.gammaln(x))),
}


class NumpyBuilder(ScalarBuilder):
    def emit(self, operation, *values):
        return NUMPY[operation](*values)


def test_operations_are_known():
    assert set(NUMPY) == OPERATIONS
    with pytest.raises(InternalError, match="no operation 'tan_h'"):
        ScalarBuilder().tan_h(1)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-6, -1e-6, 1e30, -1e30, math.inf, -math.inf, math.nan]
# The formula is not the kernel's: where y, an output of relu, is 0, the kernel gives 0 * x, so NaN for infinite x.
FINITE_ONLY = {"relu_grad", "relu6_grad"}


@pytest.mark.parametrize("name", FORMULAS)
def test_formula_equals_kernel(name):
    """In float64 on ordinary and on special values, in all combinations."""
    op = OPS[name]
    values = np.array([x for x in SPECIAL if name not in FINITE_ONLY or math.isfinite(x)])
    arrays = list(np.meshgrid(*[values] * len(op.inputs))) if op.inputs != ["x"] else [values]
    if name == "where":
        arrays[0] = arrays[0] > 0
    if name == "lerp":  # the kernel multiplies infinite differences too
        arrays = [np.where(np.isfinite(a), a, 2.0) for a in arrays]
    with np.errstate(all="ignore"):
        expected = call_on(op, "reference")(*arrays)
        got = op.scalar(NumpyBuilder(), *arrays)
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-300)


def test_counts():
    assert operations_of(OPS["sigmoid"]) == ("neg", "exp", "add", "div") and flops_per_element(OPS["sigmoid"]) == 4
    assert flops_per_element(OPS["relu_grad"]) == 1, "a condition counts as no operation"
    assert [
        name for name in FORMULAS if is_cheap(OPS[name])
    ] == "add sub mul maximum minimum neg abs square relu".split()


def test_pow_of_a_formula_counts_products():
    listed = scalar.OperationList()
    listed.pow("x", 3)
    listed.pow("x", 0.5)
    assert listed.operations == ["mul", "mul", "pow"]


# Elementwise ops without a formula, and why: no fused loop contains them, and their FLOPs count as one.
WITHOUT = {
    "logical, of any dtype": "logical_and logical_or logical_xor",
    "of integers": "bitwise_and bitwise_or bitwise_xor bitwise_not gcd lcm bitwise_left_shift bitwise_right_shift",
    "checks its elements": "binary_entropy",
    "rounds exact quotients, as Python does": "floor_divide",
    "iterates, or a series that only SciPy has": """logaddexp logaddexp2 xlogy xlog1py erfcx erfinv ndtri log_ndtr entr
        digamma igamma igammac zeta i0 i1 i0e i1e airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_k0
        modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0
        chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
        shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
        shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l
        legendre_polynomial_p""",
}


def test_ops_without_formula_have_a_reason():
    without = {name for name, op in OPS.items() if op.elementwise and op.scalar is None and not op.custom}
    assert without == {name for names in WITHOUT.values() for name in names.split()}


def test_formulas_agree_with_eager_in_float32():
    x = flow.tensor([-3.0, -0.5, 0.0, 0.5, 3.0])
    assert OPS["softplus"].scalar(NumpyBuilder(), x.numpy()) == pytest.approx(flow.nn.functional.softplus(x).numpy())
