"""SGD: stochastic gradient descent. Read next: `../core/ops/update.py`, which defines its arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.base.errors import OptimError
from ..core.op import Op
from ..core.ops.update import sgd, sgd_dampened, sgd_momentum
from ..core.source_location import fail
from .groups import Params, as_number
from .optimizer import Optimizer, hyperparameters


class SGD(Optimizer):
    """p -= lr * grad; with momentum, p -= lr * buf where buf = momentum * buf + (1 - dampening) * grad.

    lr, momentum, weight_decay (L2, added to the gradient): at least 0.  nesterov: look one step of momentum ahead;
    requires momentum and no dampening.  maximize: ascend.  contiguous_params, foreach, fused,
    differentiable: accepted and ignored.
    Without momentum there is no state. Source: Sutskever et al. 2013, section 2, in the form that PyTorch uses.
    """

    _scalar_states = ("step",)
    _non_negative = ("lr", "momentum", "weight_decay")

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        maximize: bool = False,
        contiguous_params: bool = False,
        foreach: bool | None = None,
        fused: bool | None = None,
        differentiable: bool = False,
    ):
        super().__init__(params, hyperparameters(locals()))

    def _check_hyperparameters(self, group: Mapping[str, Any]) -> None:
        super()._check_hyperparameters(group)
        as_number("SGD", "dampening", group["dampening"])
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            what = f"nesterov needs momentum above 0 and no dampening, not {group['momentum']} and {group['dampening']}"
            hint = "SGD(params, lr=0.1, momentum=0.9, nesterov=True)"
            fail(OptimError, what, hint, momentum=group["momentum"], dampening=group["dampening"])

    def _state_names(self, group: Mapping[str, Any]) -> tuple[str, ...]:
        if not group["momentum"]:
            return ()
        return ("momentum_buffer", "step") if group["dampening"] else ("momentum_buffer",)

    def _update_rule(self, group: Mapping[str, Any]) -> tuple[Op, dict[str, Any]]:
        attrs = {"weight_decay": float(group["weight_decay"]), "maximize": bool(group["maximize"])}
        if not group["momentum"]:
            return sgd, attrs
        attrs["momentum"] = float(group["momentum"])
        if group["dampening"]:
            return sgd_dampened, attrs | {"dampening": float(group["dampening"])}
        return sgd_momentum, attrs | {"nesterov": bool(group["nesterov"])}

    def _state_dict_without_hooks(self) -> dict[str, Any]:
        """Return the entries without `step` and without buffers that no step has filled yet, as in PyTorch."""
        result = super()._state_dict_without_hooks()
        for number, state in list(result["state"].items()):
            step = state.pop("step", None)
            if step is not None and step.item() == 0:
                del result["state"][number]
        return result

    def _add_derived_state(self, group: Mapping[str, Any], passed: dict) -> dict:
        """Mark a saved buffer as filled."""
        return {**passed, "step": passed.get("step", 1)} if passed and "step" in self._state_names(group) else passed
