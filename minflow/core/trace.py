"""Trace mode: append Nodes to a Graph instead of computing; concrete tensors that are read become States.

A traced Graph is pure SSA: states in, updates out. A State is identified by storage, shape and strides, then by view
path, never by Tensor object, so tied and detached tensors are one State. The program runs on the caller's thread.
Read next: `compiler/executor.py`, which runs a Graph.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from .autograd import run_decomposition, run_global
from .backend import Array, backend_of_array, constant_on, empty
from .base.errors import TraceError
from .context import current_context
from .dispatch import refuse_input
from .functionalize import (
    Alias,
    contiguous,
    is_untracked,
    make_view,
    move_retain_hook,
    refresh,
    refuse_outdated_view,
    version_counter_of,
    write_into,
)
from .functions.creation import as_tensor
from .grad.hooks import hooks_known
from .host import HostArray, HostScalar, host_array
from .in_flight import next_draw
from .infer import GLOBAL, infer
from .ir import CONSTANT, INPUT, NUMBERS, STATE, Graph, Node, Source, Value, outputs_of, where_text
from .kernels import DECOMPOSED
from .mode import MODE, Mode, using
from .op import Op
from .ops.global_tensors import boxed_like, boxing
from .ops.shape import apply_path, clone, detach, run_in_dtype, unrecorded, view_write
from .source_location import caller, describe, fail, here, warn
from .spans import ArraySpans
from .spec import Device, Spec, cpu, spec_of
from .symbolic_shapes import ShapeEnv
from .tensor import Tensor


class Trace(Mode):
    """Records one program as a Graph.

    symbols: storage of a State -> its symbolic tensor.  views: id of a concrete tensor -> (the tensor, its symbol).
    leaves: Value -> symbol, for states and all other leaves.
    grad_keys: later Value of a leaf that was written -> its first Value, under which backward accumulates its gradient,
    in the order of eager mode.
    reads: (tensor, method, place) for each concrete tensor whose elements the program has read.
    lines: Value made by a write -> the line of that write.
    symbol: the class of symbolic tensors; job functions use Blob.
    gathers_again: True if backward gathers split parameters again, so that they are not kept from forward on.
    states_used: None, or id of a symbol -> (it, its Value, its needs) before the first use of a State, for checkpoints.
    """

    symbol = Tensor
    gathers_again = False
    shape_env: ShapeEnv | None = None  # of the symbolic sizes of its inputs
    states_used: dict[int, tuple[Tensor, Any, bool]] | None = None

    def __init__(self):
        self.trace, self.graph = self, Graph()
        self.symbols: dict[tuple, Tensor] = {}
        self.state_ids: set[int] = set()  # ids of these symbolic tensors
        self.views: dict[int, tuple[Tensor, Tensor]] = {}
        self.leaves: dict[Value, Tensor] = {}
        self.grad_keys: dict[Value, Value] = {}
        self.untracked: dict[Value, Value] = {}  # Value -> its replacement, for writes through `.data`
        self.writes: dict[Value, Value] = {}  # Value -> its replacement, for every write to a storage
        self.data_values: set[Value] = set()  # Values of the tensors that `.data` returned
        self.draws: dict = {}
        self.modules: dict[int, Any] = {}  # id -> Module that was called, if there is no `watch`
        self.keepalive: list = []  # concrete tensors whose ids are keys here
        self.hooked: list = []  # (handle, concrete leaf) for each hook that the program registers while it is traced
        # id -> array of a tensor made during the trace: a constant, not a state
        self.created: dict[int, Array] = {}
        self.spans = ArraySpans[Source]()  # of the states, which do not overlap
        self.reads: list[tuple[Tensor, str, str]] = []
        self.lines: dict[Value, Any] = {}
        # (id of its dict, name) -> (dict, name, first tensor), for each buffer that the program binds to another tensor
        self.rebound: dict[tuple[int, str], tuple[dict, str, Tensor]] = {}
        self.bound: dict[Source, Value] = {}  # State of such a buffer -> its new Value

    def enter_gradient(self, node: Node) -> None:
        MODE.set(self.replace(scope=node.scope, origin=node))

    def writes_directly(self) -> bool:
        return False

    def reports_mistakes(self) -> bool:
        return False

    def run(self, op: Op, inputs, attrs):
        inputs = tuple([self.input_of(op, x) for x in inputs])
        dtype, specs, call = infer(op, inputs, attrs)
        if dtype is GLOBAL:
            if call is DECOMPOSED or call.boxes:
                return run_global(self, op, inputs, attrs, call)
        elif dtype is not None:
            return run_in_dtype(self, op, inputs, attrs, dtype, specs)
        needs = sum([1 << i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x._needs]) & op.differentiable
        paths = self.paths_of(op, inputs, attrs) if needs and op.decompose is not None else [needs] * len(specs)
        needs &= functools.reduce(operator.or_, paths)
        values = [x._value if isinstance(x, Tensor) else x for x in inputs]
        origin = self.origin
        where = origin.where if isinstance(origin, Node) else caller(4)  # a gradient belongs to the line of its forward
        node = Node(op, values, attrs, specs, needs if self.grad else 0, (), self.scope, where)
        node.origin, node.number = origin, len(self.graph.nodes)
        self.graph.nodes.append(node)
        if self.watch is not None:
            self.watch.added(node)
        results = [
            self.symbol(None, v.spec, v, bool(node.needs & path) and v.spec.differentiable)
            for v, path in zip(outputs_of(node), paths)
        ]
        if op.is_view:
            make_view(self, results[0], inputs[0], op, attrs)
        return results if op.many else results[0]

    def paths_of(self, op: Op, inputs: Sequence, attrs: dict) -> list[int]:
        """`gradient_paths` of a call with these tensors, or Values, and numbers."""
        return gradient_paths(op, tuple([getattr(x, "spec", x) for x in inputs]), tuple(attrs.items()))

    def input_of(self, op: Op, x):
        if isinstance(x, Tensor):
            return self.resolve(x)
        if x.__class__ in NUMBERS:
            return x
        if isinstance(x, HostScalar):
            return x.item()
        if isinstance(x, HostArray):
            return self.resolve(self.tensor_of(x))
        refuse_input(op, x)

    # ---- symbols and states --------------------------------------------------------------------------------------

    def symbol_of_input(self, spec: Spec, name: str = "") -> Tensor:
        """Add an input to the graph; return its symbol."""
        source = Source(INPUT, spec, name=name)
        self.graph.inputs.append(source)
        return self.symbol(None, spec, Value(source, 0, spec), False)

    def resolve(self, tensor: Tensor) -> Tensor:
        """The symbolic tensor of any tensor: for a concrete one, found by storage and view path."""
        if tensor.array is not None:
            if id(tensor) not in self.views:
                self.views[id(tensor)] = tensor, self.symbol_of(tensor)
            tensor = self.views[id(tensor)][1]
        if self.states_used is not None:
            self.note_states(tensor)
        return refresh(tensor)

    def note_states(self, symbol: Tensor | None) -> None:
        """Add a symbol and the bases that it is a view of to `states_used`, if they are of States."""
        while symbol is not None:
            if id(symbol) in self.state_ids and self.states_used is not None:
                self.states_used.setdefault(id(symbol), (symbol, symbol._value, symbol._needs))
            symbol = symbol._alias.base if symbol._alias is not None else None

    def symbol_of(self, tensor: Tensor) -> Tensor:
        """A symbol for a concrete tensor that has none yet. The first one on a storage is the State's own symbol."""
        alias = tensor._alias
        if alias is not None and alias.path:
            base = self.resolve(alias.base)
            with using(MODE.get().replace(grad=True)):
                return apply_path(base, alias.path)
        symbol = self.resolve(alias.base) if alias is not None else self.state(tensor.array, tensor)
        if id(tensor) in self.views:
            return symbol
        twin = self.separate(symbol, alias is not None)
        if tensor._needs:  # two leaves on one storage
            leaf: Any = detach(symbol)._value
            twin._value, twin._needs = leaf, True
            leaf.node.hooks = hooks_known(tensor)
            self.leaves[leaf] = twin
        return twin

    def state(self, array: Array, tensor: Tensor | None = None, read: Callable | None = None) -> Tensor:
        """The symbol of the State (or constant) with this array, made at first use. read: see `Source`."""
        key: tuple = backend_of_array(array).storage_key(array), array.shape, array.strides, array.dtype
        if tensor is not None and tensor.spec.placement is not None:
            key = *key, tensor.spec, array.size or id(array)  # arrays without elements may share an address
        if key not in self.symbols:
            kind = CONSTANT if id(array) in self.created else STATE
            own, read = (array, read) if read is not None else self.state_buffer(array, tensor)
            spec, name = (spec_of(array), "") if tensor is None else (tensor.spec, tensor._label)
            source = Source(kind, spec, array=own, read=read, name=name)
            self.register_span(array, source)
            value = Value(source, 0, source.out_specs[0])
            symbol = self.symbol(None, value.spec, value, tensor is not None and tensor._needs)
            if tensor is not None:
                symbol._version_counter, symbol._label = version_counter_of(tensor), tensor._label
                source.hooks = hooks_known(tensor)
                self.keepalive.append(tensor)
                self.views[id(tensor)] = tensor, symbol
            self.graph.states.append(source)
            self.symbols[key] = self.leaves[value] = symbol
            self.state_ids.add(id(symbol))
        return self.symbols[key]

    def state_buffer(self, array: Array, tensor: Tensor | None) -> tuple[Array, Callable | None]:
        """(the array of a new state, the function that fills it before each run, or None)."""
        return array, None

    def register_span(self, array: Array, source: Source) -> None:
        """Record the address range of a new state; raise TraceError if it overlaps that of another state."""
        for other in self.spans.at(array):
            what = "two tensors overlap in memory without one being a view of the other"
            hint = "make one with indexing or reshape from the other, or clone() it"
            fail(TraceError, what, hint, one=source.out_specs[0], other=other.out_specs[0])
        self.spans.add(array, source)

    # ---- numbers that the program reads while it is traced -------------------------------------------------------

    def read(self, tensor: Tensor, verb: str) -> None:
        """Note that the program reads the elements of a concrete tensor. Raise TraceError if it has written them: the
        new ones exist only when the graph runs; or if it is global, since a build does not wait for other ranks.
        """
        if tensor.spec.placement is not None:
            what = (
                f"{verb}() reads all elements of a global tensor while a graph is built, when ranks do not communicate"
            )
            fail(TraceError, what, "read it before the call; or compute with the tensor itself", tensor=tensor)
        read = tensor, verb, here()
        self.refuse_stale([read], self.written_at(tensor.array))
        self.reads.append(read)
        if self.shape_env is not None:
            self.shape_env.fix_range(tensor.array)

    def is_written(self, tensor: Tensor) -> bool:
        """True if the program has written the storage of a concrete tensor."""
        return bool(self.written_at(tensor.array))

    def created_and_wrote(self, tensor: Tensor) -> bool:
        """True if the program has created this concrete tensor and written it: each call starts from the original."""
        return id(tensor.array) in self.created and self.is_written(tensor)

    def written_at(self, array: Array) -> dict[Source, Value]:
        """State or constant -> new Value, for those that overlap an array and whose symbol was rebound."""
        values = [outputs_of(source)[0] for source in self.spans.at(array)]
        return {v.node: now for v in values if (now := self.leaves[v]._value) != v}

    def refuse_stale(self, reads: Sequence[tuple[Tensor, str, str]], written: dict[Source, Value]) -> None:
        """Raise TraceError if the program read elements that the graph writes: it runs once, so they would be stale."""
        spans = ArraySpans[Source]()
        for source in written if reads else ():
            spans.add(source.array, source)
        for tensor, verb, place in reads:
            for source in spans.at(tensor.array):
                watch = MODE.get().watch
                name = (watch.name_of(source.array) if watch is not None else "") or tensor._label or source.name
                raise stale_read_error(tensor, verb, name or "tensor", place, self.lines.get(written[source]))

    def tensors_read(self) -> list[Tensor]:
        """The tensors from before the trace whose elements the program has read; the plan depends on them."""
        return list({id(t): t for t, *_ in self.reads if id(t.array) not in self.created}.values())

    def scalar(self, read: Callable) -> Tensor:
        """A number that is read at each call, such as a learning rate."""
        return self.state(host_array(read(), "float64"), read=read)

    def draw(self, generator):
        """(State with the key and the first counter, which is read at each call; offset of this draw, an attr)."""
        if generator not in self.draws:
            entry = self.draws[generator] = [0, None]
            entry[1] = self.state(host_array((0, 0), "int64"), read=lambda: next_draw(generator, entry[0]))
        entry = self.draws[generator]
        entry[0] += 1
        return entry[1], entry[0] - 1

    def tensor_of(self, x) -> Tensor:
        return x if isinstance(x, Tensor) else as_tensor(x)

    def constant(self, array: Array, device: Device = cpu) -> Tensor:
        """A tensor made during the trace. Passes and kernels assume that its elements never change."""
        array = constant_on(array, device)
        self.created[id(array)] = array
        return Tensor(array, spec_of(array).replace(device=device))

    def isolated(self, x: Tensor, i: int, leaf: Source) -> Tensor:
        """A copy of the symbol x as a leaf: its Value is already one. Its array may be strided."""
        twin = self.symbol(None, x.spec, x._value, True)
        twin._alias, twin._version_counter = x._alias, x._version_counter
        return twin

    # ---- the interface to autograd and functionalize -------------------------------------------------------------

    def leaf(self, value: Value) -> Tensor | None:
        return self.leaves.get(value)

    def restore(self, node: Node, slot: int, saved) -> Tensor:
        """The saved tensor of a slot: the Value itself, since nothing is overwritten in a graph."""
        value = node.inputs[slot] if slot >= 0 else Value(node, ~slot, node.out_specs[~slot])
        value = self.current(value) if self.untracked or self.data_values else value
        if self.gathers_again and (gather := value.node).op is boxing and isinstance(gather.inputs[0].node, Source):
            part = gather.inputs[0]
            value = MODE.get().run(boxing, (self.symbol(None, part.spec, part, False),), gather.attrs)._value
        return self.symbol(None, value.spec, value, bool(slot < 0 or node.needs >> slot & 1))

    def current(self, value: Value, data: bool = False) -> Value:
        """The Value that has replaced a saved one when backward runs. As in eager mode, the tape sees neither writes
        through `.data` nor writes to a storage saved through it.  data: True if `value` was saved through `.data`.
        """
        data = data or value in self.data_values
        writes = self.writes if data else self.untracked
        while value in writes:
            value = writes[value]
        node = value.node
        if node.op.is_view and len(node.inputs) == 1 and (now := self.current(node.inputs[0], data)) != node.inputs[0]:
            return self.run(node.op, (self.symbol(None, now.spec, now, False),), node.attrs)._value
        return value

    def revive(self, node: Node | None, entry: tuple) -> Tensor:
        tensor, output = entry
        if output is None:
            return tensor
        return self.symbol(None, node.out_specs[output], Value(node, output, node.out_specs[output]))

    def bind(self, op: Op, outs: list, tensors: list, ctx, flags: list, written: dict) -> list:
        """Record the node of a Function, which returns the results of `forward` and has the user's gradient."""
        positions = {id(out): i for i, out in enumerate(outs)}
        ctx.saved = tuple([(t, positions.get(id(t))) if isinstance(t, Tensor) else t for t in ctx.saved])
        needs = sum([1 << len(outs) + i for i, t in enumerate(tensors) if t._needs]) if self.grad else 0
        specs = tuple([out.spec for out in outs])
        node = Node(op, [t._value for t in (*outs, *tensors)], {"ctx": ctx}, specs, needs, (), self.scope, caller(3))
        node.origin, node.number = self.origin, len(self.graph.nodes)
        self.graph.nodes.append(node)
        if self.watch is not None:
            self.watch.added(node)
        results = [
            self.symbol(None, v.spec, v, bool(needs) and v.spec.differentiable and flag)
            for v, flag in zip(outputs_of(node), flags)
        ]
        for i, target in written.items():
            results[i] = write_into(target, results[i])
        return results

    def separate(self, root: Tensor, by_no_grad: bool) -> Tensor:
        """A tensor that shares the storage of `root` but has a separate history."""
        twin = self.symbol(None, root.spec, None, False)
        twin._version_counter = root._version_counter
        self.make_separate(twin, root, None if by_no_grad else ())
        twin._value = twin._alias.bound
        return twin

    def make_separate(self, result: Tensor, root: Tensor, path: tuple | None = ()) -> None:
        """Let `result` share the storage of `root`, with a separate history."""
        storage = root._alias.base if root._alias is not None else root
        result._alias = Alias(storage, path, storage._value)

    def refresh_separate(self, twin: Tensor) -> None:
        """Update a tensor with a separate history after writes to its storage; its gradients ignore the writes."""
        storage = twin._alias.base
        if storage._value is not twin._alias.bound:
            if twin._alias.path is None and self.grad and storage._needs:
                refuse_outdated_view(twin)
            twin._alias = twin._alias._replace(bound=storage._value)
            numbers = self.off_tape(storage)
            if is_untracked(twin):
                numbers = self.as_data(self.run(detach, (numbers,), {}))
            self.rebind(twin, numbers, False)

    def off_tape(self, tensor: Tensor) -> Tensor:
        """A tensor with the same Value, outside the tape."""
        return self.symbol(None, tensor.spec, tensor._value, False)

    def as_data(self, tensor: Tensor) -> Tensor:
        """Mark a detached tensor as the result of `.data`, and return it."""
        self.data_values.add(tensor._value)
        return tensor

    def set_derived_value(self, tensor: Tensor, fresh: Tensor) -> None:
        """Give a view its newly derived Value; a view that is itself a leaf stays one."""
        if tensor._needs and not fresh._needs and self.leaves.get(tensor._value) is tensor:
            self.rebind(tensor, fresh, False)
        else:
            if tensor._needs and not fresh._needs and tensor._alias.base._has_leaf_views:
                fail(
                    TraceError,
                    "a view of a leaf that is itself a view is used after its storage was written: "
                    "its gradient would be lost",
                    "x[0].clone().requires_grad_() has a storage of its own",
                    view=tensor,
                )
            before, tensor._value, tensor._needs = tensor._value, fresh._value, fresh._needs
            if tensor._retains is not None:
                move_retain_hook(tensor, before)

    def write(self, target, root, path, new) -> None:
        """Rebind the root and, if that has a separate history, the symbol of its storage."""
        storage = root._alias.base if root._alias is not None else root
        if "_refuse_write" in vars(storage):  # it is a copy of elements of another tensor
            storage._refuse_write()
        before = storage._value
        if path:  # its cheapest row may have another distribution
            new = boxed_like(self.run(view_write, (root, new), {"path": path}), root.spec, current_context().rank)
        self.rebind(root, new if path else contiguous(new), self.grad)
        if storage is not root:
            self.rebind(storage, self.off_tape(root), False)
            root._alias = root._alias._replace(bound=storage._value)
        self.writes[before] = storage._value
        if is_untracked(root):
            self.untracked[before] = storage._value
            if not root._needs:
                root._value = self.as_data(self.run(detach, (self.off_tape(storage),), {}))._value
        else:
            self.forget_untracked(before)

    def forget_untracked(self, value: Value) -> None:
        """Forget replacements of `value` after a tracked write: eager mode then refuses a backward that saved it or an
        earlier Value, and a graph computes the gradient at the saved elements.
        """
        replaced = {value}
        while before := {saved for saved, now in self.untracked.items() if now in replaced}:
            replaced |= before
            for saved in before:
                del self.untracked[saved]

    def rebind(self, root: Tensor, changed: Tensor, recorded: bool) -> None:
        """Give `root` the Value of `changed`. Only the rebinding of a State is an update of the graph."""
        if root._value.node.op is INPUT:
            warn(
                "an input of a graph is written in place: the graph writes its own copy, "
                "eager would change the caller's tensor",
                "x = x.clone() first, which is the same in both",
                input=root,
            )
        if (recorded and changed._needs) or self.leaves.get(root._value) is not root:
            if root._needs and not recorded:
                changed = self.replace(grad=True).run(unrecorded, (changed, root), {})
            before, root._value, root._needs = root._value, changed._value, changed._needs and (recorded or root._needs)
            self.lines[root._value] = caller()
            if root._retains is not None:
                move_retain_hook(root, before)
            return
        # a leaf needs a Value of its own, at which backward ends
        if changed._value in self.leaves or changed._value.node.needs:
            changed = clone(changed)
        self.grad_keys[changed._value], self.lines[changed._value] = self.grad_key(root._value), caller()
        root._value = changed._value
        self.leaves[root._value] = root

    def grad_key(self, value: Value) -> Value:
        return self.grad_keys.get(value, value)

    def update(self, op: Op, targets, inputs, attrs) -> None:
        """Record the update rule of an optimizer: new values of its targets."""
        results = self.run(op, inputs, attrs)
        for target, new in zip(targets, results if op.many else [results]):
            write_into(target, new)

    def updates(self) -> dict[Source, Value]:
        """State -> new Value, for rebound symbols and for buffers that were bound to another tensor."""
        return {v.node: s._value for v, s in self.leaves.items() if v.node.op is STATE and s._value != v} | self.bound

    # ---- buffers that are assigned -------------------------------------------------------------------------------

    def before_bind(self, buffers: dict, name: str) -> None:
        self.rebound.setdefault((id(buffers), name), (buffers, name, buffers[name]))

    def restore_buffers(self) -> list[tuple[dict, str, Tensor, Tensor]]:
        """Bind each buffer to its first tensor again; return (dict, name, first tensor, assigned tensor) for each."""
        given = [(buffers, name, old, buffers[name]) for buffers, name, old in self.rebound.values()]
        for buffers, name, old in self.rebound.values():
            buffers[name] = old
        self.rebound.clear()
        return [row for row in given if row[2] is not row[3]]

    def update_buffers(
        self, alone: Callable[[Tensor], bool] = lambda tensor: True
    ) -> list[tuple[dict, str, Source, bool]]:
        """Turn the assignment to each buffer into an update of the graph; return (dict, name, State, alone) for each.

        alone(tensor): True if no other tensor of the program shares the storage of a buffer's first tensor. Otherwise
        the State is a new one, since the program also reads the old storage.
        """
        states, rows = [], self.restore_buffers()
        leaves = reversed(self.leaves.items()) if rows else ()
        sources = {id(s): v.node for v, s in leaves if isinstance(v.node, Source)}
        for buffers, name, old, new in rows:
            if old.array is None or id(old.array) in self.created:
                what = f"the buffer {name!r} is registered and assigned in one build"
                fail(TraceError, what, "register_buffer in __init__", buffer=old)
            if single := alone(old):
                symbol = self.resolve(old)
                value: Any = symbol._value
                source = sources.get(id(symbol), value.node)  # the default for a symbol that was made just now
                if value.node is not source:
                    what = f"the buffer {name!r} is written in place and then assigned in one build"
                    fail(TraceError, what, f"assign only: {name} = {name} + 1 instead of {name}.add_(1)", buffer=old)
            else:
                source = Source(STATE, old.spec, array=empty(old.spec), name=name)
                self.graph.states.append(source)
            self.bound[source] = contiguous(self.resolve(new))._value
            states.append((buffers, name, source, single))
        return states


