"""Copies, gathers and cumulative sums as compiled tasks: NumPy's bits and errors, also in plans."""

import numpy as np
import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

from graph_models import FunctionGraph

import minflow as flow
from minflow.compat.namespaces.threads import Settings
from minflow.core.base.errors import OutOfRangeError
from minflow.core.kernels import CALLS
from minflow.core.op import OPS
from minflow.platforms.compiled.kernels import data_movement
from minflow.platforms.compiled.runtime import eager
from tests.single_tasks import run_tasks, tasks_of

RNG = np.random.default_rng(0)
THREADS = [1, 2, 5, 8]


def numbers(*shape, dtype="f4"):
    x = np.asarray(RNG.standard_normal(shape) * 1000)
    if dtype[0] == "f" and x.size > 5:
        x.flat[:5] = np.nan, np.inf, -np.inf, -0.0, 1e-42
    return x.astype(dtype)


def done(builder, arrays, *outs, **attrs):
    """True if a task refuses the contents of an array; None if there are no tasks."""
    steps = tasks_of(builder, arrays, outs, **attrs)
    if steps is None:
        return None
    run_tasks(steps)
    return any([step.refused.any() for step in steps if step.refused is not None])


def check(name, *arrays, **attrs):
    with np.errstate(all="ignore"):
        results = CALLS[OPS[name]](*arrays, **attrs)
    results = [np.ascontiguousarray(x) for x in (results if OPS[name].many else [results])]
    for Settings.threads in THREADS:
        outs = [np.full_like(x, 7) for x in results]
        assert done(getattr(data_movement, name), arrays, *outs, **attrs) is False
        for found, wanted in zip(outs, results):
            odd = np.isnan(wanted) if name in ("cumsum", "scatter_add") else np.zeros(wanted.shape, bool)
            assert np.array_equal(odd, odd & np.isnan(found))  # the sign of a NaN does not matter
            assert np.where(odd, 0, found).tobytes() == np.where(odd, 0, wanted).tobytes()


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(Settings, "threads", 2)


SHAPES = [
    (),
    (1,),
    (0, 3),
    (3, 0),
    (5, 7),
    (16, 16),
    (17, 33),
    (100, 31),
    (15, 300),
    (3, 5, 40),
    (2, 33, 3, 17),
    (7, 1, 9),
    (3, 9000),
    (40, 1000),
]


