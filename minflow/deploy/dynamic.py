"""Axes whose size differs from call to call: which ones there are, and which numbers of a program follow them.

A program is traced at several sizes. Attrs, literals and constants that differ between the traces are solved for: an
integer that is multilinear in the sizes, such as 8*batch*time + 3, is written as such (`Follows`), and checked at sizes
that it was not solved from; every other difference is refused with its line. Read next: `again.py`, which traces;
`program.py`, which asks.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np

from ..core.base.errors import GraphError, MinflowError, ShapeError
from ..core.ir import Graph, Node, Source, Value, where_text
from ..core.ops.shape import recompute
from ..core.spec import Spec
from ..core.where import here

AXES = 3  # each one more doubles the number of traces
Axes = Mapping[str, tuple[tuple[int, int], ...]]  # name of an axis -> (number of an input, axis of that)
EXAMPLE = 'dynamic={"x": {0: "batch"}}'


@dataclass(frozen=True)
class Follows:
    """An int that follows dynamic axes. terms: ((8, ("batch", "time")), (3, ())) is 8*batch*time + 3."""

    terms: tuple[tuple[int, tuple[str, ...]], ...]

    @property
    def axes(self) -> frozenset[str]:
        """The names of the axes that it follows."""
        return frozenset(name for _, names in self.terms for name in names)

    def at(self, sizes: Mapping[str, int]) -> int:
        """The number at these sizes."""
        return sum(factor * math.prod([sizes[name] for name in names]) for factor, names in self.terms)

    def __str__(self) -> str:
        text = " + ".join(["*".join([str(factor), *names]) for factor, names in self.terms])
        return re.sub(r"\b1\*", "", text).replace("+ -", "- ") or "0"


@dataclass(frozen=True)
class Ratio:
    """A float that follows dynamic axes, `scale * (top / bottom)`: 1 / batch, and what makes a variance unbiased."""

    scale: float
    top: Follows
    bottom: Follows

    @property
    def axes(self) -> frozenset[str]:
        """The names of the axes that it follows."""
        return self.top.axes | self.bottom.axes

    def at(self, sizes: Mapping[str, int]) -> float:
        """The number at these sizes; inf or NaN where it divides by 0."""
        top, bottom = self.top.at(sizes), self.bottom.at(sizes)
        return self.scale * (top / bottom) if bottom else math.copysign(math.inf, top) if top else math.nan

    def __str__(self) -> str:
        return f"{'' if self.scale == 1 else f'{self.scale} * '}({self.top}) / ({self.bottom})"


@dataclass(frozen=True)
class Filled:
    """A constant that follows dynamic axes: of one number, or along one axis `first`, `first + step`, ..."""

    shape: tuple[int | Follows, ...]
    first: Any
    step: int = 0

    def at(self, sizes: Mapping[str, int], dtype: Any) -> np.ndarray:
        """The array at these sizes. dtype: of numpy."""
        shape, first = at(self.shape, sizes), at(self.first, sizes)
        check_sizes("a constant", shape, sizes)
        if not self.step:
            return np.full(shape, first, dtype)
        return (first + self.step * np.arange(shape[0])).astype(dtype)


def at(x: Any, sizes: Mapping[str, int]) -> Any:
    """A structure with the numbers of these sizes in the place of all that follows an axis."""
    if isinstance(x, Follows | Ratio):
        return x.at(sizes)
    if isinstance(x, dict):
        return {key: at(value, sizes) for key, value in x.items()}
    return type(x)([at(value, sizes) for value in x]) if type(x) in (tuple, list) else x


def check_sizes(what: str, shape: Any, sizes: Mapping[str, int]) -> None:
    """Refuse a shape that no tensor has at these sizes of the dynamic axes."""
    if any(n < 0 for n in shape):
        refuse(f"{what} would have the shape {tuple(shape)}", "larger inputs along these axes", sizes, kind=ShapeError)


# ---- which axes ------------------------------------------------------------------------------------------------------


def refuse(what: str, hint: str, values: Mapping[str, Any], where: str = "", kind: type = GraphError) -> NoReturn:
    raise kind(what, values=values, where=where or here(), hint=hint)


def axes_of(dynamic: Any, names: Sequence[str], specs: Sequence[Spec]) -> Axes:
    """The axes that a user names: `{"x": {0: "batch"}}`, or `{"x": [0]}`, which makes the name "x_0".

    names, specs: of the inputs of the program. An input is also known by its position: 0, "input_0",
    "_LeNetGraph_0-input_0". Equal names are one size. Raises GraphError for names and axes that are not there.
    """
    inputs = {name: str(spec) for name, spec in zip(names, specs)}
    axes: dict[str, list[tuple[int, int]]] = {}
    if not isinstance(dynamic, Mapping):
        refuse(f"dynamic is {dynamic!r}, where a dict from inputs to axes is wanted", EXAMPLE, inputs)
    for key, wanted in dynamic.items():
        i = number_of(key, names, inputs)
        if isinstance(wanted, list | tuple):
            wanted = {axis: f"{re.sub(r'[^A-Za-z0-9]+', '_', names[i]).strip('_')}_{axis}" for axis in wanted}
        if not isinstance(wanted, Mapping):
            refuse(f"dynamic: of the input {names[i]} there is {wanted!r}, where a dict from axes to names is wanted",
                   EXAMPLE, inputs)
        for axis, name in wanted.items():
            n = specs[i].ndim
            if type(axis) is not int or not -n <= axis < n:
                refuse(f"dynamic: the input {names[i]} has no axis {axis!r}",
                       f"its axes are 0 to {n - 1}" if n else "it has no axes: leave it out", inputs)
            if not isinstance(name, str) or not name.isidentifier():
                refuse(f"dynamic: axis {axis} of {names[i]} is named {name!r}, where a word is wanted", EXAMPLE, inputs)
            if (place := (i, axis % n)) in [p for other in axes.values() for p in other]:
                refuse(f"dynamic: axis {place[1]} of {names[i]} is named twice", "one name for each axis", inputs)
            axes.setdefault(name, []).append(place)
    if len(axes) > AXES:
        refuse(f"dynamic: {len(axes)} axes have a size of their own, and at most {AXES} can",
               "one name for axes whose sizes are equal", {"axes": ", ".join(axes)})
    result = {name: tuple(sorted(places)) for name, places in axes.items()}
    sizes_of(result, specs, names)
    return result


def number_of(key: Any, names: Sequence[str], inputs: Mapping[str, str]) -> int:
    """The number of an input that is known by its name or position."""
    if key in names:
        return list(names).index(key)
    match = re.fullmatch(r"(.*-)?input_(\d{1,4})", key) if isinstance(key, str) else None
    number = int(match[2]) if match else key
    if type(number) is not int or not 0 <= number < len(names):
        output = isinstance(key, str) and key.startswith("output")
        refuse(f"dynamic: there is no input {key!r}",
               "name the inputs alone: outputs follow them" if output else f"its inputs are {', '.join(names)}", inputs)
    return number


def sizes_of(axes: Axes, specs: Sequence[Spec], names: Sequence[str] = ()) -> dict[str, int]:
    """The size of each dynamic axis in inputs of these specs. Raises ShapeError where one is 0, or differs between
    inputs that share it."""
    sizes: dict[str, int] = {}
    names = names or [f"input_{i}" for i in range(len(specs))]
    for name, places in axes.items():
        inputs = {names[i]: specs[i] for i, _ in places}
        if any(axis >= specs[i].ndim for i, axis in places):
            refuse(f"the axis {name!r} is missing in an input",
                   ", ".join(f"axis {axis} of {names[i]}" for i, axis in places), inputs, kind=ShapeError)
        found = {specs[i].shape[axis] for i, axis in places}
        if len(found) > 1:
            texts = [f"{specs[i].shape[axis]} (axis {axis} of {names[i]})" for i, axis in places]
            refuse(f"the axis {name!r} has one size in all inputs, not {' and '.join(texts)}",
                   "inputs of one size there; or another name for an axis with a size of its own", inputs,
                   kind=ShapeError)
        sizes[name] = found.pop()
        if sizes[name] < 1:
            refuse(f"the axis {name!r} has size {sizes[name]}", "a size of at least 1", inputs, kind=ShapeError)
    return sizes


def resized(axes: Axes, specs: Sequence[Spec], sizes: Mapping[str, int]) -> list[Spec]:
    """The specs of the inputs at other sizes."""
    shapes = [list(spec.shape) for spec in specs]
    for name, places in axes.items():
        for i, axis in places:
            shapes[i][axis] = sizes[name]
    return [spec.but(shape=tuple(shape)) for spec, shape in zip(specs, shapes)]


# ---- a number of several sizes ---------------------------------------------------------------------------------------


class Unfollowed(Exception):
    """A difference between traces that follows no axis. values: at each size.  why: what would do instead."""

    def __init__(self, values: Sequence[Any], why: str = ""):
        self.values, self.why = values, why


class Law:
    """Finds what a number is at all sizes from what it was at some. names: of the axes.  sizes: of each trace, the
    first is the base; all combinations of its sizes and the second of each axis are among them."""

    def __init__(self, names: Sequence[str], sizes: Sequence[tuple[int, ...]]):
        self.names, self.sizes = tuple(names), list(sizes)
        self.dicts = [dict(zip(names, s)) for s in sizes]
        self.low = sizes[0]
        self.high = tuple(next(s[k] for s in sizes if s[k] != n) for k, n in enumerate(self.low))

    def of(self, values: Sequence[Any]) -> Any:
        """A structure of these, one of each trace, with what follows at the leaves. Raises Unfollowed."""
        first = values[0]
        if all(same(x, first) for x in values[1:]):
            return first
        kinds = {type(x) for x in values}
        if kinds <= {tuple} or kinds <= {list}:
            if len({len(x) for x in values}) == 1:
                return type(first)([self.of(column) for column in zip(*values)])
        elif kinds == {dict}:
            if len({tuple(x) for x in values}) == 1:
                return {key: self.of([x[key] for x in values]) for key in first}
        elif kinds == {int}:
            if (result := self.integer(values)) is not None:
                return result
            raise Unfollowed(values, "x.size(0) times or plus a whole number follows; x.size(0) // 2 does not, since "
                                     "it is rounded at odd sizes")
        elif kinds == {float}:
            if (result := self.number(values)) is not None:
                return result
            raise Unfollowed(values, "multiply and divide by x.size(0) itself, or x.mean(0) for x.sum(0) / n")
        raise Unfollowed(values)

    def integer(self, values: Sequence[int]) -> Follows | None:
        """The multilinear function with whole factors that has these values."""
        terms = self.factors(dict(zip(self.sizes, values)).__getitem__)
        if any(factor.denominator != 1 for factor in terms.values()):
            return None
        ordered = sorted(terms.items(), key=lambda item: (-len(item[0]), item[0]))
        result = Follows(tuple((int(factor), names) for names, factor in ordered if factor))
        return result if all(result.at(s) == x for s, x in zip(self.dicts, values)) else None

    def factors(self, value: Callable[[tuple], int], rest: tuple = ()) -> dict[tuple[str, ...], Fraction]:
        """Names of axes -> the factor of their product. rest: the sizes that are chosen."""
        k = len(rest)
        if k == len(self.names):
            return {(): Fraction(value(rest))}
        low, high = [self.factors(value, (*rest, n[k])) for n in (self.low, self.high)]
        result = {}
        for names, x in low.items():
            slope = (high[names] - x) / (self.high[k] - self.low[k])
            result[names], result[(self.names[k], *names)] = x - slope * self.low[k], slope
        return result

    def number(self, values: Sequence[float]) -> Ratio | None:
        """The Ratio that has exactly these values."""
        if not all(1e-300 < abs(x) < math.inf for x in values):
            return None
        for ratio in self.ratios(values):
            if all(ratio.at(s) == x for s, x in zip(self.dicts, values)):
                return ratio
        return None

    def ratios(self, values: Sequence[float]) -> Iterator[Ratio]:
        """Candidates: a whole number; 1 or 2 divided by one; and momentum * (n / (n - 1)), as in a batch norm."""
        if all(x == int(x) for x in values) and (top := self.integer(list(map(int, values)))):
            yield Ratio(1.0, top, whole(1))
        for c in (1, 2, -1, -2):
            if bottom := self.integer([round(c / x) for x in values]):
                yield Ratio(1.0, whole(c), bottom)
        for count in range(1, len(self.names) + 1):
            for names in itertools.combinations(self.names, count):
                n = [math.prod([s[name] for name in names]) for s in self.dicts]
                j = next(j for j, m in enumerate(n) if m != n[0])
                # 1 / value = 1/scale - 1/(scale * factor * n), a line in 1 / n
                slope = (1 / values[j] - 1 / values[0]) / (1 / n[0] - 1 / n[j])
                start = 1 / values[0] + slope / n[0]
                if slope > 0 < start and (factor := round(start / slope)):
                    top, bottom = Follows(((factor, names),)), Follows(((factor, names), (-1, ())))
                    near = values[0] / Ratio(1.0, top, bottom).at(self.dicts[0])
                    for scale in (float(f"{near:.12g}"), near, math.nextafter(near, 0), math.nextafter(near, math.inf)):
                        yield Ratio(scale, top, bottom)


def whole(n: int) -> Follows:
    return Follows(((n, ()),))


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if type(a) in (tuple, list):
        return len(a) == len(b) and all(map(same, a, b))
    if type(a) is dict:
        return list(a) == list(b) and all(map(same, a.values(), b.values()))
    return a is b or bool(a == b) or (a != a and b != b)


# ---- a program of several sizes --------------------------------------------------------------------------------------


def follow(names: Sequence[str], traces: Mapping[tuple[int, ...], Graph]
           ) -> tuple[dict[Node, dict[str | int, Any]], dict[Source, Filled]]:
    """What differs between traces of one program at several sizes, as it is at all sizes: of a node its attrs by name
    and the numbers among its inputs by their place; and constants.

    names: of the axes.  traces: sizes of these -> the trace; the first is the base, whose nodes the result names. There
    must be each combination of the first two sizes of every axis, and one further size to check. Raises GraphError with
    the op, its line and the values for what does not follow.
    """
    law, graphs = Law(names, list(traces)), list(traces.values())
    base = graphs[0]
    labels = list(map(label, law.dicts))
    aligned(graphs, labels)
    follows: dict[Node, dict[str | int, Any]] = {}
    fills: dict[Source, Filled] = {}
    for nodes in zip(*[graph.nodes for graph in graphs]):
        node = nodes[0]
        for key, value in ({} if node.op is recompute else node.attrs).items():  # its `call` counts through all builds
            columns = [other.attrs.get(key) for other in nodes]
            if (result := solved(law, columns, node, f"its {key}", labels)) is not value:
                follows.setdefault(node, {})[key] = result
        for i, x in enumerate(node.inputs):
            if x.__class__ is not Value:
                columns = [other.inputs[i] for other in nodes]
                if (result := solved(law, columns, node, f"the number {x!r} that it takes", labels)) is not x:
                    follows.setdefault(node, {})[i] = result
    for sources in zip(*[graph.states for graph in graphs]):
        arrays = [s.array for s in sources]
        if sources[0].read is None and any(a is not arrays[0] and not equal(a, arrays[0]) for a in arrays):
            try:
                fills[sources[0]] = fill(law, arrays)
            except Unfollowed as error:
                user = next((n for n in base.nodes if any(x.__class__ is Value and x.node is sources[0]
                                                          for x in n.inputs)), None)
                hint = "flow.zeros, ones, full and arange of the size follow; or make it with ops, or give it as input"
                differs(f"a constant of the program ({sources[0].name or 'captured'})", error, user, labels, hint)
    return follows, fills


def solved(law: Law, columns: Sequence[Any], node: Node, what: str, labels: Sequence[str]) -> Any:
    try:
        return law.of(columns)
    except Unfollowed as error:
        hint = error.why or "compute it with tensors, which follow by themselves"
        differs(f"{node.op}: {what}", error, node, labels, hint)


def differs(what: str, error: Unfollowed, node: Node | None, labels: Sequence[str], hint: str) -> NoReturn:
    """Refuse a difference, with its values at all sizes."""
    refuse(f"{what} differs between sizes of the dynamic axes, and does not follow them",
           f"{hint}; or leave that axis out of dynamic", dict(zip(labels, map(shown, error.values))), place(node))


def shown(x: Any) -> str:
    text = f"{x.dtype}{list(x.shape)} {x.reshape(-1)[:6].tolist()}" if isinstance(x, np.ndarray) else repr(x)
    return text if len(text) <= 80 else text[:77] + "..."


def place(node: Node | None) -> str:
    if node is None:
        return here()
    scope = node.scope.lstrip("/")
    return f"in {scope}, at {where_text(node.where)}" if scope else f"at {where_text(node.where)}"


def aligned(graphs: Sequence[Graph], labels: Sequence[str]) -> None:
    """Refuse traces that have other ops, or ops that read other values."""
    keys = list(map(positions, graphs))
    for i, nodes in enumerate(itertools.zip_longest(*[graph.nodes for graph in graphs])):
        ops = [None if node is None else node.op for node in nodes]
        reads = [None if node is None else wiring(node.inputs, key) for node, key in zip(nodes, keys)]
        if any(op is not ops[0] for op in ops) or any(r != reads[0] for r in reads):
            node = next(node for node in nodes if node is not None)
            values = {label: "nothing" if n is None else n for label, n in zip(labels, nodes)}
            other = "is another one" if any(op is not ops[0] for op in ops) else "reads other values"
            refuse(f"op number {i} of the program ({node.op}) {other} at another size of the dynamic axes",
                   "a loop or a branch of build that depends on the size does not follow it: ops over the whole axis "
                   "do; or leave that axis out of dynamic", values, place(node))
    ends = [(wiring(graph.outputs, key), wiring(graph.updates.values(), key), [key[s] for s in graph.updates])
            for graph, key in zip(graphs, keys)]
    if any(end != ends[0] for end in ends) or len({len(graph.states) for graph in graphs}) > 1:
        refuse("what build returns, updates or reads is another at another size of the dynamic axes",
               "a branch of build that depends on the size does not follow it", dict(zip(labels, graphs_text(graphs))))


def graphs_text(graphs: Sequence[Graph]) -> list[str]:
    return [f"{len(g.outputs)} results, {len(g.updates)} updates, {len(g.states)} states" for g in graphs]


def positions(graph: Graph) -> dict[Node, tuple[str, int]]:
    lists = {"input": graph.inputs, "state": graph.states, "node": graph.nodes}
    return {node: (kind, i) for kind, nodes in lists.items() for i, node in enumerate(nodes)}


def wiring(inputs: Any, key: Mapping[Node, tuple[str, int]]) -> list:
    """What a node reads, by position; a number by its type."""
    return [(key[x.node], x.index) if x.__class__ is Value else type(x) for x in inputs]


def equal(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def fill(law: Law, arrays: Sequence[np.ndarray]) -> Filled:
    """Constants that differ, if they are of one number each, or count on by one step."""
    if len({(a.dtype, a.ndim) for a in arrays}) > 1 or not all(a.size for a in arrays):
        raise Unfollowed(arrays)
    shape = law.of([a.shape for a in arrays])
    firsts = [a.reshape(-1)[0] for a in arrays]
    if all((a == first).all() for a, first in zip(arrays, firsts)):
        return Filled(shape, law.of([first.item() for first in firsts]))
    counts = arrays[0].ndim == 1 and arrays[0].dtype.kind in "iuf"
    steps = {float(x) for a in arrays for x in np.diff(a)} if counts else set()
    if len(steps) != 1 or not all(float(x).is_integer() for x in (*steps, *firsts)):
        raise Unfollowed(arrays)
    return Filled(shape, law.of([int(first) for first in firsts]), int(steps.pop()))


# ---- the traces ------------------------------------------------------------------------------------------------------


class Tries:
    """Traces of a program at several sizes. base: what it is at `specs`; has a `graph` and an `out_tree`.  again:
    traces it for inputs of other specs.  done: sizes -> the program.  failed: sizes -> what was raised there."""

    def __init__(self, axes: Axes, names: Sequence[str], specs: Sequence[Spec], base: Any,
                 again: Callable[[list[Spec]], Any]):
        self.axes, self.names, self.specs, self.base, self.again = axes, names, specs, base, again
        self.first = sizes_of(axes, specs, names)
        self.done: dict[tuple[int, ...], Any] = {}
        self.failed: dict[str, str] = {}

    def at(self, sizes: Mapping[str, int]) -> Any:
        """The program at these sizes; None where its build fails."""
        if dict(sizes) == self.first:
            return self.base
        try:
            return self.again(resized(self.axes, self.specs, sizes))
        except MinflowError as error:
            texts = [error.what, *[f"{name} {x}" for name, x in error.values.items()], error.where]
        except Exception as error:  # the learner's code may raise anything
            texts = [f"{type(error).__name__}: {error}"]
        self.failed[label(sizes)] = "; ".join(filter(None, texts))
        return None

    def take(self, sizes: Mapping[str, int]) -> bool:
        """Trace at these sizes, if that goes well."""
        key = tuple(sizes[name] for name in self.axes)
        if key not in self.done and (program := self.at(sizes)) is not None:
            self.done[key] = program
        return key in self.done

    def need(self, done: bool, name: str) -> None:
        if not done:
            refuse(f"build fails at other sizes of the dynamic axis {name!r} than that of the example", self.hint(),
                   self.failed)

    def hint(self) -> str:
        """Which further axes may have to be dynamic."""
        for name, places in self.axes.items():
            for i, spec in enumerate(self.specs):
                others = [axis for axis, n in enumerate(spec.shape) if n == self.first[name]]
                if others and all(i != j for place in self.axes.values() for j, _ in place):
                    return (f"axis {others[0]} of {self.names[i]} has that size too: add "
                            f"{self.names[i]!r}: {{{others[0]}: {name!r}}}")
        return "leave the axis out of dynamic, if build takes one size alone"


def label(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={n}" for name, n in sizes.items())


def grown(axes: Axes, names: Sequence[str], specs: Sequence[Spec], base: Any, again: Callable[[list[Spec]], Any]
          ) -> tuple[Any, dict[Node, dict[str | int, Any]], dict[Source, Filled]]:
    """Trace at other sizes; gives the base, and what of it follows, as `follow` does. The arguments: see Tries.

    A size of 1 is broadcast, and a program can read otherwise then: its base is a trace at 2. Sizes at which a build
    fails are left out, as long as there are two besides the base.
    """
    tries = Tries(axes, names, specs, base, again)
    low = {name: max(n, 2) for name, n in tries.first.items()}
    tries.need(tries.take(low), next(iter(axes)))
    high: dict[str, int] = {}
    for name, n in low.items():
        taken = list(itertools.islice((m for m in candidates(n) if tries.take({**low, name: m})), 2))
        tries.need(len(taken) == 2, name)
        high[name] = taken[0]
    for combination in itertools.product(*[(low[name], high[name]) for name in axes]):
        tries.need(tries.take(dict(zip(axes, combination))), " and ".join(axes))
    programs = list(tries.done.values())
    if len({str(program.out_tree) for program in programs}) > 1:
        refuse("build returns another structure at another size of the dynamic axes",
               "one tensor with the axis in it, in place of a list of as many tensors", {"sizes": list(tries.done)})
    follows, fills = follow(tuple(axes), {sizes: program.graph for sizes, program in tries.done.items()})
    law = Law(tuple(axes), list(tries.done))
    for sizes in (tries.first, dict.fromkeys(axes, 1)):
        check_results(law, [program.graph.outputs for program in programs], sizes, tries.at(sizes))
    return programs[0], follows, fills


def check_results(law: Law, results: Sequence[Sequence[Value]], sizes: Mapping[str, int], program: Any) -> None:
    """Refuse a program whose results have other axes at a size of 1 than at larger ones: squeeze() takes an axis away
    there. results: of each trace.  program: the trace at these sizes; None if there is none."""
    for i, value in enumerate([] if program is None else program.graph.outputs):
        shapes = [values[i].spec.shape for values in results]
        if {len(shape) for shape in shapes} != {value.spec.ndim}:
            refuse(f"result {i} of build has another number of axes at a size of 1",
                   "x.squeeze(1) names an axis; x.squeeze() takes away each one of size 1",
                   {label(law.dicts[0]): list(shapes[0]), label(sizes): list(value.spec.shape)})


def candidates(n: int) -> list[int]:
    """Sizes to trace at besides n: one that n divides, one that it does not, and smaller ones for a program that takes
    no more than n."""
    return [m for m in dict.fromkeys((2 * n, 2 * n + 1, 3 * n, n // 2, n - 1, n // 4, n - 2)) if m > 1 and m != n]
