"""Fusion on GPUs: clusters (`compiler/fusion.py`) of elementwise ops of all dtypes, casts, and sums along rows.

    after = cuda_clusters(graph)

A cluster is one launch. Its elementwise ops have the bits of their own kernels. Read next: `kernels/clusters.py`.
"""

from __future__ import annotations

from ...compiler.fusion import FULL, SUMS, FusionRules, Operand, base_of, fuse, whole
from ...compiler.target import Target
from ...core.ir import Graph, Node, Value
from ...core.kernels import EAGER_PLATFORMS
from ...core.ops.shape import cast, getitem
from ...core.scalar import operations_of
from ...core.spec import cpu
from .device_code import FLOATS
from .elementwise import formula_dtype


def has_rows(x: Value) -> bool:
    """True if x is a slice of a whole value along its first and last axes, such as `mask[:n, :n]`: its rows are
    contiguous and have the same distance.
    """
    if x.node.op is not getitem or x.spec.ndim < 2 or not whole(x.node.inputs[0]):
        return False
    index = x.node.attrs["index"]
    if len(index) > x.spec.ndim or x.node.inputs[0].spec.ndim != x.spec.ndim:
        return False
    slices = all([part.__class__ is tuple and part[2] in (None, 1) for part in index])
    return slices and all([part == (None, None, None) for part in index[1 : x.spec.ndim - 1]])


class CudaRules(FusionRules):
    """Fuses what has a generated loop. A block of threads reduces a row, so rows may be longer than on the CPU."""

    column_sums = False
    longest, widest = 1 << 14, 1 << 30

    def takes(self, node: Node) -> bool:
        op, result = node.op, node.out_specs[0]
        specs = [x.spec for x in node.inputs if x.__class__ is Value]
        if result.device.type != "cuda" or any([s.device is not result.device for s in specs]):
            return False
        names = [s.dtype.name for s in specs]
        if op.name in SUMS:
            return result.dtype.name in FLOATS and names == [result.dtype.name]
        operations = operations_of(op)
        if op.custom or complex in map(type, node.inputs) or not (operations or op is cast):
            return False
        half = result.dtype.itemsize == 2
        return formula_dtype(op, names, result.dtype.name) is not None and not (half and "nextafter" in operations)

    def reads(self, x: Value) -> bool:
        return whole(x) or has_rows(x)

    def operand(self, x: Value, found: Operand) -> Operand | None:
        return found if found.kind == FULL or whole(base_of(x)) else None

    def is_alone(self, node: Node, size: int) -> bool:
        return True


RULES = CudaRules()


def cuda_clusters(graph: Graph) -> Graph:
    """Replace each group of neighbors that one launch computes by one node."""
    return fuse(graph, RULES)


def target(exact: bool) -> Target:
    """The target of graphs on GPUs, whose nodes on the CPU run as in eager code. exact: True for the bits of that."""
    fused = "cupy" in EAGER_PLATFORMS.get("cuda", ()) and not exact
    return Target(EAGER_PLATFORMS[cpu.type], (cuda_clusters,) if fused else ())
