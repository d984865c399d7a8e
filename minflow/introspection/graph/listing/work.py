"""The work of a call: floating-point operations, and bytes that it reads and writes.

Counted from shapes by the definition of the op: a product of (n, k) and (k, m) is 2 n k m, whatever the algorithm, so
one that needs fewer operations (Winograd's) may seem faster than the processor. A function such as exp counts as one.
Read next: `roofline.py`, which compares this with the processor's peaks.
"""

from __future__ import annotations

from collections.abc import Callable

from ....compiler.passes.decomposition import decomposition_of
from ....core.ir import Node, Value
from ....core.scalar import flops_per_element
from ....core.spec import Spec


def flops(node: Node) -> int | None:
    """Operations of one call; None if they are not known. A fused or composite node has the sum of its parts."""
    if node.parts or node.op.composite:
        counts = [flops(part) for part in node.parts or decomposition_of(node).nodes]
        return None if None in counts else sum(count or 0 for count in counts)
    op, specs = node.op, [x.spec if x.__class__ is Value else Spec((), node.out_specs[0].dtype) for x in node.inputs]
    if op.macs is not None:
        return 2 * op.macs(node.out_specs[0], *specs, **node.attrs)
    if callable(op.flops):
        return op.flops(node.out_specs[0], *specs, **node.attrs)
    each = op.flops
    if each is None:
        each = 0 if op.dtype_agnostic else flops_per_element(op) or (1 if op.elementwise else None)
    return None if each is None else each * max(spec.size for spec in (*specs, *node.out_specs))


def bytes_moved(node: Node, root: Callable[[Value], Value] = lambda value: value) -> int:
    """Bytes that one call reads and writes, each tensor once. root: maps a view to its base: an expanded tensor is read
    at its stored size.
    """
    if node.op.is_view:
        return 0
    read = {root(x): min(x.spec.nbytes, root(x).spec.nbytes) for x in node.inputs if x.__class__ is Value}
    result = sum(spec.nbytes for spec in node.out_specs)
    if node.op.reads_rows and (first := node.inputs[0]).__class__ is Value:
        read[root(first)] = min(read[root(first)], result)
    return sum(read.values()) + result
