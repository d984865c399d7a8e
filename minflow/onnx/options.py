"""Arguments that `export` shares with PyTorch: the ways to name dynamic axes, and the options of its exporters, which
are accepted if they do not change the file.

Read next: `file.py`, which uses them.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.base.errors import CallError, GraphError
from ..core.ir import Source
from ..core.source_location import fail, warn
from .builder import OPSET

Axes = dict[str, dict[int, str]]


class TrainingMode(enum.IntEnum):
    """PyTorch's names for the mode of the exported module; minflow exports in eval mode."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.IntEnum):
    """PyTorch's names for the ops allowed in the file; minflow writes only ONNX ops."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


DEFAULT_BEHAVIOR = frozenset(
    "dynamo do_constant_folding optimize external_data artifacts_dir autograd_inlining fallback".split()
)
WITHOUT_EFFECT = frozenset(
    "report verify profile dump_exported_program".split()
)  # they only write or run something in addition
FIXED_VALUES: dict[str, tuple[Any, str]] = {  # option -> its only allowed value, and a hint
    "export_params": (True, "leave it out: the file holds the weights"),
    "keep_initializers_as_inputs": (False, "leave it out; or give weights that change to the model as inputs"),
    "training": (TrainingMode.EVAL, "leave it out: a module is exported in eval mode"),
    "operator_export_type": (OperatorExportTypes.ONNX, "leave it out: the file has operations of ONNX alone"),
    "custom_opsets": (None, "use operations of ONNX, which docs/onnx.md lists"),
    "custom_translation_table": (None, "use operations of ONNX, which docs/onnx.md lists"),
    "export_modules_as_functions": (False, "leave it out: nodes have the names of their modules"),
}


def check_options(options: Mapping[str, Any], opset: int | None, training: bool) -> None:
    """Raise an error for an option that would change the file, and warn about options without effect. training: mode of
    the model.
    """
    for name, value in options.items():
        if name in FIXED_VALUES:
            fits, hint = FIXED_VALUES[name]
            kept = name == "training" and value == TrainingMode.PRESERVE and not training
            if (value or None) != (fits or None) and not kept and not (name == "export_params" and value is None):
                asked = f"{name}={getattr(value, 'name', value)}"
                what = f"onnx.export: {asked} asks for a file that minflow does not write"
                fail(GraphError, what, hint, **{name: value})
        elif name not in DEFAULT_BEHAVIOR and name not in WITHOUT_EFFECT:
            what = f"onnx.export has no argument {name!r}"
            fail(CallError, what, "help(flow.onnx.export) lists them", **{name: value})
    if idle := [name for name in options if name in WITHOUT_EFFECT and options[name]]:
        warn(f"onnx.export, {', '.join(idle)}: without effect", "leave it out; each file is checked by onnx.checker")
    if opset not in (None, OPSET):
        warn(
            f"onnx.export, opset_version={opset}: the file is of opset {OPSET}, the one that minflow writes",
            f"opset_version={OPSET}; onnxruntime reads it from version 1.14 on",
        )


# ---- dynamic axes ----------------------------------------------------------------------------------------------------


def dynamic_of(
    inputs: Sequence[Source], names: Sequence[str], outputs: Sequence[str], dynamic: Any, axes: Any, shapes: Any
) -> Any:
    """Convert `dynamic`, `dynamic_axes` or `dynamic_shapes` to the form of `program_of`. names: names of the inputs in
    the file.
    """
    if sum(x is not None for x in (dynamic, axes, shapes)) > 1:
        what = "onnx.export: dynamic axes are named twice"
        hint = "one of dynamic, dynamic_axes, dynamic_shapes"
        fail(GraphError, what, hint, dynamic=dynamic, dynamic_axes=axes, dynamic_shapes=shapes)
    own = [source.name for source in inputs]
    known = dict(zip(names, own)) | dict(zip(own, own))
    if isinstance(dynamic, Mapping):
        return {known.get(key, key): value for key, value in dynamic.items()}
    if axes is not None:
        return from_dynamic_axes(axes, known, outputs)
    return dynamic if shapes is None else from_dynamic_shapes(shapes, inputs)


def from_dynamic_axes(axes: Any, known: Mapping[str, str], outputs: Sequence[str]) -> Any:
    """dynamic_axes: {"input": {0: "batch"}, "output": {0: "batch"}}, or {"input": [0]}. Axes of outputs are inferred
    from those of the inputs.
    """
    if not isinstance(axes, Mapping):
        what = "onnx.export: dynamic_axes must be a dict from names to axes"
        fail(GraphError, what, 'dynamic_axes={"x": {0: "batch"}}', dynamic_axes=axes)
    wanted = {}
    for key, value in axes.items():
        if key in known:
            wanted[known[key]] = (
                {axis: axis_identifier(name) for axis, name in value.items()} if isinstance(value, Mapping) else value
            )
        elif key not in outputs:
            what = f"onnx.export: dynamic_axes names {key!r}, and there is no such input or output"
            hint = f"{', '.join(known)}; of outputs {', '.join(outputs)}; input_names and output_names name them"
            fail(GraphError, what, hint, dynamic_axes=axes)
    return {key: value for key, value in wanted.items() if value}


def axis_identifier(name: Any) -> Any:
    """The name of an axis as an identifier: "batch size" becomes batch_size."""
    return re.sub(r"\W", "_", name) if isinstance(name, str) else name


def from_dynamic_shapes(shapes: Any, inputs: Sequence[Source]) -> Axes:
    """dynamic_shapes: for each argument of forward, by name or in order, its axes by index, {0: "batch"}, or one entry
    per axis, ("batch", None). None means not dynamic.
    """
    rest = list(inputs)
    wanted: Axes = {}
    if isinstance(shapes, Mapping):
        for key, value in shapes.items():
            mine = [s for s in inputs if s.name == key or s.name.startswith(f"{key}[")]
            if not mine:
                what = f"onnx.export: dynamic_shapes names {key!r}, and there is no such input"
                fail(GraphError, what, f"its inputs are {', '.join(s.name for s in inputs)}", dynamic_shapes=shapes)
            wanted.update(named_axes(value, iter(mine)))
    else:
        wanted.update(named_axes(list(shapes), iter(rest)))
    return {key: value for key, value in wanted.items() if value}


def named_axes(x: Any, inputs: Iterator[Source]) -> Iterator[tuple[str, dict[int, str]]]:
    """Yield (name of an input, its axes) from a structure like that of the arguments."""
    entries = list(x.values()) if isinstance(x, Mapping) else list(x) if isinstance(x, list | tuple) else []
    by_axis = isinstance(x, Mapping) and all(isinstance(key, int) for key in x)
    if (
        x is None
        or by_axis
        or (
            entries
            and not any(isinstance(e, Mapping | list | tuple) for e in entries)
            and any(e is not None for e in entries)
        )
    ):
        source = next(inputs, None)
        if source is not None:
            rows = x.items() if by_axis else enumerate(entries)
            yield (
                source.name,
                {
                    axis: axis_identifier(named)
                    for axis, dim in rows
                    if (named := getattr(dim, "__name__", dim))
                    if isinstance(named, str)
                },
            )
        return
    for entry in entries:
        yield from named_axes(entry, inputs)


def share_unnamed(axes: Any, inputs: Sequence[Source]) -> Any:
    """The axes, with the same name for all unnamed axes of equal size in the example; None if there are no unnamed
    axes.
    """
    names: dict[int, str] = {}
    result = {}
    for source in inputs:
        wanted = axes.get(source.name)
        if isinstance(wanted, list | tuple):
            wanted = {
                axis: names.setdefault(source.out_specs[0].shape[axis], axis_identifier(f"{source.name}_{axis}"))
                for axis in wanted
            }
        if wanted:
            result[source.name] = wanted
    listed = [x for x in axes.values() if isinstance(x, list | tuple)]
    return result if len(names) < sum(map(len, listed)) else None
