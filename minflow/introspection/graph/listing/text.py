"""The text of an nn.Graph: OneFlow's listing with seven tags, 80 columns wide.

"seed" is the form of v0.6 (`_G_0-input_0`), "v1" that of later versions (`_G_0_input.0.0_2`) with a line per operation.
Before the first call it lists the modules and their tensors; after it also the inputs and outputs of every module that
ran (those of its first call). A module that is used in two places has the same lines, under its first name, in both.
Independent of building. Read next: `build_log.py`, which prints the same lines during a build.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....compiler.names import Names
from ....compiler.passes.dead_code import dead_code
from ....compiler.passes.decomposition import expand
from ....core.base.errors import clean
from ....core.base.placement import Sbp, broadcast
from ....core.ir import STATE, Graph as IR, Node, Source, Value, outputs_of, where_text
from ....core.ops.global_tensors import in_order
from ....core.spec import Spec
from ....core.tensor import Tensor
from ....nn.graph.config import STYLES
from ....nn.graph.tree import parts_of
from ....nn.recursion_limit import SHOWN_LEVELS, levels_below
from ....views.records.opening import Opening
from ....views.text.trees import outer_lines

MAX_BYTES = 500_000  # maximum size of a listing
WIDTH = 80  # columns, independent of the terminal, so that the text is the same everywhere


# ---- one tensor ------------------------------------------------------------------------------------------------------


def tensor_text(tensor: Tensor, lazy: bool = False, parameter: bool = False, parts: int = 1) -> str:
    """`tensor(..., size=(64, 3, 32, 32), dtype=minflow.float32)`, wrapped at 80 columns.

    parts: number of micro-steps that return one such tensor each; the call returns them as one.
    """
    spec: Spec = tensor.spec
    shape = spec.shape if parts == 1 else (parts * spec.shape[0], *spec.shape[1:]) if spec.shape else (parts,)
    suffixes = [] if spec.device.type == "cpu" else [f"device='{spec.device}'"]
    suffixes += [f"placement={spec.placement}", f"sbp={spec.sbp}"] if spec.placement is not None else []
    suffixes += ["is_lazy='True'"] if lazy else []
    suffixes += [f"size={tuple(shape)}", f"dtype={spec.dtype}"]
    suffixes += ["requires_grad=True"] if parameter and tensor._needs else []
    text = "tensor(..." if spec.size else "tensor([]"
    used = len(text) + 2
    for suffix in suffixes:
        if used + len(suffix) + 2 > WIDTH:
            text += ",\n       " + suffix
            used = 7 + len(suffix)
        else:
            text += ", " + suffix
            used += 2 + len(suffix)
    return text + ")"


# ---- inputs and outputs ----------------------------------------------------------------------------------------------


def seed_names(args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    """("0", leaf), ("1_0", leaf of a list), ... over positional arguments, then keywords."""
    for i, value in enumerate((*args, *kwargs.values())):
        yield from nested_names(str(i), value)


def nested_names(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if (parts := parts_of(value)) is not None:
        for j, part in enumerate(parts):
            yield from nested_names(f"{name}_{j}", part)
    else:
        yield name, value


def v1_names(args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    """("0.0_2", leaf), ...: the position in (args, kwargs), and a running number over all positions, depth first."""
    stack: list[tuple[str, Any]] = [("1", dict(kwargs)), ("0", tuple(args))]
    number = 0
    while stack:
        place, value = stack.pop()
        number += 1
        if (parts := parts_of(value)) is not None:
            stack += [(f"{place}.{i}", part) for i, part in reversed(list(enumerate(parts)))]
        else:
            yield f"{place}_{number}", value


def io_lines(tag: str, owner: str, args: Any, kwargs: Any, lazy: bool, style: str, parts: int = 1) -> list[str]:
    """The INPUT or OUTPUT lines of a graph or a module."""
    word = tag.lower()
    names = v1_names(args, kwargs) if style == "v1" else seed_names(args, kwargs)
    owner = clean(owner)
    between = f"_{word}." if style == "v1" else f"-{word}_"
    lines = []
    for name, leaf in names:
        if isinstance(leaf, Tensor):
            lines.append(f"({tag}:_{owner}{between}{clean(name)}:{tensor_text(leaf, lazy, parts=parts)})")
        else:
            lines.append(f"[WARNING]({tag}:_{owner}{between}{clean(name)}:{clean(str(type(leaf)))})")
    return lines


def module_inputs(call: Any, style: str) -> list[str]:
    return io_lines("INPUT", call.path, call.args, call.kwargs, True, style)


def module_outputs(call: Any, style: str) -> list[str]:
    """The return value of a module; a list or a tuple counts as several outputs."""
    outputs = call.output if isinstance(call.output, list | tuple) else (call.output,)
    return io_lines("OUTPUT", call.path, outputs, {}, True, style) if call.done else []


def graph_inputs(build: Any, style: str) -> list[str]:
    args, kwargs = build.arguments()
    return io_lines("INPUT", build.graph.name, args, kwargs, False, style)


def graph_outputs(build: Any, style: str) -> list[str]:
    """The return value of build, as the call returns it. A list or tuple counts as several outputs, in v1 as one nested
    output.
    """
    output = build.top.output
    outputs = output if isinstance(output, list | tuple) and style != "v1" else (output,)
    return io_lines("OUTPUT", build.graph.name, outputs, {}, False, style, build.graph.config.accumulation)


# ---- the listing -----------------------------------------------------------------------------------------------------


def graph_head(graph: Any) -> str:
    return clean(f"(GRAPH:{graph.name}:{type(graph).__name__})")


def module_head(path: str, module: Any) -> str:
    return clean(f"(MODULE:{path}:{module_text(module)})")


def module_text(module: Any) -> str:
    """`Linear(in_features=4, out_features=5, bias=True)`, with the class's extra_repr in the brackets."""
    try:
        return f"{type(module).__name__}({module.extra_repr()})"
    except Exception as error:  # a listing is needed most when something is wrong
        return f"{type(module).__name__}(extra_repr fails: {type(error).__name__})"


