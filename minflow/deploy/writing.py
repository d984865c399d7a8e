"""Convert a Program to data for a file: `graph.json` as dicts and lists, and the weights by name.

Values are numbered: inputs, then tensors, then the outputs of each node; `"%12"` in the file. Content that cannot be
stored in a file is refused here, and the error names its line in the program. Read next: `attrs.py`, the encoding of
attrs; `versions.py`; `document.py`, which reads the data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..core.backend import to_host
from ..core.base.errors import GraphError
from ..core.host import HostArray
from ..core.ir import NUMBERS, Node, Value, file_name, line_number, where_text
from ..core.op import OPS
from ..core.source_location import fail
from ..io.tree import WRITTEN_DTYPES
from ..nn.graph.tree import Leaf
from .attrs import encode, encode_attrs
from .checks import Malformed
from .document import MAX_TEXT_CHARS, spec_text
from .program import CallEntry, ModuleEntry, Program, ProgramTensor
from .versions import FORMAT, VERSION, versions_of


def to_data(program: Program) -> tuple[dict[str, Any], dict[str, HostArray]]:
    """Returns (graph.json, weights by name). Raises GraphError for content that a file cannot hold."""
    return ProgramWriter(program).data()


class ProgramWriter:
    """Writer of a Program. numbers: value -> its index."""

    def __init__(self, program: Program):
        self.program = program
        self.numbers: dict[Value, int] = {}
        self.places: dict[Node, int] = {node: i for i, node in enumerate(program.graph.nodes)}
        for source in program.graph.inputs:
            self.numbers[Value(source, 0, source.out_specs[0])] = len(self.numbers)
        first = len(self.numbers)
        for i, held in enumerate(program.tensors):
            if held.source is not None:
                self.numbers[Value(held.source, 0, held.source.out_specs[0])] = first + i
        self.count = first + len(program.tensors)

    def data(self) -> tuple[dict[str, Any], dict[str, HostArray]]:
        program = self.program
        self.check_registered()
        states = [self.state(held) for held in program.tensors]
        arrays = {held.name: to_host(held.tensor.array) for held in program.tensors if held.tensor is not None}
        inputs = [{"name": s.name, "spec": spec_text(s.out_specs[0])} for s in program.graph.inputs]
        nodes = [self.node(node) for node in program.graph.nodes]
        data = {
            "format": FORMAT, "version": VERSION, "name": program.name, "kind": program.kind,
            "ops": versions_of(program.graph.nodes),
            "arguments": list(program.arguments), "tree": self.structure(program.tree, iter(program.graph.inputs)),
            "axes": {name: [list(place) for place in places] for name, places in program.axes.items()},
            "inputs": inputs, "states": states, "nodes": nodes,
            "outputs": self.structure(program.out_tree, iter(program.graph.outputs)),
            "updates": [[self.ref(Value(s, 0, s.out_specs[0])), self.ref(v)] for s, v in program.graph.updates.items()],
            "gradients": [[number, self.ref(v)] for number, v in program.gradients.items()],
            "loss": None if program.loss is None else self.ref(program.loss), "training": program.training,
            "modules": [self.module(entry) for entry in program.modules],
            "members": program.members, "met": program.nonmembers,
            "calls": [row for call in program.calls for row in self.calls(call, 0)],
        }  # fmt: skip
        return data, arrays

    def check_registered(self) -> None:
        """Raise GraphError for ops that another process cannot find by name."""
        unknown = dict.fromkeys(
            f"{node.op.name} ({where_text(node.where)})"
            for node in self.program.graph.nodes
            if OPS.get(node.op.name) != node.op
        )
        if unknown:
            fail(
                GraphError,
                f"{self.program.name} has operations without a registered name, which no other process "
                f"finds: {', '.join(list(unknown)[:8])}",
                "define it by flow.library.custom_op in a module that the other process imports",
                graph=self.program.name,
            )

    def state(self, held: ProgramTensor) -> dict[str, Any]:
        if held.tensor is None:
            key, counter = map(int, held.generator.get_state())
            return {"name": held.name, "kind": held.kind, "draws": held.draws, "words": [key, counter]}
        spec = held.tensor.spec
        if spec.dtype.name not in WRITTEN_DTYPES:
            what = f"{held.name} has the dtype {spec.dtype.name}, which a file of weights cannot hold"
            fail(GraphError, what, f"one of {', '.join(WRITTEN_DTYPES)}", tensor=held.tensor)
        result: dict[str, Any] = {"name": held.name, "kind": held.kind, "spec": spec_text(spec)}
        if held.tensor.requires_grad:
            result["requires_grad"] = True
        if filled := self.program.sized_constants.get(held.source):
            result["filled"] = {"shape": encode(filled.shape), "first": encode(filled.first), "step": filled.step}
        return result

    def node(self, node: Node) -> dict[str, Any]:
        first, size_dependent = self.count, self.program.size_dependent.get(node, {})
        for index, spec in enumerate(node.out_specs):
            self.numbers[Value(node, index, spec)] = self.count
            self.count += 1
        result: dict[str, Any] = {
            "value": f"%{first}",
            "op": node.op.name,
            "in": [self.given(node, i, x) for i, x in enumerate(node.inputs)],
        }
        try:
            attrs = encode_attrs(
                node.op, {**node.attrs, **{k: v for k, v in size_dependent.items() if isinstance(k, str)}}
            )
        except (TypeError, Malformed) as error:
            what = f"{self.program.names[node]} at {where_text(node.where)} cannot be saved: {error}"
            fail(GraphError, what, "numbers, texts and tuples of them as attributes", op=node.op.name)
        if attrs:
            result["attrs"] = attrs
        result["out"] = [spec_text(spec) for spec in node.out_specs]
        if node.scope:
            result["scope"] = node.scope
        if node.where is not None:
            result["line"] = f"{file_name(node.where[0].co_filename)[-200:]}:{line_number(node.where)}"
        if node.needs:
            result["needs"] = node.needs
        if node.origin is not None:
            origin = node.origin
            result["of"] = self.places.get(origin, -1) if isinstance(origin, Node) else origin
        return result

    def given(self, node: Node, place: int, x: Any) -> Any:
        return self.ref(x) if x.__class__ is Value else encode(self.program.size_dependent.get(node, {}).get(place, x))

    def ref(self, value: Value) -> str:
        return f"%{self.numbers[value]}"

    def structure(self, shape: Any, values: Iterator) -> Any:
        """A structure with indices of values at its leaves."""
        if shape == "tensor":
            value = next(values)
            return self.ref(value if value.__class__ is Value else Value(value, 0, value.out_specs[0]))
        if shape is None:
            return None
        if isinstance(shape, Leaf):
            x = shape.value
            if x.__class__ in NUMBERS:
                return {"is": encode(x)}
            return {"text": short(x if isinstance(x, str) else type(x).__name__)}
        kind, keys, parts = shape
        inner = [self.structure(part, values) for part in parts]
        if keys is not None:
            return {"dict": [[key if isinstance(key, int) else str(key), part] for key, part in zip(keys, inner)]}
        return {"list" if issubclass(kind, list) else "tuple": inner}

    def module(self, entry: ModuleEntry) -> dict[str, Any]:
        kind = entry.kind if entry.kind.isidentifier() else "_" + re.sub(r"\W", "_", entry.kind)
        result: dict[str, Any] = {"path": entry.path, "class": kind}
        listed = (
            ("text", printable(entry.text)[:MAX_TEXT_CHARS]),
            ("parameters", entry.parameters),
            ("buffers", entry.buffers),
            ("transient", list(entry.transient)),
            ("children", entry.children),
            ("container", entry.container),
        )
        result |= {name: x for name, x in listed if x}
        return result | {"training": entry.training}

    def calls(self, call: CallEntry, depth: int) -> Iterator[dict[str, Any]]:
        """Yield a row for a call and for each call nested in it."""
        yield {
            "module": call.module,
            "depth": depth,
            "nodes": [call.first, call.last],
            "in": self.structure(call.inputs[0], iter(call.inputs[1])),
            "out": self.structure(call.output[0], iter(call.output[1])),
        }
        for child in call.children:
            yield from self.calls(child, depth + 1)


def printable(x: str) -> str:
    """Text of the user's program without control characters, except line breaks."""
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in x)


def short(x: str) -> str:
    x = " ".join(printable(x).split())
    return x if len(x) <= 80 else f"{x[:77]}..."