@pytest.mark.parametrize("dtype", ["f4", "i4", "f8", "i8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_copies(shape, dtype):
    x = numbers(*shape, dtype=dtype)
    views = (
        [
            x,
            x.T,
            x[..., None],
            x[..., ::-1],
            x[..., 1:],
            x[::-1],
            x[..., ::3],
            np.broadcast_to(x, (3, *shape)),
            np.moveaxis(x, 0, -1),
            x[..., :0],
            np.broadcast_to(x[..., :1], shape),
        ]
        if shape
        else [x, x[None]]
    )
    for view in views:
        if done(data_movement.clone, [view], np.empty(view.shape, dtype)) is None:
            assert dtype[1] == "8"  # few contiguous elements of eight bytes
        else:
            check("clone", view)


def test_copies_left_to_numpy():
    x = numbers(2, 2, 2, 2, 2, 3)
    for view in (x.T, x.astype("f2"), x > 0, np.zeros(5, "f4,i2")["f0"], numbers(4, 6, dtype="f8").T, 3.0):
        assert done(data_movement.clone, [view], np.empty(np.shape(view), getattr(view, "dtype", "f4"))) is None
    assert done(data_movement.clone, [x], np.empty(x.shape, "i4")) is None


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("sizes", [(1, 5, 1), (3,), (0, 4), (17, 33, 2), (1, 1, 1)])
def test_cat(dim, sizes):
    for dtype in ("f4", "i4"):
        parts = []
        for i, n in enumerate(sizes):
            shape = [6, 19, 34]
            shape[dim] = n
            x = numbers(*shape, dtype=dtype)
            parts.append(x.copy("F") if i % 2 else x)
        check("cat", *parts, dim=dim)
    check("cat", numbers(4, 6, 8, dtype="i8"), numbers(4, 6, 8, dtype="i8"), dim=0)
    assert done(data_movement.cat, [x > 0, x > 0], np.empty((12, 19, 34), bool), dim=0) is None


@pytest.mark.parametrize(
    "widths", [((0, 0), (1, 1), (1, 1)), ((2, 0), (0, 0), (0, 40)), ((0, 0),) * 3, ((1, 3), (20, 0), (0, 17))]
)
def test_pad(widths):
    for shape in ((3, 5, 34), (1, 1, 1), (0, 3, 4), (2, 19, 0)):
        for dtype in ("f4", "i4"):
            for value in (0, -3.5 if dtype == "f4" else 7):
                x = numbers(*shape, dtype=dtype)
                check("pad", x, widths=widths, value=value)
                check("pad", x.copy("F"), widths=widths, value=value)


PICKS = [
    ((5,), (9,), 0),
    ((4, 100), (4, 33), 1),
    ((90, 5), (40, 5), 0),
    ((3, 7, 5), (3, 4, 5), 1),
    ((3, 7, 1), (3, 7, 4), 2),
    ((300, 70), (300, 500), 1),
    ((70, 300), (500, 300), 0),
]


@pytest.mark.parametrize("shape, taken, dim", PICKS)
def test_gather_and_its_gradient(shape, taken, dim):
    index = RNG.integers(0, shape[dim], taken)
    for dtype in ("f4", "i8"):
        x = numbers(*shape, dtype=dtype)
        check("gather", x, index, dim=dim)
        check("gather", x, index - shape[dim], dim=dim, by="take_along_dim")
    x, src = numbers(*shape), numbers(*taken)
    check("scatter_add", x, index, src, dim=dim)
    check("scatter_add", x, index * 0, np.abs(src), dim=dim)  # all indices are equal: the order is NumPy's


@pytest.mark.parametrize(
    "shape, axis", [((5,), 0), ((5, 3), 0), ((3, 50), 1), ((2, 6, 40), 1), ((2, 6, 40), 2), ((9, 2), 0)]
)
def test_take(shape, axis):
    for dtype in ("f4", "f8", "i4", "i8"):
        for n in (1, 7, 3000):
            for index in (RNG.integers(-shape[axis], shape[axis], n), RNG.integers(0, shape[axis], (n, 2))):
                check("take", numbers(*shape, dtype=dtype), index, axis=axis)


@pytest.mark.parametrize("place", [0, 1, 40_000, 199_999])
@pytest.mark.parametrize("wrong", [-1, 50, 1 << 40, -(1 << 63)])
def test_index_out_of_range_is_refused(place, wrong):
    index = RNG.integers(0, 50, (2000, 100))
    index.flat[place] = wrong
    x, out = numbers(2000, 50), numbers(2000, 100)
    assert done(data_movement.gather, [x, index], out.copy(), dim=1, by="gather")
    assert done(data_movement.scatter_add, [x, index, out], x.copy(), dim=1, by="scatter_add")
    rows = numbers(3, 50)
    assert done(data_movement.take, [rows, index.reshape(-1)], np.empty((3, 200_000), "f4"), axis=1, by="embedding")
    assert done(data_movement.take, [rows.T.copy(), index], np.empty((2000, 100, 3), "f4"), axis=0, by="embedding")


def test_empty_axis():
    index = np.zeros((3, 2), "i8")
    assert done(data_movement.take, [np.empty((3, 0), "f4"), index], np.empty((3, 3, 2), "f4"), axis=1)
    assert done(data_movement.gather, [np.empty((3, 0), "f4"), index], np.empty((3, 2), "f4"), dim=1)


def test_gathers_left_to_numpy():
    x, index = numbers(4, 9), np.zeros((4, 3), "i8")
    out = np.empty((4, 3), "f4")
    assert done(data_movement.gather, [x, index.astype("i4")], out, dim=1) is None
    assert done(data_movement.gather, [x.T.copy().T, index], out, dim=1) is None
    assert done(data_movement.gather, [x, index[:2]], out[:2], dim=1) is None
    assert done(data_movement.gather, [x > 0, index], out > 0, dim=1) is None
    assert done(data_movement.scatter_add, [x, index, 1.0], x.copy(), dim=1) is None
    assert (
        done(data_movement.scatter_add, [np.zeros((4, 9), "i8"), index, index], np.zeros((4, 9), "i8"), dim=1) is None
    )
    assert done(data_movement.take, [x, index.astype("i4")], np.empty((4, 3, 9), "f4"), axis=0) is None
    assert done(data_movement.cumsum, [x.astype("f8")], x.astype("f8"), axis=0) is None


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape and np.prod(shape)])
def test_cumulative_sums(shape):
    x = numbers(*shape)
    y = np.where(np.isfinite(x), x, -0.0).astype("f4")
    for axis in range(len(shape)):
        check("cumsum", x, axis=axis)
        check("cumsum", y, axis=axis)


