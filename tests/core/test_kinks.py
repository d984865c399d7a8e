"""Functions at values that random floats miss: zeros, ties, infinity, NaN, small dtypes. Expected values by hand or
from PyTorch.

A row: the function, x (a tensor), its values, and the gradient of their sum (None: there is none). Each runs in every
floating dtype, eager and traced. Losses and activations: `../nn/test_nn_kinks.py`.
"""

import functools
import itertools
import math

import numpy as np
import pytest
from programs import planned

import minflow as flow
from minflow.core.grad.gradcheck import gradcheck
from minflow.core.ops.reduce import prod
from minflow.core.trace import trace
from tests.cases import in_cases
from tests.core.refusals import refusals

INF, NAN, LN2 = math.inf, math.nan, math.log(2)
TOLERANCE = {"float64": 1e-8, "float32": 1e-6, "float16": 2e-3}
pytestmark = pytest.mark.usefixtures("no_notices")

ROWS = {
    "max of NaN": (lambda x: x.max(), [1.0, NAN, 2.0, NAN], NAN, [0.0, 0.5, 0.0, 0.5]),
    "min of ties": (lambda x: x.min(), [2.0, 1.0, 1.0], 1.0, [0.0, 0.5, 0.5]),
    "amax of NaN in one row": (lambda x: x.amax(1), [[1.0, NAN], [3.0, 2.0]], [NAN, 3.0], [[0.0, 1.0], [1.0, 0.0]]),
    "median of NaN": (lambda x: x.median(), [1.0, NAN, 3.0], NAN, [0.0, 1.0, 0.0]),
    "median of ties": (lambda x: x.median(), [1.0, 5.0, 1.0, 0.0, 1.0], 1.0, [1 / 3, 0.0, 1 / 3, 0.0, 1 / 3]),
    "median of even many": (lambda x: x.median(), [4.0, 1.0, 3.0, 2.0], 2.0, [0.0, 0.0, 0.0, 1.0]),
    "median along an axis": (
        lambda x: x.median(1)[0], [[3.0, 1.0, 2.0], [1.0, NAN, NAN]], [2.0, NAN], [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    ),
    "prod of a zero": (lambda x: x.prod(), [2.0, 0.0, 3.0], 0.0, [0.0, 6.0, 0.0]),
    "prod of two zeros": (
        lambda x: x.prod(1), [[0.0, 0.0, 3.0], [1.0, 2.0, 3.0]], [0.0, 6.0], [[0.0, 0.0, 0.0], [6.0, 3.0, 2.0]]
    ),
    "prod of large and small": (lambda x: x.prod(), [1000.0, 1e-3, 2.0], 2.0, [0.002, 2000.0, 1.0]),
    "norm of zeros": (lambda x: x.norm(), [0.0, 0.0], 0.0, [0.0, 0.0]),
    "NaN times 0 in a product": (
        lambda x: x @ like(x, 0.0).reshape(1, 1), [[NAN], [-INF], [1.0]], [[NAN], [NAN], [0.0]], [[0.0]] * 3
    ),
    "norm of order 1/2": (lambda x: x.norm(0.5), [0.0, 4.0, 1.0], 9.0, [0.0, 1.5, 3.0]),
    "norm of order -1": (lambda x: x.norm(-1), [0.0, 2.0], 0.0, [0.0, 0.0]),
    "norm of large": (lambda x: x.norm(), [300.0, 400.0], 500.0, [0.6, 0.8]),
    "var of large": (lambda x: x.var(), [-300.0, 300.0, 0.0], 90000.0, [-300.0, 300.0, 0.0]),
    "std of large": (lambda x: x.std(), [-300.0, 300.0, 0.0], 300.0, [-0.5, 0.5, 0.0]),
    "var of infinity": (lambda x: x.var(), [INF, 0.0, 1.0], NAN, [NAN, -INF, -INF]),
    "var of one": (lambda x: x.var(), [3.0], NAN, [NAN]),
    "cumprod of a zero": (lambda x: x.cumprod(0), [2.0, 0.0, 3.0], [2.0, 0.0, 0.0], [1.0, 8.0, 0.0]),
    "cumprod of two zeros": (lambda x: x.cumprod(0), [0.0, 0.0, 3.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]),
    "logcumsumexp of large": (lambda x: x.logcumsumexp(0), [100.0, -100.0], [100.0, 100.0], [2.0, 0.0]),
    "cummax of ties and NaN": (lambda x: x.cummax(0)[0], [1.0, 3.0, 3.0, NAN, 5.0], [1.0, 3.0, 3.0, NAN, NAN],
                               [1.0, 1.0, 1.0, 2.0, 0.0]),
    "abs": (lambda x: x.abs(), [0.0, -0.0, NAN, -INF], [0.0, 0.0, NAN, INF], [0.0, 0.0, 0.0, -1.0]),
    "sign": (lambda x: x.sign(), [0.0, -0.0, NAN, -INF, 2.0], [0.0, 0.0, 0.0, -1.0, 1.0], [0.0] * 5),
    "relu": (lambda x: x.relu(), [0.0, -0.0, NAN, INF, -INF], [0.0, 0.0, NAN, INF, 0.0], [0.0, 0.0, 1.0, 1.0, 0.0]),
    "maximum": (lambda x: flow.maximum(x, like(x, NAN, 1.0, 1.0)), [1.0, 1.0, NAN], [NAN, 1.0, NAN], [1.0, 0.5, 1.0]),
    "minimum": (lambda x: flow.minimum(like(x, 2.0, 1.0), x), [1.0, 2.0], [1.0, 1.0], [1.0, 0.0]),
    "clamp at its ends": (
        lambda x: x.clamp(-1.0, 1.0), [-1.0, 1.0, 2.0, NAN], [-1.0, 1.0, 1.0, NAN], [1.0, 1.0, 0.0, 0.0]
    ),
    "clamp by an infinite min": (lambda x: flow.clamp(like(x, 0.0), min=x), [INF], [INF], [1.0]),
    "powers of 0": (lambda x: like(x, 0.0, 0.0, -0.0) ** x, [-2.0, 0.0, 1.0], [INF, 1.0, 0.0], [-INF, 0.0, 0.0]),
    "2 to the power x": (lambda x: 2**x, [0.0, 3.0], [1.0, 8.0], [LN2, 8 * LN2]),
    "0 to the power x": (lambda x: 0**x, [-1.0, 0.0, 2.0], [INF, 1.0, 0.0], [-INF, 0.0, 0.0]),
    "acosh": (flow.math.acosh, [1.0, INF, 0.0], [0.0, INF, NAN], [INF, 0.0, NAN]),
    "atan2 of y": (
        lambda x: flow.math.atan2(x, like(x, 0.0, -1.0, -1.0)), [0.0, 0.0, -0.0], [0.0, math.pi, -math.pi],
        [0.0, -1.0, -1.0]
    ),
    "atan2 of x": (lambda x: flow.math.atan2(like(x, 0.0, 1.0, INF), x), [0.0, -1.0, INF], [0.0, 0.75 * math.pi,
                   0.25 * math.pi],
                   [0.0, -0.5, NAN]),
    "to the power 0": (lambda x: x**0.0, [0.0, NAN, INF], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]),
    "trunc of a / 0": (
        lambda x: flow.div(x, like(x, 0.0, 2.0), rounding_mode="trunc"), [1.0, -5.0], [INF, -2.0], [0.0, 0.0]
    ),
    "lerp beyond its ends": (
        lambda x: flow.lerp(x, like(x, -INF, 4.0), like(x, -2.0, 1.0)), [-0.5, 3.0], [NAN, 4.0], [3.0, 0.0]
    ),
    "sqrt": (lambda x: x.sqrt(), [0.0, INF, -1.0], [0.0, INF, NAN], [INF, 0.0, NAN]),
    "softmax of one number": (lambda x: flow.softmax(x, 0), NAN, NAN, NAN),
    "softmax of many": (lambda x: flow.softmax(x.expand(5000, 1), 0)[:1], [[1.0]], [[2e-4]], None),
    "softmax of -inf": (lambda x: flow.softmax(x, 1), [[-INF, 0.0]], [[0.0, 1.0]], [[0.0, 0.0]]),
}  # fmt: skip


