"""The platform "cupy": NVIDIA's GPUs through CuPy. Its kernels are CUDA C, written in `sources/` or
generated from the formulas of ops, and products of cuBLAS.

All other ops run as the reference kernels, with `xp = cupy`. The package is imported when a program first asks for
the device type "cuda"; only `backend.py` imports CuPy, so that tests run the kernels without a GPU on another backend.
Read in this order: `device_code.py`, `backend.py`, `elementwise.py`, `fusion.py`, `kernels/`.
"""

from __future__ import annotations

import importlib.util

from ...core.kernels import REFERENCE, use_platforms
from .driver import install_cupy

PLATFORMS = "cupy", REFERENCE


def load() -> tuple[str, str]:
    """Register the backend and the kernels; return why there are none and what to try, if so."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed, which computes on GPUs", install_cupy()
    try:
        import cupy
    except Exception as error:  # a damaged installation raises what it likes
        return f"CuPy cannot be imported ({error})", install_cupy()
    if not cupy.cuda.is_available():
        return "CuPy finds no GPU, or no driver for it", "nvidia-smi, which lists the GPUs of a working driver"
    from . import backend as backend

    use_kernels()
    return "", ""


def use_kernels() -> None:
    """Register the kernels of this platform, and let the device type "cuda" try them first."""
    from . import kernels as kernels

    use_platforms("cuda", PLATFORMS)
