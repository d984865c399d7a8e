"""The result of a step, as names and numbers: its loss, other values, learning rates.

Knows nothing of curves. Read next: `../watch.py`, which asks at each step.
"""

from __future__ import annotations

import numpy as np

from minflow.core.tensor import Tensor

from ..curve.arguments import as_json

LARGE = 100_000  # values of a result, above which its mean is not taken
Numbers = tuple[tuple[str, ...], tuple[float, ...]]  # names and values of one step: no dict, to cost little at each
NOTHING: Numbers = (), ()
LOSS, LR, LOSS_LR = ("loss",), ("lr",), ("loss", "lr")
ARRAYS = np.ndarray | np.generic


def scheduled(optimizer) -> tuple[str, ...]:
    """The panel of the learning rate, where a schedule changes it: room is kept for it from the start."""
    return ("lr",) if any("initial_lr" in group for group in optimizer.param_groups) else ()


def rates(lr: tuple[float, ...]) -> Numbers:
    """The learning rates of the groups; several that are equal as one."""
    if len(lr) == 1 or len(set(lr)) == 1:
        return LR, lr[:1]
    return tuple([f"group {i} lr" for i in range(len(lr))]), lr


def hyperparameters(optimizer) -> dict:
    """What an optimizer was created with, as its first group has it now: its class, and numbers by name."""
    group = optimizer.param_groups[0] if optimizer.param_groups else {}
    return {"optimizer": type(optimizer).__name__} | {
        name: as_json(group.get(name, optimizer.defaults[name])) for name in optimizer.defaults if name != "params"
    }


def numbers_of(result, training: bool) -> Numbers:
    """The result of a step: one number is "loss"; of a training step the first array is, by its mean."""
    array = result.array if type(result) is Tensor else result
    if isinstance(array, ARRAYS) and array.size == 1 and array.dtype.kind in "fiub":  # the common case
        return LOSS, (float(array.item()),)
    if isinstance(result, dict):
        entries = [(str(name), value) for name, value in result.items()]
    elif isinstance(result, list | tuple):
        entries = [("loss" if i == 0 else f"value{i}", value) for i, value in enumerate(result)]
    else:
        entries = [("loss", result)]
    numbers = {}
    for i, (name, value) in enumerate(entries):
        array = value.array if isinstance(value, Tensor) else value
        if not isinstance(array, ARRAYS | int | float):
            continue
        size = getattr(array, "size", 1)
        if size == 1:
            numbers[name] = float(array.item() if hasattr(array, "item") else array)
        elif training and i == 0 and 0 < size <= LARGE and array.dtype.kind == "f":
            numbers[name] = float(array.mean())
    return (tuple(numbers), tuple(numbers.values())) if numbers else NOTHING
