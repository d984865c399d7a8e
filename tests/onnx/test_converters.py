"""Every ONNX converter against its op: the examples of each op as a model, checked by onnx and run by onnxruntime.

Floats are float32 here: models use it, and onnxruntime lacks many of its kernels in float64.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import minflow as flow
from minflow.compiler.dynamic_shapes.traces import solve_sizes
from minflow.core.base.errors import GraphError, MinflowError
from minflow.core.dispatch import apply
from minflow.core.functions.creation import from_numpy
from minflow.core.ir import NUMBERS
from minflow.core.op import OPS
from minflow.core.ops.examples import cases
from minflow.onnx.builder import CONVERTERS
from tests.cases import Cases
from tests.onnx import edge_cases
from tests.onnx.helpers import checked_model, run, traced, traced_model

TOLERANCE = 1e-5  # relative to the largest element
LOOSE = {}  # op -> its own, and why
RANDOM = "uniform normal randint randperm bernoulli multinomial poisson binomial".split()
REFUSED = {  # (op, index of the example) -> part of export's error text
    **{("dropout", i): "random numbers" for i in range(4)},
    **{(op, i): "random numbers" for op in RANDOM for i in range(9)},
    **{("cumprod", i): "opset 26" for i in range(9)},
    **{(op, i): "packed" for op in ("lstm", "gru", "lstm_projected") for i in range(2, 6)},
    **{("rnn", i): "packed" for i in (2, 3, 6, 7)},
}
FORWARD = {"lstm": 3, "gru": 2, "lstm_projected": 3}  # outputs; the others are for gradients
OWN_SHAPE = {"conv2d_input_grad", "col2im"}  # an attr is the result's shape, which in a program follows the input
NO_KERNEL = {}  # (op, index of the example) -> what onnxruntime lacks; the model passes onnx.checker


def single(x):
    """float32 for float64, contiguous."""
    if x.__class__ in NUMBERS:
        return x
    return np.array(x, "float32" if x.dtype == "float64" else x.dtype, order="C")


def example(op, i):
    """(tensors, function of the tensors) of an example: literals stay in the function."""
    case = cases(OPS[op])[i]
    inputs = [x if x.__class__ in NUMBERS else from_numpy(x) for x in map(single, case.arrays())]

    def call(*tensors):
        rest = iter(tensors)
        results = apply(OPS[op], *[x if x.__class__ in NUMBERS else next(rest) for x in inputs], **case.attrs)
        return results[: FORWARD[op]] if op in FORWARD else results

    return [x for x in inputs if x.__class__ not in NUMBERS], call


def assert_same(got, want, tolerance=TOLERANCE):
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if want.dtype.kind != "f":
        assert (got == want).all()
        return
    finite = np.isfinite(want)
    assert (got[~finite] == want[~finite])[~np.isnan(want[~finite])].all() and (np.isnan(got) == np.isnan(want)).all()
    largest = max(np.abs(want[finite]), default=0)
    assert not finite.any() or np.abs(got[finite] - want[finite]).max() <= tolerance * max(largest, 1e-30)


def assert_all_same(outputs, results, tolerance=TOLERANCE):
    """Assert that the outputs of a model are the results of the call."""
    for got, want in zip(outputs, results if isinstance(results, list | tuple) else [results], strict=True):
        assert_same(got, want.numpy(), tolerance)


@pytest.mark.parametrize("op", CONVERTERS)
def test_form_matches_its_op(op):
    with Cases() as case:
        for i in range(len(cases(OPS[op]))):
            with case(f"example {i}"):
                compare(op, i)


def compare(op, i):
    tensors, call = example(op, i)
    if (op, i) in REFUSED:
        with pytest.raises(GraphError, match=REFUSED[op, i]):
            traced_model(call, tensors)
        return
    model = traced_model(call, tensors)
    if (op, i) in NO_KERNEL:
        with pytest.raises(Exception, match="NOT_IMPLEMENTED"):
            run(model, *[t.numpy() for t in tensors])
        return
    assert_all_same(run(model, *[t.numpy() for t in tensors]), call(*tensors), LOOSE.get(op, TOLERANCE))


def test_every_form_belongs_to_an_op():
    assert not set(CONVERTERS) - set(OPS)


NARROW = {  # op -> a call of it; ONNX supports only wider integers
    "matmul": lambda x: flow.matmul(x, x),
    "pow": lambda x: x**3,
    "sum": lambda x: x.sum(0),
    "cumsum": lambda x: x.cumsum(1),
    "amax": lambda x: x.amax(1),
    "sort": lambda x: list(x.sort(1)),
    "neg": lambda x: -x,
    "bitwise_left_shift": lambda x: x << 2,
    "take": lambda x: flow.arange(9.0)[x.int() if x.dtype is flow.uint8 else x],  # uint8 would be a mask
}


@pytest.mark.parametrize("op", NARROW)
def test_narrow_integers(op):
    with Cases() as case:
        for dtype in ("uint8", "int8", "int16", "int32"):
            with case(dtype):
                x = np.array([[1, 3, 2], [0, 2, 7], [5, 5, 1]], dtype)
                assert_all_same(run(traced_model(NARROW[op], [from_numpy(x)]), x), NARROW[op](from_numpy(x)))


def test_bools():
    x, y = np.array([[True, False], [True, True]]), np.array([[False, False], [True, False]])

    def call(x, y):
        return [
            flow.where(x, y, x),
            x.any(0),
            x.all(1),
            x.sum(),
            x < y,
            x.amax(1),
            next(iter(y.sort(1))),
            x.abs(),
            x @ y,
        ]

    tensors = [from_numpy(x), from_numpy(y)]
    assert_all_same(run(traced_model(call, tensors), x, y), call(*tensors))


def test_labels_of_narrow_integers():
    scores, labels = np.eye(3, dtype="float32"), np.array([2, 0, 1], "int16")
    tensors = [from_numpy(scores), from_numpy(labels)]
    want = flow.nn.functional.cross_entropy(*tensors)
    assert_same(run(traced_model(flow.nn.functional.cross_entropy, tensors), scores, labels)[0], want.numpy())


# ---- dynamic axes ----------------------------------------------------------------------------------------------------


def longer(array):
    """Twice as long along axis 0, plus one; without new values."""
    return np.concatenate([array, array, array[:1]])


def with_open_axis(op, i):
    """(program, arrays, call) of an example whose tensors have a dynamic axis 0 if they are as long as the first; None
    if the op takes only one length.
    """
    tensors, call = example(op, i)
    n = next((t.shape[0] for t in tensors if t.ndim and t.shape[0] > 1), 0)
    places = tuple((k, 0) for k, t in enumerate(tensors) if t.ndim and t.shape[0] == n)
    if not n or any(t.numel() == 0 for t in tensors):
        return None
    arrays = [longer(t.numpy()) if (k, 0) in places else t.numpy() for k, t in enumerate(tensors)]

    def again(specs):
        return traced(call, [flow.zeros(*s.shape, dtype=s.dtype) for s in specs])

    names, specs = [f"input_{k}" for k in range(len(tensors))], [t.spec for t in tensors]
    program, axes = traced(call, tensors), {"n": places}
    try:
        base, size_dependent, sized_constants = solve_sizes(axes, names, specs, program, again)
        call(*map(from_numpy, arrays))
    except MinflowError:
        return None
    return replace(base, axes=axes, size_dependent=size_dependent, sized_constants=sized_constants), arrays, call


def test_forms_support_dynamic_axes():
    """Two examples of each op, run at an untraced length; converters refuse what they cannot follow."""
    refused, followed = set(), set()
    for op in CONVERTERS:
        numbers = [i for i in range(len(cases(OPS[op]))) if op not in OWN_SHAPE and (op, i) not in REFUSED]
        programs = (with_open_axis(op, i) for i in numbers)
        for program, arrays, call in itertools.islice(filter(None, programs), 2):
            try:
                model = checked_model(program)
            except GraphError as error:
                assert "depends on" in str(error), (op, error)
                refused.add(op)
                continue
            assert_all_same(run(model, *arrays), call(*map(from_numpy, arrays)), LOOSE.get(op, TOLERANCE))
            followed.add(op)
    assert refused == {"as_strided", "diagonal", "median", "roll", "view_write", "windows"}
    assert len(followed) > 120


# ---- edge cases ------------------------------------------------------------------------------------------------------


def test_edge_case_differences_are_listed():
    assert edge_cases.ops_that_differ() == set(edge_cases.CORNERS)
