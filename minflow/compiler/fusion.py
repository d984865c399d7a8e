"""Fuse neighboring elementwise ops and reductions into one node (a cluster), whose inner values never reach memory.

All members see one shape as rows x columns, where columns are the last axis. Results have this shape, or one element
per row, or are sums over all rows, which no member may read; operands may be broadcast along leading axes or the last.
A cluster closes no cycle, stays within one phase of a training step, and precedes the update of a state that it reads.
A platform says by FusionRules what it fuses, and has kernels for CLUSTERS; the reference kernel runs a cluster node by
node, with the same bits as unfused. Read next: `uses.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection
from typing import Any, NamedTuple

from ..core.ir import Graph, Node, Value, outputs_of
from ..core.kernels import kernel
from ..core.op import Op
from ..core.spec import Spec, float32
from .executor import run_node
from .passes.dead_code import dead_code
from .passes.recompute import recompute_cheap_values
from .passes.rewrite import rewrite
from .uses import Uses

SUMS = {"sum", "sum_to", "mean"}
WHOLE_VIEWS = {"reshape", "detach"}  # views of a contiguous array that are contiguous, too

SCALAR, ROW, FULL, COLUMN = "scalar", "row", "full", "column"
# Distance in nodes: from the first to the last of a cluster; between two that share only an input.
SPAN, BESIDE = 128, 16
OUTPUTS = 8  # most outputs of a cluster


class Operand(NamedTuple):
    """How a cluster reads a value: row i of the cluster reads row `i // repeat % period` of the value.

    kind: SCALAR, ROW, FULL, or a kind of the platform.  period: number of rows of the value itself.  repeat: how many
    consecutive rows of the cluster read the same one.
    """

    kind: str
    period: int
    repeat: int = 1


class FusionRules:
    """The rules by which a platform fuses. Subclasses define what has no body here.

    over_rows: ops that are computed along rows, besides sums.  column_sums: True if sums over all rows are fused.
    longest: most columns of a row that is reduced.  widest: most columns of a row along which operands are broadcast.
    """

    over_rows: Collection[str] = ()
    column_sums = True
    longest = widest = 1 << 12

    def takes(self, node: Node) -> bool:
        """True if there is code for a node, whose inputs and result have these dtypes."""
        raise NotImplementedError

    def is_alone(self, node: Node, size: int) -> bool:
        """True if a node that has no neighbors in a cluster is not made a cluster. size: rows times columns."""
        raise NotImplementedError

    def reads(self, x: Value) -> bool:
        """True if clusters can read the array of x, which may be a view that they do not look through."""
        return whole(x)

    def operand(self, x: Value, found: Operand) -> Operand | None:
        """How a cluster reads an input, found by its shape; None if there is no code for its dtype."""
        return found

    def read(self, x: Value, shape: tuple, rows: int, columns: int) -> Operand | None:
        """How a result of this shape reads x, or None if a cluster of rows x columns cannot."""
        found = read_as(x, shape, rows, columns)
        return found and self.operand(x, found)

    def extent(self, node: Node) -> tuple[int, int] | None:
        """Return (rows, columns) of a node that can be a member of a cluster; None for others."""
        name, values = node.op.name, [x for x in node.inputs if x.__class__ is Value]
        summing = name in SUMS
        if not values or not self.takes(node):
            return None
        spec = values[0].spec if summing else node.out_specs[0]
        columns = columns_of(spec)
        if not spec.shape or not spec.size or spec.placement is not None:
            return None
        if not all([self.reads(base_of(x)) for x in values]):
            return None
        found = [self.read(x, spec.shape, spec.size // columns, columns) for x in values]
        reads = [read for read in found if read is not None]
        if len(reads) < len(values) or (name in self.over_rows and node.attrs["dim"] != spec.ndim - 1):
            return None
        if summing and summed_to(node) not in ((ROW, COLUMN) if self.column_sums else (ROW,)):
            return None
        reduces = summing or name in self.over_rows
        if reduces and not 1 < columns <= self.longest:
            return None
        if not all([plain(read, spec) for read in reads]) and not 1 < columns <= self.widest:
            return None
        return spec.size // columns, columns


class FusedRegion:
    """The region that a cluster replaces: its nodes (including views), the values that it reads, and its outputs.

    program: what the kernel of a platform has made of it, or None.
    """

    def __init__(
        self,
        rules: FusionRules,
        nodes: list[Node],
        inputs: list[Value],
        outputs: list[Value],
        rows: int,
        columns: int,
    ):
        self.rules, self.rows, self.columns = rules, rows, columns
        self.nodes, self.inputs, self.outputs = nodes, inputs, outputs
        self.program: Any = None

    def read(self, x: Value, shape: tuple) -> Operand | None:
        """Return how a node of this shape reads x."""
        if self.columns > 1:
            return self.rules.read(x, shape, self.rows, self.columns)
        return self.rules.operand(x, Operand(FULL if base_of(x).spec.size == self.rows else SCALAR, self.rows))

    def __repr__(self) -> str:
        return ", ".join([node.op.name for node in self.nodes if not node.op.is_view])


def infer(*inputs: Spec, code: FusedRegion):
    specs = tuple([v.spec for v in code.outputs])
    return specs if len(specs) > 1 else specs[0]


def run(xp, *inputs, code: FusedRegion):
    """Run the nodes one by one, as the reference kernel."""
    known = dict(zip(code.inputs, inputs))
    for node in code.nodes:
        arrays = run_node(node, [known[x] if x.__class__ is Value else x for x in node.inputs])
        known.update(zip(outputs_of(node), arrays))
    results = tuple([known[v] for v in code.outputs])
    return results if len(results) > 1 else results[0]


def cluster_op(outputs: int) -> Op:
    """Create the op for clusters with this many outputs.

    A single output may overwrite an operand of its shape, since each element is read before it is written.
    """
    op = Op(
        "cluster",
        ["*inputs"],
        ["code"],
        [f"y{i}" for i in range(outputs)],
        infer,
        elementwise="same",
        alias_safe=outputs == 1,
        second_order=False,
        doc="Operations that run as one.",
    )
    kernel(op, run)
    return op


CLUSTERS = [cluster_op(outputs) for outputs in range(1, OUTPUTS + 1)]


# ---- which nodes can be fused ----------------------------------------------------------------------------------------


def base_of(x: Value) -> Value:
    """Return the base of x, seen through the views that a cluster looks through."""
    while x.node.op.is_view:
        source = x.node.inputs[0]
        if x.node.op.name != "expand" and (
            x.node.op.name not in WHOLE_VIEWS or columns_of(source.spec) != columns_of(x.spec)
        ):
            break
        x = source
    return x


def whole(x: Value) -> bool:
    """True if x is contiguous; for views, if that is certain."""
    while x.node.op.is_view:
        index = x.node.attrs.get("index")
        if index is None and x.node.op.name not in WHOLE_VIEWS:
            return False
        if index is not None:
            numbers = next((i for i, part in enumerate(index) if part.__class__ is not int), len(index))
            first, rest = index[numbers : numbers + 1], index[numbers + 1 :]
            if (first and (first[0].__class__ is not tuple or first[0][2] not in (None, 1))) or any(
                part != (None, None, None) for part in rest
            ):
                return False
        x = x.node.inputs[0]
    return True


def columns_of(spec: Spec) -> int:
    return spec.shape[-1] if spec.shape else 1


def read_as(x: Value, shape: tuple, rows: int, columns: int) -> Operand | None:
    """Return how a result of this shape reads x, or None if a cluster of rows x columns cannot."""
    target, source = shape, x
    base = base_of(x)
    while source != base:
        if source.node.op.name == "expand":
            target, x = source.spec.shape, source.node.inputs[0]
        source = source.node.inputs[0]
    if math.prod(target[:-1]) != rows or target[-1:] not in ((columns,), (1,)):
        return None
    lead = (1,) * (len(target) - x.spec.ndim) + x.spec.shape
    if math.prod(lead) == 1:
        return Operand(SCALAR, 1)
    lead, last, size = lead[:-1], lead[-1], math.prod(lead[:-1])
    first = next((i for i, n in enumerate(lead) if n > 1), len(lead))
    end = next((i for i in range(len(lead), first, -1) if lead[i - 1] > 1), first)
    if lead[first:end] != target[first:end]:
        return None
    kind, repeat = ROW if last == 1 < columns else FULL, math.prod(target[end:-1]) if first < end else 1
    return Operand(kind, size, repeat)


def summed_to(node: Node) -> str | None:
    """Return the shape that a reduction leaves: ROW (one element per row), COLUMN (one per column), or None."""
    shape, to = node.inputs[0].spec.shape, node.out_specs[0].shape
    last = len(shape) - 1
    axes = node.attrs.get("axis", None)
    if node.op.name == "sum_to":
        lead = (1,) * (len(shape) - len(to)) + to
        axes = tuple([i for i, n in enumerate(lead) if n != shape[i]])
    if axes == (last,):
        return ROW
    alone = [i for i in range(last) if shape[i] != 1]
    if node.op.name != "mean" and axes is not None and set(alone) <= set(axes) <= set(range(last)) and alone:
        return COLUMN
    return None


def seen(node: Node) -> tuple[int, ...]:
    """Return the shape that is split into rows and columns: the input's for reductions, otherwise the output's."""
    return node.inputs[0].spec.shape if node.op.name in SUMS else node.out_specs[0].shape


def plain(read: Operand, spec: Spec) -> bool:
    """True if an operand is read element by element, or is a scalar."""
    return read.kind == SCALAR or (read.period * columns_of(spec) == spec.size and read.kind != ROW)


# ---- groups of nodes -------------------------------------------------------------------------------------------------


class FusionGroup:
    """Nodes that will be one cluster. before, after: groups that must run before and after it.

    outputs: None until they are computed, see `FusionGroups.outputs`.  column_sums: its sums over all rows.
    """

    def __init__(self, node: Node, position: int, form: tuple[int, int] | None):
        self.nodes, self.first, self.last, self.form = [node], position, position, form
        self.before: set[FusionGroup] = set()
        self.after: set[FusionGroup] = set()
        self.outputs: list[Value] | None = None
        sums = form is not None and node.op.name in SUMS and summed_to(node) == COLUMN
        self.column_sums = frozenset(outputs_of(node) if sums else ())

    def alone(self, rules: FusionRules) -> bool:
        """True if the group is a single node that stays as it is."""
        if self.form is None or len(self.nodes) > 1:
            return self.form is None
        return rules.is_alone(self.nodes[0], math.prod(self.form))

    @property
    def phase(self) -> str:
        phase = self.nodes[0].phase
        return "backward" if phase == "recompute" else phase


class FusionGroups:
    """The partition of a graph's nodes into groups; at first each node is a group.

    of: node -> its group.  readers: value -> nodes that read it; members of clusters read the bases of views.  idle:
    views whose only users look through them.
    """

    def __init__(self, graph: Graph, rules: FusionRules):
        self.graph, self.rules, self.uses = graph, rules, Uses(graph)
        self.position = {node: i for i, node in enumerate(graph.nodes)}
        self.new = {*graph.updates.values()}  # an output written in place must be the only output of its node
        self.shown = {*graph.outputs, *self.new}
        self.of = {node: FusionGroup(node, i, rules.extent(node)) for i, node in enumerate(graph.nodes)}
        self.readers: dict[Value, list[Node]] = {}
        self.idle: set[Node] = set()
        for node in graph.nodes:
            for x in self.reads(node):
                self.readers.setdefault(x, []).append(node)
                if x.node in self.of:
                    self.join(x.node, node)
        for node in reversed(graph.nodes):  # a view that is only looked through does not count as a user of its base
            if node.op.is_view and not any(v in self.shown or self.readers.get(v) for v in outputs_of(node)):
                readers = self.readers[node.inputs[0]]
                del readers[next(i for i in reversed(range(len(readers))) if readers[i] is node)]  # among the last ones
                self.idle.add(node)
        for state, value in graph.updates.items():
            if value.node in self.of:
                for i, _ in self.uses.reads.get(Value(state, 0, state.out_specs[0]), ()):
                    if graph.nodes[i] is not value.node and i < self.of[value.node].first:
                        self.join(graph.nodes[i], value.node)

    def join(self, a: Node, b: Node) -> None:
        self.of[a].after.add(self.of[b])
        self.of[b].before.add(self.of[a])

    def reads(self, node: Node) -> list[Value]:
        """Return the values that a node reads, seen through views if it can be fused."""
        values = [x for x in node.inputs if x.__class__ is Value]
        return values if self.of[node].form is None else [base_of(x) for x in values]

    def outputs(self, group: FusionGroup) -> list[Value]:
        """Return the outputs of the nodes of a group that are used outside of it."""
        if group.outputs is None:
            group.outputs = [v for v in outputs_of(group.nodes[0]) if self.is_output(v, (group,))]
        return group.outputs

    def is_output(self, v: Value, groups: tuple[FusionGroup, ...]) -> bool:
        """True if a value computed in these groups is used outside of them."""
        return v in self.shown or any([self.of[reader] not in groups for reader in self.readers.get(v, ())])

    def merge(self, a: FusionGroup, b: FusionGroup) -> bool:
        """Merge two groups, if they have one extent and no third group lies on a path between them."""
        if a is b or a.form is None or b.form is None or a.phase != b.phase:
            return False
        if max(a.last, b.last) - min(a.first, b.first) > SPAN or a.form[0] != b.form[0]:
            return False
        if a.form != b.form and 1 not in (a.form[1], b.form[1]):
            return False
        sums = a.column_sums | b.column_sums
        if sums and any(x in sums for node in (*a.nodes, *b.nodes) for x in self.reads(node)):
            return False
        form = a.form[0], max(a.form[1], b.form[1])
        widened = a.nodes if a.form != form else b.nodes if b.form != form else ()
        if any(
            self.rules.read(x, seen(node), *form) is None
            for node in widened
            for x in node.inputs
            if x.__class__ is Value
        ):
            return False  # a mask with one element per row, which only a cluster without columns can read
        outputs = [v for v in self.outputs(a) + self.outputs(b) if self.is_output(v, (a, b))]
        if len(outputs) > (1 if self.new.intersection(outputs) else OUTPUTS) or between(a, b) or between(b, a):
            return False
        a.nodes = sorted([*a.nodes, *b.nodes], key=self.position.__getitem__)
        a.first, a.last, a.form = min(a.first, b.first), max(a.last, b.last), form
        a.outputs, a.column_sums = outputs, sums
        for node in b.nodes:
            self.of[node] = a
        for here, there in ((b.before, "after"), (b.after, "before")):
            for group in here:
                getattr(group, there).discard(b)
                if group is not a:
                    getattr(group, there).add(a)
        a.before |= b.before
        a.after |= b.after
        a.before -= {a, b}
        a.after -= {a, b}
        return True

    def order(self) -> list[FusionGroup]:
        """Sort the groups topologically, each as late as its last node unless an earlier group reads it."""
        done: set[FusionGroup] = set()
        found = []
        for i, node in enumerate(self.graph.nodes):
            if self.of[node].last != i:
                continue
            stack = [self.of[node]]
            while stack:
                group = stack[-1]
                missing = sorted(self.needs(group) - done, key=lambda g: -g.last)  # the stack ends with the earliest
                if missing:
                    stack += missing
                    continue
                stack.pop()
                if group not in done:
                    done.add(group)
                    found.append(group)
        return found

    def needs(self, group: FusionGroup) -> set[FusionGroup]:
        if len(group.nodes) > 1:
            return group.before
        direct = [x.node for x in group.nodes[0].inputs if x.__class__ is Value]
        return {*group.before, *[self.of[node] for node in direct if node in self.of]}

    def views(self, node: Node) -> set[Node]:
        """Return the views that a node looks through."""
        found: set[Node] = set()
        for x in node.inputs if self.of[node].form else ():
            while x.__class__ is Value and x != base_of(x):
                found.add(x.node)
                x = x.node.inputs[0]
        return found

    def code(self, group: FusionGroup) -> FusedRegion:
        """Build the region of a group, with the views between its nodes.

        It is flattened to one column if no operand is broadcast along rows or columns.
        """
        assert group.form is not None
        inputs: dict[Value, None] = {}
        inside, views, flat = set(group.nodes), set(), True
        rows, columns = group.form
        for node in group.nodes:
            views |= self.views(node)
            shape = seen(node)
            flat = flat and node.op.name not in {*SUMS, *self.rules.over_rows} and shape[-1] == columns
            for x in node.inputs:
                if x.__class__ is not Value:
                    continue
                base, read = base_of(x), self.rules.read(x, shape, rows, columns)
                flat = flat and read is not None and plain(read, Spec((rows, columns), float32)) and whole(base)
                if base.node not in inside:
                    inputs[base] = None
        nodes = sorted([*inside, *views], key=lambda node: self.position[node])
        extent = (rows * columns, 1) if flat else (rows, columns)
        outputs = sorted(self.outputs(group), key=lambda v: (self.position[v.node], v.index))
        return FusedRegion(self.rules, nodes, list(inputs), outputs, *extent)


def between(a: FusionGroup, b: FusionGroup) -> bool:
    """True if a path leads from a to b through another group."""
    stack = [group for group in a.after if group is not b and group.first < b.last]
    seen = set(stack)
    while stack:
        for group in stack.pop().after:
            if group is b:
                return True
            if group not in seen and group.first < b.last:
                seen.add(group)
                stack.append(group)
    return False


# ---- the pass --------------------------------------------------------------------------------------------------------


def fuse(graph: Graph, rules: FusionRules) -> Graph:
    """Replace each group of neighbors that can run together by one node."""
    # First, since recomputing a value within a cluster is free.
    graph = dead_code(recompute_cheap_values(graph, fused=True))
    groups = FusionGroups(graph, rules)
    for node in graph.nodes:
        for x in groups.reads(node):
            if x.node in groups.of:
                groups.merge(groups.of[x.node], groups.of[node])
    for value, readers in groups.readers.items():
        for a, b in itertools.pairwise(readers):
            form = groups.of[b].form
            if form and value.spec.size == math.prod(form) and groups.position[b] - groups.position[a] <= BESIDE:
                groups.merge(groups.of[a], groups.of[b])
    nodes, instead = [], {}
    order = groups.order()
    idle = groups.idle.difference(*[groups.views(group.nodes[0]) for group in order if group.alone(rules)])
    for group in order:
        last = group.nodes[-1]
        if group.alone(rules):
            nodes += [last] if last not in idle else []
            continue
        code = groups.code(group)
        specs = tuple([v.spec for v in code.outputs])
        node = Node(CLUSTERS[len(specs) - 1], list(code.inputs), {"code": code}, specs, 0, (), last.scope, last.where)
        node.origin, node.number = last.origin, last.number
        node.parts = tuple([part for one in group.nodes for part in one.parts or (one,)])
        nodes.append(node)
        # The `origin` of a gradient node may be a value that has no users any more.
        instead.update({v: outputs_of(node)[0] for one in group.nodes for v in outputs_of(one)})
        instead.update(zip(code.outputs, outputs_of(node)))
    for group in order:
        group.before, group.after = set(), set()  # cycles, which only the collector would free
    return rewrite(graph, nodes, instead)
