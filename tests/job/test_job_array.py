"""Legacy array functions in jobs and on eager tensors: NumPy's results, and errors."""

import importlib

import numpy as np
import pytest
from builders import job_of
from legacy import check_rows, run_in_job

import minflow as flow
from minflow.autograd import gradcheck
from minflow.core.base.errors import DTypeError, JobError, OutOfRangeError, ShapeError
from minflow.job import FLOW, NN
from minflow.job.legacy import arrays as a, gather as p, padding as d

X = np.arange(24, dtype="float32").reshape(2, 3, 4)
THIN = X[:, None, :, None]
ROWS = np.float32([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
COND = np.int32([[3], [0], [-1]])
UNSORTED = np.float32([[3, 1, 2], [5, 9, 7]])
INFINITE = np.float32([np.nan, 1, np.inf, -np.inf])
T, R, S = flow.tensor(X), flow.tensor(ROWS), flow.ones(1, 1, 3, 3)
IDS, ONCE, TWICE = np.int32([[2, 0], [1, 1]]), np.int32([[0], [2]]), np.int32([[1], [1]])
DEEP = np.int32([[[0], [3], [1]], [[2], [2], [0]]])
EYE = np.eye(3, dtype="int32")[IDS]
UPDATE = np.float32([[10, 20, 30], [1, 2, 3]])
IMAGE = np.arange(9, dtype="float32").reshape(1, 1, 3, 3)
WIDE = [(0, 0), (0, 0), (1, 2), (2, 1)]


def changed(array, index, value):
    array = array.copy()
    array[index] = value
    return array


OPS = {
    "reshape": [
        (lambda x: a.reshape(x, [4, -1]), X.reshape(4, 6), X),
        (lambda: a.reshape(T, [5, 5]), ShapeError, "24"),
        (lambda: a.reshape(T, 24), DTypeError, "shape is 24"),
        (lambda: a.reshape(T, 8, 3), DTypeError, "argument 3 .* 3 is not a string"),
    ],
    "dynamic_reshape": [(lambda x: flow.dynamic_reshape(x, (-1,)), X.ravel(), X)],
    "reshape_like": [(flow.reshape_like, X.reshape(6, 4), X, np.zeros((6, 4), "int8"))],
    "flatten": [(lambda x: a.flatten(x, start_dim=1), X.reshape(2, 12), X)],
    "transpose": [
        (lambda x: a.transpose(x, [2, 0, 1]), X.transpose(2, 0, 1), X),
        (lambda: a.transpose(T, 0, 1), DTypeError, r"got 0(.|\n)*perm=\[2, 1, 0\]"),
        (lambda: a.transpose(T, [0, 0, 1]), ShapeError, r"\(0, 0, 1\)"),
        (lambda: a.transpose(T, [0, 1, 2], conjugate=True), DTypeError, "conjugate=True"),
    ],
    "expand_dims": [(lambda x: flow.expand_dims(x, -1), X[..., None], X)],
    "reverse": [
        (lambda x: flow.reverse(x, [0, -1]), X[::-1, :, ::-1], X),
        (lambda x: flow.reverse(x, 1), X[:, ::-1], X),
    ],
    "expand": [(lambda x: a.expand(x, [2, -1, 5]), np.broadcast_to(ROWS[:, :1], (2, 3, 5)), ROWS[:, :1])],
    "squeeze": [
        (a.squeeze, X, THIN),
        (lambda x: a.squeeze(x, [1]), X[:, :, None], THIN),
        (lambda x: a.squeeze(x, axis=[-2, 1]), X, THIN),
        (lambda: a.squeeze(flow.tensor(THIN), [2]), ShapeError, r"axis 2 has size 3(.|\n)*axis=\[1, 3\]"),
        (lambda x: a.squeeze(x, 1), X[:, :, None], THIN),
    ],
    "broadcast_like": [
        (flow.broadcast_like, np.broadcast_to(X[0], X.shape), X[0], X),
        (lambda x, y: flow.broadcast_like(x, y, broadcast_axes=[1]), np.broadcast_to(X[:, :1], X.shape), X[:, 0], X),
    ],
    "concat": [
        *[(lambda x, y, i=i: a.concat([x, y], i), np.concatenate([X, X + 1], i), X, X + 1) for i in (0, 1, -1)],
        (lambda x: a.concat([x]), X, X),
        (lambda x, y: a.concat(values=[x, y], axis=2), np.concatenate([X, X], 2), X, X),
        (lambda: a.concat([flow.ones(2, 3), flow.ones(2, 4)]), ShapeError, "3"),
        (lambda: a.concat([]), DTypeError, "at least one tensor"),
        (lambda: a.concat(flow.ones(2, 3)), DTypeError, "a list"),
    ],
    "stack": [(lambda x, y, i=i: a.stack([x, y], axis=i), np.stack([X, X + 1], i), X, X + 1) for i in (0, 1, -1)],
    "slice": [
        (lambda x: flow.slice(x, [None, 1, 0], [None, 2, -1]), X[:, 1:3], X),
        (lambda x: flow.slice(x, begin=[1, -2, 1], size=[1, 1, 3]), X[1:, 1:2, 1:4], X),
        (lambda: flow.slice(T, [None, 1, None], [None, 3, None]), OutOfRangeError, "3 elements from 1"),
        (lambda: flow.slice(T, [None, 1, None], [None, 0, None]), OutOfRangeError, "0 elements"),
        (lambda: flow.slice(flow.tensor(X), [0], [1]), ShapeError, r"begin is \[0\]"),
    ],
    "slice_v2": [
        (lambda: flow.slice_v2(T, [(3, None, 1)]), OutOfRangeError, "start 3 .* axis 0, which has size 2"),
        (lambda: flow.slice_v2(T, [(0, 3, 1)]), OutOfRangeError, "stop 3"),
        (lambda: flow.slice_v2(T, [(0, 1, 0)]), OutOfRangeError, "step of axis 0 is 0"),
        (lambda: flow.slice_v2(T, [(0, 1, 1)] * 4), ShapeError, "at most 3"),
        (lambda: flow.slice_v2(T, [(0, 1, 1), (0, 1)]), ShapeError, r"entry 1 .* \(0, 1\)"),
        (lambda: flow.slice_update(T, flow.ones(1), []), ShapeError, r"\(1,\), the place for it \(2, 3, 4\)"),
    ],
    "gather": [
        (lambda x, i: p.gather(x, i, axis=1), X[:, IDS], X, IDS),
        (p.gather, ROWS[IDS], ROWS, IDS),
        (lambda x, i: p.gather(x, i, batch_dims=1), np.stack([X[0, IDS[0]], X[1, IDS[1]]]), X, IDS),
        (lambda x, i: p.gather(x, i, batch_dims=2), np.take_along_axis(X, DEEP, 2), X, DEEP),
        (lambda: p.gather(R, flow.tensor([3])), OutOfRangeError, "3"),
        (lambda: p.gather(R, 1, flow.tensor([0])), DTypeError, "dim_gather"),
        (lambda: p.gather(T, flow.tensor(IDS), axis=2, batch_dims=1), ShapeError, "batch_dims 1 and axis 2"),
    ],
    "dim_gather": [
        (lambda x, i: flow.dim_gather(x, 1, i), np.take_along_axis(ROWS[:2], IDS.astype("int64"), 1), ROWS[:2], IDS),
    ],
    "gather_nd": [
        (flow.gather_nd, ROWS[[0, 2], [1, 2]], ROWS, np.int32([[0, 1], [2, 2]])),
        (flow.gather_nd, X[[[1], [0]]], X, np.int32([[[1]], [[0]]])),
        (lambda: flow.gather_nd(R, flow.tensor([[0, 1, 2]])), ShapeError, "size 3, for a shape"),
    ],
    "scatter_nd": [
        (lambda i, u: flow.scatter_nd(i, u, [4, 3]), changed(np.zeros((4, 3), "f"), 1, UPDATE.sum(0)), TWICE, UPDATE),
        (
            lambda: flow.scatter_nd(flow.tensor(ONCE), flow.ones(2), [4, 3]),
            ShapeError,
            r"updates has shape \(2,\), the places for it \(2, 3\)",
        ),
    ],
    "tensor_scatter_nd_update": [(flow.tensor_scatter_nd_update, changed(ROWS, [0, 2], UPDATE), ROWS, ONCE, UPDATE)],
    "tensor_scatter_nd_add": [
        (flow.tensor_scatter_nd_add, changed(ROWS, 1, ROWS[1] + UPDATE.sum(0)), ROWS, TWICE, UPDATE)
    ],
    "one_hot": [
        (lambda i: p.one_hot(i, 3), EYE, IDS),
        (lambda i: p.one_hot(i, 3, axis=0), np.moveaxis(EYE, -1, 0), IDS),
        (
            lambda i: p.one_hot(i, depth=3, on_value=5.5, off_value=-1, dtype=flow.float32),
            np.where(EYE, 5.5, -1).astype("f"),
            IDS,
        ),
        (lambda i: p.one_hot(i, 3, 7, 2), np.where(EYE, 7, 2).astype("int32"), IDS),
        (lambda: p.one_hot(flow.tensor(IDS), 3, 0.5), DTypeError, "on_value is 0.5"),
        (lambda: p.one_hot(flow.tensor(IDS), 2), OutOfRangeError, "2"),
    ],
    "where": [
        (p.where, np.where(COND, ROWS, -ROWS), COND, ROWS, -ROWS),
        (lambda x: p.where(flow.math.greater(x, 4), x, 0.0), np.where(ROWS > 4, ROWS, np.float32(0)), ROWS),
        (lambda: p.where(flow.tensor(COND), R), DTypeError, "y is missing"),
    ],
    "argwhere": [
        (lambda x: flow.cast_to_static_shape(p.argwhere(x)), np.argwhere(ROWS[1:2]).astype("int32"), ROWS[1:2])
    ],
    "nonzero": [
        (lambda x: flow.cast_to_static_shape(p.nonzero(x)), np.argwhere(ROWS[1:2]).T.astype("int32"), ROWS[1:2])
    ],
    "masked_fill": [
        (
            lambda x, m: p.masked_fill(x, m, -5),
            np.where(COND, np.float32(-5), ROWS),
            ROWS,
            np.broadcast_to(COND, (3, 3)).copy(),
        )
    ],
    "sort": [
        (p.sort, np.sort(UNSORTED), UNSORTED),
        (lambda x: p.sort(x, direction="DESCENDING"), np.sort(UNSORTED)[:, ::-1], UNSORTED),
        (lambda: p.sort(flow.tensor(UNSORTED), -1, "down"), OutOfRangeError, "direction is 'down'"),
    ],
    "argsort": [
        (lambda x: p.argsort(x, 0, "DESCENDING"), np.argsort(-UNSORTED, 0).astype("int32"), UNSORTED),
        (p.argsort, np.argsort(UNSORTED).astype("int32"), UNSORTED),
    ],
    "pad": [
        (
            lambda x: flow.pad(x, [(0, 0), (1, 0), (0, 2), (1, 1)], 7),
            np.pad(IMAGE, [(0, 0), (1, 0), (0, 2), (1, 1)], constant_values=7),
            IMAGE,
        ),
        (lambda: flow.pad(S, [(1, 1)]), ShapeError, r"\(0, 0\), \(0, 0\), \(0, 0\), \(0, 0\)"),
    ],
    "zero_pad2d": [
        (lambda x: flow.zero_pad2d(x, (2, 1, 1, 2)), np.pad(IMAGE, WIDE), IMAGE),
        (lambda: flow.zero_pad2d(S, (1, 2)), ShapeError, r"padding is \(1, 2\)"),
        (lambda: flow.zero_pad2d(flow.ones(3, 3), 1), ShapeError, "x has 2 axes"),
    ],
    "constant_pad2d": [
        (
            lambda x: flow.constant_pad2d(x, 1, -3.5),
            np.pad(IMAGE, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-3.5),
            IMAGE,
        ),
    ],
    "reflection_pad2d": [
        (lambda x: flow.reflection_pad2d(x, (2, 1, 1, 2)), np.pad(IMAGE, WIDE, mode="reflect"), IMAGE),
        (lambda: flow.reflection_pad2d(S, 3), OutOfRangeError, "3 and 3 pixels on axis 2 of size 3(.|\n)*0 to 2"),
    ],
    "replication_pad2d": [
        (lambda x: flow.replication_pad2d(x, (2, 1, 1, 2)), np.pad(IMAGE, WIDE, mode="edge"), IMAGE),
        (lambda x: flow.replication_pad2d(x, 5), np.pad(IMAGE, [(0, 0), (0, 0), (5, 5), (5, 5)], mode="edge"), IMAGE),
        (lambda: flow.replication_pad2d(S, (-1, 0, 0, 0)), OutOfRangeError, "-1"),
    ],
    "constant": [
        (lambda x: flow.constant(1.5, flow.float32, [2, 3]) + x * 0, np.full((2, 3), 1.5, "f"), np.zeros((2, 3), "f")),
        (lambda x: flow.constant(3), np.array(3, "int32"), ROWS),
        (lambda x: flow.constant(3, flow.float64, (2,)), np.float64([3, 3]), ROWS),
        (lambda: flow.constant("a"), DTypeError, "value is 'a'"),
    ],
    "constant_scalar": [(lambda x: flow.constant_scalar(2.5), np.float32([2.5]), ROWS)],
    "constant_like": [(lambda x: flow.constant_like(x, 4), np.full((3, 3), 4, "f"), ROWS)],
    "zeros": [(lambda x: a.zeros([2, 1]), np.float32([[0], [0]]), ROWS)],
    "ones": [(lambda x: a.ones((2,), flow.int8), np.int8([1, 1]), ROWS)],
    "zeros_like": [(a.zeros_like, np.zeros((3, 3), "f"), ROWS)],
    "ones_like": [(lambda x: a.ones_like(x, dtype=flow.int8), np.ones((3, 3), "int8"), ROWS)],
    "range": [
        (lambda x: flow.range(4), np.arange(4), ROWS),
        (lambda x: flow.range(1, 2, 0.5, dtype=flow.float32), np.float32([1, 1.5]), ROWS),
    ],
    "cast": [(lambda x: flow.cast(x, flow.int32), np.int32([[0, 1, 1], [2, 2, 3], [3, 4, 4]]), ROWS / 2)],
    **{
        name: [(getattr(flow, name), ROWS, ROWS)]
        for name in ("identity", "cast_to_static_shape", "cast_to_current_logical_view", "amp_white_identity")
    },
    "identity_n": [(lambda x, y: flow.identity_n([x, y])[1], X, ROWS, X)],
    "elem_cnt": [(flow.elem_cnt, [24], X)],
    "count_not_finite": [(flow.count_not_finite, np.int64([3]), INFINITE)],
    "multi_count_not_finite": [(lambda x, y: flow.multi_count_not_finite([x, y]), [3], INFINITE, X)],
    "matmul": [
        (a.matmul, ROWS @ ROWS[:, :2], ROWS, ROWS[:, :2]),
        (lambda x, y: a.matmul(x, y, transpose_a=True, alpha=0.5), ROWS.T @ ROWS[:, :2] * 0.5, ROWS, ROWS[:, :2]),
        (lambda x, y: a.matmul(x, y, transpose_b=True), X @ X.swapaxes(-1, -2), X, X),
        (lambda: a.matmul(R, flow.ones(3)), ShapeError, "b has 1 axes"),
    ],
    "diag": [(a.diag, np.diag(ROWS), ROWS), (lambda x: a.diag(x, 1), np.diag(ROWS[0], 1), ROWS[0])],
}
for entries in (
    [(None, None, None)],
    [(0, 2, 1), (None, None, 2), (1, -1, 1)],
    [(None, None, -1), (2, 0, -1)],
    [(1, 1, 1)],
    [(None,) * 3, (-1, -4, -2), (3, None, -1)],
):
    index = tuple(slice(*entry) for entry in entries)
    OPS["slice_v2"] += [
        (lambda x, e=entries: flow.slice_v2(x, e), X[index], X),
        (
            lambda x, e=entries: flow.slice_update(x, flow.math.negative(flow.slice_v2(x, e)), e),
            changed(X, index, -X[index]),
            X,
        ),
    ]


@pytest.mark.parametrize("name", OPS)
def test_op(name):
    check_rows(OPS[name])


def test_gradients():
    ids = flow.tensor([[0, 1], [0, 1], [2, 2]])
    for function, array in [
        (lambda v: flow.gather_nd(v, ids), ROWS),
        (lambda v: p.gather(v, ids, batch_dims=1), ROWS),
        (lambda v: p.gather(v, ids[0], axis=1), ROWS),
        (lambda v: flow.slice_v2(v, [(None, None, -2)]), ROWS),
        (lambda v: flow.slice_update(v, v[:1] * 2, [(1, 2, 1)]), ROWS),
        (lambda v: flow.tensor_scatter_nd_add(v, ids, v[0] * v[1]), ROWS),
        (lambda v: flow.scatter_nd(ids, v[0] * v[1], [3, 3]), ROWS),
        (lambda v: d.reflection_pad2d(v, (1, 0, 0, 1)), IMAGE[..., :2, :2]),
        (lambda v: d.replication_pad2d(v, (1, 0, 0, 1)), IMAGE[..., :2, :2]),
        (lambda v: d.zero_pad2d(v, (1, 0, 0, 1)), IMAGE[..., :2, :2]),
    ]:
        assert gradcheck(function, flow.tensor(array.astype("float64"), requires_grad=True))


def test_slice_update_writes_into_a_tensor():
    """As in OneFlow 1.0; Blobs and tensors that require grad are not modified."""
    x, v = flow.tensor(X), flow.tensor(X, requires_grad=True)
    assert flow.slice_update(x, flow.zeros(1, 3, 4), [(0, 1, 1)]) is x and not x[0].any() and x[1].any()
    assert not flow.slice_update(input=v, update=flow.zeros(1, 3, 4), slice_tup_list=[(0, 1, 1)])[0].any()
    np.testing.assert_array_equal(v.detach().numpy(), X)


def test_slice_keywords_of_oneflow_1_0():
    x, entries = flow.tensor(X), [[None, None, None], [0, 3, 2], [1, 4, 2]]
    for found in (flow.slice(x, entries), flow.slice(x, slice_tup_list=entries), flow.slice(input=x, begin=entries)):
        np.testing.assert_array_equal(found.numpy(), X[:, 0:3:2, 1:4:2])
    where = flow.tensor([[0], [2]])
    assert flow.scatter_nd(index=where, update=flow.tensor([1.0, 2.0]), shape=[3]).tolist() == [1, 0, 2]
    assert flow.gather_nd(input=flow.arange(3), index=where).tolist() == [0, 2]
    found = flow.tensor_scatter_nd_update(tensor=flow.arange(3), indices=where, updates=where[:, 0])
    assert found.tolist() == [0, 1, 2]


def test_argwhere_finds_nonzero_elements():
    x = flow.tensor([[0, 1, 0], [2, 0, 2]])
    assert p.argwhere(x).tolist() == [[0, 1], [1, 0], [1, 2]] and p.argwhere(x).dtype is flow.int32
    assert p.argwhere(x, flow.int64).dtype is flow.int64
    assert p.nonzero(x).tolist() == [[0, 1, 1], [1, 0, 2]]
    assert p.where(x).tolist() == p.argwhere(x).tolist()


@pytest.mark.parametrize(
    "padding, pairs", [("SAME", [(1, 0), (1, 1)]), ("SAME_LOWER", [(1, 0), (1, 1)]), ("SAME_UPPER", [(0, 1), (1, 1)])]
)
def test_same_padding(padding, pairs):
    x = np.arange(1, 13, dtype="float32").reshape(1, 1, 4, 3)
    y, valid = np.moveaxis(x, 1, -1).copy(), "'VALID' for a tensor of 4 axes"
    weight = np.random.default_rng(0).uniform(-1, 1, (1, 1, 3, 3)).astype("float32")
    padded = lambda b: flow.same_padding(b, padding, "NCHW", 3, 2, 1)
    check_rows(
        [
            (padded, np.pad(x, [(0, 0), (0, 0), *pairs]), x),
            (
                lambda b: flow.same_padding(b, padding, "NHWC", (3, 3), [2, 2], 1),
                np.pad(y, [(0, 0), *pairs, (0, 0)]),
                y,
            ),
            (lambda: flow.same_padding(flow.tensor(x), "VALID", "NCHW", 3, 2, 1), ShapeError, valid),
        ]
    )
    check_rows(
        [
            (
                lambda b, w: flow.nn.conv2d(padded(b), w, 2, "VALID"),
                run_in_job(lambda b, w: flow.nn.conv2d(b, w, 2, padding), x, weight),
                x,
                weight,
            )
        ],
        1e-6,
    )


COSINES, LABEL = np.float32([[0.5, -0.2, 0.1], [0.3, 0.9, -0.7]]), np.int32([0, 2])


def margin(cosines, label):
    return flow.combined_margin_loss(cosines, label, 1.2, 0.4, 0.1)


def test_losses_match_their_definitions():
    x, y, functional = np.float32([0, 1, 2, 5]), np.float32([0.5, 1, 5, 4]), flow.nn.functional
    check_rows(
        [
            *[
                (
                    lambda a, b, beta=beta: flow.smooth_l1_loss(a, b, beta),
                    lambda a, b, beta=beta: functional.smooth_l1_loss(a, b, reduction="none", beta=beta),
                    x,
                    y,
                )
                for beta in (1.0, 2.5)
            ],
            (lambda: flow.smooth_l1_loss(flow.tensor(x), flow.tensor(y), 0), OutOfRangeError, "beta is 0"),
            (margin, lambda x, label: functional.combined_margin_loss(x, label, 1.2, 0.4, 0.1), COSINES, LABEL),
            (lambda: margin(flow.tensor(COSINES), flow.tensor([0, 1, 2])), ShapeError, r"label \[3\] for x \[2, 3\]"),
        ]
    )


# ---- assign ------------------------------------------------------------------------------------------------------


def test_assign_writes_a_tensor():
    x = flow.zeros(2)
    flow.assign(x, flow.tensor([1.0, 2.0]))
    assert x.tolist() == [1, 2]
    with pytest.raises(ShapeError, match=r"\(3,\), ref \(2,\)"):
        flow.assign(x, flow.ones(3))


ASSIGNED = {
    "given by identity": (dict(initializer=flow.zeros_initializer()), flow.identity),
    "trainable": (dict(trainable=True), lambda total: total + 0),
    "not trainable": (dict(trainable=False), lambda total: total + 0),
}


@pytest.mark.parametrize("case", ASSIGNED)
def test_assign_to_a_variable_takes_effect_after_the_step(case, empty_session):
    options, given = ASSIGNED[case]

    def count(x):
        total = flow.get_variable("total", (2,), **options)
        flow.assign(total, total + x)
        return given(total)

    counter = job_of(count, (2,))
    assert [counter(np.float32([1, 2])).tolist() for _ in range(3)] == [[0, 0], [1, 2], [2, 4]]
    assert flow.get_all_variables()["total"].numpy().tolist() == [3, 6]


def test_assign_to_a_computed_blob_takes_effect_immediately():
    def overwrite(x):
        y = x * 2
        flow.assign(y, x * 5)
        return y

    check_rows([(overwrite, ROWS * 5, ROWS)])


def test_assign_to_an_argument_writes_a_copy_and_warns_once():
    def overwrite(x):
        flow.assign(x, x * 2)
        return x

    rows = ROWS.copy()
    with pytest.warns(flow.MinflowWarning, match=r"input +float32\[3, 3\]  \(input x0\)") as records:
        np.testing.assert_array_equal(run_in_job(overwrite, rows), ROWS * 2)
    assert len(records) == 1
    np.testing.assert_array_equal(rows, ROWS)


# ---- random ------------------------------------------------------------------------------------------------------


def test_random():
    x = np.full((1000,), 0.3, "float32")
    first, again = [run_in_job(lambda b: flow.random.bernoulli(b, seed=5), x) for _ in range(2)]
    np.testing.assert_array_equal(first, again)
    assert 230 < first.sum() < 370 and first.dtype == np.float32
    assert run_in_job(lambda b: flow.random.bernoulli(b, dtype=flow.int8), x).dtype == np.int8
    order = run_in_job(flow.random.generate_random_batch_permutation_indices, x)
    assert order.dtype == np.int32 and sorted(order.tolist()) == list(range(1000))
    assert order.tolist() != list(range(1000))
    shuffled = run_in_job(flow.random.shuffle, X.reshape(12, 2))
    assert sorted(shuffled.tolist()) == X.reshape(12, 2).tolist()


def test_every_step_draws_new_samples():
    order, x = job_of(flow.random.shuffle, (50,)), np.arange(50, dtype="float32")
    assert len({tuple(order(x)) for _ in range(4)}) == 4


@pytest.mark.parametrize("home, table", [(flow, FLOW), (flow.nn, NN)], ids=["flow", "flow.nn"])
def test_name_tables_are_correct(home, table):
    for name, path in table.items():
        module, _, attribute = path.rpartition(".")
        defined = importlib.import_module(f".{module}", "minflow.job")
        assert getattr(home, name) is (getattr(defined, attribute) if attribute else defined), name


def test_parallel_cast_accepts_only_distributions():
    x, split = flow.ones(2), flow.distribute.split(0)
    assert flow.parallel_cast(x, distribute=split, gradient_distribute=flow.distribute.broadcast()) is x
    with pytest.raises(JobError, match="(?s)not a distribution.*'split'.*split\\(axis\\)"):
        flow.parallel_cast(x, distribute="split")
