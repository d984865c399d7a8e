"""`flow.autograd.functional`: Jacobians and Hessians of functions of tensors, and their products with vectors.

Read next: `../autograd.py`, whose `grad` does the work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import as_tuple, grad
from ..base.errors import GradError, ShapeError
from ..functions.creation import ones_like, zeros_like
from ..functions.shape import stack
from ..ops.shape import filled
from ..source_location import fail
from ..tensor import Tensor
from .modes import enable_grad


def inputs_of(owner: str, inputs: Any, create_graph: bool) -> tuple[Tensor, ...]:
    """The inputs as tensors that require grad: detached leaves, or clones on the tape if create_graph."""
    listed = as_tuple(inputs)
    for i, x in enumerate(listed):
        if not isinstance(x, Tensor) or not x.spec.floating:
            fail(GradError, f"{owner}: input {i} must be a floating tensor", "flow.tensor([1.0, 2.0])", input=x)
    return tuple([x.clone() if create_graph and x.requires_grad else x.detach().requires_grad_() for x in listed])


def outputs_of(owner: str, outputs: Any) -> tuple[Tensor, ...]:
    listed = as_tuple(outputs)
    for i, out in enumerate(listed):
        if not isinstance(out, Tensor):
            what = f"{owner}: output {i} of the function is a {type(out).__name__}, not a tensor"
            fail(GradError, what, "return a tensor or a tuple of tensors", output=out)
    return listed


def vector_for(owner: str, v: Any, same_structure: Sequence[Tensor], of: str) -> tuple[Tensor, ...]:
    """The given vector for these tensors; by default 1, if there is a single element."""
    if v is None:
        if len(same_structure) != 1 or same_structure[0].numel() != 1:
            what = f"{owner}: v is required unless there is a single element"
            fail(GradError, what, f"v like {of}", tensors=len(same_structure), first=same_structure[0])
        return (ones_like(same_structure[0]),)
    listed = as_tuple(v)
    if len(listed) != len(same_structure) or any(
        tuple(a.shape) != tuple(b.shape) for a, b in zip(listed, same_structure)
    ):
        fail(
            ShapeError,
            f"{owner}: the shapes of v differ from those of {of}",
            f"one tensor for each of {of}, of its shape",
            v=[tuple(a.shape) for a in listed],
            wanted=[tuple(b.shape) for b in same_structure],
        )
    return listed


def gradients_or_zeros(
    owner: str, outputs: Sequence[Tensor], inputs: Sequence[Tensor], v: Any, keep: bool, strict: bool
) -> tuple:
    """Gradients with respect to the inputs: zeros for an unused input; with `strict` a GradError instead."""
    used = [(out, g) for out, g in zip(outputs, v) if out.requires_grad]
    found: Sequence = [None] * len(inputs)
    if used:
        found = grad(
            [out for out, _ in used],
            inputs,
            [g for _, g in used],
            retain_graph=True,
            create_graph=keep,
            allow_unused=True,
        )
    if strict and any(g is None for g in found):
        i = next(i for i, g in enumerate(found) if g is None)
        what = f"{owner}: the outputs do not depend on input {i}"
        fail(GradError, what, "strict=False gives 0 for it", input=inputs[i])
    return tuple([zeros_like(x) if g is None else g for g, x in zip(found, inputs)])


def same_structure(present: Any, values: Sequence) -> Any:
    """The values as a tuple if `present` is a list or tuple, else their only entry."""
    return tuple(values) if isinstance(present, list | tuple) else values[0]


def detached(values: Any, create_graph: bool) -> Any:
    """The values, detached unless create_graph."""
    if isinstance(values, Tensor):
        return values if create_graph else values.detach()
    return type(values)([detached(x, create_graph) for x in values])


def vjp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """Compute (func(*inputs), v times its Jacobian). v: like the outputs; optional if they have one element."""
    with enable_grad():
        xs = inputs_of("vjp", inputs, create_graph)
        result = func(*xs)
        outs = outputs_of("vjp", result)
        v = vector_for("vjp", v, outs, "the outputs")
        found = gradients_or_zeros("vjp", outs, xs, v, create_graph, strict)
    return detached(result, create_graph), detached(same_structure(inputs, found), create_graph)


def jvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """Compute (func(*inputs), its Jacobian times v) by two backward passes. v: like the inputs; optional for one.

    Source: Townsend 2017, "A new trick for calculating Jacobian vector products".
    """
    with enable_grad():
        xs = inputs_of("jvp", inputs, create_graph)
        v = vector_for("jvp", v, xs, "the inputs")
        result = func(*xs)
        outs = outputs_of("jvp", result)
        dummies = [zeros_like(out).requires_grad_() for out in outs]
        back = gradients_or_zeros("jvp", outs, xs, dummies, True, strict)  # linear in the dummies
        found = gradients_or_zeros("jvp", [g for g in back], dummies, v, create_graph, False)
    return detached(result, create_graph), detached(same_structure(result, found), create_graph)


def jacobian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Compute d out[i] / d x[j] as a tensor of shape (*out.shape, *x.shape), or tuples for several outputs or inputs.

    Takes one backward pass per element of the outputs. vectorize, strategy: accepted without effect.
    """
    with enable_grad():
        xs = inputs_of("jacobian", inputs, create_graph)
        result = func(*xs)
        table = []
        for out in outputs_of("jacobian", result):
            numbers = out.reshape(-1)
            rows = [
                gradients_or_zeros("jacobian", [numbers[i]], xs, [None], create_graph, strict)
                for i in range(out.numel())
            ]
            if not rows:
                rows_of = [filled(x.spec.replace(shape=(*out.shape, *x.shape)), 0) for x in xs]
            else:
                rows_of = [stack(column).reshape(*out.shape, *x.shape) for column, x in zip(zip(*rows), xs)]
            table.append(same_structure(inputs, rows_of))
    return detached(same_structure(result, table), create_graph)


