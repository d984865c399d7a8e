"""The legacy array functions in jobs and on eager tensors: numpy's numbers, and the mistakes."""

import importlib

import numpy as np
import pytest
from legacy import both, in_job

import minflow as flow
import minflow.typing as tp
from minflow.autograd import gradcheck
from minflow.core.base.errors import DTypeError, JobError, OutOfRangeError, ShapeError, TraceError
from minflow.job.legacy import arrays as a
from minflow.job.legacy import padding as d
from minflow.job.legacy import picking as p
from minflow.job import FLOW, NN

X = np.arange(24, dtype="float32").reshape(2, 3, 4)
ROWS = np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 9]])


def check(function, wanted, *arrays):
    np.testing.assert_array_equal(both(function, *arrays), wanted)


# ---- shapes ------------------------------------------------------------------------------------------------------


def test_shapes():
    check(lambda x: a.reshape(x, [4, -1]), X.reshape(4, 6), X)
    check(lambda x: flow.dynamic_reshape(x, (-1,)), X.ravel(), X)
    check(flow.reshape_like, X.reshape(6, 4), X, np.zeros((6, 4), "int8"))
    check(lambda x: a.flatten(x, start_dim=1), X.reshape(2, 12), X)
    check(lambda x: a.transpose(x, [2, 0, 1]), X.transpose(2, 0, 1), X)
    check(lambda x: flow.expand_dims(x, -1), X[..., None], X)
    check(lambda x: flow.reverse(x, [0, -1]), X[::-1, :, ::-1], X)
    check(lambda x: flow.reverse(x, 1), X[:, ::-1], X)
    check(lambda x: a.expand(x, [2, -1, 5]), np.broadcast_to(ROWS[:, :1], (2, 3, 5)), ROWS[:, :1])


def test_squeeze():
    x = X[:, None, :, None]
    check(a.squeeze, X, x)
    check(lambda b: a.squeeze(b, [1]), X[:, :, None], x)
    check(lambda b: a.squeeze(b, axis=[-2, 1]), X, x)
    with pytest.raises(ShapeError, match=r"axis 2 has size 3(.|\n)*axis=\[1, 3\]"):
        a.squeeze(flow.tensor(x), [2])
    with pytest.raises(DTypeError, match=r"axis is 1(.|\n)*axis=\[1\]"):
        a.squeeze(flow.tensor(x), 1)


def test_broadcast_like():
    check(flow.broadcast_like, np.broadcast_to(X[0], X.shape), X[0], X)
    check(lambda x, y: flow.broadcast_like(x, y, broadcast_axes=[1]), np.broadcast_to(X[:, :1], X.shape), X[:, 0], X)


def test_mistakes_with_shapes():
    x = flow.tensor(X)
    with pytest.raises(DTypeError, match=r"perm is 0(.|\n)*perm=\[2, 1, 0\]"):
        a.transpose(x, 0, 1)
    with pytest.raises(ShapeError, match=r"\(0, 0, 1\)"):
        a.transpose(x, [0, 0, 1])
    with pytest.raises(DTypeError, match="conjugate=True"):
        a.transpose(x, [0, 1, 2], conjugate=True)
    with pytest.raises(ShapeError, match="24"):
        a.reshape(x, [5, 5])
    with pytest.raises(DTypeError, match=r"shape is 24"):
        a.reshape(x, 24)
    with pytest.raises(DTypeError, match=r"argument 3 .* 3 is not a string"):
        a.reshape(x, 8, 3)


# ---- joined and cut ----------------------------------------------------------------------------------------------


def test_concat_and_stack():
    for axis in (0, 1, -1):
        check(lambda x, y, axis=axis: a.concat([x, y], axis), np.concatenate([X, X + 1], axis), X, X + 1)
        check(lambda x, y, axis=axis: a.stack([x, y], axis=axis), np.stack([X, X + 1], axis), X, X + 1)
    check(lambda x: a.concat([x]), X, X)
    check(lambda x, y: a.concat(values=[x, y], axis=2), np.concatenate([X, X], 2), X, X)
    with pytest.raises(ShapeError, match="3"):
        a.concat([flow.ones(2, 3), flow.ones(2, 4)])
    with pytest.raises(DTypeError, match="at least one tensor"):
        a.concat([])
    with pytest.raises(DTypeError, match="a list"):
        a.concat(flow.ones(2, 3))


