"""Tiled attention and its gradient, against float64 and the unfused operations, at odd sizes and with any mask."""

import numpy as np
import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

from minflow.core.kernels import CALLS
from minflow.core.ops.attention import scaled_dot_product_attention as op
from minflow.platforms.compiled.kernels import attention
from tests.single_tasks import run_builder, same_bits, tasks_of

SIZES = [
    (1, 1, 1, 1, 1),
    (2, 3, 5, 7, 9),
    (3, 17, 33, 16, 32),
    (2, 130, 70, 33, 20),
    (1, 60, 257, 64, 48),
    (6, 64, 64, 32, 32),
]  # items, queries, keys, head width, value width
PLAIN = dict(scale=1.0, nowhere=False)


def arguments(size, mask=None, seed=0):
    items, rows, keys, width, depth = size
    rng = np.random.default_rng((seed, *size))
    q, k, v = [rng.standard_normal((items, *s)) for s in ((rows, width), (keys, width), (keys, depth))]
    return [q, k, v, 0 if mask is None else mask], rng.standard_normal((items, rows, depth))


def both(args, grad, **attrs):
    """(out, gradients) of the compiled kernel in float32, and the same in float64."""
    attrs = PLAIN | attrs
    exact = CALLS[op](*args, **attrs)
    exact_grads = CALLS[op.gradient](grad, *args, **attrs, needs=7)
    single = [a.astype("f4") if isinstance(a, np.ndarray) and a.dtype == "f8" else a for a in (grad, *args)]
    (out,) = run_builder(attention.attention, single[1:], [exact], **attrs)
    grads = run_builder(attention.attention_grad, single, exact_grads[:3], **attrs, needs=7)
    return [out, *grads], [exact, *exact_grads[:3]]


def near(found, exact):
    for a, b in zip(found, exact):
        np.testing.assert_allclose(a, b, rtol=0, atol=4e-6 * max(1, np.nanmax(abs(b), initial=0)))


def masks(size, kind):
    _, rows, keys, *_ = size
    shown = (
        np.tril(np.ones((rows, keys), bool))
        if kind == "causal"
        else np.random.default_rng(1).random((rows, keys)) < 0.4
    )
    if kind == "empty rows":
        shown[::3] = False
    return shown


@pytest.mark.parametrize("size", SIZES)
def test_error_against_float64(size):
    near(*both(*arguments(size), scale=0.3))


@pytest.mark.parametrize("nowhere", [False, True])
@pytest.mark.parametrize("kind", ["causal", "random", "empty rows"])
@pytest.mark.parametrize("size", SIZES)
def test_masks(size, kind, nowhere):
    """Including masks that leave a query nothing."""
    found, exact = both(*arguments(size, masks(size, kind)), scale=0.5, nowhere=nowhere)
    assert all((np.isnan(a) == np.isnan(b)).all() for a, b in zip(found, exact))
    assert kind != "empty rows" or np.isnan(found[0]).any() != nowhere
    near(found, exact)


def test_per_item_masks_in_any_layout():
    size = (4, 40, 70, 20, 24)
    args, grad = arguments(size, np.random.default_rng(3).random((4, 1, 70)) < 0.5)
    straight, _ = both(args, grad, nowhere=True)
    turned = [
        x.swapaxes(-1, -2).copy().swapaxes(-1, -2) if isinstance(x, np.ndarray) and x.dtype == "f8" else x for x in args
    ]
    single = [x.astype("f4") if isinstance(x, np.ndarray) and x.dtype == "f8" else x for x in turned]
    assert not single[0].flags.c_contiguous
    attrs = PLAIN | dict(nowhere=True)
    (out,) = run_builder(attention.attention, single, [CALLS[op](*args, **attrs)], **attrs)
    assert out.tobytes() == straight[0].tobytes()
    near(*both(args, grad, nowhere=True))


def test_bits_do_not_depend_on_thread_count():
    args, grad = arguments((3, 400, 300, 33, 20), masks((0, 400, 300), "causal"))
    same_bits(lambda: both(args, grad)[0], (1, 2, 8))


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_nan_and_infinity_spread_as_in_numpy(number):
    args, grad = arguments((3, 30, 80, 16, 16))
    clean, _ = both(args, grad)
    args[0][1, 4, 3] = number
    with np.errstate(invalid="ignore"):
        found, exact = both(args, grad)
    assert all(a[[0, 2]].tobytes() == b[[0, 2]].tobytes() for a, b in zip(found, clean))
    assert np.isnan(found[0][1, 4]).all() and np.isfinite(np.delete(found[0][1], 4, 0)).all()
    assert all((np.isnan(a) == np.isnan(b)).all() for a, b in zip(found, exact))


def test_large_scores():
    """Their rounding error is large as well: compare with float64 of the products that float32 computes exactly."""
    args, grad = arguments((2, 50, 90, 24, 24))
    args[:2] = [np.round(x * 4) for x in args[:2]]
    near(*both(args, grad, scale=2.0))


def test_unsupported_calls_fall_back():
    args, _grad = arguments((2, 3, 5, 7, 9))
    exact = CALLS[op](*args, **PLAIN)
    assert tasks_of(attention.attention, args, [exact], **PLAIN) is None
    outs = [exact.astype("f4")]
    single = [a.astype("f4") if isinstance(a, np.ndarray) else a for a in args]
    apart = [np.repeat(np.repeat(single[0], 2, 1), 2, 2)[:, ::2, ::2], *single[1:]]
    assert tasks_of(attention.attention, apart, outs, **PLAIN) is None
    assert tasks_of(attention.attention, [*single[:3], np.ones((2, 3, 1), bool)], outs, **PLAIN) is None
