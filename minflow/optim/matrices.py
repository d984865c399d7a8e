"""Muon and Adafactor: steps that see a weight as a matrix. Their state or arithmetic is not that of an update rule, so
they are programs over tensors, which a graph refuses.

Read next: `optimizer.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ..core.base.errors import OptimError
from ..core.grad.modes import enable_grad, no_grad
from ..core.source_location import fail
from ..core.spec import cpu, finfo, float32
from ..core.tensor import Tensor
from .groups import Params, as_number, check_pair, check_range
from .optimizer import Optimizer, hyperparameters, rate_of

MAX_NEWTON_SCHULZ_STEPS = 99
RATE_FACTORS: dict[str, Callable[[int, int], float]] = {  # of a matrix of this shape
    "original": lambda rows, columns: math.sqrt(max(1, rows / columns)),
    "match_rms_adamw": lambda rows, columns: 0.2 * math.sqrt(max(rows, columns)),
}


class MatrixOptimizer(Optimizer):
    """Base class of optimizers whose step calls `_update(p, grad, state, group)` for each parameter."""

    _update: Callable[[Any, Tensor, dict[str, Any], Mapping[str, Any]], None]

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient, in place; see `Optimizer.step`."""
        loss = None
        if closure is not None:
            self._check_closure(closure)
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self._update(p, p.grad, self.state[p], group)
        return loss

    def _check_group(self, group: Mapping[str, Any]) -> None:
        super()._check_group(group)
        for p in group["params"]:
            if p.is_complex() or (isinstance(self, Muon) and p.ndim != 2):
                what = f"{type(self).__name__} does not update this parameter, which is {p.dtype.name} and {p.ndim}-d"
                fail(OptimError, what, "optim.AdamW for biases, embeddings and complex parameters", parameter=p)


