"""The dynamic axes of the inputs, as the user names them, and their sizes in a call.

Read next: `derived_sizes.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from ...core.base.errors import GraphError, ShapeError
from ...core.source_location import here
from ...core.spec import Spec

MAX_DYNAMIC_AXES = 3  # each axis doubles the number of traces
Axes = Mapping[str, tuple[tuple[int, int], ...]]  # name of an axis -> (index of an input, its axis)
EXAMPLE = 'dynamic={"x": {0: "batch"}}'


def refuse(what: str, hint: str, values: Mapping[str, Any], where: str = "", kind: type = GraphError) -> NoReturn:
    raise kind(what, values=values, where=where or here(), hint=hint)


def axes_of(dynamic: Any, names: Sequence[str], specs: Sequence[Spec]) -> Axes:
    """Parse the axes that a user names: `{"x": {0: "batch"}}`, or `{"x": [0]}`, which generates the name "x_0".

    names, specs: names and specs of the program's inputs. An input can also be named by position: 0, "input_0",
    "_LeNetGraph_0-input_0". Equal names mean equal sizes. Raises GraphError for unknown names and axes.
    """
    inputs = {name: str(spec) for name, spec in zip(names, specs)}
    axes: dict[str, list[tuple[int, int]]] = {}
    if not isinstance(dynamic, Mapping):
        refuse(f"dynamic must be a dict from inputs to axes, got {dynamic!r}", EXAMPLE, inputs)
    for key, wanted in dynamic.items():
        i = number_of(key, names, inputs)
        if isinstance(wanted, list | tuple):
            wanted = {axis: f"{re.sub(r'[^A-Za-z0-9]+', '_', names[i]).strip('_')}_{axis}" for axis in wanted}
        if not isinstance(wanted, Mapping):
            what = f"dynamic: the input {names[i]} must have a dict from axes to names, got {wanted!r}"
            refuse(what, EXAMPLE, inputs)
        for axis, name in wanted.items():
            n = specs[i].ndim
            if type(axis) is not int or not -n <= axis < n:
                what = f"dynamic: the input {names[i]} has no axis {axis!r}"
                refuse(what, f"its axes are 0 to {n - 1}" if n else "it has no axes: leave it out", inputs)
            if not isinstance(name, str) or not name.isidentifier():
                refuse(f"dynamic: the name of axis {axis} of {names[i]} must be a word, got {name!r}", EXAMPLE, inputs)
            if (place := (i, axis % n)) in [p for other in axes.values() for p in other]:
                refuse(f"dynamic: axis {place[1]} of {names[i]} is named twice", "one name for each axis", inputs)
            axes.setdefault(name, []).append(place)
    if len(axes) > MAX_DYNAMIC_AXES:
        what = f"dynamic: {len(axes)} axes have a size of their own, and at most {MAX_DYNAMIC_AXES} can"
        refuse(what, "one name for axes whose sizes are equal", {"axes": ", ".join(axes)})
    result = {name: tuple(sorted(places)) for name, places in axes.items()}
    sizes_of(result, specs, names)
    return result


def number_of(key: Any, names: Sequence[str], inputs: Mapping[str, str]) -> int:
    """Index of an input that is given by name or position."""
    if key in names:
        return list(names).index(key)
    match = re.fullmatch(r"(.*-)?input_(\d{1,4})", key) if isinstance(key, str) else None
    number = int(match[2]) if match else key
    if type(number) is not int or not 0 <= number < len(names):
        output = isinstance(key, str) and key.startswith("output")
        refuse(
            f"dynamic: there is no input {key!r}",
            "name only inputs; the axes of outputs follow from them"
            if output
            else f"its inputs are {', '.join(names)}",
            inputs,
        )
    return number


def sizes_of(axes: Axes, specs: Sequence[Spec], names: Sequence[str] = ()) -> dict[str, int]:
    """The size of each dynamic axis in inputs of these specs. Raises ShapeError if one is 0 or differs between inputs
    that share it.
    """
    sizes: dict[str, int] = {}
    names = names or [f"input_{i}" for i in range(len(specs))]
    for name, places in axes.items():
        inputs = {names[i]: specs[i] for i, _ in places}
        if any(axis >= specs[i].ndim for i, axis in places):
            what = f"the axis {name!r} is missing in an input"
            refuse(what, ", ".join(f"axis {axis} of {names[i]}" for i, axis in places), inputs, kind=ShapeError)
        found = {specs[i].shape[axis] for i, axis in places}
        if len(found) > 1:
            texts = [f"{specs[i].shape[axis]} (axis {axis} of {names[i]})" for i, axis in places]
            what = f"the axis {name!r} has one size in all inputs, not {' and '.join(texts)}"
            hint = "inputs of one size there; or another name for an axis with a size of its own"
            refuse(what, hint, inputs, kind=ShapeError)
        sizes[name] = found.pop()
        if sizes[name] < 1:
            refuse(f"the axis {name!r} has size {sizes[name]}", "a size of at least 1", inputs, kind=ShapeError)
    return sizes


def specs_at_sizes(axes: Axes, specs: Sequence[Spec], sizes: Mapping[str, int]) -> list[Spec]:
    """The specs of the inputs at other sizes."""
    shapes = [list(spec.shape) for spec in specs]
    for name, places in axes.items():
        for i, axis in places:
            shapes[i][axis] = sizes[name]
    return [spec.replace(shape=tuple(shape)) for spec, shape in zip(specs, shapes)]
