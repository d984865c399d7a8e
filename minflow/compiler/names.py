"""Names of operations: "model.features.0.0-conv2d-0". Read next: `plan_cache.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..core.ir import OPTIMIZER, Node, Source, Value


class Names:
    """Name nodes on first use: the module, the op, and a running number per op.

    A gradient's op ends in "_grad"; an update is named after its parameter, "model.fc1.weight_optimizer".
    """

    def __init__(self, source_name: Callable[[Source], str] = lambda source: source.name) -> None:
        self.source_name = source_name
        self.counts: dict[str, int] = {}
        self.known: dict[Node, str] = {}

    def of(self, node: Node) -> str:
        name = self.known.get(node)
        return name if name is not None else self.known.setdefault(node, self.make(node))

    def make(self, node: Node) -> str:
        op = str(node.op)
        if node.phase == "backward" and not op.endswith("_grad"):
            op += "_grad"
        first = node.inputs[0] if node.inputs else None
        if (
            node.phase == OPTIMIZER
            and node.op.outputs[0] == "p"
            and isinstance(first, Value)
            and isinstance(first.node, Source)
        ):
            return f"{self.source_name(first.node) or 'parameter'}_optimizer"
        number = self.counts[op] = self.counts.get(op, -1) + 1
        return f"{node.scope}-{op}-{number}" if node.scope else f"{op}-{number}"


def op_names(nodes: Iterable[Node]) -> dict[Node, str]:
    """Return {node: name} for the nodes of a trace.

    `CompiledPart.names` gives the same names to the nodes that passes made of them.
    """
    names = Names()
    return {node: names.of(node) for node in nodes}
