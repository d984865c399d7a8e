"""Policy of compiled kernels: which graphs use them; by default the large ones.

A process chooses once, when its first large graph needs kernels, and nothing computed before depends on the choice. It
loads the compiled kernels; if there are none yet, another process begins to compile them, and this one keeps NumPy's
until it ends, so that all its graphs give the same bits. Only `use` changes that. Read next: `switch.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...compiler.target import Target
from ...core.base.locks import new_lock
from ...core.ir import Graph
from ...core.kernels import EAGER_PLATFORMS
from .config import PLATFORMS, CompiledKernelConfig

LARGE = 1 << 20  # bytes of all values of a graph; a smaller one runs in some dozen microseconds
CHOICE = new_lock()  # held while this process chooses its kernels


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
    """True if this process has the compiled kernels. The first call chooses, for all threads and for good."""
    if CompiledKernelConfig.unavailable is None:
        with CHOICE:
            if CompiledKernelConfig.unavailable is None:
                from .switch import load_by_default

                CompiledKernelConfig.unavailable = load_by_default()
    return not CompiledKernelConfig.unavailable


def why_numpy() -> str:
    """Why large graphs of this process run NumPy's kernels; "" if they do not, or if there has been none yet."""
    return CompiledKernelConfig.unavailable or ""