def like(x, *numbers):
    return flow.tensor(numbers, dtype=x.dtype)


@in_cases("dtype", TOLERANCE)
@pytest.mark.parametrize("name", ROWS)
def test_row(name, dtype):
    function, numbers, values, slopes = ROWS[name]
    x = flow.tensor(numbers, dtype=getattr(flow, dtype), requires_grad=slopes is not None)
    out = function(x)
    with np.errstate(over="ignore"):
        close(out, values, dtype)
        if slopes is not None:
            out.sum().backward()
            close(x.grad, slopes, dtype)
    graph, kept = trace(lambda x: [function(x).contiguous()], [x.detach()])
    (again,) = planned(graph, kept, [x.detach().numpy()])
    assert again.tobytes() == out.detach().numpy().tobytes()


def close(got, want, dtype: str) -> None:
    assert got.dtype.name == dtype
    np.testing.assert_allclose(got.detach().numpy(), np.asarray(want, dtype), rtol=TOLERANCE[dtype], atol=1e-12)


INTEGERS = {
    "sum": lambda x, dtype: x.sum(dtype=dtype),
    "prod": lambda x, dtype: x.prod(dtype=dtype),
    "cumsum": lambda x, dtype: x.cumsum(0, dtype=dtype),
    "mean": lambda x, dtype: x.mean(dtype=dtype),
}


