"""Masks: the gradient of ReLU where max pooling follows it, taken on the small side of the pooling.

A part of the memory pass. Backward says: spread the cotangent over the image, each number to where its window was
largest, then keep it where the ReLU's result is above 0. What stands at that place is the pooling's own result, so
keeping first and spreading then gives the same bits, and the image need not be kept. Read next: `recompute.py`.
"""

from __future__ import annotations

from ...core.ir import Graph, Node, Value, outputs_of
from ...core.ops.elementwise import relu_grad
from ...core.ops.pool import max_pool2d, max_pool2d_grad
from ..uses import Uses
from .rewrite import rewritten


def small_masks(graph: Graph) -> Graph:
    """With `max_pool2d_grad(relu_grad(g, pooled))` for `relu_grad(max_pool2d_grad(g), image)`."""
    uses = Uses(graph)
    first: dict[Node, list[Node]] = {}  # the spreading node -> what is there in its place
    instead: dict[Value, Value] = {}
    gone: set[Node] = set()
    for node in graph.nodes:
        if node.op is not relu_grad or node.inputs[0].__class__ is not Value or node.inputs[1].__class__ is not Value:
            continue
        spread, image = node.inputs[0].node, node.inputs[1]
        # where two windows share a pixel sums are made between the two steps; then the order matters
        if spread.op is not max_pool2d_grad or not spread.attrs["apart"]:
            continue
        if len(uses.reads[node.inputs[0]]) > 1 or node.inputs[0] in uses.shown:
            continue
        g, indices = spread.inputs
        pool = indices.node
        if (
            pool.op is not max_pool2d
            or indices.index != 1
            or pool.inputs[0] != image
            or g.spec is not pool.out_specs[0]
        ):
            continue
        small = Node(relu_grad, [g, outputs_of(pool)[0]], node.attrs, g.spec.as_tuple, 0, (), node.scope, node.where)
        small.origin = node.origin
        last = spread.replace([outputs_of(small)[0], indices], spread.origin)
        last.number = node.number  # its result is what `node` gave
        first[spread] = [small, last]
        instead[outputs_of(node)[0]] = outputs_of(last)[0]
        gone.add(node)
    if not gone:
        return graph
    kept = [x for node in graph.nodes if node not in gone for x in first.get(node, (node,))]
    return rewritten(graph, kept, instead)
