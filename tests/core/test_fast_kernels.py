"""Fast kernels against their references, at sizes beyond the examples of ops: large, odd, not contiguous."""

import numpy as np
import pytest

import minflow as flow
from minflow.core.kernels import CALLS, HOST_PLATFORMS, select
from minflow.core.ops.activation import leaky_relu, leaky_relu_grad
from minflow.core.ops.elementwise import clamp, relu, where
from minflow.core.ops.index import gather, index_add
from minflow.core.ops.pool import adaptive_avg_pool2d, avg_pool2d, avg_pool2d_grad, max_pool2d
from minflow.core.ops.reduce import mean, sum
from minflow.core.ops.sort import sort
from minflow.platforms.numpy import index, reduce, select as select_kernels
from tests.cases import in_cases

SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40]


def numbers(*shape, dtype="f4", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape).astype(dtype)
    x.reshape(-1)[: len(SPECIAL)] = SPECIAL
    rng.shuffle(x.reshape(-1))
    return x


def both(op, *arrays, out=None, **attrs):
    with np.errstate(all="ignore"):
        return (
            select(op, HOST_PLATFORMS).call(*arrays, **attrs, out=None if out is None else out.copy()),
            select(op, ("reference",)).call(*arrays, **attrs, out=None if out is None else out.copy()),
        )


