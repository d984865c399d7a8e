"""flow.math in jobs and on eager tensors: bits of modern functions, NumPy's results, dtypes, gradients."""

import numpy as np
import pytest
from legacy import check_rows, in_both_modes, parameters, run_in_job
from scipy import special

import minflow as flow
from minflow.autograd import gradcheck
from minflow.core.base.errors import DTypeError, OutOfRangeError, ShapeError
from minflow.job.legacy import math as m

X = np.random.default_rng(0).uniform(-2, 2, (3, 4)).astype("float32")
Y = np.random.default_rng(1).uniform(-2, 2, (3, 4)).astype("float32")
INNER = (X / 2.2).astype("float32")  # in (-1, 1)
POSITIVE = np.abs(X) + np.float32(0.1)

# input -> functions that equal the modern ones; "legacy=modern" if the modern name is different
UNARY = [
    (
        X,
        """abs asinh atan ceil cos cosh erf erfc exp expm1 floor gelu log_sigmoid=logsigmoid negative=neg relu
     rint=round round sigmoid sigmoid_v2=sigmoid sign sin sinh softplus square tanh tanh_v2=tanh""",
    ),
    (np.float32([0.5, 1.5, -2.5, -200, 200, 3, 4]), "round rint=round softplus erfc"),
    (INNER, "acos asin atanh log1p tan"),
    (POSITIVE, "log lgamma reciprocal rsqrt sqrt"),
    (POSITIVE + 1, "acosh"),
]
BINARY = "add subtract=sub multiply=mul divide=div mod=remainder floordiv=floor_divide maximum minimum atan2".split()
COMPARISONS = "equal=eq not_equal=ne less=lt less_equal=le greater=gt greater_equal=ge logical_and".split()
WITH_NUMBERS = "add subtract=sub multiply=mul divide=div maximum minimum pow less=lt equal=eq".split()
REDUCTIONS = {
    "reduce_sum": np.sum,
    "reduce_mean": np.mean,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_prod": np.prod,
    "reduce_std": np.std,
    "reduce_variance": np.var,
    "two_stage_reduce_max": np.max,
    "two_stage_reduce_min": np.min,
    "reduce_euclidean_norm": lambda x, axis=None, keepdims=False: np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims)),
    "reduce_logsumexp": lambda x, axis=None, keepdims=False: special.logsumexp(x, axis=axis, keepdims=keepdims),
}


TRI = np.arange(1, 13, dtype="float32").reshape(3, 4)
TWO = np.float32([[1], [2]])
FLAGS = np.array([[1, 0, 0], [0, 0, 0], [1, 1, 1]], "int8")
INTS = np.array([[1, 2], [3, 4]], "int32")
SCORES = np.float32([[1, 3, 8, 7, 2], [1, 9, 4, 9, 2]])
PREDICTED = np.float32([[0.1, 0.7, 0.2], [0.5, 0.4, 0.1], [np.nan, 1, 2]])
TARGETS, SEGMENTS = np.int32([1, 1, 0]), np.int32([0, 1, 0, 1])
SUMS = np.stack([TRI[:, [0, 2]].sum(1), TRI[:, [1, 3]].sum(1)], 1)
CUBE = np.random.default_rng(2).uniform(-1, 1, (2, 3, 4)).astype("float32")
DEEP = np.arange(24, dtype="float32").reshape(2, 3, 4)


def math(name):
    return getattr(flow.math, name)


def double(function, *arrays, **options):
    """Compute in float64, and round."""
    return np.asarray(function(*[x.astype("float64") for x in arrays], **options)).astype("float32")


def reductions(name):
    """That generation had no 0-d arrays. Reducing over no axis returns the input."""
    cases = [(lambda x: math(name)(x, axis=[]), CUBE, CUBE)]
    for axis in (None, 0, -1, [1], [0, 2], (0, 1, 2)):
        for keep in (False, True):
            axes = tuple(axis) if isinstance(axis, list) else axis
            wanted = double(REDUCTIONS[name], CUBE, axis=axes, keepdims=keep)
            cases.append((lambda x, axis=axis, keep=keep: math(name)(x, axis, keep), np.atleast_1d(wanted), CUBE))
    return cases


