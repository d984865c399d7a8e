"""`flow.overrides`: functions of PyTorch style that call the `__torch_function__` of arguments that are not tensors.

Public functions of minflow do so by themselves. Tensors of a subclass are not asked, and a mode that intercepts all
functions is refused on entry. Read next: `../../core/overrides.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from ...core.base.errors import StateError
from ...core.messages.suggestions import missing_names as _missing_names
from ...core.overrides import METHOD, call_override
from ...core.source_location import fail
from ...core.tensor import Tensor

__all__ = ["TorchFunctionMode", "handle_torch_function", "has_torch_function", "is_tensor_like"]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """True if an argument that is not a tensor has the method `__torch_function__`."""
    return any(map(overrides, relevant_args))


def overrides(it: Any) -> bool:
    return not isinstance(it, Tensor) and hasattr(type(it), METHOD)


def handle_torch_function(public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Return the first result of an argument's `__torch_function__` that is not NotImplemented.

    public_api: the function that was called with args and kwargs.  Raises TypeError if there is no such result.
    """
    relevant_args = tuple(relevant_args)
    result = call_override(public_api, args, kwargs, relevant_args)
    if result is NotImplemented:
        names = [type(it).__name__ for it in relevant_args]
        raise TypeError(
            f"no implementation of {public_api.__name__} for {names}: __torch_function__ gave NotImplemented"
        )
    return result


def is_tensor_like(inp: Any) -> bool:
    """True for a tensor, and for an object with the method `__torch_function__`."""
    return isinstance(inp, Tensor) or overrides(inp)


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
