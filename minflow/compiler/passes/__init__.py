"""Graph passes: pure and exact functions from a Graph to a Graph, each in its own file.

Read in this order: `rewrite.py` (the one helper), `dead_code.py`, `constant_folding.py`, `common_subexpressions.py`,
`decomposition.py`, `node_order.py`; and `localization.py`, which runs first if there are global tensors.
`nn.Graph.passes` starts as a copy of PASSES and may be edited.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ...core.base.errors import GraphError, MinflowError
from ...core.context import current_context
from ...core.ir import Graph
from ...core.sharding import local_spec
from ...core.spec import Spec
from .common_subexpressions import common_subexpressions
from .constant_folding import constant_folding
from .dead_code import dead_code
from .decomposition import decompose
from .node_order import reduce_memory

Pass = Callable[[Graph], Graph]
OWN = f"{__name__.partition('.')[0]}."  # prefix of the modules whose passes change no graph in place
PASSES: tuple[Pass, ...] = (dead_code, decompose, constant_folding, common_subexpressions, dead_code, reduce_memory)


class Stage(NamedTuple):
    """The graph after a pass (the first Stage is the trace itself), and how long the pass took, in seconds."""

    name: str
    graph: Graph
    seconds: float


# Stages by the name of a pass that was renamed -> its name now.
RENAMED_PASSES = {"memory": "reduce_memory"}


def __getattr__(name: str):
    if name in RENAMED_PASSES:
        warnings.warn(f"the pass {name} is now {RENAMED_PASSES[name]}", DeprecationWarning, stacklevel=2)
        return globals()[RENAMED_PASSES[name]]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def pass_name(step: Pass) -> str:
    return getattr(step, "__name__", type(step).__name__)


def interface(graph: Graph) -> tuple[list[Spec], list[Spec]]:
    """The specs of the outputs and inputs of a graph on this rank."""
    rank = current_context().rank
    outputs = [local_spec(v.spec, rank) for v in graph.outputs]
    return outputs, [local_spec(s.out_specs[0], rank) for s in graph.inputs]


def run_passes(graph: Graph, passes: Iterable[Pass]) -> list[Stage]:
    """Run the passes in order; return the trace and the graph after each pass, each one verified.

    Raises GraphError, which names the pass, if its result is malformed or has other inputs or outputs.
    """
    stages = [Stage("trace", graph, 0.0)]
    for step in passes:
        start = time.perf_counter()
        after = step(graph)
        if not isinstance(after, Graph):
            raise GraphError(
                f"pass {pass_name(step)} returned a {type(after).__name__}", hint="a pass must return a Graph"
            )
        try:
            if after is not graph or not getattr(step, "__module__", "").startswith(OWN):
                after.verify()
        except MinflowError as error:
            error.what = f"after pass {pass_name(step)}: {error.what}"
            raise
        (before, inputs), (now, inputs_now) = interface(graph), interface(after)
        if before != now or inputs != inputs_now:
            raise GraphError(
                f"pass {pass_name(step)} changed the inputs or outputs of the graph",
                values={"outputs before": before, "outputs after": now},
                hint="a pass must keep the inputs and outputs, in their order",
            )
        stages.append(Stage(pass_name(step), after, time.perf_counter() - start))
        graph = after
    return stages
