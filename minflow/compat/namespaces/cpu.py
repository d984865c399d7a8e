"""`flow.cpu`: the CPU as one device, for programs that ask for it as they ask for a GPU."""

from __future__ import annotations

from typing import Any

from ...core.messages.suggestions import name_hints as _name_hints


def is_available() -> bool:
    """Return True."""
    return True


def device_count() -> int:
    """Return 1."""
    return 1


def current_device() -> str:
    """Return "cpu"."""
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Return at once: an op on the CPU has ended when its call returns."""


__all__ = ["current_device", "device_count", "is_available", "synchronize"]
__getattr__ = _name_hints("flow.cpu", globals())
