"""Every form against its op: the examples of each op as a model, checked by onnx and run by onnxruntime.

Floats are float32 here: it is what models have, and onnxruntime lacks many of its kernels in float64.
"""

import numpy as np
import pytest

from minflow.core.base.errors import GraphError
from minflow.core.door import apply
from minflow.core.functions.creation import from_numpy
from minflow.core.ir import NUMBERS
from minflow.core.op import OPS
from minflow.core.ops.examples import cases
from minflow.onnx.builder import FORMS
from tests.onnx.runs import run, traced_model

CASES = [pytest.param(op, i, id=f"{op}-{i}") for op in FORMS for i in range(len(cases(OPS[op])))]
TOLERANCE = 1e-5  # of the largest value
LOOSE = {}  # op -> its own, and why
RANDOM = "uniform normal randint randperm bernoulli multinomial poisson binomial".split()
REFUSED = {  # (op, number of the example) -> a part of what export says
    **{("dropout", i): "random numbers" for i in range(4)},
    **{(op, i): "random numbers" for op in RANDOM for i in range(9)},
    **{("cumprod", i): "opset 26" for i in range(9)},
    **{(op, i): "packed" for op in ("lstm", "gru") for i in range(2, 6)},
    **{("rnn", i): "packed" for i in (2, 3, 6, 7)},
    **{("lstm_projected", i): "no projection" for i in range(4)},
}
FORWARD = {"lstm": 3, "gru": 2}  # outputs; the others are for gradients
NO_KERNEL = {}  # (op, number of the example) -> what onnxruntime lacks; the model passes onnx.checker


def single(x):
    """float32 for float64, contiguous."""
    if x.__class__ in NUMBERS:
        return x
    return np.array(x, "float32" if x.dtype == "float64" else x.dtype, order="C")


def example(op, i):
    """(tensors, function of them alone) of an example: literals stay in the function."""
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


@pytest.mark.parametrize("op, i", CASES)
def test_form_gives_what_the_op_gives(op, i):
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
    results = call(*tensors)
    results = results if isinstance(results, list | tuple) else [results]
    got = run(model, *[t.numpy() for t in tensors])
    assert len(got) == len(results)
    for a, b in zip(got, results):
        assert_same(a, b.numpy(), LOOSE.get(op, TOLERANCE))


def test_every_form_is_of_an_op():
    assert not set(FORMS) - set(OPS)