OPS = {
    "reduce_sum": [(flow.math.reduce_sum, np.int32([10]), INTS)],
    "reduce_prod": [(flow.math.reduce_prod, np.int32([24]), INTS)],
    "reduce_max": [(lambda x: flow.math.reduce_max(x, 0), np.int32([3, 4]), INTS)],
    "reduce_any": [(lambda x: flow.math.reduce_any(x, 1), np.int8([1, 0, 1]), FLAGS)],
    "reduce_all": [(lambda x: flow.math.reduce_all(x, 1), np.int8([0, 0, 1]), FLAGS)],
    "reduce_variance": [(flow.math.reduce_variance, np.float32([5.25]), np.float32(np.arange(8) + 1e6))],
    "argmax": [
        (flow.math.argmax, np.int32([2, 1]), SCORES),
        (lambda x: flow.math.argmax(x, axis=0), np.int32([0, 1, 0, 1, 0]), SCORES),
    ],
    "top_k": [
        (lambda x: flow.math.top_k(x, k=2), np.int32([[2, 3]]), SCORES[:1]),
        (lambda x: flow.math.reduce_sum(flow.math.top_k(x, k=2), 1), np.int32([5, 4]), SCORES),  # 9 occurs twice
        (lambda x: flow.math.top_k(flow.reshape(x, [5]), 2), np.int32([2, 3]), SCORES[:1]),
        (lambda x: flow.math.top_k(x, axis=0, k=1), np.int32([[0, 1, 0, 1, 0]]), SCORES),
    ],
    "fused_scale_tril_softmax_mask_scale": [
        (
            lambda x, m: flow.math.fused_scale_tril_softmax_mask_scale(x, m, 0, -np.inf, 2.0, 0.5),
            np.float32([[0.5, 0], [0.5 / (1 + np.exp(2)), 0]]),
            np.float32([[3, 9], [1, 2]]),
            np.int8([[1, 1], [1, 0]]),
        )
    ],
    "in_top_k": [
        (lambda t, p: flow.math.in_top_k(t, p, 1), [1, 0, 0], TARGETS, PREDICTED),
        (lambda t, p: flow.math.in_top_k(t, p, 2), [1, 1, 0], TARGETS, PREDICTED),
        (lambda: flow.math.in_top_k(flow.tensor([0, 1]), flow.tensor(PREDICTED), 1), ShapeError, r"\(2,\).*\(3, 3\)"),
    ],
    "l2_normalize": [(lambda x: flow.math.l2_normalize(x, 0), np.zeros((2, 2), "f"), np.zeros((2, 2), "f"))],
    "clip_by_value": [
        (lambda x: flow.math.clip_by_value(x, -1, 1), np.clip(X, -1, 1), X),
        (lambda x: flow.math.clip_by_value(x, max_value=0), np.minimum(X, 0), X),
    ],
    "add_n": [
        (lambda a, b: flow.math.add_n([a, b, a]), X + Y + X, X, Y),
        (lambda: flow.math.add_n([flow.ones(3), flow.ones(2)]), ShapeError, r"input 1 .*\(2,\).*\(3,\)"),
        (lambda: flow.math.add_n([]), DTypeError, "add_n"),
    ],
    "polyval": [
        (lambda x: flow.math.polyval([3], x), np.full((3, 4), 3, "f"), X),
        (lambda x: flow.math.polyval([], x), np.zeros((3, 4), "f"), X),
    ],
    "tril": [(lambda x, k=k: flow.math.tril(x, k), np.tril(TRI, k), TRI) for k in (-1, 0, 2)],
    "fused_scale_tril": [
        (
            lambda x, k=k: flow.math.fused_scale_tril(x, k, -7, 2),
            np.where(np.tril(np.ones((3, 4)), k) > 0, TRI * 2, np.float32(-7)),
            TRI,
        )
        for k in (-1, 0, 2)
    ],
    "reduced_shape_elem_cnt": [
        (lambda x: flow.math.reduced_shape_elem_cnt(x, axis=[0, 1]), [12], np.ones((3, 4, 5), "f")),
        (flow.math.reduced_shape_elem_cnt, [60], np.ones((3, 4, 5), "f")),
    ],
    "broadcast_to_compatible_with": [
        (
            lambda x, y: flow.math.broadcast_to_compatible_with(x, [y]),
            np.broadcast_to(TWO, (4, 2, 3)),
            TWO,
            np.zeros((4, 1, 3), "f"),
        ),
    ],
    "unsorted_segment_sum": [
        (lambda x, i: flow.math.unsorted_segment_sum(x, i, 2, axis=1), SUMS, TRI, SEGMENTS),
        (
            lambda x, i: flow.math.unsorted_segment_sum(x, i, 2),
            np.stack([DEEP[[0, 0, 1], [0, 2, 2]].sum(0), DEEP[[0, 1, 1], [1, 0, 1]].sum(0)]),
            DEEP,
            np.int32([[0, 1, 0], [1, 1, 0]]),
        ),
        (
            lambda: flow.math.unsorted_segment_sum(flow.tensor(TRI), flow.tensor([0, 1, 0]), 2, axis=1),
            ShapeError,
            r"\(3,\) for axis 1 of \(3, 4\)",
        ),
        (lambda: flow.math.unsorted_segment_sum(flow.tensor(TRI), flow.tensor([0, 1, 2]), 2), OutOfRangeError, "2"),
    ],
    "unsorted_segment_sum_like": [
        (
            lambda x, i, like: flow.math.unsorted_segment_sum_like(x, i, like, axis=1),
            np.pad(SUMS, ((0, 0), (0, 3))),
            TRI,
            SEGMENTS,
            np.zeros((3, 5), "f"),
        ),
    ],
    "unsorted_batch_segment_sum": [
        (
            lambda x, i: flow.math.unsorted_batch_segment_sum(x, i, 2),
            np.float32([[6, 4], [7, 3], [8, 2]]),
            np.tile(np.float32([1, 2, 3, 4]), (3, 1)),
            np.int32([[0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0]]),
        ),
        (
            lambda x, i: flow.math.unsorted_batch_segment_sum(x, i, 1),
            DEEP.sum(2, keepdims=True),
            DEEP,
            np.zeros((2, 3, 4), "int32"),
        ),
    ],
    "xdivy": [(flow.math.xdivy, np.float32([0, 0, 0.5]), np.float32([0, 0, 2]), np.float32([0, 5, 4]))],
    "exp": [(lambda: flow.math.exp(flow.ones(2), 3), DTypeError, "argument 2 .* 3 is not a string")],
}
NEAR = {  # functions that differ from NumPy in the last bits
    **{name: reductions(name) for name in REDUCTIONS},
    "reciprocal_no_nan": [(flow.math.reciprocal_no_nan, np.float32([0, 0.5, -4]), np.float32([0, 2, -0.25]))],
    "squared_difference": [(flow.math.squared_difference, (X - y) ** 2, X, y) for y in (Y, Y[0], Y[:1])],
    "l2_normalize": [(lambda x: flow.math.l2_normalize(x, 0), X / np.sqrt((X * X).sum(0)), X)],
    "polyval": [
        (lambda x: flow.math.polyval([2, -1, 0.5], x), double(lambda x: np.polyval([2, -1, 0.5], x), X), X),
    ],
    "xdivy": [(flow.math.xdivy, X / y, X, y) for y in (Y, Y[0], Y[:1])],
    "xlogy": [(flow.math.xlogy, np.float32([0, 0, 2 * np.log(4)]), np.float32([0, 0, 2]), np.float32([0, 5, 4]))],
}