CASES = {
    "two arrays": (where, lambda x, y: (x > 0, x, y)),
    "zero": (where, lambda x, y: (x > 0, x, 0)),
    "number first": (where, lambda x, y: (x > 0, 1.5, y)),
    "array of one number": (where, lambda x, y: (x > 0, x, np.float32(-1e9).reshape(()))),
    "broadcast": (where, lambda x, y: (x[:1] > 0, x, y)),
    "relu": (relu, lambda x, y: (x,)),
    "clamp": (clamp, lambda x, y: (x, -0.5, 1)),
    "clamp, max below min": (clamp, lambda x, y: (x, 1, -1)),
    "leaky_relu": (leaky_relu, lambda x, y: (x, 0.01)),
    "leaky_relu of infinite slope": (leaky_relu, lambda x, y: (x, np.inf)),
    "leaky_relu_grad": (leaky_relu_grad, lambda x, y: (y, x, 0.2)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@in_cases("dtype", ["f4", "f8"])
@in_cases("shape", [(3, select_kernels.CHUNK + 7), (5, 13)])
def test_where_with_two_scalars(name, dtype, shape):
    op, inputs = CASES[name]
    arrays = inputs(numbers(*shape, dtype=dtype), numbers(*shape, dtype=dtype, seed=1))
    for out in (None, np.empty(shape, dtype), np.empty((shape[0], shape[1] * 2), dtype)[:, ::2]):
        found, right = both(op, *arrays, out=out)
        assert found.dtype == right.dtype == dtype
        np.testing.assert_array_equal(found, right)


def test_where_with_two_scalars_may_overwrite_an_input():
    x, y = numbers(select_kernels.MIN_ELEMENTS * 3), numbers(select_kernels.MIN_ELEMENTS * 3, seed=1)
    right = np.where(y > 0, x, y)
    np.testing.assert_array_equal(select(where, HOST_PLATFORMS).call(y > 0, x, y, out=x), right)
    x = numbers(select_kernels.MIN_ELEMENTS * 3)
    right = np.where(x > 0, x, x * np.float32(0.1))
    np.testing.assert_array_equal(select(leaky_relu, HOST_PLATFORMS).call(x, 0.1, out=x), right)


@in_cases("shape, axis", [
    ((5, 4 * reduce.ROW_ELEMENTS + 3), None), ((5, 4 * reduce.ROW_ELEMENTS + 3), (1,)), ((70, 100), (1,)),
    ((7, 31, 33), (1, 2)),
    ((70, 100), (0,)), ((600, 10), (1,)), ((reduce.MIN_ELEMENTS,), None),
])  # fmt: skip
@in_cases("keepdims", [False, True])
@pytest.mark.parametrize("op", [sum, mean])
def test_sums_of_long_rows(op, shape, axis, keepdims):
    x = np.random.default_rng(0).standard_normal(shape).astype("f4") + 1
    exact = CALLS[op](x.astype("f8"), axis=axis, keepdims=keepdims)
    out = np.empty(np.shape(exact), "f4")
    for place in (None, out):
        found = select(op, HOST_PLATFORMS).call(x, axis=axis, keepdims=keepdims, out=place)
        assert found.shape == np.shape(exact) and found.dtype == np.float32
        np.testing.assert_allclose(found, exact, rtol=1e-6)
    x[0] = np.inf
    assert np.isinf(select(op, HOST_PLATFORMS).call(x, axis=axis, keepdims=keepdims)).any()


PLACES = {
    "twice as large": np.arange(56) // 2,
    "clipped": np.clip((np.arange(56) - 1) // 2, 0, 27),
    "three times": np.arange(84) // 3,
    "every other": np.arange(14) * 2,
    "backwards": np.arange(28)[::-1].copy(),
    "the same": np.full(40, 3),
    "anywhere": np.random.default_rng(0).integers(-28, 28, 70),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
@in_cases("shape, axis", [((28, 90, 9), 0), ((20, 28, 30), 1), ((40, 20, 28), 2), ((28,), 0)])
@in_cases("dtype", ["f4", "f8", "i8"])
def test_index_add(name, shape, axis, dtype):
    places, rng = PLACES[name], np.random.default_rng(1)
    x, src = [
        rng.integers(-99, 99, (*shape[:axis], n, *shape[axis + 1 :])).astype(dtype) for n in (shape[axis], len(places))
    ]
    out = np.empty((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]
    for place in (None, out):
        found = select(index_add, HOST_PLATFORMS).call(x, places, src, axis=axis, out=place)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, select(index_add, ("reference",)).call(x, places, src, axis=axis))


@pytest.mark.parametrize(("name", "few"), [("twice as large", True), ("clipped", True), ("anywhere", False)])
def test_regular_indices_become_slices(name, few):
    found = index.slices(PLACES[name] % 28)
    assert (found is not None) == few
    together = sorted(
        (source, place)
        for places, sources in found or ()
        for place, source in zip(np.arange(28)[places], np.arange(56)[sources])
    )
    assert not few or together == list(enumerate(PLACES[name]))


@in_cases("dim", [0, 1, 2])
@in_cases("low", [0, -20])
def test_gather_many(dim, low):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 25, 30)).astype("f4")
    places = rng.integers(low, 20, [50 if axis == dim else 19 for axis in range(3)])
    np.testing.assert_array_equal(*both(gather, x, places, dim=dim))
    places[3, 3, 3] = 30
    with pytest.raises(IndexError, match="30"):
        select(gather, HOST_PLATFORMS).call(x, places, dim=dim)


@in_cases("axis", [0, 1, 2])
@in_cases("descending", [False, True])
def test_sorting_is_stable(axis, descending):
    x = numbers(11, 13, 17).round(1)  # many ties
    x[0] = np.nan
    assert (x == 0).any() and np.signbit(x[x == 0]).any()
    out = np.empty_like(x), np.empty(x.shape, "i8")
    for place in (None, out):
        found = select(sort, HOST_PLATFORMS).call(x, axis=axis, descending=descending, out=place)
        for mine, right in zip(found, select(sort, ("reference",)).call(x, axis=axis, descending=descending)):
            np.testing.assert_array_equal(mine, right)
            assert mine.dtype == right.dtype and mine.flags.c_contiguous


WINDOWS = {
    "apart": dict(kernel_size=(2, 2), stride=(2, 2)),
    "with pixels between": dict(kernel_size=(2, 1), stride=(3, 2)),
    "together": dict(kernel_size=(3, 2), stride=(1, 2)),
    "one pixel": dict(kernel_size=(1, 1), stride=(1, 1)),
    "divisor": dict(kernel_size=(2, 2), stride=(2, 2), divisor_override=3),
}  # fmt: skip


@pytest.mark.parametrize("name", WINDOWS)
@in_cases("shape", [(2, 3, 8, 8), (1, 2, 7, 9)])
def test_window_means(name, shape):
    options = dict(padding=(0, 0), ceil_mode=False, count_include_pad=True, divisor_override=None) | WINDOWS[name]
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")
    found, right = both(avg_pool2d, x, **options)
    np.testing.assert_allclose(found, right, rtol=1e-6, atol=1e-7)
    out = np.full(right.shape, np.nan, "f4")
    assert select(avg_pool2d, HOST_PLATFORMS).call(x, **options, out=out) is out
    np.testing.assert_array_equal(out, found)
    np.testing.assert_allclose(*both(avg_pool2d_grad, right, shape=shape, **options), rtol=1e-6, atol=1e-7)


@in_cases("dtype", ["f4", "f8"])
@in_cases("slope", [0.2, 1e-45, 0.0, 1.0, 1.5, -0.3])
def test_leaky_relu_keeps_the_bits_of_kinks(dtype, slope):
    kinks = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, 3e38, -3e38]
    with np.errstate(all="ignore"):
        found, right = both(leaky_relu, np.array(kinks, dtype), slope, out=np.empty(len(kinks), dtype))
    assert found.tobytes() == right.tobytes()


@in_cases("shape", [(2, 3, 1, 256), (2, 3, 5, 4), (1, 6, 1, 1)])
@in_cases("change", [lambda x: x, np.round, lambda x: np.where(x > 0, np.nan, x), lambda x: np.full_like(x, -np.inf)])
def test_global_maximum_pool(shape, change):
    size, x = shape[2:], change(numbers(*shape))
    options = {"stride": size, "padding": (0, 0), "dilation": (1, 1), "ceil_mode": False}
    for found, right in zip(*both(max_pool2d, x, kernel_size=size, **options)):
        np.testing.assert_array_equal(found, right)


def test_pool_of_every_other_pixel_is_not_of_the_whole_image():
    x = np.float32([[[[1, 5, 3]]]])
    options = {"stride": (1, 3), "padding": (0, 0), "dilation": (1, 2), "ceil_mode": True}
    for found, right in zip(*both(max_pool2d, x, kernel_size=(1, 3), **options)):
        np.testing.assert_array_equal(found, right)


def test_global_average_pool():
    x = np.random.default_rng(0).standard_normal((3, 5, 20, 25)).astype("f4")
    found, right = both(adaptive_avg_pool2d, x, output_size=(1, 1))
    np.testing.assert_allclose(found, right, atol=1e-7)
    assert found.shape == right.shape


@in_cases(
    "grad, x",
    [
        (np.ones((70, 50)), np.nan),
        (2.0, np.ones((70, 50))),
        (np.ones((70, 50)), np.ones(50)),
        (np.ones(50), -np.ones((70, 50))),
    ],
)
def test_leaky_relu_gradient_of_scalars_and_rows(grad, x):
    """An operand that is not an array of the result's shape goes to the reference kernel."""
    expected = np.where(np.asarray(x) > 0, grad, np.multiply(grad, -0.5))
    np.testing.assert_array_equal(CALLS[leaky_relu_grad](grad, x, -0.5), expected)


def test_largest_element_by_topk_is_the_first_of_sort():
    rng = np.random.default_rng(0)
    for shape, axis in (((5, 70), 1), ((70, 5), 0), ((3, 40, 4), 1)):
        x = rng.integers(-3, 3, shape).astype("f4")
        x[rng.random(shape) < 0.05] = np.nan
        x[rng.random(shape) < 0.1] = -0.0
        found, expected = flow.tensor(x).topk(1, axis), flow.tensor(x).sort(axis, True)
        for one, all_of_them in zip(found, expected):
            first = all_of_them.narrow(axis, 0, 1).contiguous()
            assert one.spec is first.spec and one.array.tobytes() == first.array.tobytes()
