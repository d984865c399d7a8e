"""Pipelines: modules on different ranks, and the micro-steps of gradient accumulation in an order that overlaps them.

    self.model.first.to(nn.graph.GraphModule).set_stage(0, flow.placement("cpu", ranks=[0]))

A micro-step is cut into forward and backward: while a rank computes its stage for one part of the batch, the next rank
computes its own for the part before. A stage begins with a forward for each stage from it on, and then alternates: one
backward, one forward (1F1B: Narayanan et al. 2019, SOSP, section 3.2). So it keeps the values that backward reads only
for these parts. If ranks of several stages meet in a collective, all forwards run first (GPipe: Huang et al. 2019,
arXiv:1811.06965, section 2.3). Read next: `../compiled.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ....compiler.passes.localization import is_global
from ....compiler.passes.rewrite import rewrite
from ....compiler.plan_cache import Part
from ....core.base.placement import Placement, broadcast
from ....core.context import current_context
from ....core.ir import INPUT, Graph, Node, Source, Value, outputs_of
from ....core.ops.global_tensors import boxed
from ....core.tensor import Tensor
from ....core.trace import Trace
from ..tree import Leaf, flatten, unflatten

ENDS = "source", "target"  # attrs of ops that communicate


class Halves(NamedTuple):
    """How a micro-step is cut in two.

    results: for each result of a micro-step, (part, index among the outputs of that part).  inputs: the indices of the
    inputs that backward reads; after them it takes the other outputs of forward, from index `saved` on.
    ahead: the number of forwards before the first backward.
    """

    results: list[tuple[int, int]]
    inputs: list[int]
    saved: int
    ahead: int


def ranks_of_stages(modules: Iterable[tuple[str, Any]]) -> dict[int, set[int]]:
    """Stage -> its ranks: those of its placement and of its parameters."""
    stages: dict[int, set[int]] = {}
    for _, module in modules:
        if (stage := module.__dict__.get("_stage")) is not None:
            ranks = stages.setdefault(stage, set())
            ranks.update((module.__dict__.get("_stage_placement") or ((), ()))[1])
            ranks.update([r for p in module.parameters() if p.spec.placement is not None for r in p.placement.order])
    return stages


def forwards_ahead(graph: Graph, stages: dict[int, set[int]], steps: int) -> int:
    """The number of forwards that this rank runs before its first backward.

    Stages may run in orders of their own if a rank has one stage, and each op communicates within a stage or sends
    messages from one to another.
    """
    groups = [stages[stage] for stage in sorted(stages)]
    own = next((i for i, ranks in enumerate(groups) if current_context().rank in ranks), 0)
    alone = sum(map(len, groups)) == len(set().union(*groups))
    ends = [node.attrs[end] for node in graph.nodes if node.op.communicates for end in ENDS if end in node.attrs]
    if alone and all([any([ranks.issuperset(placement.order) for ranks in groups]) for placement, _ in ends]):
        return min(steps, len(groups) - own)
    return steps


def on_stage(module: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments of a module, with its global tensors on the placement of its stage."""
    fields = module.__dict__.get("_stage_placement")
    if fields is None:
        return args, kwargs
    placement, rank = Placement.of(*fields), current_context().rank
    tree, tensors = flatten((args, kwargs), lambda path, leaf: Leaf(leaf))

    def moved(x: Tensor) -> Tensor:
        spec = x.spec
        if spec.placement is None or spec.sbp is None or spec.placement is placement:
            return x
        same = len(spec.placement.hierarchy) == len(placement.hierarchy)
        return boxed(x, placement, spec.sbp if same else (broadcast,) * len(placement.hierarchy), rank)

    return unflatten(tree, map(moved, tensors))


