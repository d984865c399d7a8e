"""Single operations as compiled tasks, also for NaN, infinities and -0: NumPy's bits, except for cross entropy; whole
plans.
"""

import itertools

import numpy as np
import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

from graph_models import TrainGraph

import minflow as flow
from minflow import nn
from minflow.compat.namespaces.threads import Settings
from minflow.core.kernels import CALLS, HOST_PLATFORMS, select
from minflow.core.op import OPS
from minflow.platforms import compiled
from minflow.platforms.compiled.kernels import cross_entropy, dropout, elementwise, pool
from minflow.platforms.compiled.runtime import eager
from tests.single_tasks import run_builder, run_tasks, tasks_of

SHAPES = [
    (),
    (1,),
    (3,),
    (16,),
    (5, 7),
    (100, 10),
    (1024,),
    (1025,),
    (3, 2000),
    (40, 1000),
    (0, 3),
    (7, 1, 9),
    (2, 3, 4, 5),
]
ODD = (np.nan, np.inf, -np.inf, 0.0, -0.0)


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(Settings, "threads", 2)


def numbers(shape, seed=0):
    """Random elements, with some special values."""
    rng = np.random.default_rng([seed, *shape])
    found = np.asarray(rng.standard_normal(shape) * 4, "f4")
    for odd in ODD[: found.size // 2]:
        found.flat[rng.integers(found.size)] = odd
    return found


def compiled_op(name, arrays, out, **attrs):
    """Write `out` by a compiled task; None if there is none."""
    steps = tasks_of(getattr(elementwise, name), arrays, [out], **attrs)
    return None if steps is None else run_tasks(steps) or out


def numpys(name, arrays, **attrs):
    with np.errstate(all="ignore"):
        return np.asarray(CALLS[OPS[name]](*arrays, **attrs))


def check(name, *arrays, **attrs):
    wanted = numpys(name, arrays, **attrs)
    (found,) = run_builder(getattr(elementwise, name), arrays, [wanted], **attrs)
    assert np.array_equal(np.isnan(wanted), np.isnan(found))
    odd = np.isnan(wanted)  # the sign of a NaN does not matter
    if name in ("relu", "relu6"):  # NumPy's maximum of -0 and 0 is either one
        odd |= wanted == 0
        assert np.array_equal(wanted == 0, found == 0)
    assert np.where(odd, 0, found).tobytes() == np.where(odd, 0, wanted).tobytes()


@pytest.mark.parametrize("name, shape", [*itertools.product(("add", "sub", "mul"), SHAPES)])
def test_arithmetic(name, shape):
    x = numbers(shape)
    check(name, x, numbers(shape, 1))
    for number in (0.9, 2, -3.5, float("inf"), 0):
        check(name, x, number)
        check(name, number, x)
    for k in range(1, len(shape)):
        if x.size and np.prod(shape[k:]) > 1:
            part = numbers(shape[k:], 2)
            check(name, x, part)
            check(name, part, x)
            check(name, x, part.reshape((1,) * k + part.shape))


@pytest.mark.parametrize(
    "shape",
    [
        (2, 3, 5),
        (1, 5, 4, 4),
        (3, 40, 1, 2),
        (5, 24, 2, 2),
        (9, 17, 3, 3),
        (2, 96, 8, 8),
        (3, 2, 70, 33),
        (4, 16, 2, 3, 5),
    ],
)
def test_per_channel_operand(shape):
    x, y = numbers(shape), numbers((shape[1], *[1] * (len(shape) - 2)), 1)
    for name in ("add", "sub", "mul"):
        for part in (y, y[None]):
            check(name, x, part)
            check(name, part, x)
    for part in (y[:1, ..., 0], y[:1], np.float32(2).reshape(())):  # one channel, or a scalar: left to NumPy
        assert compiled_op("mul", [x[:, :1].copy(), part.reshape((1,) * part.ndim)], np.empty_like(x[:, :1])) is None


def test_eager_compiles_per_channel_add(on, monkeypatch):
    called, usual = [], eager.CachedCall.__call__
    x, y, *others = flow.rand(64, 16, 2, 2), flow.rand(1, 16, 1, 1), flow.rand(2), flow.rand(64, 16, 1, 1)
    monkeypatch.setattr(eager.CachedCall, "__call__", lambda self, arrays: called.append(1) or usual(self, arrays))
    assert np.array_equal((x * y).numpy(), x.numpy() * y.numpy()) and len(called) == 1
    for other in (x, 2.0, *others):
        x * other
    x[:2] * y, x.reshape(4, 16, 8, 8) * y
    assert len(called) == 1


@pytest.mark.parametrize("shape", SHAPES)
def test_activations(shape):
    x, y = numbers(shape), np.asarray(np.maximum(numbers(shape, 1), 0))
    for name in ("relu", "relu6"):
        check(name, x)
    for name in ("relu_grad", "relu6_grad"):
        check(name, x, y)


@pytest.mark.parametrize("size", [1, 15, 4096, 4097, 70001])
def test_erf(size):
    """Within two ulp, as in `test_elementwise_fusion.py`."""
    x = numbers((size,)) / 2
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(compiled_op("erf", [x], np.empty_like(x)), numpys("erf", [x]), rtol=3e-7)


def test_eager_compiles_ops_on_large_arrays(on):
    for size in (100, 5000):
        x, y = numbers((size,)), numbers((size,), 1)
        x[:2] = -np.inf, np.nan
        found = flow.erf(flow.from_numpy(x)).numpy()
        assert np.array_equal(found, compiled_op("erf", [x], np.empty_like(x)), equal_nan=True) == (size > 4096)
        with np.errstate(invalid="ignore"):
            wanted = select(OPS["relu6_grad"], HOST_PLATFORMS).call(x, y)
            assert np.array_equal(CALLS[OPS["relu6_grad"]](x, y), wanted, equal_nan=True)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if np.prod(shape) > 1])
