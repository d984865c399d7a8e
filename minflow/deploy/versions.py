"""Versions of ops, so that a saved graph keeps its meaning.

A change of an op's signature or results increments the `version=` in its `define`; a node saved with an older version
is converted by a function in CONVERTERS, or refused by name. `tests/golden/ops.txt` records the results of each
version. Read next: `folder.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..core.ir import Node
from ..core.op import OPS, Op
from .checks import Malformed, refuse

FORMAT, VERSION = "minflow.graph", 1  # of the folder itself


def with_axis_of_steps(node: dict[str, Any]) -> dict[str, Any]:
    """Version 1 of a recurrent layer had an axis of (steps * batch) of the tensors that it saves for its gradient."""
    (states, *_), first = node["out"][0].rsplit(",", 1), 3 if node["op"] != "gru" else 2
    saved = [f"{states},{text.rsplit(',', 1)[1]}" for text in node["out"][first:]]
    return {**node, "out": node["out"][:first] + saved}


# (name, version) -> function that converts a node's data, {"op": name, "in": [...], "attrs": {...}, ...}, to the next
# version. A view in the path of a view_write has only op and attrs.
CONVERTERS: dict[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]] = {
    (name, 1): with_axis_of_steps for name in ("lstm", "lstm_projected", "gru")
}


def versions_of(nodes: Iterable[Node]) -> dict[str, int]:
    """Name -> version of each op that the nodes use, including ops in view paths; sorted by name."""
    ops = {op for node in nodes for op in (node.op, *ops_in(tuple(node.attrs.values())))}
    return {op.name: op.version for op in sorted(ops, key=lambda op: op.name)}


def ops_in(value: Any) -> list[Op]:
    """The ops among nested tuples."""
    return [op for x in value for op in ops_in(x)] if type(value) is tuple else [value] if isinstance(value, Op) else []


def check_versions(ops: Mapping[str, int]) -> Mapping[str, int]:
    """Check name -> version from a file: each is current or can be converted. Raises GraphFormatError."""
    for name, version in ops.items():
        if name not in OPS:
            refuse(
                f"the graph uses {name}, and no operation of this name is defined",
                "import the module that defines it by flow.library.custom_op, then load again; or a newer minflow"
                if name.isidentifier()
                else "no operation can have such a name: the file was damaged",
                op=name,
            )
        op = OPS[name]
        steps = range(version, op.version)
        if version > op.version:
            by, hint = (
                ("by a newer definition", "import that definition")
                if op.custom
                else ("by a newer minflow", "upgrade minflow, then load the graph again")
            )
        elif missing := [step for step in steps if (name, step) not in CONVERTERS]:
            by, hint = f"and nothing converts version {missing[0]}", "save the graph again from its code"
        else:
            continue
        what = f"{name}: the graph was written with version {version}, {by}"
        refuse(what, hint, op=name, in_the_file=version, here=op.version)
    return ops


def convert_nodes(nodes: list, known: Mapping[str, int]) -> list:
    """Convert the data of nodes to the current versions. known: the result of `check_versions`."""
    old = {name: version for name, version in known.items() if version < OPS[name].version}
    return [to_current(node, old, f"nodes[{i}]") for i, node in enumerate(nodes)] if old else nodes


def to_current(node: Any, old: Mapping[str, int], place: str) -> Any:
    """Convert a node's data to the current version, including the views in the path of a view_write."""
    try:
        name = node["op"]
        if name == "view_write":
            path = [to_current({"op": op, "attrs": attrs}, old, place) for op, attrs in node["attrs"]["path"]]
            node = {**node, "attrs": {**node["attrs"], "path": [[view["op"], view["attrs"]] for view in path]}}
        for version in range(old[name], OPS[name].version) if name in old else ():
            node = CONVERTERS[name, version](node)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise Malformed("a node", node, place) from error
    return node
