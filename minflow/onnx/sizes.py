"""Find which sizes of a program's values depend on its dynamic axes, by running the shape rules at other sizes.

Read next: `builder.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import NamedTuple

from ..compiler.dynamic_shapes.axes import sizes_of, specs_at_sizes
from ..compiler.dynamic_shapes.derived_sizes import evaluate_sizes
from ..compiler.dynamic_shapes.size_relations import NotSizeDependent, SizeSolver
from ..compiler.dynamic_shapes.traces import candidates
from ..core.base.errors import MinflowError
from ..core.infer import consult
from ..core.ir import Value, outputs_of
from ..core.spec import Spec
from ..deploy.program import Program


class SizeOf(NamedTuple):
    """The size of an axis of a value at run time. text: its formula, such as "2*batch"; "" if it is not a sum of
    products.
    """

    value: Value
    axis: int
    text: str


def dynamic_sizes(program: Program) -> dict[Value, tuple[int | SizeOf, ...]]:
    """The sizes of each value with at least one size that depends on a dynamic axis."""
    if not program.axes:
        return {}
    names = tuple(program.axes)
    tried = shapes_at_all_sizes(program)
    solver = SizeSolver(names, list(tried))
    first, *others = tried.values()
    moving = {}
    for value, shape in first.items():
        columns = list(zip(shape, *[shapes[value] for shapes in others]))
        if any(len(set(column)) > 1 for column in columns):
            moving[value] = tuple(
                n[0] if len(set(n)) == 1 else SizeOf(value, axis, text(solver, n)) for axis, n in enumerate(columns)
            )
    return moving


def text(solver: SizeSolver, column: tuple[int, ...]) -> str:
    try:
        return str(solver.solve(column)).replace(" ", "")
    except NotSizeDependent:
        return ""


def shapes_at_all_sizes(program: Program) -> dict[tuple[int, ...], dict[Value, tuple[int, ...]]]:
    """Sizes of the dynamic axes -> shape of each value; the sizes of the example come first."""
    low = sizes_of(program.axes, [source.out_specs[0] for source in program.graph.inputs])
    tried: dict[tuple[int, ...], dict[Value, tuple[int, ...]]] = {}

    def fits(sizes: Mapping[str, int]) -> bool:
        try:
            tried[tuple(sizes.values())] = shapes_at(program, sizes)
        except MinflowError:
            return False
        return True

    fits(low)
    high = {name: next(m for m in candidates(n) if fits({**low, name: m})) for name, n in low.items()}
    for combination in itertools.product(*[(low[name], high[name]) for name in low]):
        fits(dict(zip(low, combination)))
    for more in (1, 2, 3):  # to detect rounding
        fits({name: n + more for name, n in low.items()})
    return tried


def shapes_at(program: Program, sizes: Mapping[str, int]) -> dict[Value, tuple[int, ...]]:
    """The shape of each value at these sizes. Raises the error of a shape rule that refuses them."""
    graph = program.graph
    specs: dict[Value, Spec] = {outputs_of(s)[0]: s.out_specs[0] for s in graph.states}
    for source, filled in program.sized_constants.items():
        value = outputs_of(source)[0]
        specs[value] = value.spec.replace(shape=evaluate_sizes(filled.shape, sizes))
    given = specs_at_sizes(program.axes, [source.out_specs[0] for source in graph.inputs], sizes)
    specs |= {outputs_of(source)[0]: spec for source, spec in zip(graph.inputs, given)}
    for node in graph.nodes:
        size_dependent = program.size_dependent.get(node, {})
        attrs = {name: evaluate_sizes(size_dependent.get(name, x), sizes) for name, x in node.attrs.items()}
        _, results = consult(node.op, tuple([specs.get(x, type(x)) for x in node.inputs]), attrs)
        specs.update(zip(outputs_of(node), results))
    return {value: spec.shape for value, spec in specs.items()}
