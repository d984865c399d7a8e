"""Batch norm, depthwise convolution and pooling in NCHW16c as compiled tasks, against NumPy.

For each: rounding errors like NumPy's float32; no read or write beyond the pixels; zeros in channels beyond the last;
the same bits at any thread count; NaN where NumPy has NaN.
"""

import math

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

pytest.importorskip("numba")
from kernel_checks import EPS, FEW, PAIR, SIZES, batch, close, depthwise_convolutions, exactly, in_blocks, normal

from minflow.core.ops.conv import positions
from minflow.core.spec import spec_of
from minflow.platforms.compiled.kernels import nchw16c_depthwise, nchw16c_norm, nchw16c_pool
from minflow.platforms.compiled.passes import nchw16c
from tests.single_tasks import FILL, run_builder, same_bits

ACTS = st.sampled_from(["", "relu", "relu6"])
CHANNELS = [1, 3, 16, 17, 31, 32, 40]


def call(op, arrays, attrs, counts=(1, 3)):
    """Outputs of an operation's tasks, or None; asserts that other thread counts give the same bits."""
    module = next(m for m in (nchw16c_norm, nchw16c_depthwise, nchw16c_pool) if hasattr(m, op.name))
    specs = op.infer(*[spec_of(a) if isinstance(a, np.ndarray) else a for a in arrays], **attrs)
    specs = specs if isinstance(specs, tuple) else (specs,)
    return same_bits(lambda: run_builder(getattr(module, op.name), arrays, specs, **attrs), counts)


def images(value, shape):
    """Unblock images; asserts that rows beyond the pixels are unchanged and channels beyond the last are zero."""
    pixels, left = math.prod(shape) // shape[1], len(value) * 16 - shape[1]
    assert (value[:, pixels:] == FILL).all()
    assert not left or not value[-1, :pixels, 16 - left :].any()
    return nchw16c.out_of_blocks(value, shape)


def compared(op, arrays, attrs, result, counts=(1, 3)):
    """Our result and NumPy's, unblocked if the result consists of images of this shape."""
    ours, right = call(op, arrays, attrs, counts)[0], exactly(op, arrays, attrs)[0]
    return (ours, right) if result is None else (images(ours, result), nchw16c.out_of_blocks(right, result))


# ---- batch norm ------------------------------------------------------------------------------------------------------

SHAPES = st.tuples(
    st.integers(2, 70), st.sampled_from(CHANNELS), st.integers(1, 9), st.integers(1, 9)
) | st.sampled_from([(64, 17, 13, 16), (64, 65, 9, 9)])  # blocks that are split, and blocks that are not


@FEW
@given(SHAPES, st.integers(0, 9), st.sampled_from([0.0, 3.0, -100.0]), ACTS)
def test_batch_norm(shape, seed, mean, act):
    x, _, weight, bias = batch(shape, seed, mean)
    arrays, attrs = (in_blocks(x), weight, bias), dict(shape=shape, eps=1e-5, act=act)
    y, means, variances = call(nchw16c.blocks_batch_norm, arrays, attrs)
    right = exactly(nchw16c.blocks_batch_norm, arrays, attrs)
    assert np.abs(means - right[1]).max() <= 4 * EPS * (np.abs(x).max())
    assert np.abs(variances / right[2] - 1).max() <= 1e-5
    # with the mean rounded to float32, which matters for a large mean
    scale = np.abs(weight).max() / math.sqrt(right[2].min() + 1e-5)
    allowed = EPS * (scale * (4 * np.abs(x).max() + 40) + 4)
    assert np.abs(images(y, shape) - nchw16c.out_of_blocks(right[0], shape)).max() <= allowed


def test_variance_survives_a_large_mean():
    """A result that E[x^2] - mean^2 would lose."""
    x, _, weight, bias = batch((64, 20, 12, 12), 0, 1e4)
    attrs = dict(shape=x.shape, eps=1e-5, act="")
    _, _, variances = call(nchw16c.blocks_batch_norm, (in_blocks(x), weight, bias), attrs)
    assert np.abs(variances / x.astype("f8").var((0, 2, 3)) - 1).max() < 1e-4