def tensor_lines(path: str, module: Any) -> list[str]:
    """The PARAMETER and BUFFER lines of a module's own tensors."""
    rows = [("PARAMETER", name, t, True) for name, t in module._parameters.items()]
    rows += [("BUFFER", name, t, False) for name, t in module._buffers.items()]
    rows = [(tag, clean(f"{path}.{name}"), t, p) for tag, name, t, p in rows if t is not None]
    return [f"({tag}:{name}:{tensor_text(t, parameter=p)})" for tag, name, t, p in rows]


def listing_text(graph: Any, style: str = "seed", compiled: Any = None) -> str:
    """The whole listing; for a very large graph its outer lines. Never raises: an error is shown in place of the part
    that could not be listed. compiled: a plan that is not the graph's latest one yet.
    """
    try:
        return outer_lines("\n".join(Listing(graph, style, compiled or graph._last).lines()), MAX_BYTES)
    except Exception as error:
        name = graph.__dict__.get("_name", "not initialized")
        return clean(f"(GRAPH:{name}:{type(graph).__name__}): ({type(error).__name__}: {str(error)[:200]})")


class Listing:
    """One listing in progress: lookup tables, and the lines so far.

    calls: id(module) -> its first call in the last build. operators: path -> OPERATOR lines, removed as they are added.
    """

    def __init__(self, graph: Any, style: str, compiled: Any):
        self.graph, self.style = graph, style
        self.build = compiled.build if compiled else None
        self.calls: dict[int, Any] = {}
        for call in self.build.top.walk() if self.build else ():
            self.calls.setdefault(id(call.module), call)
        located, opening = graph._debug.get("located", False), graph._debug.get("opening")
        self.operators = operator_lines(graph, compiled, located, opening) if compiled and style == "v1" else {}
        self.rows: list[str] = []

    def add_line(self, depth: int, line: str) -> None:
        pad = "  " * depth
        self.rows.append(pad + line.replace("\n", "\n" + pad))

    def lines(self) -> list[str]:
        graph, build, style = self.graph, self.build, self.style
        if style not in STYLES:
            known = " and ".join(map(repr, STYLES))
            self.add_line(0, f"(repr_style {clean(repr(style))} is none of {known}: this is the first)")
        self.add_line(0, f"{graph_head(graph)}: (")
        self.add_line(1, f"(CONFIG:config:{graph.config!r})")
        for line in graph_inputs(build, style) if build else ():
            self.add_line(1, line)
        for name, member in graph.named_members():
            self.add_module(name, member)
        for path, module in graph._nonmembers:  # used by build elsewhere: in a closure, in a global
            if "." not in path and id(module) in self.calls:
                self.add_module(path, module)
        for line in [line for lines in self.operators.values() for line in lines]:
            self.add_line(1, line)
        for line in graph_outputs(build, style) if build else ():
            self.add_line(1, line)
        self.add_line(0, ")")
        return self.rows

    def add_module(self, path: str, module: Any) -> None:
        """Add one module and all inside it; with a loop, so that depth is not limited."""
        trail: list[int] = []  # the enclosing modules: one that contains itself is not followed
        stack: list[tuple[int, str, Any]] = [(1, path, module)]
        while stack:
            depth, path, module = stack.pop()
            if module is None:  # a postponed line: those before it are done
                self.add_line(depth, path)
                continue
            del trail[depth - 1 :]
            head = module_head(path, module)
            if id(module) in trail:
                self.add_line(depth, f"{head}: (...)")
                continue
            trail.append(id(module))
            if depth > SHOWN_LEVELS and (deep := levels_below(module)):
                self.add_line(depth, f"{head}: (... {deep:,} more level{'s' * (deep > 1)} inside)")
                continue
            call = self.calls.get(id(module))
            before = module_inputs(call, self.style) if call else []
            before += [f"{line}: ()" for line in tensor_lines(path, module)]
            inner = [(f"{path}.{name}", child) for name, child in module._modules.items() if child is not None]
            after = self.operators.pop(path, [])
            after += module_outputs(call, self.style) if call else []
            if not before and not inner and not after:
                self.add_line(depth, f"{head}: ()")
                continue
            self.add_line(depth, f"{head}: (")
            for line in before:
                self.add_line(depth + 1, line)
            stack.append((depth, ")", None))
            stack += [(depth + 1, line, None) for line in reversed(after)]
            stack += [(depth + 1, p, m) for p, m in reversed(inner)]


