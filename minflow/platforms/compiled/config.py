"""Settings of compiled kernels for this process. Read next: `switch.py`, which changes them; `policy.py`."""

from __future__ import annotations

import os

from ...compiler.passes import Pass
from ...core.kernels import HOST_PLATFORMS

COMPILED = "compiled"  # the name of this platform
FUSED = "fused"  # composite ops as one fused loop, in eager code: a graph fuses their parts with their neighbors
PLATFORMS = COMPILED, *HOST_PLATFORMS  # of a graph with compiled kernels, in order
EAGER_COMPILED = COMPILED, FUSED, *HOST_PLATFORMS  # of eager code with compiled kernels, in order


class CompiledKernelConfig:
    """graphs: which graphs use compiled kernels, "large", "all" or "none"; if "large", so do large calls of eager code.
    passes: the passes that create calls for them.  unavailable: why large graphs and calls of this process run NumPy's
    kernels; "" if they do not, and None until the first of them chooses.
    """

    graphs = "none" if os.environ.get("MINFLOW_MACHINE") == "0" else "large"
    passes: tuple[Pass, ...] = ()
    unavailable: str | None = None