def test_slice():
    check(lambda x: flow.slice(x, [None, 1, 0], [None, 2, -1]), X[:, 1:3], X)
    check(lambda x: flow.slice(x, begin=[1, -2, 1], size=[1, 1, 3]), X[1:, 1:2, 1:4], X)
    for size, message in (([None, 3, None], "3 elements from 1"), ([None, 0, None], "0 elements")):
        with pytest.raises(OutOfRangeError, match=message):
            flow.slice(flow.tensor(X), [None, 1, None], size)
    with pytest.raises(ShapeError, match=r"begin is \[0\]"):
        flow.slice(flow.tensor(X), [0], [1])


@pytest.mark.parametrize("entries", [
    [(None, None, None)], [(0, 2, 1), (None, None, 2), (1, -1, 1)], [(None, None, -1), (2, 0, -1)], [(1, 1, 1)],
    [(None,) * 3, (-1, -4, -2), (3, None, -1)],
])  # fmt: skip
def test_slice_v2(entries):
    index = tuple(slice(*entry) for entry in entries)
    check(lambda x: flow.slice_v2(x, entries), X[index], X)
    wanted = X.copy()
    wanted[index] = -X[index]
    check(lambda x: flow.slice_update(x, flow.math.negative(flow.slice_v2(x, entries)), entries), wanted, X)


def test_mistakes_with_slices():
    x = flow.tensor(X)
    for entries, message in (([(3, None, 1)], "start 3 .* axis 0, which has size 2"), ([(0, 3, 1)], "stop 3"),
                             ([(0, 1, 0)], "step of axis 0 is 0")):
        with pytest.raises(OutOfRangeError, match=message):
            flow.slice_v2(x, entries)
    with pytest.raises(ShapeError, match="at most 3"):
        flow.slice_v2(x, [(0, 1, 1)] * 4)
    with pytest.raises(ShapeError, match=r"entry 1 .* \(0, 1\)"):
        flow.slice_v2(x, [(0, 1, 1), (0, 1)])
    with pytest.raises(ShapeError, match=r"\(1,\), the place for it \(2, 3, 4\)"):
        flow.slice_update(x, flow.ones(1), [])


def test_slice_update_writes_into_a_tensor():
    """As in OneFlow 1.0; a Blob, and what wants a gradient, stay as they are."""
    x, v = flow.tensor(X), flow.tensor(X, requires_grad=True)
    assert flow.slice_update(x, flow.zeros(1, 3, 4), [(0, 1, 1)]) is x and not x[0].any() and x[1].any()
    assert not flow.slice_update(input=v, update=flow.zeros(1, 3, 4), slice_tup_list=[(0, 1, 1)])[0].any()
    np.testing.assert_array_equal(v.detach().numpy(), X)


def test_slices_by_the_words_of_1_0():
    x, entries = flow.tensor(X), [[None, None, None], [0, 3, 2], [1, 4, 2]]
    for found in (flow.slice(x, entries), flow.slice(x, slice_tup_list=entries), flow.slice(input=x, begin=entries)):
        np.testing.assert_array_equal(found.numpy(), X[:, 0:3:2, 1:4:2])
    where = flow.tensor([[0], [2]])
    assert flow.scatter_nd(index=where, update=flow.tensor([1.0, 2.0]), shape=[3]).tolist() == [1, 0, 2]
    assert flow.gather_nd(input=flow.arange(3), index=where).tolist() == [0, 2]
    found = flow.tensor_scatter_nd_update(tensor=flow.arange(3), indices=where, updates=where[:, 0])
    assert found.tolist() == [0, 1, 2]


# ---- by index ----------------------------------------------------------------------------------------------------


def test_gather():
    ids = np.int32([[2, 0], [1, 1]])
    check(lambda x, i: p.gather(x, i, axis=1), X[:, ids], X, ids)
    check(p.gather, ROWS[ids], ROWS, ids)
    check(lambda x, i: p.gather(x, i, batch_dims=1), np.stack([X[0, ids[0]], X[1, ids[1]]]), X, ids)
    deep = np.int32([[[0], [3], [1]], [[2], [2], [0]]])
    check(lambda x, i: p.gather(x, i, batch_dims=2), np.take_along_axis(X, deep, 2), X, deep)
    with pytest.raises(OutOfRangeError, match="3"):
        p.gather(flow.tensor(ROWS), flow.tensor([3]))
    with pytest.raises(DTypeError, match="dim_gather"):
        p.gather(flow.tensor(ROWS), 1, flow.tensor([0]))
    with pytest.raises(ShapeError, match="batch_dims 1 and axis 2"):
        p.gather(flow.tensor(X), flow.tensor(ids), axis=2, batch_dims=1)
    check(lambda x, i: flow.dim_gather(x, 1, i), np.take_along_axis(ROWS[:2], ids.astype("int64"), 1), ROWS[:2], ids)


