"""In-place functions, `flow.exp_(x)`: each calls the method of its name. Imported on first use.

Read next: `methods/forwarded.py`, where most of these methods are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .base.signatures import rename
from .messages.wrong_arguments import not_a_tensor
from .tensor import Tensor


def function_of(name: str) -> Callable:
    """The function that calls the method of this name."""
    method = getattr(Tensor, name)

    def call(input: Tensor, *args: Any, **options: Any) -> Tensor:
        if not isinstance(input, Tensor):
            raise not_a_tensor(name, "input", input)
        return method(input, *args, **options)

    first, *others = inspect.signature(method).parameters.values()
    vars(call)["__signature__"] = inspect.Signature([first.replace(name="input"), *others], return_annotation="Tensor")
    call.__doc__, call.__module__ = method.__doc__, "minflow"  # where pickle finds it
    rename(call, name)
    return call
