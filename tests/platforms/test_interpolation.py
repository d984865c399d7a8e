"""Interpolation as compiled tasks, in NCHW and in blocks: the bits of the decomposition, and its gradients.

For each: no read or write out of bounds; the same bits at any thread count; infinity and NaN as in the decomposition.
"""

import math

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

pytest.importorskip("numba")
from kernel_checks import FEW, close, in_blocks, normal

import minflow as flow
from minflow.core.kernels import observed
from minflow.core.mode import DEFAULT
from minflow.core.op import OPS
from minflow.core.spec import Spec, float32, spec_of
from minflow.nn import functional as F
from minflow.platforms.compiled.kernels import interpolation
from minflow.platforms.compiled.passes import nchw16c
from tests.single_tasks import FILL, run_builder, same_bits

INTERPOLATE = OPS["interpolate"]
MODES = ("nearest", False), ("nearest-exact", False), ("linear", False), ("linear", True), ("cubic", False)


def sizes(*axes):
    return st.tuples(*[st.integers(1, n) for n in axes])


@st.composite
def calls(draw, axes=((40,), (70, 50), (5, 20, 20)), channels=(1, 2, 7, 20)):
    """(shape of images, attrs)."""
    longest = draw(st.sampled_from(axes))
    space, output_size = draw(sizes(*longest)), draw(sizes(*longest))
    kept = draw(st.sets(st.integers(0, len(space) - 1)))
    output_size = tuple(a if i in kept else b for i, (a, b) in enumerate(zip(space, output_size)))
    assume(output_size != space)
    mode, antialias = draw(st.sampled_from([*MODES, ("cubic", True)] if len(space) == 2 else MODES[:4]))
    attrs = dict(factors=(None,) * len(space), mode=mode, align_corners=draw(st.booleans()), antialias=antialias)
    return (draw(st.integers(1, 3)), draw(st.sampled_from(channels)), *space), dict(output_size=output_size, **attrs)


def parts(op, *arrays, **attrs):
    """The decomposition's result."""
    return DEFAULT.run_decomposed(op, arrays, attrs)


def tasks(builder, arrays, spec, **attrs):
    found = same_bits(lambda: run_builder(builder, arrays, [spec], **attrs), (1, 3))
    assert found is not None
    return found[0]


def terms(x, grad):
    """Bound of the number of terms of a gradient's element."""
    return grad.size / x.size * 16 + 16


@FEW
@given(calls(), st.integers(0, 9))
def test_images_signals_and_volumes(call, seed):
    (shape, attrs), rng = call, np.random.default_rng(seed)
    x = normal(rng, *shape)
    y = parts(INTERPOLATE, x, **attrs)
    assert tasks(interpolation.interpolate, [x], spec_of(y), **attrs).tobytes() == y.tobytes()
    grad = normal(rng, *y.shape)
    found = tasks(interpolation.interpolate_grad, [grad, x], spec_of(x), **attrs, needs=1)
    wanted = parts(INTERPOLATE.gradient, grad, x, **attrs, needs=1)
    close(found, wanted, terms(x, grad), np.abs(grad).max() * max(1, grad.size / x.size))


@FEW
@given(calls(axes=((30, 20),), channels=(1, 16, 17, 40)), st.integers(0, 9))
def test_images_in_blocks(call, seed):
    (shape, attrs), rng = call, np.random.default_rng(seed)
    x = normal(rng, *shape)
    y = parts(INTERPOLATE, x, **attrs)

    def images(builder, given, shape_of_result):
        blocked = tasks(
            builder, [in_blocks(given)], Spec(nchw16c.blocked(shape_of_result), float32), shape=shape, **attrs
        )
        pixels, left = math.prod(shape_of_result) // shape[1], len(blocked) * 16 - shape[1]
        assert (blocked[:, pixels:] == FILL).all()
        assert not left or not blocked[-1, :pixels, 16 - left :].any()
        return nchw16c.out_of_blocks(blocked, shape_of_result)

    assert images(interpolation.blocks_interpolate, x, y.shape).tobytes() == y.tobytes()
    grad = normal(rng, *y.shape)
    wanted = parts(INTERPOLATE.gradient, grad, x, **attrs, needs=1)
    scale = np.abs(grad).max() * max(1, grad.size / x.size)
    close(images(interpolation.blocks_interpolate_grad, grad, shape), wanted, terms(x, grad), scale)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_nonfinite_values_spread_as_in_the_decomposition(mode):
    """Weights of 0 multiply them too; "nearest" touches no other pixel."""
    x = np.zeros((1, 16, 5, 5), "f4")
    x[0, 5, 1, 1], x[0, 6, 2, 2], x[0, 7] = np.inf, np.nan, -0.0
    attrs = dict(output_size=(9, 10), factors=(None, 2.0), mode=mode, align_corners=False, antialias=False)
    with np.errstate(all="ignore"):
        y = parts(INTERPOLATE, x, **attrs)
    found = tasks(interpolation.interpolate, [x], spec_of(y), **attrs)
    assert np.array_equal(found, y, equal_nan=True) and (np.signbit(found) == np.signbit(y))[0, 7].all()


def test_eager_code_runs_it_with_gradient(on):
    """The cotangent of a sum is expanded."""
    ran = []
    x = flow.randn(2, 8, 64, 60, requires_grad=True)
    with observed(lambda op, platform, arrays, result: ran.append((op.name, platform))):
        y = F.interpolate(x, scale_factor=2, mode="bilinear")
        y.sum().backward()
    assert ("interpolate", "compiled") in ran and ("interpolate_grad", "compiled") in ran
    assert flow.allclose(x.grad.sum(), flow.tensor(float(y.numel())))


def test_unsupported_arrays_are_left_to_the_decomposition():
    x = np.zeros((2, 3, 6, 4), "f4").transpose(0, 1, 3, 2)
    attrs = dict(output_size=(8, 8), factors=(None, None), mode="linear", align_corners=False, antialias=False)
    assert run_builder(interpolation.interpolate, [x], [Spec((2, 3, 8, 8), float32)], **attrs) is None
    for spec in (Spec((2, 3, 4, 6), flow.float64), Spec((0, 3, 4, 6), float32), Spec((2, 3, 8, 8), float32)):
        assert not interpolation.is_supported(spec, **attrs)
    assert interpolation.is_supported(Spec((2, 3, 4, 6), float32), **attrs)
