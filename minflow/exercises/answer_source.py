"""The learner's own text: where an answer was written, which line failed, what names it uses, has it changed?"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import inspect
import linecache
import os
import marshal
import re
import reprlib
import textwrap
import types
from typing import Any

from ..diagnosis import notebook
from ..diagnosis.name_suggestions import similar
from .i18n import odd_characters, say


BRIEFLY = reprlib.Repr()  # of a value as large as one can write by hand, all; of a larger one, the beginning
BRIEFLY.maxlevel, BRIEFLY.maxstring, BRIEFLY.maxother = 20, 100_000, 100_000
BRIEFLY.maxlist = BRIEFLY.maxtuple = BRIEFLY.maxdict = BRIEFLY.maxset = BRIEFLY.maxfrozenset = 1000


@dataclasses.dataclass(frozen=True)
class Written:
    """The source of an answer. file: as tracebacks name it.  text: of the answer alone.  node: its syntax tree, or
    None where there is no source (typed at a prompt, made by exec)."""

    file: str
    text: str
    node: ast.AST | None


def written(answer: Any) -> Written:
    """Where a function or a class was written."""
    code = code_of(answer)
    if code is None:
        return Written("", "", None)
    lines = linecache.getlines(code.co_filename, getattr(answer, "__globals__", None))
    name = getattr(behind(answer), "__name__", "")
    try:
        found = [
            node
            for node in ast.walk(ast.parse("".join(lines)))
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef | ast.Lambda)
            and node.lineno <= code.co_firstlineno <= (node.end_lineno or node.lineno)
            and (isinstance(node, ast.Lambda) or node.name == name)
        ]
    except (SyntaxError, ValueError):
        found = []
    if found:
        node = found[-1]
        text = "".join(lines[node.lineno - 1 : node.end_lineno])
        return Written(code.co_filename, textwrap.dedent(text), node)
    try:
        text = textwrap.dedent(inspect.getsource(answer))
        return Written(code.co_filename, text, ast.parse(text).body[0])
    except (OSError, TypeError, SyntaxError, IndexError):
        return Written(code.co_filename, "", None)


def code_of(answer: Any) -> types.CodeType | None:
    """The code of a function, or of the first method of a class."""
    answer = behind(answer)
    if isinstance(answer, type):
        for value in vars(answer).values():
            if isinstance(value, types.FunctionType | classmethod | staticmethod | property):
                inner = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
                if inner is not None and inner.__module__ == answer.__module__:
                    return inner.__code__
        return None
    return answer.__code__ if isinstance(answer, types.FunctionType) else None


def behind(answer: Any) -> Any:
    """The function or class that a learner has written, without decorators; of an object that can be called its
    class."""
    try:
        answer = inspect.unwrap(answer)
    except Exception:  # one that claims to wrap itself, or answers for every name
        pass
    if isinstance(answer, functools.partial | types.MethodType):
        return behind(answer.func if isinstance(answer, functools.partial) else answer.__func__)
    return answer if isinstance(answer, types.FunctionType | types.BuiltinFunctionType | type) else type(answer)


def fingerprint(answer: Any) -> str:
    """The same for the same program, whatever its comments and spaces; of a value, of its repr."""
    own, code = (written(answer), code_of(answer)) if callable(answer) else (None, None)
    if own and own.node:
        text = ast.dump(own.node)
    elif code is not None:  # made by exec, or under %%time
        text = repr(marshal.dumps(code))
    else:
        try:
            text = re.sub(r" at 0x\w+", "", BRIEFLY.repr(answer))
        except (Exception, SystemExit):  # an object of the learner's
            text = type(answer).__name__
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def same_program(one: str, other: str) -> bool:
    """Are these the same program but for comments and spaces?"""
    try:
        trees = [ast.parse(textwrap.dedent(text)) for text in (one, other)]
    except SyntaxError:
        return False
    return ast.dump(trees[0]) == ast.dump(trees[1])


def only_placeholder(node: ast.AST | None) -> bool:
    """Is the body nothing but `...`, `pass`, a docstring or `raise NotImplementedError`?"""
    if isinstance(node, ast.Lambda):
        return isinstance(node.body, ast.Constant) and node.body.value is ...
    return isinstance(node, ast.FunctionDef | ast.ClassDef) and all(
        isinstance(one, ast.Pass)
        or isinstance(one, ast.Expr)
        and isinstance(one.value, ast.Constant)
        or isinstance(one, ast.Raise)
        and "NotImplementedError" in ast.dump(one)
        for one in node.body
    )


def empty_class(answer: Any) -> bool:
    """Is it a class without methods, of no other class? Such a class has no line of code that could be read."""
    return (
        isinstance(answer, type)
        and answer.__bases__ == (object,)
        and not any(callable(one) or isinstance(one, property | classmethod) for one in vars(answer).values())
    )


def forbidden(node: ast.AST | None, names: dict[str, str]) -> tuple[str, int] | None:
    """(name, line) of the first that is used; "for" and "while" are loops, comprehensions too."""
    loops = {"for": (ast.For, ast.comprehension), "while": (ast.While,)}
    for one in ast.walk(node) if node else ():
        name = (
            one.id
            if isinstance(one, ast.Name)
            else one.attr
            if isinstance(one, ast.Attribute)
            else next((word for word, kinds in loops.items() if isinstance(one, kinds)), "")
        )
        if name in names:
            return name, getattr(one, "lineno", 0) or one.target.lineno  # type: ignore[attr-defined]
    return None


def gives_nothing(node: ast.AST | None) -> bool:
    """Is it a function that has neither `return` with a value nor `yield`?"""
    return isinstance(node, ast.FunctionDef) and not any(
        isinstance(one, ast.Return) and one.value is not None or isinstance(one, ast.Yield | ast.YieldFrom)
        for one in ast.walk(node)
    )


def unread(name: str) -> str:
    """What is wrong with the text of the last cell that defines `name`, if Python could not read it: then the answer
    is still the one before. "" where it could, and outside of notebooks."""
    shell = notebook.ipython()
    defines = re.compile(rf"^[ \t]*(?:(?:async[ ]+)?def|class)[ ]+{name}\b|^{name}[ ]*=", re.MULTILINE)
    cells = shell.history_manager.input_hist_raw if shell is not None else ()
    last = next((text for text in reversed(cells) if defines.search(text)), "")
    try:
        ast.parse(shell.transform_cell(last) if last else "")
        return ""
    except SyntaxError as error:
        odd = odd_characters(last)
        if odd:
            line, column, sign, plain = odd[0]
            why = say("Line {line} has the sign {sign}; code wants {plain}.", line=line, sign=sign, plain=plain)
        else:
            why = say("Line {line}: {error}.", line=error.lineno, error=error.msg)
        return say("Python cannot read your last text, so the answer is still the one before. {why}", why=why)


# ---- where it stopped ------------------------------------------------------------------------------------------------


def line_of(error: BaseException, own: Written) -> tuple[int, str]:
    """(line, its text) of the last frame in the answer's own cell or file, else of the last in another cell; (0, "") if
    there is none."""
    own_place, place, traceback = (0, ""), (0, ""), error.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if file == own.file or is_cell(file):
            place = traceback.tb_lineno, linecache.getline(file, traceback.tb_lineno).strip()
            own_place = place if file == own.file else own_place
        traceback = traceback.tb_next
    return own_place if own_place[0] else place


def is_cell(file: str) -> bool:
    """Is this the source of a notebook's cell?"""
    return file in linecache.cache and not os.path.exists(file)


def meant(error: BaseException, own: Written) -> str:
    """Of an unknown name: one like it that the learner has used, and where."""
    name = getattr(error, "name", None)
    if not isinstance(error, NameError) or not name or own.node is None:
        return ""
    known = {}
    for node in ast.walk(own.node):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            known.setdefault(node.id, node.lineno)
        elif isinstance(node, ast.arg):
            known.setdefault(node.arg, node.lineno)
    near = [one for one in similar(name, known, 1) if one != name]
    near = near or [one for one in known if same_letters(one, name)]
    return say("Line {line} has '{name}': is it meant?", line=known[near[0]], name=near[0]) if near else ""


def same_letters(one: str, other: str) -> bool:
    """gw and grad_w: does one begin and end as the other, with all its letters in order?"""
    short, long = sorted((one, other), key=len)
    letters = iter(long)
    return len(short) > 1 and short[0] == long[0] and short[-1] == long[-1] and all(c in letters for c in short)
