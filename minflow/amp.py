"""Mixed precision by its usual names. On a CPU float32 stays float32: the names are accepted and say so once."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from .core.base.errors import StateError
from .core.messages.near import name_hints as _name_hints
from .core.where import fail, warn

KEYS = {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"}  # of PyTorch's state


class autocast:
    """Accepted as a context or a decorator; without effect on a CPU, which has no faster half precision here."""

    def __init__(self, device_type: str = "cpu", dtype=None, enabled: bool = True, cache_enabled: bool | None = None):
        self.device_type, self.dtype, self.enabled = device_type, dtype, enabled

    def __enter__(self) -> autocast:
        if self.enabled:
            warn("autocast: float32 stays float32 on a CPU", "autocast(enabled=False) says so without this warning")
        return self

    def __exit__(self, *error) -> None:
        return None

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return wrapped


class GradScaler:
    """Accepted by its usual methods; gradients in float32 need no scaling, so the scale is 1.

    device: as PyTorch's torch.amp.GradScaler("cuda", ...); torch.cuda.amp.GradScaler begins with init_scale.
    """

    def __init__(self, device: str | float = "cuda", init_scale: float = 65536.0, growth_factor: float = 2.0,
                 backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True):
        self.enabled, self.device = enabled, device

    def scale(self, outputs):
        """The loss, as it is."""
        return outputs

    def unscale_(self, optimizer) -> None:
        """Gradients are not scaled."""

    def step(self, optimizer, *args, **kwargs):
        """`optimizer.step()`."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale=None) -> None:
        """The scale stays 1."""

    def get_scale(self) -> float:
        return 1.0

    def is_enabled(self) -> bool:
        return False

    def state_dict(self) -> dict:
        return {}

    def load_state_dict(self, state_dict: dict) -> None:
        """There is no state; that of PyTorch's scaler is passed over. Raises StateError for that of something else."""
        if not isinstance(state_dict, Mapping) or not KEYS.issuperset(state_dict):
            fail(StateError, "GradScaler.load_state_dict: this is no state of a GradScaler", "scaler.state_dict()",
                 state_dict=state_dict)


__all__ = ["GradScaler", "autocast"]
__getattr__ = _name_hints("flow.amp", globals())
