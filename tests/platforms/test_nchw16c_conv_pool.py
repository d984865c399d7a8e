"""Convolution fused with max pooling, and the filter gradient from the gradient of the windows: the bits of separate
tasks, no write around the results, and no dependence on the thread count.
"""

import math

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

pytest.importorskip("numba")
from kernel_checks import examples, in_blocks, normal

from minflow.core.kernels import CALLS
from minflow.core.spec import Spec, float32, spec_of, uint8
from minflow.platforms.compiled.kernels import nchw16c_conv, nchw16c_conv_pool, nchw16c_pool
from minflow.platforms.compiled.passes import nchw16c
from tests.single_tasks import run_builder, same_bits

ONE = (1, 1)


def case(n, c, size, f, kernel, window, apart=None, stride=ONE, padding=(0, 0), dilation=ONE, bias=True, act="relu"):
    geometry = dict(stride=stride, padding=padding, dilation=dilation, groups=1)
    return (n, c, *size), (f, c, *kernel), geometry, dict(kernel_size=window, window_stride=apart or window), bias, act


def fused_pool(made, x, w, b):
    """((y, indices), size of these images); both are blocked."""
    shape, filters, geometry, windows, _, act = made
    small = nchw16c.pooled(nchw16c.result_shape(shape, filters, **geometry), **nchw16c.simple(**windows))
    pooled = nchw16c.images(small)
    return run_builder(
        nchw16c_conv_pool.blocks_conv2d_max_pool2d,
        [maybe_blocked(x), w, b],
        [pooled, pooled.replace(dtype=uint8)],
        shape=shape,
        act=act,
        **geometry,
        **windows,
    ), small


def fused_filter_gradient(made, g, places, x):
    shape, filters, geometry, windows, *_ = made
    (found,) = run_builder(
        nchw16c_conv_pool.blocks_max_pool2d_weight_grad,
        [g, places, maybe_blocked(x)],
        [Spec(filters, float32)],
        shape=filters,
        images=shape,
        **geometry,
        **windows,
    )
    return found


def forward(made, arrays):
    """(separate, fused): y and indices, as images."""
    shape, filters, geometry, windows, _bias, act = made
    x, w, b = arrays
    size = nchw16c.result_shape(shape, filters, **geometry)
    together, small = fused_pool(made, *arrays)
    inputs = [maybe_blocked(x), w, b]
    spec, pooled = nchw16c.images(size), nchw16c.images(small)
    window = dict(shape=size, **nchw16c.simple(**windows))

    def both(inputs, act):
        (y,) = run_builder(nchw16c_conv.blocks_conv2d, inputs, [spec], shape=shape, act=act, **geometry)
        return run_builder(nchw16c_pool.blocks_max_pool2d, [y], [pooled, pooled.replace(dtype=uint8)], **window)

    apart = both(inputs, act)[0], both([*inputs[:2], 0], "")[1]
    return [[nchw16c.out_of_blocks(a, small) for a in found] for found in (apart, together)], size, small


def back(made, x, g, places, size):
    """(separate, fused): the gradient of the filters."""
    shape, filters, geometry, windows, *_ = made
    inputs, spec = maybe_blocked(x), Spec(filters, float32)
    (wide,) = run_builder(
        nchw16c_pool.blocks_max_pool2d_grad,
        [g, places],
        [nchw16c.images(size)],
        shape=size,
        **nchw16c.simple(**windows),
    )
    (apart,) = run_builder(
        nchw16c_conv.blocks_conv2d_weight_grad, [wide, inputs], [spec], shape=filters, images=shape, **geometry
    )
    return apart, fused_filter_gradient(made, g, places, x)


def arrays_of(made, seed=0):
    rng = np.random.default_rng(seed)
    x, w, b = [normal(rng, *shape) for shape in (*made[:2], made[1][:1])]
    return x, w, b if made[4] else 0


def maybe_blocked(x):
    """Images of few channels stay unblocked."""
    return x if x.shape[1] < nchw16c.LANES else in_blocks(x)


def assert_zero_padding(x, channels):
    return channels % nchw16c.LANES == 0 or not x[-1, :, channels % nchw16c.LANES :].any()


FIRST = case(7, 1, (28, 28), 32, (5, 5), (2, 2), padding=(2, 2))
TILED5 = case(6, 20, (14, 13), 40, (5, 5), (2, 2), padding=(2, 2))
TILED3 = case(6, 17, (12, 9), 16, (3, 3), (3, 2), (2, 3), padding=ONE, act="relu6")
DIRECT = case(5, 33, (11, 9), 19, (3, 2), (2, 2), ONE, (2, 1), (1, 0), bias=False, act="")
IM2COL = case(3, 100, (6, 5), 101, (3, 3), (2, 2), (2, 1), padding=ONE, act="relu")
ALL = {"first": FIRST, "5x5": TILED5, "3x3": TILED3, "direct": DIRECT, "im2col": IM2COL}
KINDS = pytest.mark.parametrize("made", ALL.values(), ids=ALL)


