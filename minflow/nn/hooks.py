"""Hooks: functions that run around a module's forward and backward, its state_dict and its load_state_dict.

Hooks of all modules are in GLOBAL_HOOKS and run first. Forward hooks are plain calls. Backward hooks use two identity
functions, one for all inputs and one for all outputs of a module: the backward of each gets all their gradients at
once.
Read next: `../core/grad/hooks.py`, `../core/grad/function.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NoReturn

from ..core.base.errors import ModuleError, StateError, with_article
from ..core.grad.function import Function
from ..core.grad.hooks import Handle, check_callable, functions_on, refuse, replaced_gradients
from ..core.grad.modes import is_grad_enabled
from ..core.mode import bump_mutations
from ..core.ops.shape import zeros_of
from ..core.source_location import describe, warn
from ..core.tensor import Tensor

RemovableHandle = Handle  # PyTorch's name, exported by `torch.utils.hooks`
SIGNATURES = {  # signature of the hooks of each kind
    "before": "hook(module, args)",
    "after": "hook(module, args, output)",
    "backward_before": "hook(module, grad_output)",
    "backward_after": "hook(module, grad_input, grad_output)",
    "state_before": "hook(module, prefix, keep_vars)",
    "state_after": "hook(module, state_dict, prefix, local_metadata)",
    "load_before": "hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, error_msgs)",
    "load_after": "hook(module, incompatible_keys)",
}
TRACED_KINDS = tuple(SIGNATURES)[:4]  # a graph records these; the others belong to state dicts
REGISTRATIONS = {  # registry of a module -> the kind of the global hooks that run at an assignment to it
    "_parameters": "parameter",
    "_buffers": "buffer",
    "_modules": "module",
}


class HookDict(OrderedDict):
    """Hooks of one kind: handle number -> function, in the order in which they run. A program may change it."""

    def __setitem__(self, number: int, hook: Callable) -> None:
        super().__setitem__(number, hook)
        bump_mutations()

    def __delitem__(self, number: int) -> None:
        super().__delitem__(number)
        bump_mutations()

    def clear(self) -> None:
        super().clear()
        bump_mutations()


class Hooks:
    """The hooks of one module.

    used: True once a hook was registered.  flags: handle number -> (with_kwargs, always_call), if one of them is True.
    """

    used = False
    before: HookDict
    after: HookDict
    backward_before: HookDict
    backward_after: HookDict

    def __init__(self) -> None:
        self.flags: dict[int, tuple[bool, bool]] = {}
        for kind in SIGNATURES:
            setattr(self, kind, HookDict())

    def add(
        self, kind: str, hook: Callable, prepend: bool, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """Add a hook as the last of its kind, or as the first with `prepend`."""
        check_callable(hook, SIGNATURES[kind], ModuleError)
        hooks, self.used = getattr(self, kind), True
        handle = Handle(hooks)
        if with_kwargs or always_call:
            self.flags[handle.number] = with_kwargs, always_call
        hooks[handle.number] = hook
        if prepend:
            hooks.move_to_end(handle.number, last=False)
        return handle

    def entries(self, kind: str) -> list[tuple[int, Callable, bool, bool]]:
        """(number, hook, with_kwargs, always_call) of the hooks of one kind, in order."""
        return [(number, hook, *self.flags.get(number, PLAIN)) for number, hook in getattr(self, kind).items()]

    def registered(self) -> list[tuple[Callable, Any]]:
        """Return (hook, registration options) of the forward and backward hooks."""
        return [(hook, (kind, *flags)) for kind in TRACED_KINDS for _, hook, *flags in self.entries(kind)]

    def call_all(self, kind: str, *args: Any) -> None:
        """Call the hooks of state_dict or load_state_dict, which change their arguments in place."""
        for hook in list(getattr(self, kind).values()):
            if (returned := hook(*args)) is not None and kind == "load_after":
                must_be_none(kind, hook, returned)


def must_be_none(kind: str, hook: Callable, returned: Any) -> NoReturn:
    """Raise StateError for a value returned by a hook of state_dict or load_state_dict."""
    hint = f"change {'the dict' if kind != 'load_after' else 'the two lists'} inside the hook"
    refuse(StateError, hook, f"must return None, got {with_article(returned)}", hint, {"returned": describe(returned)})


PLAIN = (False, False)  # the flags of most hooks
GLOBAL_HOOKS = Hooks()  # hooks registered by `register_module_forward_hook` and the like, which run for all modules
NO_HOOKS = Hooks()
REGISTRATION_HOOKS: dict[str, HookDict] = {registry: HookDict() for registry in REGISTRATIONS}


def register_module_forward_pre_hook(hook: Callable) -> Handle:
    """Register `hook(module, args)` before the forward of every module, and before its own hooks."""
    return GLOBAL_HOOKS.add("before", hook, False)


def register_module_forward_hook(hook: Callable, *, with_kwargs: bool = False, always_call: bool = False) -> Handle:
    """Register `hook(module, args, output)` after the forward of every module, and before its own hooks."""
    return GLOBAL_HOOKS.add("after", hook, False, with_kwargs, always_call)


def register_module_parameter_registration_hook(hook: Callable) -> Handle:
    """Register `hook(module, name, parameter)`, called when a module gets a parameter; it may return another one."""
    return add_registration_hook("_parameters", hook)


def register_module_buffer_registration_hook(hook: Callable) -> Handle:
    """Register `hook(module, name, buffer)`, called by register_buffer; it may return another tensor."""
    return add_registration_hook("_buffers", hook)


def register_module_module_registration_hook(hook: Callable) -> Handle:
    """Register `hook(module, name, submodule)`, called when a module gets a submodule; it may return another one."""
    return add_registration_hook("_modules", hook)


def add_registration_hook(registry: str, hook: Callable) -> Handle:
    check_callable(hook, f"hook(module, name, {REGISTRATIONS[registry]})", ModuleError)
    handle = Handle(REGISTRATION_HOOKS[registry])
    REGISTRATION_HOOKS[registry][handle.number] = hook
    return handle


def registered_value(registry: str, module: Any, name: str, value: Any) -> Any:
    """Return the value to register, after the hooks of this registry, each of which may replace it."""
    for hook in list(REGISTRATION_HOOKS[registry].values()):
        if (new := hook(module, name, value)) is not None:
            value = new
    return value


def register_module_full_backward_pre_hook(hook: Callable) -> Handle:
    """Register `hook(module, grad_output)` before the backward of every module, and before its own hooks."""
    return GLOBAL_HOOKS.add("backward_before", hook, False)


def register_module_full_backward_hook(hook: Callable) -> Handle:
    """Register `hook(module, grad_input, grad_output)` after the backward of every module, and before its own hooks."""
    return GLOBAL_HOOKS.add("backward_after", hook, False)


def hooks_of(module: Any) -> list[tuple[Callable, Any]]:
    """(hook, registration options) of a module and of its own tensors; a graph runs all of them."""
    own = module.__dict__
    registered = [] if own["_module_hooks"] is None else own["_module_hooks"].registered()
    tensors = [(n, t) for n, t in (*own["_parameters"].items(), *own["_buffers"].items()) if t is not None]
    return registered + [(hook, (name, kind)) for name, tensor in tensors for hook, kind in functions_on(tensor)]


def without_module(hook: Callable, module: Any, *rest: Any) -> Any:
    """Adapt a hook that does not take the module."""
    return hook(*rest)


def call(module: Any, args: tuple, kwargs: dict) -> Any:
    """Call the forward of a module, with its hooks."""
    own = module.__dict__["_module_hooks"] or NO_HOOKS
    done: set[int] = set()
    output = None
    try:
        for _, hook, with_kwargs, _ in [*GLOBAL_HOOKS.entries("before"), *own.entries("before")]:
            changed = hook(module, args, kwargs) if with_kwargs else hook(module, args)
            if changed is not None and with_kwargs:
                args, kwargs = check_args_kwargs(hook, changed)
            elif changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        backward = is_grad_enabled() and (
            GLOBAL_HOOKS.backward_before or GLOBAL_HOOKS.backward_after or own.backward_before or own.backward_after
        )
        backward_hooks = BackwardHooks(module, own) if backward else None
        if backward_hooks:
            args = backward_hooks.wrap_inputs(args)
        alone = len(args) == 1 and not kwargs  # such a call does not go through C: see `recursion_limit.py`
        output = module.forward(args[0]) if alone else module.forward(*args, **kwargs)
        for number, hook, with_kwargs, _ in [*GLOBAL_HOOKS.entries("after"), *own.entries("after")]:
            done.add(number)
            changed = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
            output = output if changed is None else changed
        return backward_hooks.wrap_outputs(output) if backward_hooks else output
    except Exception:
        for number, hook, with_kwargs, always in [*GLOBAL_HOOKS.entries("after"), *own.entries("after")]:
            if always and number not in done:
                try:
                    hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
                except Exception as error:  # report the error that ended forward
                    warn(f"a hook with always_call=True raised {type(error).__name__}: {error}")
        raise


def check_args_kwargs(hook: Callable, changed: Any) -> tuple[tuple, dict]:
    """(args, kwargs) returned by a forward pre-hook with with_kwargs=True."""
    if not (
        isinstance(changed, tuple)
        and len(changed) == 2
        and isinstance(changed[0], tuple)
        and isinstance(changed[1], dict)
    ):
        hint = f"must return (args, kwargs) or None, got {with_article(changed)}"
        refuse(ModuleError, hook, hint, "return args, kwargs: a tuple and a dict", {"returned": describe(changed)})
    return changed


class BackwardHookFunction(Function):
    """The identity on several tensors; in backward, all their gradients go through `run_hooks` together."""

    @staticmethod
    def forward(ctx: Any, run_hooks: Callable, *tensors: Tensor) -> Any:
        ctx.run_hooks = run_hooks
        same = tuple(t.clone() for t in tensors)
        return same if len(same) > 1 else same[0]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        return None, *ctx.run_hooks(grads)


class BackwardHooks:
    """The two identities of one call. grad_output passes the first in backward, grad_input the second."""

    def __init__(self, module: Any, hooks: Hooks):
        self.module = module
        self.before_hooks = [*GLOBAL_HOOKS.backward_before.values(), *hooks.backward_before.values()]
        self.after_hooks = [*GLOBAL_HOOKS.backward_after.values(), *hooks.backward_after.values()]
        self.grad_output: tuple = ()
        self.inputs_wrapped, self.input_count = False, 1

    def wrap_inputs(self, args: tuple) -> tuple:
        differentiable = [i for i, x in enumerate(args) if isinstance(x, Tensor) and x.requires_grad]
        self.input_count = len(args)
        if not differentiable or not self.after_hooks:
            return args

        # as in PyTorch, zeros for a tensor that does not require a gradient
        others = [(i, x.spec) for i, x in enumerate(args) if isinstance(x, Tensor) and i not in differentiable]

        def run_hooks(grads: tuple) -> tuple:
            grad_input: list = [None] * len(args)
            for i, spec in others:
                grad_input[i] = zeros_of(spec)
            for i, g in zip(differentiable, grads):
                grad_input[i] = g
            changed = self.run_post_hooks(tuple(grad_input))
            return tuple(changed[i] for i in differentiable)

        wrapped = BackwardHookFunction.apply(run_hooks, *[args[i] for i in differentiable])
        changed = list(args)
        for i, x in zip(differentiable, wrapped if len(differentiable) > 1 else (wrapped,)):
            changed[i] = x
        self.inputs_wrapped = True
        return tuple(changed)

    def wrap_outputs(self, output: Any) -> Any:
        outputs = output if type(output) in (tuple, list) else (output,)
        differentiable = [i for i, x in enumerate(outputs) if isinstance(x, Tensor) and x.requires_grad]
        if not differentiable:
            if not isinstance(output, Tensor | tuple | list):
                warn(
                    f"the backward hooks of {type(self.module).__name__} are not called: its output is "
                    + with_article(output),
                    "return a tensor or a tuple of tensors from forward",
                )
            return output

        def run_hooks(grads: tuple) -> tuple:
            grad_output: list = [None] * len(outputs)
            for i, g in zip(differentiable, grads):
                grad_output[i] = g
            changed = self.run_pre_hooks(tuple(grad_output))
            if not self.inputs_wrapped:
                self.run_post_hooks((None,) * self.input_count)
            return tuple(changed[i] for i in differentiable)

        wrapped = BackwardHookFunction.apply(run_hooks, *[outputs[i] for i in differentiable])
        changed = list(outputs)
        for i, x in zip(differentiable, wrapped if len(differentiable) > 1 else (wrapped,)):
            changed[i] = x
        return type(output)(changed) if type(output) in (tuple, list) else changed[0]

    def run_pre_hooks(self, grad_output: tuple) -> tuple:
        for hook in self.before_hooks:
            grad_output = tuple(replaced_gradients(hook, hook(self.module, grad_output), grad_output))
        self.grad_output = grad_output
        return grad_output

    def run_post_hooks(self, grad_input: tuple) -> tuple:
        for hook in self.after_hooks:
            grad_input = tuple(replaced_gradients(hook, hook(self.module, grad_input, self.grad_output), grad_input))
        return grad_input
