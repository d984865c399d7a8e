"""How an nn.Graph prints: OneFlow's listing with seven tags, 80 columns wide; pure text from what is there.

"seed" is the form of v0.6 (`_G_0-input_0`), "v1" that of later versions (`_G_0_input.0.0_2`) with a line per operation.
Before the first call the modules and their tensors; after it also the inputs and outputs of every module that ran.
Read next: `debug.py`, which prints the same lines while a graph is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...core.ir import Node, Source, Value, outputs_of
from ...core.tensor import Tensor
from .tree import unflatten

STYLES = ("seed", "v1")
WIDTH = 80  # columns, whatever the terminal has: the same text everywhere


class Mark:
    """Stands for a tensor in a structure that is only looked at."""


def marked(tree: Any) -> Any:
    """(args, kwargs) with marks for tensors; `tree` may be a number of positional tensors."""
    if isinstance(tree, int):
        return (Mark(),) * tree, {}
    count = str(tree).count("'tensor'")
    return unflatten(tree, [Mark() for _ in range(count)])


def keys_of(path: Any) -> tuple:
    """A path of keys and positions; `flatten` gives it as text, "0[1]['key']"."""
    if isinstance(path, tuple):
        return path
    import ast

    head, _, rest = path.partition("[")
    return (int(head), *[ast.literal_eval(part.rstrip("]")) for part in rest.split("[")]) if rest else (int(head),)


# ---- one tensor ------------------------------------------------------------------------------------------------------


def meta(tensor: Tensor, lazy: bool = False, parameter: bool = False) -> str:
    """`tensor(..., size=(64, 3, 32, 32), dtype=minflow.float32)`, broken where 80 columns are full."""
    spec = tensor.spec
    suffixes = [] if spec.device.type == "cpu" else [f"device='{spec.device}'"]
    suffixes += ["is_lazy='True'"] if lazy else []
    suffixes += [f"size={tuple(spec.shape)}", f"dtype={spec.dtype}"]
    suffixes += ["requires_grad=True"] if parameter and tensor.needs else []
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
        yield from numbered(str(i), value)


def numbered(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list | tuple | dict):
        for j, part in enumerate(value.values() if isinstance(value, dict) else value):
            yield from numbered(f"{name}_{j}", part)
    else:
        yield name, value


def v1_names(args: Any, kwargs: Any) -> Iterator[tuple[str, Any]]:
    """("0.0_2", leaf), ...: the place in (args, kwargs), and a running number over all places, depth first."""
    stack: list[tuple[str, Any]] = [("1", dict(kwargs)), ("0", tuple(args))]
    number = 0
    while stack:
        place, value = stack.pop()
        number += 1
        if isinstance(value, list | tuple | dict):
            parts = list(value.values() if isinstance(value, dict) else value)
            stack += [(f"{place}.{i}", part) for i, part in reversed(list(enumerate(parts)))]
        else:
            yield f"{place}_{number}", value


def io_lines(tag: str, owner: str, args: Any, kwargs: Any, lazy: bool, style: str) -> list[str]:
    """The INPUT or OUTPUT lines of a graph or a module."""
    word = tag.lower()
    names = seed_names(args, kwargs) if style == "seed" else v1_names(args, kwargs)
    owner = clean(owner)
    between = f"-{word}_" if style == "seed" else f"_{word}."
    lines = []
    for name, leaf in names:
        if isinstance(leaf, Tensor):
            lines.append(f"({tag}:_{owner}{between}{name}:{meta(leaf, lazy)})")
        else:
            lines.append(f"[WARNING]({tag}:_{owner}{between}{name}:{type(leaf)})")
    return lines


def outputs_as_args(output: Any, whole: bool) -> tuple:
    """What was returned, as positional values; a graph's output counts as one, a module's tuple as several."""
    return tuple(output) if isinstance(output, tuple) and not whole else (output,)


# ---- the listing -----------------------------------------------------------------------------------------------------


def clean(text: str) -> str:
    """Without characters that break a line or a terminal; names come from users."""
    return "".join([c if c.isprintable() else repr(c)[1:-1] for c in text])


def graph_head(graph: Any) -> str:
    return f"(GRAPH:{graph.name}:{type(graph).__name__})"


def module_head(path: str, module: Any) -> str:
    return clean(f"(MODULE:{path}:{type(module).__name__}({module.extra_repr()}))")


def tensor_lines(path: str, module: Any) -> list[str]:
    """The PARAMETER and BUFFER lines of a module's own tensors."""
    rows = [("PARAMETER", name, t, True) for name, t in module._parameters.items()]
    rows += [("BUFFER", name, t, False) for name, t in module._buffers.items()]
    return [f"({tag}:{clean(f'{path}.{name}')}:{meta(t, parameter=p)}): ()" for tag, name, t, p in rows if t is not None]


