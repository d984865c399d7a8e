"""The shape rule of an op, run before every kernel; its results are cached in a bounded table.

`source_location.explain` adds the user's names, values, module and line to an error of a rule.
Read next: `dispatch.py`, the only way to run an op.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from .base.errors import DTypeError, MinflowError, OutOfMemoryError, TraceError
from .ir import NUMBERS
from .kernels import ON_CHANGE, select
from .memory import MIN_CHECKED_BYTES, free_bytes_if_short, size_text
from .mode import MODE
from .source_location import explain, here
from .spec import DEPENDS_ON_DEFAULT, Spec, bfloat16, default_dtype, promote

INFER_CACHE: dict = {}  # results of `infer`, bounded; errors are not cached
INFER_CACHE_LIMIT = 20_000
DEPENDS_ON_DEFAULT.append(INFER_CACHE.clear)
ON_CHANGE.append(INFER_CACHE.clear)


def infer(op: Any, inputs: Sequence, attrs: Mapping, specs: tuple = ()):
    """The result of the shape rule, cached: (None, output specs, the specialized kernel or None), or
    (dtype that the inputs must be cast to, None, None), or (bfloat16, output specs, ...) if the op must be computed in
    float32. `run_in_dtype` does the casts of the last two. specs: those of the inputs, if all are tensors and the
    caller has them.
    """
    specs = specs or tuple([x.__class__ if x.__class__ in NUMBERS else x.spec for x in inputs])
    key = (op, specs, tuple(attrs.items())) if attrs else (op, specs)
    try:
        return INFER_CACHE[key]
    except KeyError:
        pass
    except TypeError:  # an unhashable attr (a slice before Python 3.12)
        key = None
    try:
        dtype, outs = consult(op, specs, attrs)
        large = (
            outs is not None
            and outs != (None,)
            and not op.is_view
            and sum([s.nbytes for s in outs]) > MIN_CHECKED_BYTES
        )
        if large and MODE.get().trace is None:
            check_memory(op.name, outs)
    except MinflowError as error:
        raise explain(error, op, inputs) from None
    specialize = None if dtype is not None else select(op).specialize
    result = dtype, outs, None if specialize is None else specialize(*specs, **attrs)
    if key is not None and outs != (None,) and not large:  # large results are checked at each call
        if len(INFER_CACHE) >= INFER_CACHE_LIMIT:
            INFER_CACHE.clear()
        INFER_CACHE[key] = result
    return result


def check_memory(name: str, outs: Sequence[Spec]) -> None:
    """Raise OutOfMemoryError if there is no memory for these results, before it is allocated. A plan is checked as a
    whole.
    """
    needed = sum([spec.nbytes for spec in outs])
    if (free := free_bytes_if_short(needed)) is not None:
        raise OutOfMemoryError(
            f"{name}: the result, {', '.join(map(str, outs))}, needs {size_text(needed)} of memory, and "
            f"{size_text(free)} are free",
            values={"needed": f"{needed} bytes", "free": f"{free} bytes"},
            where=here(),
            hint="smaller sizes, or a smaller dtype; expand() repeats elements without allocating",
        )


def consult(op: Any, specs: tuple, attrs: Mapping):
    if len(specs) == 1 and not isinstance(specs[0], Spec):
        what = f"{op.name}: the input must be a tensor, got {specs[0].__name__}"
        raise DTypeError(what, hint="flow.tensor(...) around a number")
    if op.elementwise:
        dtype = promote(*specs)
        if op.elementwise == "float" and dtype.rank < 2:
            dtype = default_dtype()
        if any(isinstance(s, Spec) and s.dtype is not dtype for s in specs):
            return dtype, None
    dtypes = [s.dtype for s in specs if isinstance(s, Spec)]
    if op.domain == "real" and any(d.rank == 3 for d in dtypes):
        raise DTypeError(f"{op.name}: not defined for complex numbers", hint="x.real, x.imag, x.abs() or x.angle()")
    out = op.infer(*specs, **attrs)
    return bfloat16 if bfloat16 in dtypes and not op.dtype_agnostic else None, out if op.many else (out,)


def data_dependent(*specs, **attrs) -> None:
    """The shape rule of an op whose output shape depends on the elements; raises unless in eager mode."""
    if MODE.get().trace is not None:
        raise TraceError(
            "the shape of the result depends on elements, which do not exist while a graph is built",
            hint="flow.where(mask, x, 0) keeps the shape; (x * mask).sum() leaves out the rest; "
            "or do it before the call",
        )
    return None


def __getattr__(name: str):
    if name == "INFERRED":  # copies of the reading tour R1 read it
        warnings.warn("infer.INFERRED is now infer.INFER_CACHE", DeprecationWarning, stacklevel=2)
        return INFER_CACHE
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
