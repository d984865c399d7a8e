"""`export`: write a graph or a module to an ONNX file.

Everything is checked before anything is written: all unsupported ops are reported in one error, with their lines,
and the model must pass ONNX's own checker in memory. Read next: `model.py`.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from ..core.base.errors import GraphError
from ..core.files.atomic import old_file_state, write_hint
from ..core.source_location import describe, fail, here, need, warn
from ..deploy.program import Program, program_of
from ..deploy.replay import LoadedGraph, saved_axes
from ..io import atomic, container, file_objects
from ..io.files import checked_path
from ..nn.graph import Graph as StaticGraph
from ..nn.graph.graph import RunningGraph
from ..nn.graph.tree import leaves, unflatten
from ..nn.module import Module
from .builder import OPSET
from .model import RefusedComposites, expand_composites, model_of
from .options import check_options, dynamic_of, share_unnamed

Prepare = Callable[[Program], Program]
CONSTANT_TYPES = (bool, int, float, str)  # arguments that are not inputs of the file

EXPORTING: ContextVar[bool] = ContextVar("exporting", default=False)


def is_in_onnx_export() -> bool:
    """True while `export` traces the model, for a forward that must behave differently then."""
    return EXPORTING.get()


class ONNXProgram:
    """Result of `export` without a file. model_proto: the ModelProto of the package onnx."""

    def __init__(self, model_proto: Any):
        self.model_proto = model_proto

    def __repr__(self) -> str:
        graph = self.model_proto.graph
        return f"ONNXProgram({graph.name}, opset {OPSET}, {len(graph.node)} nodes); save(path) writes it"

    def save(self, destination: str | os.PathLike[str] | Any) -> None:
        """Write the file atomically, or write to an open binary file."""
        write(self.model_proto.SerializeToString(), destination)


def export(
    model: Any,
    args: Any = None,
    f: Any = None,
    dynamic: Mapping | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_axes: Mapping | None = None,
    dynamic_shapes: Any = None,
    opset_version: int | None = None,
    verbose: bool | None = None,
    **options: Any,
) -> ONNXProgram | None:
    """Export the computation of a module or an nn.Graph to an ONNX file (opset 18).

    model: an nn.Module, exported in eval mode (its mode is restored) with the names of its state_dict(); an nn.Graph
    (for a training graph, only the forward part, without gradients and steps); or a predict job.
    args, kwargs: the arguments of one call: a tensor or a tuple, and keyword arguments (also as a dict that ends the
    tuple). Numbers and flags among them become constants. None for a graph that was called or loaded.
    f: path to write to, atomically, or a file open for writing bytes. Without it an ONNXProgram is returned.
    dynamic: axes that may have any size: {"x": {0: "batch"}}; for a loaded graph, the saved ones by default.
    PyTorch's dynamic_axes and dynamic_shapes have the same meaning.
    input_names, output_names: replace the names of forward's parameters, and "output_0", "output_1", ...
    opset_version, verbose, options: as in `torch.onnx.export`; accepted if they do not change the file. Another opset
    gives a warning.

    Raises GraphError for ops without an ONNX equivalent, naming all of them, and MissingDependencyError without the
    package onnx.  Source: the ONNX operator specification, onnx.ai/onnx/operators.
    """
    need("onnx", "flow.onnx.export")
    check_options(options, opset_version, getattr(model, "training", False))

    def axes_of(program: Program) -> Any:
        return dynamic_of(
            program.graph.inputs,
            replace_names("input", inputs_of(program), input_names),
            replace_names("output", outputs_of(program), output_names),
            dynamic,
            dynamic_axes,
            dynamic_shapes,
        )

    def exported(refused: Container = ()) -> ONNXProgram:
        token = EXPORTING.set(True)
        try:
            prepare = functools.partial(expand_composites, refused=refused)
            program = program_of_model(model, *arguments_of(model, args, kwargs), axes_of, prepare)
        finally:
            EXPORTING.reset(token)
        inputs = replace_names("input", inputs_of(program), input_names)
        return ONNXProgram(model_of(program, inputs, replace_names("output", outputs_of(program), output_names)))

    try:
        written = exported()
    except RefusedComposites as composites:
        written = exported(composites.numbers)
    if f is None:
        return written
    written.save(f)
    return None


# ---- the program -----------------------------------------------------------------------------------------------------


def arguments_of(model: Any, args: Any, kwargs: Mapping[str, Any] | None) -> tuple[tuple, dict[str, Any]]:
    """The positional and keyword arguments of the call. A dict at the end of `args` holds keyword arguments, if its
    keys are parameters of forward; an empty dict means that there are none.
    """
    given = () if args is None else tuple(args) if isinstance(args, tuple | list) else (args,)
    if kwargs is not None or not given or not isinstance(given[-1], dict):
        return given, dict(kwargs or {})
    *before, last = given
    try:
        inspect.signature(getattr(model, "forward", None) or model.build).bind(*before, **last)
    except (AttributeError, TypeError):
        return given, {}
    return tuple(before), last


def program_of_model(
    model: Any, args: tuple, kwargs: dict[str, Any], axes_of: Callable[[Program], Any], prepare: Prepare
) -> Program:
    """The program of a module, a graph or a job. axes_of: program -> its dynamic axes. prepare: see `program_of`."""
    if isinstance(model, Module):
        graph, args, kwargs = graph_around(model, args, kwargs)
        with eval_mode(model):
            graph.compiled_for(args, kwargs)
            return module_program(program_at_axes(graph, axes_of, prepare), type(model).__name__)
    if (args or kwargs) and isinstance(model, RunningGraph):
        model.compiled_for(args, kwargs)
    return program_at_axes(model, axes_of, prepare)


def program_at_axes(graph: Any, axes_of: Callable[[Program], Any], prepare: Prepare) -> Program:
    """The program of a called graph with its dynamic axes. Unnamed axes, {"x": [0], "y": [0]}, share a size if they
    cannot vary independently.
    """
    program = program_of(graph, prepare=prepare)
    axes = axes_of(program)
    if axes is None and isinstance(graph, LoadedGraph):
        axes = saved_axes(graph)
    if not axes:
        return program
    try:
        return program_of(graph, axes, prepare)
    except GraphError:
        with suppress(GraphError):
            if isinstance(axes, Mapping) and (together := share_unnamed(axes, program.graph.inputs)) is not None:
                return program_of(graph, together, prepare)
        raise


def module_program(program: Program, name: str) -> Program:
    """The program of a module that a graph holds as `model`, with the names of the module's own state_dict."""
    names = {node: text.removeprefix("model.").removeprefix("model-") for node, text in program.names.items()}
    tensors = [replace(h, name=h.name.removeprefix("model.")) for h in program.tensors]
    return replace(program, name=name, names=names, tensors=tensors)


