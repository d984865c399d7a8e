"""Nodes, order and well-formed graphs."""

import sys

import pytest

import minflow as flow
from minflow.core.base.errors import GraphError, InternalError
from minflow.core.ir import INPUT, STATE, Graph, Node, Source, Value, check_outputs, toposort, where_text
from minflow.core.spec import Spec, float32, int64

SPEC = Spec((2,), float32)


def chain():
    """An input, twice its value, and the sum of both."""
    source = Source(INPUT, SPEC)
    x = Value(source, 0, SPEC)
    double = Node("mul", (x, 2.0), {}, (SPEC,))
    total = Node("add", (Value(double, 0, SPEC), x), {}, (SPEC,))
    return source, double, total, Value(total, 0, SPEC)


def test_valid_graph_verifies_and_prints():
    source, double, total, out = chain()
    graph = Graph([source], [double, total], [out])
    assert graph.verify() is graph
    assert len(str(graph).splitlines()) == 4
    assert len(list(graph.values())) == 3


def test_verify_errors():
    source, double, total, out = chain()
    state = Source(STATE, Spec((3,), int64))
    bad = [
        (Graph([source], [total, double], [out]), r"node 0 \(add\) reads a value that no node before it computes"),
        (Graph([], [double, total], [out]), "reads a value that no node before it computes"),
        (Graph([source], [double, total, double], [out]), r"node 2 \(mul\) is in the graph twice"),
        (Graph([source], [double], [out]), "an output or update is a value that no node computes"),
        (Graph([double], [], []), "listed as an input or state but has inputs"),
        (Graph([source], [Node("neg", ("x",), {}, (SPEC,))], []), "reads 'x'"),
        (Graph([source], [double, total], [], [], {state: out}), "an update must be of a state"),
        (Graph([source], [double, total], [], [state], {state: out}), "changes the spec of its state"),
    ]
    for graph, text in bad:
        with pytest.raises(GraphError, match=text):
            graph.verify()


def test_topological_order_of_a_diamond():
    x = flow.tensor(1.0, requires_grad=True)
    a = x * 2
    left, right = a + 1, a * 3
    out = left * right
    order = toposort([out._value.node])
    place = {node: i for i, node in enumerate(order)}
    assert len(order) == len(place) == 5
    for node in order:
        assert all(place[v.node] < place[node] for v in node.inputs if isinstance(v, Value))


def test_traversal_follows_only_inputs_with_gradients():
    source, double, total, _ = chain()
    assert toposort([total]) == [total]
    assert toposort([total], every=True) == [source, double, total]


def test_source_location_text():
    x = flow.tensor(1.0, requires_grad=True)
    y = x * 2
    line = sys._getframe().f_lineno - 1
    assert where_text(y._value.node.where) == f"test_ir.py:{line}"
    assert y.grad_fn.where == f"test_ir.py:{line}"
    assert where_text(None) == "?"


def test_kernel_with_a_wrong_result_is_reported():
    with pytest.raises(InternalError, match="infer returned"):
        check_outputs("mul", (SPEC,), [Spec((3,), float32)])
