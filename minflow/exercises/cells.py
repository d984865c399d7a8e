"""What stands in a lesson's cells for an exercise: the answer's, empty or solved, and the check's."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

from .definition import NOT_GIVEN
from .registry import find
from .answer_source import written as written_of

HERE = "# your code here"


def answer_cell(name: str) -> str:
    """The cell as the learner finds it: the stub of the definition, or else an answer that is not written yet."""
    exercise = find(name)
    if exercise.start is not NOT_GIVEN:
        return code(exercise.start) if callable(exercise.start) else f"{exercise.answer} = {written(exercise.start)}"
    if exercise.value:
        return f"{exercise.answer} = ...  # your answer here"
    solution = code(exercise.right)
    node = ast.parse(solution).body[0]
    first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node.body[0]  # type: ignore
    head = solution.splitlines()[: first.lineno - 1]
    while head and head[-1].strip().startswith("#"):
        head.pop()
    return "\n".join([*head, f"    ...  {HERE}"])


def solved_cell(name: str) -> str:
    """The cell with the solution in it."""
    exercise = find(name)
    if callable(exercise.right) and not exercise.value:
        return code(exercise.right)
    if callable(exercise.right):
        given = [*exercise.given, *([f"draw({quoted(name)})"] if exercise.draws else [])]
        return code(exercise.right) + f"\n\n{exercise.answer} = {exercise.right.__name__}({', '.join(given)})"
    return f"{exercise.answer} = {written(exercise.right)}"


def check_cell(name: str) -> str:
    """`check("slope", slope)`"""
    exercise = find(name)
    return f"check({', '.join([quoted(name), exercise.answer, *exercise.given])})"


def code(answer: Any) -> str:
    """The source of a function or class of a definition, without its decorators. Classes of one name are told apart by
    their methods: `inspect` looks for the name alone."""
    if isinstance(answer, type) and (own := written_of(answer).text):
        return own.rstrip()
    lines = textwrap.dedent(inspect.getsource(answer))
    node = ast.parse(lines).body[0]
    return "\n".join(lines.splitlines()[node.lineno - 1 :])


def written(value: Any) -> str:
    """A value as Python that a learner could have written."""
    return quoted(value) if isinstance(value, str) else repr(value)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
