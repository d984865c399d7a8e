"""Composite ops as one fused loop, for eager code, which has no pass that fuses their parts.

The decomposition is traced for the shapes of a call, and becomes a cluster as in a graph. These kernels are a platform
of their own: a graph decomposes the op, and fuses its parts with their neighbors, too. Read next:
`elementwise_fusion.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from ....compiler.fusion import CLUSTERS, FusedRegion
from ....compiler.passes.decomposition import expand
from ....core.ir import INPUT, Graph, Node, Source, Value, outputs_of
from ....core.kernels import Kernel, register
from ....core.op import OPS, Op
from ....core.spec import Spec, float32, spec_of
from ..config import FUSED
from ..lowering import SUMS
from ..passes.elementwise_fusion import clusters
from ..runtime.eager import run_compiled
from ..runtime.tasks import Task, Workspace
from .elementwise_fusion import cluster

NAMES = ("gelu", "quick_gelu", "silu", "mish", "softsign")


class FusedComposite(NamedTuple):
    """The region that an op becomes. inputs, outputs: indices of those of the op that it reads and writes."""

    region: FusedRegion
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@functools.lru_cache(1 << 10)
def fused(op: Op, specs: tuple[Spec, ...], attrs: tuple) -> FusedComposite | None:
    """Trace and fuse the parts of a composite op, or of the op of its gradients; None if they are not one region."""
    options = dict(attrs)
    found = op.infer(*specs, **options)
    sources = [Source(INPUT, spec) for spec in specs]
    values = [Value(source, 0, spec) for source, spec in zip(sources, specs)]
    whole = Node(op, values, options, found if op.many else (found,))
    results = outputs_of(whole)
    wanted = [i for i in range(len(results)) if options.get("needs", ~0) >> i & 1]
    graph = expand(Graph(sources, [whole], [results[i] for i in wanted]), lambda node: node is whole)
    outputs, nodes = graph.outputs, clusters(graph).nodes
    if len(nodes) != 1 or nodes[0].op not in CLUSTERS:
        return None
    region: FusedRegion = nodes[0].attrs["code"]
    if {*region.inputs} > {*values} or {*region.outputs} != {*outputs}:
        return None
    inputs = [values.index(x) for x in region.inputs]
    return FusedComposite(region, tuple(inputs), tuple([wanted[outputs.index(x)] for x in region.outputs]))


def accepts(op: Op, *specs: Spec | type, **attrs) -> bool:
    """True for arrays of float32 that have elements."""
    fitting = [s for s in specs if isinstance(s, Spec) and s.dtype is float32 and s.size and s.placement is None]
    return len(fitting) == len(specs) and fused(op, tuple(fitting), tuple(attrs.items())) is not None


def tasks(op: Op, arrays: Sequence, outs: Sequence, workspace: Workspace, **attrs) -> list[Task] | None:
    specs = [spec_of(x) for x in arrays]
    if not accepts(op, *specs, **attrs):
        return None
    region, inputs, outputs = fused(op, tuple(specs), tuple(attrs.items()))  # type: ignore[misc]  # accepted
    return cluster([arrays[i] for i in inputs], [outs[i] for i in outputs], workspace, region)


for name in NAMES:
    for op in (OPS[name], OPS[name].gradient):
        call = partial(run_compiled, op, partial(tasks, op))
        register(op, FUSED, Kernel(call, tolerance=SUMS, declines=True, accepts=partial(accepts, op)))
