"""The state of an explorer: open items, pass, instruction, search; and the data to draw it.

`act` handles a request of a front end, `picture` and `detail` return plain data for it. Malformed requests change
nothing. Read next: `details.py`; the widget is `minflow_widgets/explorer/explorer.py`.
"""

from __future__ import annotations

import threading
from typing import Any

from ....core.base.errors import GraphError
from ....core.base.locks import new_lock
from ....core.source_location import fail
from ....views.explorer.grid import Grid, view_of
from ....views.explorer.rows import Item, StepTree
from ....views.explorer.svg import legend_text, svg_of, text_of
from ....views.text.listing import clean, count
from .details import bytes_text, detail_of, instruction_detail, whole_detail
from .subject import Subject

LISTED = 12  # maximum number of search results that are listed


class ExplorerSession:
    """The state of one explorer of a Subject. stage: number of passes done, `subject.stages` for the graph that runs.

    opened: keys of open items. selected: key of the selected row, and its column. at: the instruction, or -1.
    last: the instruction that was shown last, where stepping continues.
    """

    def __init__(self, subject: Subject):
        self.subject = subject
        self.lock = new_lock(threading.RLock)  # requests arrive on the kernel's thread, which may not be the main one
        self.trees: dict[int, StepTree] = {}
        self.stage = subject.stages
        self.opened = self.tree.opened_first()
        self.selected: tuple[str, int] = ("", 0)
        self.at = self.last = -1
        self.results: list[Item] = []
        self.query = ""
        self.arranged()

    @property
    def tree(self) -> StepTree:
        record = self.subject.record(self.stage)
        if id(record) not in self.trees:
            self.trees[id(record)] = StepTree(record)
        return self.trees[id(record)]

    def prepare(self) -> None:
        """Make the trees of all passes, so that the first move of the slider is as fast as later ones."""
        with self.lock:
            now = self.stage
            for stage in range(self.subject.stages):
                self.stage = stage
                _ = self.tree
            self.stage = now

    def arranged(self) -> None:
        self.layout = Grid(self.tree, self.opened)

    # ---- requests ----------------------------------------------------------------------------------------------------

    def act(self, request: Any) -> bool:
        """Handle a request, such as {"do": "toggle", "id": 3, "stage": 5}. True if anything in the picture changed.

        With "forget", the results of the previous search are cleared.
        """
        with self.lock:
            try:
                if request.get("forget"):
                    self.results, self.query = [], ""
                verb = str(request.get("do", ""))
                method = getattr(self, f"do_{verb}", None) if verb.isidentifier() else None
                return bool(method and method(request))
            except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError):
                return False  # it refers to a picture that is no longer shown

    def item(self, request: dict) -> Item:
        if request.get("stage", self.stage) != self.stage:
            raise KeyError("of another pass")
        number = int(request["id"])
        if number < 0:
            raise IndexError(number)
        return self.tree.items[number]

    def do_toggle(self, request: dict) -> bool:
        item = self.item(request)
        if item.kind not in ("module", "fold"):
            return False
        if item.key in self.opened:
            self.opened.discard(item.key)
        else:
            self.opened.add(item.key)
        self.selected, self.at = (item.key, 0), -1
        self.arranged()
        return True

    def do_select(self, request: dict) -> bool:
        self.selected = self.item(request).key, min(max(int(request.get("column", 0)), 0), 2)
        self.at = -1
        return False

    def do_stage(self, request: dict) -> bool:
        stage = int(request["to"])
        if not 0 <= stage <= self.subject.stages or stage == self.stage:
            return False
        self.stage, self.results, self.query = stage, [], ""
        self.arranged()
        return True

    def do_step(self, request: dict) -> bool:
        steps = self.subject.instructions
        if not steps:
            return False
        self.at = self.last = min(max(int(request["to"]), 0), len(steps) - 1)
        if self.stage != self.subject.stages:
            return self.do_stage({"to": self.subject.stages})
        return False

    def do_search(self, request: dict) -> bool:
        self.query = str(request["text"])[:200]
        self.results = self.tree.search(self.query)
        return True

    def do_go(self, request: dict) -> bool:
        self.reveal(self.item(request))
        return True

    def reveal(self, item: Item) -> None:
        self.opened |= self.tree.reveal(item)
        self.selected, self.at = (item.key, 0), -1
        self.arranged()

    def open(self, name: Any) -> None:
        """Open the module, operation or parameter of that name, and everything that contains it.

        Raises GraphError if there is none.
        """
        if not isinstance(name, str):
            what = f"explorer.open: name must be a string, got {type(name).__name__}"
            fail(GraphError, what, 'explorer.open("model.fc1")', name=name)
        matches = self.tree.search(name)
        exact = [item for item in matches if name in (item.path, item.name)] or matches
        if not exact:
            what = f"nothing in {self.subject.title} is called {name!r}"
            fail(GraphError, what, "explorer.text lists the rows", name=name)
        item = exact[0]
        self.reveal(item)
        if item.kind in ("module", "fold"):
            self.opened.add(item.key)
            self.arranged()

    def do_first(self, request: dict) -> bool:
        """Restore the items that were open at first."""
        self.opened = self.tree.opened_first()
        self.arranged()
        return True

    # ---- output ------------------------------------------------------------------------------------------------------

    def picture(self, arena: bool = False) -> dict[str, Any]:
        """The drawing with its pass and search results. arena: True to include the bytes of the pass, whose plan may
        take a second.
        """
        with self.lock:
            counts, view = self.subject.counts(self.stage, arena), view_of(self.layout)
            return {
                "title": clean(self.subject.title),
                "stage": self.stage,
                "stages": self.subject.stages,
                "pass": self.pass_text(counts),
                "steps": len(self.subject.instructions),
                "views": views_text(self.subject),
                "query": self.query,
                "found": [[item.id, clean(item.name), clean(place_of(item))] for item in self.results[:LISTED]],
                "more": max(len(self.results) - LISTED, 0),
                "key": legend_text(view),
                **view,
            }

    def pass_text(self, c: Any) -> str:
        if not self.subject.runs:
            done = ""
        elif self.stage in (0, self.subject.stages):
            done = "as written" if not self.stage else "as it runs"
        else:
            counts = (c.new, "new +"), (c.gone, "gone −"), (c.changed, "changed ~"), (c.moved, "moved ↕")
            words = [f"{n:,} {word}" for n, word in counts if n]
            done = f"after {c.name}: " + (", ".join(words) or "nothing changed")
        size = "" if c.arena is None else f", {bytes_text(c.arena)} of memory"
        return f"{done}; {count(c.nodes, 'operation')}{size}".removeprefix("; ")

    def detail(self) -> dict[str, Any]:
        """The details of the selected instruction or row, and which row and column that is."""
        with self.lock:
            if self.at >= 0:
                detail = instruction_detail(self.subject, self.tree, self.at)
                leaf = self.tree.leaf_of[detail["node"]] if detail["node"] >= 0 else None
                row = self.layout.rows[self.layout.row_at[leaf.first]].item.id if leaf is not None else -1
                column = self.tree.record.nodes[detail["node"]].column if leaf is not None else 0
                return {"at": self.at, "last": self.at, "row": row, "column": column, **detail}
            key, column = self.selected
            row = next((row for row in self.layout.rows if row.item.key == key), None)
            if row is None:
                return {"at": -1, "last": self.last, "row": -1, "column": 0, **whole_detail(self.subject, self.tree)}
            detail = detail_of(self.subject, self.tree, row, column)
            return {"at": -1, "last": self.last, "row": row.item.id, "column": column, **detail}

    def svg(self) -> str:
        """The current picture as SVG."""
        with self.lock:
            text = self.pass_text(self.subject.counts(self.stage))
            note = f"{text}. {self.subject.note}".removesuffix(". ")
            return svg_of(view_of(self.layout), f"{self.subject.title}, {text}", note)

    def text(self) -> str:
        """The current picture as lines of text."""
        with self.lock:
            return text_of(self.layout, f"{self.subject.title}, {self.pass_text(self.subject.counts(self.stage))}")


def views_text(subject: Subject) -> str:
    """The reason why a recorded step has fewer instructions than operations; empty if it has as many."""
    if not subject.instructions:
        return ""
    calls = {step.name for step in subject.instructions}
    n = sum(node.name not in calls for node in subject.record(subject.stages).nodes if node.kind == "op")
    return f"{count(n, 'view')} run{'s' * (n == 1)} without one" if n else ""


def place_of(item: Item) -> str:
    """The path of the module that contains an item."""
    return item.path if item.kind != "module" else item.path.rpartition(".")[0]