@pytest.mark.parametrize(
    "name, dtype",
    [
        (n, d)
        for n, d in itertools.product(INTEGERS, ["int8", "uint8", "int32", "float16", "float64"])
        if n != "mean" or d.startswith("float")
    ],
)
def test_requested_dtype(name, dtype):
    """Small integers wrap around, as in PyTorch: 100 + 100 + 3 = 203 is -53 in int8."""
    numbers = np.array([100, 100, 3], "int8")
    with np.errstate(over="ignore"):
        wanted = getattr(numbers.astype(dtype), name)(dtype=dtype)
    got = INTEGERS[name](flow.from_numpy(numbers), getattr(flow, dtype))
    assert got.dtype.name == dtype and got.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    "dtype, numbers, want", [("uint8", [1, 2, 3], 3.4076059), ("int8", [-100, 100], 100.0), ("bool", [1, 0], 1.3132617)]
)
def test_logsumexp_of_integers(dtype, numbers, want):
    got = flow.logsumexp(flow.tensor(numbers, dtype=getattr(flow, dtype)), 0)
    assert got.dtype is flow.float32 and got.item() == pytest.approx(want)


def test_uniform_is_below_its_upper_bound():
    for dtype in (flow.float16, flow.float32, flow.float64):
        for low, high in ((0.0, 1.0), (1.0, 2.0), (-3.0, 3.0), (1000.0, 1001.0), (5.0, 5.0)):
            x = flow.empty(200_000, dtype=dtype).uniform_(low, high)
            assert float(x.min()) >= low and (float(x.max()) < high or low == high)


@in_cases("zeros", range(4))
def test_second_derivative_of_prod_is_symmetric(zeros):
    numbers = [0.0] * zeros + [1.5, -2.0, 3.0, 0.5][: 4 - zeros]
    x = flow.tensor(numbers, dtype=flow.float64, requires_grad=True)
    (first,) = flow.autograd.grad(x.prod(), x, create_graph=True)
    rows = [flow.autograd.grad(g, x, retain_graph=True)[0].tolist() for g in first]
    wanted = [
        [math.prod([n for k, n in enumerate(numbers) if k not in (i, j)]) if i != j else 0.0 for j in range(4)]
        for i in range(4)
    ]
    assert np.allclose(rows, wanted, rtol=1e-12, atol=0)
    for axis, shape in (((0, 2), (2, 3, 3)), ((1,), (2, 5)), (None, (3, 1))):
        x = flow.randn(*shape, dtype=flow.float64).requires_grad_()
        assert gradcheck(functools.partial(prod, axis=axis, keepdims=True), x)


