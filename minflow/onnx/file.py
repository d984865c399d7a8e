"""export: a graph, or a module, as an ONNX file.

Everything is checked before anything is written: ops without a form are named together, each with its line, and the
model has passed ONNX's own checker in memory. Read next: `builder.py`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.base.errors import GraphError, need
from ..core.where import fail
from ..deploy.program import Program, program_of
from ..deploy.replay import LoadedGraph
from ..io import atomic
from ..nn.graph import Graph as StaticGraph
from ..nn.graph.graph import RunningGraph
from ..nn.graph.tree import leaves, unflatten
from ..nn.module import Module
from .model import model_of


def export(subject: Any, example: Any = None, path: Any = None, dynamic: Mapping | None = None, *,
           input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None) -> None:
    """Write an ONNX file (opset 18) of what a module or an nn.Graph computes.

    subject: an nn.Module, exported in eval mode (its own mode comes back) with the names of its state_dict(); an
    nn.Graph, of a training graph its forward part, without gradients and steps; or a predict job.
    example: the arguments of one call, a tensor or a tuple; None for a graph that was called, or was loaded.
    path: where to write, all or nothing; or a file that is open for writing bytes.
    dynamic: which axes may have any size: {"x": {0: "batch"}}; of a loaded graph by default those it was saved with.
    input_names, output_names: other names than those of forward's parameters, and "output_0", "output_1", ...

    Raises GraphError for an op that ONNX has no form of, naming all of them, and MissingDependencyError without the
    package onnx.  Source: the ONNX operator specification, onnx.ai/onnx/operators.
    """
    need("onnx", "flow.onnx.export", "minflow[onnx]")
    if path is None:
        fail(GraphError, "onnx.export: no path to write to", 'flow.onnx.export(model, x, "model.onnx")', path=path)
    program = taken(subject, example, dynamic)
    inputs = [source.name for source in program.graph.inputs]
    model = model_of(program, renamed("input", inputs, input_names),
                     renamed("output", output_names_of(program), output_names))
    data = model.SerializeToString()
    if hasattr(path, "write"):
        path.write(data)
        return
    target = Path(os.fspath(path))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        atomic.replace(target, lambda file: file.write(data))
    except OSError as error:
        fail(GraphError, f"onnx.export: cannot write: {error.strerror}", "a path that may be written",
             path=str(target))


# ---- what is exported ------------------------------------------------------------------------------------------------


def taken(subject: Any, example: Any, dynamic: Mapping | None) -> Program:
    """The program of a module, a graph or a job."""
    arguments = () if example is None else example if isinstance(example, tuple) else (example,)
    if isinstance(subject, Module):
        with evaluating(subject):
            wrapped = wrapper(subject)
            wrapped.compiled_for(arguments, {})
            return plain(program_of(wrapped, dynamic), type(subject).__name__)
    if arguments and isinstance(subject, RunningGraph):
        subject.compiled_for(arguments, {})
    if dynamic is None and isinstance(subject, LoadedGraph):
        dynamic = saved_axes(subject)
    return program_of(subject, dynamic)


def saved_axes(graph: LoadedGraph) -> dict[int, dict[int, str]]:
    """The dynamic axes that a loaded graph was saved with, as `dynamic` has them."""
    axes: dict[int, dict[int, str]] = {}
    for name, places in graph.__dict__["_document"].axes.items():
        for i, axis in places:
            axes.setdefault(i, {})[axis] = name
    return axes


def plain(program: Program, name: str) -> Program:
    """The program of a module that a graph holds as `model`, with the names that the module's user knows."""
    names = {node: text.removeprefix("model.").removeprefix("model-") for node, text in program.names.items()}
    held = [replace(h, name=h.name.removeprefix("model.")) for h in program.held]
    return replace(program, name=name, names=names, held=held)


def output_names_of(program: Program) -> list[str]:
    """"output_0", ...; of a dict its keys."""
    count = len(program.graph.outputs)
    marks = [object() for _ in range(count)]
    names = [f"output_{i}" for i in range(count)]
    for place, mark in leaves(unflatten(program.out_tree, marks)):
        if place and isinstance(place[-1], str) and mark in marks:
            names[marks.index(mark)] = place[-1]
    return names


def wrapper(module: Module) -> Any:
    """A graph that calls the module, whose inputs have the names of forward's parameters."""

    def build(self, *args, **kwargs):
        return self.model(*args, **kwargs)

    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    parameters = [p.replace(annotation=inspect.Parameter.empty)
                  for p in inspect.signature(module.forward).parameters.values()]
    build.__signature__ = inspect.Signature([first, *parameters])
    graph = type(f"{type(module).__name__}Graph", (StaticGraph,), {"build": build})()
    graph.model = module
    return graph


@contextmanager
def evaluating(module: Module) -> Iterator[None]:
    """The module and all in it in eval mode, and back."""
    modes = [(m, m.training) for m in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for m, training in modes:
            m.training = training


def renamed(what: str, names: list[str], others: Sequence[str] | None) -> list[str]:
    if others is None:
        return names
    if len(set(others)) < len(others):
        fail(GraphError, f"onnx.export: {what}_names has a name twice", f"another name for each {what}",
             names=list(others))
    if len(others) != len(names):
        fail(GraphError, f"onnx.export: {len(others)} {what}_names for {len(names)} {what}s",
             f"one name for each of {', '.join(names)}", names=list(others))
    return list(others)
