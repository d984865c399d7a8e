"""export: a graph, or a module, as an ONNX file.

Everything is checked before anything is written: ops without a form are named together, each with its line, and the
model has passed ONNX's own checker in memory. Read next: `builder.py`.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..compiler.names import op_names
from ..core.base.errors import GraphError, need
from ..core.ir import Graph
from ..core.where import fail
from ..io import atomic
from ..nn.graph import Graph as StaticGraph
from ..nn.graph.tree import leaves, unflatten
from ..nn.module import Module
from .model import model_of


def export(subject: Any, example: Any = None, path: Any = None, dynamic: Mapping | None = None, *,
           input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None) -> None:
    """Write an ONNX file (opset 18) of what a module or an nn.Graph computes.

    subject: an nn.Module, exported in eval mode (its own mode comes back) with the names of its state_dict(); or an
    nn.Graph; of a training graph its forward part, without gradients and steps.
    example: the arguments of one call, a tensor or a tuple; of a graph that was called it may be None.
    path: where to write, all or nothing.
    dynamic: which axes may have any size: {"x": {0: "batch"}}.
    input_names, output_names: other names than those of forward's parameters, and "output_0", "output_1", ...

    Raises GraphError for an op that ONNX has no form of, naming all of them, and MissingDependencyError without the
    package onnx.  Source: the ONNX operator specification, onnx.ai/onnx/operators.
    """
    need("onnx", "flow.onnx.export", "minflow[onnx]")
    if path is None:
        fail(GraphError, "onnx.export: no path to write to", 'flow.onnx.export(model, x, "model.onnx")', path=path)
    name, graph, names, inputs, outputs = taken(subject, example)
    model = model_of(name, graph, names, renamed("input", inputs, input_names),
                     renamed("output", outputs, output_names))
    data = model.SerializeToString()
    target = Path(os.fspath(path))
    try:
        atomic.replace(target, lambda file: file.write(data))
    except OSError as error:
        fail(GraphError, f"onnx.export: cannot write: {error.strerror}", "a path in a folder that is there",
             path=str(target))


# ---- what is exported ------------------------------------------------------------------------------------------------


def taken(subject: Any, example: Any) -> tuple:
    """(name, graph, names of nodes, names of inputs, names of outputs)."""
    arguments = () if example is None else example if isinstance(example, tuple) else (example,)
    if isinstance(subject, Module):
        with evaluating(subject):
            wrapped = wrapper(subject)
            wrapped.compiled_for(arguments, {})
            return traced(wrapped, type(subject).__name__, "model.")
    if not isinstance(subject, StaticGraph):
        fail(GraphError, "onnx.export: neither an nn.Module nor an nn.Graph", "nn.Sequential(...) or a Graph of it",
             subject=subject)
    if arguments:
        subject.compiled_for(arguments, {})
    elif not subject.is_compiled:
        fail(GraphError, f"onnx.export: {subject.name} was never called, so there is no graph to write",
             "call it once, or give an example: flow.onnx.export(graph, x, path)", graph=subject.name)
    return traced(subject, subject.name)


def traced(graph: Any, name: str, cut: str = "") -> tuple:
    """What `taken` gives, of the plan that was used last. cut: what all names begin with that the user did not give."""
    compiled = graph._last
    part = compiled.parts[0]
    ir: Graph = part.stages[0].graph
    count = len(ir.outputs) - len(part.kept)
    outputs = [""] * count
    for place, number in leaves(unflatten(compiled.out_tree, range(count))):
        if number is not None:
            outputs[number] = place[-1] if place and isinstance(place[-1], str) else f"output_{number}"
    for source in ir.states:
        source.name = source.name.removeprefix(cut)
    names = {node: text.removeprefix(cut) for node, text in op_names(ir.nodes).items()}
    whole = Graph(ir.inputs, ir.nodes, ir.outputs[:count], ir.states, ir.updates)
    return name, whole, names, [source.name for source in ir.inputs], outputs


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
    if len(others) != len(names):
        fail(GraphError, f"onnx.export: {len(others)} {what}_names for {len(names)} {what}s",
             f"one name for each of {', '.join(names)}", names=list(others))
    return list(others)
