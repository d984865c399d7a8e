"""Composite ops as one fused loop in eager code, against their decompositions in float64."""

import numpy as np
import pytest

import minflow as flow

pytest.importorskip("numba", reason="the kernels are compiled by numba, which is not installed")

from minflow import nn
from minflow.core.kernels import CALLS, observed, runs_decomposed
from minflow.core.op import OPS
from minflow.core.spec import Spec, float32, float64
from minflow.platforms.compiled.config import EAGER_COMPILED, PLATFORMS
from minflow.platforms.compiled.kernels import fused_composites as fused
from minflow.platforms.compiled.lowering import SUMS
from tests.single_tasks import run_builder, same_bits

CASES = [("gelu", {"approximate": "none"}), ("gelu", {"approximate": "tanh"})]
CASES += [(name, {}) for name in fused.NAMES if name != "gelu"]
SHAPES = [(1,), (17,), (3, 5, 7), (33, 129), (64, 512)]


def arrays(shape, seed=0):
    rng = np.random.default_rng((seed, *shape))
    return rng.standard_normal(shape) * 3, rng.standard_normal(shape)


def near(found, exact):
    np.testing.assert_allclose(found, exact, rtol=0, atol=SUMS * np.finfo("f4").eps * abs(exact).max())


def bits(builder, given, like, **attrs):
    return same_bits(lambda: run_builder(builder, given, [like], **attrs))[0]


@pytest.mark.parametrize(("name", "attrs"), CASES)
@pytest.mark.parametrize("shape", SHAPES)
def test_result_and_gradient_against_float64(name, attrs, shape):
    op, (x, grad) = OPS[name], arrays(shape)
    single = [a.astype("f4") for a in (grad, x)]
    exact = [a.astype("f8") for a in single]
    near(bits(lambda *a, **o: fused.tasks(op, *a, **o), single[1:], x, **attrs), CALLS[op](exact[1], **attrs))
    slope = bits(lambda *a, **o: fused.tasks(op.gradient, *a, **o), single, x, **attrs, needs=1)
    near(slope, CALLS[op.gradient](*exact, **attrs, needs=1))


@pytest.mark.parametrize(("name", "attrs"), CASES)
def test_special_values(name, attrs):
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, 100, -100, 1e-30, 3e38, -3e38] * 4, "f4")
    with np.errstate(all="ignore"):
        found, exact = (
            bits(lambda *a, **o: fused.tasks(OPS[name], *a, **o), [x], x, **attrs),
            CALLS[OPS[name]](x, **attrs),
        )
    assert np.array_equal(np.isnan(found), np.isnan(exact)) and np.array_equal(np.isinf(found), np.isinf(exact))


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize(("name", "attrs"), CASES)
def test_eager_code_runs_one_kernel_forward_and_one_backward(name, attrs, strided, on):
    x, grad = [flow.tensor(a.astype("f4")) for a in arrays((130, 140))]
    x, grad = (x.T, grad.T) if strided else (x, grad)
    x = x.detach().requires_grad_()
    seen = []
    with observed(lambda op, platform, *_: seen.append((op.name, platform))):
        y = OPS[name](x, **attrs)
        (slope,) = flow.autograd.grad(y, [x], grad)
    assert [call for call in seen if call[1] == "fused"] == [(name, "fused"), (f"{name}_grad", "fused")]
    wide = x.detach().double().requires_grad_()
    near(y.numpy(), (exact := OPS[name](wide, **attrs)).numpy())
    near(slope.numpy(), flow.autograd.grad(exact, [wide], grad.double())[0].numpy())


def test_other_dtypes_and_graphs_run_decomposed():
    gelu, attrs = OPS["gelu"], {"approximate": "none"}
    assert not runs_decomposed(gelu, [Spec((64, 512), float32)], attrs, EAGER_COMPILED)
    assert runs_decomposed(gelu, [Spec((64, 512), float64)], attrs, EAGER_COMPILED)
    assert runs_decomposed(gelu, [Spec((64, 0), float32)], attrs, EAGER_COMPILED)
    assert runs_decomposed(gelu, [Spec((64, 512), float32)], attrs, PLATFORMS)  # so that parts fuse with neighbors


def test_exact_graph_has_the_bits_of_eager_code(on):
    class Exact(nn.Graph):
        def __init__(self):
            super().__init__()
            self.config.exact(True)

        def build(self, x):
            return nn.functional.gelu(x)

    x = flow.randn(64, 512)
    assert np.array_equal(Exact()(x).numpy(), nn.functional.gelu(x).numpy())


def test_second_derivative(on):
    x = flow.randn(130, 140).requires_grad_()
    wide = x.detach().double().requires_grad_()

    def twice(x):
        (slope,) = flow.autograd.grad(nn.functional.gelu(x).sum(), [x], create_graph=True)
        return flow.autograd.grad((slope * slope).sum(), [x])[0].numpy()

    near(twice(x), twice(wide))