def stale_read_error(tensor: Tensor, verb: str, name: str, place: str, written: Any) -> TraceError:
    """The error for reading elements, while a graph is built, that the graph writes."""
    what = (
        f"{verb}() reads the elements of a tensor that the graph writes: they are read once, while it is built, "
        "and would be the same at each call"
    )
    values = {name: describe(tensor), "written": f"at {where_text(written)}" if written else "by the optimizer"}
    return TraceError(
        what,
        values=values,
        where=place,
        hint="compute with the tensor itself (x * n, flow.where(cond, a, b)); or read it before or after the call",
    )


def trace(function: Callable, inputs: Sequence[Tensor]) -> tuple[Graph, Trace]:
    """Trace `function(*inputs)`, which returns a tensor or a sequence of tensors; return its Graph and the Trace."""
    mode = Trace()
    with using(mode):
        outputs = function(*[mode.symbol_of_input(x.spec, f"input_{i}") for i, x in enumerate(inputs)])
        outputs = [mode.resolve(x) for x in (outputs if isinstance(outputs, list | tuple) else [outputs])]
        mode.update_buffers()
    for x in outputs:
        if x._value is None:
            raise TraceError("an output was not made by this trace", values={"output": describe(x)})
    graph = mode.graph
    graph.outputs, graph.updates = [x._value for x in outputs], mode.updates()
    return graph.verify(), mode


