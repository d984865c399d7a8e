"""Hooks of tensors and of nodes: functions that backward calls with gradients, and that may replace them.

`Node.hooks` maps an output index to the hooks of that output, AFTER to those of a leaf whose `.grad` was just
accumulated, and INPUTS and OUTPUTS to those of the node itself. A leaf keeps the dict (`Tensor._hooks`), so that its
hooks survive a change of its dtype or of requires_grad. A trace copies the hooks of the tensors that it meets and
records what they compute. Read next: `../autograd.py`, which runs them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from ..base.errors import DTypeError, GradError, MinflowError, ShapeError, with_article
from ..ir import AFTER, INPUTS, OUTPUTS, RETAIN, Node, Source, Value, file_name, hooks_at
from ..mode import MODE, bump_mutations
from ..source_location import describe, fail, here


class Handle:
    """The handle of a registered hook: `remove()` or the end of a `with` block unregisters it."""

    count = 0

    def __init__(self, hooks: dict):
        Handle.count += 1
        self.hooks, self.number = hooks, Handle.count

    id = property(lambda self: self.number, doc="The key of the hook in its dict, as PyTorch calls it.")

    def remove(self) -> None:
        """Unregister the hook; a second call has no effect."""
        if self.hooks.pop(self.number, None) is not None:
            bump_mutations()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


def check_callable(hook: Any, call: str, kind: type[MinflowError] = GradError) -> None:
    """Raise an error for a hook that cannot be called. call: an example of the call, such as `hook(grad)`."""
    if not callable(hook):
        fail(kind, f"a hook must be a function, got {with_article(hook)}", f"def {call}: ...", hook=hook)


def add_hook(hooks: dict, hook: Callable, call: str) -> Handle:
    check_callable(hook, call)
    handle = Handle(hooks)
    hooks[handle.number] = hook
    return handle


def hook_on(tensor, hook: Callable) -> Handle:
    """Run `hook(grad)` when the gradient of `tensor` is known; the tensor that it returns, if any, replaces it."""
    mode = MODE.get()
    own = mode.resolve(tensor)
    if not own._needs:
        what = "register_hook on a tensor that does not require grad"
        fail(GradError, what, "x.requires_grad_() first", tensor=tensor)
    value = mode.grad_key(own._value)
    return as_handle(tensor, own, value, add_hook(hooks_at(value.node, value.index), hook, "hook(grad)"))


def post_accumulate_on(tensor, hook: Callable) -> Handle:
    """Run `hook(tensor)` after a backward has added to `tensor.grad`."""
    mode = MODE.get()
    own = mode.resolve(tensor)
    if not own._needs:
        what = "register_post_accumulate_grad_hook on a tensor that does not require grad"
        fail(GradError, what, "x.requires_grad_() first", tensor=tensor)
    if not own.is_leaf:
        what = "register_post_accumulate_grad_hook on a computed tensor, which accumulates no .grad"
        fail(GradError, what, "x.register_hook(hook), which gets the gradient", tensor=tensor)
    if mode.trace is not None and mode.watch is None:
        what = "register_post_accumulate_grad_hook while a job is built, whose variables have no .grad"
        fail(GradError, what, "x.register_hook(hook), which gets the gradient", tensor=tensor)
    value = mode.grad_key(own._value)
    return as_handle(tensor, own, value, add_hook(hooks_at(value.node, AFTER), hook, "hook(parameter)"))


def hook_on_node(node: Node, kind: str, hook: Callable, call: str) -> Handle:
    """Run `hook` before (OUTPUTS) or after (INPUTS) the gradients of a node are computed."""
    if not node.needs:
        hint = "x.register_hook(hook) of the leaf itself, or x.register_post_accumulate_grad_hook(hook)"
        fail(GradError, "a hook on the node of a leaf, which computes no gradients", hint, node=node)
    return add_hook(hooks_at(node, kind), hook, call)


def as_handle(tensor, own, value: Value, handle: Handle) -> Handle:
    """The handle of a hook on `tensor`, after telling plans and the trace about it."""
    if isinstance(value.node, Source):
        if own.array is not None:
            own._hooks = value.node.hooks
            bump_mutations()
        elif tensor.array is not None:
            MODE.get().trace.hooked.append((handle, tensor))
    return handle


def hooks_known(tensor) -> dict | None:
    """A copy of the hooks of a concrete tensor, for its symbol in a trace. None if there are none."""
    value = tensor._value
    if value is None or not value.node.hooks:
        return None
    own = {number: hook for number, hook in value.node.hooks.get(value.index, {}).items() if number < RETAIN}
    after = {number: with_tensor(hook, tensor) for number, hook in value.node.hooks.get(AFTER, {}).items()}
    return {0: own, AFTER: after}


def with_tensor(hook: Callable, tensor) -> Callable:
    """Wrap a hook so that it is called with the tensor of the program; backward passes the symbol of that tensor."""

    @functools.wraps(hook)
    def call(symbol):
        return hook(tensor)

    return call


def functions_on(tensor) -> tuple:
    """(hook, kind) for the hooks of a concrete tensor, in order; they are part of the plan key."""
    value = tensor._value
    if value is None or not value.node.hooks:
        return ()
    kinds = [(kind, value.node.hooks.get(kind, {})) for kind in (value.index, AFTER)]
    return tuple([(hook, kind) for kind, hooks in kinds for number, hook in hooks.items() if number < RETAIN])


# ---- running -----------------------------------------------------------------------------------------------------


def run_hooks(value: Value, grads: dict) -> None:
    """Pass the gradient of a Value through the hooks of the tensor, in the order of their registration."""
    for _, hook in sorted(value.node.hooks.get(value.index, {}).items()):
        g = grads.get(value)
        if g is None:
            break
        if (new := hook(g)) is not None:
            grads[value] = check_replacement(hook, new, g, "a tensor, or None to keep the gradient")


def run_after(hooks: Mapping, leaf) -> None:
    """Run the hooks of a leaf whose `.grad` was accumulated."""
    for _, hook in sorted(hooks.get(AFTER, {}).items()):
        if (new := hook(leaf)) is not None:
            hint = "set p.grad inside the hook, or change it in place"
            refuse(GradError, hook, f"must return None, got {with_article(new)}", hint, {"returned": describe(new)})


def run_before_node(node: Node, gs: list) -> list:
    """Run the prehooks of a node; return the gradients of its outputs, perhaps replaced."""
    for _, hook in sorted(node.hooks.get(OUTPUTS, {}).items()):
        gs = replaced_gradients(hook, hook(tuple(gs)), gs)
    return gs


def run_after_node(node: Node, gs: list, gradients: list) -> list:
    """Run the hooks of a node on (grad_inputs, grad_outputs); return (input index, gradient), perhaps replaced."""
    first = len(node.out_specs) if node.op.custom_backward is not None else 0  # the results of forward come first
    places = [i for i, x in enumerate(node.inputs) if hasattr(x, "spec") or hasattr(x, "dtype")][first:]
    known = dict(gradients)
    for _, hook in sorted(node.hooks.get(INPUTS, {}).items()):
        old = [known.get(i) for i in places]
        known = dict(zip(places, replaced_gradients(hook, hook(tuple(old), tuple(gs)), old)))
    return list(known.items())


def replaced_gradients(hook: Callable, new: Any, old: list | tuple, noun: str = "gradient") -> list | tuple:
    """The gradients that a hook returned in place of `old`; None keeps them all."""
    if new is None:
        return old
    if not isinstance(new, tuple | list):
        new = (new,)
    if len(new) != len(old):
        what = f"must return {len(old)} {noun}{'s' * (len(old) != 1)}, got {len(new)}"
        hint = "a tuple with one for each, or None to keep them all"
        refuse(GradError, hook, what, hint, {"returned": describe(new)})
    return [
        y
        if y is None or (x is None and hasattr(y, "spec"))
        else check_replacement(hook, y, x, "tensors, or None for no gradient")
        for x, y in zip(old, new)
    ]


def check_replacement(hook: Callable, new: Any, old, wanted: str):
    """The tensor that a hook returned in place of `old`: it must have the same shape and dtype."""
    if not hasattr(new, "spec"):
        what = f"must return {wanted}, got {with_article(new)}"
        refuse(GradError, hook, what, "return grad * 0.5", {"returned": describe(new), "gradient": describe(old)})
    new = MODE.get().resolve(new)
    if old is None or new.spec is old.spec:
        return new
    size, kind = new.spec.shape != old.spec.shape, new.dtype is not old.dtype
    if size or kind:
        refuse(
            ShapeError if size else DTypeError,
            hook,
            f"changed the {'shape' if size else 'dtype'} of the gradient",
            "grad.expand(...) or grad.sum(...)" if size else f"return new.to(flow.{old.dtype.name})",
            {"gradient": str(old.spec), "returned": str(new.spec)},
        )
    return new


def refuse(kind: type[MinflowError], hook: Callable, what: str, hint: str, values: dict[str, str]) -> NoReturn:
    name, place = name_of(hook)
    raise kind(f"the hook {name} {what}", values={**values, "hook": f"{name}{place}"}, where=here(), hint=hint)


def name_of(hook: Callable) -> tuple[str, str]:
    """The name of a hook, and " at file:line" if it is written in Python."""
    hook = getattr(hook, "__wrapped__", hook)
    function = getattr(hook, "__func__", getattr(hook, "func", hook))
    code = getattr(function, "__code__", None)
    place = f" at {file_name(code.co_filename)}:{code.co_firstlineno}" if code is not None else ""
    return getattr(function, "__name__", type(hook).__name__), place
