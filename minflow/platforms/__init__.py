"""Platforms run ops on a device: each registers kernels. None may import another. Read next: `core/kernels.py`.

Compiled kernels and the platform of GPUs are imported on first use: either takes longer than all other imports of
minflow.
"""

from ..core.backend import LOADERS
from ..core.kernels import HOST_PLATFORMS, PlatformsBySize, use_platforms


def of_large_calls() -> tuple[str, ...]:
    """Platforms of large calls of eager code. The first call chooses them, for all threads and for good."""
    from .compiled.policy import eager_platforms

    return eager_platforms()


def load_cupy() -> tuple[str, str]:
    """Register the backend and the kernels of GPUs; return why there are none and what to try, if so."""
    from .cupy import load

    return load()


def load_meta() -> tuple[str, str]:
    """Register the device without elements."""
    from .meta import load

    return load()


use_platforms("cpu", PlatformsBySize(HOST_PLATFORMS, of_large_calls))
LOADERS.update(cuda=load_cupy, meta=load_meta)
