"""What a graph shows of itself: the one class of this folder that `../graph.py` inherits.

Read next: `text.py` (print), `build_log.py` (`debug`), `accessors.py` (values), `reports.py` (records for views).
"""

from __future__ import annotations

from typing import Any

from ....views.records.structure import recorder
from .. import messages
from . import text
from .accessors import GraphAccessors
from .build_log import BuildLog, switch
from .reports import GraphReports, picture_record


class GraphListing(GraphAccessors, GraphReports):
    """The part of nn.Graph that prints; with those that give values and reports."""

    repr_style = "seed"  # or "v1": the newer names, and a line for each operation

    def debug(self, v_level: int = 0, *, ranks: Any = None, max_py_stack_depth: int = 2, **other: Any) -> None:
        """Say while the graph is built what happens: 0 phases and times, 1 modules, 2 operations, 3 also the lines of
        the program that they come from; -1 turns it off. See `listing/build_log.py`."""
        switch(self, v_level, ranks, max_py_stack_depth, other)

    def debugger(self, build: Any) -> BuildLog:
        return BuildLog(self, build)

    def _check_style(self, style: Any) -> None:
        if style not in text.STYLES:
            messages.unknown_style(self, style, text.STYLES)

    def __repr__(self: Any) -> str:
        return text.text(self, self.repr_style)


recorder(GraphListing)(picture_record)  # show(graph)
