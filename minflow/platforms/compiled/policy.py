"""Which graphs the machine runs: by itself the large ones, where a program says nothing.

The first of them brings the compiled kernels in; where there are none yet, another process begins to compile them, and
this one stays with NumPy's for good, so that all its graphs compute alike. Read next: `switch.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...compiler.fusion import FUSED, KERNELS, PLAIN, Setting
from ...core.ir import Graph

LARGE = 1 << 20  # bytes of all values of a graph: a run of a smaller one takes some dozen microseconds


def level(graphs: Iterable[Graph], exact: bool) -> int:
    """How a graph or job is to be built: PLAIN, KERNELS or FUSED. exact: with the bits of eager."""
    if exact or Setting.graphs == "none" or (Setting.graphs == "large" and not (weight(graphs) >= LARGE and ready())):
        return KERNELS if Setting.eager else PLAIN
    return FUSED


def weight(graphs: Iterable[Graph]) -> int:
    """Bytes of what the nodes give."""
    return sum([spec.nbytes for graph in graphs for node in graph.nodes for spec in node.out_specs])


def ready() -> bool:
    """For graphs of a program that did not ask for the machine: is it there?"""
    if Setting.ready is None:
        from .switch import by_default

        Setting.ready = by_default()
    return Setting.ready
