"""A step of a graph or job for the explorer: a GraphRecord whose nodes carry more detail.

Read next: `../explorer/rows.py`, how a step becomes rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from .graph import GraphRecord, NodeRecord

Read = tuple[int, int] | None  # a value as (index of its node, output index); None for a number


@dataclass(frozen=True)
class StepNode(NodeRecord):
    """A node of a step. name: an operation's label with a number, "matmul-3".

    column: 0 forward, 1 backward (also recompute), 2 optimizer, -1 if it is not an operation.  order: position in the
    program.  twin: id of the forward operation whose gradient it computes; for a parameter, of the operation whose row
    it shares.
    mark: effect of a pass: "new", "changed", "moved" or "gone".  by: the pass that created it, if any.
    notes: contents of an operation that contains graphs.
    every: all attributes; `attrs` has those that are not defaults.
    opens: True if it is composite, so that it can be opened.
    call: name of the operation of which it is a part that has no call of its own; else its own name.
    role: if not an operation, "input", "parameter", "buffer", "optimizer state", "constant" or "number"; then its scope
    is its module, and `short` its name there.
    """

    name: str = ""
    column: int = -1
    nbytes: int = 0
    every: str = ""
    twin: str = ""
    order: float = 0.0
    view: bool = False
    by: str = ""
    role: str = ""
    short: str = ""
    size: int = 0
    opens: bool = False
    call: str = ""


@dataclass(frozen=True)
class StepRecord(GraphRecord):
    """A step of a graph or job after one pass. modules: path -> class.  loss: index of the node on which backward was
    called, or -1.  note: a line shown with the picture.

    The explorer identifies a node by its index in `nodes`, and a value by (index, output).
    """

    nodes: tuple[StepNode, ...]
    modules: dict[str, str] = field(default_factory=dict)
    loss: int = -1

    @cached_property
    def places(self) -> dict[str, int]:
        return {node.id: i for i, node in enumerate(self.nodes)}

    @cached_property
    def reads(self) -> list[tuple[Read, ...]]:
        """The values that each node reads; None for a number, and for a value that is not shown."""
        at = self.places
        return [tuple([(at[x.ref], x.index) if x.ref in at else None for x in node.inputs]) for node in self.nodes]

    def spec(self, value: tuple[int, int]) -> str:
        return self.nodes[value[0]].outs[value[1]]

    @cached_property
    def states(self) -> list[int]:
        """Indices of inputs, parameters and everything else that is not an operation."""
        return [i for i, node in enumerate(self.nodes) if node.column < 0]
