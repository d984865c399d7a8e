"""The plan of a graph: every value has its memory, every step is a prepared call of a kernel.

`buffer_assignment.py` assigns the memory; arrays that are new at each call (large inputs and outputs) have slots, which
are filled when the plan runs. Views are created once, here. Read next: `executor.py`, which runs a plan.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence

from ..core.backend import Array, backend_of, empty, owner_of, placed
from ..core.base.errors import GraphError
from ..core.ir import CONSTANT, INPUT, Graph, Node, Source, Value, VersionCounter, outputs_of
from ..core.kernels import HOST_PLATFORMS, Selection, device_of_node, is_moved_for, select, select_for
from ..core.ops.shape import copy_to
from ..core.spec import Device, cpu
from .arena import ALIGN
from .buffer_assignment import COPIED, Layout
from .call_merging import is_steady, joined, memory_of
from .capture import Capture, copy_in, is_copy


class Slots(list):
    """The arrays that are new at each call."""


class DynamicCall:
    """A call that reads or writes slots. out: an array, a slot number, or None for a kernel without `out=`."""

    __slots__ = ("kernel", "args", "reads", "out", "slots", "target")

    def __init__(self, kernel: Callable, args: list, reads: list, slots: Slots, out=None, target: int | None = None):
        self.kernel, self.args, self.reads, self.slots, self.out, self.target = kernel, args, reads, slots, out, target

    def __call__(self) -> None:
        slots, args = self.slots, self.args.copy()
        for position, slot in self.reads:
            args[position] = slots[slot]
        if self.out is not None:
            self.kernel(*args, out=self.out)
        elif self.target is not None and slots[self.target] is not None:
            self.kernel(*args, out=slots[self.target])
        else:
            slots[self.target] = self.kernel(*args)


class Plan(Layout):
    """A graph ready to run.

    calls, nodes, selections: the prepared calls, the node of each, and its kernels.  units: calls after merging
    adjacent compiled kernels and capture, and the first node of each.  capture: None on the CPU.  keep: how many of the
    last outputs stay readable until the next call instead of being copied out.  version_counters: the version counters
    of the states that are written.  platforms: see `Layout`.
    """

    def __init__(
        self,
        graph: Graph,
        keep: int = 0,
        version_counters: Sequence[VersionCounter] = (),
        name_of: Callable = str,
        platforms: Sequence[str] | None = None,
    ):
        super().__init__(graph, keep, name_of, platforms)
        self.backend = backend_of(self.device)
        if not self.backend.has_elements:
            hint = 'model.to_empty(device="cpu"), or the shapes in eager mode: model(x).shape'
            raise GraphError(f"a graph cannot be compiled for {self.device}, whose tensors have no elements", hint=hint)
        self.version_counters = tuple(version_counters)
        self.slots = Slots()
        self.slot_of: dict[Value, int] = {}
        self.env: dict[Value, Array] = {}
        self.calls: list[Callable] = []
        self.nodes: list[Node] = []
        self.selections: list[Selection] = []
        self.moved: dict[tuple[Value, Device], Array] = {}  # copies of values on the CPU
        self.arrivals = 0  # how many of them the first calls make
        self.direct: Callable | None = None
        self.take_inputs()
        self.fresh_slots = [(self.new_slot(v), v.spec) for v in self.fresh]
        self.fill_arena()
        self.env.update({v: empty(v.spec) for v in self.apart})
        self.linked = {state: state.array.copy(order="K") for state in graph.states if state.link is not None}
        # a trace makes constants on the host
        self.arrays = {s: self.linked.get(s, placed(s.array, s.out_specs[0].device)) for s in graph.states}
        for state, array in self.arrays.items():
            self.env[Value(state, 0, state.out_specs[0])] = array
        for value, state in self.in_place.items():
            self.env[value] = self.arrays[state]
        for node in self.checks_first():
            self.prepare(node)
        self.check_memory(self.arena_bytes, self.needs, memory_of(self.calls))
        self.units = joined(self.calls, self.nodes)
        self.start(*self.units)
        self.capture = None if self.device is cpu else Capture(self)
        self.outs = [
            (self.env.get(v), self.slot_of.get(v), v in self.fresh and v not in self.results[:k])
            for k, v in enumerate(self.results)
        ]
        self.reads = [(s.array, s.read) for s in graph.states if s.read is not None]
        self.reads += [(array, s.link.read) for s, array in self.linked.items()]
        self.hands_out = [(array, s.link.write) for s, array in self.linked.items() if s in graph.updates]
        self.copies = [(s, v) for s, v in graph.updates.items() if self.in_place.get(v) is not s]
        self.written = frozenset([id(owner_of(self.arrays[s])) for s in graph.updates])
        kept = {self.slot_of.get(self.uses.root[v]) for v in self.kept} | {self.slot_of.get(v) for v in self.kept}
        self.forgotten = [i for i in range(len(self.slots)) if i not in kept]
        self.seconds: list[float] | None = None
        self.runs, self.busy = 0, False
        self.static_io = self.find_static_io()

    # ---- the calls ---------------------------------------------------------------------------------------------------

    def checks_first(self) -> list[Node]:
        """Return the nodes in order, but those that may refuse an input's elements before all that write."""
        first: dict[Node, None] = {}
        for node in self.graph.nodes:
            if node.op.checks and self.uses.root[node.inputs[0]].node.op is INPUT:
                chain = [node]
                while chain[-1].inputs[0].node.op is not INPUT:
                    chain.append(chain[-1].inputs[0].node)
                first.update(dict.fromkeys(reversed(chain)))
        return [*first, *[node for node in self.graph.nodes if node not in first]]

    def new_slot(self, v: Value) -> int:
        self.slot_of[v] = len(self.slots)
        self.slots.append(None)
        return self.slot_of[v]

    def take_inputs(self) -> None:
        """Copy small and steady inputs, and those of a GPU, to fixed addresses; read large ones in place."""
        self.inputs: list[tuple[int | None, Array | None]] = []
        for source in self.graph.inputs:
            value = Value(source, 0, source.out_specs[0])
            if self.device is not cpu or value.spec.nbytes <= COPIED or is_steady(value, self.uses, self.platforms):
                self.env[value] = empty(value.spec)
                self.inputs.append((None, self.env[value]))
            else:
                self.inputs.append((self.new_slot(value), None))

    def fill_arena(self) -> None:
        """Allocate the buffer; the array of each place is a view of it."""
        buffer = self.backend.empty((self.arena_bytes + ALIGN,), "uint8")
        skip = -self.backend.byte_bounds(buffer)[0] % ALIGN
        self.arena = buffer[skip : skip + self.arena_bytes]
        for v, (offset, nbytes, *_) in self.places.items():
            self.env[v] = self.arena[offset : offset + nbytes].view(v.spec.np).reshape(v.spec.shape)

    def prepare(self, node: Node) -> None:
        """Append the call of a node; a view of memory at a fixed address is created at once and needs no call."""
        env, slot_of, outs, backend = self.env, self.slot_of, outputs_of(node), backend_of(device_of_node(node))
        lone = self.graph.nodes == [node] and len(outs) == 1 and outs[0].spec.nbytes <= COPIED
        selected = self.select(node, lone)
        kernel = functools.partial(selected.call, **node.attrs) if node.attrs else selected.call
        reads = [(k, slot_of[x]) for k, x in enumerate(node.inputs) if x.__class__ is Value and x in slot_of]
        args = [self.argument(node, i, x, selected) if x.__class__ is Value else x for i, x in enumerate(node.inputs)]
        late = [v for v in outs if v in slot_of]
        if node.op.is_view and reads and reads[0][0] == 0:
            self.calls.append(DynamicCall(kernel, args, reads, self.slots, target=self.new_slot(outs[0])))
        elif node.op.is_view and node.op.checks:
            env[outs[0]] = args[0]
            self.calls.append(functools.partial(kernel, *args))
        elif node.op.is_view:
            env[outs[0]] = kernel(*args)
            return
        elif not late and not reads:
            places = [env[v] for v in outs]
            lowered = selected.lower and selected.lower(args, places, **node.attrs)
            if lowered:
                selected = selected._replace(call=lowered, platforms=(selected.lowering_platform,))
            self.calls.append(call := lowered or backend.bind(node.op, kernel, args, places))
            if lone and not lowered and self.graph.outputs == outs and not self.kept:
                fixed = [array for _, array in self.inputs]
                self.direct = backend.direct(node, call, fixed, places[0], self.platforms)
        elif not late:
            places = [env[v] for v in outs]
            self.calls.append(DynamicCall(kernel, args, reads, self.slots, out=places if node.op.many else places[0]))
        elif node.op.many:
            places = [(env.get(v), slot_of.get(v)) for v in outs]
            self.calls.append(functools.partial(run_many, kernel, args, reads, self.slots, places))
        else:
            self.calls.append(DynamicCall(kernel, args, reads, self.slots, target=slot_of[outs[0]]))
        self.nodes.append(node)
        self.selections.append(selected)

    def select(self, node: Node, lone: bool) -> Selection:
        """Return the kernels that run a node.

        lone: True if the plan is one call on few elements: then a kernel of the host may take less time than copying
        them to a fixed address.
        """
        selected = select_for(node, self.platforms)
        if lone and selected.lower is not None and not selected.lower.lone:
            selected = select(node.op, HOST_PLATFORMS)
        return selected._replace(call=backend_of(device_of_node(node)).bare(selected.call))

    def argument(self, node: Node, i: int, x: Value, selected: Selection) -> Array | None:
        """Return the array of input i of a node; None if it has a slot. A value on the CPU that a kernel of another
        device needs there is copied once.
        """
        device = device_of_node(node)
        if x not in self.env or device is cpu or x.spec.device is device or not is_moved_for(node, i, selected):
            return self.env.get(x)
        if (copy := self.moved.get((x, device))) is not None:
            return copy
        copy = self.moved[x, device] = empty(x.spec.replace(device=device))
        if x.node.op is CONSTANT:
            copy_in(copy, self.env[x])
            return copy
        # those of inputs and states precede all calls, which can then be captured together
        at = self.arrivals if isinstance(x.node, Source) else len(self.calls)
        self.arrivals += isinstance(x.node, Source)
        self.calls.insert(at, functools.partial(copy_in, copy, self.env[x]))
        self.nodes.insert(at, node)
        self.selections.insert(at, select(copy_to, device_type=device.type))
        return copy

    def array_of(self, v: Value) -> Array:
        """Return the current array of a value."""
        return self.env[v] if v in self.env else self.slots[self.slot_of[v]]

    # ---- one run -----------------------------------------------------------------------------------------------------

    def run(self, arrays: Sequence[Array], timed: bool = False, watch: Callable | None = None) -> list[Array]:
        """Run on these input arrays (C-contiguous, of the right specs); return new arrays, and update the states.

        timed: leave the seconds of each call in `seconds`.  watch: `watch(node, arrays)` after each call, with its
        outputs.
        """
        slots = self.slots
        if slots:
            slots[:] = [None] * len(slots)  # also kept values: a view of an input is created anew
        for (slot, fixed), array in zip(self.inputs, arrays):
            if self.written and id(owner_of(array)) in self.written:
                array = array.copy()  # it shares storage with a state that this plan writes
            if slot is None:
                fixed[...] = array
            else:
                slots[slot] = array
        calls, self.node_of = self.units  # before the inputs are read: an error there belongs to no node
        self.running = calls = iter(calls)
        for array, read in self.reads:
            array[...] = read()
        for slot, spec in self.fresh_slots:
            slots[slot] = empty(spec)
        if watch is not None:
            self.run_watched(watch)
        elif timed:
            self.run_timed()
        else:
            for call in calls:
                call()
        results = []
        for array, slot, fresh in self.outs:
            array = slots[slot] if array is None else array
            results.append(array if fresh else array.copy())
        if self.copies:
            self.copy_states()
        for array, write in self.hands_out:
            write(array)
        self.runs += 1
        return results

    def copy_states(self) -> None:
        """Copy the new values of states that were computed elsewhere."""
        sources = [(self.arrays[s], self.array_of(v)) for s, v in self.copies]
        for target, array in [(t, a.copy() if len(sources) > 1 else a) for t, a in sources]:
            target[...] = array

    def find_static_io(self) -> tuple[list, list] | None:
        """Return the fixed inputs and outputs of this plan; None if some move between runs, or if it writes states."""
        if self.slots or self.reads or self.written:
            return None
        return [place for _, place in self.inputs], [array for array, _, _ in self.outs]

    def forget(self) -> None:
        """Release the inputs and outputs of the last run, except kept values."""
        for i in self.forgotten:
            self.slots[i] = None

    @property
    def failed(self) -> Node | None:
        """The node of the last call: after an error, the one that raised it."""
        done = len(self.node_of) - self.running.__length_hint__()
        return self.node_of[done - 1] if done else None

    def start(self, calls: list[Callable], nodes: list[Node]) -> Iterator[Callable]:
        """Yield the calls; `failed` counts how many are left."""
        self.running, self.node_of = iter(calls), nodes
        return self.running

    def run_watched(self, watch: Callable) -> None:
        for node, call in zip(self.nodes, self.start(self.calls, self.nodes)):
            call()
            if not is_copy(call):
                watch(node, [self.array_of(v) for v in outputs_of(node)])

    def run_timed(self) -> None:
        event = self.backend.event
        marks = [event()]
        for call in self.start(self.calls, self.nodes):
            call()
            marks.append(event())
        self.seconds = [self.backend.seconds_between(*pair) for pair in itertools.pairwise(marks)]


def run_many(kernel: Callable, args: list, reads: list, slots: Slots, places: list) -> None:
    """Run a `DynamicCall` call of a kernel with several outputs."""
    args = args.copy()
    for position, slot in reads:
        args[position] = slots[slot]
    kernel(*args, out=[array if slot is None else slots[slot] for array, slot in places])
