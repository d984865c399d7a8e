"""Policy of compiled kernels: which graphs use them; by default the large ones.

The first large graph loads the compiled kernels; if there are none yet, another process begins to compile them, and
this one keeps NumPy's kernels until it ends, so that all its graphs give the same bits. Read next: `switch.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...compiler.target import Target
from ...core.ir import Graph
from ...core.kernels import EAGER_PLATFORMS
from .config import PLATFORMS, CompiledKernelConfig

LARGE = 1 << 20  # bytes of all values of a graph; a smaller one runs in some dozen microseconds


def target(graphs: Iterable[Graph], exact: bool) -> Target:
    """Choose the target of the graphs of a job or an nn.Graph. exact: True for the bits of eager code."""
    which = CompiledKernelConfig.graphs
    if not exact and (which == "all" or (which == "large" and weight(graphs) >= LARGE and ready())):
        return Target(PLATFORMS, CompiledKernelConfig.passes)
    return Target(EAGER_PLATFORMS["cpu"])


def weight(graphs: Iterable[Graph]) -> int:
    """Bytes of all values that the nodes compute."""
    return sum([spec.nbytes for graph in graphs for node in graph.nodes for spec in node.out_specs])


def ready() -> bool:
    """True if this process has the compiled kernels; the first call loads them, or starts to compile them."""
    if CompiledKernelConfig.ready is None:
        from .switch import by_default

        CompiledKernelConfig.ready = by_default()
    return CompiledKernelConfig.ready
