"""Run a program eagerly and as a graph, and compare the results: shared by the tests of the engine."""

import numpy as np

import minflow as flow
from minflow.compiler.executor import run
from minflow.compiler.passes import PASSES, run_passes
from minflow.compiler.plan import Plan
from minflow.core.trace import trace
from tests.reference import execute


def param(*numbers):
    return flow.tensor([float(n) for n in numbers], requires_grad=True)


def f8(*shape, seed=0, requires_grad=True):
    return flow.tensor(np.random.default_rng(seed).standard_normal(shape), requires_grad=requires_grad)


class Compiled:
    """A function as a graph: traced once, run at each call by the reference executor and by a plan after all passes.

    Both start from the same states and must give the same bits, in the results and in the states.
    """

    def __init__(self, fn):
        self.fn, self.graph = fn, None

    def __call__(self, *inputs):
        if self.graph is None:
            self.graph, self.kept = trace(self.fn, inputs)
            self.plan = Plan(run_passes(self.graph, PASSES)[-1].graph)
        return run_both(self.graph, self.kept, self.plan, [x.numpy() for x in inputs])


def planned(graph, kept, arrays):
    """Results of a trace by the reference executor and by a plan after all passes; asserts equal bits."""
    return run_both(graph, kept, Plan(run_passes(graph, PASSES)[-1].graph), arrays)


def run_both(graph, kept, plan, inputs):
    arrays = [np.asarray(x, order="C") for x in inputs]
    states = [s.array for s in graph.states]
    before, drawn = [a.copy() for a in states], [(g, g.get_state()) for g in kept.draws]
    found = run(plan, arrays)
    after = [a.copy() for a in states]
    for array, numbers in zip(states, before):
        if array.flags.writeable:
            array[...] = numbers
    for generator, state in drawn:
        generator.set_state(state)
    results = execute(graph, inputs)
    for a, b in zip((*found, *after), (*results, *states)):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == np.ascontiguousarray(b).tobytes()
    return results


def both(program, *make):
    """Gradients of make()'s tensors under `program`, eagerly and as a graph; asserts equal bits."""

    def run(*inputs):
        program(*inputs).backward()
        return [x.grad for x in inputs]

    eager = [g.numpy() for g in run(*[m() for m in make])]
    params = [m() for m in make]
    graph = Compiled(lambda: run(*params))
    for _ in range(2):
        traced = graph()
        assert all(np.array_equal(a, b) for a, b in zip(eager, traced)), (eager, traced)
    return [g.tolist() for g in eager]


def check(function, *inputs, rtol=1e-5):
    """Compare gradients in float64 with central differences along a random direction."""
    random = np.random.default_rng(1)
    weights = [random.standard_normal(x.shape) for x in inputs]
    found = flow.autograd.grad(function(*inputs), inputs)
    analytic = sum((g.numpy() * w).sum() for g, w in zip(found, weights))

    def moved(h):
        return float(function(*[flow.tensor(x.numpy() + h * w, requires_grad=True) for x, w in zip(inputs, weights)]))

    numeric = (moved(1e-6) - moved(-1e-6)) / 2e-6
    assert abs(analytic - numeric) <= rtol * max(1, abs(numeric)), (analytic, numeric)