@FEW
@given(SHAPES, st.integers(0, 9), st.sampled_from([0.0, 3.0]), ACTS)
def test_gradients_of_batch_norm(shape, seed, mean, act):
    """At a kink of the activation the gradient depends on the last bit of y: such pixels have no cotangent here."""
    x, grad, weight, bias = batch(shape, seed, mean)
    means, variances = x.mean((0, 2, 3), dtype="f8").astype("f4"), x.var((0, 2, 3), dtype="f8").astype("f4")
    y = (x - nchw16c.channels(means)) * nchw16c.channels(weight / np.sqrt(variances + 1e-5)) + nchw16c.channels(bias)
    grad[(np.abs(y) < 1e-4) | (np.abs(y - 6) < 1e-4)] = 0
    arrays = in_blocks(grad), in_blocks(x), weight, bias, means, variances
    attrs, op = dict(shape=shape, eps=1e-5, act=act), nchw16c.blocks_batch_norm_grad
    gx, gweight, gbias = call(op, arrays, attrs)
    right, count = exactly(op, arrays, attrs), x.size // shape[1]
    close(gbias, right[2], count, 3)
    inverse = 1 / np.sqrt(variances.min() + 1e-5)
    close(gweight, right[1], count, 3 * inverse * np.abs(x - nchw16c.channels(means)).max())
    close(images(gx, shape), nchw16c.out_of_blocks(right[0], shape), 16, 3 * inverse * np.abs(weight).max())


@pytest.mark.parametrize("act", ["relu", "relu6"])
def test_relu_gradient_masks_by_the_result(act):
    """To the last bit: many results are at a kink or next to it."""
    x, grad, weight, bias = batch((64, 40, 6, 6), 0, 3.0)
    bias[:8], attrs = [0, 6, *[3] * 6], dict(shape=x.shape, eps=1e-5, act=act)
    arrays = in_blocks(x), weight * 5, bias
    y, means, variances = call(nchw16c.blocks_batch_norm, arrays, attrs)
    y = images(y, x.shape)
    grad = (y <= 0) | (y >= 6) if act == "relu6" else y <= 0  # zero cotangents where the ReLU blocks
    gx, gweight, gbias = call(
        nchw16c.blocks_batch_norm_grad, (in_blocks(grad.astype("f4")), *arrays, means, variances), attrs
    )
    assert grad.any() and not images(gx, x.shape).any() and not gweight.any() and not gbias.any()