# ---- operations ------------------------------------------------------------------------------------------------------


def operator_lines(
    graph: Any, compiled: Any, located: bool = False, opening: Opening | None = None
) -> dict[str, list[str]]:
    """path of a module -> the OPERATOR lines of its tensors and operations, after all passes. opening: composite
    operations whose parts are listed below them.
    """
    lines: dict[str, list[str]] = {}
    owned = {f"{path}.{name}": path for path, m in graph.all_modules() for name in (*m._parameters, *m._buffers)}
    listed = set()
    for part in compiled.parts:
        specs = global_specs(part)
        read = {x.node for node in part.graph.nodes for x in node.inputs if x.__class__ is Value}
        for source in part.graph.states:
            if source.op is STATE and source in read and source.name in owned and source.name not in listed:
                listed.add(source.name)
                lines.setdefault(owned[source.name], []).append(variable_line(source, specs))
    for part in compiled.parts:
        names, part_names, specs = dict(part.names), Names(), global_specs(part)
        for node in part.graph.nodes:
            if node.op is in_order:
                continue
            where = f", location=({where_text(node.where)})" if located and node.where is not None else ""
            own = lines.setdefault(node.scope, [])
            own.append(clean(operator_line(node, names, where, specs)))
            inner = opened_parts(node, opening)
            names |= {inside: part_names.of(inside) for inside in inner}
            own += ["  " + clean(operator_line(inside, names, where)) for inside in inner]
    return lines


