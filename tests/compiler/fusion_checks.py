"""Programs as input of a fusion pass, and checks that the rewritten graph gives the same results."""

import numpy as np

import minflow as flow
from minflow.compiler.executor import run
from minflow.compiler.passes import PASSES, decompose, run_passes
from minflow.compiler.passes.decomposition import decompose_for
from minflow.compiler.plan import Plan
from minflow.core.trace import trace
from minflow.platforms.compiled.config import PLATFORMS
from tests.reference import execute


def numbers(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype("f4")


def traced(program, *arrays):
    """Graph of a program after all passes but the last, which lays out memory."""
    return run_passes(trace(program, [flow.tensor(x) for x in arrays])[0], PASSES[:-1])[-1].graph


def kept(program, *arrays):
    """Graph of a program for compiled kernels, which keeps the composite ops that have one, before fusion."""
    passes = [decompose_for(PLATFORMS) if step is decompose else step for step in PASSES[:-1]]
    return run_passes(trace(program, [flow.tensor(x) for x in arrays])[0], passes)[-1].graph


def plan_of(program, *inputs):
    return Plan(trace(program, inputs)[0])


def names(graph):
    """Names of all operations."""
    return [node.op.name for node in graph.nodes]


def ops(graph):
    """Names of the operations that are not views."""
    return [node.op.name for node in graph.nodes if not node.op.is_view]


def with_gradients(function, wanted):
    """A program of a cotangent and inputs: the results of the function, and the gradients of the inputs at these
    indices.
    """

    def program(g, *inputs):
        inputs = [x.detach().requires_grad_(i in wanted) for i, x in enumerate(inputs)]
        y = function(*inputs)
        return y, *flow.autograd.grad(y, [inputs[i] for i in wanted], g)

    return program


def same_numbers(before, after, *arrays, tolerance=1e-5):
    """Assert equal results within rounding, node by node and by a plan."""
    after.verify()
    expected = execute(before, arrays)
    for found in (execute(after, arrays), run(Plan(after), arrays)):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def same_bits(before, after, *arrays, bits=np.ndarray.tobytes):
    """Assert equal bits, node by node and by a plan."""
    after.verify()
    with np.errstate(all="ignore"):
        expected = [bits(x) for x in execute(before, arrays)]
        assert [bits(x) for x in execute(after, arrays)] == expected
    assert [bits(x) for x in run(Plan(after), arrays)] == expected
