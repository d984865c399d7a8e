"""What the processor can do at most, and how near to it the operations of a graph come.

Read next: `graph/listing/roofline.py`, imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..views.text.reports import Report


def roofline(graph: Any = None) -> Report:
    """The ceilings of this processor, and below them the calls of a graph's last timed step: a picture in a notebook,
    text in a terminal.

    graph: an nn.Graph that was called; without it, the ceilings alone. They are measured the first time, with the
    threads that kernels use, in about half a second: float32 operations a second of a large product of matrices
    (GFLOP/s), and bytes read and written by copies (GB/s), in the cache and in memory. A call stands at its operations
    for each byte: left of the bend reading and writing holds it up, right of it computing. Its operations are counted
    from shapes: a convolution by Winograd's algorithm, which needs fewer, may stand above the ceiling.

    Source: Williams, Waterman & Patterson 2009, "Roofline". `graph.profile()` has the next call timed.
    """
    from .graph.listing.roofline import roofline_report

    return roofline_report(graph)
