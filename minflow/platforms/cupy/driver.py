"""NVIDIA's driver of this computer, asked directly: CuPy need not be installed."""

from __future__ import annotations

import ctypes
import os

from ...core.base.optional import install_command

CUDA_13 = 13000  # as the driver counts versions of CUDA


def load_driver() -> ctypes.CDLL | None:
    """The library of the driver; None without one, or if it finds no GPU."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return None
    return None if driver.cuInit(0) else driver


def names_of_gpus() -> list[str]:
    """The names of the GPUs; none without a driver."""
    driver, count, names = load_driver(), ctypes.c_int(), []
    if driver is None or driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    for i in range(count.value):
        device, name = ctypes.c_int(), ctypes.create_string_buffer(128)
        driver.cuDeviceGet(ctypes.byref(device), i)
        driver.cuDeviceGetName(name, len(name), device)
        names.append(name.value.decode(errors="replace"))
    return names


def install_cupy() -> str:
    """The command that installs CuPy for the version of CUDA that the driver supports."""
    driver, version = load_driver(), ctypes.c_int(CUDA_13)
    if driver is not None:
        driver.cuDriverGetVersion(ctypes.byref(version))
    return install_command("cupy", "cuda13" if version.value >= CUDA_13 else "cuda12")
