"""`flow.accelerator`: the GPU or other device of this machine, whichever it is. There is none."""

from __future__ import annotations

from typing import Any

from ...core.backend import backend_of, is_available as _available
from ...core.messages.suggestions import name_hints as _name_hints
from ...core.spec import Device


def is_available() -> bool:
    """Can tensors live on something else than the CPU?"""
    return _available("cuda")


def current_accelerator(check_available: bool = False) -> Device | None:
    """The device, or None."""
    return Device("cuda") if is_available() else None


def device_count() -> int:
    """How many there are."""
    return int(is_available())


def current_device_index() -> int:
    """The number of the one in use. Raises DeviceError where there is none."""
    backend_of(Device("cuda"))
    return 0


def set_device_index(device: Any) -> None:
    """Use that device. Raises DeviceError where there is none."""
    backend_of(Device("cuda"))


def synchronize(device: Any = None) -> None:
    """Wait until the device has done its work; without one there is nothing to wait for."""


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
