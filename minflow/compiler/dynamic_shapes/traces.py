"""Compare traces of a program at several sizes of its dynamic axes, and find the values that depend on them.

Read next: `../../deploy/retrace.py`, which traces.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from ...core.base.errors import MinflowError
from ...core.host import HostArray
from ...core.ir import Graph, Node, Source, Value, where_text
from ...core.ops.shape import recompute
from ...core.source_location import here
from ...core.spec import Spec
from .axes import Axes, refuse, sizes_of, specs_at_sizes
from .derived_sizes import SizedConstant, same_array
from .size_relations import NotSizeDependent, SizeSolver

MAX_SHOWN_ERRORS = 3  # failed sizes that an error shows with their reasons


def find_dependent(
    names: Sequence[str], traces: Mapping[tuple[int, ...], Graph]
) -> tuple[dict[Node, dict[str | int, Any]], dict[Source, SizedConstant]]:
    """Find everything that depends on the sizes: for each node its attrs by name and literal inputs by position; and
    constants.

    names: names of the axes.  traces: sizes of the axes -> trace; the first is the base, to whose nodes the result
    refers. All combinations of the first two sizes of every axis are required, and one further size as a check. Raises
    GraphError with the op, its line and the values for a difference that the sizes do not explain.
    """
    solver, graphs = SizeSolver(names, list(traces)), list(traces.values())
    base = graphs[0]
    labels = list(map(label, solver.dicts))
    check_aligned(graphs, labels)
    size_dependent: dict[Node, dict[str | int, Any]] = {}
    sized_constants: dict[Source, SizedConstant] = {}
    for nodes in zip(*[graph.nodes for graph in graphs]):
        node = nodes[0]
        for key, value in ({} if node.op is recompute else node.attrs).items():  # its `call` is counted across builds
            columns = [other.attrs.get(key) for other in nodes]
            if (result := solve_column(solver, columns, node, f"its {key}", labels)) is not value:
                size_dependent.setdefault(node, {})[key] = result
        for i, x in enumerate(node.inputs):
            if x.__class__ is not Value:
                columns = [other.inputs[i] for other in nodes]
                if (result := solve_column(solver, columns, node, f"the number {x!r} that it takes", labels)) is not x:
                    size_dependent.setdefault(node, {})[i] = result
    for sources in zip(*[graph.states for graph in graphs]):
        arrays = [s.array for s in sources]
        if sources[0].read is None and any(a is not arrays[0] and not same_array(a, arrays[0]) for a in arrays):
            try:
                sized_constants[sources[0]] = solve_constant(solver, arrays)
            except NotSizeDependent as error:
                user = next(
                    (n for n in base.nodes if any(x.__class__ is Value and x.node is sources[0] for x in n.inputs)),
                    None,
                )
                hint = "use flow.zeros, ones, full or arange of the size; or make it with ops, or give it as input"
                refuse_difference(
                    f"a constant of the program ({sources[0].name or 'captured'})", error, user, labels, hint
                )
    return size_dependent, sized_constants


def solve_column(solver: SizeSolver, columns: Sequence[Any], node: Node, what: str, labels: Sequence[str]) -> Any:
    try:
        return solver.solve(columns)
    except NotSizeDependent as error:
        hint = error.why or "compute it with tensors, which have the size of each call"
        refuse_difference(f"{node.op}: {what}", error, node, labels, hint)


def refuse_difference(
    what: str, error: NotSizeDependent, node: Node | None, labels: Sequence[str], hint: str
) -> NoReturn:
    """Raise GraphError for a difference, with its values at all sizes."""
    refuse(
        f"{what} differs between sizes of the dynamic axes, in a way that cannot be derived from them",
        f"{hint}; or leave that axis out of dynamic",
        dict(zip(labels, map(value_text, error.values))),
        node_location(node),
    )


def value_text(x: Any) -> str:
    text = f"{x.dtype}{list(x.shape)} {x.reshape(-1)[:6].tolist()}" if isinstance(x, HostArray) else repr(x)
    return text if len(text) <= 80 else text[:77] + "..."


def node_location(node: Node | None) -> str:
    if node is None:
        return here()
    scope = node.scope.lstrip("/")
    return f"in {scope}, at {where_text(node.where)}" if scope else f"at {where_text(node.where)}"


def check_aligned(graphs: Sequence[Graph], labels: Sequence[str]) -> None:
    """Raise GraphError if the traces differ in their ops or in the values that these read."""
    keys = list(map(positions, graphs))
    for i, nodes in enumerate(itertools.zip_longest(*[graph.nodes for graph in graphs])):
        ops = [None if node is None else node.op for node in nodes]
        reads = [None if node is None else wiring(node.inputs, key) for node, key in zip(nodes, keys)]
        if any(op is not ops[0] for op in ops) or any(r != reads[0] for r in reads):
            node = next(node for node in nodes if node is not None)
            values = {label: "nothing" if n is None else n for label, n in zip(labels, nodes)}
            other = "is another one" if any(op is not ops[0] for op in ops) else "reads other values"
            refuse(
                f"op number {i} of the program ({node.op}) {other} at another size of the dynamic axes",
                "a loop or a branch of build that depends on the size is traced for one size; use ops over the whole "
                "axis; or leave that axis out of dynamic",
                values,
                node_location(node),
            )
    ends = [
        (wiring(graph.outputs, key), wiring(graph.updates.values(), key), [key[s] for s in graph.updates])
        for graph, key in zip(graphs, keys)
    ]
    if any(end != ends[0] for end in ends) or len({len(graph.states) for graph in graphs}) > 1:
        what = "the results, updates or inputs of build differ at another size of the dynamic axes"
        hint = "a branch of build that depends on the size is traced for one size"
        refuse(what, hint, dict(zip(labels, graphs_text(graphs))))


def graphs_text(graphs: Sequence[Graph]) -> list[str]:
    return [f"{len(g.outputs)} results, {len(g.updates)} updates, {len(g.states)} states" for g in graphs]


def positions(graph: Graph) -> dict[Node, tuple[str, int]]:
    lists = {"input": graph.inputs, "state": graph.states, "node": graph.nodes}
    return {node: (kind, i) for kind, nodes in lists.items() for i, node in enumerate(nodes)}


def wiring(inputs: Any, key: Mapping[Node, tuple[str, int]]) -> list:
    """The inputs of a node by position; literals by type."""
    return [(key[x.node], x.index) if x.__class__ is Value else type(x) for x in inputs]


def solve_constant(solver: SizeSolver, arrays: Sequence[HostArray]) -> SizedConstant:
    """Express differing constants as one value each, or as ranges with the same step."""
    if len({(a.dtype, a.ndim) for a in arrays}) > 1 or not all(a.size for a in arrays):
        raise NotSizeDependent(arrays)
    shape = solver.solve([a.shape for a in arrays])
    firsts = [a.reshape(-1)[0] for a in arrays]
    if all((a == first).all() for a, first in zip(arrays, firsts)):
        return SizedConstant(shape, solver.solve([first.item() for first in firsts]))
    counts = arrays[0].ndim == 1 and arrays[0].dtype.kind in "iuf"
    steps = {float(x) for a in arrays for x in a[1:] - a[:-1]} if counts else set()
    if len(steps) != 1 or not all(float(x).is_integer() for x in (*steps, *firsts)):
        raise NotSizeDependent(arrays)
    return SizedConstant(shape, solver.solve([int(first) for first in firsts]), int(steps.pop()))


class SizeTraces:
    """Traces of a program at several sizes. base: the program at `specs`, with a `graph` and an `out_tree`.  retrace:
    function that traces the program for other input specs.  programs: sizes -> program.  errors: sizes -> its error.
    """

    def __init__(
        self, axes: Axes, names: Sequence[str], specs: Sequence[Spec], base: Any, retrace: Callable[[list[Spec]], Any]
    ):
        self.axes, self.names, self.specs, self.base, self.retrace = axes, names, specs, base, retrace
        self.first = sizes_of(axes, specs, names)
        self.programs: dict[tuple[int, ...], Any] = {}
        self.errors: dict[str, str] = {}

    def program_at(self, sizes: Mapping[str, int]) -> Any:
        """The program at these sizes, or None if its build fails."""
        if dict(sizes) == self.first:
            return self.base
        try:
            return self.retrace(specs_at_sizes(self.axes, self.specs, sizes))
        except MinflowError as error:
            texts = [error.what, *[f"{name} {x}" for name, x in error.values.items()], error.where]
        except Exception as error:  # the user's code may raise anything
            texts = [f"{type(error).__name__}: {error}"]
        self.errors[label(sizes)] = "; ".join(filter(None, texts))
        return None

    def try_sizes(self, sizes: Mapping[str, int]) -> bool:
        """Trace at these sizes. Returns True on success."""
        key = tuple(sizes[name] for name in self.axes)
        if key not in self.programs and (program := self.program_at(sizes)) is not None:
            self.programs[key] = program
        return key in self.programs

    def require(self, done: bool, name: str) -> None:
        if not done:
            failed = dict(itertools.islice(self.errors.items(), MAX_SHOWN_ERRORS))
            if more := list(self.errors)[MAX_SHOWN_ERRORS:]:
                failed["and at"] = "; ".join(more)
            what = f"build fails at other sizes of the dynamic axis {name!r} than that of the example"
            refuse(what, self.hint(), failed)

    def hint(self) -> str:
        """Suggest further axes that may have to be dynamic."""
        for name, places in self.axes.items():
            for i, spec in enumerate(self.specs):
                others = [axis for axis, n in enumerate(spec.shape) if n == self.first[name]]
                if others and all(i != j for place in self.axes.values() for j, _ in place):
                    return (
                        f"axis {others[0]} of {self.names[i]} has that size too: add "
                        f"{self.names[i]!r}: {{{others[0]}: {name!r}}}"
                    )
        return "leave the axis out of dynamic, if build takes one size alone"


def label(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={n}" for name, n in sizes.items())


def solve_sizes(
    axes: Axes, names: Sequence[str], specs: Sequence[Spec], base: Any, retrace: Callable[[list[Spec]], Any]
) -> tuple[Any, dict[Node, dict[str | int, Any]], dict[Source, SizedConstant]]:
    """Trace at other sizes. Returns the base and the values that depend on the sizes (see `find_dependent`).

    The arguments are those of SizeTraces.

    A size of 1 broadcasts, so a program may differ there: its base is then a trace at size 2. Sizes at which a build
    fails are skipped if two others besides the base remain.
    """
    traces = SizeTraces(axes, names, specs, base, retrace)
    low = {name: max(n, 2) for name, n in traces.first.items()}
    traces.require(traces.try_sizes(low), next(iter(axes)))
    high: dict[str, int] = {}
    for name, n in low.items():
        taken = list(itertools.islice((m for m in candidates(n) if traces.try_sizes({**low, name: m})), 2))
        traces.require(len(taken) == 2, name)
        high[name] = taken[0]
    for combination in itertools.product(*[(low[name], high[name]) for name in axes]):
        traces.require(traces.try_sizes(dict(zip(axes, combination))), " and ".join(axes))
    programs = list(traces.programs.values())
    if len({str(program.out_tree) for program in programs}) > 1:
        what = "build returns another structure at another size of the dynamic axes"
        hint = "one tensor with the axis in it, in place of a list of as many tensors"
        refuse(what, hint, {"sizes": list(traces.programs)})
    size_dependent, sized_constants = find_dependent(
        tuple(axes), {sizes: program.graph for sizes, program in traces.programs.items()}
    )
    solver = SizeSolver(tuple(axes), list(traces.programs))
    for sizes in (traces.first, dict.fromkeys(axes, 1)):
        check_results(solver, [program.graph.outputs for program in programs], sizes, traces.program_at(sizes))
    return programs[0], size_dependent, sized_constants


def check_results(
    solver: SizeSolver, results: Sequence[Sequence[Value]], sizes: Mapping[str, int], program: Any
) -> None:
    """Raise GraphError if results have other axes at size 1 than at larger sizes, as after squeeze(). results: results
    of each trace.  program: the trace at these sizes, or None.
    """
    for i, value in enumerate([] if program is None else program.graph.outputs):
        shapes = [values[i].spec.shape for values in results]
        if {len(shape) for shape in shapes} != {value.spec.ndim}:
            what = f"result {i} of build has another number of axes at a size of 1"
            hint = "x.squeeze(1) names an axis; x.squeeze() takes away each one of size 1"
            refuse(what, hint, {label(solver.dicts[0]): list(shapes[0]), label(sizes): list(value.spec.shape)})


def candidates(n: int) -> list[int]:
    """Sizes to trace at besides n: a multiple of n, a non-multiple, and smaller ones for a program that allows at most
    n.
    """
    return [m for m in dict.fromkeys((2 * n, 2 * n + 1, 3 * n, n // 2, n - 1, n // 4, n - 2)) if m > 1 and m != n]
