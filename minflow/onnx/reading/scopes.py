"""The module path of a node in an ONNX file, from its metadata or its name.

"/layer1/layer1.0/conv1/Conv", as PyTorch's older exporter writes it, is an operation of layer1.0.conv1; its newer
exporter writes the modules and their classes to the metadata; TensorFlow's writes "model/dense/MatMul"; minflow's
"model.conv1-conv2d-0/Conv". PyTorch's metadata also has source lines. Read next: `describe.py`.
"""

from __future__ import annotations

import re
from pathlib import PureWindowsPath
from typing import Any, NamedTuple

from ...core.base.errors import cut

MAX_DEPTH, MAX_NAME_CHARS = 40, 80  # nested modules, and characters of a module's name
NODE_SUFFIX = re.compile(r"(^|-)[a-z]\w*-\d+$")  # end of the name of an operation exported by minflow


class NodePosition(NamedTuple):
    """Position of a node. scope: module path.  classes: path of a module -> its class, if the file has it."""

    scope: str = ""
    classes: dict[str, str] = {}


def place_of(node: Any, is_minflow: bool) -> NodePosition:
    for entry in node.metadata_props:
        if entry.key == "namespace" and ": " in entry.value:
            return from_namespace(entry.value)
    parts = node.name.partition(";")[0].strip("/").split("/")[:-1]
    if is_minflow:
        parts = [NODE_SUFFIX.sub("", part) for part in parts]
    path: list[str] = []
    before = ""
    for part in parts:
        path += modules(part[len(before) + 1 :] if before and part.startswith(f"{before}.") else part)
        before = part
    return NodePosition(joined_path(path))


def from_namespace(text: str) -> NodePosition:
    """ ": Net/layer1: torch.nn.Sequential/layer1.0: torch.nn.Linear/linear: aten.linear.default", with the node itself
    at the end.
    """
    path: list[str] = []
    classes: dict[str, str] = {}
    before = ""
    for part in text.split("/")[:-1][:MAX_DEPTH]:
        name, _, kind = part.partition(": ")
        if not name:
            continue
        path += modules(name[len(before) + 1 :] if before and name.startswith(f"{before}.") else name)
        before = name
        classes[joined_path(path)] = cut(kind.rpartition(".")[2], MAX_NAME_CHARS)
    return NodePosition(joined_path(path), classes)


def line_of(node: Any) -> str:
    """ "net.py:12", the innermost source line of the user's program that created the operation, if PyTorch has written
    it.
    """
    trace = next((e.value for e in node.metadata_props if e.key == "pkg.torch.onnx.stack_trace"), "")
    lines = re.findall(r'File "([^"\n]{1,1000})", line (\d{1,9})', trace[:20_000])
    own = [(file, line) for file, line in lines if "site-packages" not in file]
    return f"{PureWindowsPath(own[-1][0]).name}:{own[-1][1]}" if own else ""  # paths may have both kinds of slashes


def modules(part: str) -> list[str]:
    return [cut(name, MAX_NAME_CHARS) for name in part.split(".")[:MAX_DEPTH] if name]


def joined_path(path: list[str]) -> str:
    return ".".join(path if len(path) <= MAX_DEPTH else [*path[:MAX_DEPTH], f"and {len(path) - MAX_DEPTH} more"])


def parameter_word(name: str, formal: str) -> str:
    """Name of a parameter inside its module: "weight" for "fc1.weight"; for a generated name, the operation's name for
    that input.
    """
    last = name.rpartition(".")[2]
    return last if "." in name and re.fullmatch(r"[^\W\d]\w*", last) else formal or name
