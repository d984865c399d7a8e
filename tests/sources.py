"""The source files of minflow and its widgets, each read and parsed once, for tests of source rules."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).parent.parent
MINFLOW = sorted((TOP / "minflow").rglob("*.py"))
WIDGETS = sorted((TOP / "widgets").rglob("*.py"))
FILES = [*MINFLOW, *WIDGETS]
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


@functools.cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(text_of(file))


def name_of(file: Path) -> str:
    return file.relative_to(TOP).as_posix()


def statements(node: ast.AST, inside: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield the statements in a node, and whether each is inside a function. Much faster than `ast.walk`."""
    for block in ("body", "handlers", "cases", "orelse", "finalbody"):
        for child in getattr(node, block, ()):
            if isinstance(child, ast.stmt):
                yield child, inside
            yield from statements(child, inside or isinstance(child, FUNCTIONS))


def code_lines(text: str, tree: ast.Module | None = None) -> set[int]:
    """Return the lines that hold code, without blank lines, comments and docstrings."""
    tree = tree or ast.parse(text)
    code = {number for number, line in enumerate(text.split("\n"), 1) if line.strip() and line.lstrip()[0] != "#"}
    documentation = set()
    for node, _ in [(tree, False), *statements(tree)]:
        body = getattr(node, "body", [])
        if body and isinstance(node, ast.Module | ast.ClassDef | FUNCTIONS) and is_text(body[0]):
            # A docstring on the line of its def: that line is code.
            start = body[0].lineno + (body[0].lineno == getattr(node, "lineno", 0))
            documentation.update(range(start, body[0].end_lineno + 1))
        elif not body and not code.issuperset(range(node.lineno, node.end_lineno + 1)):
            for part in ast.walk(node):  # blank lines of a text are code
                if isinstance(part, ast.Constant | ast.JoinedStr):
                    code.update(range(part.lineno, part.end_lineno + 1))
    return code - documentation


def is_text(statement: ast.stmt) -> bool:
    """True if the statement is a docstring or another text without effect."""
    return isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)
