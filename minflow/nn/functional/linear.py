"""linear: x @ weight.T + bias, and its error messages for shapes. Read next: `../../core/ops/linalg.py`."""

from __future__ import annotations

import math
from typing import NoReturn

from ...core.base.errors import ShapeError
from ...core.ops.linalg import affine
from ...core.source_location import fail, name_of
from ...core.tensor import Tensor
from .arguments import check_tensor, same_dtype


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """out = input @ weight.T + bias.

    input: float (..., K).  weight: (M, K).  bias: (M,) or None.  Returns float (..., M).
    Raises ShapeError if K differs, DTypeError if the input holds integers.
    """
    return affine(*matched(input, weight, bias), bias)


def matched(input: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """Convert input and weight to one dtype; refuse shapes that do not fit, and a bias that enlarges the result."""
    if not isinstance(input, Tensor):
        check_tensor("linear", input)
    x, w = input.spec, weight.spec
    if w.ndim != 2 or not x.ndim or x.shape[-1] != w.shape[1]:
        explain_shapes(input, weight)
    if x.dtype is not w.dtype:
        input, weight = same_dtype("linear", input, weight)
    if bias is not None and bias.spec.shape != w.shape[:1]:
        have, small = [*x.shape[:-1], w.shape[0]], bias.spec.shape
        if len(small) > len(have) or any(n not in (1, m) for n, m in zip(small[::-1], have[::-1])):
            what = f"linear: the bias has shape {list(small)}, the result {have}"
            fail(ShapeError, what, "a bias of shape (out_features,)", bias=bias)
    return input, weight


def explain_shapes(input: Tensor, weight: Tensor) -> NoReturn:
    x, w, name = input.spec, weight.spec, name_of(weight, "weight")
    if w.ndim != 2:
        what = f"linear: {name} must be (out_features, in_features), got {w.ndim} axes"
        fail(ShapeError, what, "weight.unsqueeze(0) makes a row of a vector", input=input, weight=weight)
    out_features, in_features = w.shape
    if not x.ndim:
        what = f"linear: the input has no axes, {name} takes {in_features} features"
        fail(ShapeError, what, "x.reshape(1, -1) for a batch of one example", input=input, weight=weight)
    what = f"linear: the input has {x.shape[-1]} features (its last axis), {name} takes {in_features}"
    flat = next((k for k in range(x.ndim - 1) if math.prod(x.shape[k:]) == in_features), None)
    is_layer = bool(getattr(weight, "_label", ""))
    if flat == 0:
        layer = f"nn.Linear({x.shape[-1]}, {out_features}), or " if is_layer else ""
        hint = f"{layer}x.flatten(0), if all of it is one example: {' * '.join(map(str, x.shape))} = {in_features}"
    elif flat is not None:
        sizes = " * ".join(map(str, x.shape[flat:]))
        before = f"nn.Flatten({'' if flat == 1 else flat}) before this layer, or " if is_layer else ""
        hint = f"{before}x.flatten({flat}): {sizes} = {in_features}"
    elif x.ndim == 2 and x.shape[0] == in_features:
        hint = "x.T: the features are the last axis, the examples come first"
    elif x.shape[-1] == out_features and is_layer:
        hint = (
            f"nn.Linear({out_features}, {in_features}): in_features comes first - "
            "Linear stores its weight as (out_features, in_features)"
        )
    elif x.shape[-1] == out_features:
        hint = "weight.T - linear takes its weight as (out_features, in_features)"
    elif x.ndim > 2:
        total = math.prod(x.shape[1:])
        hint = f"x.flatten(1) has {total} features: nn.Linear({total}, {out_features}) would take them"
    else:
        hint = f"nn.Linear({x.shape[-1]}, {out_features})" if is_layer else "a weight of (out_features, in_features)"
    fail(ShapeError, what, hint, input=input, weight=weight)