class Muon(MatrixOptimizer):
    """p -= lr * c * orthogonal(m) for matrices, where m is a running mean of the gradient and c a factor of its shape.

    momentum: decay rate of m.  nesterov: look one step of momentum ahead.  weight_decay: decoupled,
    p -= lr * weight_decay * p.  ns_coefficients, ns_steps: the polynomial and the number of its iterations, in
    bfloat16, that bring all singular values close to 1.  eps: the smallest norm by which m is divided.  adjust_lr_fn:
    "original" (default), sqrt(max(1, rows / columns)); "match_rms_adamw", 0.2 * sqrt(max(rows, columns)), so that rates
    of AdamW can be kept.
    All parameters are 2-d; others belong to another optimizer.
    Source: Jordan et al. 2024, "Muon", with the factor of Liu et al. 2025 (arXiv:2502.16982), section 2.2.
    """

    _non_negative = ("lr", "weight_decay", "momentum")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ):
        super().__init__(params, hyperparameters(locals()))

    def _check_hyperparameters(self, group: Mapping[str, Any]) -> None:
        super()._check_hyperparameters(group)
        check_range("Muon", group, "ns_steps", 0, MAX_NEWTON_SCHULZ_STEPS)
        coefficients = group["ns_coefficients"]
        if not isinstance(coefficients, tuple | list) or len(coefficients) != 3:
            what = f"Muon: ns_coefficients must be three numbers, got {coefficients!r}"
            fail(OptimError, what, "ns_coefficients=(3.4445, -4.7750, 2.0315)", ns_coefficients=coefficients)
        if (name := group["adjust_lr_fn"]) not in (None, *RATE_FACTORS):
            what = f"Muon: adjust_lr_fn must be 'original', 'match_rms_adamw' or None, got {name!r}"
            fail(OptimError, what, 'adjust_lr_fn="match_rms_adamw"', adjust_lr_fn=name)

    def _update(self, p: Tensor, grad: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        lr, momentum = rate_of(self, group), group["momentum"]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = grad.new_zeros(grad.shape)
        mean = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        direction = grad.lerp(mean, momentum) if group["nesterov"] else mean
        direction = orthogonal(direction, group["ns_coefficients"], group["ns_steps"], group["eps"])
        p.mul_(1 - lr * group["weight_decay"])
        p.add_(direction.to(p.dtype), alpha=-lr * RATE_FACTORS[group["adjust_lr_fn"] or "original"](*p.shape))


def orthogonal(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Move all singular values of a matrix close to 1 by Newton-Schulz iterations, whose results are bfloat16."""
    a, b, c = coefficients
    x = rounded(matrix.T if matrix.shape[0] > matrix.shape[1] else matrix)
    x = rounded(x / rounded(x.norm()).clamp(min=eps))
    for _ in range(steps):
        gram = rounded(x @ x.T)
        x = rounded(a * x + rounded(b * gram + c * (gram @ gram)) @ x)
    return x.T if matrix.shape[0] > matrix.shape[1] else x


def rounded(x: Tensor) -> Tensor:
    """The nearest bfloat16 numbers, as float32."""
    return x.bfloat16().float()


class Adafactor(MatrixOptimizer):
    """p -= alpha * u / max(1, rms(u) / d), where u = grad / sqrt(v), and v is estimated from the running means of the
    squared gradient over rows and over columns, so that the state of a matrix is two vectors.

    lr: the largest relative step; alpha = min(lr, 1 / sqrt(t)) * max(eps[1], rms(p)) in step t.  beta2_decay: the means
    move by t**beta2_decay.  eps: the smallest sqrt(v), by default that of the dtype, and the smallest scale of a step.
    d: the largest rms of u.  weight_decay: decoupled, p -= lr * weight_decay * p.  maximize: ascend.
    foreach: accepted and ignored.
    Source: Shazeer & Stern 2018 (arXiv:1804.04235), algorithms 4 and 5, in PyTorch's form.
    """

    _non_negative = ("lr", "weight_decay")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ):
        super().__init__(params, hyperparameters(locals()))

    def _check_hyperparameters(self, group: Mapping[str, Any]) -> None:
        super()._check_hyperparameters(group)
        check_range("Adafactor", group, "beta2_decay", -math.inf, 0.0)
        check_range("Adafactor", group, "d", 1.0)
        eps = group["eps"]
        if isinstance(eps, tuple | list) and eps[:1] in ((None,), [None]):
            eps = (0.0, *eps[1:])
        for i, value in enumerate(check_pair("Adafactor", {"eps": eps}, "eps", "(None, 1e-3)")):
            check_range("Adafactor", {f"eps[{i}]": value}, f"eps[{i}]")

    def _update(self, p: Tensor, grad: Any, state: dict[str, Any], group: Mapping[str, Any]) -> None:
        if not state:
            state["step"] = grad.new_zeros((), dtype=float32, device=cpu)
            if grad.ndim > 1:
                *outer, rows, columns = grad.shape
                state["row_var"] = grad.new_zeros((*outer, rows, 1))
                state["col_var"] = grad.new_zeros((*outer, 1, columns))
            else:
                state["variance"] = grad.new_zeros(grad.shape)
        state["step"] += 1
        step, lr, (smallest, scale) = state["step"].item(), rate_of(self, group), group["eps"]
        smallest = finfo(p.dtype).eps if smallest is None else as_number("Adafactor", "eps[0]", smallest)
        weight, size = step ** group["beta2_decay"], max(p.numel(), 1) ** 0.5
        alpha = max(scale, p.norm().item() / size) * min(lr, 1 / step**0.5)
        grad = -grad if group["maximize"] else grad
        if group["weight_decay"]:
            p.mul_(1 - lr * group["weight_decay"])
        squares = grad * grad
        if grad.ndim > 1:
            rows = state["row_var"].lerp_(squares.mean(-1, keepdim=True), weight)
            columns = state["col_var"].lerp_(squares.mean(-2, keepdim=True), weight)
            variance = (rows @ columns) / rows.mean(-2, keepdim=True).clamp(min=smallest)
        else:
            variance = state["variance"].lerp_(squares, weight)
        update = variance.clamp(min=smallest * smallest).rsqrt() * grad
        p.add_(update, alpha=-alpha / max(1.0, update.norm().item() / (size * group["d"])))
