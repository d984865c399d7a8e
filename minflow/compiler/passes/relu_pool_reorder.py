"""ReLU before max pooling: apply the ReLU's gradient on the smaller side of the pooling.

Part of the memory pass. Backward scatters the cotangent to the position of each window's maximum, then sets it to 0
unless the ReLU's result is positive. That result is also the pooling's result at this position, so applying the mask
before scattering gives the same bits, and the image need not be kept. Read next: `recompute.py`.
"""

from __future__ import annotations

from ...core.ir import Graph, Node, Value, outputs_of
from ...core.ops.elementwise import relu_grad
from ...core.ops.pool import max_pool2d, max_pool2d_grad
from ..uses import Uses
from .rewrite import rewrite


def reorder_relu_pool_grad(graph: Graph) -> Graph:
    """Replace `relu_grad(max_pool2d_grad(g), image)` by `max_pool2d_grad(relu_grad(g, pooled))`."""
    if not any([node.op is max_pool2d_grad for node in graph.nodes]):
        return graph
    uses = Uses(graph)
    replacing: dict[Node, list[Node]] = {}  # gradient of the pooling -> the nodes that replace it
    replacements: dict[Value, Value] = {}
    removed: set[Node] = set()
    for node in graph.nodes:
        if node.op is not relu_grad or node.inputs[0].__class__ is not Value or node.inputs[1].__class__ is not Value:
            continue
        spread, image = node.inputs[0].node, node.inputs[1]
        # overlapping windows add up cotangents, so the mask cannot be applied first
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
        last.number = node.number  # it computes the result of `node`
        replacing[spread] = [small, last]
        replacements[outputs_of(node)[0]] = outputs_of(last)[0]
        removed.add(node)
    if not removed:
        return graph
    kept = [x for node in graph.nodes if node not in removed for x in replacing.get(node, (node,))]
    return rewrite(graph, kept, replacements)
