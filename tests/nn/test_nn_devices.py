"""Every layer and every loss on another device: what they create is there too, in forward and in backward.

Traced, since a trace decides where results are and runs no kernel; then run, with the bits of the CPU's reference
kernels, and without a copy to the host.
"""

import copy
import functools

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.compiler.executor import run as execute_plan
from minflow.compiler.passes import PASSES, run_passes
from minflow.compiler.plan import Plan
from minflow.core.backend import to_host
from minflow.core.functionalize import contiguous
from minflow.core.spec import as_dtype
from minflow.core.trace import trace
from minflow.nn.summary import tensors_in
from tests.cases import Cases
from tests.exported_cases import TARGETS, input_of, layer_cases, loss_cases
from tests.graphs import Scaled, loss_of
from tests.strict_backend import counted

pytestmark = pytest.mark.usefixtures("reference_kernels")

LAYERS = {}
for name, make, x in layer_cases():
    LAYERS.setdefault(name, []).append((make, x))


def check(model, inputs, device, moved=None):
    """Trace and run outputs and gradients of the model on a device. moved: the inputs there, by default all."""
    here, moved = copy.deepcopy(model), moved or [x.to(device) for x in inputs]
    model = model.to(device)
    graph, _ = trace(functools.partial(outputs_and_gradients, model), moved)
    assert {x.spec.device for x in graph.outputs} == {device}
    outputs_and_gradients(model, *moved)  # the first call of some layers makes their parameters
    outputs_and_gradients(here, *inputs)
    for run in (outputs_and_gradients_of_plan, outputs_and_gradients):
        with counted() as copies:
            there = run(model, *moved)
        assert [*map(bits, there)] == [*map(bits, run(here, *inputs))] and not copies


def outputs_and_gradients(model, *inputs):
    flow.manual_seed(0)
    model.zero_grad()
    outs = tensors_in(model(*inputs))
    loss_of(outs).backward()
    return [*outs, *[p.grad for p in model.parameters()]]


def outputs_and_gradients_of_plan(model, *inputs):
    graph, _ = trace(functools.partial(outputs_and_gradients, model), inputs)
    flow.manual_seed(0)
    return execute_plan(Plan(run_passes(graph, PASSES)[-1].graph), [contiguous(x).array for x in inputs])


def bits(x):
    """The dtype, shape and bits of a tensor or an array; None for no gradient."""
    array = x.detach().array if isinstance(x, flow.Tensor) else x
    return x if x is None else (as_dtype(array.dtype), tuple(array.shape), to_host(array).tobytes())


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name, cuda):
    with Cases() as case:
        for i, (make, x) in enumerate(LAYERS[name]):
            with case(f"{name} {i}"):
                x, model = flow.tensor(input_of(x)), make()
                check(Scaled(model, x.shape[-1]) if x.is_floating_point() else model, [x], cuda)


@pytest.mark.parametrize("name", dict.fromkeys(name for name, _ in loss_cases()))
def test_loss(name, cuda):
    x, target = np.random.default_rng(0).uniform(0.1, 0.9, (2, 4, 3)).astype("float32")
    targets = TARGETS.get(name, target)
    inputs = [flow.tensor(x), *map(flow.tensor, targets if isinstance(targets, tuple) else [targets])]
    lengths = inputs[2:] if name == "CTCLoss" else []  # which its kernel reads on the CPU
    moved = [*[x.to(cuda) for x in inputs[: len(inputs) - len(lengths)]], *lengths]
    with Cases() as case:
        for options in [options for other, options in loss_cases() if other == name]:
            with case(f"{name} {options}"):
                check(Scaled(getattr(nn, name)(**options), 3), inputs, cuda, moved)
