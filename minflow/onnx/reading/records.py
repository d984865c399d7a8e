"""Convert an ONNX file to the records that the explorer shows. Nothing in it is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...views.draw.fold import scope_levels
from ...views.records.graph import Input
from ...views.records.step import StepNode, StepRecord
from ...views.text.listing import count
from .contents import Contents, Op, graphs_in, key_of, refuse
from .describe import (
    attribute_text,
    bits_of,
    bytes_text,
    graph_summary,
    is_default,
    kinds_text,
    opsets_text,
    short,
    size_of,
    tensor_spec,
)
from .scopes import line_of, parameter_word

MAX_INLINE_ELEMENTS = 8  # largest number of elements of a constant that is shown inside its reader
MAX_NOTES = 4  # nested graphs of an operation that are listed


@dataclass(frozen=True)
class OnnxFile:
    """A file for the explorer. step: its graph.  head: (label, text) about the file.  tensors: name of a parameter or
    constant -> its message, if it is stored in the file.
    """

    step: StepRecord
    head: tuple[tuple[str, str], ...]
    tensors: dict[str, Any]


class Records:
    """Records of one file. values: value -> (id of its producer, output index).  shown: name in the picture -> message
    of a tensor.
    """

    def __init__(self, file: Contents):
        self.file = file
        self.shown: dict[str, Any] = {}
        self.values: dict[str, tuple[str, int]] = {}

    def result(self) -> OnnxFile:
        file = self.file
        nodes = [*self.inputs(), *self.states(), *[self.node(i, op) for i, op in enumerate(file.ops)]]
        self.label_modules(nodes)
        outputs = []
        for value in file.model.graph.output:
            if value.name not in self.values:
                refuse("no operation computes this output of the graph", output=short(value.name))
            outputs.append(self.values[value.name])
        head = self.head(nodes)
        note = "; ".join(f"{what} {text}" for what, text in head if what in ("producer", "opset"))
        step = StepRecord(tuple(nodes), tuple(outputs), (), file.title, note, file.modules)
        return OnnxFile(step, tuple(head), self.shown)

    def inputs(self) -> Iterator[StepNode]:
        file = self.file
        for i, value in enumerate(v for v in file.model.graph.input if v.name not in file.tensors):
            if value.name in self.values:
                refuse("two inputs have one name", name=short(value.name))
            id, spec, name = f"i{i}", file.types.get(value.name, "?"), file.unique_name(short(value.name))
            self.values[value.name] = id, 0
            yield StepNode(id, "input", name, (spec,), name=name, role="input", short=name, nbytes=spec_bytes(spec))

    def states(self) -> Iterator[StepNode]:
        """The tensors that are read, each at its first reader; small constants are shown inside their readers."""
        file = self.file
        readers: dict[str, tuple[int, str]] = {}
        for i, op in enumerate(file.ops):
            for formal, value in (*op.args, *[("", value) for value in op.captured]):
                if value in file.tensors:
                    readers.setdefault(value, (i, formal))
        shown = {value.name for value in file.model.graph.output} & file.tensors.keys()
        for k, value in enumerate([v for v in file.tensors if v in readers or v in shown]):
            i, formal = readers.get(value, (-1, ""))
            tensor, id, name = file.tensors[value], f"s{k}", file.unique_name(short(value) or "tensor")
            values = tensor.values if value in file.sparse else tensor
            spec, size = tensor_spec(tensor, values.data_type), size_of(tensor.dims)
            self.values[value] = id, 0
            if value not in file.sparse:
                self.shown[name] = tensor
            floats = spec.startswith(("float", "bfloat", "double", "complex"))
            role = "parameter" if (floats and tensor.dims) or size > MAX_INLINE_ELEMENTS else "constant"
            yield StepNode(
                id,
                "state",
                name,
                (spec,),
                scope=file.ops[i].place if i >= 0 else "",
                name=name,
                role=role,
                short=parameter_word(name, formal),
                size=size,
                nbytes=spec_bytes(spec),
                twin=f"n{i}" if i >= 0 else "",
                where=external_location(tensor),
            )

    def inline_constants(self, op: Op) -> dict[str, str]:
        """The small constants that it reads, by input name."""
        file = self.file
        result: dict[str, str] = {}
        for formal, value in op.args:
            tensor = file.tensors.get(value)
            if tensor is not None and value not in file.sparse and not tensor.data_location:
                whole = tensor_spec(tensor).startswith(("int", "uint", "bool"))
                if size_of(tensor.dims) <= (MAX_INLINE_ELEMENTS if whole else int(not tensor.dims)):
                    text = attribute_text(tensor)
                    if text:
                        result[formal] = text
        return result

    def node(self, i: int, op: Op) -> StepNode:
        file, message, id = self.file, op.message, f"n{i}"
        names = [name for name in message.output if name]
        specs = tuple(file.types.get(name, "?") for name in names)
        for k, name in enumerate(names):
            self.values[name] = id, k
        constants = self.inline_constants(op)
        inputs = [Input(formal, *self.values[value]) for formal, value in op.args if formal not in constants]
        inputs += [Input("captured", *self.values[v]) for v in op.captured if v in self.values]
        function = file.functions.get(key_of(message, message.op_type))
        said = [message.domain] if message.domain not in ("", "ai.onnx") else []
        attributes = sorted(message.attribute, key=lambda a: a.name != "then_branch")  # the first one of If
        notes = [f"{short(a.name)}: {graph_summary(g.node)}" for a in attributes for g in graphs_in(a)]
        notes += [f"function: {graph_summary(function.node)}"] if function is not None else []
        every = {short(a.name): attribute_text(a) for a in message.attribute if not graphs_in(a)}
        schema = file.schema(message)
        usual_ones = {a.name for a in message.attribute if is_default(a, schema)}
        shown = {name: text for name, text in every.items() if name not in usual_ones} | constants
        return StepNode(
            id,
            "op",
            short(message.op_type),
            specs,
            tuple(inputs),
            truncate(joined_text(said, shown)),
            op.place,
            name=op.name,
            column=0,
            order=float(i),
            every=truncate(joined_text(said, every | constants), 400),
            nbytes=sum(map(spec_bytes, specs)),
            where=line_of(message),
            notes=tuple(notes[:MAX_NOTES]),
        )

    def label_modules(self, nodes: list[StepNode]) -> None:
        """Label modules without a known class by their contents."""
        inside: dict[str, dict[str, None]] = {}
        for node in nodes:
            path = ""
            for level in scope_levels(node.scope) if node.kind == "op" and node.scope else ():
                path += level
                if path not in self.file.modules:
                    inside.setdefault(path, {})[node.label] = None
        self.file.modules.update({path: kinds_text(kinds) for path, kinds in inside.items()})

    def head(self, nodes: list[StepNode]) -> list[tuple[str, str]]:
        """Description of the file as a whole."""
        file, model, graph = self.file, self.file.model, self.file.model.graph
        ops = Counter(node.label for node in nodes if node.kind == "op")
        parameters = [node for node in nodes if node.role == "parameter"]
        rows = [("file", f"{file.title}, {bytes_text(file.nbytes)}")]
        producer = " ".join(filter(None, (model.producer_name, model.producer_version)))
        rows += [("producer", short(producer))] if producer else []
        rows += [("graph", short(graph.name))] if graph.name else []
        rows.append(("opset", opsets_text(file.opsets, model.ir_version)))
        inputs = [node for node in nodes if node.role == "input"]
        rows.append(("inputs", listed([f"{node.name} {node.outs[0]}" for node in inputs])))
        places = {node.id: node for node in nodes}
        rows.append(
            (
                "outputs",
                listed(
                    [
                        f"{short(v.name)} {places[self.values[v.name][0]].outs[self.values[v.name][1]]}"
                        for v in graph.output
                    ]
                ),
            )
        )
        numbers = sum(node.size for node in parameters)
        rows.append(
            (
                "parameters",
                f"{count(len(parameters), 'tensor')}, {count(numbers, 'number')}, "
                f"{bytes_text(sum(node.nbytes for node in parameters))}",
            )
        )
        other = Counter(node.where for node in nodes if node.kind == "state" and node.where)
        files = [f"{count(n, 'tensor')} {where}" for where, n in other.items()]
        rows += [("elsewhere", listed(files))] if files else []
        kinds = [f"{n:,} {kind}" for kind, n in ops.most_common()]
        rows.append(("operations", listed(kinds, 8)))
        functions = [f"{short(f.name)}: {graph_summary(f.node)}" for f in file.functions.values()]
        rows += [("functions", listed(functions))] if functions else []
        unknown = sum("?" in spec for node in nodes if node.kind == "op" for spec in node.outs)
        rows += [("shapes", f"{count(unknown, 'value')} of unknown size")] if unknown else []
        return rows


def external_location(tensor: Any) -> str:
    """The path of the other file that holds its elements, or ""."""
    if not tensor.data_location:
        return ""
    location = next((e.value for e in tensor.external_data if e.key == "location"), "another file")
    return f"in {short(location)}, not read"


def spec_bytes(spec: str) -> int:
    """Bytes of a value by its spec; 0 if a size is unknown."""
    dtype, _, rest = spec.partition("[")
    sizes = [n for n in rest.rstrip("]").split(", ") if n]
    if "(" in dtype or not spec.endswith("]") or not all(n.isdecimal() for n in sizes):
        return 0
    total = bits_of(dtype)
    for n in sizes:
        total = min(total * int(n), 2**63)
    return -(-total // 8)


def joined_text(said: list[str], attributes: dict[str, str]) -> str:
    return ", ".join([*said, *[f"{name}={text}" for name, text in attributes.items()]])


def truncate(text: str, most: int = 120) -> str:
    return text if len(text) <= most else f"{text[: most - 4]} ..."


def listed(parts: list[str], most: int = 4) -> str:
    more = [f"and {len(parts) - most:,} more"] if len(parts) > most else []
    return ", ".join([*parts[:most], *more]) or "none"
