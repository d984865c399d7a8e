"""Recording of an eager run: inputs and outputs of every op, in order; afterwards everything that it wrote is restored.

`compare.py` compares the recording with a graph. Listeners are not notified. Read next: `compare.py`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ....core.backend import Array, is_array
from ....core.eager import Eager
from ....core.functionalize import writes_of
from ....core.host import host_array
from ....core.ir import Node, Source, where_text
from ....core.mode import MODE, using
from ....core.source_location import caller
from ....core.tensor import Tensor
from ....nn.graph.tree import leaves
from .restore import copies_of


@dataclass(eq=False)
class RecordedOp:
    """One op that ran. op_name: such as "matmul". name: as in reports. inputs: arrays and Python numbers. arrays: its
    outputs.

    reads: the names of its inputs, as far as they are known. scope: the module that it ran in.
    node: its node in the graph's trace; None in eager. If a pass removed it from the plan, there are no arrays.
    whole: in eager, the outermost composite op that called it. opened: True for a composite op that ran as others.
    """

    op_name: str
    name: str
    where: str
    inputs: list[Any]
    arrays: list[Array]
    reads: tuple[str, ...] = ()
    scope: str = ""
    node: Node | None = None
    whole: str = ""
    opened: bool = False

    def key(self, scoped: bool) -> tuple:
        """The key for pairing. scoped: include the module path, except its outermost part, which only graphs have."""
        shapes = [a.shape for a in self.arrays] if self.node is None else [s.shape for s in self.node.out_specs]
        return self.op_name, tuple(shapes), self.scope.partition(".")[2] if scoped else ""


@dataclass
class Recording:
    """A recorded run. outputs: (path in lists and dicts, array). written: name of a state -> its new array."""

    ops: list[RecordedOp]
    outputs: list[tuple[tuple, Array]]
    written: dict[str, Array] = field(default_factory=dict)


ResultId = tuple[int, int]  # (index of an op, index of its result)


class TrackedTensor(NamedTuple):
    """A tensor that ops computed or wrote into. array: a copy, valid at this version. new: the run created it."""

    tensor: Tensor
    results: list[ResultId]
    array: Array | None
    version: int
    new: bool


class EagerRecorder(Eager):
    """The recording mode. ops: the ops that ran so far, in order.

    saved_arrays: (array, its elements before) of each write. buffers, grads, counts, schedules: their previous values.
    """

    def __init__(self, seed: float):
        self.grad, self.seed = MODE.get().grad, seed
        self.ops: list[RecordedOp] = []
        self.saved_arrays: list[tuple[Array, Array]] = []
        self.saved_bindings: list[tuple[Tensor, Any, bool]] = []
        self.buffers: list[tuple[dict, str, Any]] = []  # (dict, name, tensor before) of each buffer that was rebound
        self.grads: dict[int, tuple[Tensor, Tensor | None]] = {}
        self.counts: dict[int, tuple[Any, str, int]] = {}  # (object, name of its step counter, count before)
        self.schedules: dict[int, tuple[Any, dict, list]] = {}
        self.tensors: dict[int, TrackedTensor] = {}
        self.readers: dict[ResultId, list[int]] = {}  # indices of the ops that read a result; -1 if it is an output
        self.written_to_state: set[ResultId] = set()  # results written to a state or a gradient
        self.last_results: list[Any] = [None]

    # ---- running ops -------------------------------------------------------------------------------------------------

    def run(self, op, inputs, attrs):
        first = len(self.ops)
        results = super().run(op, inputs, attrs)
        inner = self.ops[first:] if op.composite else []
        for part in inner:
            part.whole = op.name
        many = results if isinstance(results, list) else [results]
        if self.last_results[0] is not results:  # equal for a promoted op, whose `run` called `run` on cast inputs
            index = self.add_op(op, inputs, many, where_text(caller(3)))
            self.ops[index].opened = bool(inner)
            self.last_results[:] = [results]
            for k, t in enumerate(many):
                array = self.ops[index].arrays[k]
                self.tensors[id(t)] = TrackedTensor(t, [(index, k)], array, writes_of(t), not op.is_view)
            if self.origin is not None:  # in backward, a result without users is a gradient
                self.written_to_state |= {(index, k) for k in range(len(many))}
        return results

    def update(self, op, targets, inputs, attrs):
        self.save_arrays(targets)
        super().update(op, targets, inputs, attrs)
        index = self.add_op(op, inputs, targets, where_text(caller(3)))
        for k, t in enumerate(targets):
            self.track_write(t, [(index, k)])

    def write(self, target, root, path, new):
        if id(root) not in self.tensors or not self.tensors[id(root)].new:
            self.save_arrays([target])
        self.saved_bindings.append((root, root._value, root._needs))
        super().write(target, root, path, new)
        self.track_write(root, self.results_in(new))

    def add_op(self, op, inputs, results, where: str) -> int:
        """Append the op and return its index."""
        index = len(self.ops)
        for x in inputs:
            if isinstance(x, Tensor):
                if x._value is not None and isinstance(x._value.node, Source):
                    self.clear_gradient(x)
                for result in self.results_in(x):
                    self.readers.setdefault(result, []).append(index)
        name = f"{self.scope}: {op.name}" if self.scope else op.name
        arrays = [t.array.copy() for t in results]
        self.ops.append(
            RecordedOp(op.name, name, where, [self.copied_input(x) for x in inputs], arrays, scope=self.scope)
        )
        return index

    def track_write(self, root: Tensor, results: list[ResultId]) -> None:
        known = self.tensors.get(id(root))
        new = known is not None and known.new
        if not new:
            self.written_to_state.update(results)
        self.tensors[id(root)] = TrackedTensor(root, [*(known.results if known else ()), *results], None, 0, new)

    def results_in(self, x: Any) -> list[ResultId]:
        """The results that a tensor contains; for a view also those that were written into its base."""
        known = [self.tensors[id(t)].results for t in (x, x._alias.base if x._alias else None) if id(t) in self.tensors]
        return [result for results in known for result in results]

    def copied_input(self, x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x.copy() if is_array(x) else x
        known = self.tensors.get(id(x))
        same = known is not None and known.array is not None and known.version == writes_of(x)
        return known.array if same else x.array.copy()

    def enter_gradient(self, node) -> None:
        MODE.set(self.replace(scope=node.scope, origin=node))

    def writes_directly(self) -> bool:
        return False

    def reports_mistakes(self) -> bool:
        return False

    def has_listeners(self, event: type) -> bool:
        return False

    # ---- restoring ---------------------------------------------------------------------------------------------------

    def save_arrays(self, tensors: Iterable[Tensor]) -> None:
        self.saved_arrays += copies_of([t.array for t in tensors])

    def clear_gradient(self, x: Tensor) -> None:
        """Start without a gradient, as a graph does."""
        if id(x) not in self.grads:
            self.grads[id(x)] = x, x._gradient
            x._gradient = None

    def before_step(self, optimizer: Any) -> None:
        self.counts.setdefault(id(optimizer), (optimizer, "_steps_taken", optimizer._steps_taken))
        for p in optimizer._all_parameters():
            self.grads.setdefault(id(p), (p, p._gradient))

    def before_schedule(self, schedule: Any) -> None:
        rates = [group["lr"] for group in schedule.optimizer.param_groups]
        self.schedules.setdefault(id(schedule), (schedule, copy.deepcopy(schedule.state_dict()), rates))

    def before_bind(self, buffers: dict, name: str) -> None:
        self.buffers.append((buffers, name, buffers[name]))

    def before_run(self, graph: Any, parts: Iterable[Any]) -> None:
        states = [s for part in parts for s in part.graph.states]
        self.saved_arrays += copies_of([s.array for s in states])
        for link in [s.link for s in states if s.link is not None]:
            self.before_bind(link.buffers, link.name)
        self.counts.setdefault(id(graph), (graph, "_steps", graph._steps))
        for optimizer, _ in graph.optimizers:
            self.before_step(optimizer)

    def restore_all(self) -> None:
        for array, before in reversed(self.saved_arrays):
            array[...] = before
        for buffers, name, tensor in reversed(self.buffers):
            buffers[name] = tensor
        for tensor, value, needs in reversed(self.saved_bindings):
            tensor._value, tensor._needs = value, needs
        for tensor, gradient in self.grads.values():
            tensor._gradient = gradient
        for counting, name, count in self.counts.values():
            counting.__dict__[name] = count
        for schedule, state, rates in self.schedules.values():
            schedule.load_state_dict(state)
            for group, rate in zip(schedule.optimizer.param_groups, rates):
                group["lr"] = rate

    # ---- afterwards --------------------------------------------------------------------------------------------------

    def ops_computing_outputs(self, outputs: Iterable[Any]) -> list[RecordedOp]:
        """The ops, except those that only update states, such as running statistics, or compute gradients.

        Results without users are kept: numpy may have read them.
        """
        for x in outputs:
            for result in self.results_in(x) if isinstance(x, Tensor) else ():
                self.readers.setdefault(result, []).append(-1)
        unused = [False] * (len(self.ops) + 1)  # the last one, index -1: the outputs
        for i in reversed(range(len(self.ops))):
            results = [(i, k) for k in range(len(self.ops[i].arrays))]
            unused[i] = all(
                (p in self.written_to_state or p in self.readers) and all(unused[j] for j in self.readers.get(p, ()))
                for p in results
            )
        return [op for op, left_out in zip(self.ops, unused) if not left_out]


def record_eager(function: Callable[[], Any], parameters: Iterable[Tensor], seed: float, whole: bool) -> Recording:
    """Run a function in eager and record it; afterwards restore everything that ops wrote.

    parameters: start without gradients. seed: see `Mode`. whole: also keep the ops that only update states or compute
    gradients.
    """
    recorder = EagerRecorder(seed)
    for p in parameters:
        recorder.clear_gradient(p)
    try:
        with using(recorder):
            outputs = [(path, x) for path, x in leaves(function()) if x is not None]
            arrays = [(path, x.array.copy() if isinstance(x, Tensor) else host_array(x)) for path, x in outputs]
    finally:
        recorder.restore_all()
    return Recording(recorder.ops if whole else recorder.ops_computing_outputs([x for _, x in outputs]), arrays)
