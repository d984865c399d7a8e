"""Buffer assignment: where each value of a graph is stored. Nothing is allocated here.

In the arena (`arena.py`), in the array of a state (for an update whose old value has no later users), or in a new array
at each call (large outputs). Read next: `plan.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.ir import Graph, Node, Source, Value, outputs_of
from ..core.kernels import select_for
from ..core.spec import Device, cpu
from .arena import BufferRequest, least, place
from .memory_limit import check_memory
from .uses import Uses

# bytes: smaller inputs and outputs are copied to and from fixed addresses, so that calls can be prepared
COPIED = 1 << 14


class Layout:
    """Memory of the values of a graph.

    device: of its values; a graph on another device than the CPU may also have small values there (`apart`).
    platforms: whose kernels are used, in order; by default those of eager code.
    results, kept: its outputs; the last `keep` of them stay readable and are not copied out.  arena_bytes: size of the
    arena.  places: value -> (offset, bytes, first step, last step) in the arena.  needs: value -> its `BufferRequest`.
    in_place: value -> the state that it is written to.  fresh: outputs that are computed into new arrays.
    """

    def __init__(
        self, graph: Graph, keep: int = 0, name_of: Callable[[Node], str] = str, platforms: Sequence[str] | None = None
    ):
        self.graph, self.name_of, self.platforms = graph, name_of, platforms
        self.device = device_of_graph(graph)
        self.results = graph.outputs[: len(graph.outputs) - keep]
        self.kept = graph.outputs[len(self.results) :]
        self.position = {node: i for i, node in enumerate(graph.nodes)}
        self.uses = Uses(graph)
        self.in_place = self.find_in_place()
        self.fresh = [v for v in dict.fromkeys(self.results) if self.is_fresh(v)]
        self.find_places()

    def find_in_place(self) -> dict[Value, Source]:
        """Find updates {new value: state} that a kernel may write into the state: the old value has no later users."""
        uses, in_place = self.uses, {}
        for state, value in self.graph.updates.items():
            old, node = Value(state, 0, state.out_specs[0]), value.node
            if node not in self.position or value in in_place or uses.root[value] != value or not node.op.takes_out:
                continue
            if old in uses.shown or not state.array.flags.c_contiguous:
                continue
            at = self.position[node]
            if all(
                step < at or (step == at and self.may_overwrite(node, value, x, old))
                for step, x in uses.reads.get(old, ())
            ):
                in_place[value] = state
        return in_place

    def may_overwrite(self, node: Node, value: Value, x: Value, old: Value) -> bool:
        """True if `node` may write `value` over `old`, which it reads as `x`.

        The op must be declared alias-safe, and read `old` itself, not a view of it.
        """
        if not node.op.alias_safe or x != old:
            return False
        if node.op.many:
            names = node.op.inputs
            return [names[i] for i, y in enumerate(node.inputs) if y == old] == [node.op.outputs[value.index]]
        return x in overwritable(node)

    def is_fresh(self, v: Value) -> bool:
        """True if this output is computed into a new array at each call.

        Small outputs are copied out of the arena; so are larger ones that a compiled kernel may compute, since its
        tasks can only be prepared for fixed addresses, and all of a GPU, for which calls are captured.
        """
        if v.node not in self.position or self.uses.root[v] != v or v in self.in_place or not v.node.op.takes_out:
            return False
        if self.device is not cpu:
            return False
        return v.spec.nbytes > (4 * COPIED if select_for(v.node, self.platforms).lower else COPIED)

    def find_places(self) -> None:
        """Assign an offset to every computed value; an output may reuse the bytes of an input that dies with it."""
        stored = [node for node in self.graph.nodes if node.op.takes_out and not node.op.is_view]
        self.apart = [v for node in stored for v in outputs_of(node) if v.spec.device is not self.device]
        last, elsewhere = self.uses.last, {*self.in_place, *self.fresh, *self.apart}
        heir: dict[Value, Value] = {}  # value -> the value whose bytes it reuses
        needs: dict[Value, BufferRequest] = {}
        for i, node in enumerate(self.graph.nodes):
            if node.op.is_view or not node.op.takes_out:
                continue
            for v in outputs_of(node):
                if v in elsewhere:
                    continue
                source = self.dying(node, i, v, needs, heir)
                if source is not None:
                    heir[v] = source = heir.get(source, source)
                    needs[source] = needs[source]._replace(last=last[v])
                else:
                    needs[v] = BufferRequest(v.spec.nbytes, i, last[v])
        self.check_memory(least(needs), needs)  # first of all, since sums of huge sizes overflow int64
        offsets, self.arena_bytes = place(needs)
        self.check_memory(self.arena_bytes, needs)
        self.needs = needs
        self.places = {}
        for v in (*needs, *heir):
            self.places[v] = (offsets[heir.get(v, v)], v.spec.nbytes, self.position[v.node], last[v])

    def check_memory(self, arena_bytes: int, needs: dict, kernels: int = 0) -> None:
        """Refuse a plan that does not fit into memory.

        Counts the arena, the new outputs of each call, and the kernels' workspace.
        """
        needed = arena_bytes + sum([v.spec.nbytes for v in self.results]) + kernels
        check_memory(needed, (*needs, *self.results), self.name_of, kernels, self.device)

    def dying(self, node: Node, i: int, v: Value, needs: dict, heir: dict) -> Value | None:
        """Return an input of the same spec that this node may overwrite and that has no later users; otherwise None."""
        if not node.op.alias_safe or node.op.many:
            return None
        root = self.uses.root
        for x in overwritable(node):
            if x.__class__ is not Value or x.spec is not v.spec or self.uses.last.get(x) != i or root[x] != x:
                continue
            if x not in needs and x not in heir:
                continue
            if all(y == x or root[y] != x for y in node.inputs if y.__class__ is Value):
                return x
        return None


def device_of_graph(graph: Graph) -> Device:
    """Return the first device of a graph other than the CPU; the CPU if there is none."""
    specs = [spec for node in (*graph.inputs, *graph.states, *graph.nodes) for spec in node.out_specs]
    return next((spec.device for spec in specs if spec.device is not cpu), cpu)


def overwritable(node: Node) -> Sequence:
    """Return the inputs that the result may overwrite.

    Any of an elementwise op; the first of others (`view_write`, `sgd`).
    """
    return node.inputs if node.op.elementwise else [x for x in node.inputs[:1] if x not in node.inputs[1:]]
