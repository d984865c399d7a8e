"""Adamax, NAdam, RAdam, SparseAdam, LAMB: Adam's relatives. Read next: `../core/ops/update_moments.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.base.errors import OptimError
from ..core.op import Op
from ..core.ops.update_moments import adamax, lamb, nadam, radam, sparse_adam
from ..core.source_location import fail
from .groups import Params, check_betas
from .optimizer import Optimizer, hyperparameters


class Moments(Optimizer):
    """Shared by Adam and its relatives: two running means, their decay rates in `betas`, `eps`, `weight_decay`."""

    _scalar_states: tuple[str, ...] = ("step",)
    _non_negative: tuple[str, ...] = ("lr", "eps", "weight_decay")

    def _check_hyperparameters(self, group: Mapping[str, Any]) -> None:
        super()._check_hyperparameters(group)
        check_betas(type(self).__name__, group)

    def _state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "step")

    def _common_attrs(self, group: Mapping[str, Any]) -> dict[str, Any]:
        """The attrs that all ops of this family take."""
        beta1, beta2 = group["betas"]
        return {
            "beta1": float(beta1),
            "beta2": float(beta2),
            "eps": float(group["eps"]),
            "weight_decay": float(group["weight_decay"]),
            "maximize": bool(group["maximize"]),
        }


class Adamax(Moments):
    """p -= lr / (1 - beta1**t) * m / u, where m is a running mean of the gradient and u = max(beta2 * u, |grad| + eps).

    weight_decay: L2, added to the gradient.  maximize: ascend.
    foreach, capturable, differentiable: accepted and ignored.
    Source: Kingma & Ba 2015 (arXiv:1412.6980), algorithm 2.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        super().__init__(params, hyperparameters(locals()))

    def _state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_inf", "step")

    def _update_rule(self, group: Mapping[str, Any]) -> tuple[Op, dict[str, Any]]:
        return adamax, self._common_attrs(group)


class NAdam(Moments):
    """Adam with Nesterov momentum: the step looks one update of the first moment ahead.

    momentum_decay: how fast the momentum rises from beta1 / 2 to beta1.  weight_decay: L2, added to the gradient;
    decoupled_weight_decay: decay the weights separately, p -= lr * weight_decay * p.  maximize: ascend.
    foreach, capturable, differentiable: accepted and ignored.
    Source: Dozat 2016, "Incorporating Nesterov momentum into Adam", section 4.
    """

    _scalar_states = ("mu_product", "step")
    _non_negative = (*Moments._non_negative, "momentum_decay")

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        super().__init__(params, hyperparameters(locals()))

    def _state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "mu_product", "step")

    def _initial_value(self, name: str, group: Mapping[str, Any]) -> float:
        return 1.0 if name == "mu_product" else 0.0

    def _update_rule(self, group: Mapping[str, Any]) -> tuple[Op, dict[str, Any]]:
        return nadam, self._common_attrs(group) | {
            "momentum_decay": float(group["momentum_decay"]),
            "decoupled": bool(group["decoupled_weight_decay"]),
        }


class RAdam(Moments):
    """Adam that ignores the second moment in the first steps, while its estimate is based on too few gradients.

    weight_decay: L2, added to the gradient; decoupled_weight_decay: decay the weights separately,
    p -= lr * weight_decay * p.  maximize: ascend.  foreach, capturable, differentiable: accepted and ignored.
    Source: Liu et al. 2020 (arXiv:1908.03265), algorithm 2.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        super().__init__(params, hyperparameters(locals()))

    def _update_rule(self, group: Mapping[str, Any]) -> tuple[Op, dict[str, Any]]:
        return radam, self._common_attrs(group) | {"decoupled": bool(group["decoupled_weight_decay"])}


class SparseAdam(Moments):
    """Adam for embeddings: rows whose gradient is 0, those that were not looked up, keep their values and moments.

    Gradients are dense, also with `sparse=True`, so a row that was looked up and has a gradient of 0 keeps them, too.
    maximize: ascend.  Source: Kingma & Ba 2015 (arXiv:1412.6980), algorithm 1, for the rows.
    """

    _non_negative = ("lr", "eps")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ):
        super().__init__(params, hyperparameters(locals()))

    def _update_rule(self, group: Mapping[str, Any]) -> tuple[Op, dict[str, Any]]:
        attrs = self._common_attrs({**group, "weight_decay": 0.0})
        return sparse_adam, {name: x for name, x in attrs.items() if name != "weight_decay"}


class LAMB(Moments):
    """Adam with steps scaled to the norm of the parameter: p -= lr * norm(p) / norm(a) * (a + weight_decay * p), where
    a is Adam's step. If a norm is 0, the quotient is 1.

    adam_w_mode: False adds weight_decay * p to the gradient instead.  do_bias_correction: correct the moments' bias
    towards zero.  maximize: ascend.  contiguous_params: accepted and ignored.  amsgrad is refused.
    Source: You et al. 2020 (arXiv:1904.00962), algorithm 2, in OneFlow's form: the decay is outside the norm.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        adam_w_mode: bool = True,
        do_bias_correction: bool = True,
        amsgrad: bool = False,
        contiguous_params: bool = False,
        maximize: bool = False,
    ):
        super().__init__(params, hyperparameters(locals()))

    def _check_hyperparameters(self, group: Mapping[str, Any]) -> None:
        super()._check_hyperparameters(group)
        if group["amsgrad"]:
            what = "LAMB: amsgrad is not supported"
            fail(OptimError, what, "amsgrad=False, or Adam(params, amsgrad=True)", amsgrad=group["amsgrad"])

    def _update_rule(self, group: Mapping[str, Any]) -> tuple[Op, dict[str, Any]]:
        return lamb, self._common_attrs(group) | {
            "decoupled": bool(group["adam_w_mode"]),
            "corrected": bool(group["do_bias_correction"]),
        }
