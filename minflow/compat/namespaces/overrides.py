"""`flow.overrides`: functions of PyTorch style that call the `__torch_function__` of their arguments.

Public functions of minflow do so by themselves. A mode that intercepts all functions is refused on entry.
Read next: `../../core/overrides.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from ...core.base.errors import StateError
from ...core.messages.suggestions import missing_names as _missing_names
from ...core.overrides import call_override, overrides, overriding
from ...core.source_location import fail
from ...core.tensor import Tensor

__all__ = [
    "TorchFunctionMode",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "wrap_torch_function",
]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """True if functions call the `__torch_function__` of an argument: not for tensors of our own classes."""
    return bool(overriding(tuple(relevant_args)))


def handle_torch_function(public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Return the first result of an argument's `__torch_function__` that is not NotImplemented.

    public_api: the function that was called with args and kwargs; called again if no argument has the method.
    Raises DTypeError if all results are NotImplemented.
    """
    found = overriding(tuple(relevant_args))
    return call_override(public_api, args, kwargs, found) if found else public_api(*args, **kwargs)


def wrap_torch_function(dispatcher: Callable) -> Callable[[Callable], Callable]:
    """Make a decorator of functions that call the `__torch_function__` of the arguments that `dispatcher` returns."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """True for a tensor, and for an object with the method `__torch_function__`."""
    return isinstance(inp, Tensor) or overrides(type(inp))


def is_tensor_method_or_property(func: Callable) -> bool:
    """True if the `func` of a `__torch_function__` is a method of Tensor, or the access to one of its properties."""
    name = getattr(func, "__name__", "")
    return name in ("__get__", "__set__") or getattr(Tensor, name, None) is func


class TorchFunctionMode:
    """Base class of modes that intercept functions. Classes can derive from it; entering one is refused."""

    def __enter__(self) -> NoReturn:
        what = f"{type(self).__name__}: functions of minflow cannot be intercepted"
        hint = "nn.utils.skip_init for layers without initial values; nn.Module hooks and flow.watch for results"
        fail(StateError, what, hint)

    def __exit__(self, *error: Any) -> None:
        pass


BaseTorchFunctionMode = TorchFunctionMode
__getattr__ = _missing_names("flow.overrides", globals())
