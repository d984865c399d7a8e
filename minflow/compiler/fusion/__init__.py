"""Fusion and layout passes: they replace groups of nodes by one node that is faster to run.

The compiled platform has kernels for the new ops; NumPy runs them too, as the reference. Passes must not depend on any
platform.

Read in this order: `nchw16c.py`, ops on images in blocks of channels, then `layout.py`, which inserts them.
`copy_elision.py`, `norms.py`, `attention.py`, `gemm_epilogue.py` and `elementwise_fusion.py` are independent passes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from ..passes import Pass, reduce_memory

# How a graph is built: for NumPy kernels; for compiled kernels, node by node; for compiled kernels, after the FUSION
# passes.
PLAIN, KERNELS, FUSED = range(3)
# Passes that the compiled platform registers while it is on: not exact, but within float32 rounding.
FUSION: list[Pass] = []


class Setting:
    """Policy of compiled kernels for this process.

    eager: True if ops outside of graphs use compiled kernels.  graphs: which graphs use them: "large", "all" or "none".
    ready: True if the kernels are loaded in this process; None until a large graph asks for them.
    """

    eager, graphs = False, "none" if os.environ.get("MINFLOW_MACHINE") == "0" else "large"
    ready: bool | None = None


def with_fusion(passes: Iterable[Pass]) -> list[Pass]:
    """Insert the passes of FUSION before `reduce_memory`, which orders the nodes that they create."""
    passes = list(passes)
    at = passes.index(reduce_memory) if reduce_memory in passes else len(passes)
    return [*passes[:at], *FUSION, *passes[at:]]