def test_gather_nd_and_scatter_nd():
    check(flow.gather_nd, ROWS[[0, 2], [1, 2]], ROWS, np.int32([[0, 1], [2, 2]]))
    check(flow.gather_nd, X[[[1], [0]]], X, np.int32([[[1]], [[0]]]))
    once, twice = np.int32([[0], [2]]), np.int32([[1], [1]])
    update = np.float32([[10, 20, 30], [1, 2, 3]])
    wanted = np.zeros((4, 3), "float32")
    wanted[1] = update.sum(0)
    check(lambda i, u: flow.scatter_nd(i, u, [4, 3]), wanted, twice, update)
    wanted = ROWS.copy()
    wanted[[0, 2]] = update
    check(flow.tensor_scatter_nd_update, wanted, ROWS, once, update)
    wanted = ROWS.copy()
    wanted[1] += update.sum(0)
    check(flow.tensor_scatter_nd_add, wanted, ROWS, twice, update)
    with pytest.raises(ShapeError, match=r"updates has shape \(2,\), the places for it \(2, 3\)"):
        flow.scatter_nd(flow.tensor(once), flow.ones(2), [4, 3])
    with pytest.raises(ShapeError, match="size 3, for a shape"):
        flow.gather_nd(flow.tensor(ROWS), flow.tensor([[0, 1, 2]]))


def test_slopes_of_indexing():
    x = flow.tensor(ROWS.astype("float64"), requires_grad=True)
    ids = flow.tensor([[0, 1], [0, 1], [2, 2]])
    for function in (
        lambda v: flow.gather_nd(v, ids),
        lambda v: p.gather(v, ids, batch_dims=1),
        lambda v: p.gather(v, ids[0], axis=1),
        lambda v: flow.slice_v2(v, [(None, None, -2)]),
        lambda v: flow.slice_update(v, v[:1] * 2, [(1, 2, 1)]),
        lambda v: flow.tensor_scatter_nd_add(v, ids, v[0] * v[1]),
        lambda v: flow.scatter_nd(ids, v[0] * v[1], [3, 3]),
    ):
        assert gradcheck(function, x)


def test_one_hot():
    ids = np.int32([[0, 2], [1, 1]])
    eye = np.eye(3, dtype="int32")[ids]
    check(lambda i: p.one_hot(i, 3), eye, ids)
    assert both(lambda i: p.one_hot(i, 3), ids).dtype == np.int32
    check(lambda i: p.one_hot(i, 3, axis=0), np.moveaxis(eye, -1, 0), ids)
    check(lambda i: p.one_hot(i, depth=3, on_value=5.5, off_value=-1, dtype=flow.float32), np.where(eye, 5.5, -1), ids)
    check(lambda i: p.one_hot(i, 3, 7, 2), np.where(eye, 7, 2), ids)
    with pytest.raises(DTypeError, match="on_value is 0.5"):
        p.one_hot(flow.tensor(ids), 3, 0.5)
    with pytest.raises(OutOfRangeError, match="2"):
        p.one_hot(flow.tensor(ids), 2)


# ---- by condition and order --------------------------------------------------------------------------------------


def test_where():
    cond = np.int32([[3], [0], [-1]])
    check(p.where, np.where(cond, ROWS, -ROWS), cond, ROWS, -ROWS)
    check(lambda x: p.where(flow.math.greater(x, 4), x, 0.0), np.where(ROWS > 4, ROWS, 0), ROWS)
    with pytest.raises(DTypeError, match="y is missing"):
        p.where(flow.tensor(cond), flow.tensor(ROWS))
    check(lambda x, m: p.masked_fill(x, m, -5), np.where(cond, -5, ROWS), ROWS, np.broadcast_to(cond, (3, 3)).copy())


