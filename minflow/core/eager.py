"""Eager mode: run the kernel now, and put a Node on the tape if an input needs a gradient.

`run` is the hot path of the engine: a small add costs about as much as in PyTorch. To keep it so, three helpers are
inlined in it by hand: `read_inputs` for two tensors, `new_tensor`, and `record` for one output. A call costs 3 to 5 %.
Read next: `autograd.py`, which follows the tape backward.
"""

from __future__ import annotations

from typing import Any

from .autograd import run_decomposition, run_global
from .backend import Array, backend_of, empty
from .base.errors import GradError
from .context import current_context, world
from .dispatch import refuse_input, refuse_symbolic
from .functionalize import (
    Alias,
    before_write,
    bump_version,
    make_view,
    move_retain_hook,
    new_alias,
    refresh,
    refuse_outdated_view,
    save,
    version_counter_of,
    write_into,
)
from .functions.creation import as_tensor
from .functions.sparse import as_sparse
from .grad.composites import run_composite
from .grad.replay import Log, Recorder, replay
from .host import HostArray, HostScalar, host_array
from .host.float_warnings import silent
from .infer import GLOBAL, INFER_CACHE_LIMIT, check_memory, infer
from .ir import NUMBERS, Node, Source, Value, VersionCounter, new_value, where_text
from .kernels import CALLS, DECOMPOSED, ON_CHANGE, launch
from .launch_all import launch_all
from .memory import MIN_CHECKED_BYTES
from .mode import DEFAULT, Mode, using
from .op import Op
from .ops.elementwise import add
from .ops.global_tensors import boxed_like
from .ops.shape import reshape, run_in_dtype, view_write
from .overrides import overrides, with_class
from .sharding import GlobalCall, coordinates, local_spec
from .source_location import caller
from .spec import Device, Spec, cpu, spec_of
from .tensor import Tensor, blank, new_tensor

REAL_NUMBERS = NUMBERS.keys() - {complex}  # types of literals that leave the dtype of a floating tensor unchanged
VIEW_CACHE: dict = {}  # (view op, spec, attr) -> (output spec, specialized kernel, entry of the view path); bounded
ON_CHANGE.append(VIEW_CACHE.clear)


def read_inputs(mode: Eager, op: Op, inputs):
    """Read the inputs of an op: any number of tensors and Python numbers. The loop is unrolled for the frequent cases.

    Returns (inputs, with arrays of numpy converted to tensors; their arrays and numbers; their specs and types of
    numbers, or () if `infer` has to find them; the spec that all tensors have, or None; True if one is a view; a bit
    mask of the inputs that need a gradient; what a Node stores of them if one does).
    """
    if len(inputs) == 1 and isinstance(x := inputs[0], Tensor):
        if strided := x._alias is not None:
            refresh(x)
        return inputs, (x.array,), x.spec.as_tuple, x.spec, strided, x._needs | 0, [x._value]
    if len(inputs) == 2:
        x, y = inputs
        if y.__class__ in REAL_NUMBERS and isinstance(x, Tensor):
            if strided := x._alias is not None:
                refresh(x)
            return inputs, (x.array, y), (x.spec, y.__class__), x.spec, strided, x._needs | 0, [x._value, y]
        if x.__class__ in REAL_NUMBERS and isinstance(y, Tensor):
            if strided := y._alias is not None:
                refresh(y)
            return inputs, (x, y.array), (x.__class__, y.spec), y.spec, strided, y._needs << 1, [x, y._value]
    arrays, needs, bit, common, uniform, strided = [], 0, 1, None, True, False
    for x in inputs:
        if x.__class__ in REAL_NUMBERS:
            arrays.append(x)
        elif isinstance(x, Tensor):
            if x._alias is not None:
                refresh(x)
                strided = True
            if x.spec is not common:
                uniform, common = uniform and common is None, x.spec
            arrays.append(x.array)
            if x._needs:
                needs |= bit
        elif x.__class__ is complex:
            uniform = False
            arrays.append(x)
        else:
            return read_inputs(mode, op, tuple([mode.input_of(op, x) for x in inputs]))
        bit += bit
    values = [(x._value if x._needs else x.spec) if isinstance(x, Tensor) else x for x in inputs] if needs else None
    return inputs, arrays, (), common if uniform else None, strided, needs, values


