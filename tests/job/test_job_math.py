"""flow.math in jobs and on eager tensors: numpy's numbers, that generation's dtypes, and gradients."""

import numpy as np
import pytest
from legacy import both, in_job, parameters
from scipy import special

import minflow as flow
from minflow.autograd import gradcheck
from minflow.core.base.errors import DTypeError, OutOfRangeError, ShapeError
from minflow.job.legacy import math as m

X = np.random.default_rng(0).uniform(-2, 2, (3, 4)).astype("float32")
Y = np.random.default_rng(1).uniform(-2, 2, (3, 4)).astype("float32")
INNER = (X / 2.2).astype("float32")       # in (-1, 1)
POSITIVE = np.abs(X) + np.float32(0.1)

UNARY = {
    "abs": (np.abs, X), "acos": (np.arccos, INNER), "acosh": (np.arccosh, POSITIVE + 1), "asin": (np.arcsin, INNER),
    "asinh": (np.arcsinh, X), "atan": (np.arctan, X), "atanh": (np.arctanh, INNER), "ceil": (np.ceil, X),
    "cos": (np.cos, X),
    "cosh": (np.cosh, X), "erf": (special.erf, X), "erfc": (special.erfc, X), "exp": (np.exp, X),
    "expm1": (np.expm1, X),
    "floor": (np.floor, X), "gelu": (lambda x: x * special.ndtr(x), X), "log": (np.log, POSITIVE),
    "lgamma": (special.gammaln, POSITIVE), "log1p": (np.log1p, INNER),
    "log_sigmoid": (lambda x: -np.logaddexp(0, -x), X), "negative": (np.negative, X),
    "reciprocal": (np.reciprocal, POSITIVE),
    "reciprocal_no_nan": (lambda x: np.where(x == 0, 0, 1 / np.where(x == 0, 1, x)), np.where(X > 0, X, np.float32(0))),
    "relu": (lambda x: np.maximum(x, 0), X), "rint": (np.rint, X * 2),
    "round": (np.round, np.float32([0.5, 1.5, -2.5])),
    "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE), "sigmoid": (special.expit, X), "sigmoid_v2": (special.expit, X),
    "sign": (np.sign, X), "sin": (np.sin, X), "sinh": (np.sinh, X), "softplus": (lambda x: np.logaddexp(0, x), X),
    "sqrt": (np.sqrt, POSITIVE), "square": (np.square, X), "tan": (np.tan, INNER), "tanh": (np.tanh, X),
    "tanh_v2": (np.tanh, X),
}
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "mod": np.mod,
    "floordiv": np.floor_divide, "maximum": np.maximum, "minimum": np.minimum, "atan2": np.arctan2,
    "squared_difference": lambda x, y: (x - y) ** 2, "xdivy": np.divide,
}
COMPARISONS = {
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
    "greater_equal": np.greater_equal, "logical_and": np.logical_and,
}
REDUCTIONS = {
    "reduce_sum": np.sum, "reduce_mean": np.mean, "reduce_max": np.max, "reduce_min": np.min, "reduce_prod": np.prod,
    "reduce_std": np.std, "reduce_variance": np.var, "two_stage_reduce_max": np.max, "two_stage_reduce_min": np.min,
    "reduce_euclidean_norm": lambda x, axis=None, keepdims=False: np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims)),
    "reduce_logsumexp": lambda x, axis=None, keepdims=False: special.logsumexp(x, axis=axis, keepdims=keepdims),
}


@pytest.mark.parametrize("name", UNARY)
def test_of_one(name):
    oracle, x = UNARY[name]
    found = both(lambda b: getattr(flow.math, name)(b, name="here"), x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, oracle(x.astype("float64")), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", BINARY)
def test_of_two(name):
    for y in (Y, Y[0], Y[:1]):
        found = both(getattr(flow.math, name), X, y)
        np.testing.assert_allclose(found, BINARY[name](X.astype("float64"), y.astype("float64")), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "pow", "less", "equal"])
def test_numbers_are_taken_beside_tensors(name):
    oracle = {"pow": np.power, "less": np.less, "equal": np.equal} | BINARY
    np.testing.assert_allclose(
        both(lambda x: getattr(flow.math, name)(x, 2.0), POSITIVE), oracle[name](POSITIVE, 2.0), rtol=1e-6
    )
    np.testing.assert_allclose(
        both(lambda x: getattr(flow.math, name)(2.0, x), POSITIVE), oracle[name](2.0, POSITIVE), rtol=1e-6
    )


def test_division_by_zero_is_not_hidden():
    assert np.isinf(both(lambda x: flow.math.divide(x, 0.0), POSITIVE)).all()


