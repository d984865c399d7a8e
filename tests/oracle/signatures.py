"""`python -m tests.oracle.signatures`: record the argument names of PyTorch's public functions.

Those of compiled functions are in PyTorch's stubs, all others are inspected. One line per name; overloads of a function
are merged. `tests/test_public_calls.py` calls minflow with each of them.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

FILE = Path(__file__).parent / "signatures.txt"
NAMESPACES = ("", "nn", "nn.functional", "nn.init", "nn.utils", "optim", "optim.lr_scheduler", "utils.data", "autograd",
          "linalg", "fft")  # fmt: skip
CLASSES = ("Tensor", "nn.Module", "optim.Optimizer")
OWN = {"self", "cls", "out", "input_"}  # `out` is tested by tests/core/test_out.py


def of_stub(path: Path, kind: str = "") -> Iterator[tuple[str, set[str]]]:
    """(function, argument names) of each overload in a stub, or of the methods of a class."""
    body = ast.parse(path.read_text()).body
    if kind:
        body = next(n for n in body if isinstance(n, ast.ClassDef) and n.name == kind).body
    for node in body:
        if isinstance(node, ast.FunctionDef):
            names = {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
            yield node.name, {"from" if name == "from_" and kind else name for name in names}  # a keyword of Python


def of_members(owner) -> Iterator[tuple[str, set[str]]]:
    for name in dir(owner):
        try:
            parameters = inspect.signature(getattr(owner, name)).parameters.values()
        except (TypeError, ValueError):
            continue
        yield name, {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def signatures(torch) -> dict[str, list[str]]:
    """Dictionary from name ("Tensor.permute", "nn.Linear") to its argument names."""
    stubs, found = Path(torch.__file__).parent / "_C", {}

    def add(space: str, pairs) -> None:
        for name, arguments in pairs:
            if name[:1] != "_":
                key = f"{space}.{name}".lstrip(".")
                found.setdefault(key, set()).update(a for a in arguments if a not in OWN and a[:1] != "_")

    add("", of_stub(stubs / "_VariableFunctions.pyi"))
    add("Tensor", of_stub(stubs / "__init__.pyi", "TensorBase"))
    for space in (*NAMESPACES, *CLASSES):
        owner = torch
        for part in filter(None, space.split(".")):
            owner = getattr(owner, part)
        add(space, of_members(owner))
    return {name: sorted(arguments) for name, arguments in sorted(found.items()) if arguments}


def read() -> dict[str, list[str]]:
    """Read the record."""
    return {name: arguments for name, *arguments in map(str.split, FILE.read_text().splitlines())}


def text(found: dict[str, list[str]]) -> str:
    return "".join(f"{name} {' '.join(arguments)}\n" for name, arguments in found.items())


if __name__ == "__main__":
    import torch

    FILE.write_text(text(signatures(torch)))
