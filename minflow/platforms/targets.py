"""The target of a graph: kernels and passes of the platforms of its device. Read next: `compiled/policy.py`."""

from __future__ import annotations

from collections.abc import Sequence

from ..compiler.target import Target
from ..core.ir import Graph
from ..core.spec import cpu
from .compiled.policy import target as target_on_cpu


def choose_target(graphs: Sequence[Graph], exact: bool) -> Target:
    """The target of the graphs of a job or an nn.Graph. exact: True for the bits of eager code."""
    devices = {spec.device for graph in graphs for node in graph.nodes for spec in node.out_specs}
    if devices <= {cpu}:
        return target_on_cpu(graphs, exact)
    from .cupy.fusion import target

    return target(exact)
