"""Operations of one's own: `flow.library.custom_op`. They run eagerly, in an nn.Graph and in a job function.

    @flow.library.custom_op("softclip(x; beta)", vjp=lambda g, x, beta: g * (x * beta).sigmoid())
    def softclip(xp, x, beta):
        return xp.log1p(xp.exp(beta * x)) / beta

What a composition of existing operations can say needs none of this: a Python function on tensors has its gradient.
Read next: `core/op.py`; `docs/custom-operators.md` is the lesson.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from .core.messages.suggestions import name_hints as _name_hints
from .core.base.errors import GradError, OutOfRangeError, ShapeError
from .core.mode import bump
from .core.op import OPS, Op, define, kernel
from .core.ops.rules import same as same_spec
from .core.spec import Spec as Spec
from .core.source_location import fail, here

CUSTOM: set[str] = set()  # names that may be defined again: a cell of a notebook is run more than once


def custom_op(
    signature: str,
    infer: Callable | None = None,
    vjp: Callable | Mapping[str, Callable] | None = None,
    doc: str = "",
    *,
    version: int = 1,
) -> Callable[[Callable], Op]:
    """Make the decorated array function an operation with a shape rule and a gradient.

    signature: `"name(input, input; attribute) -> out, out"`; attributes are plain values, not tensors.
    infer: `infer(*specs, **attributes)` gives the Spec of each result; without it, that of the first input.
    vjp: the gradient of the first input, or a dict input -> gradient. The names of its arguments say what it gets: `g`
    (the gradient of the result), inputs, attributes, `out`. It is written on tensors, so it can be differentiated
    again. The decorated function gets `xp` (numpy, or cupy on a GPU), the arrays and the attributes, and returns new
    arrays of the shape and dtype that `infer` said; it writes into none of its inputs.
    version: 1 or more, kept in a graph that is saved: raise it where the same call gives other numbers than before.

    Raises ShapeError for a name that an operation of the engine has, and at a call whose arrays are not as inferred;
    OutOfRangeError for a version below 1.
    Defining a name again replaces it: graphs and jobs that were compiled keep what they have.
    """
    name = signature.partition("(")[0].strip()
    if "(" not in signature or not name.isidentifier():
        raise ShapeError(
            "the signature of a custom op", values={"got": repr(signature)}, where=here(), hint='"softclip(x; beta)"'
        )
    if name in OPS and name not in CUSTOM:
        raise ShapeError(f"there is an operation {name!r} already", where=here(), hint=f'"my_{name}(x)"')

    def decorate(function: Callable) -> Op:
        if not callable(function):
            fail(
                ShapeError,
                f"custom op {name}: the kernel is no function",
                "def kernel(xp, x): return ...",
                got=function,
            )
        if type(version) is not int or version < 1:
            fail(OutOfRangeError, f"custom op {name}: a version is a whole number from 1", "version=2", version=version)
        old = OPS.pop(name, None)
        try:
            op = define(signature, infer or same_spec_of_first, vjp, doc=doc or function.__doc__ or "", version=version)
        except Exception as error:
            if old is not None:
                OPS[name] = old
            if isinstance(error, ValueError | KeyError):
                raise GradError(
                    f"custom op {name}: its gradient rule does not fit its signature: {error}",
                    where=here(),
                    hint="vjp=dict(x=lambda g, x: ..., w=lambda g, x, w: ...)",
                ) from error
            raise
        op.custom = True
        CUSTOM.add(name)
        bump()
        kernel(op, checked(op, function))
        return op

    return decorate


def same_spec_of_first(x: Spec, *others: Any, **attributes: Any) -> Spec:
    return same_spec(x)


def checked(op: Op, function: Callable) -> Callable:
    """The kernel, refusing results that are not what the shape rule said: in a plan their places are fixed."""

    @functools.wraps(function)
    def run(xp: Any, *arrays: Any, **attributes: Any) -> Any:
        result = function(xp, *arrays, **attributes)
        specs = op.infer(*[spec_of_array(a) for a in arrays], **attributes)
        results = result if isinstance(result, tuple) else (result,)
        wanted = specs if isinstance(specs, tuple) else (specs,)
        if len(results) != len(wanted):
            raise ShapeError(
                f"the kernel of {op.name} gives another number of arrays than its signature says",
                values={"signature": len(wanted), "kernel": len(results)},
                hint="return a tuple of arrays",
            )
        fixed = []
        for spec, array in zip(wanted, results):
            array = xp.asarray(array)
            if array.shape != spec.shape or array.dtype != spec.np:
                raise ShapeError(
                    f"the kernel of {op.name} gives another array than its shape rule says",
                    values={
                        "shape rule": f"{spec.dtype.name}{list(spec.shape)}",
                        "kernel": f"{array.dtype}{list(array.shape)}",
                    },
                    hint="infer=lambda x: x.replace(shape=(...)); or .astype(x.dtype) in the kernel",
                )
            fixed.append(array)
        return tuple(fixed) if op.many else fixed[0]

    return run


def spec_of_array(array: Any) -> Any:
    from .core.spec import spec_of

    return spec_of(array) if hasattr(array, "dtype") else type(array)


__all__ = ["Spec", "custom_op"]
__getattr__ = _name_hints("flow.library", globals())
