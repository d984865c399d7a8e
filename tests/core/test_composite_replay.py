"""Composite ops that recorded kernels compute: the bits and the tape of the decomposition."""

import numpy as np
import pytest

import minflow as flow
from minflow.core.dispatch import apply
from minflow.core.functions.creation import from_numpy
from minflow.core.grad.composites import PROGRAMS, Program
from minflow.core.ir import InnerTape, Value, inner_nodes
from minflow.core.op import OPS
from minflow.core.ops.examples import cases
from tests.cases import Cases
from tests.core.test_ops import many, tensors

F = flow.nn.functional


@pytest.fixture(autouse=True)
def no_programs():
    PROGRAMS.clear()
    yield
    PROGRAMS.clear()


def call(op, arrays, attrs, wanted):
    """All that a Program determines of a call, as values that can be compared: results, and nodes of the inner tape."""
    inputs = tensors(arrays)
    for k in wanted:
        inputs[k] = inputs[k].detach().requires_grad_()
    outs = many(apply(op, *inputs, **attrs))
    node = next((out._value.node for out in outs if out._needs), None)
    inner = inner_nodes(node) if node is not None and node.saved.__class__ is InnerTape else []
    counters = {id(x._version_counter): i for i, x in enumerate(inputs) if isinstance(x, flow.Tensor)}

    def source(x):
        return (inner.index(x.node) if x.node in inner else "input", x.index, x.spec) if isinstance(x, Value) else x

    def saved(entry):
        return entry and (entry[0].tobytes(), entry[0].strides, counters.get(id(entry[1])))

    results = [(out.array.tobytes(), out.array.strides, out.spec, out._needs, out._alias is None) for out in outs]
    return results, [
        (n.op, [*map(source, n.inputs)], n.attrs, n.out_specs, n.needs, n.scope, n.where, [*map(saved, n.saved or ())])
        for n in inner
        if n.saved.__class__ is not InnerTape
    ]


@pytest.mark.parametrize("op", [op for op in OPS.values() if op.decompose and op.examples], ids=lambda op: op.name)
def test_replayed_op_equals_its_decomposition(op):
    with Cases() as case:
        for i, example in enumerate(cases(op)):
            arrays = example.arrays()
            floats = [k for k, x in enumerate(arrays) if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
            other = [np.array(np.flip(x)) if k in floats and x.flags.c_contiguous else x for k, x in enumerate(arrays)]
            for wanted in ([], floats, *[[k] for k in floats]):
                with case(f"example {i}, gradients for {wanted}"):
                    PROGRAMS.clear()
                    call(op, arrays, example.attrs, wanted), call(op, arrays, example.attrs, wanted)
                    replayed = call(op, other, example.attrs, wanted)
                    PROGRAMS.clear()
                    assert replayed == call(op, other, example.attrs, wanted)


def programs():
    return {key[0].name for key, p in PROGRAMS.items() if p.__class__ is Program}


def test_losses_norms_and_cells_of_small_arrays_are_replayed():
    """By NumPy's kernels; other platforms may run some of them as one kernel."""
    x, t = flow.randn(3, 4, requires_grad=True), flow.rand(3, 4)
    cell = flow.nn.GRUCell(4, 5)
    for _ in range(2):
        F.smooth_l1_loss(x, t), F.mse_loss(x, t), F.binary_cross_entropy(t, t.round()), cell(x)
    assert {"smooth_l1_loss", "mse_loss", "binary_cross_entropy", "gru_cell"} <= programs()


def test_numbers_and_shared_inputs_belong_to_the_key():
    x, y = flow.tensor([1.0, 2.0]), flow.tensor([1.0, 4.0])
    for _ in range(3):
        assert F.mse_loss(x, y).item() == 2.0
        assert F.mse_loss(x, x).item() == 0.0
    for beta, expected in ((1.0, 0.75), (2.0, 0.5), (1.0, 0.75), (2.0, 0.5), (2.0, 0.5)):
        assert F.smooth_l1_loss(x, y).item() == 0.75
        assert F.smooth_l1_loss(x, y, beta=beta).item() == expected
    for zero in (0.0, 0.0, 0.0, -0.0):
        assert F.elu(flow.tensor([-1.0]), alpha=zero).signbit().item() == (zero.hex() == "0x0.0p+0")


def test_errors_are_those_of_the_decomposition():
    p = flow.tensor([0.5, 0.5])
    for _ in range(3):
        F.binary_cross_entropy(p, flow.ones(2))
    with pytest.raises(flow.OutOfRangeError, match=r"1\.5"):
        F.binary_cross_entropy(flow.tensor([0.5, 1.5]), flow.ones(2))


def test_written_input_is_still_refused():
    p = flow.tensor([0.2, 0.3], requires_grad=True).sigmoid()
    for _ in range(3):
        loss = F.binary_cross_entropy(p, flow.ones(2))
    with flow.no_grad():
        p.zero_()
    with pytest.raises(flow.GradError, match="as it was"):
        loss.backward()


def test_second_derivative_and_open_picture_of_a_replayed_op():
    for _ in range(3):
        x = from_numpy(np.array([1.0, 2.0], "f4")).requires_grad_()
        loss = F.mse_loss(x, flow.zeros(2), reduction="sum")
        (first,) = flow.autograd.grad(loss, x, create_graph=True)
        (second,) = flow.autograd.grad(first.sum(), x)
        assert second.tolist() == [2.0, 2.0]
    assert "square" in str([node.op for node in inner_nodes(F.mse_loss(x, flow.zeros(2), reduction="sum")._value.node)])
