"""Checks of a curve's arguments: options, numbers, and panel names.

Independent of curves. Read next: `loss_curve.py`.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from .series import last_word

X_AXES = ("step", "time")
CONTROL_METHODS = ("pause", "resume", "stop")  # methods of a control, called by the buttons


def check_options(total: float | None, epoch: float | None, x: str, control: Any = None) -> None:
    """Raise MinflowError for an invalid axis, step count or control."""
    from minflow.core.base.errors import MinflowError

    if not isinstance(x, str) or x not in X_AXES:
        raise MinflowError("LossCurve: x must be the axis", values={"got": repr(x)[:60]}, hint='x="step" or x="time"')
    for name, value in (("total", total), ("epoch", epoch)):
        number = isinstance(value, Real) and not isinstance(value, bool) and 0 < value < float("inf")
        if value is not None and not number:
            values = {"got": repr(value)[:60]}
            raise MinflowError(f"LossCurve: {name} must be a number of steps", values=values, hint=f"{name}=100")
    if control is not None and not any(callable(getattr(control, act, None)) for act in CONTROL_METHODS):
        hint = "the result of flow.start, or an object with pause(), resume(), stop() and state"
        values = {"got": type(control).__name__}
        raise MinflowError("LossCurve: control must have the methods of the buttons", values=values, hint=hint)


def check_name(name, config) -> dict[str, Any]:
    """Return the hyperparameters as JSON values. Raises MinflowError if name is not a string or config has no keys."""
    from minflow.core.base.errors import MinflowError

    if name is not None and not (isinstance(name, str) and name.strip()):
        values = {"got": repr(name)[:60]}
        raise MinflowError("LossCurve: name must be a string", values=values, hint='name="lr 0.1"')
    config = vars(config) if isinstance(config, Namespace) else config
    if config is not None and not isinstance(config, Mapping):
        values = {"got": repr(config)[:60]}
        raise MinflowError(
            "LossCurve: config must map names to hyperparameters", values=values, hint='config={"lr": 0.1}'
        )
    return {str(name): as_json(value) for name, value in (config or {}).items()}


def as_json(value: Any) -> Any:
    """A number or a string; anything else as its string."""
    if value is None or isinstance(value, bool | int | str):
        return value
    try:
        number = float(value)
        return number if number - number == 0.0 else str(number)
    except Exception:
        return str(value)[:200]


def panel_words(panels) -> tuple[str, ...]:
    """The last words of names, as of series: "loss" and ("val_loss",) both mean the panel "loss"."""
    from minflow.core.base.errors import MinflowError

    names = (panels,) if isinstance(panels, str) else tuple(panels) if isinstance(panels, Iterable) else (None,)
    if not all(isinstance(name, str) for name in names):
        values = {"got": repr(panels)[:60]}
        raise MinflowError("LossCurve: panels must be last words of names", values=values, hint='panels=("loss", "lr")')
    return tuple(dict.fromkeys(map(last_word, names)))


def as_number(name: str, value, owner: str = "LossCurve.add") -> float:
    """`float(value)`, or an error that describes the value."""
    try:
        if isinstance(value, np.ndarray | np.generic) and value.size == 1 and not isinstance(value, np.ma.MaskedArray):
            value = value.item()  # float() warns about arrays with axes, and drops imaginary parts
        return float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        from minflow.core.base.errors import DTypeError, MinflowError

        if isinstance(error, MinflowError) and "shape" not in dir(value):
            raise
        shape = getattr(value, "shape", None)
        got = f"shape {tuple(shape)}" if shape is not None else type(value).__name__
        got += " that no float can hold" if isinstance(error, OverflowError) else ""
        hint = f"{name}=value.mean()" if shape is not None else "a float, or a tensor with one element"
        raise DTypeError(
            f"{owner}: {name} must be one number, got {got}",
            hint=".add(step, loss=...), step as a number" if name == "step" else hint,
        ) from error
