"""The error for a read of elements of a symbolic tensor, also by a function that takes a number and got a tensor."""

from __future__ import annotations

from types import FrameType
from typing import Any

from ..base.errors import TraceError
from ..source_location import IS_MINFLOW_FILE, describe, frame_at, here

READ_HINTS = {  # reader -> hint of the error for reading the elements of a symbolic tensor
    "bool": "flow.where(cond, a, b) takes the place of if",
    "index": "a Python int that is known before the call, such as x.shape[0]; x.gather and x.index_select take tensors",
    "tensor": "flow.stack([...]) makes a tensor of tensors",
    "item": "compute with the tensor itself, as in x * n, flow.full((2, 3), n) or flow.stack([n, m]); to look at it, "
    "return it from build",
}
NUMBER_HINT = (
    "a Python number that is known before the call, such as an attribute of the graph: another one gives another plan"
)
NUMBER_HINTS = {  # function -> hint if one of its numbers is a tensor
    "arange": "its shape would depend on the elements: flow.arange(MAX) and the mask flow.arange(MAX) < n",
    "normal_": "mean + std * flow.randn_like(x)",
    "uniform_": "low + (high - low) * flow.rand_like(x)",
}


def symbolic_read_error(tensor: Any, verb: str) -> TraceError:
    """The error for reading the elements of a symbolic tensor by the method `verb`: of the argument of a function, if
    it is not the program itself that reads it.
    """
    if (found := argument_read()) is not None:
        function, name, value = found
        what = f"{function}: {name} must be a Python number while a graph is built, and is a tensor without elements"
        hint = NUMBER_HINTS.get(function, READ_HINTS["index"] if verb == "index" else NUMBER_HINT)
        return TraceError(what, values={name: describe(value)}, where=here(), hint=hint)
    what = f"{verb}() reads the elements of a symbolic tensor, which has none while a graph is built"
    hint = READ_HINTS.get(verb, READ_HINTS["item"])
    return TraceError(what, values={"tensor": describe(tensor)}, where=here(), hint=hint)


def argument_read() -> tuple[str, str, Any] | None:
    """(function of minflow, its parameter, the argument) of the outermost call below the program with a symbolic tensor
    of one element, apart from its first argument; None if the program has read a tensor by a method of it.
    """
    frame: FrameType | None = frame_at(2)
    found = None
    while frame is not None and IS_MINFLOW_FILE[(code := frame.f_code).co_filename]:
        for i, name in enumerate(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]):
            value: Any = frame.f_locals.get(name)
            if (i > 0 or code.co_name in NUMBER_HINTS) and hasattr(value, "spec"):
                if value.array is None and value.spec.size == 1:
                    found = code.co_name, name, value
        frame = frame.f_back
    return found
