"""Adam and AdamW. Read next: `../core/ops/update.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..core.op import Op
from ..core.ops.update import adam, adam_amsgrad
from .groups import Params
from .moments import Moments
from .optimizer import hyperparameters, with_defaults


class Adam(Moments):
    """p -= lr * m / (sqrt(v) + eps), where m and v are running means of the gradient and of its square.

    betas: decay rates of m and v, each in [0, 1).  eps: keeps the quotient finite.  weight_decay: L2, added to
    the gradient.  amsgrad: divide by the largest v so far.  maximize: ascend.  do_bias_correction: correct the moments'
    bias towards zero.  decoupled_weight_decay: decay the weights as in AdamW.  contiguous_params, foreach, fused,
    capturable, differentiable: accepted and ignored.
    Source: Kingma & Ba 2015 (arXiv:1412.6980), algorithm 1; AMSGrad: Reddi et al. 2018, algorithm 2.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        do_bias_correction: bool = True,
        maximize: bool = False,
        contiguous_params: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        decoupled_weight_decay: bool = False,
    ):
        super().__init__(params, hyperparameters(locals()))

    def _state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else []), "step")

    def _update_rule(self, group: Mapping[str, Any]) -> tuple[Op, dict[str, Any]]:
        return adam_amsgrad if group["amsgrad"] else adam, self._common_attrs(group) | {
            "decoupled": bool(group.get("decoupled_weight_decay", False)),
            "corrected": bool(group.get("do_bias_correction", True)),
        }


class AdamW(Adam):
    """Adam with weight decay decoupled from the gradient, p -= lr * weight_decay * p; see Adam.

    Source: Loshchilov & Hutter 2019 (arXiv:1711.05101), algorithm 2.
    """

    if not TYPE_CHECKING:  # type checkers see Adam's signature, which differs only in the defaults
        __init__ = with_defaults(Adam.__init__, weight_decay=1e-2, decoupled_weight_decay=True)
