"""Dispatch: `apply` asks the current mode (Eager or Trace) to run an op.

Errors that Python or numpy raise there become four-part errors, with the user's values and line.
Read next: `op.py`, the definition of an op; `eager.py`, which runs it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .backend import largest_tensors
from .base.errors import (
    DivisionError,
    DTypeError,
    MinflowError,
    OutOfMemoryError,
    OutOfRangeError,
    ShapeError,
    TraceError,
)
from .ir import NUMBERS
from .mode import current  # replaced while steps of graphs are in flight: see `in_flight.py`
from .overrides import run_overridden
from .source_location import IS_MINFLOW_FILE, describe, explain, fail, here, input_names
from .spec import Device, cpu, iinfo, promote


def apply(op: Any, *inputs, **attrs):
    """Run an op in the current mode. There is no other way to run one."""
    try:
        return current().run(op, inputs, attrs)
    except OverflowError:
        raise overflow_error(op, inputs) from None
    except MinflowError:
        return run_overridden(op, inputs, attrs)
    except Exception as error:
        if (method := special_method(error)) in INSPECTION_METHODS:
            raise unreadable_input(op, inputs, method, error) from error
        if not isinstance(error, RAW_ERRORS):
            raise
        refuse_symbolic(inputs)
        op.refuse_unknown_attrs(attrs)
        if raised_by_user(error):
            raise
        raise raw_error(op.name, error, {**dict(zip(input_names(op, inputs), inputs)), **attrs}) from error


RAW_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, MemoryError, TypeError, ValueError)
RAW_KINDS = (
    (MemoryError, OutOfMemoryError),
    (ZeroDivisionError, DivisionError),
    ((OverflowError, LookupError), OutOfRangeError),
    (ValueError, ShapeError),
    (Exception, DTypeError),
)


def raised_by_user(error: BaseException) -> bool:
    """True if the error was raised by the user's own code that we called; such an error is not changed."""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not IS_MINFLOW_FILE[file] and not is_library_file(file):
            return True
        trace = trace.tb_next
    return False


# methods of an object that a call runs to inspect or show it
INSPECTION_METHODS = {"__class__", "__getattr__", "__getattribute__", "__repr__", "__str__", "__format__"}
SPECIAL_METHODS = INSPECTION_METHODS | {
    "__len__",
    "__bool__",
    "__eq__",
    "__ne__",
    "__hash__",
    "__array__",
    "__index__",
    "__int__",
    "__float__",
    "__iter__",
    "__getitem__",
    "__fspath__",
    "__dict__",
    "__dir__",
}


def special_method(error: BaseException) -> str | None:
    """Name of the special method of a user's object that raised this error when our code called it; None if another
    user function raised it, or none did.
    """
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if not IS_MINFLOW_FILE[code.co_filename] and not is_library_file(code.co_filename):
            return code.co_name if code.co_name in SPECIAL_METHODS else None
        trace = trace.tb_next
    return None


def unreadable_input(op: Any, inputs: Sequence, method: str | None, error: BaseException) -> MinflowError:
    """The error for an input whose special method raised while it was inspected."""
    odd = next((x for x in inputs if type(x) not in NUMBERS and not hasattr(type(x), "spec")), None)
    what = f"{op.name}: an input is {type(odd).__name__}, neither a tensor nor a number; its {method} raised "
    return DTypeError(
        what + type(error).__name__,
        values={"input": describe(odd)},
        where=here(),
        hint="flow.tensor(...) makes a tensor of lists and arrays",
    )


# A file of numpy, scipy, CuPy (whose compiled files have relative names) or Python itself, in a folder that may also
# contain the user's packages.
STDLIB = re.escape(os.path.dirname(os.__file__))
LIBRARIES = r".*site-packages.(numpy|scipy|cupyx?|cupy_backends)\b|cupy\w*[\\/].*\.pyx$"
is_library_file = re.compile(rf"<frozen |<__array|{LIBRARIES}|{STDLIB}.(?!site-packages)").match


def raw_error(name: str, error: BaseException, values: Mapping[str, Any], hint: str = "") -> MinflowError:
    """The four-part error that replaces an error of Python or numpy."""
    kind = next(ours for raw, ours in RAW_KINDS if isinstance(error, raw))
    shown = {k: describe(x) for k, x in values.items()}
    if kind is OutOfMemoryError:
        hint = "smaller sizes, or a smaller dtype; expand() repeats elements without allocating"
        shown |= largest_on_device([x.spec.device if hasattr(x, "spec") else x for x in values.values()])
    said = " ".join(str(error).split()) or type(error).__name__
    result = kind(f"{name}: {said}", values=shown, where=here(), hint=hint)
    result.raw = error
    return result


def largest_on_device(values: Sequence) -> dict[str, str]:
    """The largest tensors on the first of these devices, or names of devices, that is a GPU, whose memory is scarce."""
    named = [Device(x) for x in values if isinstance(x, str) and x.startswith("cuda")]
    devices = named + [x for x in values if isinstance(x, Device) and x is not cpu]
    return largest_tensors(devices[0]) if devices else {}


def refuse_symbolic(inputs: Sequence) -> None:
    """Raise TraceError for a symbolic tensor used outside the build that made it, since it has no elements."""
    if current().trace is None:
        for x in inputs:
            if x is not None and getattr(x, "array", x) is None:
                raise symbolic_error(x)


def symbolic_error(x: Any) -> TraceError:
    """The error for a symbolic tensor outside the build that made it."""
    what = "a symbolic tensor is used outside the build that made it, where it has no elements"
    hint = "return it from build: results of the graph have elements; or compute it without the graph"
    return TraceError(what, values={"tensor": describe(x)}, where=here(), hint=hint)


def overflow_error(op: Any, inputs: Sequence) -> MinflowError:
    """The error for a Python integer that does not fit in the integer dtype of the other inputs."""
    numbers = [x for x in inputs if x.__class__ in NUMBERS]
    kind = promote(*[NUMBERS[x.__class__] for x in numbers], *[x.spec for x in inputs if hasattr(x, "spec")])
    limits = iinfo(kind)
    outside = [x for x in numbers if not limits.min <= x <= limits.max]
    what = f"{op.name}: {(outside or numbers or ['a number'])[0]} does not fit into {kind.name}"
    return explain(OutOfRangeError(what, hint="x.long() or x.float() first"), op, inputs)


def refuse_input(op: Any, x: Any) -> None:
    """Raise DTypeError for an input that is neither a tensor nor a number."""
    what = f"{op.name}: an input is {type(x).__name__}, neither a tensor nor a number"
    fail(DTypeError, what, "flow.tensor(...) makes a tensor of lists and arrays", input=x)