def test_positions_of_what_is_not_zero():
    x = flow.tensor([[0, 1, 0], [2, 0, 2]])
    assert p.argwhere(x).tolist() == [[0, 1], [1, 0], [1, 2]] and p.argwhere(x).dtype is flow.int32
    assert p.argwhere(x, flow.int64).dtype is flow.int64
    assert p.nonzero(x).tolist() == [[0, 1, 1], [1, 0, 2]]
    assert p.where(x).tolist() == p.argwhere(x).tolist()
    for function in (p.argwhere, p.nonzero, p.where):
        with pytest.raises(TraceError, match="depend on numbers"):
            in_job(function, ROWS)


def test_orders():
    x = np.float32([[3, 1, 2], [5, 9, 7]])
    check(p.sort, np.sort(x), x)
    check(lambda b: p.sort(b, direction="DESCENDING"), np.sort(x)[:, ::-1], x)
    check(lambda b: p.argsort(b, 0, "DESCENDING"), np.argsort(-x, 0), x)
    assert both(p.argsort, x).dtype == np.int32
    with pytest.raises(OutOfRangeError, match="direction is 'down'"):
        p.sort(flow.tensor(x), -1, "down")


# ---- borders -----------------------------------------------------------------------------------------------------


def test_pads():
    x = np.arange(9, dtype="float32").reshape(1, 1, 3, 3)
    check(
        lambda b: flow.pad(b, [(0, 0), (1, 0), (0, 2), (1, 1)], 7),
        np.pad(x, [(0, 0), (1, 0), (0, 2), (1, 1)], constant_values=7), x
    )
    wide = [(0, 0), (0, 0), (1, 2), (2, 1)]
    check(lambda b: flow.zero_pad2d(b, (2, 1, 1, 2)), np.pad(x, wide), x)
    check(
        lambda b: flow.constant_pad2d(b, 1, -3.5), np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-3.5), x
    )
    check(lambda b: flow.reflection_pad2d(b, (2, 1, 1, 2)), np.pad(x, wide, mode="reflect"), x)
    check(lambda b: flow.replication_pad2d(b, (2, 1, 1, 2)), np.pad(x, wide, mode="edge"), x)
    check(lambda b: flow.replication_pad2d(b, 5), np.pad(x, [(0, 0), (0, 0), (5, 5), (5, 5)], mode="edge"), x)
    for function in (
        lambda b: d.reflection_pad2d(b, 2), lambda b: d.replication_pad2d(b, 2), lambda b: d.zero_pad2d(b, 1)
    ):
        assert gradcheck(function, flow.tensor(x.astype("float64"), requires_grad=True))


def test_mistakes_with_pads():
    x = flow.ones(1, 1, 3, 3)
    with pytest.raises(OutOfRangeError, match="3 and 3 pixels on axis 2 of size 3(.|\n)*0 to 2"):
        flow.reflection_pad2d(x, 3)
    with pytest.raises(OutOfRangeError, match="-1"):
        flow.replication_pad2d(x, (-1, 0, 0, 0))
    with pytest.raises(ShapeError, match=r"padding is \(1, 2\)"):
        flow.zero_pad2d(x, (1, 2))
    with pytest.raises(ShapeError, match="x has 2 axes"):
        flow.zero_pad2d(flow.ones(3, 3), 1)
    with pytest.raises(ShapeError, match=r"\(0, 0\), \(0, 0\), \(0, 0\), \(0, 0\)"):
        flow.pad(x, [(1, 1)])


@pytest.mark.parametrize(
    "padding, pairs", [("SAME", [(1, 0), (1, 1)]), ("SAME_LOWER", [(1, 0), (1, 1)]), ("SAME_UPPER", [(0, 1), (1, 1)])]
)
def test_same_padding(padding, pairs):
    x = np.arange(1, 13, dtype="float32").reshape(1, 1, 4, 3)
    function = lambda b: flow.same_padding(b, padding, "NCHW", 3, 2, 1)
    check(function, np.pad(x, [(0, 0), (0, 0), *pairs]), x)
    y = np.moveaxis(x, 1, -1).copy()
    check(lambda b: flow.same_padding(b, padding, "NHWC", (3, 3), [2, 2], 1), np.pad(y, [(0, 0), *pairs, (0, 0)]), y)
    weight = np.random.default_rng(0).uniform(-1, 1, (1, 1, 3, 3)).astype("float32")
    np.testing.assert_allclose(both(lambda b, w: flow.nn.conv2d(function(b), w, 2, "VALID"), x, weight),
                               both(lambda b, w: flow.nn.conv2d(b, w, 2, padding), x, weight), rtol=1e-6)
    with pytest.raises(ShapeError, match="'VALID' for a tensor of 4 axes"):
        flow.same_padding(flow.tensor(x), "VALID", "NCHW", 3, 2, 1)


