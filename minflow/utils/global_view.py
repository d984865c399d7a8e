"""`utils.global_view`: convert nested lists, tuples and dicts of tensors, such as a state dict, to global or local."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy as _copy
from typing import Any

from ..core.base.errors import SbpError
from ..core.base.interrupts import ContextVarScope
from ..core.base.placement import Placement, Sbp, SbpLike
from ..core.context import world
from ..core.functions.creation import empty
from ..core.functions.fill import GLOBAL_MODE, Ranks
from ..core.messages.suggestions import name_hints as _name_hints
from ..core.source_location import fail
from ..core.tensor import Tensor
from ..distributed.collectives import exchange_objects


def to_global(input: Any, placement: Placement | None = None, sbp: Any = None, **kwargs: Any) -> Any:
    """Convert each tensor by `Tensor.to_global(placement, sbp, **kwargs)`; other values stay. All ranks call it.

    input: a tensor, or nested lists, tuples and dicts of them. Ranks outside of the placement may pass anything in
    place of local tensors: they take the structure from the first rank of the placement.
    sbp: also a function of (input, tensor), which returns the sbp of each tensor.
    """
    tensors: list[Tensor] = []
    mapped(tensors.append, input)
    if placement is not None and not any(x.is_global for x in tensors):
        input = with_structure_of_first(placement, input)
    choose = sbp if callable(sbp) and not isinstance(sbp, Sbp) else lambda input, tensor: sbp
    return mapped(lambda x: x.to_global(placement, choose(input, x), **kwargs), input)


def to_local(input: Any, *, copy: bool = False) -> Any:
    """Convert each global tensor to this rank's part of it; other values stay.

    input: a tensor, or nested lists, tuples and dicts of them.  copy: True if the parts must not share its memory.
    """
    return mapped(lambda x: x.to_local(copy=copy) if x.is_global else x, input)


class global_mode(ContextVarScope):
    """Run the block with new tensors that are global: `flow.zeros(2)` is that of this placement and sbp. A device that
    the program names for them has no effect.

    enabled: False for a block with local tensors, inside of another one.
    """

    variable = GLOBAL_MODE

    def __init__(self, enabled: bool, placement: Placement | None = None, sbp: SbpLike | None = None):
        super().__init__()
        self.ranks: Ranks | None = None
        if enabled and placement is not None and sbp is not None:
            self.ranks = Ranks(placement, sbp)
        elif enabled:
            hint = 'global_mode(True, placement=flow.placement("cpu", ranks=[0, 1]), sbp=flow.sbp.broadcast)'
            fail(SbpError, "global_mode needs a placement and an sbp", hint, placement=placement, sbp=sbp)

    def value(self) -> Any:
        return self.ranks


class current_global_mode:
    """The `global_mode` of the current block. is_enabled: True if new tensors are global.  placement, sbp: theirs."""

    def __init__(self) -> None:
        ranks = GLOBAL_MODE.get()
        self.is_enabled, self.placement, self.sbp = ranks is not None, None, None
        if ranks is not None:
            self.placement = ranks.placement
            self.sbp = (ranks.sbp,) if isinstance(ranks.sbp, Sbp) else tuple(ranks.sbp)


def mapped(function: Callable[[Tensor], Any], x: Any) -> Any:
    """Nested lists, tuples and dicts with `function(tensor)` in place of each tensor."""
    if isinstance(x, Tensor):
        return function(x)
    if isinstance(x, dict):
        result = _copy(x)  # of its class, such as OrderedDict, with its attributes
        result.update({key: mapped(function, value) for key, value in x.items()})
        return result
    if isinstance(x, list | tuple):
        items = [mapped(function, value) for value in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    return x


def with_structure_of_first(placement: Placement, input: Any) -> Any:
    """On ranks outside of the placement the input of its first rank, with empty tensors; on others their own input."""
    placement.check_world()
    among, first = world(), placement.order[0]
    if len(placement.order) == among.size:
        return input
    mine = (
        mapped(lambda x: empty((0,) * x.ndim, dtype=x.dtype, requires_grad=x.requires_grad), input)
        if among.rank == first
        else None
    )
    structure = exchange_objects(among, "to_global", mine)[first]
    return input if among.rank in placement.order else structure


__all__ = ["current_global_mode", "global_mode", "to_global", "to_local"]
__getattr__ = _name_hints("flow.utils.global_view", globals())
