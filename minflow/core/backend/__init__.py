"""Array backends: which array library holds the numbers of a device, and how arrays come and go.

Kernels are written against an array namespace `xp`; here stands what differs between devices beyond that.
numpy serves the CPU; a backend for CUDA registers itself here the same way. Knows no Tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from ..base.errors import DeviceError
from ..spec import Device
from ..source_location import here


class Backend(NamedTuple):
    """xp: the array namespace.  from_host, to_host: copies from and to numpy.  count: how many devices there are."""

    xp: Any
    from_host: Callable
    to_host: Callable
    count: Callable[[], int]


BACKENDS: dict[str, Backend] = {"cpu": Backend(numpy, numpy.array, numpy.asarray, lambda: 1)}


def is_available(kind: str) -> bool:
    """Is there a backend for this device type, and at least one device? Never an error."""
    backend = BACKENDS.get(kind)
    try:
        return backend is not None and backend.count() > 0
    except Exception:  # a broken driver is no device
        return False


def backend_of(device: Device) -> Backend:
    """The backend that holds arrays of `device`, or a DeviceError that says what there is."""
    if not is_available(device.type):
        raise DeviceError(
            f"there is no device {device} here",
            values={"available": ", ".join(kind for kind in BACKENDS if is_available(kind))},
            where=here(),
            hint='device = "cuda" if flow.cuda.is_available() else "cpu"',
        )
    return BACKENDS[device.type]
