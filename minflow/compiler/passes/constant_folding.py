"""Constant folding: evaluate nodes that depend only on constants. Read next: `common_subexpressions.py`."""

from __future__ import annotations

from ...core.ir import CONSTANT, Graph, Source, Value, outputs_of
from ..executor import run_node
from .rewrite import rewrite

MAX_CONSTANT_BYTES = (
    1 << 16
)  # bytes of a result; recomputing a larger array costs less than reading it from main memory


def constant_folding(graph: Graph) -> Graph:
    """Replace nodes whose inputs are all numbers or constants by constants, computed with their own kernels."""
    known = {Value(s, 0, s.out_specs[0]): s.array for s in graph.states if s.op is CONSTANT}
    kept, replacements, constants = [], {}, []
    for node in graph.nodes:
        values = [x for x in node.inputs if x.__class__ is Value]
        if (
            any(x not in known for x in values)
            or node.op.custom_backward
            or node.op.communicates
            or sum(s.nbytes for s in node.out_specs) > MAX_CONSTANT_BYTES
        ):
            kept.append(node)
            continue
        arrays = run_node(node, [known[x] if x.__class__ is Value else x for x in node.inputs])
        for value, array in zip(outputs_of(node), arrays):
            source = Source(
                CONSTANT, value.spec, array=array if array.flags.c_contiguous else array.copy(), name=str(node.op)
            )
            constants.append(source)
            replacements[value] = constant = Value(source, 0, value.spec)
            known[value] = known[constant] = source.array
    return rewrite(graph, kept, replacements, [*graph.states, *constants])