@st.composite
def cases(draw):
    pair = lambda strategy: draw(st.tuples(strategy, strategy))
    square = draw(st.booleans())
    kernel = (draw(st.sampled_from([3, 5])),) * 2 if square else pair(st.integers(1, 4))
    stride = ONE if square else pair(st.integers(1, 2))
    padding = tuple(draw(st.integers(0, k // 2)) for k in kernel)
    window, apart = pair(st.integers(1, 3)), pair(st.integers(1, 3))
    least = [k - 2 * p + (w - 1) * s for k, p, w, s in zip(kernel, padding, window, stride)]
    size = tuple(n + draw(st.integers(0, 12)) for n in least)
    return case(
        draw(st.integers(1, 7)),
        draw(st.integers(1, 40)),
        size,
        draw(st.integers(1, 40)),
        kernel,
        window,
        apart,
        stride,
        padding,
        ONE,
        draw(st.booleans()),
        draw(st.sampled_from(nchw16c.ACTS)),
    )


@examples(60, 20)
@example(FIRST, 0)
@example(TILED5, 0)
@example(TILED3, 0)
@example(DIRECT, 0)
@example(IM2COL, 0)
@given(cases(), st.integers(0, 9))
def test_fused_conv_pool_has_the_bits_of_separate_tasks(made, seed):
    arrays = arrays_of(made, seed)
    (apart, together), size, small = forward(made, arrays)
    assert [a.tobytes() for a in together] == [a.tobytes() for a in apart]
    g = normal(np.random.default_rng(seed), *small)
    right, found = back(made, arrays[0], in_blocks(g), in_blocks(together[1]), size)
    assert found.tobytes() == right.tobytes()


@KINDS
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nonfinite_values_are_propagated(made, value):
    arrays = arrays_of(made)
    arrays[0][1, 0, 3, 4], arrays[0][2, -1, 5, 2] = value, -value
    with np.errstate(all="ignore"):
        (apart, together), size, small = forward(made, arrays)
        assert np.array_equal(*[pair[0] for pair in (apart, together)], equal_nan=True)
        assert np.array_equal(apart[1], together[1])
        g = np.full(small, value, "f4")
        right, found = back(made, arrays[0], in_blocks(g), in_blocks(together[1]), size)
    assert np.array_equal(right, found, equal_nan=True) and not np.isfinite(found).all()


@KINDS
def test_bits_and_padding_do_not_depend_on_thread_count(made):
    arrays = arrays_of(made)
    (_, first), size, small = forward(made, arrays)
    g, places = in_blocks(normal(np.random.default_rng(1), *small)), in_blocks(first[1])
    same_bits(lambda: [*forward(made, arrays)[0][1], back(made, arrays[0], g, places, size)[1]])
    (y, _), _ = fused_pool(made, *arrays)
    assert assert_zero_padding(y[:, : small[0] * math.prod(small[2:])], small[1])


@KINDS
def test_empty_batch(made):
    made = (0, *made[0][1:]), *made[1:]
    arrays = arrays_of(made)
    (y, places), _ = fused_pool(made, *arrays)  # rows without windows
    assert not fused_filter_gradient(made, np.ones_like(y), np.ones_like(places), arrays[0]).any()


@KINDS
def test_meaning_matches_numpy(made):
    """Within rounding; if two pixels are equal within rounding, either may be the maximum."""
    arrays = arrays_of(made)
    (_, (y, places)), _, small = forward(made, arrays)
    attrs = dict(shape=made[0], act=made[5], **made[2], **made[3])
    x = maybe_blocked(arrays[0])
    right = [nchw16c.out_of_blocks(a, small) for a in CALLS[nchw16c.blocks_conv2d_max_pool2d](x, *arrays[1:], **attrs)]
    np.testing.assert_allclose(y, right[0], rtol=1e-4, atol=1e-4)
    assert (places != right[1]).mean() < 1e-3
    specs = nchw16c.blocks_conv2d_max_pool2d.infer(
        *[spec_of(a) if isinstance(a, np.ndarray) else a for a in (x, *arrays[1:])], **attrs
    )
    assert [spec.shape for spec in specs] == [nchw16c.blocked(small)] * 2
    g = nchw16c.in_blocks(np.random.default_rng(2).standard_normal(small).astype("f4"))
    attrs = dict(shape=made[1], images=made[0], **made[2], **made[3])
    right = CALLS[nchw16c.blocks_max_pool2d_weight_grad](g, nchw16c.in_blocks(places), x, **attrs)
    found = fused_filter_gradient(made, g, nchw16c.in_blocks(places), arrays[0])
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-4 * abs(right).max())
