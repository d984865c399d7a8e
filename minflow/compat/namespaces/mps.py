"""`flow.mps` and `flow.xpu`: Apple and Intel GPUs, for which minflow has no backend. Queries report no device."""

from __future__ import annotations

from typing import Any

from ...core.messages.suggestions import name_hints as _name_hints


def is_available() -> bool:
    """Return False."""
    return False


def device_count() -> int:
    """Return 0."""
    return 0


def synchronize(device: Any = None) -> None:
    """Return at once: there is no device."""


def empty_cache() -> None:
    """Do nothing: there is no device memory."""


def manual_seed(seed: int) -> None:
    """Do nothing: all devices share the generator of `flow.manual_seed`."""


manual_seed_all = manual_seed

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all", "synchronize"]
__getattr__ = _name_hints("flow.mps", globals())
