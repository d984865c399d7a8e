"""Passes that make a graph faster: layout and fusion. The machine runs what they make; NumPy can, too.

Read in this order: `nchw16c.py`, the operations on blocks of channels, then `layout.py`, which brings them in.
`copy_elision.py`, `norms.py`, `attention.py`, `gemm_epilogue.py` and `elementwise_fusion.py` are passes each by itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from ..passes import Pass, reduce_memory

# How a graph is built: for NumPy's kernels; for the machine's, node by node; for these, after the passes of FUSION.
PLAIN, KERNELS, FUSED = range(3)
FUSION: list[Pass] = []  # what the machine brings in while it is used: not exact, but for float32's rounding


class Setting:
    """Who runs the machine's kernels. eager: do operations outside of graphs?  graphs: which ones, "large", "all" or
    "none".  ready: are the kernels of this process there, for the large ones? None until one asks.
    """

    eager, graphs = False, "none" if os.environ.get("MINFLOW_MACHINE") == "0" else "large"
    ready: bool | None = None


def with_fusion(passes: Iterable[Pass]) -> list[Pass]:
    """The passes, with those of FUSION before `reduce_memory`, which orders what they make."""
    passes = list(passes)
    at = passes.index(reduce_memory) if reduce_memory in passes else len(passes)
    return [*passes[:at], *FUSION, *passes[at:]]
