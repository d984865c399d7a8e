"""Fuse attention, softmax(mask(q @ k * factor)) @ v, and its gradient into one node each.

    after = attention(graph)

The score and weight matrices (queries x keys) are never materialized: the kernel computes them for a few queries at a
time, and recomputes them for the gradient (`platforms/compiled/kernels/attention.py`). Not fused if the weights have
other users, or pass through a dropout. Results change within float32 rounding. Keys that the mask hides are not read if
a visible key of that query has a score at least 104 above the fill value: a NaN in them does not propagate.
Read next: `gemm_epilogue.py`.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

from ...core.backend.float_warnings import silent
from ...core.ir import Graph, Node, Value, outputs_of
from ...core.ops import elementwise, linalg, reduce, softmax
from ...core.spec import Spec, bool_, float32
from ..passes.rewrite import rewrite
from .nchw16c import internal, run

# Fewest keys with a mask, which can skip many of them; twice as many without one. Below, the scores fit in the cache
# anyway, and recomputing them in the gradient does not pay.
LEAST = 256
WIDEST = 256  # most elements of a query or value vector


# ---- operations ------------------------------------------------------------------------------------------------------


def results(q: Spec, k: Spec, v: Spec, mask, **attrs) -> tuple[Spec, Spec]:
    return q.replace(shape=(*q.shape[:-1], v.shape[-1])), q.replace(shape=(*q.shape[:-1], 2))


def scores(xp, q, k, mask, tb, factor, fill, hides):
    found = run(linalg.matmul, q, k, ta=False, tb=tb) * xp.asarray(factor, q.dtype)
    return found if mask.__class__ in (int, float) else xp.where(mask == hides, xp.asarray(fill, q.dtype), found)


@internal("attention(q, k, v, mask; tb, factor, fill, hides) -> out, stats", results)
def attend(xp, q, k, v, mask, tb, factor, fill, hides):
    """Compute softmax(scores) @ v and the statistics of each query: max(score) and 1 / sum(exp(score - max)).

    q: (..., L, E).  k: (..., E, S), or (..., S, E) with tb.  v: (..., S, V).  mask: bool; the score is `fill` wherever
    the mask equals `hides`. The number 0 means no mask.
    """
    with silent():
        found = scores(xp, q, k, mask, tb, factor, fill, hides)
        top = found.max(-1, keepdims=True)
        weights = xp.exp(found - top)
        share = 1 / weights.sum(-1, keepdims=True)
        return run(linalg.matmul, weights * share, v, ta=False, tb=False), xp.concatenate([top, share], -1)


@internal(
    "attention_grad(grad, q, k, v, mask, stats; tb, factor, fill, hides) -> gq, gk, gv",
    lambda grad, q, k, v, mask, stats, **attrs: (q, k, v),
)
def attend_grad(xp, grad, q, k, v, mask, stats, tb, factor, fill, hides):
    """Compute the cotangents of q, k and v from that of out; the scores are recomputed."""
    with silent():
        weights = xp.exp(scores(xp, q, k, mask, tb, factor, fill, hides) - stats[..., :1]) * stats[..., 1:]
        slopes = run(linalg.matmul, grad, v, ta=False, tb=True)
        slopes = weights * (slopes - (slopes * weights).sum(-1, keepdims=True))
        if mask.__class__ not in (int, float):
            slopes = xp.where(mask == hides, xp.asarray(0, q.dtype), slopes)
        slopes = slopes * xp.asarray(factor, q.dtype)
        of_k = (slopes, q) if tb else (q, slopes)
        return (
            run(linalg.matmul, slopes, k, ta=False, tb=not tb),
            run(linalg.matmul, *of_k, ta=True, tb=False),
            run(linalg.matmul, weights, grad, ta=True, tb=False),
        )


# ---- the pass --------------------------------------------------------------------------------------------------------


class AttentionChain(NamedTuple):
    """The nodes of one attention and the values that they read.

    nodes: forward nodes from q @ k to weights @ v, in program order.  back: nodes of the gradient, in program order;
    empty if there is none.  grad: cotangent of the output.  slopes: the products that give the gradients of q, k and v.
    """

    nodes: list[Node]
    q: Value
    k: Value
    v: Value
    mask: Value | int
    attrs: dict
    grad: Value | None = None
    back: list[Node] = []
    slopes: tuple[Node, ...] = ()


def attention(graph: Graph) -> Graph:
    """Replace each matched attention, and its gradient, by one node."""
    uses = AttentionMatcher(graph)
    placed: dict[Node, Node | None] = {}
    instead: dict[Value, Value] = {}
    for node in graph.nodes:
        found = uses.chain(node) if node.op is softmax.softmax else None
        if found is None:
            continue
        operands = [found.q, found.k, found.v, found.mask]
        whole = fused(found.nodes, found.nodes[-1], attend, operands, found.attrs)
        placed.update({**dict.fromkeys(found.nodes), found.nodes[-1]: whole})
        instead.update({outputs_of(one)[0]: outputs_of(whole)[0] for one in found.nodes})
        if found.back:
            back = fused(
                found.back, found.back[0], attend_grad, [found.grad, *operands, outputs_of(whole)[1]], found.attrs
            )
            placed.update({**dict.fromkeys(found.back), found.back[0]: back})
            instead.update({outputs_of(one)[0]: outputs_of(back)[0] for one in found.back})
            instead.update({outputs_of(one)[0]: x for one, x in zip(found.slopes, outputs_of(back))})
    if not placed:
        return graph
    nodes = [placed.get(node, node) for node in graph.nodes]
    return rewrite(graph, [node for node in nodes if node is not None], instead)


def fused(chain: list[Node], at: Node, op, inputs: list, attrs: dict) -> Node:
    """Create a node that replaces `chain`, with the scope and source location of `at`."""
    specs = op.infer(*[x.spec if x.__class__ is Value else x for x in inputs], **attrs)
    node = Node(op, inputs, attrs, specs, scope=at.scope, where=at.where)
    node.origin, node.number, node.parts = at.origin, at.number, tuple(chain)
    return node


class AttentionMatcher:
    """Users and program positions of a graph's values.

    of: value -> nodes that read it.  position: node -> index in the program.
    """

    def __init__(self, graph: Graph):
        self.of: dict[Value, list[Node]] = {}
        self.position = {node: i for i, node in enumerate(graph.nodes)}
        for node in graph.nodes:
            for x in dict.fromkeys(x for x in node.inputs if x.__class__ is Value):
                self.of.setdefault(x, []).append(node)
        self.shown = {*graph.outputs, *graph.updates.values()}

    def read_by(self, node: Node, *readers: Node) -> bool:
        """True if exactly these nodes read the output of `node`, and it is not an output or update of the graph."""
        x = outputs_of(node)[0]
        return x not in self.shown and {*self.of.get(x, ())} == {*readers}

    def chain(self, node: Node) -> AttentionChain | None:
        """Match the attention around this softmax; None if there is none."""
        weights, x = outputs_of(node)[0], node.inputs[0]
        ends = [one for one in self.of.get(weights, ()) if one.phase == "forward"]
        if len(ends) != 1 or node.attrs["dim"] != weights.spec.ndim - 1 or weights.spec.dtype is not float32:
            return None
        end, nodes, mask, factor, fill, hides = ends[0], [node], 0, 1.0, 0.0, True
        if x.node in self.position and x.node.op is elementwise.where:
            mask, *sides = x.node.inputs
            hides = sides[0].__class__ is not Value
            number, inner = sides if hides else sides[::-1]
            if mask.__class__ is not Value or number.__class__ not in (int, float) or inner.__class__ is not Value:
                return None
            fill, nodes, x = float(number), [x.node, *nodes], inner
        while x.node in self.position and x.node.op in (elementwise.mul, elementwise.div):
            by = x.node.inputs[1]
            if by.__class__ not in (int, float) or not by or x.node.inputs[0].__class__ is not Value:
                return None
            factor, nodes, x = (
                factor * by if x.node.op is elementwise.mul else factor / by,
                [x.node, *nodes],
                x.node.inputs[0],
            )
        nodes = [x.node, *nodes, end]
        if not self.forward(nodes, weights.spec, mask):
            return None
        (q, k), v = nodes[0].inputs, end.inputs[1]
        attrs = dict(tb=nodes[0].attrs["tb"], factor=factor, fill=fill, hides=hides)
        found = AttentionChain(nodes, q, k, v, mask, attrs)
        return found if self.read_by(node, end) else self.backward(node, found)

    def forward(self, nodes: list[Node], scored: Spec, mask: Value | int) -> bool:
        """True if `nodes` are two products and the ops between them, with shapes that pay, and without other users."""
        first, *_, end = nodes
        if first not in self.position or first.op is not linalg.matmul or end.op is not linalg.matmul:
            return False
        if first.attrs["ta"] or end.attrs["ta"] or end.attrs["tb"] or end.inputs[0] != outputs_of(nodes[-2])[0]:
            return False
        (q, k), v, (*batch, _, keys) = first.inputs, end.inputs[1], scored.shape
        if any(
            x.__class__ is not Value or [*x.spec.shape[:-2]] != batch or x.spec.placement is not None for x in (q, k, v)
        ):
            return False
        if not math.prod(scored.shape) or not 0 < max(q.spec.shape[-1], v.spec.shape[-1]) <= WIDEST:
            return False
        if keys < (LEAST if mask.__class__ is Value else 2 * LEAST):
            return False
        if mask.__class__ is Value and (mask.spec.dtype is not bool_ or mask.spec.shape[-1:] != (keys,)):
            return False
        return all(one.phase == "forward" and outputs_of(one)[0].spec == scored for one in nodes[:-1]) and all(
            self.read_by(one, after) for one, after in itertools.pairwise(nodes[:-1])
        )

    def backward(self, node: Node, found: AttentionChain) -> AttentionChain | None:
        """Extend the match by the gradient, if that is the only other user of the weights; otherwise None."""
        weights, back = outputs_of(node)[0], linalg.matmul
        others = [one for one in self.of[weights] if one is not found.nodes[-1]]
        of_v = [
            one
            for one in others
            if one.op is back and one.inputs[0] == weights and one.attrs["ta"] and not one.attrs["tb"]
        ]
        muls = [one for one in others if one.op is elementwise.mul]
        if len(others) != 3 or len(of_v) != 1 or len(muls) != 2 or weights in self.shown:
            return None
        for dotted, sloped in (muls, muls[::-1]):
            sloping, first = beside(sloped, weights), beside(dotted, weights)
            if not (sloping and first) or sloping.node.op is not elementwise.sub or sloping.node.inputs[0] != first:
                continue
            mean = sloping.node.inputs[1]
            if mean.__class__ is Value and mean.node.op is reduce.sum and mean.node.inputs[0] == outputs_of(dotted)[0]:
                break
        else:
            return None
        product, sums = first.node, mean.node
        grad = of_v[0].inputs[1]
        if (
            product.op is not back
            or product.inputs != [grad, found.v]
            or product.attrs["ta"]
            or (not product.attrs["tb"])
            or sums.attrs != dict(axis=(weights.spec.ndim - 1,), keepdims=True)
        ):
            return None
        if not (
            self.read_by(product, dotted, sloping.node)
            and self.read_by(dotted, sums)
            and self.read_by(sums, sloping.node)
            and self.read_by(sloping.node, sloped)
        ):
            return None
        nodes, last = [of_v[0], product, dotted, sums, sloping.node, sloped], sloped
        for one in reversed(found.nodes[1:-2]):  # the gradients of where, mul and div
            x = outputs_of(last)[0]
            after, sides = self.of.get(x, ()), [0, x] if found.attrs["hides"] else [x, 0]
            wanted = [found.mask, *sides] if one.op is elementwise.where else [x, one.inputs[1]]
            if len(after) != 1 or x in self.shown or after[0].op is not one.op or after[0].inputs != wanted:
                return None
            last = after[0]
            nodes.append(last)
        slope, tb = outputs_of(last)[0], found.attrs["tb"]
        of_q = [one for one in self.of.get(slope, ()) if product_of(one, slope, found.k, False, not tb)]
        of_k = [
            one
            for one in self.of.get(slope, ())
            if product_of(one, *((slope, found.q) if tb else (found.q, slope)), True, False)
        ]
        if len(of_q) != 1 or len(of_k) != 1 or not self.read_by(last, of_q[0], of_k[0]):
            return None
        nodes = sorted([*nodes, of_q[0], of_k[0]], key=lambda one: self.position[one])
        if any(one.phase != "backward" for one in nodes) or grad.spec.shape != found.nodes[-1].out_specs[0].shape:
            return None
        return found._replace(grad=grad, back=nodes, slopes=(of_q[0], of_k[0], of_v[0]))


def beside(node: Node, x: Value) -> Value | None:
    """Return the other factor of a product, if it is a value."""
    other = node.inputs[1] if node.inputs[0] == x else node.inputs[0]
    return other if other.__class__ is Value and other != x else None


def product_of(node: Node, a: Value, b: Value, ta: bool, tb: bool) -> bool:
    return node.op is linalg.matmul and node.inputs == [a, b] and (node.attrs["ta"], node.attrs["tb"]) == (ta, tb)
