"""The reference executor: run a Graph node by node with the kernels that eager calls, and apply its updates at the end.

Every result is a fresh C-contiguous array, as in eager, so both give the same bits. Views look into what they view.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.errors import GraphError
from ..core.ir import Graph, Value, outputs_of


def execute(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of the graph for these input arrays, fresh; states are read before and updated after.

    Raises GraphError if the number, shape or dtype of the arrays differs from the graph's inputs.
    """
    if len(arrays) != len(graph.inputs):
        raise GraphError(f"the graph has {len(graph.inputs)} inputs, {len(arrays)} were given", hint="one array for each input")
    env: dict[Value, np.ndarray] = {}
    for source, array in zip(graph.inputs, arrays):
        spec = source.out_specs[0]
        if array.shape != spec.shape or array.dtype != spec.np:
            raise GraphError(
                f"an array does not fit {source.name or 'an input'}",
                values={"expected": spec, "got": f"{array.dtype}{list(array.shape)}"},
            )
        shared = any(np.may_share_memory(array, s.array) for s in graph.updates)
        env[Value(source, 0, spec)] = array.copy() if shared else array
    for state in graph.states:
        if state.read is not None:
            state.array[...] = state.read()
        env[Value(state, 0, state.out_specs[0])] = state.array
    for node in graph.nodes:
        outs = run_node(node, [env[x] if isinstance(x, Value) else x for x in node.inputs])
        env.update(zip(outputs_of(node), outs))
    results = [env[v].copy() for v in graph.outputs]
    for state, array in [(state, env[v].copy()) for state, v in graph.updates.items()]:
        state.array[...] = array
    return results


def run_node(node, arrays: list) -> list[np.ndarray]:
    op = node.op
    if not op.takes_out:
        outs = op.kernel(*arrays, **node.attrs)
        return list(outs) if op.many else [outs]
    outs = [np.empty(s.shape, s.np) for s in node.out_specs]
    op.kernel(*arrays, **node.attrs, out=outs if len(outs) > 1 else outs[0])
    return outs
