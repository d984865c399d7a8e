"""Custom ops (`flow.library.custom_op`), which run eagerly, in an nn.Graph and in a job function: array code with a
shape rule, or PyTorch's form, functions of tensors (`core/grad/registered.py`).

    @flow.library.custom_op("softclip(x; beta)", vjp=lambda g, x, beta: g * (x * beta).sigmoid())
    def softclip(xp, x, beta):
        return xp.log1p(xp.exp(beta * x)) / beta

A composition of existing ops needs no custom op: a Python function on tensors already has its gradient.
Read next: `core/op.py`; `docs/custom-operators.md` is a tutorial.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .core.base.errors import GradError, OutOfRangeError, ShapeError
from .core.grad.registered import (
    Library as Library,
    define_operator as define,
    impl as impl,
    register_autograd as register_autograd,
    register_fake as register_fake,
    register_kernel as register_kernel,
    registered_op,
)
from .core.kernels import kernel
from .core.messages.suggestions import name_hints as _name_hints
from .core.mode import bump_mutations
from .core.op import OPS, Op, define as define_op
from .core.ops.rules import same_spec
from .core.source_location import fail, here
from .core.spec import Spec as Spec

CUSTOM_OPS: set[str] = set()  # names that may be redefined, because notebook cells run more than once


def custom_op(
    signature: str,
    infer: Callable | None = None,
    vjp: Callable | Mapping[str, Callable] | None = None,
    doc: str = "",
    *,
    version: int = 1,
    mutates_args: str | Iterable[str] | None = None,
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = (),
) -> Callable[[Callable], Any]:
    """Turn the decorated array function into an op with a shape rule and a gradient.

    The decorated function gets `xp` (numpy, or cupy on a GPU), the arrays and the attributes. It returns new arrays of
    the shape and dtype that `infer` computed, and does not write to its inputs.

    signature: `"name(input, input; attribute) -> out, out"`; attributes are plain values, not tensors.
    infer: `infer(*specs, **attributes)` returns the Spec of each result; by default that of the first input.
    vjp: the gradient rule of the first input, or a dict from input to rule. The names of its arguments choose their
    values: `g` (the gradient of the result), inputs, attributes, `out`. It computes on tensors, so it has a gradient.
    version: at least 1, stored in saved graphs; increase it when the same call gives other results than before.

    With `mutates_args`, as in PyTorch, the signature is a name such as `"mylib::scale"`, the decorated function takes
    and returns tensors, and the result has `register_autograd(backward, setup_context=...)`, `register_kernel` and
    `register_fake`. mutates_args: the names of the inputs that it writes in place.  device_types: "cpu", "cuda" or
    several; None for all.  schema and tags are accepted without effect: Python's signature is used.

    Raises ShapeError if minflow has an op of this name, and in a call whose arrays differ from the inferred specs;
    OutOfRangeError for a version below 1. Redefining a name replaces the op; compiled graphs and jobs keep the old one.
    """
    if mutates_args is not None:
        return registered_op(signature, mutates_args, device_types, infer)
    name = signature.partition("(")[0].strip()
    if "::" in name:
        what = f"custom op: {name!r} is a name of PyTorch's form, which needs mutates_args"
        fail(ShapeError, what, f"custom_op({name!r}, mutates_args=()) for a function that writes none of its inputs")
    if "(" not in signature or not name.isidentifier():
        raise ShapeError(
            "custom op: the signature must have the form name(inputs; attributes)",
            values={"got": repr(signature)},
            where=here(),
            hint='"softclip(x; beta)"',
        )
    if name in OPS and name not in CUSTOM_OPS:
        raise ShapeError(f"custom op: there is already an op named {name!r}", where=here(), hint=f'"my_{name}(x)"')

    def decorate(function: Callable) -> Op:
        if not callable(function):
            what = f"custom op {name}: the kernel must be a function"
            fail(ShapeError, what, "def kernel(xp, x): return ...", got=function)
        if type(version) is not int or version < 1:
            what = f"custom op {name}: version must be an integer of at least 1"
            fail(OutOfRangeError, what, "version=2", version=version)
        old = OPS.pop(name, None)
        try:
            op = define_op(
                signature,
                infer or first_input_spec,
                vjp,
                doc=doc or function.__doc__ or "",
                version=version,
                custom=True,
            )
        except Exception as error:
            if old is not None:
                OPS[name] = old
            if isinstance(error, ValueError | KeyError):
                raise GradError(
                    f"custom op {name}: the gradient rule does not match the signature: {error}",
                    where=here(),
                    hint="vjp=dict(x=lambda g, x: ..., w=lambda g, x, w: ...)",
                ) from error
            raise
        CUSTOM_OPS.add(name)
        bump_mutations()
        kernel(op, checked_kernel(op, function))
        return op

    return decorate


def first_input_spec(x: Spec, *others: Any, **attributes: Any) -> Spec:
    return same_spec(x)


def checked_kernel(op: Op, function: Callable) -> Callable:
    """Wrap a kernel to raise if its results differ from the shape rule: a plan reserves memory by the shape rule."""

    @functools.wraps(function)
    def run(xp: Any, *arrays: Any, **attributes: Any) -> Any:
        result = function(xp, *arrays, **attributes)
        specs = op.infer(*[spec_of_array(a) for a in arrays], **attributes)
        results = result if isinstance(result, tuple) else (result,)
        expected = specs if isinstance(specs, tuple) else (specs,)
        if len(results) != len(expected):
            raise ShapeError(
                f"the kernel of {op.name} must return as many arrays as its signature",
                values={"signature": len(expected), "kernel": len(results)},
                hint="return a tuple of arrays",
            )
        outputs = []
        for spec, array in zip(expected, results):
            array = xp.asarray(array)
            if array.shape != spec.shape or array.dtype != spec.np:
                raise ShapeError(
                    f"the kernel of {op.name} must return the shape and dtype of its shape rule",
                    values={
                        "shape rule": f"{spec.dtype.name}{list(spec.shape)}",
                        "kernel": f"{array.dtype}{list(array.shape)}",
                    },
                    hint="infer=lambda x: x.replace(shape=(...)); or .astype(x.dtype) in the kernel",
                )
            outputs.append(array)
        return tuple(outputs) if op.many else outputs[0]

    return run


def spec_of_array(array: Any) -> Any:
    from .core.spec import spec_of

    return spec_of(array) if hasattr(array, "dtype") else type(array)


impl_abstract = register_fake  # PyTorch's older name

__all__ = [
    "Library",
    "Spec",
    "custom_op",
    "define",
    "impl",
    "impl_abstract",
    "register_autograd",
    "register_fake",
    "register_kernel",
]
__getattr__ = _name_hints("flow.library", globals())
