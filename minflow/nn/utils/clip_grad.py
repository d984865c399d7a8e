"""Gradient clipping: limit the gradients of parameters, between backward() and step().

Works in place on `.grad`, eagerly and while tracing. Read next: Pascanu, Mikolov & Bengio 2013, algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ...core.base.dtypes import HALF_DTYPES
from ...core.base.errors import NonFiniteError
from ...core.functionalize import apply_inplace
from ...core.functions import norm, stack, view_as_real
from ...core.functions.creation import tensor
from ...core.grad.modes import no_grad
from ...core.ops.elementwise import clamp, mul
from ...core.ops.reduce import sum
from ...core.source_location import fail, warn
from ...core.spec import float32
from ...core.tensor import Tensor

EPSILON = 1e-6  # keeps the quotient finite if all gradients are zero


def as_real(x: Tensor) -> Tensor:
    """x, or if it is complex a view of its two parts."""
    return view_as_real(x) if x.spec.dtype.is_complex else x


def gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    """The gradients of the parameters that have one."""
    each = [parameters] if isinstance(parameters, Tensor) else parameters
    return [g for g in [p.grad for p in each] if g is not None]


def get_total_norm(tensors: Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Tensor:
    """The norm of all tensors taken as one vector: a scalar tensor."""
    tensors, order = list(tensors), float(norm_type)
    if not tensors:
        return tensor(0.0)
    half = tensors[0].dtype if tensors[0].dtype in HALF_DTYPES and len({t.dtype for t in tensors}) == 1 else None
    with no_grad():
        # whose squares would overflow
        tensors = [t.to(float32) if t.dtype.rank < 2 or t.dtype in HALF_DTYPES else t for t in tensors]
        if order == math.inf:
            total = stack([t.abs().max() for t in tensors]).max()
        elif order == 2.0:
            total = stack([sum(t * t, axis=None, keepdims=False) for t in map(as_real, tensors)]).sum().sqrt()
        else:
            total = norm(stack([norm(t, order) for t in tensors]), order)
        total = total if half is None else total.to(half)
    if error_if_nonfinite and not math.isfinite(float(total)):
        hint = "flow.autograd.detect_anomaly() names the op where it began; a smaller learning rate"
        fail(NonFiniteError, f"the norm of the gradients is {float(total)}", hint, norm=total)
    return total


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """Scale all gradients by one factor, so that their total norm is at most max_norm.

    norm_type: the order, math.inf for the largest absolute element. Returns the norm before scaling: a scalar tensor.
    """
    grads = gradients(parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    scale(grads, max_norm, total)
    return total


def scale(grads: list[Tensor], max_norm: float, total: Tensor) -> None:
    with no_grad():
        factor = (float(max_norm) / (total + EPSILON)).clamp(max=1.0)
        factors = {dtype: factor.to(dtype) for dtype in {g.dtype for g in grads}}
        for g in grads:
            apply_inplace(mul, g, factors[g.dtype])


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Clamp every element of the gradients to [-clip_value, clip_value]."""
    with no_grad():
        for g in map(as_real, gradients(parameters)):
            apply_inplace(clamp, g, -float(clip_value), float(clip_value))


def clip_grads_with_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor) -> None:
    """Scale all gradients by max_norm / total_norm if that makes them smaller. total_norm: see get_total_norm."""
    scale(gradients(parameters), max_norm, total_norm)


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    """The old name of clip_grad_norm_."""
    warn("clip_grad_norm is the old name of clip_grad_norm_", "nn.utils.clip_grad_norm_(parameters, max_norm)")
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite)
