"""Warn about parameters that get gradients but are in no optimizer, because a layer was replaced or omitted.

Checked only after a backward that gave such a parameter a gradient. Read next: `optimizer.py`.
"""

from __future__ import annotations

import gc
from typing import Any

from ..core.messages.training_warnings import check_state
from ..core.messages.wrong_arguments import Unquoted
from ..core.mode import MODE
from ..core.source_location import warn
from ..nn.module import Module

STEPS_BEFORE_WARNING = 2  # consecutive steps with the same untracked parameters before a warning


def check_untracked(optimizer: Any) -> None:
    """Warn, once per set, about untracked parameters of a model if this optimizer holds other parameters of it.

    A model of which it holds none belongs to another optimizer, or to none: style transfer, for example, trains an
    image.
    """
    untracked = {id(p): p for r in check_state().untracked if (p := r()) is not None and p.requires_grad}
    if not untracked:
        return
    seen = optimizer._untracked.setdefault(frozenset(untracked), [0])
    seen[0] += 1
    if seen[0] != STEPS_BEFORE_WARNING and not MODE.get().trace:
        return
    mine = {id(p) for p in optimizer._all_parameters()}
    best: tuple[int, Module | None, list[str]] = 0, None, []
    for module in [x for x in gc.get_objects() if issubclass(type(x), Module)]:
        if "_modules" not in module.__dict__:
            continue
        named = list(module._named_tensors("_parameters", "", True, True))
        names = [name for name, p in named if id(p) in untracked]
        if len(names) > best[0] and any(id(p) in mine for _, p in named):
            best = len(names), module, names
    count, module, names = best
    if module is None:
        return
    held = {id(p) for p in module.parameters()}
    idle = [p for p in optimizer._all_parameters() if id(p) not in held and p.requires_grad and p.grad is None]
    name = type(optimizer).__name__
    replaced = f"; {len(idle)} that it holds are no longer in the model" if idle else ""
    warn(
        f"{name}.step: {count} parameters of {type(module).__name__} get gradients and are in no optimizer, "
        f"so they never train{replaced}",
        f"create the optimizer after the last change of the model: flow.optim.{name}(model.parameters(), ...); "
        "requires_grad_(False) on parameters that should not train",
        **{
            "left out": Unquoted(", ".join(names[:4]) + (", ..." if count > 4 else "")),
            "the first": next(iter(untracked.values())),
        },
    )
