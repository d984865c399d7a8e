"""`flow.save(graph, path)` and `flow.load_graph(path)`: from a Program to a folder, and from a folder to a graph.

Everything is created and checked before anything is written. This is the top module of the package.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..core.base import __version__
from ..core.base.errors import GraphError, GraphFormatError, MinflowError
from ..core.functions.fill import place_of
from ..core.source_location import fail, here
from ..core.spec import Device, cpu
from ..io.files import WEIGHTS
from ..nn.graph.graph import RunningGraph
from . import folder
from .checks import Malformed, check_bool, check_each, check_fields, check_list, check_text, checking_file
from .document import MAX_TEXT_CHARS, Document, from_data, on_device
from .program import Program, program_of
from .replay import LoadedGraph, graph_of, saved_axes
from .retrace import whole_batch
from .training.optimizers import optimizers_as_data, optimizers_from_data, state_names
from .training.settings import config_as_data, config_from_data
from .versions import FORMAT, VERSION
from .writing import to_data

META_FIELDS = ("format", "version", "minflow", "inputs", "outputs", "settings", "optimizers", "frozen")


def save(obj: Any, path: str | os.PathLike, dynamic: Mapping | None = None) -> None:
    if dynamic is None and isinstance(obj, LoadedGraph):
        dynamic = saved_axes(obj)
    program = program_of(obj, dynamic)
    graph, arrays = to_data(program)
    settings: Any = None
    optimizers: Any = []
    parts = 1
    if isinstance(obj, RunningGraph):
        settings, parts = config_as_data(obj), obj.config.accumulation
        optimizers, tensors = optimizers_as_data(obj)
        if both := sorted(arrays.keys() & tensors.keys()):
            what = f"{obj.name}: {both[0]} names a tensor of a module and a state of the optimizer"
            fail(GraphError, what, "another name for the tensor", tensors=both)
        arrays |= {name: tensor.array for name, tensor in tensors.items()}
    meta = {
        "format": FORMAT, "version": VERSION,
        "minflow": __version__,
        "inputs": inputs_of(program, parts), "outputs": outputs_of(program, parts),
        "settings": settings, "optimizers": optimizers, "frozen": [list(row) for row in program.frozen],
    }  # fmt: skip
    if obj.config.bits:  # omitted otherwise, so that earlier versions can read the file
        meta["exact"] = True
    try:
        from_data(graph, arrays)  # checks that the output can be read, here and not in another process
    except Malformed as error:
        raise GraphError(
            f"{program.name} cannot be saved: {error.place} must be {error.expected}",
            values={"found": error.actual},
            where=here(),
            hint="another name or size in the model; graph.json has these limits so "
            "that untrusted files can be checked",
        ) from error
    folder.write(path, graph, meta, arrays)


def inputs_of(program: Program, parts: int) -> list[dict[str, Any]]:
    """Describe the inputs, for readers of the folder and servers: each with its shape; a dynamic axis by its name.

    parts: number of parts of a batch that a call processes in sequence.
    """
    rows = []
    for number, source in enumerate(program.graph.inputs):
        spec = whole_batch(source.out_specs[0], parts)
        shape: list[Any] = [*spec.shape]
        for name, places in program.axes.items():
            for at, axis in places:
                if at == number:
                    shape[axis] = name
        rows.append({"name": source.name, "shape": shape, "dtype": spec.dtype.name})
    return rows


def outputs_of(program: Program, parts: int) -> list[dict[str, Any]]:
    """Describe the results of the saved call: parts are concatenated, 0-d results stacked."""
    rows = []
    for value in program.graph.outputs:
        shape = [*whole_batch(value.spec, parts).shape] if value.spec.shape or parts == 1 else [parts]
        rows.append({"shape": shape, "dtype": value.spec.dtype.name})
    return rows


def load(path: str | os.PathLike, map_location: Device | str | int | None) -> LoadedGraph:
    place = place_of(map_location)
    device = place if isinstance(place, Device) else cpu
    data, meta, arrays = folder.read(path)
    with checking_file(path):
        meta = check_fields(meta, "meta", META_FIELDS, ("sha256", "exact"))
        document = on_device(from_data(data, arrays), device)
        rows = check_each(meta["frozen"], "frozen", lambda row, at: tuple(check_each(row, at, check_row_text, 2, 2)))
        optimizers, exact = check_list(meta["optimizers"], "optimizers"), check_bool(meta.get("exact", False), "exact")
        if bool(optimizers) != document.training:
            raise Malformed("optimizers of a graph that trains", optimizers, "optimizers")
        try:
            graph = add_optimizers(graph_of(document, rows), document, meta, optimizers, arrays)
        except GraphFormatError:
            raise
        except MinflowError as error:  # an invalid module name, or an optimizer that the graph refuses
            raise Malformed("valid for a graph", error.what, "modules and optimizers") from error
        graph.config.exact(exact)
        return graph


def check_row_text(x: Any, place: str) -> str:
    return check_text(x, place, MAX_TEXT_CHARS, lines=True)


def add_optimizers(
    graph: LoadedGraph, document: Document, meta: Mapping, optimizers: list, arrays: Mapping
) -> LoadedGraph:
    """Add the optimizers in their saved state."""
    parameters = {s.name: t for s, t in zip(document.states, graph.__dict__["_tensors"]) if s.kind == "parameter"}
    for optimizer, schedulers in optimizers_from_data(optimizers, parameters, arrays):
        graph.add_optimizer(optimizer, lr_sch=schedulers)
    names = {s.name for s in document.states} | set(state_names(optimizers))
    if more := sorted(arrays.keys() - names):
        raise Malformed("tensors that the graph holds and nothing else", more[:6], WEIGHTS)
    if meta["settings"] is not None:
        config_from_data(meta["settings"], graph)
    return graph
