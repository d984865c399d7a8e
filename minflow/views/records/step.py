"""A step of a graph or job as the explorer shows it: the record of a graph whose nodes say more.

Read next: `../explorer/rows.py`, how a step becomes rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from .graph import GraphRecord, NodeRecord

Read = tuple[int, int] | None  # a value, (place of a node, output); None for a number


@dataclass(frozen=True)
class StepNode(NodeRecord):
    """A node of a step. name: of an operation its label with a number, "matmul-3".

    column: 0 forward, 1 backward (recompute too), 2 optimizer, -1 of what is no operation.  order: where it stands in
    the program.  twin: the id of the forward operation whose gradient it is; of a parameter, of the one in whose row it
    stands.
    mark: what a pass did: "new", "changed", "moved" or "gone".  by: the pass that made it, if one did.
    notes: what is in an operation that holds graphs itself.
    every: all attributes; `attrs` has those that are not the usual ones.
    role: of what is no operation "input", "parameter", "buffer", "optimizer state", "constant" or "number"; its scope
    is the module that it stands in, `short` its name there.
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


@dataclass(frozen=True)
class StepRecord(GraphRecord):
    """A step of a graph or job after one pass. modules: path -> class.  loss: the place of the node where backward was
    called, or -1.  note: a line that is shown with the picture.

    The explorer knows a node by its place among `nodes`, and a value as (place, output).
    """

    nodes: tuple[StepNode, ...]
    modules: dict[str, str] = field(default_factory=dict)
    loss: int = -1

    @cached_property
    def places(self) -> dict[str, int]:
        return {node.id: i for i, node in enumerate(self.nodes)}

    @cached_property
    def reads(self) -> list[tuple[Read, ...]]:
        """The values that each node reads; None for a number, and for what is not shown."""
        at = self.places
        return [tuple([(at[x.ref], x.index) if x.ref in at else None for x in node.inputs]) for node in self.nodes]

    def spec(self, value: tuple[int, int]) -> str:
        return self.nodes[value[0]].outs[value[1]]

    @cached_property
    def states(self) -> list[int]:
        """The places of inputs, parameters and whatever else is no operation."""
        return [i for i, node in enumerate(self.nodes) if node.column < 0]