def block(head: str, children: list[str]) -> str:
    if not children:
        return f"{head}: ()"
    return f"{head}: (" + "".join(["\n  " + child.replace("\n", "\n  ") for child in children]) + "\n)"


def text(graph: Any, style: str = "seed") -> str:
    """The whole listing."""
    compiled = graph._last
    build = compiled.build if compiled else None
    calls: dict[str, Any] = {}
    for call in build.top.walk() if build else ():
        calls.setdefault(call.path, call)
    operators = operator_lines(compiled) if compiled and style == "v1" else {}
    children = [f"(CONFIG:config:{graph.config!r})"]
    if build:
        args, kwargs = build.given()
        children += io_lines("INPUT", graph.name, args, kwargs, False, style)
    for name, member in graph.named_members():
        children.append(module_text(name, member, calls, operators, style))
    for path, module in graph._found:
        if "." not in path:
            children.append(module_text(path, module, calls, operators, style))
    children += operators.get("", [])
    if build:
        children += io_lines("OUTPUT", graph.name, outputs_as_args(build.top.output, True), {}, False, style)
    return block(graph_head(graph), children)


def module_text(path: str, module: Any, calls: dict, operators: dict, style: str) -> str:
    """One module and all inside it; a loop, so that depth is no limit."""
    done: dict[str, str] = {}
    stack = [(path, module, False)]
    while stack:
        place, top, ready = stack.pop()
        inner = [(f"{place}.{name}", child) for name, child in top._modules.items() if child is not None]
        if not ready:
            stack.append((place, top, True))
            stack += [(p, m, False) for p, m in inner]
            continue
        call = calls.get(place)
        children = io_lines("INPUT", place, call.args, call.kwargs, True, style) if call else []
        children += tensor_lines(place, top)
        children += [done.pop(p) for p, _ in inner]
        children += operators.get(place, [])
        if call and call.done:
            children += io_lines("OUTPUT", place, outputs_as_args(call.output, False), {}, True, style)
        done[place] = block(module_head(place, top), children)
    return done[path]


# ---- operations ------------------------------------------------------------------------------------------------------


def operator_lines(compiled: Any) -> dict[str, list[str]]:
    """scope -> the OPERATOR lines of its operations, of what runs after all passes."""
    found: dict[str, list[str]] = {}
    for part in compiled.parts:
        for node in part.graph.nodes:
            found.setdefault(node.scope, []).append(operator_line(node, part.names))
    return found


def operator_line(node: Node, names: dict[Node, str], more: str = "") -> str:
    """`(OPERATOR: model.fc1-matmul-0(<in>, <in>) -> (<out>), placement=(...))`."""
    ins = ", ".join([lbn(x, names) if x.__class__ is Value else repr(x) for x in node.inputs])
    outs = ", ".join([lbn(v, names) for v in outputs_of(node)])
    device = node.out_specs[0].device
    placement = f'minflow.placement(type="{device.type}", ranks=[{device.index}])'
    return f"(OPERATOR: {names[node]}({ins}) -> ({outs}), placement=({placement}){more})"


def lbn(value: Value, names: dict[Node, str]) -> str:
    """`model.fc1-matmul-0/matmul_0:(sbp=(B), size=(64, 10), dtype=(minflow.float32))`."""
    node = value.node
    if isinstance(node, Source):
        name = f"{node.name or node.op}/out"
    else:
        name = f"{names.get(node, str(node.op))}/{node.op.outputs[value.index]}_0"
    return f"{name}:(sbp=(B), size={tuple(value.spec.shape)}, dtype=({value.spec.dtype}))"
