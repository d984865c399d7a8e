"""Attainable performance of the processor, and the fraction of it that the ops of a graph reach.

Read next: `introspection/graph/listing/roofline.py`, imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..views.text.reports import Report


def roofline(graph: Any = None) -> Report:
    """The roofline of this processor, with the calls of a graph's last timed step below it.

    A picture in a notebook, text in a terminal. graph: an nn.Graph that was called; without it, only the peaks. They
    are measured the first time, with the threads that kernels use, in about half a second: float32 operations per
    second of a large matrix product (GFLOP/s), and bytes read and written per second by copies (GB/s), in the cache and
    in memory. A call is placed at its operations per byte: left of the ridge it is limited by memory, right of it by
    arithmetic. Its operations are counted from shapes: a convolution by Winograd's algorithm, which needs fewer, may be
    above the roof.

    Source: Williams, Waterman & Patterson 2009, "Roofline". `graph.profile()` times the next call.
    """
    from ..introspection.graph.listing.roofline import roofline_report

    return roofline_report(graph)
