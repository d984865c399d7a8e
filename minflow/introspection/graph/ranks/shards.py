"""Who holds which slice of a global tensor, and the bytes of boxing, for the picture of a graph and its build log.

Read next: `sbp_choices.py`, which explains the sbp; `../../../distributed/boxing.py`, which moves elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ....core.ir import Graph, Node, Value, outputs_of
from ....core.ops.global_tensors import boxing, in_order
from ....core.sharding import local_slices
from ....core.spec import Spec
from ....distributed.boxing import boxing_bytes
from ....views.records.graph import NodeRecord
from ....views.text.numbers import nbytes_text
from ..listing.text import global_specs, sbp_short, sbp_text, spec_of

MAX_SLICES = 8  # slices that are listed


def sent_bytes(node: Node, rank: int) -> int:
    """The bytes that a rank sends in a boxing of a trace or a plan."""
    spec = node.out_specs[0].replace(shape=node.attrs["shape"])
    return boxing_bytes(spec, node.attrs["source"], node.attrs["target"], rank)


def most_sent_bytes(node: Node) -> int:
    """The most bytes that one rank sends in a boxing."""
    return max([sent_bytes(node, rank) for rank in node.attrs["source"][0].order])


def holders_text(spec: Spec) -> str:
    """The ranks of each slice: `rank 0: [0:12]; rank 1: [12:24]`. A term of a sum is held by each rank."""
    assert spec.placement is not None and spec.sbp is not None
    held: dict[str, list[int]] = {}
    for rank in spec.placement.order:
        held.setdefault(slices_text(spec, rank), []).append(rank)
    terms = " of a term of the sum" if any([sbp.kind == "partial_sum" for sbp in spec.sbp]) else ""
    texts = [f"rank{'s' * (len(r) > 1)} {', '.join(map(str, r))}: {part}{terms}" for part, r in held.items()]
    return "; ".join([*texts[:MAX_SLICES], *["..."] * (len(texts) > MAX_SLICES)])


def slices_text(spec: Spec, rank: int) -> str:
    """The slice of a rank as an index, `[0:12, :]`; `all` for the whole tensor."""
    parts = [
        ":" if part == slice(0, size) else f"{part.start}:{part.stop}"
        for part, size in zip(local_slices(spec, rank) or (), spec.shape)
    ]
    return f"[{', '.join(parts)}]" if set(parts) - {":"} else "all"


def without_order(graph: Graph) -> Graph:
    """The graph without the nodes that only state the order of communication."""
    moved: dict[Value, Value] = {}
    nodes = []
    twins: dict[Node, Node] = {}
    for node in graph.nodes:
        inputs = [moved.get(x, x) if x.__class__ is Value else x for x in node.inputs]
        if node.op is in_order:
            moved[outputs_of(node)[0]] = inputs[0]
            continue
        if any([a is not b for a, b in zip(inputs, node.inputs)]):
            twins[node] = node.replace(inputs, twins.get(node.origin, node.origin))
            moved.update(zip(outputs_of(node), outputs_of(twins[node])))
        nodes.append(twins.get(node, node))
    updates = {state: moved.get(value, value) for state, value in graph.updates.items()}
    return Graph(graph.inputs, nodes, [moved.get(v, v) for v in graph.outputs], graph.states, updates)


def describe_shards(part: Any) -> Callable[[Node, NodeRecord], NodeRecord]:
    """A function that adds to the record of a node what is known of its global tensors."""
    specs = global_specs(part)

    def described(node: Node, record: NodeRecord) -> NodeRecord:
        outs = [spec_of(value, specs) for value in outputs_of(node)]
        if node.op is boxing:
            (_, before), (_, after) = node.attrs["source"], node.attrs["target"]
            texts = [", ".join(map(sbp_short, sbp)) for sbp in (before, after)]
            texts = [f"({text})" if len(after) > 1 else text for text in texts]
            sent = most_sent_bytes(node)
            record = replace(record, attrs=f"{' -> '.join(texts)}, {nbytes_text(sent)}", sent=sent)
        if outs[0].placement is None:
            return record
        shown = tuple([f"{spec} ({sbp_text(spec)})" if spec.placement is not None else str(spec) for spec in outs])
        return replace(record, outs=shown, sbp=sbp_text(outs[0]), holders=holders_text(outs[0]))

    return described
