"""Module: a tree of layers, its parameters and buffers, and the call that enters a scope.

Tensors and submodules are kept in three dicts (`_parameters`, `_buffers`, `_modules`), which `__getattr__` reads, as
PyTorch users expect. Every write that may affect a compiled plan bumps the mutation counter. Independent of particular
layers. Read next: `state.py` (state_dict), `messages.py` (error messages), `modules/linear.py`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import partial
from inspect import Signature, signature
from types import MethodType
from typing import Any, Self

from ..core.base.display import Display
from ..core.base.errors import ModuleError, clean, shown
from ..core.base.placement import Placement, Sbp
from ..core.context import current_context
from ..core.functions.creation import empty_like
from ..core.grad.hooks import check_callable
from ..core.grad.modes import no_grad
from ..core.messages.suggestions import hint_methods, missing_names
from ..core.mode import MODE, bump_mutations
from ..core.ops.global_tensors import boxed_like
from ..core.source_location import MODULE_CALL, caller, fail, warn
from ..core.spec import Device, DType
from ..core.tensor import Tensor
from ..diagnosis.creation_site import SITE_ATTRIBUTE, CreationSite
from ..views.text.trees import outer_lines
from . import messages
from .hooks import (
    GLOBAL_HOOKS,
    REGISTRATION_HOOKS,
    SIGNATURES,
    Handle,
    HookDict,
    Hooks,
    call,
    register_module_buffer_registration_hook as register_module_buffer_registration_hook,
    register_module_forward_hook as register_module_forward_hook,
    register_module_forward_pre_hook as register_module_forward_pre_hook,
    register_module_full_backward_hook as register_module_full_backward_hook,
    register_module_full_backward_pre_hook as register_module_full_backward_pre_hook,
    register_module_module_registration_hook as register_module_module_registration_hook,
    register_module_parameter_registration_hook as register_module_parameter_registration_hook,
    registered_value,
    without_module,
)
from .loading import Writes, write
from .parameter import Buffer, Parameter
from .recursion_limit import SHOWN_LEVELS, call_deeper, is_walked, levels_below, walking
from .state import EXTRA, Incompatible, checked_writes, load_by_parts, load_own, loads_by_parts, state_of

__all__ = [
    "Module",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]
PLAIN_TYPES = (bool, int, float, str, type(None))
LEVEL: ContextVar = ContextVar("level", default=0)  # depth of the module whose repr is being written


class Constructor:
    """Signature of a module class for help(): that of `__init__`. Python 3.11.2 would show that of `__new__`."""

    def __get__(self, module: Any, cls: type) -> Signature:
        if module is not None:  # looked up in order to call the module
            raise AttributeError("__signature__")
        return signature(MethodType(cls.__init__, cls))  # type: ignore[misc]


class HooksOfKind:
    """PyTorch's attribute for the hooks of one kind, `module._forward_hooks`; assigning a dict replaces them."""

    def __init__(self, kind: str):
        self.kind = kind

    def __get__(self, module: Any, cls: type) -> Any:
        return self if module is None else getattr(module._get_hooks(), self.kind)

    def __set__(self, module: Any, hooks: Mapping) -> None:
        setattr(module._get_hooks(), self.kind, HookDict(hooks))
        module._get_hooks().used = True
        bump_mutations()


