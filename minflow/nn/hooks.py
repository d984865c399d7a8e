"""Hooks: functions that run around a module's forward and backward.

Forward hooks are plain calls. Backward hooks hang on two gates, identities through which all inputs and outputs pass:
the backward of a gate sees all their gradients at once. Read next: `../core/grad/function.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..core.autograd import Handle as Removable
from ..core.base.errors import ModuleError
from ..core.grad.function import Function
from ..core.grad.modes import is_grad_enabled
from ..core.mode import touch
from ..core.tensor import Tensor
from ..core.where import fail


class Handle(Removable):
    """What registering a hook returns: `handle.remove()`, or `with handle:`, takes the hook away again."""

    def remove(self) -> None:
        super().remove()
        touch()


class Hooks:
    """The hooks of one module, in the order in which they run. Each entry: (hook, with_kwargs, always_call)."""

    def __init__(self) -> None:
        self.before, self.after = OrderedDict(), OrderedDict()
        self.backward_before, self.backward_after = OrderedDict(), OrderedDict()
        self.state_before, self.state_after = OrderedDict(), OrderedDict()
        self.load_before, self.load_after = OrderedDict(), OrderedDict()

    def add(
        self, kind: str, hook: Callable, prepend: bool, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        if not callable(hook):
            fail(
                ModuleError,
                f"a hook is a function, not a {type(hook).__name__}",
                "def hook(module, args, output): ...",
                hook=hook,
            )
        hooks = getattr(self, kind)
        handle = Handle(hooks)
        hooks[handle.number] = hook, with_kwargs, always_call
        if prepend:
            hooks.move_to_end(handle.number, last=False)
        touch()
        return handle

    def call(self, module: Any, args: tuple, kwargs: dict) -> Any:
        """forward, with everything that hangs around it."""
        done: set[int] = set()
        try:
            for hook, with_kwargs, _ in list(self.before.values()):
                changed = hook(module, args, kwargs) if with_kwargs else hook(module, args)
                if changed is not None and with_kwargs:
                    args, kwargs = self.pair(changed)
                elif changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
            gates = Gates(module, self) if (self.backward_before or self.backward_after) and is_grad_enabled() else None
            if gates:
                args = gates.enter(args)
            alone = len(args) == 1 and not kwargs  # a call that stays in Python: see `nesting.py`
            output = module.forward(args[0]) if alone else module.forward(*args, **kwargs)
            for key, (hook, with_kwargs, _) in list(self.after.items()):
                done.add(key)
                changed = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
                output = output if changed is None else changed
            return gates.leave(output) if gates else output
        except Exception:
            for key, (hook, with_kwargs, always) in list(self.after.items()):
                if always and key not in done:
                    hook(module, args, kwargs, None) if with_kwargs else hook(module, args, None)
            raise

    def each(self, kind: str, *args: Any) -> None:
        """Call the hooks of state_dict and load_state_dict."""
        for hook, *_ in list(getattr(self, kind).values()):
            hook(*args)

    def pair(self, changed: Any) -> tuple[tuple, dict]:
        if not isinstance(changed, tuple) or len(changed) != 2:
            fail(
                ModuleError,
                "a forward pre-hook with with_kwargs=True returns (args, kwargs) or None",
                "return args, kwargs",
                returned=changed,
            )
        return changed


class Gate(Function):
    """The identity on several tensors; in backward all their gradients pass through `gate` together."""

    @staticmethod
    def forward(ctx, gate: Callable, *tensors: Tensor):
        ctx.gate = gate
        same = tuple(t.clone() for t in tensors)
        return same if len(same) > 1 else same[0]

    @staticmethod
    def backward(ctx, *grads):
        return None, *ctx.gate(grads)


class Gates:
    """The two gates of one call. grad_output passes the first in backward, grad_input the second."""

    def __init__(self, module: Any, hooks: Hooks):
        self.module, self.hooks = module, hooks
        self.grad_output: tuple = ()
        self.entered = False

    def enter(self, args: tuple) -> tuple:
        wanted = [i for i, x in enumerate(args) if isinstance(x, Tensor) and x.requires_grad]
        if not wanted or not self.hooks.backward_after:
            return args

        def gate(grads: tuple) -> tuple:
            full: list = [None] * len(args)
            for i, g in zip(wanted, grads):
                full[i] = g
            full = self.after(tuple(full))
            return tuple(full[i] for i in wanted)

        passed = Gate.apply(gate, *[args[i] for i in wanted])
        changed = list(args)
        for i, x in zip(wanted, passed if len(wanted) > 1 else (passed,)):
            changed[i] = x
        self.entered = True
        return tuple(changed)

    def leave(self, output: Any) -> Any:
        outputs = output if type(output) in (tuple, list) else (output,)
        wanted = [i for i, x in enumerate(outputs) if isinstance(x, Tensor) and x.requires_grad]
        if not wanted:
            return output

        def gate(grads: tuple) -> tuple:
            full: list = [None] * len(outputs)
            for i, g in zip(wanted, grads):
                full[i] = g
            full = self.before(tuple(full))
            if not self.entered:
                self.after((None,))
            return tuple(full[i] for i in wanted)

        passed = Gate.apply(gate, *[outputs[i] for i in wanted])
        changed = list(outputs)
        for i, x in zip(wanted, passed if len(wanted) > 1 else (passed,)):
            changed[i] = x
        return type(output)(changed) if type(output) in (tuple, list) else changed[0]

    def before(self, grad_output: tuple) -> tuple:
        for hook, *_ in list(self.hooks.backward_before.values()):
            grad_output = self.replaced(hook(self.module, grad_output), grad_output)
        self.grad_output = grad_output
        return grad_output

    def after(self, grad_input: tuple) -> tuple:
        for hook, *_ in list(self.hooks.backward_after.values()):
            grad_input = self.replaced(hook(self.module, grad_input, self.grad_output), grad_input)
        return grad_input

    def replaced(self, changed: Any, old: tuple) -> tuple:
        if changed is None:
            return old
        changed = changed if isinstance(changed, tuple) else (changed,)
        if len(changed) != len(old):
            fail(
                ModuleError,
                f"a backward hook returned {len(changed)} gradients for {len(old)}",
                "return a tuple of as many, or None",
            )
        return changed
