"""RMSprop, Adagrad, Adadelta, Rprop, ASGD: steps that adapt to the past gradients of each element.

Read next: `../core/ops/update_adaptive.py`, which defines their arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.base.errors import OptimError
from ..core.op import Op
from ..core.ops import update_adaptive as ops
from ..core.source_location import fail
from .groups import Params, as_number, check_pair, check_range
from .optimizer import Optimizer, hyperparameters


def common_attrs(group: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the attrs of a rule: these hyperparameters as numbers, and maximize."""
    return {**{name: float(group[name]) for name in names}, "maximize": bool(group["maximize"])}


class RMSprop(Optimizer):
    """p -= lr * grad / (sqrt(s) + eps), where s is a running mean of the squared gradient.

    alpha: decay rate of s.  momentum: if above 0, quotients accumulate as buf = momentum * buf + quotient, and
    p -= lr * buf.  centered: use the variance s - mean(grad)**2 under the root.  weight_decay: L2, added to the
    gradient.  maximize: ascend.  contiguous_params, foreach, capturable, differentiable: accepted and ignored.
    Source: Tieleman & Hinton 2012, lecture 6.5; centered: Graves 2013 (arXiv:1308.0850), eq. 38.
    """

    _scalar_states = ("step",)
    _non_negative = ("lr", "alpha", "eps", "weight_decay", "momentum")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        contiguous_params: bool = False,
    ):
        super().__init__(params, hyperparameters(locals()))

    def _state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        means = ["grad_avg"] if group["centered"] else []
        return ("square_avg", *means, *(["momentum_buffer"] if group["momentum"] else []), "step")

    def _update_rule(self, group: Mapping[str, Any]) -> tuple[Op, dict[str, Any]]:
        attrs = common_attrs(group, "alpha", "eps", "weight_decay")
        if not group["momentum"]:
            return ops.rmsprop_centered if group["centered"] else ops.rmsprop, attrs
        attrs["momentum"] = float(group["momentum"])
        return ops.rmsprop_centered_momentum if group["centered"] else ops.rmsprop_momentum, attrs


class Adagrad(Optimizer):
    """p -= lr / (1 + t * lr_decay) * grad / (sqrt(sum) + eps), where sum accumulates all squared gradients and t counts
    the previous steps.

    initial_accumulator_value: initial value of sum.  weight_decay: L2, added to the gradient.  maximize: ascend.
    contiguous_params, foreach, fused, differentiable: accepted and ignored.
    Source: Duchi, Hazan & Singer 2011, section 1.
    """

    _scalar_states = ("step",)
    _non_negative = ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        contiguous_params: bool = False,
    ):
        super().__init__(params, hyperparameters(locals()))

    def _state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("sum", "step")

    def _initial_value(self, name: str, group: Mapping[str, Any]) -> float:
        return float(group["initial_accumulator_value"]) if name == "sum" else 0.0

    def _update_rule(self, group: Mapping[str, Any]) -> tuple[Op, dict[str, Any]]:
        return ops.adagrad, common_attrs(group, "lr_decay", "eps", "weight_decay")


class Adadelta(Optimizer):
    """p -= lr * d, where d = grad * sqrt(u + eps) / sqrt(s + eps); s and u are running means of the squares of the
    gradient and of d, so that lr has no unit.

    rho: decay rate of both, from 0 to 1.  weight_decay: L2, added to the gradient.  maximize: ascend.
    foreach, capturable, differentiable: accepted and ignored.
    Source: Zeiler 2012 (arXiv:1212.5701), algorithm 1.
    """

    _scalar_states = ("step",)
    _non_negative = ("lr", "eps", "weight_decay")

    def __init__(
        self,
        params: Params,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
        contiguous_params: bool = False,
    ):
        super().__init__(params, hyperparameters(locals()))

    def _check_hyperparameters(self, group: Mapping[str, Any]) -> None:
        super()._check_hyperparameters(group)
        check_range("Adadelta", group, "rho", 0.0, 1.0)

    def _state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("square_avg", "acc_delta", "step")

    def _update_rule(self, group: Mapping[str, Any]) -> tuple[Op, dict[str, Any]]:
        return ops.adadelta, common_attrs(group, "rho", "eps", "weight_decay")


class Rprop(Optimizer):
    """p -= sign(grad) * size, for full-batch training.

    lr: the initial size for each element.  etas: a size is multiplied by the second if the gradient keeps its sign, and
    by the first, with the step skipped, if the sign changes.  step_sizes: the smallest and the largest size.
    maximize: ascend.  foreach, capturable, differentiable: accepted and ignored.
    Source: Riedmiller & Braun 1993, section 3.
    """

    _scalar_states = ("step",)

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        super().__init__(params, hyperparameters(locals()))

    def _check_hyperparameters(self, group: Mapping[str, Any]) -> None:
        super()._check_hyperparameters(group)
        check_pair("Rprop", group, "step_sizes", "(1e-6, 50)")
        down, up = check_pair("Rprop", group, "etas", "(0.5, 1.2)")
        if not 0 < down < 1 < up:
            what = f"Rprop: etas must be below 1 and above 1, got {down:g} and {up:g}"
            fail(OptimError, what, "etas=(0.5, 1.2)", etas=group["etas"])

    def _state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("prev", "step_size", "step")

    def _initial_value(self, name: str, group: Mapping[str, Any]) -> float:
        return float(group["lr"]) if name == "step_size" else 0.0

    def _update_rule(self, group: Mapping[str, Any]) -> tuple[Op, dict[str, Any]]:
        (down, up), (smallest, largest) = group["etas"], group["step_sizes"]
        attrs = {"etaminus": float(down), "etaplus": float(up), "smallest": float(smallest), "largest": float(largest)}
        return ops.rprop, attrs | common_attrs(group)


class ASGD(Optimizer):
    """SGD with the decreasing rate eta = lr / (1 + lambd * lr * t)**alpha in step t; `state[p]["ax"]` is the mean of
    all p after t0 steps.

    lambd: also the decay of p, p *= 1 - lambd * eta.  weight_decay: L2, added to the gradient.  maximize: ascend.
    foreach, capturable, differentiable: accepted and ignored.
    Source: Polyak & Juditsky 1992, section 2; Bottou 2010, section 5.
    """

    _scalar_states = ("mu", "eta", "step")
    _non_negative = ("lr", "weight_decay")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        super().__init__(params, hyperparameters(locals()))

    def _check_hyperparameters(self, group: Mapping[str, Any]) -> None:
        super()._check_hyperparameters(group)
        for name in ("lambd", "alpha", "t0"):
            as_number("ASGD", name, group[name])

    def _state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("ax", "mu", "eta", "step")

    def _initial_value(self, name: str, group: Mapping[str, Any]) -> float:
        return {"mu": 1.0, "eta": float(group["lr"])}.get(name, 0.0)

    def _update_rule(self, group: Mapping[str, Any]) -> tuple[Op, dict[str, Any]]:
        return ops.asgd, common_attrs(group, "lambd", "alpha", "t0", "weight_decay")
