"""Fuse matrix products with their epilogues: bias and activation, or plain SGD's update of a weight.

    after = dense(graph)

The epilogue runs on each tile of the result while that is in the cache. An update writes the gradient itself only if it
has other users. Other products become nodes of the same kind: a compiled kernel can run in one call with its
neighbors, while a call of BLAS would split them. Results change within float32 rounding. Read next: `nchw16c.py`, for
how an op is defined.
"""

from __future__ import annotations

import math

from ....compiler.passes.rewrite import rewrite
from ....compiler.uses import readers_of
from ....core.ir import Graph, Node, Value, outputs_of
from ....core.ops import activation, elementwise, linalg, update
from ....core.spec import float32, float64
from .nchw16c import activated, internal, run

LEAST = 1 << 15  # multiplications; below, NumPy is as fast
NARROW = 16  # columns; fewer do not fill a vector
FEW = 3  # rows, and terms of a sum; with fewer, BLAS reads a matrix once and packs nothing
ACTS = {elementwise.relu: "relu", activation.relu6: "relu6"}


# ---- operations ------------------------------------------------------------------------------------------------------


@internal("linear(a, b, bias; ta, tb, act)", lambda a, b, bias, ta, tb, act: linalg.matmul_spec(a, b, ta, tb))
def linear(xp, a, b, bias, ta, tb, act):
    """Compute act(a @ b + bias), with matmul's `ta` and `tb`. bias: (p,), or the number 0."""
    return activated(run(linalg.matmul, a, b, ta=ta, tb=tb) + xp.asarray(bias, a.dtype), act)


@internal("sgd_linear(p, a, b, lr; ta, tb) -> p", lambda p, a, b, lr, ta, tb: p, alias_safe=True)
def sgd_linear(xp, p, a, b, lr, ta, tb):
    """Compute p - lr * (a @ b): the SGD update of a weight whose gradient is this product.

    The new weight may overwrite the old one.
    """
    return p - float(lr) * run(linalg.matmul, a, b, ta=ta, tb=tb)


@internal("sgd_linear_shown(p, a, b, lr; ta, tb) -> p, grad", lambda p, a, b, lr, ta, tb: (p, p), alias_safe=True)
def sgd_linear_shown(xp, p, a, b, lr, ta, tb):
    """Compute `sgd_linear` and return the gradient a @ b, too."""
    grad = run(linalg.matmul, a, b, ta=ta, tb=tb)
    return p - float(lr) * grad, grad


# ---- the pass --------------------------------------------------------------------------------------------------------


def dense(graph: Graph) -> Graph:
    """Replace matrix products and their epilogues by fused nodes."""
    readers = readers_of(graph)
    shown = {*graph.outputs, *graph.updates.values()}

    def follower(x: Value) -> Node | None:
        found = readers.get(x, ())
        return found[0] if len(found) == 1 else None

    instead: dict[Value, Value] = {}
    placed: dict[Node, Node | None] = {}  # old node -> its replacement; None if it is only removed
    for node in graph.nodes:
        if node.op is not linalg.matmul or not fits(node):
            continue
        result = outputs_of(node)[0]
        after = follower(result)
        if after is not None and descends(after, result):
            chain, fused = [node, after], update_of(node, after, result in shown)
            instead[result] = outputs_of(fused)[-1]
            instead[outputs_of(after)[0]] = outputs_of(fused)[0]
        else:
            chain, bias, act = [node], 0, ""
            if after is not None and result not in shown and (found := bias_of(after, result)) is not None:
                chain, bias = [node, after], found
                result = outputs_of(after)[0]
                after = follower(result)
            if after is not None and result not in shown and after.op in ACTS:
                chain, act = [*chain, after], ACTS[after.op]
            fused = like(chain, linear, [*node.inputs, bias], node.attrs | dict(act=act), chain[-1].out_specs)
            instead.update({outputs_of(one)[0]: outputs_of(fused)[0] for one in chain})
        placed.update(dict.fromkeys(chain[:-1]))
        placed[chain[-1]] = fused
    if not placed:
        return graph
    nodes = [placed.get(node, node) for node in graph.nodes]
    return rewrite(graph, [node for node in nodes if node is not None], instead)


def fits(node: Node) -> bool:
    a, b = node.inputs
    if a.__class__ is not Value or b.__class__ is not Value or a.spec.dtype is not float32:
        return False
    out, deep = node.out_specs[0].shape, a.spec.shape[-2 if node.attrs["ta"] else -1]
    return out[-1] >= NARROW and out[-2] >= FEW and deep >= FEW and math.prod(out) * deep >= LEAST


def bias_of(node: Node, result: Value) -> Value | None:
    """Return the vector that a node adds to each row of a product; None if it does anything else."""
    if node.op is not elementwise.add or node.inputs[0] == node.inputs[1]:
        return None
    bias = node.inputs[1] if node.inputs[0] == result else node.inputs[0]
    return (
        bias
        if bias.__class__ is Value and bias.spec.shape == result.spec.shape[-1:] and (bias.spec.dtype is float32)
        else None
    )


def descends(node: Node, grad: Value) -> bool:
    """True if this is plain SGD (no momentum, no weight decay) with this gradient."""
    lr = node.inputs[2] if node.op is update.sgd else None
    return (
        lr.__class__ is Value
        and lr.spec.dtype is float64
        and node.inputs[1] == grad != node.inputs[0]
        and not node.attrs["weight_decay"]
        and not node.attrs["maximize"]
    )


def update_of(node: Node, after: Node, shown: bool) -> Node:
    p, _, lr = after.inputs
    specs = [p.spec, node.out_specs[0]] if shown else [p.spec]
    return like([node, after], sgd_linear_shown if shown else sgd_linear, [p, *node.inputs, lr], node.attrs, specs)


def like(chain: list[Node], op, inputs: list, attrs: dict, specs) -> Node:
    """Create a node that replaces `chain`.

    It takes the position of the product, and the scope, source location and phase of the last node.
    """
    fused = Node(op, inputs, attrs, tuple(specs), scope=chain[0].scope, where=chain[0].where)
    fused.origin, fused.number, fused.parts = chain[-1].origin, chain[-1].number, tuple(chain)
    return fused