def test_subtract_of_one_element_keeps_its_order():
    np.testing.assert_array_equal(both(flow.math.subtract, np.float32([5]), np.float32([1, 2])), [4, 3])


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_give_int8(name):
    x, y = np.round(X), np.round(Y)
    found = both(getattr(flow.math, name), x, y)
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found, COMPARISONS[name](x, y))


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, -1, [1], [0, 2], (0, 1, 2)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(name, axis, keepdims):
    x = np.random.default_rng(2).uniform(-1, 1, (2, 3, 4)).astype("float32")
    found = both(lambda b: getattr(flow.math, name)(b, axis, keepdims), x)
    wanted = REDUCTIONS[name](
        x.astype("float64"), axis=tuple(axis) if isinstance(axis, list) else axis, keepdims=keepdims
    )
    assert found.shape == (wanted.shape or (1,))  # that generation had no array without axes
    np.testing.assert_allclose(found, wanted.reshape(found.shape), rtol=1e-5, atol=1e-6)


def test_reductions_without_axes_give_their_input():
    for name in REDUCTIONS:
        np.testing.assert_array_equal(both(lambda b, name=name: getattr(flow.math, name)(b, axis=[]), X), X)


def test_reductions_keep_integers():
    x = np.array([[1, 2], [3, 4]], "int32")
    assert both(flow.math.reduce_sum, x) == 10 and both(flow.math.reduce_sum, x).dtype == np.int32
    assert both(flow.math.reduce_prod, x) == 24 and both(flow.math.reduce_prod, x).dtype == np.int32
    assert both(lambda b: flow.math.reduce_max(b, 0), x).tolist() == [3, 4]


def test_any_and_all_give_int8():
    x = np.array([[1, 0, 0], [0, 0, 0], [1, 1, 1]], "int8")
    for name, wanted in (("reduce_any", [1, 0, 1]), ("reduce_all", [0, 0, 1])):
        found = both(lambda b, name=name: getattr(flow.math, name)(b, 1), x)
        assert found.tolist() == wanted and found.dtype == np.int8


def test_older_keywords_of_reductions():
    x = flow.tensor(X)
    assert np.isclose(flow.math.reduce_sum(input_tensor=x).item(), X.sum(), rtol=1e-5)
    assert np.isclose(flow.math.reduce_mean(input_blob=x, axis=0)[1].item(), X[:, 1].mean(), rtol=1e-5)


def test_variance_does_not_cancel():
    x = (np.arange(8) + 1e6).astype("float32")
    assert both(flow.math.reduce_variance, x) == np.var(np.arange(8))


def test_argmax_and_top_k():
    x = np.float32([[1, 3, 8, 7, 2], [1, 9, 4, 9, 2]])
    assert both(flow.math.argmax, x).tolist() == [2, 1] and both(flow.math.argmax, x).dtype == np.int32
    assert both(lambda b: flow.math.argmax(b, axis=0), x).tolist() == [0, 1, 0, 1, 0]
    found = both(lambda b: flow.math.top_k(b, k=2), x)
    assert found.dtype == np.int32 and found[0].tolist() == [2, 3] and sorted(found[1]) == [1, 3]
    assert both(lambda b: flow.math.top_k(b, axis=0, k=1), x).tolist() == [[0, 1, 0, 1, 0]]


def test_in_top_k():
    x = np.float32([[0.1, 0.7, 0.2], [0.5, 0.4, 0.1], [np.nan, 1, 2]])
    assert both(lambda t, p: flow.math.in_top_k(t, p, 1), np.int32([1, 1, 0]), x).tolist() == [1, 0, 0]
    assert both(lambda t, p: flow.math.in_top_k(t, p, 2), np.int32([1, 1, 0]), x).tolist() == [1, 1, 0]
    with pytest.raises(ShapeError, match=r"\(2,\).*\(3, 3\)"):
        flow.math.in_top_k(flow.tensor([0, 1]), flow.tensor(x), 1)


def test_l2_normalize():
    np.testing.assert_allclose(both(lambda b: flow.math.l2_normalize(b, 0), X), X / np.sqrt((X * X).sum(0)), rtol=1e-6)
    assert not both(lambda b: flow.math.l2_normalize(b, 0), np.zeros((2, 2), "float32")).any()


def test_clip_by_value():
    np.testing.assert_array_equal(both(lambda b: flow.math.clip_by_value(b, -1, 1), X), np.clip(X, -1, 1))
    np.testing.assert_array_equal(both(lambda b: flow.math.clip_by_value(b, max_value=0), X), np.minimum(X, 0))