def opened_parts(node: Node, opening: Opening | None) -> list[Node]:
    """The parts of a composite operation that is to be opened, without those that have no users."""
    if opening is None or not node.op.composite or not opening.chooses(node):
        return []
    outs = outputs_of(node)
    if node.op.gradient_of is not None:
        outs = [value for i, value in enumerate(outs) if node.attrs["needs"] >> i & 1]
    return dead_code(expand(IR([], [node], outs), lambda _: True)).nodes


def global_specs(part: Any) -> dict[Any, tuple[Spec, ...]]:
    """Number of a node, or source of the program -> the specs of its outputs in the trace, if they are global."""
    graph = part.stages[0].graph
    named = [(node.number, node) for node in graph.nodes] + [(s, s) for s in (*graph.inputs, *graph.states)]
    return {key: node.out_specs for key, node in named if node.out_specs[0].placement is not None}


def spec_of(value: Value, specs: Mapping[Any, tuple[Spec, ...]]) -> Spec:
    """The spec of a value in the trace. specs: see `global_specs`."""
    node = value.node
    known = specs.get(node.origin if isinstance(node, Source) else node.number, ())
    return known[value.index] if value.index < len(known) else value.spec


def operator_line(
    node: Node, names: dict[Node, str], more: str = "", specs: Mapping[Any, tuple[Spec, ...]] = {}
) -> str:
    """`(OPERATOR: model.fc1-matmul-0(<in>, <in>) -> (<out>), placement=(...))`; tensors of one name: `[<in>, <in>]`."""
    ins = ", ".join([lbn(x, names, specs) if x.__class__ is Value else repr(x) for x in node.inputs])
    ins = f"[{ins}]" if getattr(node.op, "variadic", False) else ins
    outs = ", ".join([lbn(v, names, specs) for v in outputs_of(node)])
    return f"(OPERATOR: {names[node]}({ins}) -> ({outs}), {placement(spec_of(outputs_of(node)[0], specs))}{more})"


def variable_line(source: Source, specs: Mapping[Any, tuple[Spec, ...]]) -> str:
    """`(OPERATOR: model.fc1.weight() -> (out:sbp=(B), size=(5, 4), dtype=(minflow.float32)), placement=(...))`."""
    spec = spec_of(outputs_of(source)[0], specs)
    return clean(f"(OPERATOR: {source.name}() -> (out:{size_text(spec)}), {placement(spec)})")


def placement(spec: Spec) -> str:
    known = f'minflow.placement(type="{spec.device.type}", ranks=[{spec.device.index}])'
    return f"placement=({spec.placement or known})"


def sbp_short(sbp: Sbp | None) -> str:
    """S(0), B or P; empty for a number, which has none."""
    return "" if sbp is None else {"split": f"S({sbp.dim})", "broadcast": "B", "partial_sum": "P"}[sbp.kind]


def sbp_text(spec: Spec) -> str:
    """`S(0), B`: the sbp along each axis of ranks. A local tensor is whole on its only rank."""
    return ", ".join(map(sbp_short, spec.sbp or (broadcast,)))


def size_text(spec: Spec) -> str:
    return f"sbp=({sbp_text(spec)}), size={tuple(spec.shape)}, dtype=({spec.dtype})"


def lbn(value: Value, names: dict[Node, str], specs: Mapping[Any, tuple[Spec, ...]]) -> str:
    """`model.fc1-matmul-0/matmul_0:(sbp=(B), size=(64, 10), dtype=(minflow.float32))`."""
    while value.node.op is in_order:
        value = value.node.inputs[0]
    node = value.node
    if isinstance(node, Source):
        name = f"{node.name or node.op}/out"
    else:
        name = f"{names.get(node, str(node.op))}/{node.op.outputs[value.index]}_0"
    return f"{name}:({size_text(spec_of(value, specs))})"
