"""Source of an exercise's cells in a lesson: the answer cell, empty or solved, and the check cell."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

from .answer_source import find_source as written_of
from .definition import NOT_GIVEN
from .registry import find

PLACEHOLDER = "# your code here"
GRADED_CHECK = 'from runpy import run_module\n\nrun_module("minflow.exercises.graded")["check"]'


def answer_cell(name: str) -> str:
    """Answer cell as released: the stub of the definition, else the solution's signature with an empty body."""
    exercise = find(name)
    if exercise.starter is not NOT_GIVEN:
        return (
            definition_source(exercise.starter)
            if callable(exercise.starter)
            else f"{exercise.answer} = {literal(exercise.starter)}"
        )
    if exercise.value:
        return f"{exercise.answer} = ...  # your answer here"
    solution = definition_source(exercise.right)
    node = ast.parse(solution).body[0]
    first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]  # type: ignore
    head = solution.splitlines()[: first.lineno - 1]
    while head and head[-1].strip().startswith("#"):
        head.pop()
    return "\n".join([*head, f"    ...  {PLACEHOLDER}"])


def is_untouched(name: str, source: str) -> bool:
    """True if an answer cell is empty or as released. Comments do not count: a translated notebook has its own."""
    return not source.strip() or program(source) == program(answer_cell(name))


def program(source: str) -> str:
    """A program without its comments and layout; the source itself if it is not Python."""
    try:
        return ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source.strip()


def solved_cell(name: str) -> str:
    """Answer cell with the solution."""
    exercise = find(name)
    if callable(exercise.right) and not exercise.value:
        return definition_source(exercise.right)
    if callable(exercise.right):
        given = [*exercise.given, *([f"draw({quoted(name)})"] if exercise.draw_object else [])]
        return (
            definition_source(exercise.right) + f"\n\n{exercise.answer} = {exercise.right.__name__}({', '.join(given)})"
        )
    return f"{exercise.answer} = {literal(exercise.right)}"


def check_cell(name: str) -> str:
    """Check cell, such as `check("slope", slope)`."""
    exercise = find(name)
    return f"check({', '.join([quoted(name), exercise.answer, *exercise.given])})"


def graded_check_cell(name: str) -> str:
    """Check cell of graded editions: it reads the check from its file, whatever the cells above assigned."""
    return f"{GRADED_CHECK}{check_cell(name).removeprefix('check')}"


def definition_source(answer: Any) -> str:
    """Source of a function or class in a definition, without decorators.

    Several classes of one file may have the same name; they are found by their methods, since `inspect` would use the
    name alone.
    """
    if isinstance(answer, type) and (own := written_of(answer).text):
        return own.rstrip()
    lines = textwrap.dedent(inspect.getsource(answer))
    node = ast.parse(lines).body[0]
    return "\n".join(lines.splitlines()[node.lineno - 1 :])


def literal(value: Any) -> str:
    """Python literal of a value, in the style that learners use."""
    return quoted(value) if isinstance(value, str) else repr(value)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
