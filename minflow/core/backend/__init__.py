"""Array backends: the array library of each device type, and copies to and from the host.

Kernels are written for an array namespace `xp`; a Backend contains what else differs between devices.
numpy is the backend of the CPU; one for CUDA would register itself in BACKENDS. Must not import Tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from ..base.errors import DeviceError
from ..source_location import here
from ..spec import Device


class Backend(NamedTuple):
    """xp: the array namespace.  from_host, to_host: copy from and to numpy.  count: returns the number of devices."""

    xp: Any
    from_host: Callable
    to_host: Callable
    count: Callable[[], int]


BACKENDS: dict[str, Backend] = {"cpu": Backend(numpy, numpy.array, numpy.asarray, lambda: 1)}


def is_available(kind: str) -> bool:
    """True if this device type has a backend and at least one device. Never raises."""
    backend = BACKENDS.get(kind)
    try:
        return backend is not None and backend.count() > 0
    except Exception:  # a broken driver counts as no device
        return False


def backend_of(device: Device) -> Backend:
    """The backend of `device`. Raises DeviceError if it is not available."""
    if not is_available(device.type):
        raise DeviceError(
            f"there is no device {device} here",
            values={"available": ", ".join(kind for kind in BACKENDS if is_available(kind))},
            where=here(),
            hint='device = "cuda" if flow.cuda.is_available() else "cpu"',
        )
    return BACKENDS[device.type]
