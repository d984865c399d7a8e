"""The tree printed when a build fails: all modules called so far with their shapes; the failing module and line marked.

In a notebook the tree is in the card of the error. The error itself propagates, with a note of its place.
Read next: `nn/graph/build.py`, whose calls these are.
"""

from __future__ import annotations

import itertools
import sys
from types import TracebackType
from typing import Any, NamedTuple

from ....core.base.errors import MinflowError
from ....core.ir import file_name
from ....core.source_location import IS_MINFLOW_FILE
from ....core.tensor import Tensor
from ....diagnosis.frames import innermost_user_entry, stopped_line, traceback_entries
from ....diagnosis.ipython import shows_cards
from ....diagnosis.source_lines import source_of
from ....nn.graph.tree import leaves
from ....views.text.trees import cut
from . import text as listing

MAX_ROWS = 40  # in a longer tree, the contents of modules that succeeded are left out, innermost first
MAX_INDENT = 24  # deepest level that is indented further
MAX_PATH = 100  # maximum length of the path of a module
NOTE_PREFIX = "while building "
FAILED_PREFIX, PREFIX = ">>> ", "    "


def report_failed_build(graph: Any, build: Any, error: BaseException) -> None:
    """Print the tree of modules so far with the failing line marked, and add it as a note to the error, which
    propagates.

    Does nothing for an interrupt, which is not a mistake in the program, nor for an error that has the note already.
    """
    notes = map(str, getattr(error, "__notes__", ()))
    if not isinstance(error, Exception) or any(note.startswith(NOTE_PREFIX) for note in notes):
        return
    where = ""
    try:
        path = calls_of(build, error.__traceback__)
        place, source = failed_line(graph, error.__traceback__)
        inside = "its passes and plan" if build.observer.traced_whole else "build"
        inside = f"{cut(path[-1].path, MAX_PATH)} ({type(path[-1].module).__name__})" if path else inside
        line = f"at {place} {source}".rstrip() if place else ""
        where = listing.clean(f": in {inside}, {line}".removesuffix(", "))
        rows = [row for row in partial_tree(graph, build, error, path, line) if row.strip(FAILED_PREFIX)]
        text = "\n".join(map(listing.clean, rows))
        if isinstance(error, MinflowError) and shows_cards():
            error.add_note(text)  # the card of the error has it, folded
        else:
            print(text, flush=True)
    except Exception as own:  # an error while printing must not hide the error of the program
        where = where or f" (its modules could not be listed: {type(own).__name__})"
    error.add_note(f"{NOTE_PREFIX}{graph.name}{where}")
    if isinstance(error, RecursionError):
        deep = f"; {depth} modules were nested" if (depth := max(call_depths(build).values())) else ""
        hint = "Try: stop endless recursion; sys.setrecursionlimit(5_000) for modules nested that deep"
        error.add_note(f"Python allows {sys.getrecursionlimit():,} nested calls{deep}.\n{hint}")


# ---- where -----------------------------------------------------------------------------------------------------------


def calls_of(build: Any, trace: TracebackType | None) -> list[Any]:
    """The module calls that the error passed through, outermost first, but none whose error the program caught."""
    calls = []
    code = type(build).call.__code__
    for at in traceback_entries(trace):
        if at.tb_frame.f_code is code and (call := at.tb_frame.f_locals.get("call")) is not None:
            calls.append(call)
    return calls


def failed_line(graph: Any, trace: TracebackType | None) -> tuple[str, str]:
    """("file.py:12", source) of the user's innermost line, else of the `def` of build; ("", "") if build belongs to
    minflow too, as in a loaded graph.
    """
    at = innermost_user_entry(trace)
    code = type(graph).build.__code__ if at is None else at.tb_frame.f_code
    if IS_MINFLOW_FILE[code.co_filename]:
        return "", ""
    number = code.co_firstlineno if at is None else stopped_line(at)
    return f"{file_name(code.co_filename)}:{number}", source_of(code.co_filename, number)


def error_text(error: BaseException) -> str:
    """`ShapeError: linear: the input has 3 features`: the class and the first line of the message."""
    what = (error.what if isinstance(error, MinflowError) else str(error)).partition("\n")[0]
    return f"{type(error).__name__}: {what}".removesuffix(": ")[:120]