def row(names, *arrays, call=lambda function, *given: function(*given)):
    """Return (legacy name, a row that compares the legacy function with the modern one)."""
    old, _, new = names.partition("=")
    modern = getattr(flow, new or old, None) or getattr(flow.nn.functional, new or old)
    return old, (lambda *given: call(math(old), *given), lambda *given: int8_for_bool(call(modern, *given)), *arrays)


def int8_for_bool(result):
    """That generation had no bool."""
    return result.to(flow.int8) if result.dtype is flow.bool else result


ROWS = [
    *[row(name, x) for x, names in UNARY for name in names.split()],
    *[row(name, X, y) for name in BINARY for y in (Y, Y[0], Y[:1])],
    *[row(name, np.round(X), np.round(Y)) for name in COMPARISONS],
    *[row(name, POSITIVE, call=lambda function, x: function(x, 2.0)) for name in WITH_NUMBERS],
    *[row(name, POSITIVE, call=lambda function, x: function(2.0, x)) for name in WITH_NUMBERS],
]
for name, case in ROWS:
    OPS.setdefault(name, []).append(case)


@pytest.mark.parametrize("name", sorted({*OPS, *NEAR}))
def test_op(name):
    check_rows(OPS.get(name, []))
    check_rows(NEAR.get(name, []), 2e-5)


