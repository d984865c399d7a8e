"""A traced program whose shapes hold symbolic sizes, and the program at other sizes that follows from it.

The symbols are those of `core/symbolic_shapes.py`, in place of the sizes that vary. As a check, `difference` compares
its program at the sizes of an earlier, plain trace with that trace: a number that does not follow from sizes differs.
Read next: `../../nn/graph/dynamic.py`, which traces.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...core.backend import namespace_of
from ...core.ir import CONSTANT, Graph, Node, Source, Value
from ...core.spec import Spec
from ...core.symbolic_shapes import LEAST, SYMBOLIC, Evaluation, Guard, ShapeEnv, SymInt, map_structure
from .derived_sizes import same_array
from .size_relations import same_value
from .traces import node_location, positions, wiring

STRUCTURES = tuple, list, dict, slice


def holds_symbols(x: Any) -> bool:
    """True if a structure of an attr contains a symbolic number or a symbolic Spec."""
    kind = type(x)
    if kind in SYMBOLIC:
        return True
    if kind is Spec:
        return type(x.size) is SymInt or any([type(n) is SymInt for n in x.shape])
    if kind is slice:
        return any(map(holds_symbols, (x.start, x.stop, x.step)))
    return kind in STRUCTURES and any(map(holds_symbols, x.values() if kind is dict else x))


class SymbolicProgram:
    """Graphs traced with symbolic sizes. graphs: the parts of a step.  env: their symbols and guards.

    symbolic: the nodes whose attrs or numbers hold symbols.
    """

    def __init__(self, graphs: Sequence[Graph], env: ShapeEnv):
        self.graphs, self.env = list(graphs), env
        self.guards: list[Guard] = list(env.guards.values())
        nodes = [node for graph in graphs for node in graph.nodes]
        self.symbolic = {node for node in nodes if holds_symbols(node.attrs) or any(map(is_symbolic, node.inputs))}

    def broken_guard(self, sizes: Mapping[str, int]) -> str:
        """Why the program does not hold at these sizes: a guard, in words; "" if it does."""
        evaluate = Evaluation(self.env, sizes)
        broken = next((guard for guard in self.guards if not guard.holds(evaluate)), None)
        return "" if broken is None else f"it depends on {broken}, {broken.where}"

    def at(self, sizes: Mapping[str, int]) -> Instance:
        """The program at these sizes."""
        return Instance(self, sizes)


def too_small(sizes: Mapping[str, int]) -> str:
    """The first size that is too small to be symbolic, in words; "" if there is none."""
    return next(
        (f"{name} is {n}, and each size below {LEAST} needs a build" for name, n in sizes.items() if n < LEAST), ""
    )


def is_symbolic(x: Any) -> bool:
    return type(x) in SYMBOLIC


class Instance:
    """Copies of the nodes of a SymbolicProgram, with plain sizes. graphs: its graphs."""

    def __init__(self, program: SymbolicProgram, sizes: Mapping[str, int]):
        self.program, self.evaluate = program, Evaluation(program.env, sizes)
        self.nodes: dict[Node, Node] = {}
        self.specs: dict[Spec, Spec] = {}
        self.graphs = [self.graph(graph) for graph in program.graphs]

    def graph(self, graph: Graph) -> Graph:
        nodes = self.nodes
        for source in (*graph.inputs, *graph.states):
            if source not in nodes:  # the parts of a step share states
                nodes[source] = self.source(source)
        for node in graph.nodes:
            nodes[node] = self.node(node)
        return Graph(
            [nodes[source] for source in graph.inputs],  # type: ignore[misc]  # the copy of a Source is one
            [nodes[node] for node in graph.nodes],
            map(self.value, graph.outputs),
            [nodes[source] for source in graph.states],  # type: ignore[misc]
            {nodes[source]: self.value(value) for source, value in graph.updates.items()},  # type: ignore[misc]
        )

    def spec(self, spec: Spec) -> Spec:
        """The spec at these sizes."""
        found = self.specs.get(spec)
        if found is None:
            found = self.specs[spec] = spec.replace(shape=tuple(map(self.evaluate, spec.shape)))
        return found

    def value(self, value: Value) -> Value:
        """The Value of the copy."""
        return Value(self.nodes[value.node], value.index, self.spec(value.spec))

    def node(self, node: Node) -> Node:
        attrs, inputs = node.attrs, node.inputs
        if node in self.program.symbolic:
            attrs = map_structure(attrs, self.number_or_spec)
            inputs = [x if x.__class__ is Value else self.evaluate(x) for x in inputs]
        specs = tuple(map(self.spec, node.out_specs))
        values = [self.value(x) if x.__class__ is Value else x for x in inputs]
        copy = Node(node.op, values, attrs, specs, node.needs, node.saved, node.scope, node.where)
        copy.origin = self.nodes.get(node.origin, node.origin) if isinstance(node.origin, Node) else node.origin
        copy.number, copy.hooks = node.number, node.hooks
        return copy

    def number_or_spec(self, x: Any) -> Any:
        """A number or Spec at these sizes; anything else is unchanged."""
        return self.spec(x) if type(x) is Spec else self.evaluate(x)

    def source(self, source: Source) -> Source:
        spec, array = self.spec(source.out_specs[0]), source.array
        if (found := self.program.env.ranges.get(id(array))) is not None:
            _, *bounds = found
            array = namespace_of(array).arange(*map(self.evaluate, bounds)).astype(array.dtype)
        copy = Source(source.op, spec, source.tensor(), array, source.read, source.name)
        copy.hooks, copy.origin, copy.number, copy.link = source.hooks, source.origin, source.number, source.link
        return copy


# ---- comparison with a plain trace -----------------------------------------------------------------------------------


def difference(instance: Sequence[Graph], plain: Sequence[Graph]) -> str:
    """The first difference between a program at some sizes and a plain trace at the same ones, in words; "" if there is
    none.
    """
    if len(instance) != len(plain):
        return "build has another number of parts"
    return next(itertools.chain.from_iterable(map(differences, instance, plain)), "")


def differences(ours: Graph, plain: Graph) -> Iterator[str]:
    keys = positions(ours), positions(plain)
    for node, other in itertools.zip_longest(ours.nodes, plain.nodes):
        one = node if other is None else other
        if node is None or other is None or node.op is not other.op:
            yield f"build computes {one.op} at one size and not at another, {node_location(one)}"
        elif wiring(node.inputs, keys[0]) != wiring(other.inputs, keys[1]):
            yield f"{node.op} reads other values at another size, {node_location(node)}"
        elif node.out_specs != other.out_specs:
            shapes = f"{list(node.out_specs[0].shape)}, not {list(other.out_specs[0].shape)}"
            yield f"a shape of {node.op} does not follow from the sizes ({shapes}), {node_location(node)}"
        else:
            numbers = zip(node.inputs, other.inputs)
            pairs = [(x, y) for x, y in numbers if x.__class__ is not Value]
            pairs += [(node.attrs.get(key), other.attrs.get(key)) for key in {**node.attrs, **other.attrs}]
            for x, y in pairs:
                if not same_value(x, y):
                    place = node_location(node)
                    yield f"a number of {node.op} does not follow from the sizes: {x!r}, not {y!r}, {place}"
    yield from (
        f"{what} of build differ at another size"
        for what, one, other in (
            ("results", wiring(ours.outputs, keys[0]), wiring(plain.outputs, keys[1])),
            ("updates", wiring(ours.updates.values(), keys[0]), wiring(plain.updates.values(), keys[1])),
            ("updates", [keys[0][s] for s in ours.updates], [keys[1][s] for s in plain.updates]),
            ("inputs", [s.out_specs for s in ours.inputs], [s.out_specs for s in plain.inputs]),
            ("states", [s.out_specs for s in ours.states], [s.out_specs for s in plain.states]),
        )
        if one != other
    )
    for source, other in zip(ours.states, plain.states):
        if source.op is not other.op or not same_source(source, other):
            yield f"{source.op} {source.name or 'captured'} of build differs at another size"


def same_source(source: Source, other: Source) -> bool:
    """True if two states or constants have the same elements, or are the same array of the program."""
    if source.read is not None or other.read is not None:
        return source.read is not None and other.read is not None
    if source.link is not None and other.link is not None:
        return source.link.buffers is other.link.buffers and source.link.name == other.link.name
    return source.array is other.array or (source.op is CONSTANT and same_array(source.array, other.array))
