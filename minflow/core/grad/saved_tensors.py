"""`autograd.graph`: hooks on the tensors that the tape saves for backward, on several gradients, and edges of the tape.

Inside `saved_tensors_hooks` the mode is a subclass of the current one: after each op it replaces what the new node has
saved by a PackedTensors, from which backward and the views read as from the usual list.
Read next: `../eager.py`, which saves tensors; `hooks.py`, hooks on gradients.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..autograd import at_end_of_backward
from ..base.errors import GradError, OutOfRangeError, ShapeError, with_article
from ..base.interrupts import ContextVarScope
from ..functionalize import bump_version, version_counter_of
from ..ir import InnerTape, Node as TapeNode, Value
from ..messages.printing import GradFn
from ..messages.suggestions import missing_names
from ..mode import MODE, Mode, using
from ..source_location import caller, fail
from ..spec import Spec
from ..tensor import Tensor, new_tensor
from .hooks import Handle, check_callable, refuse

Node = GradFn  # PyTorch's name of the class of `tensor.grad_fn`


class PackedTensors:
    """The saved tensors of a node, each in the form that the pack hook returned.

    entries: the argument of the unpack hook and the rest of the saved form; None for a slot without a tensor.
    """

    def __init__(self, entries: Sequence, specs: Sequence, hooks: tuple[Callable, Callable]):
        self.pack, self.unpack = hooks
        with using(MODE.get().replace(grad=False)):
            self.entries = [
                self.packed(entry, spec) if isinstance(entry, tuple) else entry for entry, spec in zip(entries, specs)
            ]

    def packed(self, entry: tuple, spec: Spec) -> tuple:
        array, counter, _, *rest = entry
        tensor = new_tensor(array, spec)
        tensor._version_counter = counter
        return self.pack(tensor), spec, counter, rest

    def __getitem__(self, i: int) -> Any:
        if not isinstance(self.entries[i], tuple):
            return self.entries[i]
        packed, spec, counter, rest = self.entries[i]
        with using(mode := MODE.get().replace(grad=False)):
            tensor = self.unpack(packed)
            if not isinstance(tensor, Tensor):
                what = f"must return the tensor that the pack hook got, got {with_article(tensor)}"
                refuse(GradError, self.unpack, what, "return what belongs to the argument", {"packed": repr(packed)})
            tensor = mode.resolve(tensor)
        if tensor.spec is not spec:
            refuse(
                ShapeError,
                self.unpack,
                "must return a tensor of the shape, dtype and device that the pack hook got",
                "return packed.to(device), or packed.reshape(shape)",
                {"saved": str(spec), "returned": str(tensor.spec)},
            )
        return tensor.array, counter, counter.version, *rest

    def __iter__(self) -> Iterator:
        return map(self.__getitem__, range(len(self.entries)))

    def __len__(self) -> int:
        return len(self.entries)


class Packing:
    """A mode that packs what new nodes save; a base class beside the mode that runs the ops."""

    saved_hooks: tuple[Callable, Callable]

    def run(self, op: Any, inputs: Sequence, attrs: Any) -> Any:
        result = super().run(op, inputs, attrs)  # type: ignore[misc]  # of the mode
        for tensor in result if op.many else (result,):
            if tensor._needs and tensor._value.node.op is op:
                self.pack(tensor._value.node)
        return result

    def bind(self, op: Any, outs: list, tensors: list, ctx: Any, flags: list, written: dict) -> list:
        results = super().bind(op, outs, tensors, ctx, flags, written)  # type: ignore[misc]
        specs = [
            None if not isinstance(entry, tuple) else outs[x].spec if isinstance(x := entry[3], int) else spec_of(x)
            for entry in ctx.saved
        ]
        ctx.saved = PackedTensors(ctx.saved, specs, self.saved_hooks)
        return results

    def pack(self, node: TapeNode) -> None:
        saved = node.saved.saved if node.saved.__class__ is InnerTape else node.saved
        if not isinstance(saved, list):  # nothing, or packed
            return
        slots = node.op.saves[node.needs]
        specs = [spec_of(node.inputs[s]) if s >= 0 else node.out_specs[~s] for s in slots]
        packed = PackedTensors(saved, specs, self.saved_hooks)
        node.saved = InnerTape(node.saved.outputs, packed) if node.saved.__class__ is InnerTape else packed


def spec_of(x: Any) -> Any:
    return x.spec if isinstance(x, Value) else x


@functools.cache
def packing_class(kind: Any) -> type:
    return kind if issubclass(kind, Packing) else type(f"Packing{kind.__name__}", (Packing, kind), {})


class saved_tensors_hooks(ContextVarScope):
    """Context in which every tensor that is saved for backward is stored as `pack_hook(tensor)`; backward calls
    `unpack_hook` with that object, and needs a tensor of the same elements back.

    The hooks may move tensors to another device or to a file. They run without gradients; a write to the saved tensor
    is no longer noticed. Not in a graph or job, whose plan decides which arrays to keep.
    """

    variable = MODE

    def __init__(self, pack_hook: Callable, unpack_hook: Callable):
        super().__init__()
        check_callable(pack_hook, "pack(tensor)")
        check_callable(unpack_hook, "unpack(packed)")
        self.hooks = pack_hook, unpack_hook

    def value(self) -> Mode:
        mode: Any = MODE.get()
        if mode.saved_hooks_error is not None:
            raise GradError(mode.saved_hooks_error)
        if mode.trace is not None:
            what = "hooks on saved tensors while a graph is built, in which no tensor is saved: its plan keeps arrays"
            fail(GradError, what, "config.activation_checkpointing, or the hooks around eager code")
        inner = mode.replace(saved_hooks=self.hooks)
        inner.__class__ = packing_class(mode.__class__)
        return inner


class save_on_cpu(saved_tensors_hooks):
    """Context that keeps tensors saved for backward on the CPU, and moves them back to their device for backward.

    pin_memory: True to copy them to pinned memory.  device_type: accepted without effect.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        def pack(tensor: Tensor) -> tuple:
            moved = tensor.cpu()
            return tensor.device, moved.pin_memory() if pin_memory and moved is not tensor else moved

        super().__init__(pack, lambda packed: packed[1].to(packed[0]))


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Context in which tensors saved for backward are copied, so that they may be written in place afterwards."""

    def __init__(self) -> None:
        super().__init__(lambda tensor: tensor.clone(), lambda packed: packed)


class disable_saved_tensors_hooks(ContextVarScope):
    """Context that refuses `saved_tensors_hooks` with this message."""

    variable = MODE

    def __init__(self, error_message: str):
        super().__init__()
        self.error_message = error_message

    def value(self) -> Mode:
        return MODE.get().replace(saved_hooks_error=self.error_message)


class GradientEdge(NamedTuple):
    """An edge of the tape: the node that computed a tensor, and which of its outputs that is."""

    node: GradFn
    output_nr: int


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of the tape to which the gradient of a tensor flows."""
    own = MODE.get().resolve(tensor)
    if not own._needs:
        what = "get_gradient_edge of a tensor that does not require grad"
        fail(GradError, what, "x.requires_grad_() first", tensor=tensor)
    return GradientEdge(GradFn(own._value.node), own._value.index)


