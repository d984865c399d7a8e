"""Decomposition: replace composite ops by the ops that define them, except where the target has a kernel.

The decomposition of the gradient computes the forward again; `common_subexpressions` merges it with the forward.
Read next: `../../core/autograd.py`, `run_decomposition`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ...core.autograd import run_decomposition
from ...core.ir import INPUT, NUMBERS, Graph, Literal, Node, Source, Value, outputs_of
from ...core.kernels import HOST_PLATFORMS, platforms_for, runs_decomposed
from ...core.mode import using
from ...core.op import Op
from ...core.ops.shape import apply_path, detach, reshape
from ...core.spec import Spec, default_dtype
from ...core.tensor import Tensor
from ...core.trace import Trace
from .common_subexpressions import exact_key
from .rewrite import rewrite

MOST = 1_000


class Template(NamedTuple):
    """The decomposition of a composite op. inputs: the values of the tensors among its inputs."""

    inputs: list[Value]
    graph: Graph


TEMPLATES: dict[tuple, Template] = {}  # by op, inputs, attrs and default dtype; bounded to MOST


def decompose(graph: Graph, platforms: Sequence[str] = HOST_PLATFORMS) -> Graph:
    """Replace each composite op for which no platform has a kernel by its decomposition, in a scope of its own.

    platforms: names of platforms whose kernels the plan may use.
    """
    return expand(graph, lambda node: is_decomposed(node, platforms))


def inner_scope(node: Node) -> str:
    """The scope of the ops that a composite op consists of, also of its gradient: "model.norm1/layer_norm"."""
    return f"{node.scope}/{node.op.gradient_of or node.op}"


def expand(graph: Graph, is_expanded: Callable[[Node], bool], scope: Callable[[Node], str] = inner_scope) -> Graph:
    """Replace the composite ops that fulfil a condition by their decompositions. scope: that of the new nodes.

    `graph` may also be a tape, whose nodes have Specs in place of inputs without a gradient: these become Sources.
    """
    nodes, replacements, states = [], {}, dict.fromkeys(graph.states)
    parts_by_whole: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        if not is_expanded(node):
            nodes.append(node)
            continue
        inputs, inner = template_of(node)
        values = dict(zip(inputs, tensor_inputs(node)))
        states.update(dict.fromkeys(inner.states))
        needing = {x for i, x in enumerate(node.inputs) if node.needs >> i & 1}
        around, parts = scope(node), parts_by_whole.setdefault(node, [])
        origins = forward_parts(inner, parts_by_whole.get(node.origin, []) if node.op.gradient_of else [])
        for k, part in enumerate(inner.nodes, 1):
            origin = origins.get(part, origins.get(part.origin, node.origin))
            new = part.replace([values.get(x, x) if x.__class__ is Value else x for x in part.inputs], origin)
            new.scope, new.where, new.whole = around + part.scope, node.where, node.whole or node
            new.needs = sum([1 << i for i, x in enumerate(new.inputs) if x in needing]) & part.op.differentiable
            new.number = None if node.number is None else node.number + k / (len(inner.nodes) + 1)
            values.update(zip(outputs_of(part), outputs_of(new)))
            needing.update(outputs_of(new) if new.needs else ())
            parts.append(new)
        nodes += parts
        replacements.update(zip(outputs_of(node), [values[x] for x in inner.outputs]))
    return rewrite(graph, nodes, replacements, states) if replacements else graph


def forward_parts(inner: Graph, forward: list[Node]) -> dict[Any, Node]:
    """Node of the decomposition of a gradient that computes a part of forward again -> that part."""
    pairs = zip(inner.nodes, forward)
    return dict(itertools.takewhile(lambda pair: pair[0].origin is None and pair[0].op is pair[1].op, pairs))


def tensor_inputs(node: Node) -> list[Value]:
    """The values of the tensors among the inputs of a node."""
    named = [(name, x) for name, x in zip(node.op.inputs, node.inputs) if x.__class__ not in NUMBERS]
    return [x if x.__class__ is Value else Value(Source(INPUT, x, name=name), 0, x) for name, x in named]


def decompose_for(platforms: Sequence[str]) -> Callable[[Graph], Graph]:
    """The pass for a target with these platforms."""
    step = functools.partial(decompose, platforms=platforms)
    step.__name__ = "decompose"  # type: ignore[attr-defined]
    return step


def is_decomposed(node: Node, platforms: Sequence[str]) -> bool:
    specs = [x.spec if x.__class__ is Value else x.__class__ for x in node.inputs]
    return node.op.composite and runs_decomposed(node.op, specs, node.attrs, platforms_for(node, platforms))


def decomposition_of(node: Node) -> Graph:
    """The graph of primitive ops that a composite node consists of."""
    return template_of(node).graph


def parts_of(op: Op, inputs: Sequence[Spec | Literal], attrs: Mapping) -> list[Node]:
    """The primitive nodes that an eager call of a composite op consists of."""
    return template(op, [(x, ()) for x in inputs], attrs).graph.nodes


def template_of(node: Node) -> Template:
    """The decomposition of a node, cached."""
    return template(node.op, [view_path(x) if x.__class__ is Value else (x, ()) for x in node.inputs], node.attrs)


def template(op: Op, inputs: Sequence[tuple[Any, Sequence]], attrs: Mapping) -> Template:
    """The decomposition of an op, cached. inputs: Specs of bases, with view paths; and numbers."""
    key = op, exact_key(inputs), exact_key(attrs), default_dtype()
    try:
        if (known := TEMPLATES.get(key)) is not None:
            return known
    except TypeError:  # an unhashable attr (a slice before Python 3.12)
        return trace_decomposition(op, inputs, attrs)
    if len(TEMPLATES) >= MOST:
        TEMPLATES.clear()
    known = TEMPLATES[key] = trace_decomposition(op, inputs, attrs)
    return known


def view_path(x: Value) -> tuple[Spec, tuple[tuple[Op, Mapping], ...]]:
    """(spec of the base, path of view ops from it), which decides whether the array of x is contiguous."""
    path: list[tuple[Op, Mapping]] = []
    base = x
    while base.node.op.is_view:
        if len(base.node.op.inputs) == 1:  # the others, such as `recompute`, return their first input
            path.append((base.node.op, base.node.attrs))
        base = base.node.inputs[0]
    return (x.spec, ()) if {op for op, _ in path} <= {reshape, detach} else (base.spec, tuple(reversed(path)))


def trace_decomposition(op: Op, inputs: Sequence[tuple[Any, Sequence]], attrs: Mapping) -> Template:
    """Trace the decomposition of an op; see `template`."""
    trace = Trace()
    with using(trace):
        symbols = [apply_path(trace.symbol_of_input(x), path) if isinstance(x, Spec) else x for x, path in inputs]
        views = len(trace.graph.nodes)
        trace.graph.outputs = [t._value for t in run_decomposition(op, symbols, attrs)]
    values = [t._value for t in symbols if isinstance(t, Tensor)]
    graph = Graph([], trace.graph.nodes[views:], trace.graph.outputs, trace.graph.states)
    return Template(values, decompose(graph, ()))
