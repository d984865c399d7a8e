"""Errors and warnings about a Module that is defined or used incorrectly.

Each function finds the cause, and raises (or returns) the error that names it. Only `module.py` imports this module;
modules are recognized by their attributes, so that it needs none of their classes. Read next: `state.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

from ..core.backend import backend_of_array, to_host
from ..core.base.errors import CallError, MinflowError, ModuleError, StateError, TraceError
from ..core.context import PerContext
from ..core.messages.suggestions import did_you_mean, nearest, signature_error
from ..core.messages.unsupported import reason
from ..core.messages.wrong_arguments import Unquoted
from ..core.mode import MODE, mutation_counter
from ..core.source_location import NOTICES, fail, here, warn
from ..core.tensor import Tensor
from ..diagnosis.name_suggestions import similar_names

FORWARD_LIKE = (
    "Forward",
    "foward",
    "forwad",
    "fowrard",
    "forwards",
    "_forward",
    "build",
    "call",
    "__forward__",
    "predict",
)


class ModuleAttributeError(ModuleError, AttributeError):
    """An attribute that a Module does not have."""


class ModuleNameError(ModuleError, KeyError):
    """A name that a parameter, buffer or submodule cannot have."""


def missing_init(module: Any, what: str) -> NoReturn:
    name = type(module).__name__
    fail(
        ModuleError,
        f"{name} was {what} before Module's own __init__ had run, so there is no place for layers and parameters",
        f"super().__init__() as the first line of {name}.__init__",
    )


def too_many_arguments(module: Any, args: tuple, kwargs: dict) -> NoReturn:
    name = type(module).__name__
    what = f"{name}: Module's own __init__ takes no arguments"
    hint = f"super().__init__() in {name}.__init__; call_super_init = True in the class passes them to its next base"
    fail(CallError, what, hint, args=args, **kwargs)


def buffer_of_another_spec(module: Any, name: str, old: Any, value: Any) -> NoReturn:
    given = "None" if value is None else "a tensor where it was None" if old is None else "another shape or dtype"
    what = f"{type(module).__name__}: the buffer {name!r} is given {given} while a graph is built"
    hint = "in a graph a buffer keeps its shape and dtype: register it with those that it will have"
    fail(TraceError, what, hint, buffer=old, given=value)


UNSUPPORTED_OVERRIDES = {  # names that PyTorch's Module looks up in a class, and ours does not
    "_call_impl": "def forward(self, x): ...; or def __call__(self, *args): ... around super().__call__(*args)",
    "_wrapped_call_impl": "def __call__(self, *args): ... around super().__call__(*args)",
    "_slow_forward": "def forward(self, x): ...",
    "_named_members": "named_parameters and named_buffers",
    "_replicate_for_data_parallel": "leave it out: one process holds one copy of a module",
}


def check_extensions(cls: type) -> None:
    """Refuse a class that defines a name that has no effect here."""
    for name, hint in UNSUPPORTED_OVERRIDES.items():
        if name in vars(cls):
            fail(ModuleError, f"{cls.__name__} defines {name}, which has no effect here", hint, defined=vars(cls)[name])


def no_extra_state(module: Any, verb: str) -> NoReturn:
    name, other = type(module).__name__, {"get": "set", "set": "get"}[verb]
    hint = f"def {verb}_extra_state(self{', state' if verb == 'set' else ''}): ... beside {other}_extra_state"
    fail(StateError, f"{name} has no {verb}_extra_state, and one of state_dict and load_state_dict needs it", hint)


def missing_forward(module: Any, base: type) -> NoReturn:
    """Raise the error for calling a module without `forward`, and name the method that was probably meant."""
    name = type(module).__name__
    if module._forward_hint:
        fail(ModuleError, f"{name} holds modules and is not called itself", module._forward_hint)
    own = [
        n
        for kind in type(module).__mro__
        if kind not in base.__mro__
        for n, v in vars(kind).items()
        if inspect.isfunction(v)
    ]
    meant = [n for n in own if n in FORWARD_LIKE] or similar_names("forward", own, 1, 0.7)
    if meant:
        method = getattr(type(module), meant[0])
        arguments = ", ".join(list(inspect.signature(method).parameters)[1:])
        fail(
            ModuleError,
            f"{name} has no method forward, "
            f"but one called {meant[0]} (line {method.__code__.co_firstlineno} of its source)",
            f"rename it: def forward(self, {arguments})",
        )
    what = f"{name} has no method forward, so it cannot be called"
    fail(ModuleError, what, f"def forward(self, x): ... inside class {name}, at the indentation of __init__")


def check_call(module: Any, args: tuple, kwargs: dict, error: TypeError) -> None:
    """Raise an error about the signature of `forward`, unless the call fits it and `error` was raised inside."""
    if not isinstance(error, MinflowError):
        better = signature_error(module.forward, args, kwargs, f"{type(module).__name__}.forward", error)
        if better is not None:
            raise better from None


# model -> its last call under no_grad: ((number of calls of backward(), line), some elements of its input)
last_no_grad_call: PerContext[WeakKeyDictionary] = PerContext(WeakKeyDictionary)
MODE_DEPENDENT = ("Dropout", "BatchNorm")  # layers that behave differently in training


def check_eval(model: Any, args: tuple) -> None:
    """Warn about a model that is called under no_grad in training mode: an evaluation without eval().

    Reported at the second such call in a row from one line, with different inputs and without a backward in between. A
    generator that makes the examples of a step is thus not reported, nor is one example repeated to show the effect of
    dropout.
    """
    if (
        not NOTICES.on
        or not mutation_counter.backwards
        or not model._modules
        or not args
        or not isinstance(args[0], Tensor)
    ):
        return
    if not any(p._has_optimizer for p in model.parameters()):
        return  # it is not being trained
    array = args[0].array
    last = last_no_grad_call()
    if array is None or not array.size or not isinstance(last.get(model, ()), tuple):
        return
    some = backend_of_array(array).copy(array.reshape(-1)[:: max(1, array.size // 64)])
    now = (mutation_counter.backwards, MODE.get().entered), some
    before, last[model] = last.get(model), now
    if before is None or before[0] != now[0]:
        return
    if to_host(before[1]).tobytes() == to_host(some).tobytes():
        last[model] = "again"  # intentional
        return
    layers = [(n, m) for n, m in model.named_modules() if m.training and type(m).__name__.startswith(MODE_DEPENDENT)]
    layers = [(n, m) for n, m in layers if vars(m).get("p", 1) and vars(m).get("track_running_stats", True)]
    acting = [f"{n} ({type(m).__name__})" for n, m in layers]
    last[model] = "reported"
    if acting:
        what = "batch norm uses the statistics of the batch, and updates its own"
        what = "dropout drops elements" if "Dropout" in acting[0] else what
        warn(
            f"{type(model).__name__} is called under no_grad in training mode: {what}",
            "model.eval() before an evaluation, and model.train() after it",
            **{"acting": Unquoted(", ".join(acting[:3]) + ", ..." * (len(acting) > 3))},
        )


def no_attribute(module: Any, name: str, what: str = "") -> ModuleAttributeError:
    """The AttributeError for `module.name`, with the nearest existing name."""
    kind = type(module).__name__
    if name[:2] == "__" or (name[:1] == "_" and "_modules" in module.__dict__):
        return ModuleAttributeError(f"{kind!r} object has no attribute {name!r}")
    if "_modules" not in module.__dict__:
        return ModuleAttributeError(
            what or f"{kind} has no attribute {name!r}, and Module's own __init__ has not run",
            where=here(),
            hint=f"super().__init__() as the first line of {kind}.__init__",
        )
    known = [n for n in dir(module) if n[:1] != "_"]
    hint = reason(f"nn.Module.{name}") or did_you_mean(nearest(name, known) or similar_names(name, known, 3, 0.7))
    if not hint:
        held = [*module._modules, *module._parameters, *module._buffers]
        hint = f"it holds {', '.join(held[:12])}" if held else ""
    return ModuleAttributeError(what or f"{kind} has no attribute {name!r}", where=here(), hint=hint)


def not_a_module(owner: Any, name: str, value: Any) -> NoReturn:
    kind = type(owner).__name__
    if isinstance(value, type):
        what = f"{kind}: entry {name!r} must be a module, got the class {value.__name__}"
        fail(ModuleError, what, f"nn.{value.__name__}() with parentheses (and its arguments, if it takes any)")
    if isinstance(value, list | tuple) and any(hasattr(x, "_modules") for x in value):
        what = f"{kind}: entry {name!r} must be one module, got a {type(value).__name__} of modules"
        fail(ModuleError, what, "unpack the list: nn.Sequential(*layers)")
    if callable(value):
        label = getattr(value, "__name__", type(value).__name__)
        what = f"{kind}: entry {name!r} must be a module, got the function {label}"
        fail(ModuleError, what, f"the layer of that name, such as nn.ReLU() for F.relu, or call {label} in forward")
    hint = "a layer such as nn.Linear(4, 2); del it first to use the name for something else"
    fail(ModuleError, f"{kind}: entry {name!r} must be a module, got a {type(value).__name__}", hint, value=value)


def not_a_parameter(owner: Any, name: str, value: Any) -> NoReturn:
    what = f"{type(owner).__name__}.{name} is a parameter and cannot become a {type(value).__name__}"
    hint = f"nn.Parameter(...) for a new one, or to change its elements: with flow.no_grad(): module.{name}.copy_(...)"
    fail(ModuleError, what, hint, value=value)


def not_a_tensor(owner: Any, name: str, value: Any) -> NoReturn:
    what = f"{type(owner).__name__}.{name} is a buffer, which holds a tensor, not a {type(value).__name__}"
    fail(ModuleError, what, "flow.tensor(...) around the value", value=value)


def check_created_before_called(cls: type[Any], args: tuple) -> None:
    """Refuse a call of a layer's class with a tensor: `nn.ReLU(x)`, or `self.act = nn.ReLU` and then `self.act(x)`."""
    if not cls.__module__.startswith(__package__):
        return
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    first = parameters[0].name if parameters else ""
    if first in ("parameters", "modules") or (first == "weight" and len(args) == 1):
        return
    if parameters and parameters[0].annotation == "float" and not args[0].spec.ndim:
        return  # a 0-d tensor in place of a number
    needed = [p for p in parameters if p.default is p.empty]
    created = f"nn.{cls.__name__}({'...' if any(p.kind is p.POSITIONAL_OR_KEYWORD for p in needed) else ''})"
    forward = inspect.signature(cls.forward).parameters.values()
    inputs = ", ".join([p.name for p in forward if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD][1:])
    inputs = "logits, labels" if inputs == "input, target" else "x" if inputs in ("input", "") else inputs
    what = f"the class nn.{cls.__name__} was called with a tensor: a layer is created first, and called after that"
    hint = f"{created}({inputs}); or self.layer = {created} in __init__, and self.layer({inputs}) in forward"
    fail(ModuleError, what, hint, argument=args[0])


