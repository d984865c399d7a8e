"""Build the ONNX model of a program: converted nodes, weights as initializers, checked by ONNX itself.

Nodes that do not contribute to an output are omitted, as are ops that only matter to a tape. Everything that cannot be
translated is reported in one error. Read next: `sizes.py`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..compiler.names import op_names
from ..compiler.passes.decomposition import expand
from ..core.backend import to_host
from ..core.base.errors import GraphError, InternalError
from ..core.host import host_array
from ..core.ir import CONSTANT, Node, Source, Value, outputs_of, toposort, where_text
from ..core.kernels import launch
from ..core.source_location import here
from ..core.spec import cpu
from ..deploy.program import Program
from . import converters as converters
from .builder import CONVERTERS, OPSET, Builder, UnsupportedNode, has_converter, onnx_type
from .sizes import dynamic_sizes

IR_VERSION = 8  # version of the file format introduced with opset 18, so that runtimes of that time can read it
MAX_WEIGHT_BYTES = 2**31 - 2**20  # bytes of weights: the limit of protobuf is 2 GB
# ops that return their first input
IDENTITY_OPS = frozenset("clone detach unrecorded overwritten recompute checked_labels".split())
MAX_FOLDED_BYTES = 2**16  # largest size in bytes of a folded constant
MAX_SHOWN_LINES = 8  # lines per refused op that an error shows


class RefusedComposites(Exception):
    """Raised if converters refuse the composite nodes of these numbers, which are then exported as decompositions."""

    def __init__(self, numbers: set):
        super().__init__(f"refused nodes: {numbers}")
        self.numbers = numbers


def expand_composites(program: Program, refused: Container = ()) -> Program:
    """Replace each composite op without a converter, and those whose converters have refused the nodes of these
    numbers, by its decomposition.
    """
    graph = expand(program.graph, lambda n: n.op.composite and (n.number in refused or not has_converter(n)))
    if graph is program.graph:
        return program
    names = {node.number: name for node, name in program.names.items()}
    inner = op_names([node for node in graph.nodes if node.whole is not None])
    return replace(program, graph=graph, names={node: inner.get(node) or names[node.number] for node in graph.nodes})


def model_of(program: Program, inputs: Sequence[str], outputs: Sequence[str]) -> Any:
    """The ModelProto of a program. inputs, outputs: names. Raises RefusedComposites."""
    import onnx

    name, graph = program.name, program.graph
    places = {axis: (inputs[i], n) for axis, ((i, n), *_) in program.axes.items()}
    b = Builder(places, program.size_dependent, dynamic_sizes(program))
    needed = set(toposort([x.node for x in graph.outputs], every=True))
    b.read_values = {x for node in needed for x in node.inputs if isinstance(x, Value)} | set(graph.outputs)
    b.updating = set(toposort([x.node for x in graph.updates.values()], every=True))
    for source, label in zip(graph.inputs, inputs):
        b.names[outputs_of(source)[0]] = b.unique_name(label)
    names_of = {h.source: h.name for h in program.tensors}
    for source in graph.states:
        if source in needed and source.read is None:
            b.names[outputs_of(source)[0]] = initializer(
                b, source, names_of.get(source, "constant"), program.sized_constants.get(source)
            )
    check_size(name, b)
    refused = UnsupportedOps(name)
    for node in graph.nodes:
        if node in needed:
            translate(b, node, program.names[node], refused)
    refused.raise_if_any()
    read = {x for call in b.nodes for x in call.inputs} | {b.names[x] for x in graph.outputs}
    unread = b.constant_names - read
    b.arrays = {label: array for label, array in b.arrays.items() if label not in unread}
    results = rename_outputs(b, [b.names[x] for x in graph.outputs], outputs, set(b.arrays) | set(inputs))
    model = model_proto(program, b, results)
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise InternalError(
            f"the ONNX model of {name} does not pass onnx.checker",
            values={"reason": error},
            hint="report this with the program",
        ) from error
    return model


def initializer(b: Builder, source: Source, name: str, filled: Any) -> str:
    """The name of a state or constant; the size of a constant may depend on dynamic axes."""
    if filled is None and source.op is CONSTANT:
        return b.const(source.array)
    if filled is None:
        label = b.unique_name(name)
        b.arrays[label] = to_host(source.array)
        return label
    dtype = source.out_specs[0].dtype
    first = b.const(filled.first, dtype) if isinstance(filled.first, int | float) else b.number(filled.first, dtype)
    if not filled.step:
        return b.op("Expand", first, b.size_vector(filled.shape))
    count, step = b.op("Squeeze", b.size_vector(filled.shape)), b.const(filled.step, dtype)
    steps = b.cast(b.op("Range", b.const(0), count, b.const(1)), dtype)
    return b.op("Add", first, b.op("Mul", steps, step))


def check_size(name: str, b: Builder) -> None:
    """Raise GraphError for weights that exceed the size of one file."""
    size = sum(array.nbytes for array in b.arrays.values())
    if size > MAX_WEIGHT_BYTES:
        raise GraphError(
            f"the weights of {name} have {size:,} bytes, and an ONNX file holds 2 GB",
            where=here(),
            values={"largest": max(b.arrays, key=lambda label: b.arrays[label].nbytes)},
            hint="flow.save(graph, path), which has no such limit; or export parts of the model",
        )


class UnsupportedOps:
    """Collected refusals: (op, why, hint) -> source lines."""

    def __init__(self, name: str):
        self.name = name
        self.lines: dict[tuple[str, str, str], list[str]] = {}
        self.composites: set = set()  # the numbers of composite nodes that a converter has refused

    def add(self, node: Node, why: str, hint: str = "") -> None:
        place = f"{where_text(node.where)} in {node.scope}" if node.scope else where_text(node.where)
        lines = self.lines.setdefault((str(node.op), why, hint), [])
        if place not in lines:
            lines.append(place)

    def raise_if_any(self) -> None:
        """Raise one error for all of them, if any; RefusedComposites if some of them can be decomposed."""
        if self.composites:
            raise RefusedComposites(self.composites)
        if not self.lines:
            return
        values: dict[str, str] = {}
        for (op, why, _), lines in self.lines.items():
            more = f", and {len(lines) - MAX_SHOWN_LINES} more" if len(lines) > MAX_SHOWN_LINES else ""
            text = f"{why}; at {', '.join(lines[:MAX_SHOWN_LINES])}{more}"
            values[op] = f"{values[op]}\n{text}" if op in values else text
        hints = [hint for _, _, hint in self.lines if hint] or ["other ops for that part, or keep it outside the model"]
        what = f"{self.name} has {len(values)} op{'s'[: len(values) > 1]} that ONNX (opset {OPSET}) cannot express"
        raise GraphError(what, values=values, where=here(), hint="; ".join(dict.fromkeys(hints)))


def translate(b: Builder, node: Node, name: str, refused: UnsupportedOps) -> None:
    """Append the ONNX nodes of a node, and record the names of its results."""
    results, size_dependent = outputs_of(node), b.size_dependent.get(node, {})
    specs = [x.spec for x in node.inputs if isinstance(x, Value)]
    b.node, b.prefix = node, name
    inputs = [
        b.names.get(x, "")
        if isinstance(x, Value)
        else b.number(size_dependent[i], specs[0].dtype if specs else node.out_specs[0].dtype)
        if i in size_dependent
        else x
        for i, x in enumerate(node.inputs)
    ]
    if str(node.op) in IDENTITY_OPS:
        b.names[results[0]] = inputs[0]
        return
    b.names.update(dict.fromkeys(results, ""))
    function = CONVERTERS.get(str(node.op))
    if any(spec.dtype.is_complex for spec in (*specs, *node.out_specs)):
        refused.add(node, "computes with complex numbers", "real and imaginary part as two tensors")
    elif is_foldable(b, node, inputs):
        arrays = [b.arrays[x] if isinstance(x, str) else x for x in inputs]
        on_host = [spec.replace(device=cpu) for spec in node.out_specs]
        b.names[results[0]] = b.const(host_array(launch(node.op, arrays, node.attrs, on_host)))
    elif function is None:
        refused.add(node, "has no ONNX equivalent")
    else:
        try:
            given = function(b, node, *inputs)
            for attr in size_dependent:
                if isinstance(attr, str) and (node, attr) not in b.read_attrs:
                    b.refuse(
                        f"its {attr} depends on {', '.join(b.axes)}, which its ONNX converter does not support",
                        "leave that axis out of dynamic",
                    )
        except UnsupportedNode as error:
            refused.add(node, error.why, error.hint)
            refused.composites.update([node.number] if node.op.composite else [])
        else:
            b.names.update(zip(results, given if isinstance(given, tuple) else (given,)))


def is_foldable(b: Builder, node: Node, inputs: Sequence) -> bool:
    """True for a node with only constants and Python numbers as inputs and one small output, such as a mask or window
    indices.
    """
    return (
        len(node.out_specs) == 1
        and node.out_specs[0].nbytes <= MAX_FOLDED_BYTES
        and node not in b.size_dependent
        and all(not isinstance(x, str) or x in b.constant_names for x in inputs)
    )


def rename_outputs(b: Builder, results: list[str], names: Iterable[str], fixed: set[str]) -> list[str]:
    """Rename the results to their output names. An input, a weight, or a repeated output gets an Identity node."""
    b.node, b.prefix = None, ""
    new: dict[str, str] = {}
    final = []
    for old, name in zip(results, names):
        name = b.unique_name(name)
        final.append(name)
        if old in fixed or old in new:
            b.append("Identity", name, [old], [name], {})
        else:
            new[old] = name
    b.nodes[:] = [
        call._replace(inputs=[new.get(x, x) for x in call.inputs], outputs=[new.get(x, x) for x in call.outputs])
        for call in b.nodes
    ]
    return final


# ---- as protobuf -----------------------------------------------------------------------------------------------------


def model_proto(program: Program, b: Builder, results: list[str]) -> Any:
    from onnx import helper, numpy_helper

    nodes = []
    for call in b.nodes:
        node = helper.make_node(call.kind, call.inputs, call.outputs, call.name, **call.attributes)
        if call.node is not None and call.node.where:
            node.doc_string = where_text(call.node.where)
        nodes.append(node)
    graph = program.graph
    inputs = [value_info(b, b.names[x], x) for x in [outputs_of(source)[0] for source in graph.inputs]]
    outputs = [value_info(b, label, x) for label, x in zip(results, graph.outputs)]
    weights = [numpy_helper.from_array(array, label) for label, array in b.arrays.items()]
    between = {x for call in b.nodes for x in call.outputs} - set(results)
    known = [
        value_info(b, label, x) for label, x in {label: x for x, label in b.names.items()}.items() if label in between
    ]  # for readers of the file; the checker also compares them with its inference
    whole = helper.make_graph(nodes, program.name, inputs, outputs, weights, value_info=known)
    return helper.make_model(
        whole, producer_name="minflow", ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)]
    )


def value_info(b: Builder, name: str, value: Value) -> Any:
    """The name, dtype and sizes of a value; a size that depends on dynamic axes is a formula: "batch", "2*batch"."""
    from onnx import helper

    sizes = [n if isinstance(n, int) else n.text or None for n in b.sizes_of(value)]
    return helper.make_tensor_value_info(name, onnx_type(value.spec.dtype), sizes)