def test_older_keywords_of_reductions():
    x = flow.tensor(X)
    assert np.isclose(flow.math.reduce_sum(input_tensor=x).item(), X.sum(), rtol=1e-5)
    assert np.isclose(flow.math.reduce_mean(input_blob=x, axis=0)[1].item(), X[:, 1].mean(), rtol=1e-5)


def test_fused_softmax_with_causal_mask():
    x = np.random.default_rng(3).normal(size=(2, 4, 4)).astype("float32")
    wanted = special.softmax(np.where(np.tril(np.ones((4, 4))) > 0, x * 2, -1e4), -1)
    np.testing.assert_allclose(
        in_both_modes(lambda b: flow.math.fused_scale_tril_softmax_dropout(b, 0, -1e4, 2), x),
        wanted,
        rtol=1e-5,
        atol=1e-7,
    )
    found = run_in_job(lambda b: flow.math.fused_scale_tril_softmax_dropout(b, 0, -1e4, 2, rate=0.5, seed=1), x)
    kept = (found != 0) & (wanted > 1e-7)
    np.testing.assert_allclose(found[kept], wanted[kept] * 2, rtol=1e-5)
    assert 0.2 < kept.sum() / (wanted > 1e-7).sum() < 0.8


def test_gradients_match_formulas():
    x, dy = flow.tensor(X.astype("float64"), requires_grad=True), flow.tensor(Y.astype("float64"))
    flow.math.gelu(x).backward(dy)
    np.testing.assert_allclose(flow.math.gelu_grad(x.detach(), dy).numpy(), x.grad.numpy(), rtol=1e-10)
    x.grad = None
    y = flow.math.sigmoid(x)
    y.backward(dy)
    np.testing.assert_allclose(flow.math.sigmoid_grad(y.detach(), dy).numpy(), x.grad.numpy(), rtol=1e-10)


@pytest.mark.parametrize("name", ["reciprocal_no_nan", "log_sigmoid", "gelu"])
def test_gradients_of_unary_functions(name):
    points = [-3.0, -1.0, -1e-3, 0.5, 30.0]
    assert gradcheck(math(name), flow.tensor(points, dtype=flow.float64, requires_grad=True))


@pytest.mark.parametrize("name", ["xdivy", "xlogy", "squared_difference"])
def test_gradients_of_binary_functions(name):
    first = [1.0, -2.0, 0.5, -0.5, 3.0]
    second = [2.0, 1.0, 0.7, 0.6, 0.4] if name == "xlogy" else [2.0, -1.0, -0.7, 0.6, 1e-3]
    x, y = [flow.tensor(v, dtype=flow.float64, requires_grad=True) for v in (first, second)]
    assert gradcheck(getattr(flow.math, name), (x, y))


def test_every_function_accepts_a_name_last():
    factories = "reduction comparison unary_function binary_function described".split()
    for name in vars(m):
        function = getattr(m, name)
        if (
            getattr(function, "__module__", "").startswith("minflow.job.")
            and "name" in parameters(function)
            and name == function.__name__
        ):
            last = parameters(function)[-1]
            assert last == "name" or name in factories, name


def test_name_is_the_scope_of_its_ops():
    told = []

    def function(x):
        told.append((flow.math.gelu(x, name="bell").op_name, flow.math.gelu(x).op_name, flow.math.exp(x, "e").op_name))
        return x

    run_in_job(function, X)
    assert told == [("bell-mul", "gelu-mul", "e-exp")]
