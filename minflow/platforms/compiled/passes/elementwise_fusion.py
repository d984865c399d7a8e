"""Fusion on the CPU: clusters (`compiler/fusion.py`) of float32, masks, softmax, and sums of any kind.

    after = clusters(graph)

NumPy runs a cluster node by node, with the same bits as unfused; in `platforms/compiled/kernels/elementwise_fusion.py`,
exp, log, tanh and erf are within 2 units in the last place, and sums in another order.
"""

from __future__ import annotations

from ....compiler.fusion import FULL, SUMS, FusionRules, Operand, fuse
from ....core.ir import Graph, Node, Value
from ....core.kernels import KERNELS
from ....core.op import Op
from ....core.scalar import operations_of
from ....core.spec import bool_, float32

# Operations of formulas for which fused loops have code: `platforms/compiled/kernels/formula_lowering.py`.
OPERATIONS = frozenset(
    """add sub mul div neg abs max min floor ceil round trunc sqrt exp log tanh erf log1p expm1 lt le gt ge eq ne isnan
    and_ or_ not_ select""".split()
)
OVER_ROWS = {"softmax", "log_softmax"}
MASK = "mask"
SMALL = 1 << 12  # elements: a single op on fewer is not made a cluster


def has_fusible_formula(node: Node) -> bool:
    literals = tuple([None if x.__class__ is Value else x for x in node.inputs])
    operations = () if node.op.scalar is None or node.op.custom else operations_of(node.op, literals)
    return bool(operations) and OPERATIONS.issuperset(operations)


def needs_several_calls(op: Op) -> bool:
    """True if NumPy needs several calls for the op, and it has no compiled kernel of its own: then a cluster of this
    op alone is faster on few elements, too.
    """
    operations = operations_of(op)
    several = op.name in OVER_ROWS | SUMS or len(operations) > 2 or "select" in operations
    return several and (op.name in SUMS or (op, "compiled") not in KERNELS)


class CompiledRules(FusionRules):
    """Fuses float32. The condition of `where` is a mask."""

    over_rows = OVER_ROWS

    def takes(self, node: Node) -> bool:
        name = node.op.name
        if not (name in SUMS or has_fusible_formula(node) or name in OVER_ROWS):
            return False
        if node.out_specs[0].dtype is not float32:
            return False
        for i, x in enumerate(node.inputs):
            condition = name == "where" and i == 0
            if x.__class__ is not Value:
                if condition or x.__class__ is complex:
                    return False
            elif x.spec.dtype is not (bool_ if condition else float32):
                return False
        return True

    def is_alone(self, node: Node, size: int) -> bool:
        return size < SMALL and not needs_several_calls(node.op)

    def operand(self, x: Value, found: Operand) -> Operand | None:
        if x.spec.dtype is not bool_:
            return found
        return found._replace(kind=MASK) if found.kind == FULL else None


RULES = CompiledRules()


def clusters(graph: Graph) -> Graph:
    """Replace each group of neighbors that can run together by one node."""
    return fuse(graph, RULES)
