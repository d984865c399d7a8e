"""Policy: which graphs use compiled kernels. By default the large ones, unless a program decides.

The first large graph loads the compile cache. If that is empty, another process is started to fill it, and this one
stays with NumPy's kernels for good, so that all its graphs compute alike. Read next: `switch.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...compiler.fusion import FUSED, KERNELS, PLAIN, Setting
from ...core.ir import Graph

LARGE = 1 << 20  # bytes of all values of a graph: a smaller one runs in some dozen microseconds


def level(graphs: Iterable[Graph], exact: bool) -> int:
    """Return how to build a graph or job: PLAIN, KERNELS or FUSED. exact: True to keep the bits of eager mode."""
    if exact or Setting.graphs == "none" or (Setting.graphs == "large" and not (weight(graphs) >= LARGE and ready())):
        return KERNELS if Setting.eager else PLAIN
    return FUSED


def weight(graphs: Iterable[Graph]) -> int:
    """Total bytes of the nodes' outputs."""
    return sum([spec.nbytes for graph in graphs for node in graph.nodes for spec in node.out_specs])


def ready() -> bool:
    """True if kernels are loaded, for graphs of a program that has not asked for them."""
    if Setting.ready is None:
        from .switch import by_default

        Setting.ready = by_default()
    return Setting.ready