@pytest.mark.parametrize("act", ["", "relu", "relu6"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("shape", [(3, 20, 4, 5), (64, 17, 13, 16)])
def test_batch_norm_propagates_nonfinite_values(shape, act, value):
    """One channel becomes NaN, and no other."""
    x, _, weight, bias = batch(shape, 0, 0.0)
    x[1, 3, 2, 2] = value
    arrays, attrs = (in_blocks(x), weight, bias), dict(shape=shape, eps=1e-5, act=act)
    y, means, variances = call(nchw16c.blocks_batch_norm, arrays, attrs)
    others = np.arange(shape[1]) != 3
    assert np.isnan(images(y, shape)[:, 3]).all() and np.isfinite(images(y, shape)[:, others]).all()
    assert np.isnan(variances[3]) and np.isfinite(variances[others]).all() and not np.isfinite(means[3])


# ---- depthwise -------------------------------------------------------------------------------------------------------


def three(shape, kernel, attrs, rng, act=""):
    """(op, arrays, attrs, shape of the result if it is images, terms of a sum) for the three directions."""
    out = positions(shape[2:], kernel, attrs["stride"], attrs["padding"], attrs["dilation"])
    x, grad = in_blocks(normal(rng, *shape)), in_blocks(normal(rng, *shape[:2], *out))
    w, bias, taps = normal(rng, shape[1], 1, *kernel), normal(rng, shape[1]), math.prod(kernel)
    return (
        (
            nchw16c.blocks_conv2d,
            (x, w, bias if act else 0),
            attrs | dict(shape=shape, act=act),
            (*shape[:2], *out),
            taps,
        ),
        (nchw16c.blocks_conv2d_input_grad, (grad, w), attrs | dict(shape=shape), shape, taps),
        (
            nchw16c.blocks_conv2d_weight_grad,
            (grad, x),
            attrs | dict(shape=w.shape, images=shape),
            None,
            shape[0] * math.prod(out),
        ),
    )


@FEW
@given(depthwise_convolutions([1, 2, 3, 17, 65], CHANNELS), st.integers(0, 9), ACTS)
def test_depthwise(case, seed, act):
    for op, arrays, attrs, result, terms in three(*case, np.random.default_rng(seed), act):
        close(*compared(op, arrays, attrs, result), terms, 1)


@pytest.mark.parametrize(
    "shape, stride",
    [((300, 40, 8, 8), 1), ((70, 17, 16, 16), 1), ((70, 17, 16, 16), 2), ((3, 16, 60, 70), 1), ((3, 16, 61, 70), 2)],
)
def test_depthwise_of_many_pixels(shape, stride):
    """Split blocks, and rows longer than a run."""
    geometry = dict(stride=(stride, stride), padding=(1, 1), dilation=(1, 1), groups=shape[1])
    for op, arrays, attrs, result, terms in three(shape, (3, 3), geometry, np.random.default_rng(0)):
        close(*compared(op, arrays, attrs, result, counts=(1, 2, 3, 4)), terms, 1)


@pytest.mark.parametrize("size, stride", [((8, 8), 1), ((5, 3), 1), ((4, 4), 2), ((5, 5), 2), ((2, 2), 1)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_depthwise_propagates_nonfinite_values(size, stride, value):
    """At each position of both arrays, like NumPy's kernels, which do not multiply the border either."""
    shape, geometry = (2, 16, *size), dict(stride=(stride, stride), padding=(1, 1), dilation=(1, 1), groups=16)
    for op, arrays, attrs, result, _ in three(shape, (3, 3), geometry, np.random.default_rng(0)):
        for changed in (0, 1):
            many = arrays[changed]
            places = (
                [(0, p, 0) for p in np.flatnonzero(np.isfinite(many[0, :, 0]))]
                if many.ndim == 3
                else [(0, 0, *p) for p in np.ndindex(3, 3)]
            )
            for place in places:
                mine = [a.copy() if isinstance(a, np.ndarray) else a for a in arrays]
                mine[changed][place] = value
                ours, right = compared(op, mine, attrs, result, counts=(1,))
                assert np.array_equal(np.isnan(ours), np.isnan(right))
                assert np.array_equal(np.isinf(ours), np.isinf(right))


def test_depthwise_falls_back_for_other_geometries():
    """Several filters per channel, and groups of several channels."""
    attrs = dict(shape=(2, 16, 5, 5), stride=(1, 1), padding=(0, 0), dilation=(1, 1), act="")
    x = nchw16c.in_blocks(np.ones((2, 16, 5, 5), "f4"))
    for shape, groups in (((16, 8, 3, 3), 2), ((32, 1, 3, 3), 16)):
        arrays = x, np.ones(shape, "f4"), 0
        assert call(nchw16c.blocks_conv2d, arrays, attrs | dict(groups=groups)) is None


# ---- pooling ---------------------------------------------------------------------------------------------------------

WINDOW = dict(stride=(2, 2), padding=(0, 0), dilation=(1, 1), ceil_mode=False)


@st.composite
def pools(draw, dilated=True):
    """Windows with and without borders that end at the image's edge, before it, or (ceil_mode) beyond it."""
    size, kernel, stride = draw(SIZES), draw(PAIR), draw(PAIR)
    kernel, stride = draw(st.sampled_from([(kernel, stride), ((2, 2), (2, 2)), ((2, 2), (3, 2)), ((3, 3), (2, 2))]))
    padding = tuple(draw(st.integers(0, k // 2)) for k in kernel)
    dilation = draw(st.sampled_from([(1, 1), (1, 1), (2, 3)])) if dilated else (1, 1)
    attrs = dict(kernel_size=kernel, stride=stride, padding=padding, dilation=dilation, ceil_mode=draw(st.booleans()))
    assume(min(positions(size, *attrs.values())) > 0)
    shape = draw(st.sampled_from([1, 2, 17])), draw(st.sampled_from(CHANNELS)), *size
    return shape, attrs | dict(shape=shape)


@FEW
@given(pools(), st.integers(0, 9))
def test_max_pool(case, seed):
    """With many ties, some NaN and many -inf; cotangents are added where windows overlap."""
    shape, attrs = case
    rng = np.random.default_rng(seed)
    x = rng.integers(-2, 3, shape).astype("f4")
    x[rng.random(shape) < 0.1] = np.nan
    x[rng.random(shape) < seed / 9] = -np.inf
    size, arrays = nchw16c.pooled(**attrs), (in_blocks(x),)
    found = call(nchw16c.blocks_max_pool2d, arrays, attrs)
    if found is None:
        assert max(attrs["dilation"]) > 1  # a stride larger than the window
        return
    right = exactly(nchw16c.blocks_max_pool2d, arrays, attrs)
    assert np.array_equal(images(found[0], size), nchw16c.out_of_blocks(right[0], size), equal_nan=True)
    places = nchw16c.out_of_blocks(found[1], size)  # channels beyond the last may hold anything
    assert np.array_equal(places, nchw16c.out_of_blocks(right[1], size))
    arrays = in_blocks(rng.integers(-9, 9, size).astype("f4")), in_blocks(places)
    assert np.array_equal(*compared(nchw16c.blocks_max_pool2d_grad, arrays, attrs, shape))


@FEW
@given(pools(dilated=False), st.booleans(), st.sampled_from([None, 1, 5]), st.integers(0, 9))
def test_avg_pool(case, include, override, seed):
    shape, attrs = case
    attrs = {**attrs, "count_include_pad": include, "divisor_override": override}
    del attrs["dilation"]
    rng = np.random.default_rng(seed)
    size = nchw16c.pooled(
        shape, *[attrs[name] for name in ("kernel_size", "stride", "padding")], ceil_mode=attrs["ceil_mode"]
    )
    for name, given_size, result in (("", shape, size), ("_grad", size, shape)):
        op, arrays = nchw16c.BLOCKED[f"blocks_avg_pool2d{name}"], (in_blocks(normal(rng, *given_size)),)
        close(*compared(op, arrays, attrs, result), 9, 1)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_avg_pool_propagates_nonfinite_values(value):
    """A non-finite pixel reaches the windows that contain it, and no others."""
    shape = (1, 17, 5, 4)
    attrs = dict(
        shape=shape,
        kernel_size=(3, 3),
        stride=(2, 1),
        padding=(1, 1),
        ceil_mode=True,
        count_include_pad=False,
        divisor_override=None,
    )
    for place in np.ndindex(5, 4):
        x = normal(np.random.default_rng(0), *shape)
        x[0, 16][place] = value
        ours, right = compared(nchw16c.blocks_avg_pool2d, (in_blocks(x),), attrs, (1, 17, 3, 4), counts=(1,))
        assert np.allclose(ours, right, 1e-5, 1e-5, equal_nan=True)


@pytest.mark.parametrize("shape", [(300, 20, 8, 8), (100, 33, 28, 28), (2, 16, 90, 110)])
@pytest.mark.parametrize("kernel, padding", [((2, 2), (0, 0)), ((3, 3), (1, 1))])
def test_pooling_of_many_pixels(shape, kernel, padding):
    attrs = dict(WINDOW, shape=shape, kernel_size=kernel, padding=padding)
    x, size = in_blocks(normal(np.random.default_rng(0), *shape)), nchw16c.pooled(**attrs)
    y, places = call(nchw16c.blocks_max_pool2d, (x,), attrs, counts=(1, 2, 3, 4))
    right = exactly(nchw16c.blocks_max_pool2d, (x,), attrs)
    assert np.array_equal(images(y, size), nchw16c.out_of_blocks(right[0], size))
    arrays = in_blocks(np.rint(images(y, size) * 4)), in_blocks(nchw16c.out_of_blocks(places, size))
    assert np.array_equal(*compared(nchw16c.blocks_max_pool2d_grad, arrays, attrs, shape, counts=(1, 2, 3, 4)))


@FEW
@given(SHAPES, st.integers(0, 9))
def test_global_average(shape, seed):
    rng, attrs = np.random.default_rng(seed), dict(shape=shape)
    for op, given_size, result, terms in (
        (nchw16c.blocks_average, shape, shape[:2], 4),
        (nchw16c.blocks_average_grad, shape[:2], shape, 1),
    ):
        close(*compared(op, (in_blocks(normal(rng, *given_size)),), attrs, result), terms, 1)


def test_max_pool_windows_over_255_pixels():
    attrs = dict(WINDOW, shape=(1, 16, 20, 20), kernel_size=(17, 16))
    arrays = (in_blocks(np.ones(attrs["shape"], "f4")),)
    assert call(nchw16c.blocks_max_pool2d, arrays, attrs) is None
