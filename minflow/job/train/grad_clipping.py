"""Gradient clipping in a job: `grad_clipping=flow.optimizer.grad_clipping.by_global_norm(1.0)`.

Gradients are clipped after the division by the number of losses and after regularizers are added. Read next:
`optimizer.py`; for `.grad` in eager mode, `../../nn/utils/clip_grad.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.messages.suggestions import missing_names
from ...core.ops.elementwise import maximum, sqrt, square
from ...core.ops.reduce import sum
from ...core.ops.shape import cast
from ...core.spec import float16, float32
from ...core.tensor import Tensor
from .arguments import check_number


class ClipGradientConf:
    """Base class. A subclass implements `clipped(gradients)`, which returns the new gradients of all variables of one
    optimizer.
    """

    def clipped(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """The gradients, clipped."""
        raise NotImplementedError


def widened(g: Tensor) -> Tensor:
    """Cast float16 to float32, because its squares would overflow."""
    return cast(g, dtype=float32) if g.dtype is float16 else g


class by_global_norm(ClipGradientConf):
    """g * clip_norm / max(norm, clip_norm), norm = sqrt(sum of all squares of all gradients of the optimizer).

    clip_norm: more than 0. Gradients whose norm is at most that are unchanged bit for bit.
    Source: Pascanu, Mikolov & Bengio 2013 (arXiv:1211.5063), algorithm 1.
    """

    def __init__(self, clip_norm: float):
        self.clip_norm = check_number("grad_clipping.by_global_norm", "clip_norm", clip_norm, 0, open_low=True)

    def clipped(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        if not gradients:
            return []
        total, *others = [sum(square(widened(g)), axis=None, keepdims=False) for g in gradients]
        for part in others:
            total = total + part
        factor = self.clip_norm / maximum(sqrt(total), self.clip_norm)
        return [g * cast(factor, dtype=g.dtype) for g in gradients]

    def __repr__(self) -> str:
        return f"grad_clipping.by_global_norm({self.clip_norm:g})"


__all__ = ["ClipGradientConf", "by_global_norm"]
__getattr__ = missing_names("flow.optimizer.grad_clipping", globals())
