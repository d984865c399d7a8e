"""Contents of an ONNX file: its operations in topological order, its tensors, the specs of its values.

Everything is checked first, and no other file is opened. The package `onnx` parses the file, names the inputs of
operations, and infers shapes that the file omits. Read next: `scopes.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NoReturn

from ...core.base.errors import GraphFormatError
from ...core.source_location import fail, need
from ...io.files import checked_path, open_regular
from .describe import data_error, short, size_of, spec_of, tensor_spec
from .scopes import place_of

MAX_BYTES = 2**31 - 1  # of a protobuf message
MAX_NODES = 100_000  # in all graphs and functions of a file, with functions expanded
MAX_ENDS = 10_000  # inputs or outputs of a graph or an operation
MAX_INFERRED_NODES = 20_000  # largest number of nodes, with functions expanded, for shape inference
MAX_SHAPE_ELEMENTS = 64  # largest number of elements of a tensor on which shapes may depend
DOMAIN_NAMES = {"": "ai.onnx"}  # full name of the standard's domain

Key = tuple[str, str, str]  # domain, name and overload of a function


def refuse(what: str, hint: str = "", /, **values: Any) -> NoReturn:
    fail(
        GraphFormatError,
        f"flow.onnx.show: {what}",
        hint or "onnx.checker.check_model(path) says more of a file",
        **values,
    )


def read(path: Any) -> Contents:
    """Read a file. Raises GraphFormatError if it is not an ONNX file that can be drawn, and MissingDependencyError
    without the package onnx.
    """
    file = checked_path(path, "flow.onnx.show", 'flow.onnx.show("model.onnx")', GraphFormatError)
    onnx = need("onnx", "flow.onnx.show")
    data = content(file)
    from google.protobuf.message import DecodeError

    model = None
    with suppress(DecodeError, RecursionError, UnicodeError):
        model = onnx.ModelProto.FromString(data)
    if model is None:
        refuse("this is not an ONNX file, or it is damaged", path=str(file), size=f"{len(data):,} bytes")
    if not model.HasField("graph") or not model.ir_version:
        refuse("there is no graph in this file", path=str(file), size=f"{len(data):,} bytes")
    if (text := not_utf8(model)) is not None:
        refuse("a text in this file is not UTF-8", path=str(file), text=str(text[:40]))
    return Contents(model, file.name, len(data))


def content(file: Path) -> bytes:
    if file.is_dir():
        what = "this is a folder"
        refuse(what, "a file in it; of a graph that flow.save wrote, flow.load_graph(path)", path=str(file))
    why, data = "", b""
    try:
        with open_regular(file) as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        refuse("this file cannot be read", "the path of an .onnx file", path=str(file), reason=why)
    if len(data) > MAX_BYTES:
        refuse("this file is larger than an ONNX file can be", path=str(file), most=f"{MAX_BYTES:,} bytes")
    return data


@dataclass
class Op:
    """A node of the file. args: (name of the formal input, value), without omitted ones.  captured: values of the outer
    graph that its subgraphs read.
    """

    message: Any
    name: str
    place: str
    args: list[tuple[str, str]]
    captured: list[str] = field(default_factory=list)

    @property
    def reads(self) -> list[str]:
        return [value for _, value in self.args] + self.captured


class Contents:
    """Contents of one file. ops: its operations, sorted.  types: value -> spec.  tensors: value -> message of a
    parameter or constant.  sparse: values of sparse tensors.  modules: path -> class, if the file has it.
    """

    def __init__(self, model: Any, title: str, nbytes: int):
        self.model, self.title, self.nbytes = model, title, nbytes
        self.is_minflow = model.producer_name == "minflow"
        self.functions: dict[Key, Any] = {key_of(f, f.name): f for f in model.functions}
        self.opsets = {DOMAIN_NAMES.get(o.domain, o.domain): o.version for o in model.opset_import}
        self.schemas: dict[tuple[str, str], Any] = {}
        self.used_names: set[str] = set()
        self.modules: dict[str, str] = {}
        self.tensors: dict[str, Any] = {}
        self.count_nodes()  # first, because the other steps rely on its checks
        self.collect_tensors()
        self.types = self.known_types()
        self.ops = self.topological_order([self.op(node) for node in model.graph.node if not self.is_constant(node)])

    # ---- checks ------------------------------------------------------------------------------------------------------

    def count_nodes(self) -> None:
        """Count the nodes, also with functions expanded. Raises GraphFormatError for recursive functions and for
        excessive counts.
        """
        graph = self.model.graph
        bodies = {key: list(every_node(f.node)) for key, f in self.functions.items()}
        own = list(every_node(graph.node))
        total = len(own) + sum(map(len, bodies.values())) + len(bodies)
        if total > MAX_NODES:
            refuse("there are too many operations in this file", operations=f"{total:,}", most=f"{MAX_NODES:,}")
        if max(len(graph.input), len(graph.output)) > MAX_ENDS:
            what = "there are too many inputs or outputs in this file"
            refuse(what, most=f"{MAX_ENDS:,}", inputs=f"{len(graph.input):,}", outputs=f"{len(graph.output):,}")
        for node in own:
            if max(len(node.input), len(node.output)) > MAX_ENDS:
                refuse(
                    "an operation has too many inputs or outputs",
                    operation=short(node.name or node.op_type),
                    inputs=f"{len(node.input):,}",
                    outputs=f"{len(node.output):,}",
                    most=f"{MAX_ENDS:,}",
                )
        calls = {
            key: Counter(k for n in nodes if (k := key_of(n, n.op_type)) in bodies) for key, nodes in bodies.items()
        }
        circle: list[str] = []
        sizes: dict[Key, int] = {}
        try:
            for key in TopologicalSorter({key: called.keys() for key, called in calls.items()}).static_order():
                written_out = len(bodies[key]) + sum(sizes[k] * n for k, n in calls[key].items())
                sizes[key] = min(written_out, 2**31)
        except CycleError as error:
            circle = [short(name) for _, name, _ in error.args[1]]
        if circle:
            refuse("functions in this file call each other in a cycle", functions=", ".join(circle[:4]))
        self.expanded_count = len(own) + sum(sizes.get(key_of(n, n.op_type), 0) for n in own)

    def collect_tensors(self) -> None:
        graph = self.model.graph
        every = [(tensor.name, tensor) for tensor in graph.initializer]
        every += [(tensor.values.name, tensor) for tensor in graph.sparse_initializer]
        self.sparse = {tensor.values.name for tensor in graph.sparse_initializer}
        every += [(node.output[0], value) for node in graph.node if (value := self.constant(node)) is not None]
        for name, tensor in every:
            if name in self.tensors:
                refuse("two tensors have one name", name=short(name))
            self.tensors[name] = tensor
            if name not in self.sparse and (why := data_error(tensor)):
                refuse(f"a tensor in this file is damaged: {why}", tensor=short(name), spec=tensor_spec(tensor))

    def constant(self, node: Any) -> Any:
        """The tensor of a Constant node, or None."""
        if node.op_type != "Constant" or node.domain not in ("", "ai.onnx") or len(node.output) != 1 or node.input:
            return None
        return next((a.t for a in node.attribute if a.name == "value" and a.HasField("t")), None)

    def is_constant(self, node: Any) -> bool:
        return self.constant(node) is not None

    # ---- shapes ------------------------------------------------------------------------------------------------------

    def known_types(self) -> dict[str, str]:
        """The specs of values in the file, completed by shape inference if necessary."""
        graph = self.model.graph
        given = specs_of((*graph.value_info, *graph.input, *graph.output))
        wanted = {name for node in graph.node if not self.is_constant(node) for name in node.output if name}
        known = {name: spec for name, spec in given.items() if "?" not in spec and "..." not in spec}
        if wanted - known.keys() and self.expanded_count <= MAX_INFERRED_NODES:
            known = specs_of(self.infer_types()) | known
        return given | known

    def infer_types(self) -> Iterable[Any]:
        """Values added by `onnx.shape_inference`, on a copy without large tensors, so that these are not read or
        copied.
        """
        import onnx

        light, graph = onnx.ModelProto(), self.model.graph
        light.ir_version = self.model.ir_version
        light.opset_import.extend(self.model.opset_import)
        light.functions.extend(self.model.functions)
        light.graph.name = "light"
        light.graph.node.extend(node for node in graph.node if not self.is_constant(node))
        light.graph.input.extend(v for v in graph.input if v.name not in self.tensors)
        light.graph.output.extend(graph.output)
        light.graph.value_info.extend(graph.value_info)
        for name, tensor in self.tensors.items():
            if name not in self.sparse and size_of(tensor.dims) <= MAX_SHAPE_ELEMENTS and not tensor.data_location:
                light.graph.initializer.add().CopyFrom(tensor)
                light.graph.initializer[-1].name = name
            else:
                kind = (tensor.values if name in self.sparse else tensor).data_type
                light.graph.input.append(onnx.helper.make_tensor_value_info(name, kind, list(tensor.dims)))
        try:
            result = onnx.shape_inference.infer_shapes(light).graph
            return (*result.value_info, *result.output)
        except Exception:  # on any failure the picture shows only what the file contains
            return ()

    # ---- operations --------------------------------------------------------------------------------------------------

    def op(self, node: Any) -> Op:
        """Convert a node: give it a unique name and its module path."""
        where = place_of(node, self.is_minflow)
        self.modules.update(where.classes)
        if len(node.output) == 0:
            refuse("an operation has no output", operation=short(node.name or node.op_type))
        names = self.input_namer(node)
        args = [(names(i), value) for i, value in enumerate(node.input) if value]
        captured = [v for a in node.attribute for g in graphs_in(a) for v in captured_values(g)]
        name = self.unique_name(short(node.name) or f"{short(node.op_type)}_{len(self.used_names)}")
        return Op(node, name, where.scope, args, list(dict.fromkeys(captured)))

    def unique_name(self, name: str) -> str:
        unique, number = name, len(self.used_names)
        while unique in self.used_names:
            unique, number = f"{name} ({number})", number + 1
        self.used_names.add(unique)
        return unique

    def schema(self, node: Any) -> Any:
        """The package's schema of an operation, or None if it is not a standard one."""
        key = node.domain, node.op_type
        if key not in self.schemas:
            import onnx

            version = self.opsets.get(DOMAIN_NAMES.get(node.domain, node.domain), 1)
            domain = "" if node.domain == "ai.onnx" else node.domain
            try:
                most = min(max(version, 1), 2**31 - 1)
                self.schemas[key] = onnx.defs.get_schema(node.op_type, max_inclusive_version=most, domain=domain)
            except onnx.defs.SchemaError:
                self.schemas[key] = None
        return self.schemas[key]

    def input_namer(self, node: Any) -> Any:
        """Function from the index of an input to its name."""
        function, schema = self.functions.get(key_of(node, node.op_type)), self.schema(node)
        names = list(function.input) if function is not None else [x.name for x in schema.inputs] if schema else []
        many = bool(schema) and function is None and bool(names) and schema.inputs[-1].option.name == "Variadic"

        def name(i: int) -> str:
            if many and i >= len(names) - 1:
                return f"{names[-1]}[{i - len(names) + 1}]"
            return short(names[i]) if i < len(names) else f"input {i}"

        return name

    def topological_order(self, ops: list[Op]) -> list[Op]:
        """Sort topologically, keeping the order of the file if it is valid."""
        given = {v.name for v in self.model.graph.input} | self.tensors.keys()
        makers: dict[str, int] = {}
        for i, op in enumerate(ops):
            for value in filter(None, op.message.output):
                if value in makers or value in given:
                    what = "two operations have the same output, or one has the name of an input"
                    refuse(what, value=short(value), operation=op.name)
                makers[value] = i
        reads = {i: {makers[value] for value in op.reads if value in makers} for i, op in enumerate(ops)}
        for op in ops:
            for _, value in op.args:
                if value not in makers and value not in given:
                    refuse("an operation reads a value that does not exist", value=short(value), operation=op.name)
        if all(j < i for i, before in reads.items() for j in before):
            return ops
        circle: list[str] = []
        try:
            return [ops[i] for i in TopologicalSorter(reads).static_order()]
        except CycleError as error:
            circle = [ops[i].name for i in error.args[1][1:]]
        refuse("operations of this graph read each other's results in a cycle", operations=", ".join(circle[:4]))


