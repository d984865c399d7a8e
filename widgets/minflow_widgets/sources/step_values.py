"""The result of a step as names and values: loss, other values, learning rates.

Independent of curves. Read next: `../watch.py`, which calls it at each step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minflow.core.backend import is_array
from minflow.core.tensor import Tensor

from ..curve.arguments import as_json

MAX_AVERAGED_SIZE = 100_000  # larger results are not averaged
Numbers = tuple[tuple[str, ...], tuple[float, ...]]  # names and values of a step; a dict would cost more per step
NO_NUMBERS: Numbers = (), ()
LOSS_NAMES, LR_NAMES, LOSS_LR_NAMES = ("loss",), ("lr",), ("loss", "lr")
ARRAY_TYPES = np.ndarray | np.generic  # of the host


def scheduled_panels(optimizer) -> tuple[str, ...]:
    """The panel of the learning rate, if a schedule changes it, to reserve space from the start."""
    return ("lr",) if any("initial_lr" in group for group in optimizer.param_groups) else ()


def rate_values(lr: tuple[float, ...]) -> Numbers:
    """The learning rates of the groups; equal ones are merged."""
    if len(lr) == 1 or len(set(lr)) == 1:
        return LR_NAMES, lr[:1]
    return tuple([f"group {i} lr" for i in range(len(lr))]), lr


def hyperparameters(optimizer) -> dict:
    """The current hyperparameters of an optimizer's first group: its class, and values by name."""
    group = optimizer.param_groups[0] if optimizer.param_groups else {}
    return {"optimizer": type(optimizer).__name__} | {
        name: as_json(group.get(name, optimizer.defaults[name])) for name in optimizer.defaults if name != "params"
    }


def numbers_of(result, training: bool) -> Numbers:
    """The result of a step: a single number is the "loss"; in training, otherwise the mean of the first array."""
    array: Any = result.array if type(result) is Tensor else result
    if isinstance(array, ARRAY_TYPES) and array.size == 1 and array.dtype.kind in "fiub":  # the common case
        return LOSS_NAMES, (float(array.item()),)
    if isinstance(result, dict):
        entries = [(str(name), value) for name, value in result.items()]
    elif isinstance(result, list | tuple):
        entries = [("loss" if i == 0 else f"value{i}", value) for i, value in enumerate(result)]
    else:
        entries = [("loss", result)]
    numbers = {}
    for i, (name, value) in enumerate(entries):
        array = value.array if isinstance(value, Tensor) else value
        if not isinstance(array, ARRAY_TYPES | int | float) and not is_array(array):
            continue
        size = getattr(array, "size", 1)
        if size == 1:
            numbers[name] = float(array.item() if hasattr(array, "item") else array)
        elif training and i == 0 and 0 < size <= MAX_AVERAGED_SIZE and array.dtype.kind == "f":  # numbers have size 1
            numbers[name] = float(array.mean())
    return (tuple(numbers), tuple(numbers.values())) if numbers else NO_NUMBERS
