"""Translate the comments of a code cell and the strings that it shows. The program stays the same but for these.

A comment is a text unless it is code that is switched off. A string is a text if it reads as prose, with a space
between two words, or if it is shown: an argument of `print` or of a title, or a key of a table whose other keys are
texts. Its text is its source between the quotation marks; an f-string keeps its parts in braces, in any order.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from . import markdown

LITERAL = re.compile(
    r"\#[ ]*(?P<comment>[^\n]*)"
    r"|(?P<prefix>(?<!\w)[rbfuRBFU]{0,2})(?P<quote>'''|\"\"\"|'|\")(?P<text>(?:\\.|(?!(?P=quote)).)*)(?P=quote)",
    re.DOTALL,
)
TITLES = {"title", "suptitle", "set_title", "xlabel", "ylabel", "set_xlabel", "set_ylabel"}
SHOWN_BY = {"print", *TITLES, "sentence", "on_devices", "picture"}
SHOWN_AS = {"title", "label", "labels", "xlabel", "ylabel", "names"}
NAMES_CODE = {"source", "draw", "check", "get_variable", "dense", "legend"}  # functions whose strings are names
PROSE = re.compile(r"[^\W\d_]{2,}[,;:]? +[^\W\d_]+")
FIELD = re.compile(r"\{\{|\}\}|\{(?:[^{}]|\{[^{}]*\})*\}")


class Text(NamedTuple):
    """A text of a cell: source[start:end], a comment or the inside of a string (with its `prefix`, such as "f")."""

    start: int
    end: int
    text: str
    prefix: str | None = None


def texts(source: str, comments_only: bool = False) -> list[str]:
    """Texts of a code cell to translate."""
    places = positions(source)

    def is_text(one: Text) -> bool:
        if one.prefix is None:
            return not is_code(one.text)
        inner = comments_only or one.start in places.names or one.start in places.asserted or "\n" in one.text
        return not inner and (one.start in places.shown or bool(PROSE.search(one.text)))

    return [one.text for one in literals(source) if has_words(one) and is_text(one)]


def translate(source: str, table: Mapping[str, str], comments_only: bool = False) -> str:
    """Translate the texts of a code cell by a table. Equal strings, such as keys, are translated as well."""
    names, result, done = positions(source).names, "", 0
    for one in literals(source):
        kept = one.prefix is not None and (comments_only or one.start in names)
        if one.text in table and not kept:
            result += source[done : one.start] + table[one.text]
            done = one.end
    return result + source[done:]


def same_program(one: str, other: str) -> bool:
    """True if two sources are the same program but for comments and the text of strings."""
    try:
        return skeleton(one) == skeleton(other)
    except SyntaxError:
        return one == other


def skeleton(source: str) -> str:
    """A program without comments and the text of its strings; the parts of an f-string are sorted."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            node.values = sorted((part for part in node.values if isinstance(part, ast.FormattedValue)), key=ast.dump)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def fields(text: str) -> list[str]:
    """Parts of an f-string in braces, sorted."""
    return sorted(FIELD.findall(text))


def prose(text: str) -> str:
    """A text without its parts in braces and its escape sequences."""
    return re.sub(r"\\[nrt]", " ", FIELD.sub(" ", text))


def literals(source: str) -> Iterator[Text]:
    """Yield the comments and strings of a program, in order; strings of bytes are left out."""
    for match in LITERAL.finditer(source):
        if match["comment"] is not None:
            yield Text(match.start("comment"), match.end("comment"), match["comment"])
        elif "b" not in match["prefix"].lower():
            yield Text(match.start("text"), match.end("text"), match["text"], match["prefix"].lower())


def has_words(one: Text) -> bool:
    return markdown.has_words(prose(one.text) if one.prefix and "f" in one.prefix else one.text)


def is_code(comment: str) -> bool:
    """True for a line of code that is switched off by a `#`."""
    try:
        (statement,) = ast.parse(comment).body
    except (SyntaxError, ValueError):
        return False
    return not isinstance(statement, ast.Expr) or isinstance(statement.value, ast.Call)


class Positions(NamedTuple):
    """Offsets of the strings that are names in code, that are shown, and that an assertion uses."""

    names: set[int]
    shown: set[int]
    asserted: set[int]


def positions(source: str) -> Positions:
    """Find the strings of a cell by what they are used for."""
    result = Positions(set(), set(), set())
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return result
    found = [match.start("text") for match in LITERAL.finditer(source) if match["comment"] is None]
    lines = source.splitlines(keepends=True)

    def offset(line: int, column: int) -> int:
        """Offset of a place that `ast` gives in bytes of UTF-8."""
        return len("".join(lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())

    def inside(node: ast.AST) -> set[int]:
        first, last = offset(node.lineno, node.col_offset), offset(node.end_lineno, node.end_col_offset)  # type: ignore
        return {start for start in found if first <= start < last}

    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            result.names.update(inside(node) if name in NAMES_CODE else ())
            given = [*(node.args if name in SHOWN_BY else []), *(k.value for k in node.keywords if k.arg in SHOWN_AS)]
            for part in (part for value in given for part in shown_parts(value)):
                result.shown.update(inside(part))
        elif isinstance(node, ast.Dict):
            keys = [key for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
            for key in keys if any(PROSE.search(str(key.value)) for key in keys) else ():
                result.shown.update(inside(key))
        elif isinstance(node, ast.DictComp):
            result.shown.update(inside(node.key))
        elif isinstance(node, ast.Assert):
            result.asserted.update(inside(node.test))
    return result


def shown_parts(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the strings among the values of an expression; not those that it compares or looks up."""
    parts: list[ast.expr] = []
    match node:
        case ast.JoinedStr() | ast.Constant(value=str()):
            yield node
        case ast.IfExp():
            parts = [node.body, node.orelse]
        case ast.BinOp():
            parts = [node.left, node.right]
        case ast.List() | ast.Tuple():
            parts = node.elts
        case ast.Starred():
            parts = [node.value]
        case ast.ListComp() | ast.GeneratorExp():
            parts = [node.elt]
    for part in parts:
        yield from shown_parts(part)
