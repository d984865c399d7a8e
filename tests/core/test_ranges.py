"""Arguments out of range, and unsupported dtypes, in functions without a kernel of their own."""

import pytest

import minflow as flow
from minflow.core.base.errors import DTypeError, MinflowError, OutOfRangeError
from tests.cases import in_cases
from tests.core.refusals import refusals

F = flow.nn.functional
RANGES = {
    "uniform_": (lambda x: x.uniform_(2, 1), r"\[2.0, 1.0\)"),
    "uniform_ of infinity": (lambda x: x.uniform_(0, float("inf")), "inf"),
    "normal_": (lambda x: x.normal_(0, -2), "-2"),
    "exponential_": (lambda x: x.exponential_(0), "lambd must be above 0, got 0"),
    "bernoulli_": (lambda x: x.bernoulli_(1.5), "p must be from 0 to 1, got 1.5"),
    "bernoulli": (lambda x: flow.bernoulli(x, -0.5), "got -0.5"),
    "bernoulli of nan": (lambda x: flow.bernoulli(x, float("nan")), "got nan"),
}


@pytest.mark.parametrize("name", RANGES)
@in_cases("shape", [(3,), (0,), ()])
def test_invalid_distribution_parameters_are_refused(name, shape):
    call, words = RANGES[name]
    x = flow.ones(*shape) if shape else flow.tensor(1.0)
    with pytest.raises(OutOfRangeError, match=words):
        call(x)
    assert x.equal(flow.ones_like(x))


@pytest.mark.parametrize("name", ["gelu", "silu", "leaky_relu", "softplus", "logsigmoid"])
@in_cases("dtype", [flow.int64, flow.int8, flow.uint8])
def test_integer_linspace_is_refused(name, dtype):
    with pytest.raises(DTypeError, match=f"{name}.*{dtype.name}"):
        getattr(F, name)(flow.tensor([1, 2], dtype=dtype))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, y: x.clamp_(y, None), "float32, which int64"),
        (lambda x, y: x.clamp_min_(0.5), "float32, which int64"),
        (lambda x, y: x.addcdiv_(y, y), "float32, which int64"),
        (lambda x, y: x.addcmul_(y, y), "float32, which int64"),
        (lambda x, y: x.div_(y, rounding_mode="floor"), "float32, which int64"),
        (lambda x, y: x.bool().bitwise_xor_(x), "int64, which bool"),
        (lambda x, y: x.logical_and_(y.expand(2, 3)), r"\(2, 3\).*\(3,\)"),
        (lambda x, y: y.reshape(1, 3).addmm_(flow.ones(2, 3), flow.ones(3, 3)), r"\(2, 3\).*\(1, 3\)"),
    ],
)
def test_in_place_overflow_is_refused(call, words):
    x, y = flow.tensor([1, 2, 3]), flow.tensor([0.5, 1.0, 2.0])
    with pytest.raises(MinflowError, match=words):
        call(x, y)
    assert x.tolist() == [1, 2, 3] and y.tolist() == [0.5, 1, 2]


@in_cases("wrong", [None, 3, flow.ones(2), [flow.float32], "float33", object])
def test_invalid_dtype_is_refused(wrong):
    for call in (
        lambda: flow.iinfo(wrong),
        lambda: flow.ones(2).new_tensor(1).to(dtype=wrong) if wrong is not None else flow.iinfo(wrong),
    ):
        with pytest.raises(DTypeError):
            call()


X, V = flow.ones(2, 2), flow.ones(2)
test_arguments_of_a_wrong_kind_are_refused = refusals(
    [
        (lambda: flow.tril(X, 2.5), "diagonal must be an integer, not float"),
        (lambda: flow.round(X, decimals=0.5), "decimals must be an integer, not float"),
        (lambda: flow.max(X, 0, other=X), "max: other and dim"),
        (lambda: X.min(X, keepdim=True), "min: other and dim"),
        (lambda: X.index_fill(0, flow.tensor([[0, 1]]), 1.0), "index must be a vector, got 2 axes"),
        (lambda: F.pad(X, {}), "not dict"),
        (lambda: int(X[0, 0] / 0), "inf"),
        (lambda: int(flow.tensor(float("nan"))), "nan"),
        (lambda: X.fill_(V), r"fill_.*\(2,\)"),
        (lambda: F.batch_norm(X, V, None, training=True), "running_var .*None"),
        (lambda: F.batch_norm(X, V, V, eps=-1.0), "eps must be a number above 0, got -1.0"),
        (lambda: flow.lerp(flow.tensor([1, 2], dtype=flow.uint8), V, 0.5), "lerp.*uint8"),
        (lambda: flow.nn.init.uniform_(V, 3), r"\[3, 1.0\)"),
    ]
)


def test_isclose_of_small_integers_does_not_wrap():
    a, b = flow.tensor([-1, 3], dtype=flow.int8), flow.tensor([127, 3], dtype=flow.int8)
    assert flow.isclose(a, b).tolist() == [False, True] and not flow.allclose(a, b)
    assert flow.isclose(flow.tensor([True, False]), flow.tensor([True, True])).tolist() == [True, False]
