"""What an ONNX file holds: its operations in an order in which they can run, its tensors, the specs of its values. All
of it is checked first, and no other file is opened.

The package `onnx` parses, knows the inputs' names of its operations, and infers shapes that the file leaves out.
Read next: `scopes.py`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, NoReturn

from ...core.base.errors import GraphFormatError
from ...core.source_location import fail, need
from ...io.files import opened, place
from .describe import short, size_of, spec_of, stored, tensor_spec
from .scopes import place_of

MOST_BYTES = 2**31 - 1  # of a protobuf message
MOST_NODES = 100_000  # of all graphs and functions in a file, with the functions
MOST_ENDS = 10_000  # inputs, or outputs, of a graph or an operation
INFERRED = 20_000  # nodes, functions written out, up to which shapes are inferred
KNOWN = 64  # numbers of a tensor that shapes may depend on
WORDS = {"": "ai.onnx"}  # how the domain of the standard's own operations is written in full

Key = tuple[str, str, str]  # domain, name and overload of a function


def refuse(what: str, hint: str = "", /, **values: Any) -> NoReturn:
    fail(
        GraphFormatError,
        f"flow.onnx.show: {what}",
        hint or "onnx.checker.check_model(path) says more of a file",
        **values,
    )


def read(path: Any) -> Contents:
    """What the file holds. Raises GraphFormatError if it is no ONNX file that can be drawn, and
    MissingDependencyError without the package onnx."""
    file = place(path, "flow.onnx.show", 'flow.onnx.show("model.onnx")', GraphFormatError)
    onnx = need("onnx", "flow.onnx.show")
    data = content(file)
    from google.protobuf.message import DecodeError

    model = None
    with suppress(DecodeError, RecursionError, UnicodeError):
        model = onnx.ModelProto.FromString(data)
    if model is None:
        refuse("this is no ONNX file, or a damaged one", path=str(file), size=f"{len(data):,} bytes")
    if not model.HasField("graph") or not model.ir_version:
        refuse("there is no graph in this file", path=str(file), size=f"{len(data):,} bytes")
    if (text := not_utf8(model)) is not None:
        refuse("a text in this file is not UTF-8", path=str(file), text=str(text[:40]))
    return Contents(model, file.name, len(data))


def content(file: Path) -> bytes:
    if file.is_dir():
        refuse(
            "this is a folder", "a file in it; of a graph that flow.save wrote, flow.load_graph(path)", path=str(file)
        )
    why, data = "", b""
    try:
        with opened(file) as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        refuse("this file cannot be read", "the path of an .onnx file", path=str(file), reason=why)
    if len(data) > MOST_BYTES:
        refuse("this file is larger than an ONNX file can be", path=str(file), most=f"{MOST_BYTES:,} bytes")
    return data


@dataclass
class Op:
    """A node of the file. args: (name of its formal input, value), without those that are left out.  captured: what
    graphs inside it read of the graph around it."""

    message: Any
    name: str
    place: str
    args: list[tuple[str, str]]
    captured: list[str] = field(default_factory=list)

    @property
    def reads(self) -> list[str]:
        return [value for _, value in self.args] + self.captured


class Contents:
    """One file. ops: its operations, sorted.  types: value -> spec.  tensors: value -> the message of a parameter or
    constant.  sparse: those of them that keep few of their numbers.  modules: path -> class, where the file says."""

    def __init__(self, model: Any, title: str, nbytes: int):
        self.model, self.title, self.nbytes = model, title, nbytes
        self.ours = model.producer_name == "minflow"
        self.functions: dict[Key, Any] = {key_of(f, f.name): f for f in model.functions}
        self.opsets = {WORDS.get(o.domain, o.domain): o.version for o in model.opset_import}
        self.schemas: dict[tuple[str, str], Any] = {}
        self.taken: set[str] = set()
        self.modules: dict[str, str] = {}
        self.tensors: dict[str, Any] = {}
        self.count_nodes()  # first: the other steps take for granted what is checked here
        self.collect_tensors()
        self.types = self.known_types()
        self.ops = self.sorted([self.op(node) for node in model.graph.node if not self.is_constant(node)])

    # ---- checks ------------------------------------------------------------------------------------------------------

    def count_nodes(self) -> None:
        """How many nodes there are, and how many with functions written out. Functions that call themselves are
        refused, and so is what would take hours."""
        graph = self.model.graph
        bodies = {key: list(every_node(f.node)) for key, f in self.functions.items()}
        own = list(every_node(graph.node))
        total = len(own) + sum(map(len, bodies.values())) + len(bodies)
        if total > MOST_NODES:
            refuse("there are too many operations in this file", operations=f"{total:,}", most=f"{MOST_NODES:,}")
        if max(len(graph.input), len(graph.output)) > MOST_ENDS:
            refuse(
                "there are too many inputs or outputs in this file",
                most=f"{MOST_ENDS:,}",
                inputs=f"{len(graph.input):,}",
                outputs=f"{len(graph.output):,}",
            )
        for node in own:
            if max(len(node.input), len(node.output)) > MOST_ENDS:
                refuse(
                    "an operation has too many inputs or outputs",
                    operation=short(node.name or node.op_type),
                    inputs=f"{len(node.input):,}",
                    outputs=f"{len(node.output):,}",
                    most=f"{MOST_ENDS:,}",
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
            refuse("functions in this file call each other in a circle", functions=", ".join(circle[:4]))
        self.written_out = len(own) + sum(sizes.get(key_of(n, n.op_type), 0) for n in own)

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
            if name not in self.sparse and (why := stored(tensor)):
                refuse(f"a tensor in this file is damaged: {why}", tensor=short(name), spec=tensor_spec(tensor))

    def constant(self, node: Any) -> Any:
        """The tensor that a Constant gives, or None."""
        if node.op_type != "Constant" or node.domain not in ("", "ai.onnx") or len(node.output) != 1 or node.input:
            return None
        return next((a.t for a in node.attribute if a.name == "value" and a.HasField("t")), None)

    def is_constant(self, node: Any) -> bool:
        return self.constant(node) is not None

    # ---- shapes ------------------------------------------------------------------------------------------------------

    def known_types(self) -> dict[str, str]:
        """The specs of values, as the file says; where it says too little, with those that follow."""
        graph = self.model.graph
        given = specs_of((*graph.value_info, *graph.input, *graph.output))
        wanted = {name for node in graph.node if not self.is_constant(node) for name in node.output if name}
        known = {name: spec for name, spec in given.items() if "?" not in spec and "..." not in spec}
        if wanted - known.keys() and self.written_out <= INFERRED:
            known = specs_of(self.inferred()) | known
        return given | known

    def inferred(self) -> Iterable[Any]:
        """What `onnx.shape_inference` adds, of a copy without large tensors, so that none is read or copied."""
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
            if name not in self.sparse and size_of(tensor.dims) <= KNOWN and not tensor.data_location:
                light.graph.initializer.add().CopyFrom(tensor)
                light.graph.initializer[-1].name = name
            else:
                kind = (tensor.values if name in self.sparse else tensor).data_type
                light.graph.input.append(onnx.helper.make_tensor_value_info(name, kind, list(tensor.dims)))
        try:
            result = onnx.shape_inference.infer_shapes(light).graph
            return (*result.value_info, *result.output)
        except Exception:  # whatever it says: the picture then shows what the file does
            return ()

    # ---- operations --------------------------------------------------------------------------------------------------

    def op(self, node: Any) -> Op:
        """With a name that no other has, and its place among the modules."""
        where = place_of(node, self.ours)
        self.modules.update(where.classes)
        if len(node.output) == 0:
            refuse("an operation gives nothing", operation=short(node.name or node.op_type))
        names = self.formal(node)
        args = [(names(i), value) for i, value in enumerate(node.input) if value]
        captured = [v for a in node.attribute for g in graphs_in(a) for v in free(g)]
        name = self.fresh(short(node.name) or f"{short(node.op_type)}_{len(self.taken)}")
        return Op(node, name, where.scope, args, list(dict.fromkeys(captured)))

    def fresh(self, name: str) -> str:
        unique, number = name, len(self.taken)
        while unique in self.taken:
            unique, number = f"{name} ({number})", number + 1
        self.taken.add(unique)
        return unique

    def schema(self, node: Any) -> Any:
        """What the package knows of an operation; None of one that is not the standard's."""
        key = node.domain, node.op_type
        if key not in self.schemas:
            import onnx

            version = self.opsets.get(WORDS.get(node.domain, node.domain), 1)
            domain = "" if node.domain == "ai.onnx" else node.domain
            try:
                most = min(max(version, 1), 2**31 - 1)
                self.schemas[key] = onnx.defs.get_schema(node.op_type, max_inclusive_version=most, domain=domain)
            except onnx.defs.SchemaError:
                self.schemas[key] = None
        return self.schemas[key]

    def formal(self, node: Any) -> Any:
        """Number of an input -> its name."""
        function, schema = self.functions.get(key_of(node, node.op_type)), self.schema(node)
        names = list(function.input) if function is not None else [x.name for x in schema.inputs] if schema else []
        many = bool(schema) and function is None and bool(names) and schema.inputs[-1].option.name == "Variadic"

        def name(i: int) -> str:
            if many and i >= len(names) - 1:
                return f"{names[-1]}[{i - len(names) + 1}]"
            return short(names[i]) if i < len(names) else f"input {i}"

        return name

    def sorted(self, ops: list[Op]) -> list[Op]:
        """In an order in which they can run; that of the file where it is one."""
        given = {v.name for v in self.model.graph.input} | self.tensors.keys()
        makers: dict[str, int] = {}
        for i, op in enumerate(ops):
            for value in filter(None, op.message.output):
                if value in makers or value in given:
                    refuse("two operations give one value, or one an input", value=short(value), operation=op.name)
                makers[value] = i
        left = [0] * len(ops)
        users: list[list[int]] = [[] for _ in ops]
        for i, op in enumerate(ops):
            for _, value in op.args:
                if value not in makers and value not in given:
                    refuse("an operation reads a value that nothing gives", value=short(value), operation=op.name)
            for j in {makers[value] for value in op.reads if value in makers}:
                users[j].append(i)
                left[i] += 1
        ready = [i for i, n in enumerate(left) if not n]
        order = []
        while ready:
            i = heapq.heappop(ready)
            order.append(ops[i])
            for j in users[i]:
                left[j] -= 1
                if not left[j]:
                    heapq.heappush(ready, j)
        if len(order) < len(ops):
            circle = [op.name for op, n in zip(ops, left) if n]
            refuse("operations of this graph read each other's results in a circle", operations=", ".join(circle[:4]))
        return order


def not_utf8(message: Any) -> bytes | None:
    """A text in it that is none: protobuf leaves it as bytes. As deep as messages stand in each other, at most 100.
    The numbers of tensors are not touched."""
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
    """Those in graphs inside them too."""
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


def free(graph: Any) -> list[str]:
    """What a graph reads that it does not make: values of the graph around it. As deep as protobuf lets graphs stand
    in each other, which is some 30."""
    own = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    own |= {t.values.name for t in graph.sparse_initializer} | {name for n in graph.node for name in n.output}
    reads = [name for n in graph.node for name in n.input] + [v.name for v in graph.output]
    reads += [name for n in graph.node for a in n.attribute for g in graphs_in(a) for name in free(g)]
    return [name for name in dict.fromkeys(reads) if name and name not in own]


def specs_of(values: Iterable[Any]) -> dict[str, str]:
    return {value.name: spec_of(value.type) for value in values if value.HasField("type")}