def test_integer_linspace_empty_chunks_and_empty_reductions():
    assert flow.linspace(2.5, -2, 5, dtype=flow.int8).tolist() == [2, 1, 0, -1, -2]
    assert flow.arange(0.5, dtype=flow.int64).tolist() == []
    assert flow.arange(0, 2.5, dtype=flow.int64).tolist() == [0, 1]
    assert flow.linspace(0, 3, 1, dtype=flow.int32).tolist() == [0]
    assert flow.linspace(0, 10, 4, dtype=flow.int64).tolist() == [0, 3, 6, 10]
    assert [part.shape for part in flow.zeros(0, 3).chunk(2)] == [(0, 3), (0, 3)]
    x = flow.tensor([0.0, 2.0])
    assert x.any([]).tolist() == x.any(()).tolist() == x.all(()).tolist() == [False, True]
    assert [places.tolist() for places in flow.nonzero(flow.tensor(2.5), as_tuple=True)] == [[0]]


def test_dtypes_and_isclose_at_limits():
    half, small = flow.ones(2, dtype=flow.float16), flow.ones(2, dtype=flow.uint8)
    assert flow.sub(half, small, alpha=-0.5).dtype is flow.float16 and flow.add(1, half, alpha=2).tolist() == [3.0, 3.0]
    assert flow.sub(half[0], -2.0, alpha=-0.5).dtype is flow.float16
    assert flow.add(half > 0, half > 0, alpha=0).dtype is flow.bool
    assert flow.tensor([True, False]).clip(min=flow.tensor([False, True])).tolist() == [True, True]
    x, y = flow.tensor([1.0, INF, INF, 5.0]), flow.tensor([9.0, -INF, INF, NAN])
    assert flow.isclose(x, y, INF).tolist() == [True, False, True, False]
    assert flow.isclose(flow.tensor([True]), flow.tensor([False]), 0, 1.0).tolist() == [True]
    assert flow.tensor(True).max(0)[0].dtype is flow.tensor(True).min(-1)[0].dtype is flow.bool


def test_norm_of_a_scalar_is_its_absolute_value():
    x = flow.tensor([[4.1875], [-2.0]])
    assert x.norm(1000.0, dim=1).tolist() == x.norm(-1000.0, dim=1).tolist() == [4.1875, 2.0]
    assert x.norm(0, dim=1).tolist() == [1, 1]


def test_variance_of_an_empty_tensor_is_nan():
    assert flow.isnan(flow.std(flow.zeros(0), correction=-1))


def test_float16_statistics_are_computed_in_float32():
    half = [flow.tensor([[[-3.0]]]), flow.tensor([-2.9375]), flow.tensor([0.5])]
    out = flow.nn.functional.batch_norm(*[x.to(flow.float16) for x in half])
    assert out.dtype is flow.float16 and abs(out.item() + 0.08838) < 1e-4


@pytest.mark.parametrize("loss", [flow.nn.functional.l1_loss, flow.nn.functional.mse_loss])
def test_zero_dim_target_takes_part_in_promotion(loss):
    assert loss(flow.ones(2).to(flow.float16), flow.tensor(0.5)).dtype is flow.float32


