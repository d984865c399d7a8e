"""ZeRO: split the optimizer's work on a parameter over the ranks that all hold it: `config.enable_zero(True, stage=2)`.

The gradient of a parameter that is broadcast is a partial sum. It is boxed to a split along dim 0, each rank updates
its slice with its slice of the optimizer's states, and the new parameter is boxed to a broadcast. Rows of ops do that
by themselves, once the states are split. Source: Rajbhandari et al. 2020 (arXiv:1910.02054). Read next:
`../build.py`.
"""

from __future__ import annotations

from typing import NamedTuple

from ....core.base.placement import Placement, Sbp, broadcast, split
from ....core.context import current_context
from ....core.ir import Value
from ....core.ops.global_tensors import boxed, boxing
from ....core.source_location import warn
from ....core.spec import Spec
from ....core.tensor import Tensor


class Zero(NamedTuple):
    """Settings. stage: 1 to split the optimizer's states, 2 also the gradients, 3 also the parameters.

    min_size: the fewest elements of a slice; a smaller tensor stays whole.
    """

    stage: int
    min_size: int

    def split_sbp(self, spec: Spec) -> tuple[Sbp, ...] | None:
        """The sbp of a parameter's slices: it is split along its first axis of ranks that holds copies. None if dim 0
        cannot be split.
        """
        if spec.placement is None or spec.sbp is None or not spec.shape or split(0) in spec.sbp:
            return None
        axes = [i for i, n in enumerate(spec.placement.hierarchy) if spec.sbp[i] is broadcast and n > 1]
        count = spec.placement.hierarchy[axes[0]] if axes else 0
        if not axes or spec.shape[0] < count or spec.size // count < self.min_size:
            return None
        return tuple([split(0) if i == axes[0] else sbp for i, sbp in enumerate(spec.sbp)])

    def split_tensors(self, optimizers: list) -> dict[int, tuple[Placement, tuple[Sbp, ...]]]:
        """Split the states of optimizers, and the parameters at stage 3. Returns id of a parameter -> the distribution
        of its slices.
        """
        slices: dict[int, tuple[Placement, tuple[Sbp, ...]]] = {}
        parameters = [p for optimizer, _ in optimizers for p in optimizer._all_parameters()]
        for optimizer, _ in optimizers:
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.requires_grad and (sbp := self.split_sbp(p.spec)) is not None:
                        slices[id(p)] = p.spec.placement, sbp
                        states = optimizer._state_of(p, group) if optimizer._state_names(group) else {}
                        for tensor in states.values():
                            if tensor.spec is p.spec:
                                take_slice(tensor, sbp)
                        if self.stage == 3:
                            take_slice(p, sbp)
        if not any([p.spec.placement is not None for p in parameters]):
            hint = "module.to_global(placement, sbp=flow.sbp.broadcast)"
            warn("config.enable_zero has no effect: the graph trains no global tensors", hint)
        return slices


def take_slice(tensor: Tensor, sbp: tuple[Sbp, ...]) -> None:
    """Keep only this rank's slice of a tensor, in place."""
    assert tensor.spec.placement is not None
    tensor.data = boxed(tensor.detach(), tensor.spec.placement, sbp, current_context().rank).clone()
    tensor.grad = None


def split_gradient(symbol: Tensor, placement: Placement, sbp: tuple[Sbp, ...]) -> None:
    """Replace the gradient of a leaf by its slices, which are boxed from the partial sums themselves."""
    g = symbol._gradient
    assert g is not None and g._value is not None
    if (node := g._value.node).op is boxing and isinstance(x := node.inputs[0], Value):
        g = type(g)(None, x.spec, x, False)
    symbol._gradient = boxed(g, placement, sbp, current_context().rank)
