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
from ....views.explorer.rows import OPERATION, Item, StepTree
from ....views.explorer.svg import legend_text, svg_of, text_of
from ....views.records.step import StepRecord
from ....views.text.listing import clean, count
from .details import bytes_text, detail_of, instruction_detail, numbers_of, whole_detail
from .explorer_model import ExplorerModel

MAX_RESULTS = 12  # maximum number of search results that are listed
MAX_TREES = 16  # trees that are kept besides one for each pass


class ExplorerSession:
    """The state of one explorer. stage: number of passes done, `model.stages` for the graph that runs.

    opened: keys of open items. selected: key of the selected row, and its column. instruction: its index, or -1.
    last_instruction: the one that was shown last, where stepping continues.
    """

    def __init__(self, model: ExplorerModel):
        self.model = model
        self.lock = new_lock(threading.RLock)  # requests arrive on the kernel's thread, which may not be the main one
        self.trees: dict[int, StepTree] = {}
        self.shown: StepTree | None = None
        self.number = 0  # of the tree that is shown: its items have numbers of their own
        self.stage = model.stages
        self.opened: set[str] = set()
        self.opened = self.tree.initially_opened()
        self.selected: tuple[str, int] = ("", 0)
        self.instruction = self.last_instruction = -1
        self.results: list[Item] = []
        self.query = ""
        self.pages: dict[tuple[str, int, int, str], int] = {}  # selection, label of an array -> the page of its maps
        self.said = ""  # why the last request changed nothing, for the reader
        self.update_layout()

    @property
    def tree(self) -> StepTree:
        """The tree of this stage, with the composite operations that are open."""
        names = [key.removeprefix(OPERATION) for key in self.opened if key.startswith(OPERATION)]
        return self.tree_of(self.model.opened_record(self.stage, names))

    @property
    def closed_tree(self) -> StepTree:
        """The tree of this stage as it runs."""
        return self.tree_of(self.model.record(self.stage))

    def tree_of(self, record: StepRecord) -> StepTree:
        if id(record) not in self.trees:
            if len(self.trees) > self.model.stages + MAX_TREES:
                self.trees.clear()
            self.trees[id(record)] = StepTree(record)
        return self.trees[id(record)]

    def prepare(self) -> None:
        """Make the trees of all passes, so that the first move of the slider is as fast as later ones."""
        with self.lock:
            now = self.stage
            for stage in range(self.model.stages):
                self.stage = stage
                _ = self.tree
            self.stage = now

    def update_layout(self) -> None:
        tree = self.tree
        if tree is not self.shown:
            self.shown, self.number = tree, self.number + 1
        self.layout = Grid(tree, self.opened)

    # ---- requests ----------------------------------------------------------------------------------------------------

    def act(self, request: Any) -> bool:
        """Handle a request, such as {"do": "toggle", "id": 3, "stage": 5}. True if anything in the picture changed.

        With "forget", the results of the previous search are cleared.
        """
        with self.lock:
            self.said = ""
            try:
                if request.get("forget"):
                    self.results, self.query = [], ""
                verb = str(request.get("do", ""))
                method = getattr(self, f"do_{verb}", None) if verb.isidentifier() else None
                return bool(method and method(request))
            except (TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError):
                return False  # it refers to a picture that is no longer shown

    def item(self, request: dict) -> Item:
        if request.get("stage", self.stage) != self.stage or request.get("tree", self.number) != self.number:
            raise KeyError("of another pass, or of other open operations")
        number = int(request["id"])
        if number < 0:
            raise IndexError(number)
        return self.tree.items[number]

    def do_toggle(self, request: dict) -> bool:
        item = self.item(request)
        if not self.tree.can_open(item):
            return False
        if item.key in self.opened:
            self.opened.discard(item.key)
        else:
            self.opened.add(item.key)
        self.selected, self.instruction = (item.key, 0), -1
        self.update_layout()
        return True

    def do_select(self, request: dict) -> bool:
        self.selected = self.item(request).key, min(max(int(request.get("column", 0)), 0), 2)
        self.instruction = -1
        return False

    def do_leave(self, request: dict) -> bool:
        """Select nothing, so that the details are those of the whole step."""
        self.selected, self.instruction = ("", 0), -1
        return False

    def do_maps(self, request: dict) -> bool:
        """Show another page of the maps of an array, named by its label."""
        self.pages[(*self.selected, self.instruction, str(request["label"]))] = max(int(request["to"]), 0)
        return False

    def do_stage(self, request: dict) -> bool:
        stage = int(request["to"])
        if not 0 <= stage <= self.model.stages or stage == self.stage:
            return False
        self.stage, self.results, self.query = stage, [], ""
        self.update_layout()
        return True

    def do_step(self, request: dict) -> bool:
        steps = self.model.instructions
        if not steps:
            return False
        self.instruction = self.last_instruction = min(max(int(request["to"]), 0), len(steps) - 1)
        if self.stage != self.model.stages:
            return self.do_stage({"to": self.model.stages})
        return False

    def do_search(self, request: dict) -> bool:
        self.query = str(request["text"])[:200]
        self.results = self.tree.search(self.query)
        return True

    def do_go(self, request: dict) -> bool:
        self.reveal(self.item(request))
        return True

    def do_open(self, request: dict) -> bool:
        """Open by name, as `open` does; without a name like this the reader is told so."""
        try:
            self.open(str(request["name"])[:200])
        except GraphError as error:
            self.said = str(error).partition("\n")[0]
        return not self.said

    def reveal(self, item: Item, column: int = 0) -> None:
        self.opened |= self.tree.reveal(item)
        self.selected, self.instruction = (item.key, column), -1
        self.update_layout()

    def open(self, name: Any) -> None:
        """Open the module, operation or parameter of that name, and everything that contains it.

        An operation that the passes removed is shown in the graph as written. Raises GraphError if there is none.
        """
        if not isinstance(name, str):
            what = f"explorer.open: name must be a string, got {type(name).__name__}"
            fail(GraphError, what, 'explorer.open("model.fc1")', name=name)
        now = self.stage
        for stage in dict.fromkeys((now, 0)):
            self.do_stage({"to": stage})
            found = self.find(name)
            if found is not None:
                break
        else:
            self.do_stage({"to": now})
            what = f"nothing in {self.model.title} is called {name!r}"
            fail(GraphError, what, "explorer.text lists the rows", name=name)
        item, column = found
        self.reveal(item, column)
        if self.tree.can_open(item):
            self.opened.add(item.key)
            self.update_layout()

    def find(self, name: str) -> tuple[Item, int] | None:
        """The item of that name, and the column in which it is; the first one that contains it if none is equal."""
        for node, leaf in zip(self.tree.record.nodes, self.tree.leaf_of):
            if node.name == name and leaf is not None:
                return leaf, max(node.column, 0)
        matches = self.tree.search(name)
        exact = [item for item in matches if name in (item.path, item.name)] or matches
        return (exact[0], 0) if exact else None

    def do_first(self, request: dict) -> bool:
        """Restore the items that were open at first."""
        self.opened = self.tree.initially_opened()
        self.update_layout()
        return True

    # ---- output ------------------------------------------------------------------------------------------------------

    def picture(self, arena: bool = False) -> dict[str, Any]:
        """The drawing with its pass and search results. arena: True to include the bytes of the pass, whose plan may
        take a second.
        """
        with self.lock:
            counts, view = self.model.stage_counts(self.stage, arena), view_of(self.layout)
            return {
                "title": clean(self.model.title),
                "stage": self.stage,
                "tree": self.number,
                "stages": self.model.stages,
                "pass": self.pass_text(counts),
                "steps": len(self.model.instructions),
                "views": skipped_views_text(self.model),
                "query": self.query,
                "found": [[item.id, clean(item.name), clean(module_path(item))] for item in self.results[:MAX_RESULTS]],
                "more": max(len(self.results) - MAX_RESULTS, 0),
                "key": legend_text(view),
                **view,
            }

    def pass_text(self, c: Any) -> str:
        if not self.model.runs:
            done = ""
        elif self.stage in (0, self.model.stages):
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
            if self.instruction >= 0:
                tree = self.closed_tree
                detail = instruction_detail(self.model, tree, self.instruction)
                leaf = tree.leaf_of[detail["node"]] if detail["node"] >= 0 else None
                at = self.row_id(leaf) if leaf is not None else -1
                column = tree.record.nodes[detail["node"]].column if leaf is not None else 0
                return self.complete(detail, self.instruction, self.instruction, at, column)
            key, column = self.selected
            row = next((row for row in self.layout.rows if row.item.key == key), None)
            if row is None:
                return self.complete(whole_detail(self.model, self.closed_tree), -1, self.last_instruction, -1, 0)
            detail = detail_of(self.model, self.tree, row, column)
            return self.complete(detail, -1, self.last_instruction, row.item.id, column)

    def complete(self, detail: dict[str, Any], at: int, last: int, row: int, column: int) -> dict[str, Any]:
        """The details with the selection, and with the arrays in the form that a page draws."""
        where = (*self.selected, self.instruction)
        arrays = [numbers_of(label, s, self.pages.get((*where, label), 0)) for label, s in detail["arrays"]]
        return {"at": at, "last": last, "row": row, "column": column, **detail, "arrays": arrays}

    def row_id(self, leaf: Item) -> int:
        """The row that shows a leaf of the closed tree: its own, the head of an operation that is open, or that of a
        closed module around it.
        """
        item = self.tree.by_key.get(leaf.key)
        if item is None:
            return -1
        shown = [row.item for row in self.layout.rows]
        return (item if item in shown else shown[self.layout.row_at[item.first]]).id

    def svg(self) -> str:
        """The current picture as SVG."""
        with self.lock:
            text = self.pass_text(self.model.stage_counts(self.stage))
            note = f"{text}. {self.model.note}".removesuffix(". ")
            return svg_of(view_of(self.layout), f"{self.model.title}, {text}", note)

    def text(self) -> str:
        """The current picture as lines of text."""
        with self.lock:
            return text_of(self.layout, f"{self.model.title}, {self.pass_text(self.model.stage_counts(self.stage))}")


def skipped_views_text(model: ExplorerModel) -> str:
    """The reason why a recorded step has fewer instructions than operations; empty if it has as many."""
    if not model.instructions:
        return ""
    calls = {step.name for step in model.instructions}
    n = sum(node.name not in calls for node in model.record(model.stages).nodes if node.kind == "op")
    return f"{count(n, 'view')} run{'s' * (n == 1)} without one" if n else ""


def module_path(item: Item) -> str:
    """The path of the module that contains an item."""
    return item.path if item.kind != "module" else item.path.rpartition(".")[0]