def increment_version(tensor: Any) -> None:
    """Count a write to a tensor, or to each of several, as if it had been written in place."""
    for x in [tensor] if isinstance(tensor, Tensor) else tensor:
        version_counter_of(x)
        bump_version(x, caller(2))


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable, *, mode: str = "all") -> Handle:
    """Call `fn` once per backward: with the list of the gradients of all tensors, None for a missing one, when they are
    known; or with mode="any", with the first of them.

    If some gradients are missing, the call is at the end of backward.
    """
    check_callable(fn, "hook(grads)" if mode == "all" else "hook(grad)")
    if mode not in ("all", "any"):
        fail(OutOfRangeError, f"register_multi_grad_hook: mode is {mode!r}", 'mode="all" or "any"')
    grads: dict[int, Tensor] = {}

    def finish() -> None:
        found = [grads.get(i) for i in range(len(tensors))]
        pending = 0 < len(grads) < len(tensors)
        grads.clear()
        if pending and mode == "all":
            fn(found)

    def receive(i: int, g: Tensor) -> None:
        if not grads:
            at_end_of_backward(finish)
            if mode == "any":
                fn(g)
        grads[i] = g
        if mode == "all" and len(grads) == len(tensors):
            fn([grads[k] for k in range(len(tensors))])

    return Handles([x.register_hook(functools.partial(receive, i)) for i, x in enumerate(tensors)])


class Handles(Handle):
    """The handles of one hook on several tensors."""

    def __init__(self, handles: Sequence[Handle]):
        super().__init__({})
        self.handles = handles

    def remove(self) -> None:
        """Unregister the hook; a second call has no effect."""
        for handle in self.handles:
            handle.remove()


__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]
__getattr__ = missing_names("flow.autograd.graph", globals())