def not_utf8(message: Any) -> bytes | None:
    """A string field that is not UTF-8, which protobuf leaves as bytes; else None. Recurses as deep as messages nest,
    at most 100. Tensor data is not read.
    """
    tensor = message.DESCRIPTOR.name == "TensorProto"
    fields = (
        [(None, x) for x in (message.name, message.doc_string, message.external_data)]
        if tensor
        else message.ListFields()
    )
    for kind, value in fields:
        if kind is not None and kind.cpp_type not in (kind.CPPTYPE_STRING, kind.CPPTYPE_MESSAGE):
            continue
        is_text = kind is None or kind.type == kind.TYPE_STRING
        for x in [value] if isinstance(value, str | bytes) or hasattr(value, "ListFields") else value:
            if isinstance(x, bytes) and is_text:
                return x
            if hasattr(x, "ListFields") and (result := not_utf8(x)) is not None:
                return result
    return None


def key_of(message: Any, name: str) -> Key:
    return message.domain, name, message.overload


def every_node(nodes: Iterable[Any]) -> Iterator[Any]:
    """The nodes, including those in nested graphs."""
    stack = [iter(nodes)]
    while stack:
        for node in stack[-1]:
            yield node
            inner = [g for a in node.attribute for g in graphs_in(a)]
            if inner:
                stack += [iter(g.node) for g in inner]
                break
        else:
            stack.pop()


def graphs_in(attribute: Any) -> list[Any]:
    return [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]


def captured_values(graph: Any) -> list[str]:
    """Free variables of a graph: values of outer graphs that it reads. Recurses as deep as protobuf allows graphs to
    nest, about 30.
    """
    own = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    own |= {t.values.name for t in graph.sparse_initializer} | {name for n in graph.node for name in n.output}
    reads = [name for n in graph.node for name in n.input] + [v.name for v in graph.output]
    reads += [name for n in graph.node for a in n.attribute for g in graphs_in(a) for name in captured_values(g)]
    return [name for name in dict.fromkeys(reads) if name and name not in own]


def specs_of(values: Iterable[Any]) -> dict[str, str]:
    return {value.name: spec_of(value.type) for value in values if value.HasField("type")}
