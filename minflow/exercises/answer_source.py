"""Source code of a learner's answer: where it was written, which line failed, which names it uses, its fingerprint.

Never runs an answer. Read next: `judge.py`.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import inspect
import linecache
import marshal
import os
import re
import reprlib
import textwrap
import types
from typing import Any

from ..diagnosis.frames import stopped_line
from ..diagnosis.name_suggestions import similar_names
from .i18n import say

SHORT_REPR = reprlib.Repr()  # complete for any value that can be typed; the beginning of larger ones
SHORT_REPR.maxlevel, SHORT_REPR.maxstring, SHORT_REPR.maxother = 20, 100_000, 100_000
SHORT_REPR.maxlist = SHORT_REPR.maxtuple = SHORT_REPR.maxdict = SHORT_REPR.maxset = SHORT_REPR.maxfrozenset = 1000


@dataclasses.dataclass(frozen=True)
class AnswerSource:
    """Source of an answer.

    file: its name in tracebacks. text: source of the answer alone. node: its syntax tree, or None if there is no source
    (typed at a prompt, made by exec).
    """

    file: str
    text: str
    node: ast.AST | None


@functools.lru_cache(8)
def definitions(text: str) -> list[ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef | ast.Lambda]:
    """The functions and classes of a source text, from the outermost to the innermost. Callers must not modify them."""
    kinds = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.Lambda)
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]


def find_source(answer: Any) -> AnswerSource:
    """Find the source of a function or class."""
    code = code_object(answer)
    if code is None:
        return AnswerSource("", "", None)
    lines = linecache.getlines(code.co_filename, getattr(answer, "__globals__", None))
    name = getattr(unwrap(answer), "__name__", "")
    try:
        found = [
            node
            for node in definitions("".join(lines))
            if node.lineno <= code.co_firstlineno <= (node.end_lineno or node.lineno)
            and (isinstance(node, ast.Lambda) or node.name == name)
        ]
    except (SyntaxError, ValueError):
        found = []
    if found:
        node = found[-1]
        text = "".join(lines[node.lineno - 1 : node.end_lineno])
        return AnswerSource(code.co_filename, textwrap.dedent(text), node)
    try:
        text = textwrap.dedent(inspect.getsource(answer))
        return AnswerSource(code.co_filename, text, ast.parse(text).body[0])
    except (OSError, TypeError, SyntaxError, IndexError):
        return AnswerSource(code.co_filename, "", None)


def code_object(answer: Any) -> types.CodeType | None:
    """Code object of a function, or of the first method of a class."""
    answer = unwrap(answer)
    if isinstance(answer, type):
        for value in vars(answer).values():
            if isinstance(value, types.FunctionType | classmethod | staticmethod | property):
                inner = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
                if inner is not None and inner.__module__ == answer.__module__:
                    return inner.__code__
        return None
    return answer.__code__ if isinstance(answer, types.FunctionType) else None


def unwrap(answer: Any) -> Any:
    """Function or class that the learner wrote, without decorators; for any other object, its class."""
    try:
        answer = inspect.unwrap(answer)
    except Exception:  # an object that wraps itself, or has every attribute
        pass
    if isinstance(answer, functools.partial | types.MethodType):
        return unwrap(answer.func if isinstance(answer, functools.partial) else answer.__func__)
    return answer if isinstance(answer, types.FunctionType | types.BuiltinFunctionType | type) else type(answer)


def fingerprint(answer: Any) -> str:
    """Hash of an answer that ignores comments and whitespace; for a value, hash of its repr."""
    own, code = (find_source(answer), code_object(answer)) if callable(answer) else (None, None)
    if own and own.node:
        text = ast.dump(own.node)
    elif code is not None:  # made by exec, or under %%time
        text = repr(marshal.dumps(code))
    else:
        try:
            text = re.sub(r" at 0x\w+", "", SHORT_REPR.repr(answer))
        except (Exception, SystemExit):  # the learner's own __repr__
            text = type(answer).__name__
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def same_program(first: str, other: str) -> bool:
    """True if the programs differ at most in comments and whitespace."""
    try:
        trees = [ast.parse(textwrap.dedent(text)) for text in (first, other)]
    except SyntaxError:
        return False
    return ast.dump(trees[0]) == ast.dump(trees[1])


def is_placeholder(node: ast.AST | None) -> bool:
    """True if the body is only `...`, `pass`, a docstring or `raise NotImplementedError`."""
    if isinstance(node, ast.Lambda):
        return isinstance(node.body, ast.Constant) and node.body.value is ...
    return isinstance(node, ast.FunctionDef | ast.ClassDef) and all(
        isinstance(statement, ast.Pass)
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        or (isinstance(statement, ast.Raise) and "NotImplementedError" in ast.dump(statement))
        for statement in node.body
    )


def is_empty_class(answer: Any) -> bool:
    """True for a class without base classes and methods, which has no code object to find its source by."""
    return (
        isinstance(answer, type)
        and answer.__bases__ == (object,)
        and not any(callable(value) or isinstance(value, property | classmethod) for value in vars(answer).values())
    )


def find_forbidden(node: ast.AST | None, names: dict[str, str]) -> tuple[str, int] | None:
    """(name, line) of the first forbidden name in use, or None. "for" also means comprehensions, "while" the loop."""
    loops = {"for": (ast.For, ast.comprehension), "while": (ast.While,)}
    for child in ast.walk(node) if node else ():
        name = (
            child.id
            if isinstance(child, ast.Name)
            else child.attr
            if isinstance(child, ast.Attribute)
            else next((word for word, kinds in loops.items() if isinstance(child, kinds)), "")
        )
        if name in names:
            return name, getattr(child, "lineno", 0) or child.target.lineno  # type: ignore[attr-defined]
    return None


def returns_nothing(node: ast.AST | None) -> bool:
    """True for a function without `yield` and without a `return` that has a value."""
    return isinstance(node, ast.FunctionDef) and not any(
        (isinstance(child, ast.Return) and child.value is not None) or isinstance(child, ast.Yield | ast.YieldFrom)
        for child in ast.walk(node)
    )


def top_names(tree: ast.Module) -> set[str]:
    """Names that a program binds outside functions and classes."""
    names: set[str] = set()
    todo: list[Any] = list(tree.body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            continue
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            continue
        if isinstance(node, ast.AnnAssign) and node.value is None:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        todo += ast.iter_child_nodes(node)
    return names


# ---- location of errors ----------------------------------------------------------------------------------------------


def error_line(error: BaseException, own: AnswerSource) -> tuple[int, str]:
    """(line number, text) where the learner's code raised; (0, "") if it was not running.

    The last frame in the answer's own cell or file is used, else the last one in another cell.
    """
    own_place, place, traceback = (0, ""), (0, ""), error.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if file == own.file or is_cell(file):
            line = stopped_line(traceback)
            place = line, linecache.getline(file, line).strip()
            own_place = place if file == own.file else own_place
        traceback = traceback.tb_next
    return own_place if own_place[0] else place


def raising_method(error: BaseException, answer: Any) -> str:
    """Name of the last method of a class that was running when the error was raised; "" for other answers."""
    name, traceback = "", error.__traceback__
    while isinstance(answer, type) and traceback is not None:
        code = traceback.tb_frame.f_code
        if any(getattr(vars(base).get(code.co_name), "__code__", None) is code for base in answer.__mro__):
            name = code.co_name
        traceback = traceback.tb_next
    return name


def is_cell(file: str) -> bool:
    """True if `file` is the source of a notebook cell."""
    return file in linecache.cache and not os.path.exists(file)


def suggest_name(name: str, own: AnswerSource) -> str:
    """Suggest a similar name in the learner's code for an unknown name; "" if there is none."""
    if not name or own.node is None:
        return ""
    known = {}
    for node in ast.walk(own.node):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            known.setdefault(node.id, node.lineno)
        elif isinstance(node, ast.arg):
            known.setdefault(node.arg, node.lineno)
    near = [candidate for candidate in similar_names(name, known, 1) if candidate != name]
    near = near or [candidate for candidate in known if is_abbreviation(candidate, name)]
    return say("Did you mean '{name}' from line {line}?", line=known[near[0]], name=near[0]) if near else ""


def is_abbreviation(first: str, other: str) -> bool:
    """True for pairs such as gw and grad_w: same first and last letter, and all letters of the shorter one in order."""
    short, long = sorted((first, other), key=len)
    letters = iter(long)
    return len(short) > 1 and short[0] == long[0] and short[-1] == long[-1] and all(c in letters for c in short)
