"""Classes of tensors that programs define: methods, operators and properties call `__torch_function__`, as in PyTorch.

Nothing here runs before the first such class. Public functions ask tensors in `messages/suggestions.py`; what calls an
op without either, such as a layer, asks them when the op runs.
Read next: `overrides.py`, the order of the calls; `methods/subclasses.py`, the default `__torch_function__`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from .eager import Eager
from .methods.subclasses import ON_SUBCLASS, our_initializer
from .mode import MODE
from .overrides import ENABLED, PLAIN, SUBCLASSES, call_override, disabled_torch_function_impl, overrides
from .tensor import Tensor
from .trace import Trace

# The method that a function sees in place of an operator.
FUNCTIONS = {
    **{f"__{name}__": name for name in "add sub mul matmul pow neg abs gt ge lt le".split()},
    **{f"__i{name}__": f"{name}_" for name in "add sub mul pow".split()},
    "__truediv__": "div", "__itruediv__": "div_", "__mod__": "remainder", "__imod__": "remainder_",
    "__invert__": "bitwise_not", "__radd__": "add", "__rmul__": "mul",
}  # fmt: skip
# Not grad, whose class stays, as in PyTorch.
PROPERTIES = """T mT H mH data real imag shape dtype device ndim grad_fn requires_grad is_leaf layout is_cuda
is_sparse is_meta itemsize nbytes""".split()
# Methods that are not functions of PyTorch, or whose parts are: iteration unbinds.
OWN = """__init__ __new__ __init_subclass__ __class__ __getattribute__ __setattr__ __delattr__ __dir__ __hash__ __iter__
__copy__ __reduce__ __reduce_ex__ __sizeof__ __getstate__ __str__ __subclasshook__ __torch_function__ __instancecheck__
as_subclass""".split()


class Overridable(Tensor):
    """The base class of classes that programs define. Its methods are made when the first one is defined."""

    _is_overridable = True

    def __iter__(self) -> Iterator[Any]:
        return iter(self.unbind()) if self.spec.ndim else super().__iter__()


def overriding_method(name: str) -> Callable:
    """A method or operator that calls `__torch_function__`; it returns NotImplemented if an operator is refused."""
    plain, function = getattr(Tensor, name), getattr(Tensor, FUNCTIONS.get(name, name))
    forward = f"__{name[3:]}" if name[:3] == "__r" and hasattr(Tensor, f"__{name[3:]}") else ""
    swapped = getattr(Tensor, FUNCTIONS.get(forward, forward)) if forward else None
    required = not forward and not hasattr(Tensor, f"__r{name[2:]}")

    @functools.wraps(plain)
    def method(self: Tensor, *args: Any, **options: Any) -> Any:
        if not (ENABLED.get() and overrides(type(self))):
            return plain(self, *args, **options)
        if swapped is not None and isinstance(args[0], Tensor):
            return call_override(swapped, (args[0], self), options, required=False)
        return call_override(function, (self, *args), options, required=required)

    return method


def overriding_property(name: str) -> property:
    """A property that calls `__torch_function__` with `Tensor.name.__get__` or `__set__`."""
    plain = getattr(Tensor, name)

    def run(access: Callable, self: Tensor, *value: Any) -> Any:
        if not (ENABLED.get() and overrides(type(self))) or MODE.get().trace is not None:
            return access(self, *value)
        return call_override(access, (self, *value), {})

    setter = functools.partial(run, plain.__set__) if plain.fset is not None else None
    return property(functools.partial(run, plain.__get__), setter, doc=plain.__doc__)


def run_overridable(run: Callable) -> Callable:
    """`Mode.run` that asks the tensors of programs' classes first."""

    @functools.wraps(run)
    def asking(self: Any, op: Any, inputs: Any, attrs: Any) -> Any:
        for x in inputs:
            if isinstance(x, Overridable) and ENABLED.get() and overrides(type(x)):
                return call_override(op, tuple(inputs), attrs)
        return run(self, op, inputs, attrs)

    return asking


def initialized(self: Tensor, *args: Any, **options: Any) -> None:
    """The `__init__` of a class that defines none: its `__new__`, with any arguments, has made the tensor."""


def prepare(cls: Any) -> None:
    """Let a class that a program defines derive from Overridable, unless it switches `__torch_function__` off."""
    if not SUBCLASSES:
        for name in dir(Tensor):
            if name not in OWN and (name[:1] != "_" or name[:2] == "__") and name[:7] not in ("__array", "__dlpac"):
                if isinstance(getattr(Tensor, name), property):
                    if name in PROPERTIES:
                        setattr(Overridable, name, overriding_property(name))
                elif callable(getattr(Tensor, name)) and not isinstance(getattr(Tensor, name), type):
                    setattr(Overridable, name, overriding_method(name))
        for mode in (Eager, Trace):
            mode.run = run_overridable(mode.run)  # type: ignore[method-assign]
        PLAIN.add(Tensor)
        SUBCLASSES.append(cls)
    if our_initializer(cls) is cls.__init__:
        cls.__init__ = initialized
    if cls.__torch_function__ is not disabled_torch_function_impl:
        bases = tuple([Overridable if base is Tensor else base for base in cls.__bases__])
        overridable = any(issubclass(base, Overridable) for base in bases)
        cls.__bases__ = bases if overridable else (*bases, Overridable)


ON_SUBCLASS.append(prepare)