# ---- the tree --------------------------------------------------------------------------------------------------------


def partial_tree(graph: Any, build: Any, error: Exception, path: list[Any], line: str) -> list[str]:
    message = error_text(error)
    head = listing.graph_head(graph)
    if build.observer.traced_whole:
        return [f"{head} was built, and could not be compiled:", f"{FAILED_PREFIX}{message}", f"{FAILED_PREFIX}{line}"]
    if not build.top.children:
        return [f"{head} failed before any module was called:", f"{FAILED_PREFIX}{message}", f"{FAILED_PREFIX}{line}"]
    signatures = call_signatures(build)
    depth = deepest = max(call_depths(build).values())
    rows = tree_lines(build, path, line, message, signatures, deepest)
    while len(rows) > MAX_ROWS and depth:
        depth -= 1
        rows = tree_lines(build, path, line, message, signatures, depth)
    if len(rows) > 2 * MAX_ROWS:  # very deep nesting, perhaps endless recursion
        rows[MAX_ROWS:-MAX_ROWS] = [f"{PREFIX}... {len(rows) - 2 * MAX_ROWS} rows ..."]
    return [f"{head} was built up to here:", *rows]


def call_signatures(build: Any) -> dict[Any, int]:
    """call -> a number, equal for calls of equal modules with equal shapes at all levels below."""
    numbers: dict[Any, int] = {}
    signatures: dict[Any, int] = {}
    for call in reversed(list(build.top.walk())):  # children before parents
        inner = tuple([signatures[child] for child in call.children])
        own = call if not call.done else (listing.module_text(call.module), call_shapes(call))
        signatures[call] = numbers.setdefault((own, inner), len(numbers))
    return signatures


def call_depths(build: Any) -> dict[Any, int]:
    depths = {build.top: 0}
    for call in build.top.walk():
        depths.update(dict.fromkeys(call.children, depths[call] + 1))
    return depths


class CallGroup(NamedTuple):
    """Consecutive calls of equal signature: the first, the last, and their number."""

    first: Any
    last: Any
    times: int


def group_calls(calls: list[Any], signatures: dict[Any, int]) -> list[CallGroup]:
    groups = [list(group) for _, group in itertools.groupby(calls, signatures.__getitem__)]
    return [CallGroup(group[0], group[-1], len(group)) for group in groups]


def tree_lines(
    build: Any, path: list[Any], line: str, message: str, signatures: dict[Any, int], limit: int
) -> list[str]:
    """The rows: calls that the error passed through are expanded, others no deeper than `limit`."""
    rows: list[str] = []
    through, failed_call = set(path), path[-1] if path else build.top
    stack: list[tuple[int, Any]] = [(0, CallGroup(build.top, build.top, 1))]
    while stack:
        depth, group = stack.pop()
        if isinstance(group, str):  # a postponed row: those before it are done
            rows.append(group)
            continue
        call, pad = group.first, "  " * (min(depth, MAX_INDENT) - 1)
        if call is not build.top:
            more = f"  x{group.times}, to {cut(group.last.path, MAX_PATH)}" if group.times > 1 else ""
            more += "" if call.done or call in through else "  (raised, and the program caught it)"
            closed = depth >= limit and call not in through and bool(call.children)
            more += f"  ({sum(1 for _ in call.walk()) - 1} modules inside)" if closed else ""
            head = listing.module_head(cut(call.path, MAX_PATH), call.module)
            rows.append(f"{FAILED_PREFIX if call is failed_call else PREFIX}{pad}{head}  {call_shapes(call)}{more}")
            if closed:
                continue
        if call is failed_call:
            stack += [(depth, f"{FAILED_PREFIX}{'  ' * min(depth, MAX_INDENT)}{text}") for text in (line, message)]
        stack += [(depth + 1, inner) for inner in reversed(group_calls(call.children, signatures))]
    return rows


def call_shapes(call: Any) -> str:
    """`float32[4, 7] -> float32[4, 3]`; without a result if it did not return."""
    ins = specs_text([*call.args, *call.kwargs.values()])
    return f"{ins} -> {specs_text(call.output)}" if call.done else ins


def specs_text(values: Any) -> str:
    return ", ".join([str(x.spec) for _, x in leaves(values) if isinstance(x, Tensor)])
