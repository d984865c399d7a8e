"""Compiled NCHW kernels for depthwise convolution, batch norm and pooling, against the reference kernels in float64.

For each: rounding errors like NumPy's float32; the same bits at each call and thread count; no write outside the
result; NaN and infinity where NumPy's kernels have them.
"""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

pytest.importorskip("numba")
from kernel_checks import EPS, FEW, batch, close, depthwise_convolutions, exactly, normal

from minflow.core.base.errors import OutOfRangeError
from minflow.core.kernels import HOST_PLATFORMS, select
from minflow.core.ops import conv, norm, pool
from minflow.platforms.compiled.runtime import eager
from tests.platforms.kernel_checks import compiled_call
from tests.single_tasks import guarded_array, same_bits

conv2d, conv2d_input_grad, conv2d_weight_grad, batch_norm, batch_norm_grad, max_pool2d, max_pool2d_grad = [
    compiled_call(op)
    for op in (
        conv.conv2d,
        conv.conv2d_input_grad,
        conv.conv2d_weight_grad,
        norm.batch_norm,
        norm.batch_norm_grad,
        pool.max_pool2d,
        pool.max_pool2d_grad,
    )
]


def call(run, arrays, attrs, shapes, kinds=None):
    """Results of a compiled kernel, or None; asserts that it writes nothing else and repeats its bits."""
    made = [guarded_array(shape, kind) for shape, kind in zip(shapes, kinds or ["f4"] * len(shapes))]
    out = tuple([array for array, _ in made])
    found = run(*arrays, **attrs, out=out if len(out) > 1 else out[0])
    if found is None:
        return None
    assert all(intact() for _, intact in made)
    before = [array.copy() for array in out]
    run(*arrays, **attrs, out=out if len(out) > 1 else out[0])
    assert all(a.tobytes() == b.tobytes() for a, b in zip(before, out))
    return before


# ---- depthwise ------------------------------------------------------------------------------------------------------


def three(x, kernel, attrs, rng):
    """Images, filters and cotangents, and the calls of the three directions on them."""
    out = conv.positions(x[2:], kernel, attrs["stride"], attrs["padding"], attrs["dilation"])
    shapes = x, (x[1], 1, *kernel), (*x[:2], *out)
    x, w, g = [normal(rng, *shape) for shape in shapes]
    taps = math.prod(kernel)
    return (
        (conv.conv2d, conv2d, (x, w), {}, g.shape, taps),
        (conv.conv2d_input_grad, conv2d_input_grad, (g, w), dict(shape=x.shape), x.shape, taps),
        (conv.conv2d_weight_grad, conv2d_weight_grad, (g, x), dict(shape=w.shape), w.shape, len(x) * math.prod(out)),
    )


@FEW
@given(depthwise_convolutions([1, 2, 3, 17, 19], [16, 17, 24, 31, 32]), st.integers(0, 9))
def test_depthwise(case, seed):
    shape, kernel, attrs = case
    for op, run, arrays, more, result, terms in three(shape, kernel, attrs, np.random.default_rng(seed)):
        found = call(run, arrays, more | attrs, [result])
        close(found[0], exactly(op, arrays, more | attrs)[0], terms)