def test_losses_of_the_package():
    x, y = np.float32([0, 1, 2, 5]), np.float32([0.5, 1, 5, 4])
    d = np.abs(x - y)
    for beta in (1.0, 2.5):
        wanted = np.where(d < beta, d * d / (2 * beta), d - beta / 2)
        np.testing.assert_allclose(
            both(lambda a, b, beta=beta: flow.smooth_l1_loss(a, b, beta), x, y), wanted, rtol=1e-6
        )
    with pytest.raises(OutOfRangeError, match="beta is 0"):
        flow.smooth_l1_loss(flow.tensor(x), flow.tensor(y), 0)
    cosines, label = np.float32([[0.5, -0.2, 0.1], [0.3, 0.9, -0.7]]), np.int32([0, 2])
    wanted = cosines.copy()
    wanted[[0, 1], label] = np.cos(np.arccos(wanted[[0, 1], label]) * 1.2 + 0.4) - 0.1
    found = both(lambda a, b: flow.combined_margin_loss(a, b, 1.2, 0.4, 0.1), cosines, label)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert gradcheck(lambda v: flow.combined_margin_loss(v, flow.tensor(label), 1.2, 0.4, 0.1),
                     flow.tensor(cosines.astype("float64"), requires_grad=True))
    with pytest.raises(ShapeError, match=r"label \[3\] for x \[2, 3\]"):
        flow.combined_margin_loss(flow.tensor(cosines), flow.tensor([0, 1, 2]))


# ---- constants and casts -----------------------------------------------------------------------------------------


def test_constants():
    check(lambda x: flow.constant(1.5, flow.float32, [2, 3]) + x * 0, np.full((2, 3), 1.5), np.zeros((2, 3), "float32"))
    for function, wanted, dtype in (
        (lambda: flow.constant(3), np.int32(3), "int32"),
        (lambda: flow.constant(3, flow.float64, (2,)), [3, 3], "float64"),
        (lambda: flow.constant_scalar(2.5), [2.5], "float32"), (lambda: a.zeros([2, 1]), [[0], [0]], "float32"),
        (lambda: a.ones((2,), flow.int8), [1, 1], "int8"), (lambda: flow.range(4), [0, 1, 2, 3], "int64"),
        (lambda: flow.range(1, 2, 0.5, dtype=flow.float32), [1, 1.5], "float32"),
    ):  # fmt: skip
        found = both(lambda x, function=function: function(), ROWS)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, wanted)
    check(lambda x: flow.constant_like(x, 4), np.full((3, 3), 4), ROWS)
    assert both(lambda x: a.ones_like(x, dtype=flow.int8), ROWS).dtype == np.int8
    check(a.zeros_like, np.zeros((3, 3)), ROWS)
    with pytest.raises(DTypeError, match="value is 'a'"):
        flow.constant("a")


def test_casts_and_copies():
    assert both(lambda x: flow.cast(x, flow.int32), ROWS / 2).tolist() == [[0, 1, 1], [2, 2, 3], [3, 4, 4]]
    for function in (
        flow.identity, flow.cast_to_static_shape, flow.cast_to_current_logical_view, flow.amp_white_identity
    ):
        check(function, ROWS, ROWS)
    assert both(flow.elem_cnt, X).tolist() == [24]
    x = np.float32([np.nan, 1, np.inf, -np.inf])
    assert both(flow.count_not_finite, x).tolist() == [3] and both(flow.count_not_finite, x).dtype == np.int64
    assert both(lambda b, c: flow.multi_count_not_finite([b, c]), x, X).tolist() == [3]
    check(lambda x, y: flow.identity_n([x, y])[1], X, ROWS, X)


def test_matmul():
    y = ROWS[:, :2]
    check(a.matmul, ROWS @ y, ROWS, y)
    check(lambda m, n: a.matmul(m, n, transpose_a=True, alpha=0.5), ROWS.T @ y * 0.5, ROWS, y)
    check(lambda m, n: a.matmul(m, n, transpose_b=True), X @ X.swapaxes(-1, -2), X, X)
    with pytest.raises(ShapeError, match="b has 1 axes"):
        a.matmul(flow.tensor(ROWS), flow.ones(3))