class Module(Display):
    """Base class of all layers and models.

    A subclass calls `super().__init__()` first, assigns layers, Parameters and buffers in its `__init__`, and computes
    in `forward`. Calling the module runs `forward` inside a scope named after the attribute that holds the module.
    """

    training: bool
    _version = 1  # of its entries in state_dict: a class that renames them increases it
    _repr_attributes: tuple[str, ...] = ()  # names of the attributes that the repr shows
    call_super_init = False  # True in a class whose next base class gets the arguments of super().__init__()
    _forward_hint = ""  # the hint when a class without `forward` is called; containers override it

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if args and issubclass(type(args[0]), Tensor):
            messages.check_created_before_called(cls, args)
        module = super().__new__(cls)
        module.__dict__[SITE_ATTRIBUTE] = CreationSite(caller() or ())  # 0.5 us; for the card of an error
        return module

    __signature__: Any = Constructor()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        messages.check_extensions(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            messages.too_many_arguments(self, args, kwargs)
        own: dict[str, Any] = dict(_parameters={}, _buffers={}, _modules={}, _module_hooks=None, _scope_name="")
        self.__dict__.update(training=True, _non_persistent_buffers_set=set(), **own)
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # ---- the call ---------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        if "_modules" not in own:
            messages.missing_init(self, "called")
        mode, name, hooks = MODE.get(), own["_scope_name"], own["_module_hooks"]
        watch = mode.watch
        if watch is None:
            if mode.trace is not None:
                mode.trace.modules[id(self)] = self
            scope = f"{mode.scope}.{name or type(self).__name__}" if mode.scope else name or type(self).__name__
        else:
            scope = watch.scope_of(self, mode.scope)
        if len(scope) > mode.recursion_check_len:
            return call_deeper(self, scope, args, kwargs)
        try:
            MODE.set(mode.replace(scope=scope, entered=caller()))
            if not mode.grad and own["training"] and not mode.scope and watch is None:
                messages.check_eval(self, args)
            if watch is not None:
                return watch.call(self, scope, args, kwargs)
            # `f(x)` is a Python-to-Python call; `f(*args)` goes through C: see `recursion_limit.py`
            if hooks is None and not GLOBAL_HOOKS.used and len(args) == 1 and not kwargs:
                return self.forward(args[0])
            return self._run_forward(args, kwargs)
        except TypeError as error:
            messages.check_call(self, args, kwargs, error)
            raise
        finally:
            MODE.set(mode)

    def _input_sizes(self) -> list[int] | None:
        """Sizes of its tensors, for an error's card (`diagnosis/shape_suggestions.py`); None for a user's class."""
        own = self.__dict__
        if not type(self).__module__.startswith("minflow.nn.") or own["_modules"] or own["_module_hooks"] is not None:
            return None
        tensors = [t for t in (*own["_parameters"].values(), *own["_buffers"].values()) if t is not None]
        sizes, groups = [n for t in tensors for n in t.spec.shape], own.get("groups", 1)
        return [n * groups for n in sizes] + sizes if isinstance(groups, int) and groups > 1 else sizes

    def _run_forward(self, args: tuple, kwargs: dict) -> Any:
        """Run forward with its hooks, without entering a scope."""
        if self.__dict__["_module_hooks"] is not None or GLOBAL_HOOKS.used:
            return call(self, args, kwargs)
        return self.forward(args[0]) if len(args) == 1 and not kwargs else self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output. Every subclass must define it."""
        messages.missing_forward(self, Module)

    # ---- attributes -------------------------------------------------------------------------------------------------

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if name in own.get("_computed_tensors", ()):  # see `utils/weight_norms.py`
            own["_computed_tensors"][name].assign(self, value)
        elif isinstance(value, Parameter):
            self._check_initialized(name)
            self._discard(name, keep="_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._check_initialized(name)
            self._discard(name, keep="_modules")
            self._bind_module(name, value)
        elif isinstance(value, Buffer):
            self._check_initialized(name)
            self._discard(name, keep="_buffers")
            self.register_buffer(name, value, value.persistent)
        elif name in own.get("_parameters", ()):
            if value is not None:
                messages.not_a_parameter(self, name, value)
            self.register_parameter(name, None)
        elif name in own.get("_modules", ()):
            if value is not None:
                messages.not_a_module(self, name, value)
            self._modules[name] = None
            bump_mutations()
        elif name in own.get("_buffers", ()):
            self._bind_buffer(name, value)
        else:
            if isinstance(value, Tensor):
                self._check_initialized(name)
            old = own.get(name, Module)
            if old is not value and not (type(old) is type(value) and isinstance(value, PLAIN_TYPES) and old == value):
                bump_mutations()
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for registry in ("_parameters", "_buffers", "_modules"):
            result = own.get(registry)
            if result is not None and name in result:
                return result[name]
        if name in own.get("_computed_tensors", ()):  # see `utils/weight_norms.py`
            return own["_computed_tensors"][name].weight(self)
        raise messages.no_attribute(self, name)

    def __delattr__(self, name: str) -> None:
        for registry in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(registry, ()):
                del self.__dict__[registry][name]
                self._non_persistent_buffers_set.discard(name)
                break
        else:
            if name not in self.__dict__ and not hasattr(type(self), name):
                raise messages.no_attribute(self, name)
            object.__delattr__(self, name)
        bump_mutations()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the attributes of a copy, or of a module that `flow.load` builds. A class may override it."""
        self.__dict__.update(state)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                parameter._label = name
        bump_mutations()

    def __dir__(self) -> list[str]:
        own = self.__dict__
        names = [
            name for held in ("_parameters", "_buffers", "_modules", "_computed_tensors") for name in own.get(held, ())
        ]
        return sorted({*super().__dir__(), *(n for n in names if n.isidentifier())} - {"__signature__"})

    def _check_initialized(self, name: str) -> None:
        """Raise an error if `Module.__init__` has not run yet: there are no registries to assign to."""
        if "_modules" not in self.__dict__:
            messages.missing_init(self, f"given the attribute {name!r}")

    def _discard(self, name: str, keep: str) -> None:
        """Remove `name` from every registry except `keep`."""
        own = self.__dict__
        own.pop(name, None)
        for registry in ("_parameters", "_buffers", "_modules"):
            if registry != keep:
                own[registry].pop(name, None)
        own["_non_persistent_buffers_set"].discard(name)

    def _bind_buffer(self, name: str, tensor: Any) -> None:
        """Bind a buffer to a tensor (or None); the tensor that it was bound to stays as it is.

        A graph that assigns a buffer binds a new tensor to it after each call, with the old distribution.
        """
        if tensor is not None and not isinstance(tensor, Tensor):
            messages.not_a_tensor(self, name, tensor)
        if name in self._buffers:
            old, mode = self._buffers[name], MODE.get()
            if old is tensor:
                return
            if mode.trace is not None:
                if old is not None and tensor is not None and tensor.is_global:
                    tensor = boxed_like(tensor, old.spec, current_context().rank)
                if old is None or tensor is None or old.spec is not tensor.spec:
                    messages.buffer_of_another_spec(self, name, old, tensor)
            mode.before_bind(self._buffers, name)
        self._buffers[name] = tensor
        bump_mutations()

    def _child_name(self, name: str) -> str:
        """Return the part of the scope for the submodule in attribute `name`."""
        return name

    def _rename_scope(self, name: str) -> None:
        """Set the name under which its parent holds it."""
        self.__dict__["_scope_name"] = name

    # ---- registering ------------------------------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a Parameter under `name`; None registers the name without one."""
        self._check_initialized(name)
        self._check_name(name, "_parameters", "parameter")
        if param is not None and not isinstance(param, Parameter):
            messages.not_a_parameter(self, name, param)
        if REGISTRATION_HOOKS["_parameters"] and param is not None:
            param = registered_value("_parameters", self, name, param)
        if self._parameters.get(name, Module) is not param:
            bump_mutations()
        self._parameters[name] = param
        if param is not None:
            param._label = name

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but not trained, such as a running mean. persistent: True if in state_dict."""
        self._check_initialized(name)
        self._check_name(name, "_buffers", "buffer")
        if REGISTRATION_HOOKS["_buffers"]:
            tensor = registered_value("_buffers", self, name, tensor)
        self._bind_buffer(name, tensor)
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)
        bump_mutations()

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule under `name`, which may be any string without a dot, such as `"0"`."""
        self._check_initialized(name)
        self._check_name(name, "_modules", "module")
        if module is not None and not isinstance(module, Module):
            messages.not_a_module(self, name, module)
        self._bind_module(name, module)

    register_module = add_module

    def _bind_module(self, name: str, module: Module | None) -> None:
        """Bind an attribute to a submodule, or to None."""
        if REGISTRATION_HOOKS["_modules"]:
            module = registered_value("_modules", self, name, module)
        self._modules[name] = module
        bump_mutations()
        if module is not None:
            module._rename_scope(self._child_name(name))

    def _check_name(self, name: str, registry: str, kind: str) -> None:
        """Raise a ModuleError if `name` is taken or is not a valid name of a parameter, buffer or module."""
        if not isinstance(name, str) or not name or "." in name:
            what = f"{type(self).__name__}: {name!r} cannot be the name of a {kind}"
            fail(messages.ModuleNameError, what, 'a string without dots, such as "scale"')
        own = self.__dict__
        held = name in own or any(name in own[r] for r in ("_parameters", "_buffers", "_modules"))
        # not hasattr(self, name), which would search for similar names
        if (held or hasattr(type(self), name)) and name not in own[registry]:
            what = f"{type(self).__name__} already has an attribute {name!r}"
            fail(messages.ModuleNameError, what, f"another name for the {kind}")

    # ---- walking the tree -------------------------------------------------------------------------------------------

    def named_modules(
        self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """(dotted path, module) of this module and all below it, parents first."""
        memo = set() if memo is None else memo
        stack: list[tuple[str, Module, bool]] = [(prefix, self, False)]
        above: set[Module] = set()  # without a memo, a module that contains itself is skipped here
        while stack:
            path, module, left = stack.pop()
            if left:
                above.discard(module)
            elif module not in memo and module not in above:
                if "_modules" not in module.__dict__:
                    messages.missing_init(module, "used")
                if remove_duplicate:
                    memo.add(module)
                else:
                    above.add(module)
                    stack.append((path, module, True))
                yield path, module
                dot = f"{path}." if path else ""
                children = [(name, child) for name, child in reversed(module._modules.items()) if child is not None]
                stack += [(dot + name, child, False) for name, child in children]

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it; each once, or with remove_duplicate=False once per place that holds it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) of the direct submodules, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def _named_tensors(
        self, registry: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield the (name, tensor) pairs of a registry, `_parameters` or `_buffers`."""
        seen: set[int] = set()
        pairs = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in pairs:
            for name, tensor in module.__dict__[registry].items():
                if tensor is None or (remove_duplicate and id(tensor) in seen):
                    continue
                seen.add(id(tensor))
                yield f"{path}.{name}" if path else name, tensor

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(dotted name, Parameter), a tied one only once. Warns about layers that a Python list or dict hides."""
        count = 0
        for count, pair in enumerate(self._named_tensors("_parameters", prefix, recurse, remove_duplicate), 1):
            yield pair  # type: ignore[misc]  # this registry holds Parameters
        if recurse:
            messages.check_hidden_layers(self, count)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The Parameters of this module and all below it, for an optimizer; see named_parameters."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """The (name, buffer) pairs of this module and, with `recurse`, of all below it."""
        return self._named_tensors("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and, with `recurse`, of all below it."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path such as `"features.0"`; `""` is this module."""
        module: Any = self
        for part in target.split(".") if target else ():
            module = getattr(module, part)
            if not isinstance(module, Module):
                raise messages.no_attribute(
                    self, target, f"{part!r} of {target!r} is a {type(module).__name__}, not a Module"
                )
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replace the module at a dotted path such as `"features.0"`. strict: True if there must be one already."""
        path, _, name = target.rpartition(".")
        holder = self.get_submodule(path)
        if not name or (strict and not isinstance(holder._modules.get(name), Module)):
            raise messages.no_attribute(holder, name or target, f"there is no module {target!r} to replace")
        if not isinstance(module, Module):
            messages.not_a_module(holder, name, module)
        setattr(holder, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The Parameter at a dotted path such as `"features.0.weight"`."""
        return self._get_tensor(target, "_parameters", "a Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path such as `"features.1.running_mean"`."""
        return self._get_tensor(target, "_buffers", "a buffer")

    def _get_tensor(self, target: str, registry: str, kind: str) -> Any:
        """The parameter or buffer at a path such as `layers.0.weight`."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        tensor = module.__dict__[registry].get(name)
        if tensor is None:
            getattr(module, name)
            raise messages.no_attribute(module, name, f"{target!r} is not {kind}")
        return tensor

    # ---- changing the whole tree ------------------------------------------------------------------------------------

    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call `fn` with every submodule, children first, then with this one."""
        stack: list[tuple[Module, bool]] = [(self, False)]
        above: set[int] = set()  # a module that contains itself is visited once
        with walking("apply", self):
            while stack:
                module, inside_done = stack.pop()
                if inside_done:
                    above.discard(id(module))
                    fn(module)
                elif module is not self and type(module).apply is not Module.apply:
                    if not is_walked("apply", module):
                        module.apply(fn)
                elif id(module) not in above:
                    above.add(id(module))
                    stack.append((module, True))
                    stack += [(child, False) for child in reversed(list(module.children()))]
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training mode: dropout is active, batch norm uses batch statistics and updates the running ones."""
        if not isinstance(mode, bool):
            what = f"train(mode) takes a bool, not {mode!r}"
            fail(ModuleError, what, "model.train() before training, model.eval() before testing")
        # a list instead of recursion: modules may be nested deeper than Python's recursion limit
        waiting: list[Module] = [self]
        visited: set[int] = set()  # a module that contains itself is visited once
        with walking("train", self):
            while waiting:
                module = waiting.pop()
                if id(module) in visited:
                    continue
                visited.add(id(module))
                if module is not self and type(module).train is not Module.train:
                    if not is_walked("train", module):
                        module.train(mode)  # call an overridden train, such as that of a frozen BatchNorm
                else:
                    module.training = mode
                    waiting += module.children()
        return self

    def eval(self) -> Self:
        """Set evaluation mode: the same as train(False)."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set requires_grad of every Parameter: `requires_grad_(False)` freezes the module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all Parameters to None, or fill them with zeros."""
        if (mode := MODE.get()).watch is not None:
            mode.watch.refuse_step(self, "zero_grad")
        for parameter in self.parameters():
            if set_to_none or parameter.grad is None:
                parameter.grad = None
            else:
                parameter.grad = parameter.grad.new_zeros(parameter.grad.shape)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace parameters, gradients and buffers by `fn` of them, as `to`, `half` and the like do.

        Parameters stay the same objects. A class may override it, to convert tensors that it holds elsewhere.
        """
        waiting: list[Module] = [self]  # a list instead of recursion, as in `train`
        seen: set[Module] = set()
        while waiting:
            module = waiting.pop()
            if module in seen:
                continue
            seen.add(module)
            if module is not self and type(module)._apply is not Module._apply:
                module._apply(fn)
                continue
            if recurse:
                waiting += reversed(list(module.children()))
            with no_grad():
                for parameter in module._parameters.values():
                    if parameter is None:
                        continue
                    grad, data = parameter.grad, parameter.data
                    new = fn(data)
                    if new is not data:
                        parameter.grad = None  # its dtype or shape changes
                        parameter.data = new
                    if grad is not None:
                        parameter.grad = fn(grad)
                for name, buffer in module._buffers.items():
                    if buffer is not None and (new := fn(buffer)) is not buffer:
                        module._buffers[name] = new
        bump_mutations()
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move to a device and/or convert floating parameters and buffers to a dtype, in place; return self.

        Called as to(device), to(dtype), to(device, dtype) or to(tensor). to(nn.graph.GraphModule) returns OneFlow's
        handle for settings of this module in graphs; to(nn.Module) returns the module.
        """
        if args and isinstance(args[0], type):
            return self if issubclass(Module, args[0]) else args[0](self)
        dtypes = [x for x in (*args, kwargs.get("dtype")) if isinstance(x, DType)]
        if dtypes and not (dtypes[0].floating or dtypes[0].is_complex):
            what = f"a module's parameters are floating; to({dtypes[0].name}) would make them integers"
            fail(ModuleError, what, "model.to(flow.float64), or x.long() for the labels")
        rest = [x for x in args if not isinstance(x, DType)]
        other = {k: v for k, v in kwargs.items() if k != "dtype"}

        def convert(t: Tensor) -> Tensor:
            if t.spec.floating or not dtypes:
                return t.to(*args, **kwargs) if t.spec.floating or not any(isinstance(x, Tensor) for x in rest) else t
            return t.to(*rest, **other) if rest or other else t

        return self._apply(convert)

    def to_global(self, placement: Placement | None = None, sbp: Any = None) -> Self:
        """Convert each parameter and buffer by `Tensor.to_global(placement, sbp)`, in place; return self. All ranks
        call it. Parameters stay the same objects.

        A local parameter is this rank's part; with `broadcast`, the elements of the first rank count.
        sbp: also a function of (state_dict, tensor), which returns the sbp of each entry of the state dict.
        """
        if not callable(sbp) or isinstance(sbp, Sbp):
            return self._apply(lambda t: t.to_global(placement, sbp))
        state = dict(self.named_parameters()) | dict(self.named_buffers())
        chosen = {id(x.array): sbp(state, t) for t in state.values() for x in (t, t.grad) if x is not None}

        def convert(t: Tensor) -> Tensor:
            new = t.to_global(placement, chosen[id(t.array)])
            chosen[id(new.array)] = chosen[id(t.array)]  # a tied parameter comes again
            return new

        return self._apply(convert)

    def to_local(self) -> Self:
        """Replace global parameters and buffers by this rank's part of each, in place; return self."""
        return self._apply(lambda t: t.to_local() if t.is_global else t)

    def float(self) -> Self:
        """Convert all floating parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.spec.floating else t)

    def double(self) -> Self:
        """Convert all floating parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.spec.floating else t)

    def half(self) -> Self:
        """Convert all floating parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.spec.floating else t)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to `dst_type`: a dtype, or its name."""
        return self._apply(lambda t: t.type(dst_type))

    def to_empty(self, *, device: Device | str | None, recurse: bool = True) -> Self:
        """Move to a device. Elements are kept, though unspecified in PyTorch; from the device meta they are
        uninitialized.
        """
        return self._apply(lambda t: empty_like(t, device=device) if t.is_meta else t.to(device), recurse)

    def share_memory(self) -> Self:
        """Call `share_memory_` on all parameters and buffers; threads of one process share all memory."""
        return self._apply(lambda t: t.share_memory_())

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: the module runs unchanged. nn.Graph compiles."""

    def bfloat16(self) -> Self:
        """Convert all floating parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.spec.floating else t)

    def cpu(self) -> Self:
        """Do nothing, since parameters and buffers are on the CPU; return the module."""
        return self.to("cpu")

    def cuda(self, device: int | str | None = None) -> Self:
        """Move parameters and buffers to a GPU. Raises DeviceError if there is none."""
        return self.to(f"cuda:{device}" if isinstance(device, int) else device or "cuda")

    # ---- state ------------------------------------------------------------------------------------------------------

    def state_dict(
        self, destination: dict | None = None, prefix: str = "", keep_vars: bool = False
    ) -> OrderedDict[str, Tensor]:
        """dotted name -> tensor, for every parameter and persistent buffer.

        The tensors share the module's storage and are outside the tape (with keep_vars they are the module's own).
        """
        entries = OrderedDict() if destination is None else destination
        if destination is None:
            entries._metadata = OrderedDict()  # type: ignore[attr-defined]
        return state_of(self, entries, prefix, keep_vars, Module.state_dict)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Put this module's own tensors and its extra state into `destination`; state_dict() calls it on each module.

        A class may override it.
        """
        for name, tensor in {**self._parameters, **self._buffers}.items():
            if tensor is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def get_extra_state(self) -> Any:
        """Return a subclass's extra data, stored in state_dict as the entry "_extra_state"."""
        messages.no_extra_state(self, "get")

    def set_extra_state(self, state: Any) -> None:
        """Restore the data that get_extra_state returned."""
        messages.no_extra_state(self, "set")

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Incompatible:
        """Copy tensors or numpy arrays into the parameters and buffers with the same names.

        With strict, missing and unexpected names are errors; a wrong shape always is. One StateError lists them all,
        and in that case nothing is copied. assign: bind the tensors of the dict themselves instead of copying.

        Weights of a PyTorch model, saved by `safetensors.torch.save_file(model.state_dict(), path)`:
        `model.load_state_dict(flow.load(path))`; from an npz file: `model.load_state_dict(np.load(path))`.
        """
        if loads_by_parts(self, Module):
            return load_by_parts(self, state_dict, strict, assign)
        writes, incompatible = checked_writes(self, state_dict, strict, assign)
        write(writes)
        return incompatible

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own tensors and its extra state; load_state_dict() calls it on each module.

        A class may override it. Entries that do not fit are added to the three lists.
        """
        load_own(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs, Module)

    def _checked_state(self, state_dict: Mapping[str, Any], strict: bool = True) -> Writes | None:
        """Return the writes that loading would perform; see `loading.py`.

        None if they are known only during loading, because hooks or overridden methods take part.
        """
        return None if loads_by_parts(self, Module) else checked_writes(self, state_dict, strict, False)[0]

    # ---- hooks ------------------------------------------------------------------------------------------------------

    _forward_pre_hooks, _forward_hooks = HooksOfKind("before"), HooksOfKind("after")
    _backward_pre_hooks, _backward_hooks = HooksOfKind("backward_before"), HooksOfKind("backward_after")
    _state_dict_pre_hooks, _state_dict_hooks = HooksOfKind("state_before"), HooksOfKind("state_after")
    _load_state_dict_pre_hooks = HooksOfKind("load_before")
    _load_state_dict_post_hooks = HooksOfKind("load_after")

    def _get_hooks(self) -> Hooks:
        """The hooks of this module, created on first use."""
        if self.__dict__.get("_module_hooks") is None:
            self._check_initialized("hook")
            self.__dict__["_module_hooks"] = Hooks()
            bump_mutations()
        return self.__dict__["_module_hooks"]

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False) -> Handle:
        """Register `hook(module, args)` before forward; a value that it returns replaces args.

        with_kwargs: `hook(module, args, kwargs)`.
        """
        return self._get_hooks().add("before", hook, prepend, with_kwargs)

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """Register `hook(module, args, output)` after forward; a value that it returns replaces the output.

        always_call: call it even if forward raised an error, with None as the output.
        """
        return self._get_hooks().add("after", hook, prepend, with_kwargs, always_call)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """Register `hook(module, grad_output)` before the module's backward; its return value replaces grad_output."""
        return self._get_hooks().add("backward_before", hook, prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> Handle:
        """Register `hook(module, grad_input, grad_output)`, called when the gradients of the module's inputs are known.

        A value that it returns replaces grad_input. Both are tuples, with None for an entry that is not a tensor; in
        grad_input a tensor that does not require a gradient has zeros, and all entries are None if none does.
        """
        return self._get_hooks().add("backward_after", hook, prepend)

    def register_backward_hook(self, hook: Callable) -> Handle:
        """The old name of register_full_backward_hook."""
        new = "register_full_backward_hook"
        warn(f"register_backward_hook is the old name of {new}", f"module.{new}(hook)")
        return self.register_full_backward_hook(hook)

    def register_state_dict_pre_hook(self, hook: Callable) -> Handle:
        """Register `hook(module, prefix, keep_vars)` before this module's part of state_dict() is made."""
        return self._get_hooks().add("state_before", hook, False)

    def register_state_dict_post_hook(self, hook: Callable) -> Handle:
        """Register `hook(module, state_dict, prefix, local_metadata)`, called after this module's part of state_dict().

        It may change the dict, and must return None.
        """
        return self._get_hooks().add("state_after", hook, False)

    def _register_state_dict_hook(self, hook: Callable) -> Handle:
        """Old form of register_state_dict_post_hook: a dict that the hook returns replaces state_dict's."""
        return self._get_hooks().add("state_after", hook, False, True)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> Handle:
        """Register a hook before this module is loaded.

        `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)` may change
        the dict, a copy with the entries of this module and those below it, and add to the three lists; a string in
        error_msgs makes loading fail.
        """
        return self._get_hooks().add("load_before", hook, False)

    def _register_load_state_dict_pre_hook(self, hook: Callable, with_module: bool = False) -> Handle:
        """The older form of register_load_state_dict_pre_hook; with_module: the hook gets the module first."""
        check_callable(hook, SIGNATURES["load_before"], ModuleError)
        return self._get_hooks().add("load_before", hook if with_module else partial(without_module, hook), False)

    def register_load_state_dict_post_hook(self, hook: Callable) -> Handle:
        """Register `hook(module, incompatible_keys)` after this module and those below it were loaded.

        It may change the two lists of names before strict checks them, and must return None.
        """
        return self._get_hooks().add("load_after", hook, False)

    # ---- text -------------------------------------------------------------------------------------------------------

    def _get_name(self) -> str:
        """The name of the class in the repr."""
        return type(self).__name__

    def extra_repr(self) -> str:
        """The text between the brackets in the repr of this module."""
        return ", ".join([f"{name}={getattr(self, name)}" for name in self._repr_attributes])

    def _repr_rows(self) -> Iterable[tuple[str, str]]:
        """(name, text) of the rows that the repr lists under this module."""
        return [(name, shown(module)) for name, module in self.__dict__.get("_modules", {}).items()]

    def __repr__(self) -> str:
        level, title = LEVEL.get(), clean(self._get_name())
        if is_walked("repr", self):
            return f"{title}(... itself)"
        if level >= SHOWN_LEVELS and (below := levels_below(self)):
            return f"{title}(... {below:,} more level{'s' * (below > 1)} inside)"
        extra = extra_text(self)
        lines = [clean(line) for line in extra.split("\n")] if extra else []
        token = LEVEL.set(level + 1)
        try:
            with walking("repr", self):
                rows = [f"({clean(name)}): {text}".replace("\n", "\n  ") for name, text in self._repr_rows()]
        finally:
            LEVEL.reset(token)
        if not rows and len(lines) <= 1:
            return f"{title}({''.join(lines)})"
        body = "".join(f"\n  {line}" for line in [*lines, *rows])
        text = f"{title}({body}\n)"
        return text if level else outer_lines(text)


# help() shows no arguments, which only a class with `call_super_init` passes on
Module.__init__.__signature__ = signature(lambda self: None)  # type: ignore[attr-defined]


def extra_text(module: Module) -> str:
    """Return the module's extra_repr, or the error that it raised: the repr of a module never raises."""
    return shown(module, lambda it: it.extra_repr(), "extra_repr")


hint_methods(Module, "add_module register_module register_buffer register_parameter train to load_state_dict".split())
MODULE_CALL.append(Module.__call__.__code__)  # the search for the learner's line ends here
__getattr__ = missing_names("flow.nn.modules.module", globals())
del globals()["__dir__"]  # otherwise completion would offer this function in flow.nn
