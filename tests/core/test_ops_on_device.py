"""Check each op on a device with its examples: the bits of the CPU, in forward, in backward and as a graph.

The device is the stand-in of `tests/strict_backend.py`. No call copies elements to the host, unless its kernel says so.
"""

import numpy as np
import pytest

import minflow as flow
from minflow.compiler.executor import run
from minflow.compiler.passes import PASSES, run_passes
from minflow.compiler.plan import Plan
from minflow.core.autograd import grad
from minflow.core.backend import backend_of, to_host
from minflow.core.dispatch import apply
from minflow.core.functionalize import contiguous
from minflow.core.infer import data_dependent
from minflow.core.ir import NUMBERS
from minflow.core.kernels import KERNELS, REFERENCE
from minflow.core.op import OPS
from minflow.core.ops import update, update_adaptive, update_moments  # noqa: F401  (define the ops of optimizers)
from minflow.core.ops.examples import cases
from minflow.core.source_location import input_names
from minflow.core.spec import as_dtype
from minflow.core.trace import trace
from tests.cases import Cases
from tests.strict_backend import counted

pytestmark = pytest.mark.usefixtures("reference_kernels")
REFUSED = (flow.GradError, flow.LinAlgError)  # derivatives that do not exist, in any mode
WITH_EXAMPLES = [op for op in OPS.values() if op.examples and not op.moves]


def tensors(op, arrays, device, needs: bool) -> list:
    """Inputs on the device, apart from those that the op reads on the host. A strided array becomes a view."""

    def made(x, name):
        if x.__class__ in NUMBERS:
            return x
        place = flow.device("cpu") if name.partition("[")[0] in op.host_inputs else device
        if x.flags.c_contiguous:
            t = flow.tensor(x, device=place)
            return t.requires_grad_() if needs and x.dtype.kind == "f" else t
        moved = np.moveaxis(x, -1, 0)
        base = np.zeros((2 * moved.shape[0], *moved.shape[1:]), x.dtype)
        base[::2] = moved
        return flow.tensor(base, device=place)[::2].permute(*range(1, x.ndim), 0)

    return [made(x, name) for x, name in zip(arrays, input_names(op, arrays))]


def many(results) -> list:
    return list(results) if isinstance(results, list | tuple) else [results]


def bits(t):
    return t if t is None else (t.dtype, tuple(t.shape), t.detach().cpu().numpy().tobytes())


def forward(op, arrays, attrs, device):
    """(bits of the results, copies to the host)."""
    inputs = tensors(op, arrays, device, needs=False)
    if "device" in op.attrs:
        attrs = attrs | {"device": device}
    with counted() as copies:
        results = many(apply(op, *inputs, **attrs))
    if device.type == "cuda" and (set(op.inputs) - set(op.host_inputs) or "device" in op.attrs):
        for t, name in zip(results, op.outputs, strict=True):
            assert isinstance(t.array, backend_of(device).array_type) is (name not in op.host_inputs)
    return [bits(t) for t in results], copies


def gradients(op, arrays, attrs, device):
    """(bits of the gradients of all leaves, copies to the host)."""
    inputs = tensors(op, arrays, device, needs=True)
    with counted() as copies:
        outs = [t for t in many(apply(op, *inputs, **attrs)) if t.requires_grad]
        leaves = [x for x in inputs if isinstance(x, flow.Tensor) and x.requires_grad]
        seeds = [flow.ones_like(t) * 0.5 for t in outs]
        found = grad(outs, leaves, seeds, allow_unused=True) if outs else []
    return [bits(g) for g in found], copies


def as_graph(op, arrays, attrs, device):
    """(bits of the results of a plan, copies to the host)."""
    inputs = tensors(op, arrays, device, needs=False)
    if "device" in op.attrs:
        attrs = attrs | {"device": device}
    passed = [x for x in inputs if isinstance(x, flow.Tensor)]

    def program(*passed):
        left = iter(passed)
        results = apply(op, *[next(left) if isinstance(x, flow.Tensor) else x for x in inputs], **attrs)
        return [contiguous(t) for t in many(results)]

    graph, _ = trace(program, passed)
    plan = Plan(run_passes(graph, PASSES)[-1].graph)
    with counted() as copies:
        results = run(plan, [contiguous(x).array for x in passed])
    return [(as_dtype(x.dtype), x.shape, to_host(x).tobytes()) for x in results], copies


def reads(op) -> bool:
    return op.infer is data_dependent or runs_on_host(op)


def runs_on_host(op) -> bool:
    return (op, REFERENCE) in KERNELS and KERNELS[op, REFERENCE].on_host


@pytest.mark.parametrize("op", WITH_EXAMPLES, ids=lambda op: op.name)
def test_op(op, cuda):
    with Cases() as case:
        for k, example in enumerate(cases(op)):
            with case(f"forward of example {k}"):
                there, copies = forward(op, example.arrays(), example.attrs, cuda)
                assert there == forward(op, example.arrays(), example.attrs, flow.device("cpu"))[0]
                assert not copies or reads(op)
            if op.infer is not data_dependent:
                with case(f"graph of example {k}"):
                    results, copies = as_graph(op, example.arrays(), example.attrs, cuda)
                    here, _ = as_graph(op, example.arrays(), example.attrs, flow.device("cpu"))
                    assert results == here and (not copies or reads(op))
            if op.differentiable and op.infer is not data_dependent:
                with case(f"gradients of example {k}"):
                    compare_gradients(op, example, cuda)


def compare_gradients(op, example, cuda):
    try:
        here = gradients(op, example.arrays(), example.attrs, flow.device("cpu"))[0]
    except REFUSED as error:
        with pytest.raises(type(error)):
            gradients(op, example.arrays(), example.attrs, cuda)
        return
    there, copies = gradients(op, example.arrays(), example.attrs, cuda)
    assert there == here
    assert not copies or reads(op) or all("run_on_host" in place for place in copies), copies