def test_sums_over_leading_axes(shape):
    for k in range(1, len(shape)):
        if np.prod(shape[k:]) > 1:
            check("sum_to", numbers(shape), shape=shape[k:])
            check("sum_to", np.full(shape, -0.0, "f4"), shape=shape[k:])


@pytest.mark.parametrize("size", [0, 1, 7, 8, 127, 128, 129, 8193, 20001])
@pytest.mark.parametrize("p", [0.0, 0.2, 0.5, 1.0])
def test_dropout(size, p):
    x, counter = numbers((size,)), np.random.default_rng(size).integers(-(2**63), 2**63 - 1, 2)
    with np.errstate(all="ignore"):
        wanted = CALLS[OPS["dropout"]](x, counter, p=p, offset=3)
    found = run_builder(dropout.dropout, [x, counter], wanted, p=p, offset=3)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, wanted))


@pytest.mark.parametrize(
    "shape, first, supported",
    [((6, 40), (2, 0), True), ((3, 4), (5, 0), False), ((6, 20), (0, 0), False), ((0, 40), (9, 0), True)],
)
def test_dropout_of_a_part(shape, first, supported):
    """A part of a global tensor, if it is contiguous and begins with a block, gets the bits of the whole."""
    whole = numbers((9, shape[1] if shape[1] != 20 else 40))
    x = np.ascontiguousarray(whole[tuple([slice(i, i + n) for i, n in zip(first, shape)])])
    counter, options = np.array([5, 1]), {"p": 0.5, "offset": 3, "part": (whole.shape, first)}
    with np.errstate(all="ignore"):
        wanted = CALLS[OPS["dropout"]](x, counter, **options)
    if not supported:
        assert tasks_of(dropout.dropout, [x, counter], wanted, **options) is None
        return
    found = run_builder(dropout.dropout, [x, counter], wanted, **options)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, wanted))


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("rows, classes", [(1, 1), (1, 3), (5, 10), (100, 16), (7, 17), (300, 33), (9, 9000), (0, 3)])
def test_cross_entropy(rows, classes, reduction):
    rng, options = np.random.default_rng(rows), {"ignore_index": -100, "reduction": reduction}
    for odd in (False, True):
        x, labels = (rng.standard_normal((rows, classes)) * 5).astype("f4"), rng.integers(0, classes, rows)
        if odd:
            x[1:2, 0], x[2:3, 0], x[4:5], labels[3:4] = np.nan, np.inf, -np.inf, -100
        grad = np.asarray(0.7, "f4")
        with np.errstate(all="ignore"):
            wanted = CALLS[OPS["softmax_cross_entropy"]](x, labels, **options)
            slope = CALLS[OPS["softmax_cross_entropy_grad"]](wanted[1], labels, grad, **options)
        found = run_builder(cross_entropy.softmax_cross_entropy, [x, labels], wanted, **options)
        found += run_builder(cross_entropy.softmax_cross_entropy_grad, [wanted[1], labels, grad], [slope], **options)
        for a, b in zip(found, (*wanted, slope), strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-9)


