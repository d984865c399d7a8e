"""The reference executor that plans are compared with: runs a graph node by node, without arena, passes or prepared
calls.
"""

from collections.abc import Sequence

import numpy as np

from minflow.compiler.executor import run_node
from minflow.core.ir import Graph, Value, outputs_of


def execute(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return new arrays with the outputs of the graph; reads states before and updates them after."""
    env: dict[Value, np.ndarray] = {}
    for source, array in zip(graph.inputs, arrays):
        spec = source.out_specs[0]
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
