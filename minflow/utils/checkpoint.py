"""Activation checkpointing: recompute the intermediate results of a function in backward instead of saving them.

Source: Chen et al. 2016, "Training deep nets with sublinear memory cost" (arXiv:1604.06174).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import autograd
from ..core.autograd import as_tuple
from ..core.base.errors import GradError
from ..core.grad.function import Function
from ..core.grad.modes import enable_grad
from ..core.ir import Value, toposort
from ..core.messages.suggestions import missing_names
from ..core.mode import MODE
from ..core.random import get_rng_state, set_rng_state
from ..core.source_location import fail
from ..core.tensor import Tensor


def checkpoint(
    function: Callable,
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Any = None,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call function(*args, **kwargs) and save only its inputs: backward runs it again.

    preserve_rng_state: draw the same random numbers again.  The other options are accepted and ignored.
    The function runs twice, so its side effects (counting, printing) happen twice. In a graph it runs once; there,
    use `config.activation_checkpointing`.
    """
    mode = MODE.get()
    if not callable(function):
        what = f"checkpoint: the first argument is a {type(function).__name__}, not a function or module"
        fail(GradError, what, "checkpoint(layer, x)", function=function)
    if mode.trace is not None or not mode.grad:
        return function(*args, **kwargs)
    again = CheckpointedCall(function, args, kwargs, preserve_rng_state)
    inputs = [x for x in args if isinstance(x, Tensor)]
    with enable_grad():
        result = again.run([x.detach().requires_grad_(x.requires_grad) for x in inputs])
    outs = as_tuple(result)
    if not all(isinstance(out, Tensor) for out in outs):
        fail(GradError, "checkpoint: the function must return tensors", "return a tensor or a tuple", result=result)
    leaves = used_parameters(outs, {id(x) for x in again.inputs})
    again.inputs = []
    kept = Checkpoint.apply(again, tuple([out.detach() for out in outs]), *inputs, *leaves)
    return kept if isinstance(result, tuple) else list(kept) if isinstance(result, list) else kept[0]


def used_parameters(outs: tuple, own: set[int]) -> list[Tensor]:
    """Return the leaves that require a gradient and are not inputs: the parameters that the function used."""
    mode, found = MODE.get(), {}
    for node in toposort([out._value.node for out in outs if out.requires_grad]):
        for i, value in enumerate(node.inputs):
            if value.__class__ is Value and node.needs >> i & 1 and not value.node.needs:
                leaf = mode.leaf(value)
                if leaf is not None and id(leaf) not in own:
                    found[id(leaf)] = leaf
    return list(found.values())


class CheckpointedCall:
    """One checkpointed call: everything needed to run it again."""

    def __init__(self, function: Callable, args: tuple, kwargs: dict, preserve: bool):
        self.function, self.kwargs = function, kwargs
        self.args = [None if isinstance(x, Tensor) else x for x in args]
        self.places = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        self.state = get_rng_state() if preserve else None
        self.inputs: list[Tensor] = []

    def run(self, inputs: list[Tensor]) -> Any:
        self.inputs, args = inputs, list(self.args)
        for place, x in zip(self.places, inputs):
            args[place] = x
        return self.function(*args, **self.kwargs)


class Checkpoint(Function):
    """Autograd function whose backward runs the checkpointed function again."""

    @staticmethod
    def forward(ctx: Any, again: CheckpointedCall, outs: tuple, *tensors: Tensor) -> tuple:
        ctx.again = again
        ctx.save_for_backward(*tensors)
        ctx.set_materialize_grads(False)
        for out in outs:
            if not out.spec.floating:
                ctx.mark_non_differentiable(out)
        return outs

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple:
        again, tensors, keep = ctx.again, ctx.saved_tensors, MODE.get().grad
        count = len(again.places)
        inputs = [x if keep else x.detach().requires_grad_(x.requires_grad) for x in tensors[:count]]
        now = get_rng_state()
        if again.state is not None:
            set_rng_state(again.state)
        try:
            with enable_grad():
                outs = as_tuple(again.run(inputs))
        finally:
            again.inputs = []
            if again.state is not None:
                set_rng_state(now)
        sources = [*inputs, *tensors[count:]]
        wanted = [i for i, x in enumerate(sources) if x.requires_grad]
        roots = [(out, g) for out, g in zip(outs, grads) if g is not None and out.requires_grad]
        results: list = [None] * len(sources)
        if roots and wanted:
            outer = sources if keep else sources[count:]  # the outer backward runs their hooks
            found = autograd.gradients(
                [out for out, _ in roots],
                [sources[i] for i in wanted],
                [g for _, g in roots],
                create_graph=keep,
                allow_unused=True,
                quiet=[x for x in outer if x.requires_grad],
            )
            for i, g in zip(wanted, found):
                results[i] = g
        return None, None, *results


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Run functions (a Sequential, or a list) in sequence. All but the last of `segments` parts are checkpointed."""
    listed = list(functions.children()) if hasattr(functions, "children") else list(functions)
    if not isinstance(segments, int) or not 1 <= segments <= len(listed):
        what = f"checkpoint_sequential: {segments} segments of {len(listed)} functions"
        fail(GradError, what, "at least 1, and at most one for each function", segments=segments)
    size = len(listed) // segments

    def part(first: int, last: int) -> Callable:
        def run(x: Any) -> Any:
            for function in listed[first:last]:
                x = function(x)
            return x

        return run

    end = size * (segments - 1)
    for first in range(0, end, size):
        input = checkpoint(part(first, first + size), input, preserve_rng_state=preserve_rng_state)
    return part(end, len(listed))(input)


__all__ = ["checkpoint", "checkpoint_sequential"]


def get_device_states(*args: Any) -> tuple[list, list]:
    """Return two empty lists: all devices share one generator, whose state is `flow.get_rng_state()`."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Do nothing: the counterpart of get_device_states."""


__getattr__ = missing_names("flow.utils.checkpoint", globals())
del globals()["__dir__"]  # otherwise completion would list imported names