def test_sums_of_lists():
    np.testing.assert_allclose(both(lambda a, b: flow.math.add_n([a, b, a]), X, Y), X + Y + X, rtol=1e-6)
    with pytest.raises(ShapeError, match=r"input 1 .*\(2,\).*\(3,\)"):
        flow.math.add_n([flow.ones(3), flow.ones(2)])
    with pytest.raises(DTypeError, match="add_n"):
        flow.math.add_n([])


def test_polyval():
    np.testing.assert_allclose(
        both(lambda x: flow.math.polyval([2, -1, 0.5], x), X), np.polyval([2, -1, 0.5], X), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_array_equal(both(lambda x: flow.math.polyval([3], x), X), np.full((3, 4), 3))
    assert not both(lambda x: flow.math.polyval([], x), X).any()


def test_triangles():
    x = np.arange(1, 13, dtype="float32").reshape(3, 4)
    for k in (-1, 0, 2):
        np.testing.assert_array_equal(both(lambda b, k=k: flow.math.tril(b, k), x), np.tril(x, k))
        wanted = np.where(np.tril(np.ones((3, 4)), k) > 0, x * 2, -7)
        np.testing.assert_array_equal(both(lambda b, k=k: flow.math.fused_scale_tril(b, k, -7, 2), x), wanted)


def test_fused_softmax_of_a_triangle():
    x = np.random.default_rng(3).normal(size=(2, 4, 4)).astype("float32")
    wanted = special.softmax(np.where(np.tril(np.ones((4, 4))) > 0, x * 2, -1e4), -1)
    np.testing.assert_allclose(
        both(lambda b: flow.math.fused_scale_tril_softmax_dropout(b, 0, -1e4, 2), x), wanted, rtol=1e-5, atol=1e-7
    )
    found = in_job(lambda b: flow.math.fused_scale_tril_softmax_dropout(b, 0, -1e4, 2, rate=0.5, seed=1), x)
    kept = (found != 0) & (wanted > 1e-7)
    np.testing.assert_allclose(found[kept], wanted[kept] * 2, rtol=1e-5)
    assert 0.2 < kept.sum() / (wanted > 1e-7).sum() < 0.8


def test_counts_and_broadcast():
    x = np.ones((3, 4, 5), "float32")
    assert both(lambda b: flow.math.reduced_shape_elem_cnt(b, axis=[0, 1]), x).tolist() == [12]
    assert both(flow.math.reduced_shape_elem_cnt, x).tolist() == [60]
    found = both(
        lambda a, b: flow.math.broadcast_to_compatible_with(a, [b]), np.float32([[1], [2]]),
        np.zeros((4, 1, 3), "float32")
    )
    np.testing.assert_array_equal(found, np.broadcast_to(np.float32([[1], [2]]), (4, 2, 3)))


def test_segments():
    x, ids = np.arange(1, 13, dtype="float32").reshape(3, 4), np.int32([0, 1, 0, 1])
    wanted = np.stack([x[:, [0, 2]].sum(1), x[:, [1, 3]].sum(1)], 1)
    np.testing.assert_array_equal(both(lambda d, i: flow.math.unsorted_segment_sum(d, i, 2, axis=1), x, ids), wanted)
    like = np.zeros((3, 5), "float32")
    found = both(lambda d, i, b: flow.math.unsorted_segment_sum_like(d, i, b, axis=1), x, ids, like)
    np.testing.assert_array_equal(found, np.pad(wanted, ((0, 0), (0, 3))))
    batch = np.int32([[0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0]])
    found = both(
        lambda d, i: flow.math.unsorted_batch_segment_sum(d, i, 2), np.tile(np.float32([1, 2, 3, 4]), (3, 1)), batch
    )
    assert found.tolist() == [[6, 4], [7, 3], [8, 2]]
    deep = np.arange(24, dtype="float32").reshape(2, 3, 4)
    found = both(lambda d, i: flow.math.unsorted_segment_sum(d, i, 2), deep, np.int32([[0, 1, 0], [1, 1, 0]]))
    np.testing.assert_array_equal(found, [deep[[0, 0, 1], [0, 2, 2]].sum(0), deep[[0, 1, 1], [1, 0, 1]].sum(0)])
    with pytest.raises(ShapeError, match=r"\(3,\) for axis 1 of \(3, 4\)"):
        flow.math.unsorted_segment_sum(flow.tensor(x), flow.tensor([0, 1, 0]), 2, axis=1)
    with pytest.raises(OutOfRangeError, match="2"):
        flow.math.unsorted_segment_sum(flow.tensor(x), flow.tensor([0, 1, 2]), 2)


def test_gradients_by_hand():
    x, dy = flow.tensor(X.astype("float64"), requires_grad=True), flow.tensor(Y.astype("float64"))
    flow.math.gelu(x).backward(dy)
    np.testing.assert_allclose(flow.math.gelu_grad(x.detach(), dy).numpy(), x.grad.numpy(), rtol=1e-10)
    x.grad = None
    y = flow.math.sigmoid(x)
    y.backward(dy)
    np.testing.assert_allclose(flow.math.sigmoid_grad(y.detach(), dy).numpy(), x.grad.numpy(), rtol=1e-10)


SPREAD = [-30.0, -3.0, -1.2, -0.7, -1e-3, 0.0, 1e-3, 0.7, 1.2, 3.0, 30.0]


@pytest.mark.parametrize("name, points", [
    ("asinh", SPREAD), ("acosh", [1.01, 1.5, 3.0, 50.0]), ("atanh", [-0.9, -0.1, 0.0, 0.5, 0.95]),
    ("sinh", [-3.0, -1e-3, 0.0, 2.0]),
    ("cosh", [-3.0, 0.0, 2.0]), ("erfc", [-1.0, 0.0, 2.0]), ("softplus", SPREAD), ("log_sigmoid", SPREAD),
    ("gelu", [-2.0, 0.0, 1.0]),
    ("reciprocal_no_nan", [-2.0, 0.5, 3.0]),
])  # fmt: skip
def test_slopes_of_composites(name, points):
    assert gradcheck(getattr(flow.math, name), flow.tensor(points, dtype=flow.float64, requires_grad=True))


@pytest.mark.parametrize("name", ["atan2", "xdivy", "xlogy", "squared_difference"])
def test_slopes_of_two(name):
    first = [1.0, -2.0, 0.5, -0.5, 3.0]
    second = [2.0, 1.0, 0.7, 0.6, 0.4] if name == "xlogy" else [2.0, -1.0, -0.7, 0.6, 1e-3]
    x, y = [flow.tensor(v, dtype=flow.float64, requires_grad=True) for v in (first, second)]
    assert gradcheck(getattr(flow.math, name), (x, y))


def test_atan2_on_the_axes():
    x, y = np.float64([0, 0, 1, -1, 0]), np.float64([1, -1, 0, 0, 0])
    np.testing.assert_allclose(both(flow.math.atan2, x, y), np.arctan2(x, y))
    assert gradcheck(flow.math.atan2, [flow.tensor(v[2:4], requires_grad=True) for v in (x, y)])


def test_where_x_is_zero():
    x, y = np.float32([0, 0, 2]), np.float32([0, 5, 4])
    assert both(flow.math.xdivy, x, y).tolist() == [0, 0, 0.5]
    np.testing.assert_allclose(both(flow.math.xlogy, x, y), [0, 0, 2 * np.log(4)], rtol=1e-6)


def test_small_and_huge_numbers_keep_their_digits():
    x = np.float32([1e-30, 1e-6, 1e10, 3e38])
    for name, oracle in (("asinh", np.arcsinh), ("sinh", lambda v: np.sinh(np.minimum(v, 1e4)))):
        v = x if name == "asinh" else np.float32([1e-30, 1e-6, 5, 80])
        np.testing.assert_allclose(both(getattr(flow.math, name), v), oracle(v.astype("float64")), rtol=1e-6)
    np.testing.assert_allclose(both(flow.math.acosh, np.float32([1.0001, 1e20, 3e38])),
                               np.arccosh(np.float32([1.0001, 1e20, 3e38]).astype("float64")), rtol=1e-5)
    np.testing.assert_allclose(both(flow.math.erfc, np.float32([3, 4])), special.erfc([3, 4]), rtol=1e-6)
    assert both(flow.math.softplus, np.float32([-200, 200])).tolist() == [0, 200]


def test_every_function_takes_a_name_last():
    for name in vars(m):
        function = getattr(m, name)
        if (
            getattr(function, "__module__", "").startswith("minflow.job.")
            and "name" in parameters(function)
            and name == function.__name__
        ):
            last = parameters(function)[-1]
            assert last == "name" or name in ("reduction", "comparison", "of_one", "of_two"), name
    with pytest.raises(DTypeError, match="argument 2 .* 3 is not a string"):
        flow.math.exp(flow.ones(2), 3)


def test_a_name_is_the_scope_of_its_ops():
    told = []

    def function(x):
        told.append((flow.math.gelu(x, name="bell").op_name, flow.math.gelu(x).op_name, flow.math.exp(x, "e").op_name))
        return x

    in_job(function, X)
    assert told == [("bell-mul", "gelu-mul", "e-exp")]
