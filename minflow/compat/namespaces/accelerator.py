"""`flow.accelerator`: the GPU or other accelerator of this machine. minflow supports none."""

from __future__ import annotations

from typing import Any

from ...core.backend import backend_of, is_available as _available
from ...core.messages.suggestions import name_hints as _name_hints
from ...core.spec import Device


def is_available() -> bool:
    """Return True if tensors can be on a device other than the CPU."""
    return _available("cuda")


def current_accelerator(check_available: bool = False) -> Device | None:
    """Return the accelerator, or None."""
    return Device("cuda") if is_available() else None


def device_count() -> int:
    """Return the number of accelerators."""
    return int(is_available())


def current_device_index() -> int:
    """Return the index of the current accelerator. Raises DeviceError if there is none."""
    backend_of(Device("cuda"))
    return 0


def set_device_index(device: Any) -> None:
    """Make an accelerator current. Raises DeviceError if there is none."""
    backend_of(Device("cuda"))


def synchronize(device: Any = None) -> None:
    """Wait until the accelerator is idle; return at once if there is none."""


current_device_idx, set_device_idx = current_device_index, set_device_index

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "device_count",
    "is_available",
    "set_device_idx",
    "set_device_index",
    "synchronize",
]
__getattr__ = _name_hints("flow.accelerator", globals())