def inputs_of(program: Program) -> list[str]:
    return [source.name for source in program.graph.inputs]


def outputs_of(program: Program) -> list[str]:
    """ "output_0", ..., or the keys of a dict."""
    count = len(program.graph.outputs)
    marks = [object() for _ in range(count)]
    names = [f"output_{i}" for i in range(count)]
    for path, mark in leaves(unflatten(program.out_tree, marks)):
        if path and isinstance(path[-1], str) and mark in marks:
            names[marks.index(mark)] = path[-1]
    return names


def graph_around(module: Module, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, tuple, dict[str, Any]]:
    """A graph that calls the module, with inputs named after forward's parameters; and the arguments of its call.
    Numbers and flags are part of the graph.
    """
    signature, name = inspect.signature(module.forward), type(module).__name__
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise GraphError(
            f"onnx.export: {name}.forward takes {signature}, and {error}",
            where=here(),
            values={"args": describe(args), "kwargs": describe(kwargs)},
            hint="flow.onnx.export(model, (x, y), path)",
        ) from None
    args, kwargs, fixed = split_constants(signature, args, kwargs)

    def build(self, *args, **kwargs):
        return self.model(*args, **kwargs, **fixed)

    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    parameters = [
        p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values() if p.name not in fixed
    ]
    build.__signature__ = inspect.Signature([first, *parameters])
    graph = type(name, (StaticGraph,), {"build": build, "_keeps": False})()
    graph.model = module
    return graph, args, kwargs


def split_constants(
    signature: inspect.Signature, args: tuple, kwargs: dict[str, Any]
) -> tuple[tuple, dict, dict[str, Any]]:
    """Split the arguments of a call into tensors and those that are numbers and flags."""
    kinds = {p.name: p.kind for p in signature.parameters.values()}
    fixed: dict[str, Any] = {}
    if any(isinstance(x, CONSTANT_TYPES) for x in (*args, *kwargs.values())) and not {
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.POSITIONAL_ONLY,
    } & set(kinds.values()):
        given = signature.bind(*args, **kwargs).arguments
        more = next((given.pop(name) for name in list(given) if kinds[name] == inspect.Parameter.VAR_KEYWORD), {})
        named = {**given, **more}
        fixed = {name: x for name, x in named.items() if isinstance(x, CONSTANT_TYPES)}
        args, kwargs = (), {name: x for name, x in named.items() if name not in fixed}
    return args, kwargs, fixed


@contextmanager
def eval_mode(module: Module) -> Iterator[None]:
    """Context manager: the module and its submodules are in eval mode."""
    modes = [(m, m.training) for m in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for m, training in modes:
            m.training = training


def replace_names(what: str, names: list[str], others: Sequence[str] | None) -> list[str]:
    """Replace the first names by the given ones."""
    others = list(others or [])
    if len(set(others)) < len(others):
        fail(GraphError, f"onnx.export: {what}_names has a name twice", f"another name for each {what}", names=others)
    if len(others) > len(names) and what == "output":
        hint = f"one name for each of {', '.join(names)}"
        fail(GraphError, f"onnx.export: {len(others)} output_names for {len(names)} outputs", hint, names=others)
    if len(others) > len(names):  # PyTorch renames the parameters with the rest
        warn(
            f"onnx.export, input_names: {len(others)} names for {len(names)} inputs; parameters keep theirs",
            f"one name for each of {', '.join(names)}",
        )
    return [*others[: len(names)], *[x if x not in others else f"{x}_1" for x in names[len(others) :]]]


# ---- writing ---------------------------------------------------------------------------------------------------------


def write(data: bytes, f: Any) -> None:
    """Write atomically to a path, or at the current position of an open file."""
    if hasattr(f, "write"):
        return file_objects.write(
            f, lambda file: container.write_all(file, data), "onnx.export", GraphError, "model.onnx"
        )
    target = checked_path(f, "onnx.export", 'flow.onnx.export(model, x, "model.onnx")', GraphError)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        atomic.replace(target, lambda file: file.write(data))
    except OSError as error:
        raise GraphError(
            f"onnx.export: {target} cannot be written: {error.strerror or error}",
            where=here(),
            values={"file": target, "size": f"{len(data):,} bytes", "old file": old_file_state(target)},
            hint=write_hint(target),
        ) from error