@pytest.mark.parametrize("shape", [(1,), (16,), (3, 70), (2, 5, 100), (700, 33)])
@pytest.mark.parametrize("descending", [True, False])
def test_topk(shape, descending):
    many = [
        numbers(*shape),
        np.asarray(RNG.integers(-3, 3, shape), "f4"),
        np.sort(numbers(*shape)),
        np.full(shape, np.nan, "f4"),
        np.where(RNG.random(shape) < 0.5, np.nan, -0.0).astype("f4"),
    ]
    for x in many:
        for k in (1, 5, 16):
            if k <= shape[-1]:
                check("topk", x, k=k, axis=len(shape) - 1, descending=descending)


def test_topk_left_to_numpy():
    x = numbers(40, 40)
    outs = [np.empty((40, 20), "f4"), np.empty((40, 20), "i8")]
    for given, k, axis in ((x, 20, 1), (x, 0, 1), (x, 5, 0), (x.astype("f8"), 5, 1), (x.T, 5, 1), (x[:, :0], 0, 1)):
        found = [out[:, :k].copy() for out in outs]
        assert data_movement.topk([given], found, None, k=k, axis=axis, descending=True) is None


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (32, 32), (3, 17, 5), (2, 2, 40, 33), (0, 4, 4), (128, 128)])
def test_tril_and_triu(shape):
    for diagonal in (-50, -3, 0, 1, 50):
        for name in ("tril", "triu"):
            check(name, numbers(*shape), diagonal=diagonal)
    assert done(data_movement.tril, [numbers(300, 300)], np.empty((300, 300), "f4"), diagonal=0) is None
    assert done(data_movement.tril, [numbers(0, 3)], np.empty((0, 3), "f4"), diagonal=0) is None


@pytest.mark.parametrize("large", [False, True])
def test_graph_error_names_the_index(large, on):
    """The failing call is a call of its own: earlier calls are done, and NumPy's kernel reports the error and its
    place.
    """
    rows = 30_000 if large else 3
    x, good = flow.randn(rows, 40), flow.randint(0, 40, (rows, 12))
    bad = good.clone()
    bad[rows - 1, 11] = bad[0, 11] = 40
    graph = FunctionGraph(lambda x, index: flow.gather(x * 2, 1, index).cumsum(1))
    along = FunctionGraph(lambda x, index: x[:, index[0]] + 1)
    for _ in range(2):
        assert np.array_equal(graph(x, good).numpy(), np.cumsum(np.take_along_axis(x.numpy() * 2, good.numpy(), 1), 1))
        with pytest.raises(OutOfRangeError, match=r"index 40 \(at position \(0, 11\) of the index\)") as caught:
            graph(x, bad)
        assert "test_data_movement.py" in caught.value.where
        assert np.array_equal(along(x, good).numpy(), x.numpy()[:, good.numpy()[0]] + 1)
        with pytest.raises(OutOfRangeError, match=r"index 40 \(at position 11 of the index\)"):
            along(x, bad)
    assert sum(
        [step.name == "gather_items" for call in graph._last.parts[0].plan.calls for step in tasks_in(call)]
    ) == (0 if large else 1)


def test_eager_caches_calls_on_transposed_views(on, monkeypatch):
    """Strided arrays too: each call uses the current elements."""
    made, usual = [], eager.new_call
    monkeypatch.setattr(eager, "new_call", lambda *given: made.append(given) or usual(*given))
    for _ in range(4):
        x = numbers(3, 70, 50)
        for view in (x.transpose(0, 2, 1), x.transpose(2, 1, 0)[::-1]):
            assert CALLS[OPS["clone"]](view).tobytes() == view.copy().tobytes()
    assert len(made) <= 2


def tasks_in(call):
    return getattr(getattr(call, "found", call), "steps", None) or ()