def gradient_of(owner: str, func: Callable, strict: bool) -> Callable:
    """The function x -> gradient of func, on the tape. func must return a single element."""

    def gradient(*xs: Tensor) -> tuple:
        (out,) = outputs_of(owner, func(*xs))[:1]
        if out.numel() != 1:
            what = f"{owner}: the function must return a single element, got {out.numel()}"
            fail(GradError, what, "reduce it: .sum() or .mean()", output=out)
        return gradients_or_zeros(owner, [out.reshape(())], xs, [None], True, strict)

    return gradient


def hessian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Compute d2 out / d x[i] d x[j] of a function that returns a single element: a tensor of shape
    (*x.shape, *x.shape), or a tuple of tuples for several inputs.

    vectorize, outer_jacobian_strategy: accepted without effect.
    """
    gradient = gradient_of("hessian", func, strict)
    if isinstance(inputs, list | tuple):
        return jacobian(gradient, inputs, create_graph, strict)
    return jacobian(lambda x: gradient(x)[0], inputs, create_graph, strict)


def vhp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """Compute (func(*inputs), v times its Hessian); func returns a single element. v: like the inputs."""
    return hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """Compute (func(*inputs), its Hessian times v): equal to vhp by symmetry, and as cheap."""
    return hessian_product("hvp", func, inputs, v, create_graph, strict)


def hessian_product(owner: str, func: Callable, inputs: Any, v: Any, create_graph: bool, strict: bool) -> tuple:
    """(func(*inputs), v times its Hessian): shared by `vhp` and `hvp`."""
    result: list = []

    def kept(*xs: Tensor) -> Any:
        result[:] = [func(*xs)]
        return result[0]

    with enable_grad():
        xs = inputs_of(owner, inputs, create_graph)
        v = vector_for(owner, v, xs, "the inputs")
        found = gradients_or_zeros(owner, gradient_of(owner, kept, strict)(*xs), xs, v, create_graph, False)
    return detached(result[0], create_graph), detached(same_structure(inputs, found), create_graph)
