"""`flow.mps` and `flow.xpu`: GPUs of other makers. minflow has no backend for them, and says so instead of failing."""

from __future__ import annotations

from typing import Any

from ...core.messages.suggestions import name_hints as _name_hints


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0"""
    return 0


def synchronize(device: Any = None) -> None:
    """There is nothing to wait for."""


def empty_cache() -> None:
    """There is no memory to give back."""


def manual_seed(seed: int) -> None:
    """The generators are the same on all devices: see `flow.manual_seed`."""


manual_seed_all = manual_seed

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "manual_seed_all", "synchronize"]
__getattr__ = _name_hints("flow.mps", globals())
