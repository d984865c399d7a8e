"""Reading tours through minflow's source: `source` shows a piece of it, `Reading` is a question about it.

One file per tour defines `readings`, in order. They earn no points and do not count towards any lesson.
"""

from __future__ import annotations

import importlib
import inspect
import textwrap
from pathlib import Path
from typing import Any

from ..definition import Exercise

TOP = Path(__file__).parents[3]


class Reading(Exercise):
    """A question whose answer is a name or a number in the source.

    number: such as "R1.2". place: where the answer is, "core.dispatch.apply" or "core.eager.Eager.run".
    proof: the code that contains the answer; a test checks that it is still there. look: the hint.
    """

    def __init__(
        self, number: str, name: str, place: str, question: str, right: str | int, proof: str, look: str, fact: str
    ) -> None:
        super().__init__(
            number, name, kind="read", level="recall", question=question, fact=fact, answer="answer", hint=look
        )
        self.place, self.proof = place, proof
        self.solution(right)
        self.accept(lambda value: normalize(value) == right)


def normalize(value: Any) -> Any:
    """Normalize a typed name: strip backticks, parentheses and `self.`; a function is replaced by its name."""
    if callable(value) and hasattr(value, "__name__"):
        value = value.__name__
    return value.strip(" `").removesuffix("()").removeprefix("self.") if isinstance(value, str) else value


def import_object(place: str) -> Any:
    """Import a module or an attribute by its path below minflow: "core.infer", "core.eager.Eager.run"."""
    parts = place.split(".")
    for n in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(["minflow", *parts[:n]]))
        except ModuleNotFoundError:
            continue
        for name in parts[n:]:
            found = getattr(found, name)
        return found
    raise LookupError(place)


class Source:
    """Source lines: highlighted in a notebook, plain text elsewhere."""

    def __init__(self, place: str, text: str) -> None:
        self.place, self.text = place, text

    def __repr__(self) -> str:
        return f"{self.place}\n\n{textwrap.indent(self.text, '    ')}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/markdown": f"`{self.place}`\n\n```python\n{self.text}\n```", "text/plain": repr(self)}


def source(thing: Any, first: str = "", last: str = "") -> Source:
    """Show the source of a function, class or module, with its file and line.

    thing: or a path such as "minflow/core/op.py", to show a file without importing it.
    first, last: words in the first and last line to show; by default everything. Raises ValueError if no line contains
    them.
    """
    if isinstance(thing, str):
        file, number, title = TOP / thing, 1, thing
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    else:
        thing = inspect.unwrap(thing)
        file, title = Path(inspect.getsourcefile(thing) or ""), thing.__name__
        lines, number = inspect.getsourcelines(thing)
    begin = next((i for i, line in enumerate(lines) if first in line), None)
    end = next((i for i, line in enumerate(lines) if i >= (begin or 0) and last in line), None) if last else len(lines)
    if begin is None or end is None:
        raise ValueError(f"no line of {title} contains {first if begin is None else last!r}")
    name = file.relative_to(TOP).as_posix() if file.is_relative_to(TOP) else file.name
    shown = textwrap.dedent("".join(lines[begin : end + 1])).rstrip()
    return Source(f"{name}:{max(number, 1) + begin}", shown)
