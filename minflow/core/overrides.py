"""`__torch_function__`: classes define the results of the functions that get their objects, as in PyTorch.

A function first refuses an object that is not a tensor, and the handler of that error calls its method, so that other
calls pay nothing. Tensors of a program's class are asked first, see `subclasses.py`, once there is such a class.
Read next: `messages/suggestions.py`, whose wrappers of public functions are these handlers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from .base.errors import DTypeError, TraceError
from .base.interrupts import ContextVarScope
from .mode import MODE
from .source_location import IS_MINFLOW_FILE, fail

METHOD = "__torch_function__"
PUBLIC: dict[str, Callable] = {}  # functions by name, since programs compare the `func` of their method with them
SUBCLASSES: list[type] = []  # not empty once a program has defined a class of tensors
PLAIN: set[type] = {int, float, bool, str, type(None)}  # classes of most arguments; and Tensor, see `subclasses.py`
ENABLED: ContextVar[bool] = ContextVar("enabled", default=True)
is_enabled = ENABLED.get  # PyTorch's `_is_torch_function_enabled`


class DisableTorchFunctionSubclass(ContextVarScope):
    """Call no `__torch_function__` in the block: tensors of all classes are plain tensors, and so are results."""

    variable = ENABLED

    def value(self) -> bool:
        return False


def disabled_torch_function_impl(func: Callable, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
    """The `__torch_function__` of classes whose tensors give plain tensors, such as `nn.Parameter`."""
    with DisableTorchFunctionSubclass():
        return func(*args, **kwargs or {})


def overrides(kind: type) -> bool:
    """True if functions call the `__torch_function__` of this class; not for Tensor and our classes of tensors."""
    method = getattr(kind, METHOD, disabled_torch_function_impl)
    return method is not disabled_torch_function_impl and getattr(kind, "_is_overridable", True)


def overriding(arguments: tuple, tensors: bool = True) -> list:
    """The arguments, also those in lists and tuples, whose method is called, in this order: one of each class, and a
    class before those that it derives from. tensors: False to leave tensors out.
    """
    found: list[Any] = []
    for argument in arguments if ENABLED.get() else ():
        if type(argument) in PLAIN:
            continue
        for x in argument if issubclass(type(argument), list | tuple) else [argument]:
            kind = type(x)
            if overrides(kind) and kind not in map(type, found) and (tensors or not hasattr(kind, "requires_grad")):
                before = [i for i, other in enumerate(found) if issubclass(kind, type(other))]
                found.insert(before[0] if before else len(found), x)
    return found


def refuse_in_graph(tensors: Sequence) -> None:
    """Raise TraceError for a tensor of a program's class, since graphs compute plain tensors."""
    for x in overriding(tuple(tensors)):
        if hasattr(x, "spec"):
            with DisableTorchFunctionSubclass():
                name = type(x).__name__
                what = f"graphs compute plain tensors, and this tensor is of the class {name}"
                fail(TraceError, what, f"graph(x.as_subclass(flow.Tensor)).as_subclass({name})", tensor=x)


def with_class(x: Any, cls: type) -> Any:
    """A tensor of another class with the elements and the gradient of x, which is not used any more."""
    twin: Any = object.__new__(cls)
    vars(twin).update(vars(x))
    return twin


def call_override(
    function: Callable, args: tuple, kwargs: Mapping[str, Any], found: list | None = None, required: bool = True
) -> Any:
    """Result of the first `__torch_function__` of the arguments that gives one; else NotImplemented.

    found: the arguments that are asked, `overriding` by default.  required: raise DTypeError if all of them refuse.
    Raises TraceError for a tensor of a program's class while a graph is built.
    """
    found = overriding((*args, *kwargs.values())) if found is None else found
    types = tuple(map(type, found))
    if found and MODE.get().trace is not None:
        refuse_in_graph(found)
    for x in found:
        result = getattr(x, METHOD)(function, types, args, dict(kwargs))
        if result is not NotImplemented:
            return result
    if found and required:
        names, name = [kind.__name__ for kind in types], getattr(function, "__name__", function)
        what = f"no implementation of {name} for {names}: __torch_function__ gave NotImplemented"
        fail(DTypeError, what, "return super().__torch_function__(func, types, args, kwargs) there for other functions")
    return NotImplemented


def call_of_objects(function: Callable, args: tuple, kwargs: Mapping[str, Any]) -> Any:
    """`call_override` of the arguments that are not tensors, for a function that has refused them."""
    return call_override(function, args, kwargs, overriding((*args, *kwargs.values()), tensors=False), required=False)


def run_overridden(op: Callable, inputs: tuple, attrs: Mapping[str, Any]) -> Any:
    """`call_of_objects` for an operator or an op that a program calls; else raise the current error, for the wrapper of
    the public function that runs the op.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and IS_MINFLOW_FILE[frame.f_back.f_code.co_filename]:
        frame = frame.f_back
    if not frame.f_code.co_filename.endswith("suggestions.py"):
        function = op if attrs else PUBLIC.get(getattr(op, "name", ""), op)
        if (result := call_of_objects(function, inputs, attrs)) is not NotImplemented:
            return result
    raise
