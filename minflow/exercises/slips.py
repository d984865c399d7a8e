"""Slips that a failing answer's source shows: missing parentheses, `^` for a power, an argument that is never used.

Their sentences come before the hints of named wrong answers, which are about ideas. Never runs an answer.
Read next: `judge.py`.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import random
import re
import time
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

import minflow as flow

from .answer_source import AnswerSource
from .i18n import say
from .runner import RaisedError

NOT_A_METHOD = re.compile(r"'(builtin_function_or_method|method|function)'")
NOT_CALLABLE = re.compile(r"^'(\w+)' object is not callable")
OWNERS: dict[str, Any] = {"flow": flow, "math": math, "np": np}  # where an unknown name may live, as lessons call them
MODULES: dict[str, types.ModuleType] = {"math": math, "random": random, "time": time}
KINDS = flow.Tensor, flow.nn.Module, flow.optim.Optimizer, np.ndarray, list, dict, str
IN_PLACE = {"append", "extend", "insert", "remove", "reverse", "sort", "shuffle", "update", "add", "backward"}
COMMON_NUMBERS = {0, 1, 2, -1, 0.5}


def certain_slip(own: AnswerSource | None, right: AnswerSource | None) -> str:
    """Sentence about a statement without effect, or about `^` as a power; "" if there is none.

    right: source of the solution, which may use `^` itself.
    """
    if own is None or own.node is None:
        return ""
    for statement, last in statements_without_effect(own.node):
        line, text, value = statement.lineno, f"`{ast.unparse(statement.value)}`", statement.value
        if isinstance(value, ast.Attribute) and not is_value(value.attr):
            return say("Line {line}: {code} is not called: its parentheses are missing.", line=line, code=text)
        if last:
            return say("Line {line}: {code} is computed, but not returned.", line=line, code=text)
        if isinstance(value, ast.Compare) and isinstance(value.ops[0], ast.Eq):
            return say("Line {line}: {code} compares and changes nothing. `=` assigns.", line=line, code=text)
        return say("Line {line}: the result of {code} is not used.", line=line, code=text)
    if (power := find(own.node, ast.BitXor)) and not (right and right.node and find(right.node, ast.BitXor)):
        return say("Line {line}: `^` combines bits. A power is `**`.", line=power)
    return ""


def statements_without_effect(node: ast.AST) -> Iterator[tuple[ast.Expr, bool]]:
    """(statement that only computes a value, True if it ends a function)."""
    kinds = ast.Attribute | ast.Name | ast.Compare | ast.BinOp | ast.UnaryOp | ast.Subscript
    ends = [child.body[-1] for child in ast.walk(node) if isinstance(child, ast.FunctionDef)]
    for child in ast.walk(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, kinds):
            yield child, child in ends


def find(node: ast.AST, kind: type[ast.AST]) -> int:
    """Line of the first operator of a kind, 0 if there is none."""
    for child in ast.walk(node):
        if isinstance(child, ast.BinOp | ast.AugAssign) and isinstance(child.op, kind):
            return child.lineno
    return 0


def slip_of_error(error: RaisedError, own: AnswerSource | None) -> str:
    """Sentence about missing or superfluous parentheses, or about a name that lives elsewhere; "" for other errors."""
    if error.missing:
        return place_of(error.missing)
    if own is None or own.node is None or not error.is_a("TypeError", "AttributeError"):
        return ""
    inside = [node for node in ast.walk(own.node) if getattr(node, "lineno", 0) == error.line[0]]
    called = [node.func for node in inside if isinstance(node, ast.Call)]
    if NOT_A_METHOD.search(error.text):
        bare = [node for node in inside if isinstance(node, ast.Attribute) and node not in called]
        names = [node for node in bare if is_method(node.attr)]
        return say("Are the parentheses of {code} missing?", code=f"`.{names[0].attr}`") if names else ""
    if found := NOT_CALLABLE.match(error.text):
        if found[1] == "NoneType":
            return say("What is called there is None: does the function that makes it return it?")
        values = [node for node in called if isinstance(node, ast.Attribute) and is_value(node.attr)]
        if values:
            return say("{code} is a value, not a method: no parentheses.", code=f"`{ast.unparse(values[0])}`")
    return ""


def is_method(name: str) -> bool:
    """True if tensors, modules, optimizers or lists have a method of this name."""
    return any(callable(inspect.getattr_static(kind, name, None)) for kind in KINDS)


def is_value(name: str) -> bool:
    """True if they have an attribute of this name that is not a method, such as `shape`."""
    return not is_method(name) and (any(hasattr(kind, name) for kind in KINDS) or name in ("training", "param_groups"))


def place_of(name: str) -> str:
    """Where an unknown name lives."""
    if name in MODULES:
        return say("Write {code} in your cell.", code=f"`import {name}`")
    if name.lower() in ("true", "false", "none", "null", "nil"):
        plain = {"true": "True", "false": "False"}.get(name.lower(), "None")
        return say("In Python it is {code}.", code=f"`{plain}`") if plain != name else ""
    owners = [owner for owner, module in OWNERS.items() if callable(getattr(module, name, None))]
    if owners and not hasattr(builtins, name):
        return say("{name} is called as {code}.", name=f"`{name}`", code=f"`{owners[0]}.{name}`")
    return ""


def none_text(own: AnswerSource | None) -> str:
    """Sentence about a result that is None although the answer returns something."""
    for child in ast.walk(own.node) if own and own.node else ():
        if not isinstance(child, ast.Return):
            continue
        value = child.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in IN_PLACE:
            code = f"`{ast.unparse(value.func)}`"
            return say("Line {line}: {code} changes its object and returns None.", line=child.lineno, code=code)
    return say("It is None in this case: does each way through your code end with a return?")


def possible_slip(own: AnswerSource | None, right: AnswerSource | None, passed: int) -> str:
    """Sentence about a parameter that the answer never reads, or a number that only some cases have; "" if none.

    passed: the number of cases that are right.
    """
    if own is None or right is None or not isinstance(own.node, ast.FunctionDef) or right.node is None:
        return ""
    unused, used = unused_parameters(own.node), names_read(right.node)
    if unused and set(unused) <= used:
        return say("Your code never uses {names}.", names=", ".join(f"`{name}`" for name in unused))
    if passed:
        for child in ast.walk(own.node):
            number = child.value if isinstance(child, ast.Constant) else None
            if type(number) in (int, float) and number not in COMMON_NUMBERS | numbers_of(right.node):
                return say(
                    "Line {line} has the number {number}: does it fit this case as well?",
                    line=child.lineno,  # type: ignore[attr-defined]
                    number=number,
                )
    return ""


def unused_parameters(node: ast.FunctionDef) -> list[str]:
    read = names_read(node)
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [argument.arg for argument in arguments if argument.arg not in read and argument.arg != "self"]


def names_read(node: ast.AST) -> set[str]:
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load)}


def numbers_of(node: ast.AST) -> set[float]:
    kinds = (int, float)
    values = [child.value for child in ast.walk(node) if isinstance(child, ast.Constant)]
    return {value for value in values if isinstance(value, kinds) and not isinstance(value, bool)}