test_what_pytorch_refuses = refusals([
    (lambda: flow.nn.AvgPool2d(2, divisor_override=float("nan"))(flow.zeros(1, 4, 4)), "must be an integer"),
    (lambda: flow.softmax(flow.zeros(2), 0, True), "no dtype True"),
    (lambda: flow.zeros(2, dtype=[]), r"no dtype \[\]"),
    (lambda: flow.eye(2, 2, flow.int64), "2 positional arguments, got 3"),
    (lambda: flow.broadcast_to(flow.tensor(0.0), {}), "size must be an integer, not dict"),
    (lambda: flow.autograd.grad(flow.zeros(1, requires_grad=True) * 2, [flow.zeros(1, requires_grad=True)], []),
     "1 tensors and 0 gradients"),
    (lambda: flow.tensor(0).copy_(flow.tensor([1])), r"\(1,\) cannot be broadcast to \(\), which has fewer axes"),
    (lambda: flow.nn.AvgPool2d(2)(flow.zeros(2, 0, 4)), r"an image of \[2, 0, 4\] has no pixels"),
    (lambda: np.ones(2) in flow.ones(2), "ndarray in a tensor"),
    (lambda: flow.nn.init.normal_(flow.ones(2), np.ones(2)), "mean and std are one number each"),
])  # fmt: skip


@pytest.mark.parametrize(("dtypes", "numbers", "wanted"), [
    ("int64 int8 int8", (1, 100, 7), 701),
    ("int32 uint8 uint8", (1, 200, 200), 40001),
    ("int64 int8 int32", (1, 100, 2**31 - 1), 1 + 100 * (2**31 - 1)),
    ("float64 int8 int8", (1, 100, 7), 701.0),
    ("float64 float16 uint8", (1, 60000.0, 7), 420001.0),
    ("float32 float16 float16", (1, 512.0, 512.0), 262145.0),
])  # fmt: skip
def test_addcmul_multiplies_in_the_common_dtype(dtypes, numbers, wanted):
    x, a, b = [flow.tensor([n], dtype=getattr(flow, dtype)) for n, dtype in zip(numbers, dtypes.split())]
    assert flow.addcmul(x, a, b).tolist() == x.clone().addcmul_(a, b).tolist() == [wanted]
    assert flow.addcmul(x, a, b).dtype is x.dtype


def test_addcdiv_divides_in_the_result_dtype():
    x, a, b = flow.zeros(1, dtype=flow.float64), flow.ones(1, dtype=flow.float16), flow.tensor([3], dtype=flow.int8)
    assert flow.addcdiv(x, a, b).tolist() == x.addcdiv_(a, b).tolist() == [1 / 3]


def test_addcmul_and_addcdiv_accumulate_float16_in_float32():
    half = lambda *numbers: flow.tensor(numbers, dtype=flow.float16)
    assert flow.addcmul(half(1.0), half(-2.0), half(60000.0), value=1e-3).tolist() == [-119.0]
    assert flow.addcmul(half(1.0), half(0.0), half(1.0), value=100000).tolist() == [1.0]
    assert flow.addcdiv(half(1.0), half(60000.0), half(0.5), value=1e-3).tolist() == [121.0]
    assert half(1.0).addcmul_(half(-2.0), half(60000.0), value=1e-3).tolist() == [-119.0]


@pytest.mark.parametrize("function", [flow.addcmul, flow.addcdiv])
def test_broadcast_gradients_are_summed_after_the_product(function):
    """An operand broadcast to an empty result has zero gradient, even if the product would be NaN, as in PyTorch."""
    a, b = flow.tensor([NAN], requires_grad=True), flow.tensor([0.0], requires_grad=True)
    function(flow.zeros(0, 1), a, b).backward(flow.zeros(0, 1))
    assert a.grad.tolist() == b.grad.tolist() == [0.0]


def test_linspace_of_one_step_is_its_start():
    assert flow.linspace(INF, 0, 1).tolist() == [INF] and flow.linspace(3, INF, 1).tolist() == [3.0]


def test_float16_mean_does_not_overflow():
    assert flow.tensor([2**40, -(2**40), 1]).mean(dtype=flow.float16).item() == pytest.approx(1 / 3, rel=1e-3)
    mean = flow.tensor([[1e5, -1e5], [4.0, 2.0]]).mean(1, keepdim=True, dtype=flow.float16)
    assert mean.tolist() == [[0.0], [3.0]] and mean.dtype is flow.float16
