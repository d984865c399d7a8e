"""minflow.platforms.compiled.kernels.gemm: matrix products against NumPy's in float64.

For all shapes: rounding errors of float32 sums; no write outside the result; NaN and Inf are propagated; the same bits
at any thread count, whatever scratch memory holds.
"""

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

pytest.importorskip("numba")
from kernel_checks import EPS, examples

import minflow as flow
from minflow.core.kernels import observed
from minflow.core.ops.linalg import matmul
from minflow.platforms import compiled
from minflow.platforms.compiled.kernels import gemm
from minflow.platforms.compiled.runtime import task_scheduler
from tests.single_tasks import guarded_array, run_tasks, same_bits, tasks_of

SIZES = st.one_of(st.integers(1, 40), st.sampled_from([48, 63, 64, 65, 100, 128, 200]))


def unwritten(shape):
    """A result filled with NaN, and a function that is True if the memory around it is unchanged."""
    out, untouched = guarded_array(shape)
    out[...] = np.nan
    return out, untouched


def product(a, b, **more):
    """Compute a @ b by compiled tasks; None if the kernel does not support them."""
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    out, untouched = unwritten(shape)
    made = compiled_product(a, b, out, **more)
    assert untouched()
    return out if made else None


def compiled_product(a, b, out, **more):
    made = tasks_of(lambda arrays, outs, workspace: gemm.product(*arrays, *outs, workspace, **more), (a, b), [out])
    if made is not None:
        run_tasks(made)
    return made is not None


def close(found, a, b, truth=None):
    """True if `found` is the product, within the rounding error of float32 sums."""
    a, b = a.astype("f8"), b.astype("f8")
    bound = (np.abs(a) @ np.abs(b) + (0 if truth is None else np.abs(truth))) * EPS * (4 + a.shape[-1] / 8)
    return np.all(np.abs(found - (a @ b if truth is None else truth)) <= bound)


def numbers(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype("f4")


@examples(150, 40)
@example(1, 1, 1, (), (), False, False)
@example(14, 16, 32, (), (), True, True)
@example(15, 17, 33, (), (), False, True)
@example(64, 32, 64, (3, 2), (3, 2), False, True)
@example(5, 40, 70, (4,), (), False, False)
@example(5, 40, 70, (4,), (), True, False)
@example(5, 8, 9, (4, 1), (3,), True, True)
@given(
    SIZES,
    SIZES,
    SIZES,
    st.sampled_from([(), (1,), (3,), (2, 3)]),
    st.sampled_from([(), (1,), (3,), (2, 1)]),
    st.booleans(),
    st.booleans(),
)
def test_products(n, k, p, left, right, ta, tb):
    a, b = numbers(*left, *((k, n) if ta else (n, k))), numbers(*right, *((p, k) if tb else (k, p)), seed=1)
    a, b = (a.swapaxes(-1, -2) if ta else a), (b.swapaxes(-1, -2) if tb else b)
    assert close(product(a, b), a, b)


@pytest.mark.parametrize(
    ("n", "k", "p"),
    [
        (100, 784, 512),
        (512, 100, 784),
        (700, 900, 40),
        (40, 1700, 300),
        (1, 3000, 50),
        (333, 1000, 513),
        (900, 33, 1000),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_products_of_several_chunks(n, k, p, turned):
    a, b = (numbers(k, n).T, numbers(p, k).T) if turned else (numbers(n, k), numbers(k, p))
    assert close(product(a, b), a, b)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.transpose(0, 2, 1, 3),  # heads of an attention layer
        lambda x: x.transpose(0, 2, 3, 1),
        lambda x: x[:, ::2, 3:, 1:20],
        lambda x: x[::-1, ::-1],
        lambda x: np.broadcast_to(x[:1, :, :, :], x.shape),
        lambda x: x[:, :, :, :1].swapaxes(2, 3),
        lambda x: x[..., 5:6],
        lambda x: np.broadcast_to(x[0, 0, :1], x.shape),
    ],
)
def test_views(view):
    x = view(numbers(4, 6, 24, 32))
    y = view(numbers(4, 6, 24, 32, seed=1)).swapaxes(-1, -2)
    assert close(product(x, y), x, y)


def test_strided_matrices_fall_back_to_numpy():
    assert product(numbers(20, 40)[:, ::2], numbers(20, 30)) is None
    assert product(numbers(20, 20), numbers(20, 60)[:, ::2]) is None
    assert product(numbers(0, 20), numbers(20, 30)) is None
    assert product(numbers(20, 0), numbers(0, 30)) is None
    assert product(numbers(20, 20), numbers(20, 30).astype("f8")) is None


@pytest.mark.parametrize(("n", "k", "p"), [(100, 784, 512), (30, 40, 50), (40, 1700, 300), (17, 16, 64)])
@pytest.mark.parametrize("act", ["", "relu", "relu6"])
def test_bias_and_activation(n, k, p, act):
    a, b, bias = numbers(n, k), numbers(p, k).T, numbers(p)
    truth = np.clip(a.astype("f8") @ b + bias, {"": -np.inf}.get(act, 0), 6 if act == "relu6" else np.inf)
    assert close(product(a, b, bias=bias, act=act), a, b, truth)


@pytest.mark.parametrize(("n", "k", "p"), [(512, 100, 784), (10, 100, 512), (30, 900, 50), (65, 30, 33)])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("shown", [False, True])
def test_weight_update(n, k, p, in_place, shown):
    a, b, weight, rate = numbers(k, n).T, numbers(k, p), numbers(n, p, seed=2), np.array(0.25)
    truth = weight - 0.25 * (a.astype("f8") @ b)
    (updated, untouched), (grad, grad_untouched) = unwritten((n, p)), unwritten((n, p))
    if in_place:
        updated[...] = weight
        weight = updated
    assert compiled_product(a, b, grad if shown else None, weight=weight, rate=rate, updated=updated)
    assert untouched() and grad_untouched() and close(updated, a, b, truth)
    assert close(grad, a, b) if shown else np.isnan(grad).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nonfinite_values_are_propagated(value):
    a, b = numbers(30, 70), numbers(70, 50)
    a[3, 69], b[5, 49] = value, value
    with np.errstate(invalid="ignore"):
        truth = a @ b
    found = product(a, b)
    assert np.array_equal(np.isnan(found), np.isnan(truth)) and np.array_equal(np.isinf(found), np.isinf(truth))
    assert np.isnan(product(a, b, bias=numbers(50), act="relu")[np.isnan(truth)]).all()


@pytest.mark.parametrize(
    ("left", "right"),
    [((100, 784), (784, 512)), ((2100, 300), (300, 40)), ((32, 64, 32), (32, 32, 64)), ((600, 900), (900, 500))],
)
def test_bits_do_not_depend_on_thread_count(left, right):
    a, b = numbers(*left), numbers(*right)

    def with_other_memory():
        (
            task_scheduler.THREAD_SCRATCH.grow(1 << 22),
            task_scheduler.THREAD_SCRATCH.memory.fill(255),
        )  # NaN; other scratch memory holds earlier products
        return [product(a, b)]

    same_bits(with_other_memory, (1, 2, 3, 4))


def test_eager_products_use_blas(kernels_of_numpy):
    """Measured: the setup costs as much as it saves, except for the products of `thin_gemm.py`."""
    compiled.use()
    platforms = []
    with observed(lambda op, platform, *_: platforms.append((op, platform))):
        flow.ones(300, 400) @ flow.ones(400, 500)
    assert (matmul, "reference") in platforms and (matmul, "compiled") not in platforms