def halved(part: Part, trace: Trace, stages: dict[int, set[int]], steps: int) -> tuple[list[Part], Halves] | None:
    """A micro-step as two parts; None if there are no stages, no backward or no global tensors."""
    graph = part.graph
    cut = next((i for i, node in enumerate(graph.nodes) if node.phase == "backward"), None)
    if not stages or cut is None or not is_global(graph):
        return None
    first = {*graph.nodes[:cut], *graph.inputs, *graph.states}

    def is_early(value: Value) -> bool:
        return value.node in first

    updates = {state: value for state, value in graph.updates.items() if is_early(value)}
    read = {x for node in graph.nodes[cut:] for x in node.inputs if x.__class__ is Value and is_early(x)}
    fixed = {s for s in graph.states if s not in updates and (s.read is None or not reads(graph.nodes[:cut], s))}
    inputs = [i for i, source in enumerate(graph.inputs) if outputs_of(source)[0] in read]
    taken = [outputs_of(graph.inputs[i])[0] for i in inputs]
    saved = [v for v in sorted_values(graph, read) if v.node not in fixed and v not in taken]
    outputs = graph.outputs[: part.results]
    early = [v for v in dict.fromkeys(outputs) if is_early(v)]
    late = [v for v in dict.fromkeys(outputs) if not is_early(v)]
    results = [(0, early.index(v)) if is_early(v) else (1, late.index(v)) for v in outputs]
    kept = {name: graph.outputs[index] for name, index in part.kept.items()}
    kept_early = {name: v for name, v in kept.items() if is_early(v)}
    kept_late = {name: v for name, v in kept.items() if not is_early(v)}
    sources = {v: Source(INPUT, v.spec, name=name_of(v)) for v in (*taken, *saved)}
    forward = Graph(graph.inputs, graph.nodes[:cut], [*early, *saved, *kept_early.values()], graph.states, updates)
    later = Graph(
        sources.values(),
        graph.nodes[cut:],
        [*late, *kept_late.values()],
        graph.states,
        {state: value for state, value in graph.updates.items() if state not in updates},
    )
    backward = rewrite(later, later.nodes, {v: outputs_of(source)[0] for v, source in sources.items()})
    parts = [
        cut_part("forward", forward, trace, len(early) + len(saved), kept_early),
        cut_part("backward", backward, trace, len(late), kept_late),
    ]
    return parts, Halves(results, inputs, len(early), forwards_ahead(graph, stages, steps))


def cut_part(name: str, graph: Graph, trace: Trace, results: int, kept: dict[str, Value]) -> Part:
    """A part with the states that its graph reads or updates. kept: its last outputs, by name."""
    used = {x.node for node in graph.nodes for x in node.inputs if x.__class__ is Value}
    used |= {value.node for value in (*graph.outputs, *graph.updates.values())}
    graph.states = [state for state in graph.states if state in used or state in graph.updates]
    return Part(name, graph, trace.leaves, results, {key: results + i for i, key in enumerate(kept)})


def reads(nodes: Iterable[Node], state: Source) -> bool:
    """True if one of the nodes reads a state."""
    return any([x.node is state for node in nodes for x in node.inputs if x.__class__ is Value])


def sorted_values(graph: Graph, chosen: set[Value]) -> list[Value]:
    """The chosen values of a graph in its order, which is the same on each rank."""
    return [value for value in graph.values() if value in chosen]


def name_of(value: Value) -> str:
    return value.node.name if isinstance(value.node, Source) else f"{value.node.op} of forward"


def run_halves(halves: Halves, batches: list[list], forward: Callable, backward: Callable) -> list[list]:
    """The results of each micro-step. batches: the inputs of each.  forward, backward: `half(k, arrays)` runs the half
    of micro-step k.
    """
    outs = {k: forward(k, batches[k]) for k in range(halves.ahead)}
    results = []
    for k, arrays in enumerate(batches):
        early = outs.pop(k)
        late = backward(k, [*[arrays[i] for i in halves.inputs], *early[halves.saved :]])
        results.append([(early, late)[half][index] for half, index in halves.results])
        del early, late
        if (next_k := k + halves.ahead) < len(batches):
            outs[next_k] = forward(next_k, batches[next_k])
    return results