def test_labels_out_of_range():
    """They are refused earlier, except in a loaded graph: there the loss is NaN, and nothing beyond the row is read."""
    x, labels, options = numbers((3, 5)), np.array([1, 5, -1]), {"ignore_index": -100, "reduction": "mean"}
    x[:], one = 1, np.ones((), "f4")
    loss, shares = run_builder(cross_entropy.softmax_cross_entropy, [x, labels], [one, x], **options)
    (slope,) = run_builder(cross_entropy.softmax_cross_entropy_grad, [shares, labels, one], [x], **options)
    assert np.isnan(loss) and np.isnan(slope[1:]).all() and np.isfinite(slope[0]).all()


def test_counters():
    check("add", np.array(3), 1)
    check("add", np.arange(5), 2)


def test_unsupported_calls_fall_back():
    x, out = numbers((8, 16)), np.empty((8, 16), "f4")
    assert compiled_op("add", [x, numbers((8, 1))], out) is None
    assert compiled_op("add", [x.T, x.T], out.T) is None
    assert compiled_op("mul", [x.astype("f8"), 2.0], out.astype("f8")) is None
    assert compiled_op("mul", [x, 1e300], out) is None
    assert compiled_op("mul", [x, 1 << 40], out) is None
    assert compiled_op("add", [np.arange(5), np.arange(5)], np.arange(5)) is None
    assert compiled_op("add", [numbers((1, 16)), numbers((8, 1))], out) is None
    assert compiled_op("sum_to", [x], out[:, :1], shape=(8, 1)) is None
    assert compiled_op("sum_to", [numbers((0, 3))], np.empty(3, "f4"), shape=(3,)) is None


def test_in_place():
    x = numbers((5, 700))
    wanted = numpys("mul", [x, x])
    assert np.array_equal(compiled_op("mul", [x, x], x), wanted, equal_nan=True)


def test_training_step_is_few_calls(kernels_of_numpy):
    """Besides the programs, only the label check and matrix products may be calls."""
    x, y, losses = flow.randn(64, 784), flow.randint(0, 10, (64,)), []
    for used in (False, True):
        compiled.use(used)
        flow.manual_seed(1)
        model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
        graph = TrainGraph(model, nn.CrossEntropyLoss(), flow.optim.SGD(model.parameters(), lr=0.1))
        losses.append([graph(x, y).item() for _ in range(4)])
    plan = graph._last.parts[0].plan
    names = [node.op.name for node, unit in zip(plan.units[1], plan.units[0]) if not hasattr(unit, "steps")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert set(names) <= {"checked_labels", "matmul"}


@pytest.mark.parametrize("shape", [(2, 3, 1, 1), (1, 5, 7, 9), (4, 16, 8, 8), (9, 32, 56, 56), (1, 1, 64, 64)])
def test_global_average_pool(shape):
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")
    wanted = x.mean((2, 3), keepdims=True, dtype="f8")
    (out,) = run_builder(pool.adaptive_avg_pool2d, [x], [wanted], output_size=(1, 1))
    np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=2e-7)
    x[0, 0, 0, 0] = np.nan
    (out,) = run_builder(pool.adaptive_avg_pool2d, [x], [wanted], output_size=(1, 1))
    assert np.isnan(out[0, 0]).all() and np.isfinite(out).sum() == out.size - 1


def test_other_means_fall_back_to_numpy():
    def steps(x, *size):
        return tasks_of(pool.adaptive_avg_pool2d, [x], [np.empty((*x.shape[:2], *size), x.dtype)], output_size=size)

    assert steps(np.ones((2, 3, 8, 8), "f4"), 1, 1) is not None
    for x in (
        np.ones((2, 3, 8, 8)),
        np.ones((2, 3, 65, 64), "f4"),
        np.ones((0, 3, 8, 8), "f4"),
        np.ones((2, 3, 8, 8), "f4").transpose(0, 1, 3, 2)[..., ::2],
    ):
        assert steps(x, 1, 1) is None
    assert steps(np.ones((2, 3, 8, 8), "f4"), 2, 2) is None
