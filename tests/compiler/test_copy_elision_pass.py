"""Copies whose aliasing cannot be observed are removed, others are kept, and the bits are the same."""

import fusion_checks
import numpy as np
import pytest
from fusion_checks import names

import minflow as flow
from minflow.compiler.executor import run
from minflow.compiler.plan import Plan
from minflow.core.trace import trace
from minflow.platforms.compiled.passes.copy_elision import copies
from tests.reference import execute

X = np.arange(12, dtype="float32").reshape(3, 4)
STATE = flow.zeros(3, 4)


def clones(graph):
    return names(graph).count("clone")


def same_bits(before, after):
    fusion_checks.same_bits(before, after, X)
    expected, results = execute(before, [X]), run(Plan(after), [X])
    for i, one in enumerate(results):
        one += i + 1  # callers may write to the arrays they get
    assert [(x - i - 1).tobytes() for i, x in enumerate(results)] == [x.tobytes() for x in expected]


@pytest.mark.parametrize(
    "function, left",
    [
        (lambda x: ((x + 1).clone() * 2,), 0),
        (lambda x: ((x + 1).reshape(12).clone().clone(),), 0),
        (lambda x: ((y := x + 1).sum(), y.reshape(4, 3).clone()), 0),
        (lambda x: ((y := (x + 1).clone()) * 2, y.clone() * 3, y.clone()), 0),
        (lambda x: (x.clone() * 2, x.reshape(12).clone() * 3), 0),
        (lambda x: (STATE.clone() + x,), 0),
        (lambda x: ((y := x + 1), y.clone()), 1),  # two results
        (lambda x: ((y := x + 1).clone(), y.reshape(12).clone().clone()), 1),
        (lambda x: (x.clone(), x.clone() * 2), 1),  # outputs must not alias inputs
        (lambda x: (STATE.clone(),), 1),
        (lambda x: ((x + 1).t().clone(),), 1),  # the elements are reordered
        (lambda x: ((x + 1)[:, 1:].clone(),), 1),
        (lambda x: ((x + 1).sum(0).expand(3, 4).clone(),), 1),
    ],
)
def test_observable_copies_are_kept(function, left):
    graph = trace(function, [flow.zeros(3, 4)])[0]
    after = copies(graph)
    assert clones(after) == left
    same_bits(graph, after)


def test_update_does_not_change_an_earlier_copy():
    def program(x):
        state = flow.zeros(3, 4)
        before = state.clone()
        state.add_(x)
        kept = state.clone()
        state.mul_(2)
        return before + x, kept, state * 1

    graph = trace(program, [flow.zeros(3, 4)])[0]
    same_bits(graph, copies(graph))
    held = flow.ones(3, 4)

    def step(x):
        old = held.clone()
        held.add_(x)
        return old * 1, held * 1

    graph = trace(step, [flow.zeros(3, 4)])[0]
    after = copies(graph)
    assert clones(after) == 0
    old, new = run(Plan(after.verify()), [X])
    assert (old == 1).all() and (new == 1 + X).all()


def test_gradient_of_a_reshaped_parameter_is_not_copied():
    w = flow.ones(12, requires_grad=True)

    def program(x):
        (w.reshape(3, 4) * x).sum().backward()
        return w.grad

    graph = trace(program, [flow.zeros(3, 4)])[0]
    after = copies(graph)
    assert clones(graph) == 1 and clones(after) == 0
    same_bits(graph, after)


def test_graph_without_copies_is_unchanged():
    graph = trace(lambda x: x + 1, [flow.zeros(3, 4)])[0]
    assert copies(graph) is graph
