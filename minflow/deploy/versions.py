"""Versions of operations: does a saved graph mean by a name what we mean by it?

A change of an op's signature or results raises the `version=` of its `define`; a node that was saved with an older one
is brought to the next by a function of CONVERTERS, or refused by name. `tests/golden/ops.txt` keeps what each version
gives. Read next: `folder.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..core.ir import Node
from ..core.op import OPS, Op
from .checks import Malformed, refuse

FORMAT, VERSION = "minflow.graph", 1  # of the folder itself
# (name, version) -> the function that makes of a node's data, {"op": name, "in": [...], "attrs": {...}, ...}, that of
# the next version. A view in the path of a view_write has its op and attrs alone.
CONVERTERS: dict[tuple[str, int], Callable[[dict[str, Any]], dict[str, Any]]] = {}


def versions_of(nodes: Iterable[Node]) -> dict[str, int]:
    """Name -> version of each op that the nodes use, also of those in paths of views; sorted by name."""
    ops = {op for node in nodes for op in (node.op, *ops_in(tuple(node.attrs.values())))}
    return {op.name: op.version for op in sorted(ops, key=lambda op: op.name)}


def ops_in(value: Any) -> list[Op]:
    """The ops among nested tuples."""
    return [op for x in value for op in ops_in(x)] if type(value) is tuple else [value] if type(value) is Op else []


def check_versions(ops: Mapping[str, int]) -> Mapping[str, int]:
    """`ops`, name -> version as a file has them, each of which is ours or can be converted; raises GraphFormatError."""
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
        refuse(
            f"{name}: the graph was written with version {version}, {by}",
            hint,
            op=name,
            in_the_file=version,
            here=op.version,
        )
    return ops


def converted(nodes: list, known: Mapping[str, int]) -> list:
    """The data of nodes as of the current versions. known: the result of `check_versions`."""
    old = {name: version for name, version in known.items() if version < OPS[name].version}
    return [of_now(node, old, f"nodes[{i}]") for i, node in enumerate(nodes)] if old else nodes


def of_now(node: Any, old: Mapping[str, int], place: str) -> Any:
    """A node's data brought to the versions of now, and so the views in the path of a view_write."""
    try:
        name = node["op"]
        if name == "view_write":
            path = [of_now({"op": op, "attrs": attrs}, old, place) for op, attrs in node["attrs"]["path"]]
            node = {**node, "attrs": {**node["attrs"], "path": [[view["op"], view["attrs"]] for view in path]}}
        for version in range(old[name], OPS[name].version) if name in old else ():
            node = CONVERTERS[name, version](node)
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise Malformed("a node", node, place) from error
    return node
