"""Weight averaging: AveragedModel, the schedule SWALR, and update_bn for batch norms.

Source: Izmailov et al. 2018, "Averaging weights leads to wider optima and better generalization" (arXiv:1803.05407).
Read next: `lr_scheduler/base.py`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core.base.errors import OptimError
from ..core.functions.creation import tensor
from ..core.grad.modes import no_grad
from ..core.messages.suggestions import name_hints as _name_hints
from ..core.source_location import fail
from ..core.spec import Device
from ..core.tensor import Tensor
from ..nn.module import Module
from .groups import check_range
from .lr_scheduler.base import LRScheduler, check_count
from .lr_scheduler.cycles import per_group
from .optimizer import Optimizer


def get_swa_avg_fn() -> Callable:
    """Return the function of the equally weighted average: average + (parameter - average) / (count + 1)."""
    return no_grad()(lambda average, parameter, count: average + (parameter - average) / (float(count) + 1))


def get_ema_avg_fn(decay: float = 0.999) -> Callable:
    """Return the function of the exponential moving average: decay * average + (1 - decay) * parameter."""
    check_range("get_ema_avg_fn", {"decay": decay}, "decay", 0.0, 1.0)
    return no_grad()(lambda average, parameter, count: decay * average + (1 - decay) * parameter)


def to_multi_avg_fn(function: Callable) -> Callable:
    """Convert an average function to one that updates lists in place: (averages, parameters, count)."""

    @no_grad()
    def update(averages: Sequence[Tensor], parameters: Sequence[Tensor], count: Any) -> None:
        for average, parameter in zip(averages, parameters):
            average.copy_(function(average, parameter, count))

    return update


def get_swa_multi_avg_fn() -> Callable:
    """get_swa_avg_fn for lists, in place."""
    return to_multi_avg_fn(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable:
    """get_ema_avg_fn for lists, in place."""
    return to_multi_avg_fn(get_ema_avg_fn(decay))


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's at each `update_parameters(model)`.

    avg_fn: (average, parameter, count) -> the new average; multi_avg_fn: the same for lists, in place.  use_buffers:
    average buffers too; else they are the model's latest ones. Calling it calls the copy; `n_averaged` counts updates.
    """

    def __init__(
        self,
        model: Module,
        device: Device | str | None = None,
        avg_fn: Callable | None = None,
        multi_avg_fn: Callable | None = None,
        use_buffers: bool = False,
    ):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            fail(OptimError, "AveragedModel: only one of avg_fn and multi_avg_fn may be given", "one of them")
        self.module = copy.deepcopy(model)
        self.register_buffer("n_averaged", tensor(0))
        self.update = multi_avg_fn or to_multi_avg_fn(avg_fn or get_swa_avg_fn())
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Add the model's parameters to the averages; the first call copies them."""
        ours: list[Tensor] = [*self.module.parameters()]
        theirs: list[Tensor] = [*model.parameters()]
        buffers = list(zip(self.module.buffers(), model.buffers()))
        if self.use_buffers:
            ours, theirs = [*ours, *[a for a, _ in buffers]], [*theirs, *[b for _, b in buffers]]
        if int(self.n_averaged.item()) == 0:
            for average, parameter in zip(ours, theirs):
                average.copy_(parameter)
        else:
            self.update(ours, theirs, self.n_averaged)
        if not self.use_buffers:
            for average, buffer in buffers:
                average.copy_(buffer)
        self.n_averaged += 1


class SWALR(LRScheduler):
    """Move from the current rate to `swa_lr` in `anneal_epochs` steps, by a cosine or linearly, and then stay there.

    swa_lr: one rate, or one for each group.  anneal_strategy: "cos" or "linear".
    """

    _names_in_files = {**LRScheduler._names_in_files, "goals": "_goals", "anneal_strategy": "_anneal_strategy"}
    _optional_in_state = ("verbose", "_goals")

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | Sequence[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ):
        self._goals, self.anneal_epochs = per_group(self, "swa_lr", swa_lr, optimizer), anneal_epochs
        self._anneal_strategy = anneal_strategy
        self._check_arguments()
        super().__init__(optimizer, last_epoch)

    def _check_arguments(self) -> None:
        check_count(self, "anneal_epochs", 0)
        if self._anneal_strategy not in ("cos", "linear"):
            what = f"SWALR: anneal_strategy must be 'cos' or 'linear', got {self._anneal_strategy!r}"
            fail(OptimError, what, "'cos' or 'linear'", anneal_strategy=self._anneal_strategy)

    def _share(self, step: int) -> float:
        """Fraction of the way to `swa_lr` at a step."""
        part = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2

    def get_lr(self) -> list[float]:
        step = max(self._step_count - 1, 0 if self.anneal_epochs else 1)
        before, now = self._share(step - 1), self._share(step)
        starts = [
            goal if before == 1 else (rate - before * goal) / (1 - before)
            for rate, goal in zip(self._current_lrs(), self._goals)
        ]
        return [goal * now + start * (1 - now) for goal, start in zip(self._goals, starts)]


@no_grad()
def update_bn(loader: Iterable, model: Module, device: Device | str | None = None) -> None:
    """Recompute the statistics of all batch norms, as the mean over the batches of `loader`.

    If a batch is a list or tuple, its first entry is the input.
    """
    norms = {part: part.momentum for part in model.modules() if hasattr(part, "running_mean")}
    if not norms:
        return
    training = model.training
    model.train()
    for part in norms:
        part.reset_running_stats()
        part.momentum = None
    for batch in loader:
        model(batch[0] if isinstance(batch, list | tuple) else batch)
    for part, momentum in norms.items():
        part.momentum = momentum
    model.train(training)


__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]
__getattr__ = _name_hints("flow.optim.swa_utils", globals())
