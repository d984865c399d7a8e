"""Parse the data of a file into a Document, and check all of it before any is used.

The data are the output of `writing.py`. Every node is checked against the shape rule of its op, so a Document is a
graph that can run. Read next: `call_arguments.py`, the arguments of a call.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

from ..compiler.dynamic_shapes.axes import MAX_DYNAMIC_AXES, sizes_of
from ..compiler.dynamic_shapes.derived_sizes import SizedConstant, SizeFormula, SizeRatio, same_array
from ..core.base.errors import MinflowError
from ..core.host import HostArray
from ..core.infer import consult, data_dependent
from ..core.ir import NUMBERS, RECOMPUTE
from ..core.kernels import has_kernel
from ..core.op import OPS, Op
from ..core.source_location import input_names
from ..core.spec import Device, DType, Spec, cpu, dtype_named, spec_of
from ..nn.graph.tree import Leaf
from . import versions
from .attrs import MAX_NDIM, SIZES, attrs_at_sizes, check_inputs, decode_attrs, number, plausible, resolve_sizes
from .checks import (
    MAX_INT64,
    MAX_MAGNITUDE,
    Check,
    Malformed,
    check_bool,
    check_choice,
    check_each,
    check_fields,
    check_int,
    check_list,
    check_mapping,
    check_text,
)
from .program import CallEntry, ModuleEntry

STATE_KINDS = ("parameter", "buffer", "captured", "constant", "generator")
SPEC_PATTERN = re.compile(r"([a-z]+[0-9]*)\[((?:[0-9]+(?:,[0-9]+)*)?)\]")
VALUE_PATTERN = re.compile(r"%(0|[1-9][0-9]{0,11})")
LINE_PATTERN = re.compile(r"(.{1,200}):([0-9]{1,8})")
MAX_TEXT_CHARS = 4_000  # characters of a module's extra_repr
MAX_RANGE_ELEMENTS = 10**6  # elements of a saved constant that is a range along a dynamic axis
MAX_NESTING = 100  # nesting of lists and dicts in the arguments of a call
MAX_ARGUMENTS = 255
MAX_VARIADIC_INPUTS = 10_000  # of an op with a variable number of inputs
MAX_MODULE_PATHS = 100_000  # module paths; a module with two parents has two paths
MAX_PATH_CHARS = 1 << 24  # characters of all these paths, each of which contains those of its parents


@dataclass(frozen=True, eq=False)
class State:
    """A tensor of a document. array: its elements, or None for a generator, whose key and counter are `words`."""

    name: str
    kind: str
    spec: Spec
    array: HostArray | None = None
    requires_grad: bool = False
    filled: SizedConstant | None = None  # how a constant depends on dynamic axes
    draws: int = 0
    words: tuple[int, int] = (0, 0)


@dataclass(frozen=True, eq=False)
class NodeEntry:
    """A node. inputs: Refs to values, or Python numbers (or SizeFormulas).  first: index of its first output value.
    origin: index of the node whose gradient it computes, "recompute", or None.
    """

    op: Op
    inputs: tuple[Any, ...]
    attrs: Mapping[str, Any]
    specs: tuple[Spec, ...]
    first: int
    scope: str = ""
    line: tuple[str, int] | None = None
    needs: int = 0
    origin: int | str | None = None
    dynamic: bool = False


class Ref(int):
    """Index of a value, in the inputs of a node and in structures."""


@dataclass(frozen=True, eq=False)
class Document:
    """A checked saved graph. Structures have a Ref in place of each tensor. For the other names see `program.py`."""

    name: str
    kind: str
    arguments: tuple[str, ...]
    tree: Any
    inputs: tuple[tuple[str, Spec], ...]
    states: tuple[State, ...]
    nodes: tuple[NodeEntry, ...]
    outputs: Any
    updates: tuple[tuple[int, int], ...]
    gradients: tuple[tuple[int, int], ...]
    loss: int | None
    training: bool
    modules: tuple[ModuleEntry, ...]
    members: dict[str, int]
    nonmembers: dict[str, int]
    calls: tuple[CallEntry, ...]
    axes: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    def sizes(self, specs: Any) -> dict[str, int]:
        """The size of each dynamic axis for inputs of these specs."""
        return sizes_of(self.axes, specs, [name for name, _ in self.inputs])


def on_device(document: Document, device: Device) -> Document:
    """The same graph for tensors on a device; inputs and states that an op reads on the host stay on the CPU."""
    if device is cpu:
        return document
    on_host = {
        ref
        for node in document.nodes
        for name, ref in zip(input_names(node.op, node.inputs), node.inputs)
        if isinstance(ref, Ref) and name.partition("[")[0] in node.op.host_inputs
    }

    def moved(number: int, spec: Spec) -> Spec:
        return spec if number in on_host else spec.replace(device=device)

    first = len(document.inputs)
    return replace(
        document,
        inputs=tuple([(name, moved(i, spec)) for i, (name, spec) in enumerate(document.inputs)]),
        states=tuple([replace(state, spec=moved(first + i, state.spec)) for i, state in enumerate(document.states)]),
        nodes=tuple(
            [
                replace(node, attrs={**node.attrs, "device": device}) if "device" in node.op.attrs else node
                for node in document.nodes
            ]
        ),
    )


def from_data(data: Any, arrays: Mapping[str, HostArray]) -> Document:
    """Parse graph.json and its weights. Raises Malformed or GraphFormatError unless they are a graph that minflow
    writes.
    """
    return DocumentParser(data, arrays).document()


TOP_LEVEL_FIELDS = tuple(
    "format version name kind ops arguments tree axes inputs states nodes "
    "outputs updates gradients loss training modules members met calls".split()
)


class DocumentParser:
    """Parser of a Document. specs: specs of the values so far, by index."""

    def __init__(self, data: Any, arrays: Mapping[str, HostArray]):
        self.data, self.arrays = check_fields(data, "graph", TOP_LEVEL_FIELDS), arrays
        self.specs: list[Spec] = []
        self.sizes: dict[str, int] = {}
        self.draws: dict[int, int] = {}  # index of a generator -> number of draws per call

    def document(self) -> Document:
        data = self.data
        name, kind = (check_text(data[key], key, min_length=1) for key in ("name", "kind"))
        if not name.isidentifier() or not kind.isidentifier():
            raise Malformed("names of a graph and its class", [name, kind], "name and kind")
        self.known = versions.check_versions(
            check_mapping(data["ops"], "ops", lambda x, place: check_int(x, place, 1, 10**6))
        )
        arguments = arguments_of_build(data["arguments"])
        inputs = tuple(check_each(data["inputs"], "inputs", self.input))
        self.specs += [spec for _, spec in inputs]
        tree = call_arguments(self.structure(data["tree"], "tree", among=range(len(inputs))), "tree")
        axes = self.axes(data["axes"], inputs)
        states = tuple(check_each(data["states"], "states", self.state))
        wanted = [s.name for s in states if s.array is not None]
        if len(set(wanted)) < len(wanted):
            raise Malformed("distinct names", sorted(wanted), "states")
        self.specs += [s.spec for s in states]
        self.draws = {len(inputs) + i: s.draws for i, s in enumerate(states) if s.kind == "generator"}
        self.training = check_bool(data["training"], "training")
        rows = versions.convert_nodes(check_list(data["nodes"], "nodes"), self.known)
        nodes = tuple([self.node(row, f"nodes[{i}]", i) for i, row in enumerate(rows)])
        self.check_draws(nodes)
        first, last = len(inputs), len(inputs) + len(states)
        updates = self.values_of("updates", states, lambda x, place: self.ref(x, place, first, last) - first)
        gradients = self.values_of("gradients", states, lambda x, place: check_int(x, place, 0, len(states) - 1))
        if any(states[target].kind == "constant" for target, _ in updates):
            raise Malformed("tensors that are not constants", updates, "updates")
        loss = None if data["loss"] is None else self.ref(data["loss"], "loss")
        if (self.training and (loss is None or not gradients)) or (loss is not None and self.specs[loss].size != 1):
            raise Malformed("a scalar to compute gradients of", data["loss"], "loss")
        modules = tuple(check_each(data["modules"], "modules", lambda x, place: module(x, place, states)))
        check_tree(modules)
        members, nonmembers = (
            check_mapping(data[key], key, lambda x, place: check_int(x, place, 0, len(modules) - 1))
            for key in ("members", "met")
        )
        return Document(
            name,
            kind,
            arguments,
            tree,
            inputs,
            states,
            nodes,
            self.outputs(data["outputs"]),
            updates,
            gradients,
            loss,
            self.training,
            modules,
            members,
            nonmembers,
            self.calls(data["calls"], modules, [*(n.first for n in nodes), len(self.specs)]),
            axes,
        )

    # ---- sources -----------------------------------------------------------------------------------------------------

    def input(self, x: Any, place: str) -> tuple[str, Spec]:
        x = check_fields(x, place, ("name", "spec"))
        return check_text(x["name"], f"{place}.name"), parse_spec(x["spec"], f"{place}.spec")

    def axes(self, x: Any, inputs: tuple) -> dict[str, tuple[tuple[int, int], ...]]:
        def axis(pair: Any, place: str) -> tuple[int, int]:
            number, at = check_list(pair, place, 2, 2)
            check_int(number, place, 0, len(inputs) - 1)
            return number, check_int(at, place, 0, len(inputs[number][1].shape) - 1)

        axes = check_mapping(
            x,
            "axes",
            lambda pairs, place: tuple(check_each(pairs, place, axis, min_length=1)),
            max_length=MAX_DYNAMIC_AXES,
        )
        try:
            self.sizes = sizes_of(axes, [s for _, s in inputs])
        except MinflowError as error:
            raise Malformed("axes of equal size in all inputs", error.what, "axes") from None
        return axes

    def state(self, x: Any, place: str) -> State:
        if type(x) is dict and x.get("kind") == "generator":
            x = check_fields(x, place, ("name", "kind", "draws", "words"))
            words = check_each(x["words"], f"{place}.words", lambda w, at: check_int(w, at, -(2**63)), 2, 2)
            draws = check_int(x["draws"], f"{place}.draws", 0, 10**6)
            return State(
                check_text(x["name"], f"{place}.name"),
                "generator",
                Spec((2,), dtype_named("int64")),
                draws=draws,
                words=(words[0], words[1]),
            )
        x = check_fields(x, place, ("name", "kind", "spec"), ("requires_grad", "filled"))
        name, kind = (
            check_text(x["name"], f"{place}.name", MAX_TEXT_CHARS, 1),
            check_choice(x["kind"], f"{place}.kind", STATE_KINDS),
        )
        wanted, requires = parse_spec(x["spec"], f"{place}.spec"), check_bool(x.get("requires_grad", False), place)
        array = self.arrays.get(name)
        if array is None:
            there = ", ".join(sorted(self.arrays)[:6]) or "which there are none"
            raise Malformed(f"the name of weights, of {there}", name, place)
        if array.shape != wanted.shape or spec_of(array) is not wanted:
            raise Malformed(f"weights of {wanted}", f"{array.dtype}{list(array.shape)}", f"{place}, {name}")
        if requires and not wanted.differentiable:
            raise Malformed("a floating dtype, which can require a gradient", str(wanted), place)
        filled = None if "filled" not in x else self.filled(x["filled"], f"{place}.filled", wanted)
        if filled is not None and (kind != "constant" or not self.produces(filled, wanted, array)):
            raise Malformed("the rule by which a constant depends on the dynamic axes", x["filled"], f"{place}.filled")
        return State(name, kind, wanted, array, requires, filled)

    def filled(self, x: Any, place: str, wanted: Spec) -> SizedConstant:
        x = check_fields(x, place, ("shape", "first", "step"))
        shape = SIZES(x["shape"], f"{place}.shape")
        step = check_int(x["step"], f"{place}.step", -MAX_MAGNITUDE, MAX_MAGNITUDE)
        if step and len(shape) != 1:
            raise Malformed("one axis", x["shape"], f"{place}.shape")
        sizes = resolve_sizes(shape, self.sizes)
        if sizes != wanted.shape or (step and wanted.size > MAX_RANGE_ELEMENTS):  # before the array is allocated
            raise Malformed(
                f"the shape of {wanted}" + f", at most {MAX_RANGE_ELEMENTS:,} numbers" * bool(step),
                x["shape"],
                f"{place}.shape",
            )
        first = number(x["first"], f"{place}.first")
        resolve_sizes(first, self.sizes)
        return SizedConstant(shape, first, step)

    def produces(self, filled: SizedConstant, wanted: Spec, array: HostArray) -> bool:
        """True if `array` holds the elements of this constant at the saved sizes."""
        if isinstance(filled.first, complex) and not wanted.dtype.is_complex:
            return False
        try:
            return same_array(filled.evaluate(self.sizes, wanted.np), array)
        except MinflowError:  # the dtype cannot hold its elements
            return False

    # ---- operations --------------------------------------------------------------------------------------------------

    def outputs(self, x: Any) -> Any:
        shape, refs = self.structure(x, "outputs")
        if not refs:
            raise Malformed("at least one tensor", x, "outputs")
        return shape, refs

    def node(self, x: Any, place: str, number: int) -> NodeEntry:
        x = check_fields(x, place, ("value", "op", "in", "out"), ("attrs", "scope", "line", "needs", "of"))
        first = len(self.specs)
        if x["value"] != f"%{first}":
            raise Malformed(f'"%{first}"', x["value"], f"{place}.value")
        op = OPS[check_choice(x["op"], f"{place}.op", self.known)]
        if op.custom_backward is not None or not has_kernel(op) or op.infer is data_dependent:
            raise Malformed("an operation that a graph can contain", op.name, f"{place}.op")
        count = 0 if op.variadic else len(op.inputs)
        inputs = tuple(
            check_each(x["in"], f"{place}.in", self.node_input, MAX_VARIADIC_INPUTS if op.variadic else count, count)
        )
        attrs = decode_attrs(op, x.get("attrs", {}), f"{place}.attrs")
        for view in versions.ops_in(tuple(attrs.values())):
            check_choice(view.name, f"{place}.attrs", self.known)
        wanted = tuple(check_each(x["out"], f"{place}.out", parse_spec, len(op.outputs), len(op.outputs)))
        now = attrs_at_sizes(op, attrs, self.sizes, f"{place}.attrs")
        given = [self.specs[v] if isinstance(v, Ref) else resolve_sizes(v, self.sizes) for v in inputs]
        got = infer_specs(op, given, now, place)
        if got != wanted:
            raise Malformed(
                f"{', '.join(map(str, got))}, the result of {op.name}", ", ".join(map(str, wanted)), f"{place}.out"
            )
        self.specs += wanted
        origin = x.get("of")
        if origin is not None and origin != RECOMPUTE:
            origin = check_int(origin, f"{place}.of", -1, number - 1)
        needs = check_int(x.get("needs", 0), f"{place}.needs", 0, min((1 << len(inputs)) - 1, MAX_INT64))
        line = source_line(x["line"], f"{place}.line") if "line" in x else None
        changes = any(isinstance(v, SizeFormula | SizeRatio) for v in inputs) or now != attrs
        scope = check_text(x.get("scope", ""), f"{place}.scope", MAX_TEXT_CHARS)
        return NodeEntry(op, inputs, attrs, wanted, first, scope, line, needs, origin, changes)

    def node_input(self, x: Any, place: str) -> Any:
        return self.ref(x, place, draws=True) if isinstance(x, str) else number(x, place)

    def check_draws(self, nodes: tuple[NodeEntry, ...]) -> None:
        """Check that only random ops read generators, and that the draws of each match its declared number."""
        offsets: dict[int, set[int]] = {number: set() for number in self.draws}  # recomputed nodes have the same offset
        for i, node in enumerate(nodes):
            for v in node.inputs:
                if isinstance(v, Ref) and v in offsets:
                    if "offset" not in node.op.attrs:
                        raise Malformed("random numbers, which need a generator", node.op.name, f"nodes[{i}]")
                    offsets[v].add(node.attrs["offset"])
        if (found := {number: len(at) for number, at in offsets.items()}) != self.draws:
            raise Malformed(f"{list(found.values())}, the draws of the nodes", list(self.draws.values()), "states")

    def ref(self, x: Any, place: str, low: int = 0, high: int | None = None, draws: bool = False) -> Ref:
        found = VALUE_PATTERN.fullmatch(x) if isinstance(x, str) else None
        high = len(self.specs) if high is None else high
        if found is None or not low <= int(found[1]) < high:
            raise Malformed(f"a value from %{low} to %{high - 1}", x, place)
        if not draws and int(found[1]) in self.draws:
            raise Malformed("a tensor, not a generator", x, place)
        return Ref(found[1])

    def values_of(self, key: str, states: tuple[State, ...], number: Check) -> tuple[tuple[int, int], ...]:
        """(index of a tensor, index of its new value or gradient), for each tensor at most once."""
        pairs = []
        for i, pair in enumerate(check_list(self.data[key], key)):
            place = f"{key}[{i}]"
            target, value = check_list(pair, place, 2, 2)
            target, value = number(target, place), self.ref(value, place)
            if states[target].spec is not self.specs[value] or states[target].kind == "generator":
                raise Malformed(f"a value of {states[target].spec}", str(self.specs[value]), place)
            pairs.append((target, value))
        if len({target for target, _ in pairs}) < len(pairs):
            raise Malformed("a tensor once", pairs, key)
        return tuple(pairs)

    # ---- structures, modules and calls -------------------------------------------------------------------------------

    def structure(self, x: Any, place: str, among: Any = None) -> Any:
        """(structure, Refs), as `flatten` returns them for tensors."""
        refs: list[Ref] = []
        shape = self.shape(x, place, 0, refs)
        if among is not None and list(refs) != list(among):
            raise Malformed("each input once, in order", [int(r) for r in refs], place)
        return shape, refs

    def shape(self, x: Any, place: str, depth: int, refs: list) -> Any:
        if x is None:
            return None
        if isinstance(x, str):
            refs.append(self.ref(x, place))
            return "tensor"
        if depth > MAX_NESTING or type(x) is not dict or len(x) != 1:
            raise Malformed("a value, null, or an object with its kind", x, place)
        ((kind, inner),) = x.items()
        if kind == "is":
            return Leaf(number(inner, place))
        if kind == "text":
            return Leaf(check_text(inner, place))
        if kind in ("list", "tuple"):
            parts = check_each(inner, place, lambda part, at: self.shape(part, at, depth + 1, refs))
            return (list if kind == "list" else tuple), None, tuple(parts)
        if kind != "dict":
            raise Malformed("list, tuple, dict, is or text", kind, place)
        pairs = check_each(inner, place, lambda pair, at: check_list(pair, at, 2, 2))
        keys = tuple([check_int(k, place, -(2**63)) if type(k) is int else check_text(k, place) for k, _ in pairs])
        if len(set(keys)) < len(keys):
            raise Malformed("distinct keys", keys, place)
        return dict, keys, tuple([self.shape(part, place, depth + 1, refs) for _, part in pairs])

    def calls(self, rows: Any, modules: tuple, firsts: list[int]) -> tuple[CallEntry, ...]:
        """The calls; each is nested in the nearest preceding call of smaller depth. firsts: index of the first value of
        each node, then the number of values.
        """
        top: list[CallEntry] = []
        stack = [(0, len(firsts) - 1, top)]
        for i, x in enumerate(check_list(rows, "calls")):
            place = f"calls[{i}]"
            x = check_fields(x, place, ("module", "depth", "nodes", "in", "out"))
            depth = check_int(x["depth"], f"{place}.depth", 0, len(stack) - 1)
            del stack[depth + 1 :]
            low, high, around = stack[-1]
            low = around[-1].last if around else low
            first, last = check_each(
                x["nodes"], f"{place}.nodes", lambda n, at, low=low, high=high: check_int(n, at, low, high), 2, 2
            )
            if last < first:
                raise Malformed("the first node, then the last", [first, last], f"{place}.nodes")
            number = check_int(x["module"], f"{place}.module", 0, len(modules) - 1)
            inside: list[CallEntry] = []
            taken = call_arguments(self.structure(x["in"], f"{place}.in"), f"{place}.in")
            given = self.structure(x["out"], f"{place}.out")
            for refs, node, key in ((taken[1], first, "in"), (given[1], last, "out")):
                if late := [ref for ref in refs if ref >= firsts[node]]:
                    raise Malformed(f"values that exist by then, less than %{firsts[node]}", late, f"{place}.{key}")
            around.append(CallEntry(number, first, last, taken, given, inside))
            stack.append((first, last, inside))
        return tuple(top)


def call_arguments(structure: Any, place: str) -> Any:
    """Check the structure of a call: positional and keyword arguments."""
    match structure[0]:
        case (_, None, ((positional, None, _), (keywords, tuple() as keys, _))) if positional in (list, tuple):
            if keywords is dict and all(isinstance(key, str) for key in keys):
                return structure
    raise Malformed("positional and keyword arguments", structure[0], place)


def argument(x: Any, place: str) -> str:
    x = check_text(x, place, min_length=1)
    name = x.lstrip("*")
    if not name.isidentifier() or keyword.iskeyword(name) or len(x) - len(name) > 2:
        raise Malformed("the name of an argument", x, place)
    return x


def arguments_of_build(x: Any) -> tuple[str, ...]:
    arguments = tuple(check_each(x, "arguments", argument, MAX_ARGUMENTS))
    stars = [len(x) - len(x.lstrip("*")) for x in arguments]
    if len({"self", *(x.lstrip("*") for x in arguments)}) <= len(arguments) or stars.count(1) > 1 or 2 in stars[:-1]:
        raise Malformed("distinct names, at most *one, and **one as the last", arguments, "arguments")
    return arguments


def source_line(x: Any, place: str) -> tuple[str, int]:
    found = LINE_PATTERN.fullmatch(check_text(x, place, 220))
    if found is None or not int(found[2]):
        raise Malformed('a line, "file.py:12"', x, place)
    return found[1], int(found[2])


def spec_text(spec: Spec) -> str:
    return f"{spec.dtype.name}[{','.join(map(str, spec.shape))}]"


def parse_spec(x: Any, place: str) -> Spec:
    found = SPEC_PATTERN.fullmatch(check_text(x, place, 1_500))
    if found is None or found[1] not in DType.table:
        raise Malformed('a dtype and a shape, "float32[8,3]"', x, place)
    sizes = [int(n) for n in found[2].split(",")] if found[2] else []
    if len(sizes) > MAX_NDIM or not plausible(sizes, dtype_named(found[1])):
        raise Malformed(f"at most {MAX_NDIM} axes, and sizes that a machine can hold", x, place)
    return Spec(tuple(sizes), dtype_named(found[1]))


def infer_specs(op: Op, inputs: list, attrs: Mapping[str, Any], place: str) -> tuple[Spec, ...]:
    """Output specs from the op's shape rule. Raises Malformed with its error."""
    specs = tuple([x.__class__ if x.__class__ in NUMBERS else x for x in inputs])
    try:
        check_inputs(op, inputs, place)
        dtype, got = consult(op, specs, attrs)
    except Exception as error:  # a shape rule may raise anything for such attrs
        said = error.what if isinstance(error, MinflowError) else f"{type(error).__name__}: {error}"
        raise Malformed(f"valid for {op.name} ({said})", f"{[str(s) for s in specs]} {dict(attrs)}", place) from None
    if got is None:
        raise Malformed(f"inputs of the same dtype for {op.name} (cast to {dtype})", list(map(str, specs)), place)
    return got


