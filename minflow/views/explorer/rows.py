"""A training step as a tree that opens module by module: the rows of the explorer's picture, and their folds.

Pure functions of a StepRecord, with loops instead of recursion. A leaf of the tree is a forward operation with its
gradients, a parameter with its update and states, or an input; a row of the picture is a range of leaves.
Read next: `grid.py`, the geometry of rows.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import takewhile

import numpy as np

from ..draw.fold import MAX_BOXES, scope_levels
from ..records.graph import module_name
from ..records.opening import Whole
from ..records.step import StepRecord

MAX_UNFOLDED_CHILDREN = 8  # modules with at most this many children are not searched for repeats
MAX_PERIOD = 8  # longest repeated pattern that is searched for
OPERATION = "op "  # prefix of the keys of operations; a composite one has the same key when it is open


class Item:
    """A module, an operation, a parameter, an input or output, or a fold of neighbors. [first, last): its leaves."""

    __slots__ = (
        "key",
        "name",
        "kind",
        "label",
        "path",
        "parent",
        "children",
        "folds",
        "nodes",
        "states",
        "first",
        "last",
        "id",
    )

    def __init__(self, key: str, name: str, kind: str, label: str, path: str, parent: Item | None):
        self.key, self.name, self.kind, self.label, self.path, self.parent = key, name, kind, label, path, parent
        self.children: list[Item] = []
        self.folds: list[Item] | None = None  # the children as shown
        self.nodes: list[int] = []
        self.states: list[int] = []
        self.first = self.last = self.id = -1


class Reads:
    """All uses of values, as arrays, so that a click in a large graph is fast: values[k] goes from leaf source[k] to
    leaf target[k].

    source: -1 if the source is not shown.  source_column: -1 for a state.  Operations that a pass removed are left out.
    """

    def __init__(self, tree: StepTree):
        record = tree.record
        place = [leaf.first if leaf is not None else -1 for leaf in tree.leaf_of]
        rows: list[tuple[int, int, int, int]] = []
        self.values: list[tuple[int, int]] = []
        for i, node in enumerate(record.nodes):
            for x in record.reads[i] if node.mark != "gone" else ():
                if x is not None:
                    rows.append((place[x[0]], place[i], record.nodes[x[0]].column, node.column))
                    self.values.append(x)
        self.source, self.target, self.source_column, self.column = np.array(rows, dtype="int64").reshape(-1, 4).T
        self.nodes: list[list[int]] = []  # for each column, ordered by leaf
        for column in range(3):
            own = [i for i, n in enumerate(record.nodes) if n.column == column and n.mark != "gone"]
            self.nodes.append(sorted(own, key=place.__getitem__))
        self.places = [[place[i] for i in nodes] for nodes in self.nodes]

    def nodes_between(self, column: int, first: int, last: int) -> list[int]:
        """The operations of a column in leaves [first, last), ordered by leaf."""
        places = self.places[column]
        return self.nodes[column][bisect_left(places, first) : bisect_left(places, last)]

    def values_of(self, mask: np.ndarray) -> list[tuple[int, int]]:
        """The values of the selected uses, in order, without duplicates."""
        return list(dict.fromkeys([self.values[k] for k in np.flatnonzero(mask).tolist()]))


class StepTree:
    """The tree of a StepRecord. root: its rows are `visible_children(root)`.  leaf_of: node -> its leaf.

    leaves: in order.
    """

    def __init__(self, record: StepRecord):
        self.record = record
        self.root = Item("", "", "module", "", "", None)
        self.items: list[Item] = []
        self.by_path: dict[str, Item] = {}  # the first item of each module
        self.by_key: dict[str, Item] = {}
        self.leaf_of: list[Item | None] = [None] * len(record.nodes)
        self.leaf_of_state: dict[int, Item] = {}  # in order of placement
        self.output_rows: dict[Item, tuple[int, int]] = {}
        self.place_forward()
        self.place_states()
        self.place_gradients()
        self.place_updates()
        self.place_ends()
        self.number_leaves()
        self.reads = Reads(self)

    # ---- building ----------------------------------------------------------------------------------------------------

    def add_item(
        self, key: str, name: str, kind: str, label: str, path: str, parent: Item, at: int | None = None
    ) -> Item:
        while key in self.by_key:
            key += "'"
        item = self.by_key[key] = Item(key, name, kind, label, path, parent)
        item.id = len(self.items)
        self.items.append(item)
        parent.children.insert(len(parent.children) if at is None else at, item)
        return item

    def place_forward(self) -> None:
        """Place modules in program order. A module that is called again later gets another item."""
        nodes, modules = self.record.nodes, self.record.modules
        hosts = self.reshape_hosts()
        calls: dict[str, int] = {}
        stack = [self.root]
        paths: list[str] = []
        for i in sorted(
            [i for i, n in enumerate(nodes) if not n.column and i not in hosts], key=lambda i: nodes[i].order
        ):
            node = nodes[i]
            wanted = scope_levels(node.scope) if node.scope else []
            shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(paths, wanted)))
            del stack[shared + 1 :], paths[shared:]
            for level in wanted[shared:]:
                path = stack[-1].path + level
                count = calls[path] = calls.get(path, 0) + 1
                key, name = f"{path}#{count}", short_name(path)
                if node.whole is not None and node.whole.inner == path:
                    key, name = f"{OPERATION}{node.whole.name}", level.lstrip("/").partition(" ")[0]
                item = self.add_item(key, name, "module", modules.get(path, ""), path, stack[-1])
                self.by_path.setdefault(path, item)
                stack.append(item)
                paths.append(level)
            key = f"removed {node.name}" if node.mark == "gone" else f"{OPERATION}{node.name}"
            leaf = self.add_item(key, node.label, "op", "", node.scope, stack[-1])
            self.place_node(i, leaf)
        for i, host in hosts.items():
            self.place_node(i, self.leaf_of[host])

    def reshape_hosts(self) -> dict[int, int]:
        """Reshapes that keep the shape carry no information: each is drawn with its user, or else with its input.
        Return node -> the node that it is drawn with, always of the same module.
        """
        nodes = self.record.nodes
        hosts: dict[int, int] = {}
        readers: dict[int, list[int]] = {}
        for i, node in enumerate(nodes):
            for x in self.record.reads[i] if not node.column and node.mark != "gone" else ():
                if x is not None:
                    readers.setdefault(x[0], []).append(i)
        same = set()
        for i, node in enumerate(nodes):
            if not node.column and node.mark != "gone" and is_identity_reshape(self.record, i):
                same.add(i)
        for i in same:
            near = [*readers.get(i, ()), self.record.reads[i][0][0]]
            near = [j for j in near if j not in same and not nodes[j].column and nodes[j].scope == nodes[i].scope]
            if near:
                hosts[i] = near[0]
        return hosts

    def place_states(self) -> None:
        """Place parameters and buffers first in their module, or with the operation that is their twin, and optimizer
        states with their parameter.
        """
        nodes = self.record.nodes
        own = {nodes[i].name: i for i in self.record.states if nodes[i].role in ("parameter", "buffer")}
        for name, i in own.items():
            if nodes[i].twin:
                self.place_state(i, self.leaf_of[self.record.places[nodes[i].twin]])
                continue
            path = nodes[i].scope
            parent = self.by_path.get(path, self.root)
            at = sum(c.kind == "state" for c in parent.children)
            shown = nodes[i].short if parent is not self.root else name
            self.place_state(i, self.add_item(f"state {name}", shown, "state", nodes[i].role, path, parent, at))
        for i in self.record.states:
            base = own.get(nodes[i].name.rpartition("-")[0]) if nodes[i].role == "optimizer state" else None
            if base is not None:
                self.place_state(i, self.leaf_of_state[base])

    def place_gradients(self) -> None:
        """Place a gradient beside its forward operation, or, if that was removed, in its module."""
        for i, node in enumerate(self.record.nodes):
            if node.column != 1:
                continue
            leaf = self.leaf_of[self.record.places[node.twin]] if node.twin else None
            self.place_node(i, leaf or self.rest_item(node.scope, "more of backward"))

    def place_updates(self) -> None:
        """Place an optimizer operation with the parameter that it updates, or at the end if it serves several."""
        nodes = self.record.nodes
        serves: dict[int, set] = {}
        for state, node, _ in self.record.updates:
            leaf, i = self.leaf_of[self.record.places[state]], self.record.places[node]
            if nodes[i].column == 2 and leaf is not None:
                serves.setdefault(i, set()).add(leaf)
        for i in range(len(nodes) - 1, -1, -1):
            if nodes[i].column == 2:
                for x in self.record.reads[i]:
                    if x is not None and nodes[x[0]].column == 2 and i in serves:
                        serves.setdefault(x[0], set()).update(serves[i])
        for i, node in enumerate(nodes):
            if node.column == 2:
                leaves = serves.get(i, ())
                self.place_node(i, next(iter(leaves)) if len(leaves) == 1 else self.rest_item("", "for all parameters"))

    def place_node(self, i: int, leaf: Item) -> None:
        leaf.nodes.append(i)
        self.leaf_of[i] = leaf

    def place_state(self, i: int, leaf: Item) -> None:
        leaf.states.append(i)
        self.leaf_of[i] = self.leaf_of_state[i] = leaf

    def rest_item(self, scope: str, name: str) -> Item:
        parent = self.by_path.get(scope, self.root)
        return self.by_key.get(f"rest {parent.key} {name}") or self.add_item(
            f"rest {parent.key} {name}", name, "rest", "", parent.path, parent
        )

    def place_ends(self) -> None:
        """Place an input just before its first user, and an output after the operation that computes it."""
        readers: dict[int, int] = {}
        nodes = self.record.nodes
        for i, node in enumerate(nodes):
            for x in self.record.reads[i]:
                if x is not None and nodes[x[0]].kind == "input":
                    known = nodes[readers.setdefault(x[0], i)]
                    if (node.column, node.order) < (known.column, known.order):
                        readers[x[0]] = i
        for s in self.record.states:
            if nodes[s].kind == "input":
                at = self.root.children.index(self.top_level(self.leaf_of[readers[s]])) if s in readers else 0
                self.place_state(
                    s, self.add_item(f"input {nodes[s].name}", nodes[s].name, "input", "", "", self.root, at)
                )
        for k, (id, index) in enumerate(self.record.outputs):
            source = self.leaf_of[self.record.places[id]]
            at = self.root.children.index(self.top_level(source)) + 1 if source is not None else len(self.root.children)
            name = "output" if len(self.record.outputs) == 1 else f"output {k}"
            self.output_rows[self.add_item(f"output {k}", name, "output", "", "", self.root, at)] = (
                self.record.places[id],
                index,
            )

    def top_level(self, item: Item) -> Item:
        while item.parent is not self.root:
            item = item.parent
        return item

    def number_leaves(self) -> None:
        """Number the leaves in order, and set the range of leaves of each item."""
        self.leaves: list[Item] = []
        stack: list[tuple[Item, bool]] = [(self.root, False)]
        while stack:
            item, done = stack.pop()
            if done:
                item.last = len(self.leaves)
                continue
            item.first = len(self.leaves)
            if item.kind != "module":
                self.leaves.append(item)
                item.last = len(self.leaves)
                continue
            stack.append((item, True))
            stack += [(child, False) for child in reversed(item.children)]

    # ---- folding -----------------------------------------------------------------------------------------------------

    def visible_children(self, item: Item) -> list[Item]:
        """The children of an item as rows: repeats as one row, and at most MAX_BOXES rows in all."""
        if item.folds is None:
            children = item.children
            if item.kind == "fold":
                item.folds = children if len(children) <= MAX_BOXES else self.fold_chunks(item, children)
            elif len(children) <= MAX_UNFOLDED_CHILDREN:
                item.folds = children
            else:
                item.folds = self.fold_repeats(item)
                if len(item.folds) > MAX_BOXES:
                    item.folds = self.fold_chunks(item, item.folds)
        return item.folds

    def fold_repeats(self, item: Item) -> list[Item]:
        children = item.children
        signs = [child.label or child.name if child.kind != "state" else "state " + child.label for child in children]
        rows: list[Item] = []
        i = 0
        while i < len(children):
            best, period = 0, 1
            for p in range(1, MAX_PERIOD + 1):
                n = p
                while i + n < len(signs) and signs[i + n] == signs[i + n - p]:
                    n += 1
                n -= n % p
                if n >= 4 * p and n > best:
                    best, period = n, p
            if best > 3 and all(
                can_fold(child, children[i + k % period]) for k, child in enumerate(children[i : i + best])
            ):
                label = f"{best // period} " + (repeat_label(children[i : i + period], signs[i]))
                rows.append(self.add_fold(item, children[i : i + best], label))
            else:
                best = max(best, 1)
                rows += children[i : i + best]
            i += best
        return rows

    def add_fold(self, parent: Item, members: list[Item], label: str) -> Item:
        first, last = members[0], members[-1]
        end = last.name.rpartition(".")[2] if last.kind == "module" else last.name
        fold = Item(f"{first.key} to {last.key}", f"{first.name} to {end}", "fold", label, parent.path, parent)
        fold.children, fold.first, fold.last, fold.id = members, first.first, last.last, len(self.items)
        self.items.append(fold)
        self.by_key[fold.key] = fold
        for member in members:
            member.parent = fold
        return fold

    def fold_chunks(self, parent: Item, members: list[Item]) -> list[Item]:
        """About ten folds of neighbors; a fold never splits a repeated pattern."""
        size = max(-(-len(members) // 10), 2)
        words = parent.label.partition("times ")[2]
        if words:
            period = words.count(",") + 1
            size = -(-size // period) * period
        rows = []
        for i in range(0, len(members), size):
            part = members[i : i + size]
            if len(part) == 1:
                rows += part
                continue
            if words:
                label = f"{len(part) // period} times {words}"
            else:
                labels = {m.label or m.name for m in part}
                label = f"{len(part)} {labels.pop() if len(labels) == 1 else 'parts'}"
            rows.append(self.add_fold(parent, part, label))
        return rows

    # ---- what is open ------------------------------------------------------------------------------------------------

    def initially_opened(self, limit: int = MAX_BOXES) -> set[str]:
        """The keys that are initially open: modules that contain modules, outermost first, while there are few rows."""
        opened: set[str] = set()
        rows, queue, at = len(self.visible_children(self.root)), list(self.visible_children(self.root)), 0
        while at < len(queue):
            item, at = queue[at], at + 1
            if item.kind == "module" and any(child.label for child in item.children if child.kind == "module"):
                inside = self.visible_children(item)
                if rows - 1 + len(inside) + len(opened) < limit:
                    opened.add(item.key)
                    rows += len(inside) - 1
                    queue += inside
        return opened

    def can_open(self, item: Item) -> bool:
        """True for a module, a fold, and a composite operation, which a new tree then shows as its parts."""
        return item.kind in ("module", "fold") or (item.kind == "op" and self.record.nodes[item.nodes[0]].opens)

    def whole_of(self, item: Item) -> Whole | None:
        """The operation whose parts are in an item, if it is one that is open."""
        if item.kind != "module" or not item.key.startswith(OPERATION):
            return None
        return self.record.nodes[self.leaves[item.first].nodes[0]].whole

    def rows(self, opened: set[str]) -> list[tuple[Item, int, bool]]:
        """(item, level, True if open) from top to bottom; an open item is followed by its children."""
        rows: list[tuple[Item, int, bool]] = []
        stack = [(item, 0) for item in reversed(self.visible_children(self.root))]
        while stack:
            item, level = stack.pop()
            is_open = item.key in opened and item.kind in ("module", "fold")
            rows.append((item, level, is_open))
            if is_open:
                stack += [(child, level + 1) for child in reversed(self.visible_children(item))]
        return rows

    def reveal(self, item: Item) -> set[str]:
        """The keys that must be open to make the item a row. Computing rows may put a fold between an item and its
        parent.
        """
        while True:
            above, outer = [], item.parent
            while outer is not None:
                above.append(outer)
                outer = outer.parent
            for outer in reversed(above):
                self.visible_children(outer)
            if item.parent is (above[0] if above else None) and all(a.parent is b for a, b in zip(above, above[1:])):  # noqa: RUF007
                return {outer.key for outer in above if outer is not self.root}

    def search(self, text: str, limit: int = 50) -> list[Item]:
        """Items whose name, class or operations contain all words of the text, in order."""
        words = text.casefold().split()
        if not words:
            return []
        items = []
        nodes = self.record.nodes
        for item in self.items:
            if item.kind == "fold":
                continue
            names = [item.path, item.name, item.label, *[nodes[i].name for i in item.states]]
            names += [f"{nodes[i].name} {nodes[i].label}" for i in item.nodes]
            if all(word in " ".join(names).casefold() for word in words):
                items.append(item)
        items.sort(key=lambda item: (item.first, item.kind != "module", -item.last))
        return items[:limit]


def is_identity_reshape(record: StepRecord, i: int) -> bool:
    """True for a reshape to the same shape."""
    node = record.nodes[i]
    return node.label == "reshape" and node.view and bool(x := record.reads[i][0]) and node.outs[0] == record.spec(x)


def loss_of(record: StepRecord) -> int:
    """The forward operation on whose result backward was called, or -1. The step must be as traced.

    The first gradients depend on no other gradient. They belong to the loss, or, if the loss is a sum, to its terms.
    """
    nodes = record.nodes
    firsts = {record.places[node.twin] for i, node in enumerate(nodes) if is_first_gradient(record, i)}
    above: dict[int, frozenset[int]] = {}  # node -> the nodes among them that depend on it
    for i in sorted([i for i, n in enumerate(nodes) if not n.column], key=lambda i: nodes[i].order):
        leading = frozenset().union(*[above.get(x[0], frozenset()) for x in record.reads[i] if x is not None])
        above[i] = leading | {i} if i in firsts else leading
        if firsts and above[i] == firsts:
            return i
    return -1


def is_first_gradient(record: StepRecord, i: int) -> bool:
    """True for a gradient that depends on no other gradient."""
    nodes, node = record.nodes, record.nodes[i]
    if node.phase != "backward" or node.column != 1 or not node.twin or node.mark == "gone":
        return False
    return not any(x is not None and nodes[x[0]].phase == "backward" for x in record.reads[i])


def can_fold(item: Item, first: Item) -> bool:
    """True if the item may be part of a fold: an operation, a member of a list, or the same module called again. (A
    name like `query` says more than a count.) first: the item at the same place in the first repeat.
    """
    return item.key.startswith((OPERATION, "removed ")) or (
        item.kind == "module" and (item.path == first.path or scope_levels(item.path)[-1].lstrip("./").isdigit())
    )


def repeat_label(members: list[Item], sign: str) -> str:
    """Label of a repeat, "InvertedResidual" or "times (Linear, ReLU)"; a module with its own name is called by it."""
    if len(members) == 1:
        return sign
    words = [
        m.label if m.kind == "module" and m.name.rpartition(".")[2].isdigit() and m.label else m.name for m in members
    ]
    return f"times ({', '.join(words)})"


def short_name(path: str) -> str:
    """ "conv1" for "model.conv1"; an index keeps the name of its list: "features.3"."""
    return module_name([level.lstrip("./") for level in scope_levels(path)])