def without_float_warnings(kernel, *arrays, **options):
    """Run a kernel without numpy's floating-point warnings, which would point to lines of minflow."""
    with silent():
        return kernel(*arrays, **options)


class Eager(Mode):
    """The mode of every program that is not being traced."""

    def run(self, op: Op, inputs, attrs):
        """Read the inputs, infer the specs, launch the kernel, wrap the result, and record a Node for its gradient."""
        fast = op.fast_path
        if fast is None and isinstance(inputs[0], Tensor):
            return self.view(op, inputs[0], attrs)
        if len(inputs) == 2 and isinstance(x := inputs[0], Tensor) and isinstance(y := inputs[1], Tensor):
            if strided := x._alias is not None or y._alias is not None:  # `read_inputs`, inlined for two tensors
                refresh(x), refresh(y)
            arrays, specs = (x.array, y.array), (x.spec, y.spec)
            common = x.spec if x.spec is y.spec else None
            needs = (1 if x._needs else 0) + (2 if y._needs else 0)
            values = [x._value if x._needs else x.spec, y._value if y._needs else y.spec] if needs else None
        else:
            inputs, arrays, specs, common, strided, needs, values = read_inputs(self, op, inputs)
        if fast and common is not None and common.plain >= fast and not strided:
            # one floating spec, not 0-d, so `infer` would return it; for a view, NumPy would copy its strides
            spec, ready = common, CALLS[op]
        else:
            dtype, specs, ready = infer(op, inputs, attrs, specs)
            if dtype is not None or ready is DECOMPOSED:
                return self.by_other_ops(op, inputs, values, attrs, dtype, ready if dtype is GLOBAL else specs, needs)
            for array in arrays:
                if array is None:  # symbolic; some kernels accept None; if one raises, `apply` explains the error
                    refuse_symbolic(inputs)
            spec = specs[0]
        try:
            array = launch(op, arrays, attrs, specs if op.many else (spec,)) if ready is None else ready(*arrays)
        except RuntimeWarning:  # the program turns warnings into errors, but inf and NaN are valid results
            array = without_float_warnings(launch, op, arrays, attrs, specs if op.many else (spec,))
        if op.many:
            return self.wrap_all(op, inputs, values, attrs, specs, needs, array)
        result = blank(Tensor)  # `new_tensor`, inlined
        result.array = array
        result.spec = spec = spec_of(array) if spec is None else spec  # None: the shape depends on the elements
        result._alias = result._version_counter = None
        result._needs = False
        if op.is_view:
            make_view(self, result, inputs[0], op, attrs)
        if needs and self.grad and spec.differentiable and (needs := needs & op.differentiable):
            saved = []  # `record`, inlined for one output
            for s in op.saves[needs]:
                x = inputs[s] if s >= 0 else result
                if isinstance(x, Tensor):
                    counter = x._version_counter
                    if counter is None:
                        counter = x._version_counter = VersionCounter()
                    saved.append((x.array, counter, counter.version))
                else:
                    saved.append(None)
            node = Node(op, values, attrs, spec.as_tuple, needs, saved, self.scope, self.place or caller(4))
            result._value, result._needs = new_value(Value, (node, 0, spec)), True
        return result

    def wrap_all(self, op: Op, inputs, values, attrs, specs, needs, arrays) -> list:
        """The results of an op with several outputs, with their Node."""
        results = list(map(new_tensor, arrays, specs))
        if needs and self.grad and (needs := needs & op.differentiable):
            self.record(op, inputs, values, attrs, specs, needs, results, 6)
        return results

    def by_other_ops(self, op: Op, inputs, values, attrs, dtype, specs, needs):
        """Run an op with casts of its inputs to `dtype` around it, as its decomposition, or on global tensors."""
        if dtype is GLOBAL:
            return self.on_ranks(op, inputs, attrs, specs, needs)
        if dtype is not None:
            return run_in_dtype(self, op, inputs, attrs, dtype, specs)
        return run_composite(self, op, inputs, values, attrs, specs, needs)

    def on_ranks(self, op: Op, inputs, attrs, call, needs):
        """Run an op on global tensors."""
        if call is DECOMPOSED or call.boxes:
            return run_global(self, op, inputs, attrs, call)
        return self.run_local(op, inputs, attrs, call, needs)

    def run_local(self, op: Op, inputs, attrs, call: GlobalCall, needs):
        """Run an op on the local arrays of global tensors that are distributed as it needs them."""
        refuse_symbolic(inputs)
        rank = current_context().rank
        local, specs = call.local(rank)
        arrays = [x.array if isinstance(x, Tensor) else x for x in inputs]
        if call.placement is None or coordinates(call.placement, rank) is not None:
            found = without_float_warnings(launch, op, arrays, local, specs)
            found = found if op.many else [found]
        else:
            found = [empty(spec) if spec else None for spec in specs]
        outs: Any = call.outs
        if None in outs:
            outs = self.specs_on_ranks(op, call, found)
            found = [empty(local_spec(spec, rank)) if array is None else array for spec, array in zip(outs, found)]
        results = list(map(new_tensor, found, outs))
        if op.is_view:
            make_view(self, results[0], inputs[0], op, attrs)
        elif op.distributes and found[0] is arrays[0]:
            results[0]._version_counter = version_counter_of(inputs[0])
        if needs and self.grad and (needs := needs & op.differentiable):
            values = [(x._value if x._needs else x.spec) if isinstance(x, Tensor) else x for x in inputs]
            self.record(op, inputs, values, attrs, tuple(outs), needs, results, 7)
        return results if op.many else results[0]

    def specs_on_ranks(self, op: Op, call: GlobalCall, arrays) -> list:
        """The specs of results whose shapes depend on elements, for ranks outside the placement too."""
        outs = [
            spec or (None if array is None else spec_of(array).replace(placement=call.placement, sbp=call.whole))
            for spec, array in zip(call.outs, arrays)
        ]
        comm = world()
        assert call.placement is not None
        if len(call.placement.order) == comm.size:
            return outs
        found = comm.exchange(comm.fingerprint(f"{op.name} {call.placement}"), outs)
        return found[call.placement.order[0]]

    def run_decomposed(self, op: Op, arrays, attrs):
        tensors = [x if x.__class__ in NUMBERS else new_tensor(x, spec_of(x)) for x in arrays]
        with using(self.replace(grad=False)):
            results = tuple([t.array for t in run_decomposition(op, tensors, attrs)])
        return results if op.many else results[0]

    def isolated(self, x, i: int, leaf: Source) -> Tensor:
        """A tensor on the storage of x with a tape of its own: its Value is output i of `leaf`."""
        twin = new_tensor(x.array, x.spec, new_value(Value, (leaf, i, x.spec)))
        twin._version_counter = version_counter_of(x)
        if x._alias is not None:  # its array may be strided
            base = new_tensor(x._alias.base.array, x._alias.base.spec)
            base._version_counter = twin._version_counter
            twin._alias = new_alias(Alias, (base, x._alias.path, None))
        return twin

    def view(self, op: Op, x, attrs):
        """`run` for a view op, with `make_view` inlined. The output spec and kernel are cached by spec and attr."""
        root, path, alias = x, (), x._alias
        if alias is not None and (alias := refresh(x)._alias).path:
            root, path, _ = alias
        (attr,) = attrs.values()
        known = VIEW_CACHE.get(key := (op, x.spec, attr))
        if known is None:
            dtype, specs, ready = infer(op, (x,), attrs)
            if dtype is GLOBAL:
                return self.on_ranks(op, (x,), attrs, ready, x._needs)
            (spec,) = specs
            known = spec, ready, (op, attrs)
            if op is reshape and spec.nbytes > MIN_CHECKED_BYTES:  # checked at each call: it copies an expanded tensor
                if root.spec.nbytes < spec.nbytes:
                    check_memory(op.name, spec.as_tuple)
            else:
                if len(VIEW_CACHE) >= INFER_CACHE_LIMIT:
                    VIEW_CACHE.clear()
                VIEW_CACHE[key] = known
        spec, ready, step = known
        if root._needs and not self.grad:
            root = self.separate(root, True)
        result = blank(Tensor)  # `new_tensor`, inlined
        result.array = ready(x.array)
        result.spec = spec
        result._alias = new_alias(Alias, (root, (*path, step), root._value))
        result._version_counter = x._version_counter or version_counter_of(x)
        result._needs = False
        if x._needs and self.grad:
            node = Node(op, [x._value], attrs, spec.as_tuple, 1, (), self.scope, self.place or caller(5))
            result._value, result._needs = new_value(Value, (node, 0, spec)), True
        return result

    def input_of(self, op: Op, x):
        """Convert an input to a tensor or a Python number: arrays and scalars of numpy; everything else is refused."""
        if isinstance(x, Tensor) or x.__class__ in NUMBERS:
            return x
        if isinstance(x, HostScalar):
            return x.item()
        if isinstance(x, HostArray):
            return self.tensor_of(x)
        if isinstance(x, bool | int | float | complex):  # a subclass, such as an IntEnum
            return int(x) if isinstance(x, int) else float(x) if isinstance(x, float) else complex(x)
        refuse_input(op, x)

    def record(self, op, inputs, values, attrs, specs, needs, results, depth=5):
        """Put a Node on the tape and give the results their Values."""
        slots = op.saves[needs]
        saved = slots and [save(inputs[s] if s >= 0 else results[~s]) for s in slots]
        node = Node(op, values, attrs, specs, needs, saved, self.scope, self.place or caller(depth))
        for i, t in enumerate(results):
            if t.spec.differentiable:
                t._value, t._needs = new_value(Value, (node, i, t.spec)), True

    # ---- the interface to autograd and functionalize -------------------------------------------------------------

    def resolve(self, tensor):
        """The tensor to compute with: itself, with its Value up to date."""
        return refresh(tensor)

    def leaf(self, value: Value):
        """The leaf tensor of this Value, or None."""
        return value.node.tensor() if hasattr(value.node, "tensor") else None

    def tensor_of(self, x) -> Tensor:
        """Convert an array, a number or nested lists to a tensor; a tensor is returned unchanged."""
        return x if isinstance(x, Tensor) else as_tensor(x, device=cpu)

    def constant(self, array: Array, device: Device = cpu) -> Tensor:
        """A tensor that takes ownership of an array, or of its copy on the device."""
        result = new_tensor(array, spec_of(array))
        return result if device is cpu else result.to(device)

    def replay(self, node: Node, gs) -> list | None:
        # autocast changes what rules compute; a mode that records a program must see the ops
        if self.grad or self.anomaly or self.low is not None or self.__class__ is not Eager:
            return None
        return replay(self, node, gs)

    def sum_of(self, x: Tensor, y: Tensor) -> Tensor | None:
        spec, strided = x.spec, x._alias is not None or y._alias is not None
        if spec is not y.spec or not spec.plain or strided or self.grad or self.__class__ is not Eager:
            return None
        try:
            return new_tensor(CALLS[add](x.array, y.array), spec)  # as `run` does
        except RuntimeWarning:
            return None

    def recorder(self, log: Log) -> RecordingEager:
        """This mode, which notes the kernels that run in a log."""
        mode = object.__new__(RecordingEager)
        mode.__dict__.update(self.__dict__, log=log)
        return mode

    def restore(self, node: Node, slot: int, saved: tuple | None) -> Tensor:
        """The saved tensor of a slot. Raises GradError if its storage was written after it was saved.

        saved: its saved form; None for an input that is not read.
        """
        x = node.inputs[slot] if slot >= 0 else new_value(Value, (node, ~slot, node.out_specs[~slot]))
        spec, value = (x.spec, x) if x.__class__ is Value else (x, None)
        if saved is None:  # `Op.unread`: any elements do
            return new_tensor(backend_of(spec.device).unread(spec.shape, spec.np), spec, value)
        array, counter, version = saved
        if counter.version != version:
            raise self.written_error(node, slot, array, counter)
        return new_tensor(array, spec, value)

    def written_error(self, node: Node, slot: int, array, counter) -> GradError:
        name = node.op.inputs[slot] if slot >= 0 else "its result"
        return GradError(
            f"{node.op}: backward needs {name} as it was, but it was changed in place at {where_text(counter.where)}",
            values={
                name: spec_of(array),
                "op": f"{node.op}, created at {where_text(node.where)}",
                "changed": f"at {where_text(counter.where)}",
            },
            where=f"in {node.scope.lstrip('/')}" if node.scope else "",
            hint="write x = x * 2 instead of x *= 2 there, or clone() before that line",
        )

    def revive(self, node: Node | None, entry: tuple) -> Tensor:
        """A tensor that a Function saved; entry: (array, counter, version, Value or output index or Spec, coordinates
        of a sparse tensor, class).
        """
        array, counter, version, value, coordinates, kind = entry
        if counter.version != version:
            raise self.written_error(node, ~0, array, counter)
        if isinstance(value, int) and node is not None:
            value = Value(node, value, node.out_specs[value])
        spec = value if isinstance(value, Spec) else getattr(value, "spec", None) or spec_of(array)
        found = new_tensor(array, spec, value if isinstance(value, Value) else None)
        if overrides(kind):
            return with_class(found, kind)
        return found if coordinates is None else as_sparse(found, coordinates.indices, coordinates.values)

    def bind(self, op: Op, outs: list, tensors: list, ctx, flags: list, written: dict) -> list:
        """Give the results of forward the Node of a Function. Saved results are kept as indices, to avoid a cycle.

        flags: False for a result that has no gradient.  written: index of a result -> the input that forward wrote.
        """
        needs = sum([1 << len(outs) + i for i, t in enumerate(tensors) if t._needs])
        results = []
        for out in outs:
            own = out._alias is None and not any(out is t for t in tensors)
            twin = new_tensor(out.array if own else out.array.copy(), out.spec)
            twin._version_counter = out._version_counter if own else None
            results.append(twin)
        if needs and self.grad:
            values = [out.spec for out in outs] + [t._value if t._needs else t.spec for t in tensors]
            node = Node(
                op, values, {"ctx": ctx}, tuple([t.spec for t in results]), needs, ("ctx",), self.scope, caller(3)
            )
            for i, t in enumerate(results):
                if t.spec.differentiable and flags[i]:
                    t._value, t._needs = new_value(Value, (node, i, t.spec)), True
        for i, target in written.items():
            results[i] = write_into(target, results[i])
        kept = []
        for t in ctx.saved:
            if not isinstance(t, Tensor):
                kept.append(t)
                continue
            position = next((i for i, out in enumerate(outs) if out is t), None)
            entry = *save(t), position if position is not None else t._value if t._needs else t.spec
            kept.append((*entry, t._coo if t.is_sparse else None, type(t)))
        ctx.saved = tuple(kept)
        return results

    def separate(self, root, by_no_grad: bool) -> Tensor:
        """A tensor that shares the storage of `root` but has a separate history."""
        twin = new_tensor(root.array, root.spec)
        twin._version_counter = version_counter_of(root)
        if by_no_grad:
            twin._alias = new_alias(Alias, (root, None, root._value))
        return twin

    def make_separate(self, result, root) -> None:
        """Let `result` share the storage of `root`, with a separate history."""
        result.array = root.array  # the same object, by which a trace finds the State

    def refresh_separate(self, twin) -> None:
        """Check a tensor with a separate history; its elements are up to date, since it shares the storage."""
        if self.grad and twin._alias.base._value is not twin._alias.bound:
            refuse_outdated_view(twin)

    def set_derived_value(self, tensor, fresh) -> None:
        """Give a view its newly derived Value."""
        before, tensor._value, tensor._needs = tensor._value, fresh._value, fresh._needs
        if tensor._retains is not None:
            move_retain_hook(tensor, before)

    def write(self, target, root, path, new) -> None:
        """Write the storage of `target`, and rebind the Value of its base."""
        if new.array is None or target.array is None:
            refuse_symbolic((new, target))
        before_write(target._version_counter)
        if target._copied is not None:
            with using(self.replace(grad=False)):
                whole = view_write(root, new, path=path)
            root.array[...] = boxed_like(whole, root.spec, current_context().rank).array
        target.array[...] = new.array
        bump_version(root, caller(3))
        if not self.grad:
            return
        before = root._value
        if not path:
            root._value, root._needs = (new._value, True) if new._needs else (None, False)
        elif root._needs or new._needs:
            values = [t._value if t._needs else t.spec for t in (root, new)]
            self.record(
                view_write, (), values, {"path": path}, root.spec.as_tuple, root._needs | new._needs << 1, (root,), 4
            )
        if root._retains is not None:
            move_retain_hook(root, before)

    def update(self, op: Op, targets, inputs, attrs) -> None:
        """Run the update rule of an optimizer on the storage of its targets, without new arrays."""
        arrays, rank = [t.array if isinstance(t, Tensor) else t for t in inputs], current_context().rank
        for t in targets:
            before_write(t._version_counter)
        dtype, _, call = infer(op, inputs, attrs)
        runs_here = dtype is GLOBAL and call is not DECOMPOSED and not call.boxes
        if runs_here and list(call.outs) == [t.spec for t in targets]:
            local, specs = call.local(rank)
            outs = [t.array for t in targets]
            without_float_warnings(launch, op, arrays, local, specs, outs if op.many else outs[0])
        elif dtype is None:
            without_float_warnings(
                launch,
                op,
                arrays,
                attrs,
                [t.spec for t in targets],
                [t.array for t in targets] if op.many else targets[0].array,
            )
        else:  # bfloat16, or global tensors of several distributions
            for t, new in zip(targets, self.run(op, inputs, attrs) if op.many else [self.run(op, inputs, attrs)]):
                t.array[...] = boxed_like(new, t.spec, rank).array
        where = caller(3)
        for t in targets:
            bump_version(t, where)

    def update_all(self, op: Op, calls, attrs) -> None:
        """`update` for (targets, inputs) on one device, in as few launches as possible."""
        together, joins = [], type(self).update is Eager.update  # another mode may see each call
        for targets, inputs in calls:
            if joins and infer(op, inputs, attrs)[0] is None:
                for t in targets:
                    before_write(t._version_counter)
                together.append((targets, inputs))
            else:
                self.update(op, targets, inputs, attrs)
        arrays = [[[t.array for t in tensors] for tensors in (inputs, targets)] for targets, inputs in together]
        without_float_warnings(launch_all, op, arrays, attrs)
        where = caller(3)
        for targets, _ in together:
            for t in targets:
                bump_version(t, where)

    def scalar(self, read) -> Tensor:
        """A number that may change between calls, as a 0-d float64 tensor."""
        array = host_array(read(), "float64")
        return new_tensor(array, spec_of(array))

    def draw(self, generator):
        """(int64[2] tensor with the key and counter of the next random op, offset to add to the counter)."""
        array = generator.draw(1)
        return new_tensor(array, spec_of(array)), 0


class RecordingEager(Recorder, Eager):
    """The mode in which the rules of a node run once, to be replayed for equal nodes."""


DEFAULT.__class__ = Eager  # the mode of every thread and context that has not entered another one