def hidden_layers(module: Any) -> list[tuple[str, str, list]]:
    """(attribute, "list" or "dict", its layers) of Python containers, whose layers are not registered."""
    known = {id(m) for m in module.modules()}
    containers = []
    for path, part in module.named_modules():
        for name, value in part.__dict__.items():
            if name[:1] == "_" or not isinstance(value, list | tuple | dict) or not value:
                continue
            items = value.values() if isinstance(value, Mapping) else value
            hidden = [x for x in items if hasattr(x, "named_parameters") and id(x) not in known and has_parameters(x)]
            if hidden:
                label = f"{path}.{name}" if path else name
                containers.append((label, type(value).__name__, hidden))
    return containers


def holds_containers(module: Any) -> bool:
    """True if a Python container of any module holds a module. Cheap, since each step may call parameters()."""
    stack, seen = [module], set()
    while stack:
        part = stack.pop()
        if part is None or part in seen:
            continue
        seen.add(part)
        own = part.__dict__
        for name, value in own.items():
            kind = value.__class__
            if (kind is list or kind is dict or kind is tuple) and value and name[0] != "_":
                for item in value.values() if kind is dict else value:
                    if hasattr(item, "named_parameters"):
                        return True
        stack += own["_modules"].values()
    return False


def has_parameters(module: Any) -> bool:
    return not isinstance(module, type) and any(m._parameters for m in module.modules())


def check_hidden_layers(module: Any, listed: int) -> None:
    """Warn if parameters() misses layers in Python containers. listed: number of parameters that it gave."""
    hidden = hidden_layers(module) if holds_containers(module) else None
    if not hidden:
        return
    name, container, layers = hidden[0]
    container_class = "ModuleDict" if container == "dict" else "ModuleList"
    kinds = ", ".join(dict.fromkeys(type(x).__name__ for x in layers))
    what = f"self.{name} is a Python {container}, in which layers are not seen: {len(layers)} of {kinds}"
    hint = f"self.{name} = nn.{container_class}(...) around the {container}"
    effect = "leaves layers out" if listed else "gives nothing"
    warn(
        f"{type(module).__name__}: parameters() {effect}: {what}",
        f"{hint}; a name with a leading underscore keeps a container out of this check",
    )
