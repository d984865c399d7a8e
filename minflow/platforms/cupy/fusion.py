"""Fusion on GPUs: clusters (`compiler/fusion.py`) of elementwise ops of all dtypes, casts, and sums along rows.

    after = cuda_clusters(graph)

A cluster is one launch. Its elementwise ops have the bits of their own kernels. Read next: `kernels/clusters.py`.
"""

from __future__ import annotations

from ...compiler.fusion import SUMS, FusionRules, fuse
from ...compiler.target import Target
from ...core.ir import Graph, Node, Value
from ...core.kernels import EAGER_PLATFORMS
from ...core.ops.shape import cast
from ...core.scalar import operations_of
from ...core.spec import cpu
from .device_code import FLOATS
from .elementwise import formula_dtype


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