def module(x: Any, place: str, states: tuple[State, ...]) -> ModuleEntry:
    x = check_fields(
        x, place, ("path", "class", "training"), ("text", "parameters", "buffers", "transient", "children", "container")
    )

    def tensors(key: str) -> dict[str, int]:
        held = check_mapping(x.get(key, {}), f"{place}.{key}", lambda n, at: check_int(n, at, 0, len(states) - 1))
        for state in [states[n] for n in held.values()]:
            if state.kind not in ("parameter", "buffer"):
                raise Malformed("a parameter or buffer", state.kind, f"{place}.{key}")
        return held

    kind = check_text(x["class"], f"{place}.class")
    if not kind.isidentifier():
        raise Malformed("the name of a class", kind, f"{place}.class")
    return ModuleEntry(
        check_text(x["path"], f"{place}.path", MAX_TEXT_CHARS),
        kind,
        check_text(x.get("text", ""), f"{place}.text", MAX_TEXT_CHARS, lines=True),
        check_bool(x["training"], f"{place}.training"),
        tensors("parameters"),
        tensors("buffers"),
        check_mapping(x.get("children", {}), f"{place}.children", lambda n, at: check_int(n, at, 0)),
        tuple(check_each(x.get("transient", []), f"{place}.transient", check_text)),
        check_bool(x.get("container", False), f"{place}.container"),
    )


def check_tree(modules: tuple[ModuleEntry, ...]) -> None:
    """Check that no module contains itself, and that the names of all module paths fit into memory."""
    for entry in modules:
        for child in entry.children.values():
            if child >= len(modules):
                raise Malformed(f"a module from 0 to {len(modules) - 1}", child, "modules")
    try:
        order = list(TopologicalSorter({i: x.children.values() for i, x in enumerate(modules)}).static_order())
    except CycleError as error:
        raise Malformed("modules without cycles", modules[error.args[1][0]].path, "modules") from None
    lines: dict[int, int] = {}  # index -> lines of its listing
    letters: dict[int, int] = {}  # index -> characters of the names in its listing
    for i in order:
        children = modules[i].children
        lines[i] = 1 + sum(lines[child] for child in children.values())
        if lines[i] > MAX_MODULE_PATHS:
            raise Malformed(f"at most {MAX_MODULE_PATHS:,} modules, counted once per path", lines[i], "modules")
        letters[i] = sum(letters[child] + lines[child] * (len(name) + 1) for name, child in children.items())
        if letters[i] > MAX_PATH_CHARS:
            what = f"at most {MAX_PATH_CHARS:,} characters in the names of all modules"
            raise Malformed(what, letters[i], "modules")
