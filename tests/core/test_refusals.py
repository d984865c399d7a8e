"""Calls without an answer are refused and not answered silently.

Checks of values are in kernels (`core/ops/checks.py`): eager, a graph and a job report the same error, once, at their
own line. Checks of arguments need no values, and come first.
"""

import math
import sys

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.base.errors import (
    DivisionError,
    DTypeError,
    GradError,
    JobError,
    OptimError,
    OutOfRangeError,
    ShapeError,
)
from minflow.core.ops import checks
from tests.core.refusals import refusals
from tests.graphs import Predict

F, N = nn.functional, math.nan
X = np.arange(12, dtype="float32").reshape(3, 4)
P = np.array([0.25, 0.5, 1], "float32")
I = np.array([2, 0, 3])

# name -> (program, valid inputs, invalid last input, error class, words of its text)
NUMBERS = {
    "//": (lambda a, b: a // b, (I, I + 1), [1, 0, 1], DivisionError, "floor_divide: .*0 .at position 1 of b"),
    "%": (lambda a, b: a % b, (I, I + 1), [1, 1, 0], DivisionError, "remainder: .*0 .at position 2 of b"),
    "fmod": (lambda a, b: flow.fmod(a, b), (I, I + 1), [0, 1, 0], DivisionError, "fmod: .*0 .at position 0 of b"),
    "number //": (lambda b: 7 // b, (I + 1,), [1, 0, 1], DivisionError, "floor_divide: .*0 .at position 1 of b"),
    "trunc": (
        lambda a, b: flow.div(a, b, rounding_mode="trunc"),
        (I, I + 1),
        [1, 0, 1],
        DivisionError,
        "0 .at position 1",
    ),
    "one_hot": (lambda i: flow.one_hot(i, 4), (I,), [0, -1, 3], OutOfRangeError, "one_hot: index -1 .at position 1"),
    "gather": (
        lambda x, i: x.gather(1, i[:, None]),
        (X, I),
        [0, -1, 3],
        OutOfRangeError,
        r"gather: index -1 .at .*\(1, 0\)",
    ),
    "index_select": (
        lambda x, i: flow.index_select(x, 1, i),
        (X, I),
        [-4, 0, 0],
        OutOfRangeError,
        "index_select: index -4 .at pos",
    ),
    "index_add": (
        lambda x, i: flow.index_add(x, 1, i, x[:, :3]),
        (X, I),
        [0, 0, -2],
        OutOfRangeError,
        "index_add: index -2 .at pos",
    ),
    "index_copy": (
        lambda x, i: x.index_copy(1, i, x[:, :3]),
        (X, I),
        [0, 0, -2],
        OutOfRangeError,
        "index_copy: index -2 .at pos",
    ),
    "scatter": (
        lambda x, i: x.scatter(1, i[:, None], 5.0),
        (X, I),
        [0, 0, -1],
        OutOfRangeError,
        r"scatter: index -1 .at .*\(2, 0\)",
    ),
    "scatter_add": (
        lambda x, i: x.scatter_add(1, i[:, None], x),
        (X, I),
        [0, 4, 0],
        OutOfRangeError,
        "scatter_add: index 4 .at",
    ),
    "x[i]": (
        lambda x, i: x[:, i],
        (X, I),
        [0, 4, 0],
        OutOfRangeError,
        "indexing: index 4 .at position 1.*axis 1, which has size 4",
    ),
    "embedding": (lambda w, i: F.embedding(i, w), (X, I % 3), [0, -1, 0], OutOfRangeError, "index -1 .at.* 0 to 2"),
    "bce": (
        lambda p, t: F.binary_cross_entropy(p, t),
        (P, P),
        [0.5, 5, 0],
        OutOfRangeError,
        "target .* 5 .at position 1",
    ),
    "bce nan": (
        lambda t, p: F.binary_cross_entropy(p, t),
        (P, P),
        [0.5, 0, N],
        OutOfRangeError,
        "input .* nan .at pos",
    ),
    "bernoulli": (
        lambda p: flow.bernoulli(p) * 0,
        (P,),
        [0.5, -0.5, 1],
        OutOfRangeError,
        "first outside is -0.5 .at position 1",
    ),
    "take": (lambda x, i: flow.take(x, i), (X, I), [0, -13, 0], OutOfRangeError, "take: index -13 .at position 1"),
}


def annotated(program, inputs):
    """The program as a job, which reads its inputs from annotations."""

    def job(*blobs):
        return program(*blobs)

    kinds = [flow.typing.Numpy.Placeholder(x.shape, dtype=flow.tensor(x).dtype) for x in inputs]
    names = [f"b{k}" for k in range(len(kinds))]
    scope = {"program": program, **{f"k{k}": kind for k, kind in enumerate(kinds)}, "Numpy": flow.typing.Numpy}
    source = ", ".join(f"{name}: k{k}" for k, name in enumerate(names))
    exec(f"def job({source}) -> Numpy:\n    return program({', '.join(names)})", scope)
    return flow.global_function()(scope["job"])


@pytest.fixture
def checked(monkeypatch):
    """Names of the value checks that ran: each kernel with a check gets one that counts."""
    ran = []

    def counting(check):
        return lambda *args: (ran.append(check.__name__), check(*args))[1]

    for module in [m for name, m in list(sys.modules.items()) if name.startswith("minflow.") and m is not checks]:
        for name in ("check_bounds", "check_divisor", "check_unit", "check_labels"):
            if vars(module).get(name) is getattr(checks, name):  # getattr would ask a module for similar names
                monkeypatch.setattr(module, name, counting(getattr(checks, name)))
    yield ran
    flow.clear_default_session()


@pytest.mark.parametrize("name", NUMBERS)
def test_values_are_refused_in_every_mode(name, checked):
    program, good, wrong, kind, words = NUMBERS[name]
    bad, here = (*good[:-1], np.array(wrong, good[-1].dtype)), __file__.rpartition("/")[2]

    def times(call) -> int:
        before = len(checked)
        call()
        return len(checked) - before

    runs = times(lambda: program(*map(flow.tensor, good)))
    assert runs == (2 if name in ("trunc", "bce", "bce nan") else 1)  # fmod and floor_divide; input and target
    with pytest.raises(kind, match=words) as eager:
        program(*map(flow.tensor, bad))
    assert here in eager.value.where and eager.value.hint and eager.value.values

    graph = Predict(program)
    first = graph(*map(flow.tensor, good))
    assert times(lambda: graph(*map(flow.tensor, good))) == runs
    with pytest.raises(kind, match=words) as traced:
        graph(*map(flow.tensor, bad))
    assert traced.value.what == eager.value.what and here in traced.value.where
    assert graph(*map(flow.tensor, good)).tolist() == first.tolist()  # and the graph still works

    job = annotated(program, good)
    job(*good)
    assert times(lambda: job(*good)) == runs
    with pytest.raises(JobError, match="step 3 of job.*" + words):
        job(*bad)


test_arguments_are_refused = refusals(
    [
        (OutOfRangeError, lambda: flow.full((2,), N, dtype=flow.int64), "nan does not fit into int64"),
        (OutOfRangeError, lambda: flow.tensor([1.0, N], dtype=flow.int32), "(?s)nan does not fit into int32.*smallest"),
        (OutOfRangeError, lambda: flow.arange(3).__setitem__(0, N), "nan does not fit into int64"),
        (OutOfRangeError, lambda: flow.arange(3).__setitem__([0], -math.inf), "-inf does not fit into int64"),
        (OutOfRangeError, lambda: flow.arange(3).__setitem__(flow.arange(3) > 1, N), "nan does not fit into int64"),
        (OutOfRangeError, lambda: flow.arange(3).fill_(math.inf), "inf does not fit into int64"),
        (OutOfRangeError, lambda: flow.arange(3).to(flow.uint8).fill_(300.5), "300.5 does not fit into uint8"),
        (OutOfRangeError, lambda: flow.zeros(3).half().fill_(1e5), "100000.0 does not fit into float16"),
        (OutOfRangeError, lambda: flow.arange(3).index_fill(0, flow.tensor([0]), N), "index_fill: nan .* int64"),
        (OutOfRangeError, lambda: flow.arange(3).scatter(0, flow.tensor([0]), N), "scatter: nan .* int64"),
        (
            OutOfRangeError,
            lambda: flow.allclose(ROWS(), ROWS(), rtol=-1.0),
            "rtol must be a number of at least 0, got -1.0",
        ),
        (OutOfRangeError, lambda: flow.isclose(ROWS(), ROWS(), atol=N), "atol must be a number of at least 0, got nan"),
        (
            OutOfRangeError,
            lambda: F.batch_norm(ROWS(), None, None, training=True, eps=-1.0),
            "eps must be a number above 0, got -1.0",
        ),
        (
            OutOfRangeError,
            lambda: F.batch_norm(ROWS(), None, None, training=True, eps=0.0),
            "eps must be a number above 0, got 0.0",
        ),
        (OutOfRangeError, lambda: nn.BatchNorm1d(4, eps=-1.0).eval()(ROWS()), "eps must be a number above 0, got -1.0"),
        (OutOfRangeError, lambda: F.embedding(flow.tensor([0]), ROWS(), padding_idx=3), "padding_idx is 3"),
        (
            ShapeError,
            lambda: F.conv2d(IMAGE(), flow.zeros(1, 1, 0, 0)),
            r"kernel_size must be at least 1, got \(0, 0\)",
        ),
        (ShapeError, lambda: F.conv2d(IMAGE(), flow.zeros(0, 1, 2, 2)), "0 filters in 1 groups"),
        (ShapeError, lambda: F.max_pool2d(IMAGE(), 0), "kernel_size must be an integer of at least 1.*, got 0"),
        (ShapeError, lambda: F.avg_pool2d(IMAGE(), 2, divisor_override=0), "divisor_override is 0"),
        (OutOfRangeError, lambda: flow.tensordot(ROWS(), ROWS(), dims=-1), "dims is -1"),
        (OutOfRangeError, lambda: flow.tensordot(ROWS(), ROWS(), dims=([0, 0], [0, 0])), "names an axis twice"),
        (ShapeError, lambda: flow.trace(flow.zeros(2, 2, 2)), "must be a matrix, got 3 axes"),
        (ShapeError, lambda: flow.addmm(flow.zeros(7), ROWS(), ROWS().T, beta=0), r"\[7\] does not .* \[3, 3\]"),
        (ShapeError, lambda: flow.addmm(flow.zeros(1, 3, 3), ROWS(), ROWS().T), r"\[1, 3, 3\] does not"),
        (OutOfRangeError, lambda: flow.one_hot(flow.tensor([0]), 0), "num_classes is 0"),
        (OutOfRangeError, lambda: flow.arange(2**63), "goes beyond int64"),
        (DTypeError, lambda: flow.finfo(()), r"no dtype \(\)"),
        (DTypeError, lambda: flow.full(b"x", 0.0), "size must be an integer, not bytes"),
        (ShapeError, lambda: flow.arange(flow.tensor([3])), r"(?s)one number each.*end +int64\[1\]"),
        (OutOfRangeError, lambda: flow.arange(0, 2, 0.5, dtype=flow.int64), "a step of 0.5 is 0 in int64"),
        (DTypeError, lambda: flow.zeros(True), "size must be an integer, not bool"),
        (OutOfRangeError, lambda: flow.randperm(True), "must be an integer of at least 0, got True"),
        (DTypeError, lambda: flow.randint_like(ROWS(), True), "high must be an integer, not bool"),
        (DTypeError, lambda: flow.eye(TRUE()), r"(?s)n must be an integer, not Tensor.*n +bool\[\]"),
        (DTypeError, lambda: flow.zeros(2, TRUE()), r"(?s)size must be an integer.*size +bool\[\]"),
        (DTypeError, lambda: flow.triu(ROWS(), TRUE()), r"(?s)diagonal must be.*diagonal +bool\[\]"),
        (DTypeError, lambda: flow.diagonal(ROWS(), TRUE()), "offset must be an integer, not Tensor"),
        (DTypeError, lambda: flow.ones(1).expand(TRUE()), "size must be an integer, not Tensor"),
        (
            ShapeError,
            lambda: flow.addcmul(ROWS(), flow.ones(2), 1.0),
            r"(?s)addcmul: sizes differ, 4 \(axis 1 of input\) and 2 \(axis 0 of tensor1\).*tensor1 +float32\[2\]",
        ),
        (
            ShapeError,
            lambda: flow.broadcast_tensors(ROWS(), flow.ones(2)),
            r"(?s)axis 0 of tensors\[1\].*tensors\[1\] +float32\[2\]",
        ),
        (ShapeError, lambda: flow.full(ROWS(), 0.0), r"(?s)the size must be integers, got a tensor.*\[3, 4\]"),
        (OutOfRangeError, lambda: flow.normal(ROWS(), N), "the standard deviation must be at least 0, got nan"),
        (ShapeError, lambda: flow.normal(ROWS(), ROWS(), 1), "size must not be given together with tensors"),
        (OutOfRangeError, lambda: ROWS().random_(0), r"no integer in \[0, 0\)"),
        (DTypeError, lambda: ROWS().random_(2.5), "high must be an integer, not float"),
        (ShapeError, lambda: ROWS().bernoulli(ROWS()), "p must be a number, got a tensor"),
        (DTypeError, lambda: ROWS().all(-1, -2), "keepdim must be True or False, got -2"),
        (DTypeError, lambda: ROWS().view(flow.int32), "the bits of float32 cannot be viewed as int32"),
        (DTypeError, lambda: ROWS().to(flow.uint8, ROWS()), "one dtype, not uint8 and float32"),
        (ShapeError, lambda: ROWS().fill_([1.0, 2.0]), r"the value must be one number, got \[1.0, 2.0\]"),
        (ShapeError, lambda: flow.meshgrid(), "meshgrid needs at least one vector"),
        (OutOfRangeError, lambda: flow.take_along_dim(ROWS(), flow.tensor([-1])), "without dim: index -1"),
        (DTypeError, lambda: nn.BatchNorm1d(4, momentum="x")(ROWS()), "momentum must be a number from 0 to 1, got 'x'"),
        (
            ShapeError,
            lambda: F.batch_norm(ROWS()[:, :1], flow.ones(1), flow.ones(2)),
            r"running_var must be \(1,\).*, got \(2,\)",
        ),
        (OutOfRangeError, lambda: flow.arange(), "(?s)needs an end.*end +None"),
        (ShapeError, lambda: F.adaptive_avg_pool2d(IMAGE(), (1, 2, 3)), r"output_size must be .*, got \(1, 2, 3\)"),
        (
            DTypeError,
            lambda: F.nll_loss(ROWS(), flow.tensor([0, 1, 2]), ignore_index="x"),
            "ignore_index must be an integer, not str",
        ),
        (DTypeError, lambda: nn.init.orthogonal_(ROWS().int()), "the tensor must be floating, got int32"),
        (
            ShapeError,
            lambda: F.conv2d(IMAGE(), flow.zeros(1, 1, 2, 2), flow.ones(2)),
            r"the bias must be \(1,\).*, got \(2,\)",
        ),
        (ShapeError, lambda: flow.einsum("ii->i", flow.ones(3, 1)), "'i' is 3 and 1 in tensor 0"),
        (ShapeError, lambda: flow.einsum("1->", flow.ones(3)), "'1' in '1->' is not a letter"),
        (DTypeError, lambda: flow.full((2,), None, dtype=flow.float32), "fill_value must be a number, got None"),
        (DTypeError, lambda: ROWS().new_full((2,), flow.int64), "fill_value must be a number, got minflow.int64"),
        (DTypeError, lambda: flow.stack(b"ab"), "stack: tensors must be a list .* got b'ab'"),
        (OutOfRangeError, lambda: flow.randint(-2, 3, (2,), dtype=flow.uint8), "-2 does not fit into uint8"),
        (OutOfRangeError, lambda: flow.ones(2).half().random_(70000), "69999 does not fit into float16"),
        (DTypeError, lambda: ROWS().random_(flow.tensor(9.5)), "high must be an integer"),
        (GradError, lambda: flow.autograd.grad(ROWS().requires_grad_().sum(), []), "inputs is empty"),
        (
            DTypeError,
            lambda: F.binary_cross_entropy(ROWS(), ROWS(), weight=-4),
            "(?s)weight must be a tensor, got int.*-4",
        ),
        (
            DTypeError,
            lambda: F.binary_cross_entropy_with_logits(ROWS(), ROWS(), pos_weight=[2.0]),
            "(?s)pos_weight must be a tensor, got list.*2.0",
        ),
        (DTypeError, lambda: flow.any(ROWS(), (), 5), "keepdim must be True or False, got 5"),
        (ShapeError, lambda: ROWS().index_add(0, flow.tensor(0), flow.ones(4)), r"src must have shape .*, got \(4,\)"),
        (
            ShapeError,
            lambda: ROWS().index_copy(0, flow.tensor([[0]]), flow.ones(1, 1, 4)),
            "index must be a vector, got 2 axes",
        ),
        (ShapeError, lambda: nn.init.sparse_(flow.ones(3, 0), N), "(?s)sparse_: .*NaN.*sparsity +nan"),
        (
            OptimError,
            lambda: adam(maximize=np.ones(2)),
            r"(?s)maximize must be True or False, got an ndarray.*array\(\[1., 1.\]\)",
        ),
        (ShapeError, lambda: F.layer_norm(ROWS(), (4,), bias=flow.ones(1)), r"bias has shape \[1\], .*\[4\]"),
        (ShapeError, lambda: F.layer_norm(ROWS(), (3, 4), ROWS()[0]), r"weight has shape \[4\], .*\[3, 4\]"),
        (ShapeError, lambda: F.linear(ROWS(), flow.ones(1, 4), flow.ones(2)), r"bias has shape \[2\], .*\[3, 1\]"),
        (
            ShapeError,
            lambda: F.linear(ROWS(), flow.ones(2, 4), flow.ones(1, 3, 2)),
            r"bias has shape \[1, 3, 2\], the result \[3, 2\]",
        ),
        (DTypeError, lambda: ROWS().unsqueeze(True), "dim must be an integer, not bool"),
    ]
)


def adam(**options):
    return flow.optim.Adam([nn.Parameter(flow.ones(2))], **options)


def ROWS():
    return flow.tensor(X)


def TRUE():
    return flow.tensor(True)


def IMAGE():
    return flow.zeros(1, 1, 4, 4)


BYTES = {  # an accidental sequence of ints
    "repeat": lambda b: ROWS().repeat(b), "new_empty": lambda b: ROWS().new_empty(b),
    "roll": lambda b: ROWS().roll(b, 0),
    "dims": lambda b: ROWS().roll(1, b), "sum": lambda b: ROWS().sum(b), "reshape": lambda b: ROWS().reshape(b),
    "permute": lambda b: ROWS().permute(b), "split": lambda b: ROWS().split(b),
    "movedim": lambda b: ROWS().movedim(b, b),
    "zeros": lambda b: flow.zeros(b), "tensordot": lambda b: flow.tensordot(ROWS(), ROWS(), b),
    "flip": lambda b: ROWS().flip(b),
    "expand": lambda b: ROWS().expand(b), "tile": lambda b: ROWS().tile(b), "stack": lambda b: flow.stack(b),
}  # fmt: skip


@pytest.mark.parametrize("name", BYTES)
def test_bytes_are_not_numbers(name):
    for wrong in (bytes([1, 0]), bytearray([1, 0]), memoryview(bytes([1, 0])), b"", b"\x00"):
        with pytest.raises(DTypeError, match="bytes|bytearray|memory|b'"):
            BYTES[name](wrong)


ALONG = {  # functions along one or several axes
    **{
        name: getattr(flow, name)
        for name in ("softmax", "log_softmax", "argmax", "argmin", "sort", "argsort", "unsqueeze", "max")
    },
    **{name: getattr(flow, name) for name in ("median", "cumsum", "flatten", "min", "std_mean", "var_mean")},
}
ALONG_SEVERAL = {
    name: getattr(flow, name)
    for name in (
        "sum",
        "mean",
        "prod",
        "amax",
        "amin",
        "any",
        "all",
        "std",
        "var",
        "norm",
        "logsumexp",
        "count_nonzero",
        "flip",
        "squeeze",
    )
}
ALONG_SEVERAL |= {"norm": lambda x, dim: flow.norm(x, 2, dim)}


@pytest.mark.parametrize("name", [*ALONG, *ALONG_SEVERAL])
def test_axes_must_exist_and_be_unique(name):
    along = ALONG.get(name) or ALONG_SEVERAL[name]
    for x, axis in ((flow.tensor(1.5), 1 + (name == "unsqueeze")), (flow.tensor(1.5), -3), (flow.zeros(2, 2), 5)):
        with pytest.raises((OutOfRangeError, ShapeError), match=f"{axis}"):
            along(x, axis)
    if name in ALONG_SEVERAL:
        for axes in ((0, 0), (0, -2), (1, 0, -1)):
            with pytest.raises(OutOfRangeError, match="names an axis twice"):
                along(flow.zeros(2, 2), axes)
