"""`__torch_function__`: objects that are not tensors define the result of the functions that get them, as in PyTorch.

A function first refuses such an object, and the handler of that error calls its method, so that other calls pay
nothing. Tensors of a subclass are not asked, since no function refuses them.
Read next: `messages/suggestions.py`, whose wrappers of public functions are these handlers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from .source_location import IS_MINFLOW_FILE

METHOD = "__torch_function__"
PUBLIC: dict[str, Callable] = {}  # functions by name, since programs compare the `func` of their method with them


def call_override(function: Callable, args: tuple, kwargs: Mapping[str, Any], asked: tuple | None = None) -> Any:
    """Result of the first `__torch_function__` of the arguments that gives one; else NotImplemented.

    asked: the arguments that are asked, all by default.
    """
    objects: dict[type, Any] = {}
    for argument in (*args, *kwargs.values()) if asked is None else asked:
        for x in argument if issubclass(type(argument), list | tuple) else [argument]:
            if hasattr(type(x), METHOD) and not hasattr(type(x), "requires_grad"):
                objects.setdefault(type(x), x)
    for x in objects.values():
        result = getattr(x, METHOD)(function, tuple(objects), args, dict(kwargs))
        if result is not NotImplemented:
            return result
    return NotImplemented


def run_overridden(op: Callable, inputs: tuple, attrs: Mapping[str, Any]) -> Any:
    """`call_override` for an operator or an op that a program calls; else raise the current error, for the wrapper of
    the public function that runs the op.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and IS_MINFLOW_FILE[frame.f_back.f_code.co_filename]:
        frame = frame.f_back
    if not frame.f_code.co_filename.endswith("suggestions.py"):
        function = op if attrs else PUBLIC.get(getattr(op, "name", ""), op)
        if (result := call_override(function, inputs, attrs)) is not NotImplemented:
            return result
    raise