def infer_decomposed(self: Mode, op: Op, specs: Sequence, attrs: dict) -> Any:
    """`Mode.infer_decomposed`. A Python number, of which only the type is known, is taken for 1."""
    trace = Trace()
    with using(trace):
        inputs = [x(1) if isinstance(x, type) else trace.symbol_of_input(x) for x in specs]
        outs = [t.spec for t in run_decomposition(op, inputs, attrs)]
    return tuple(outs) if op.many else outs[0]


@functools.lru_cache(1_000)
def gradient_paths(op: Op, inputs: tuple, attrs: tuple) -> list[int]:
    """For each output of a composite op, the bit mask of the inputs that its decomposition gives a gradient.

    inputs: Specs, and numbers.  attrs: (name, value) pairs.
    """
    trace, reached = Trace(), dict[Value, int]()
    with using(trace.replace(grad=True)):
        symbols = [trace.symbol_of_input(x) if isinstance(x, Spec) else x for x in inputs]
        for i, x in enumerate(symbols):
            if isinstance(x, Tensor):
                x._needs, reached[x._value] = x.spec.differentiable, 1 << i
        outs = run_decomposition(op, symbols, dict(attrs))
    for node in trace.graph.nodes:
        sources = [reached.get(x, 0) for i, x in enumerate(node.inputs) if node.needs >> i & 1]
        reached.update(dict.fromkeys(outputs_of(node), functools.reduce(operator.or_, sources, 0)))
    return [reached[x._value] if x._needs else 0 for x in outs]


Mode.infer_decomposed = infer_decomposed  # type: ignore[method-assign]  # a mode cannot import this module