def test_diag():
    check(a.diag, np.diag(ROWS), ROWS)
    check(lambda x: a.diag(x, 1), np.diag(ROWS[0], 1), ROWS[0])


# ---- assign ------------------------------------------------------------------------------------------------------


def test_assign_writes_a_tensor():
    x = flow.zeros(2)
    flow.assign(x, flow.tensor([1.0, 2.0]))
    assert x.tolist() == [1, 2]
    with pytest.raises(ShapeError, match=r"\(3,\), ref \(2,\)"):
        flow.assign(x, flow.ones(3))


def test_assign_takes_effect_when_the_step_runs():
    flow.clear_default_session()

    @flow.global_function(type="predict")
    def count(x: tp.Numpy.Placeholder((2,))) -> tp.Numpy:
        total = flow.get_variable("total", (2,), initializer=flow.zeros_initializer())
        flow.assign(total, total + x)
        return flow.identity(total)

    assert [count(np.float32([1, 2])).tolist() for _ in range(3)] == [[0, 0], [1, 2], [2, 4]]
    assert flow.get_all_variables()["total"].numpy().tolist() == [3, 6]
    flow.clear_default_session()


@pytest.mark.parametrize("trainable", [True, False])
def test_assign_to_a_variable_is_seen_when_the_step_has_run(trainable):
    @flow.global_function()
    def count(x: tp.Numpy.Placeholder((2,))) -> tp.Numpy:
        total = flow.get_variable("total", shape=(2,), trainable=trainable)
        flow.assign(total, total + x)
        return total + 0

    assert [count(np.float32([1, 2])).tolist() for _ in range(3)] == [[0, 0], [1, 2], [2, 4]]
    flow.clear_default_session()


def test_assign_to_what_a_job_computes_is_done_at_once():
    def overwrite(x):
        y = x * 2
        flow.assign(y, x * 5)
        return y

    check(overwrite, ROWS * 5, ROWS)


def test_assign_to_an_argument_writes_the_jobs_own_copy_and_is_told_of_once():
    def overwrite(x):
        flow.assign(x, x * 2)
        return x

    rows = ROWS.copy()
    with pytest.warns(flow.MinflowWarning, match=r"input +float32\[3, 3\]  \(input x0\)") as records:
        np.testing.assert_array_equal(in_job(overwrite, rows), ROWS * 2)
    assert len(records) == 1
    np.testing.assert_array_equal(rows, ROWS)


# ---- random ------------------------------------------------------------------------------------------------------


def test_random():
    x = np.full((1000,), 0.3, "float32")
    first, again = (
        in_job(lambda b: flow.random.bernoulli(b, seed=5), x),
        in_job(lambda b: flow.random.bernoulli(b, seed=5), x),
    )
    np.testing.assert_array_equal(first, again)
    assert 230 < first.sum() < 370 and first.dtype == np.float32
    assert in_job(lambda b: flow.random.bernoulli(b, dtype=flow.int8), x).dtype == np.int8
    order = in_job(flow.random.generate_random_batch_permutation_indices, x)
    assert order.dtype == np.int32 and sorted(order.tolist()) == list(range(1000))
    assert order.tolist() != list(range(1000))
    shuffled = in_job(flow.random.shuffle, X.reshape(12, 2))
    assert sorted(shuffled.tolist()) == X.reshape(12, 2).tolist()


def test_every_step_draws_anew():
    @flow.global_function(type="predict")
    def order(x: tp.Numpy.Placeholder((50,))) -> tp.Numpy:
        return flow.random.shuffle(x)

    x = np.arange(50, dtype="float32")
    assert len({tuple(order(x)) for _ in range(4)}) == 4


def job_file(module):
    return importlib.import_module(f"minflow.job.{module}")


def test_the_tables_of_names_are_true():
    for home, table in ((flow, FLOW), (flow.nn, NN)):
        for name, path in table.items():
            module, _, attribute = path.rpartition(".")
            assert getattr(home, name) is (getattr(job_file(module), attribute) if attribute else job_file(module)), (
                name
            )


def test_parallel_cast_takes_distributions_only():
    x = flow.ones(2)
    assert (
        flow.parallel_cast(x, distribute=flow.distribute.split(0), gradient_distribute=flow.distribute.broadcast()) is x
    )
    with pytest.raises(JobError, match="(?s)no distribution.*'split'.*split\\(axis\\)"):
        flow.parallel_cast(x, distribute="split")