@pytest.mark.parametrize("size, stride", [((8, 8), 1), ((5, 3), 1), ((4, 4), 2), ((2, 2), 1)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_depthwise_propagates_nonfinite_values(size, stride, value):
    """At each position of both arrays, like NumPy's kernels, which do not multiply the border either."""
    attrs = dict(stride=(stride, stride), padding=(1, 1), dilation=(1, 1), groups=16)
    for op, run, arrays, more, result, _ in three((2, 16, *size), (3, 3), attrs, np.random.default_rng(0)):
        for changed in (0, 1):
            for place in range(math.prod(arrays[changed].shape[2:])):
                mine = [a.copy() for a in arrays]
                mine[changed][0, 0].reshape(-1)[place] = value
                with np.errstate(invalid="ignore"):
                    right = select(op, HOST_PLATFORMS).call(*mine, **more, **attrs)
                ours = run(*mine, **more, **attrs)
                same = np.isfinite(right)
                assert np.array_equal(ours[~same], right[~same], equal_nan=True)
                assert np.isfinite(ours[same]).all()


def test_depthwise_leaves_the_rest_to_numpy():
    x = normal(np.random.default_rng(0), 2, 16, 5, 5)
    attrs = dict(stride=(1, 1), padding=(0, 0), dilation=(1, 1))
    assert conv2d(x, np.ones((32, 1, 3, 3), "f4"), **attrs, groups=16) is None  # two filters per channel
    w = np.ones((16, 1, 3, 3), "f4")
    assert conv2d(x[:, :8].copy(), w[:8], **attrs, groups=8) is None  # fewer channels than vector lanes
    assert conv2d(x.astype("f8"), w.astype("f8"), **attrs, groups=16) is None
    assert conv2d(x[:0], w, **attrs, groups=16) is None
    turned = x[:, :, ::-1]  # copied
    assert (conv2d(turned, w, **attrs, groups=16) == conv2d(turned.copy(), w, **attrs, groups=16)).all()


# ---- batch norm -----------------------------------------------------------------------------------------------------

SHAPES = st.tuples(st.integers(2, 9), st.sampled_from([1, 3, 16, 17, 40]), st.integers(1, 9), st.integers(1, 9))


@FEW
@given(SHAPES | st.tuples(st.integers(2, 40) | st.integers(2000, 3000), st.integers(1, 40)), st.integers(0, 9))
def test_batch_norm(shape, seed):
    x, g, weight, bias = batch(shape, seed, 3.0)
    terms, channel = x.size // shape[1], (shape[1],)
    ours = call(batch_norm, (x, weight, bias), dict(eps=1e-5), [shape, channel, channel])
    right = exactly(norm.batch_norm, (x, weight, bias), dict(eps=1e-5))
    if right[2].min() < 0.1:
        return  # two close numbers: their difference is rounded before any division
    for a, b in zip(ours, right):
        close(a, b, 4 * terms + 100)
    arrays = g, x, weight, ours[1], ours[2]
    back = call(batch_norm_grad, arrays, dict(eps=1e-5), [shape, channel, channel])
    scale = np.abs(g).max() * max(np.abs(weight).max(), 1) / np.sqrt(right[2].min())
    for a, b in zip(back, exactly(norm.batch_norm_grad, arrays, dict(eps=1e-5))):
        close(a, b, 4 * terms + 100, scale)


@pytest.mark.parametrize("shape", [(64, 3, 16, 16), (4096, 20), (600, 17, 2, 2)])
def test_statistics_are_as_accurate_as_numpy(shape):
    """Far from zero, where a mean of squares would lose all digits of the variance."""
    x, _g, weight, bias = batch(shape, 0, mean=1000.0)
    right = exactly(norm.batch_norm, (x, weight, bias), dict(eps=1e-5))
    ours = batch_norm(x, weight, bias, eps=1e-5)
    numpys = select(norm.batch_norm, HOST_PLATFORMS).call(x, weight, bias, eps=1e-5)
    for a, b, exact in zip(ours, numpys, right):
        assert np.abs(a - exact).max() <= 2 * np.abs(b - exact).max() + 8 * EPS * np.abs(exact).max()


@pytest.mark.parametrize("pixels", [(), (3, 3), (5, 7)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_batch_norm_propagates_nonfinite_values(pixels, value):
    shape = (3, 17, *pixels)
    x, g, weight, bias = batch(shape, 0, 3.0)
    _, mean, var = batch_norm(x, weight, bias, eps=1e-5)
    for place in range(0, x.size, 7):
        broken = x.copy()
        broken.reshape(-1)[place] = value
        wrong = g.copy()
        wrong.reshape(-1)[place] = value
        channel = np.unravel_index(place, shape)[1]
        for found in (
            *batch_norm(broken, weight, bias, eps=1e-5),
            *batch_norm_grad(wrong, x, weight, mean, var, eps=1e-5),
        ):
            others = np.delete(found, channel, 1 if found.ndim > 1 else 0)
            mine = found[:, channel] if found.ndim > 1 else found[channel]
            assert np.isfinite(others).all() and not np.isfinite(mine).any()


def test_batch_norm_of_empty_or_other_dtypes_falls_back_to_numpy():
    one = np.ones(3, "f4")
    assert batch_norm(np.ones((0, 3, 2, 2), "f4"), one, one, eps=1e-5) is None
    assert batch_norm(np.ones((4, 3), "f8"), one.astype("f8"), one.astype("f8"), eps=1e-5) is None
    turned = normal(np.random.default_rng(0), 3, 4).T  # copied
    for found, right in zip(batch_norm(turned, one, one, eps=1e-5), batch_norm(turned.copy(), one, one, eps=1e-5)):
        assert (found == right).all()


# ---- pooling --------------------------------------------------------------------------------------------------------

WINDOW = dict(kernel_size=(2, 2), stride=(2, 2), padding=(0, 0), dilation=(1, 1), ceil_mode=False)


@FEW
@given(
    st.sampled_from([1, 2]), st.integers(0, 3), st.integers(1, 3), st.integers(2, 9), st.integers(2, 70),
    st.integers(0, 9),
)  # fmt: skip
def test_max_pool(tall, n, c, height, width, seed):
    """Exactly, including ties, NaN and infinity."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, (n, c, height, width)).astype("f4")
    x[x == 3] = rng.choice([np.nan, np.inf, -np.inf, 3, -0.0], (x == 3).sum())
    shape, window = (n, c, height // tall, width // 2), WINDOW | dict(kernel_size=(tall, 2), stride=(tall, 2))
    y, indices = call(max_pool2d, (x,), window, [shape, shape], ["f4", "i8"])
    right = select(pool.max_pool2d, ("reference",)).call(x, **window)
    assert np.array_equal(y, right[0], equal_nan=True) and np.array_equal(indices, right[1])
    g = rng.standard_normal(y.shape).astype("f4")
    for apart in (True, False):
        found = call(max_pool2d_grad, (g, indices), dict(shape=x.shape, apart=apart), [x.shape])
        right = select(pool.max_pool2d_grad, ("reference",)).call(g, indices, shape=x.shape, apart=apart)
        assert found is None if not x.size else np.array_equal(found[0], right)


def test_overlapping_windows_accumulate_gradients():
    rng = np.random.default_rng(0)
    indices, g = rng.integers(0, 12, (2, 3, 5, 4)), rng.standard_normal((2, 3, 5, 4)).astype("f4")
    attrs = dict(shape=(2, 3, 3, 4), apart=False)
    found = call(max_pool2d_grad, (g, indices), attrs, [(2, 3, 3, 4)])[0]
    assert np.array_equal(found, select(pool.max_pool2d_grad, ("reference",)).call(g, indices, **attrs))


@pytest.mark.parametrize("index", [-1, 16, 1 << 40])
def test_index_outside_the_image_falls_back_to_numpy(index):
    g, indices = np.ones((1, 2, 2, 2), "f4"), np.zeros((1, 2, 2, 2), "i8")
    indices[0, 1, 1, 0] = index
    attrs = dict(shape=(1, 2, 4, 4), apart=False)
    gx, intact = guarded_array((1, 2, 4, 4))
    assert max_pool2d_grad(g, indices, **attrs, out=gx) is None and intact()
    with pytest.raises(OutOfRangeError, match=f"index {index} "):
        select(pool.max_pool2d_grad, HOST_PLATFORMS).call(g, indices, **attrs)


@pytest.mark.parametrize(
    "other",
    [
        *[dict(kernel_size=size) for size in ((3, 3), (1, 2))],
        *[dict(stride=(1, 1)), dict(padding=(1, 1)), dict(dilation=(2, 2)), dict(ceil_mode=True)],
    ],
)
def test_other_windows_fall_back_to_numpy(other):
    assert max_pool2d(np.ones((1, 2, 7, 7), "f4"), **(WINDOW | other)) is None


# ---- threads --------------------------------------------------------------------------------------------------------


def test_bits_do_not_depend_on_thread_count(monkeypatch):
    monkeypatch.setattr("minflow.platforms.compiled.kernels.norm.CHUNK", 1)
    monkeypatch.setattr("minflow.platforms.compiled.kernels.column_norms.CHUNK", 1)
    monkeypatch.setattr("minflow.platforms.compiled.kernels.pool.CHUNK", 1)
    x, g, weight, bias = batch((35, 40, 8, 8), 0, 3.0)
    filters, attrs = normal(np.random.default_rng(1), 40, 1, 3, 3), dict(padding=(1, 1), dilation=(1, 1), groups=40)

    def everything():
        monkeypatch.setattr(eager, "CALL_CACHE", eager.CallCache())
        found = [conv2d(x, filters, stride=(s, s), **attrs) for s in (1, 2)]
        found += [
            conv2d_weight_grad(y, x, shape=filters.shape, stride=(s, s), **attrs) for s, y in zip((1, 2), tuple(found))
        ]
        for inputs, cotangents in ((x, g), (x.reshape(-1, 40), g.reshape(-1, 40))):
            y, mean, var = batch_norm(inputs, weight, bias, eps=1e-5)
            found += [y, mean, var, *batch_norm_grad(cotangents, inputs, weight, mean, var, eps=1e-5)]
        largest, indices = max_pool2d(x, **WINDOW)
        return [*found, largest, indices, max_pool2d_grad(largest, indices, shape=x.shape, apart=True)]

    same_bits(everything, (1, 2, 3))
