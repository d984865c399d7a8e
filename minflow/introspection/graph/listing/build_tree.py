"""The log of a build in a notebook: a tree that grows while the graph is built, and remains.

Independent of the text of the lines. Read next: `../../../views/renderers/debug_tree.py`, which draws it.
"""

from __future__ import annotations

import time
from typing import Any

from ....core.ir import Where
from ....diagnosis.notebook import LiveDisplay
from ....views.renderers.debug_lines import Line
from ....views.renderers.debug_tree import debug_bundle, live_bundle
from ....views.text.listing import count

UPDATE_INTERVAL = 0.25  # seconds


class BuildTree:
    """The lines of one build, displayed. Each method may raise an error of the display.

    calls: module call -> (index of its line, time at its start). updating: seconds spent on updates of the display,
    which are not part of the build time of a module.
    """

    def __init__(self, head: str, graph: str):
        self.head, self.graph, self.state = head, graph, ""
        self.lines: list[Line] = []
        self.calls: dict[Any, tuple[int, float]] = {}
        self.operations = 0
        self.updating = 0.0
        self.display = LiveDisplay(self.bundle, interval=UPDATE_INTERVAL)

    def bundle(self) -> dict[str, str]:
        if self.state:
            return debug_bundle(f"{self.head} {self.state}", self.lines, self.graph)
        modules = count(len(self.calls), "module")
        so_far = f"{modules}, {count(self.operations, 'operation')}" if self.operations else modules
        return live_bundle(f"{self.head} is being built", self.lines, f"{so_far} so far")

    def clock(self) -> float:
        return time.perf_counter() - self.updating

    def update(self, last: bool = False) -> None:
        start = time.perf_counter()
        self.display.update(last)
        self.updating += time.perf_counter() - start

    def add(self, indent: int, text: str, where: Where | None = None) -> None:
        """Add a line. where: place in the program that calls the module or the operation."""
        self.lines.append(Line(indent, text, where))
        self.operations += text.startswith("(OPERATOR")
        self.update()

    def enter(self, call: Any) -> None:
        """The latest line is that of this module call."""
        self.calls[call] = len(self.lines) - 1, self.clock()

    def leave(self, call: Any) -> None:
        """The module call has returned."""
        at, start = self.calls[call]
        self.lines[at] = self.lines[at]._replace(seconds=self.clock() - start)

    def fail(self, call: Any, error: str) -> None:
        """Add an error to the line of the module call that raised it; without one, to the line of the latest phase."""
        phases = [i for i, line in enumerate(self.lines) if not line.indent]
        at = self.calls[call][0] if call in self.calls else phases[-1]
        self.lines[at] = self.lines[at]._replace(error=error)

    def finish(self, state: str) -> None:
        """Show the whole tree. state: how the build ended."""
        if self.lines:
            self.state = state
            self.update(last=True)
