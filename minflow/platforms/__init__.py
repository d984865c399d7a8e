"""Platforms run ops on a device: each registers kernels. None may import another. Read next: `core/kernels.py`.

Compiled kernels are imported on first use, which takes longer than all other imports of minflow.
"""

from ..core.kernels import HOST_PLATFORMS, PlatformsBySize, use_platforms


def of_large_calls() -> tuple[str, ...]:
    """Platforms of large calls of eager code. The first call chooses them, for all threads and for good."""
    from .compiled.policy import eager_platforms

    return eager_platforms()


use_platforms("cpu", PlatformsBySize(HOST_PLATFORMS, of_large_calls))
