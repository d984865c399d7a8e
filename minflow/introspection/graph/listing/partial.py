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
from ....core.source_location import OURS
from ....core.tensor import Tensor
from ....diagnosis.frames import innermost_user_entry, traceback_entries
from ....diagnosis.ipython import shows_cards
from ....diagnosis.source_lines import source_of
from ....nn.graph.tree import leaves
from ....views.text.trees import cut
from . import text as listing

ROWS = 40  # in a longer tree, the contents of modules that succeeded are left out, innermost first
MAX_INDENT = 24  # deepest level that is indented further
PATH = 100  # maximum length of the path of a module
NOTE = "while building "
MARK, PLAIN = ">>> ", "    "


def failed(graph: Any, build: Any, error: BaseException) -> None:
    """Print the tree of modules so far with the failing line marked, and add it as a note to the error, which
    propagates.

    Does nothing for an interrupt, which is not a mistake in the program, nor for an error that has the note already.
    """
    if not isinstance(error, Exception) or any(str(note).startswith(NOTE) for note in getattr(error, "__notes__", ())):
        return
    where = ""
    try:
        path = calls_of(build, error.__traceback__)
        place, source = failed_line(graph, error.__traceback__)
        inside = "its passes and plan" if build.observer.traced_whole else "build"
        inside = f"{cut(path[-1].path, PATH)} ({type(path[-1].module).__name__})" if path else inside
        line = f"at {place} {source}".rstrip() if place else ""
        where = listing.clean(f": in {inside}, {line}".removesuffix(", "))
        rows = [row for row in tree_so_far(graph, build, error, path, line) if row.strip(MARK)]
        text = "\n".join(map(listing.clean, rows))
        if isinstance(error, MinflowError) and shows_cards():
            error.add_note(text)  # the card of the error has it, folded
        else:
            print(text, flush=True)
    except Exception as own:  # an error while printing must not hide the error of the program
        where = where or f" (its modules could not be listed: {type(own).__name__})"
    error.add_note(f"{NOTE}{graph.name}{where}")
    if isinstance(error, RecursionError):
        deep = f"; {depth} modules were nested" if (depth := max(call_depth(build).values())) else ""
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
    if OURS[code.co_filename]:
        return "", ""
    number = code.co_firstlineno if at is None else at.tb_lineno
    return f"{file_name(code.co_filename)}:{number}", source_of(code.co_filename, number)


# ---- the tree --------------------------------------------------------------------------------------------------------


def tree_so_far(graph: Any, build: Any, error: Exception, path: list[Any], line: str) -> list[str]:
    what = (error.what if isinstance(error, MinflowError) else str(error)).partition("\n")[0]
    message = f"{type(error).__name__}: {what}".removesuffix(": ")[:120]
    head = listing.graph_head(graph)
    if build.observer.traced_whole:
        return [f"{head} was built, and could not be compiled:", f"{MARK}{message}", f"{MARK}{line}"]
    if not build.top.children:
        return [f"{head} failed before any module was called:", f"{MARK}{message}", f"{MARK}{line}"]
    alike = signatures(build)
    depth = deepest = max(call_depth(build).values())
    rows = tree(build, path, line, message, alike, deepest)
    while len(rows) > ROWS and depth:
        depth -= 1
        rows = tree(build, path, line, message, alike, depth)
    if len(rows) > 2 * ROWS:  # very deep nesting, perhaps endless recursion
        rows[ROWS:-ROWS] = [f"{PLAIN}... {len(rows) - 2 * ROWS} rows ..."]
    return [f"{head} was built up to here:", *rows]


def signatures(build: Any) -> dict[Any, int]:
    """call -> a number, equal for calls of equal modules with equal shapes at all levels below."""
    numbers: dict[Any, int] = {}
    signature: dict[Any, int] = {}
    for call in reversed(list(build.top.walk())):  # children before parents
        inner = tuple([signature[child] for child in call.children])
        own = call if not call.done else (listing.module_text(call.module), shapes(call))
        signature[call] = numbers.setdefault((own, inner), len(numbers))
    return signature


def call_depth(build: Any) -> dict[Any, int]:
    depths = {build.top: 0}
    for call in build.top.walk():
        depths.update(dict.fromkeys(call.children, depths[call] + 1))
    return depths


class Run(NamedTuple):
    """Consecutive calls of equal signature: the first, the last, and their number."""

    first: Any
    last: Any
    times: int


def runs(calls: list[Any], alike: dict[Any, int]) -> list[Run]:
    groups = [list(group) for _, group in itertools.groupby(calls, alike.__getitem__)]
    return [Run(group[0], group[-1], len(group)) for group in groups]


def tree(build: Any, path: list[Any], line: str, message: str, alike: dict[Any, int], limit: int) -> list[str]:
    """The rows: calls that the error passed through are expanded, others no deeper than `limit`."""
    rows: list[str] = []
    through, failed_call = set(path), path[-1] if path else build.top
    stack: list[tuple[int, Any]] = [(0, Run(build.top, build.top, 1))]
    while stack:
        depth, run = stack.pop()
        if isinstance(run, str):  # a postponed row: those before it are done
            rows.append(run)
            continue
        call, pad = run.first, "  " * (min(depth, MAX_INDENT) - 1)
        if call is not build.top:
            more = f"  x{run.times}, to {cut(run.last.path, PATH)}" if run.times > 1 else ""
            more += "" if call.done or call in through else "  (raised, and the program caught it)"
            closed = depth >= limit and call not in through and bool(call.children)
            more += f"  ({sum(1 for _ in call.walk()) - 1} modules inside)" if closed else ""
            head = listing.module_head(cut(call.path, PATH), call.module)
            rows.append(f"{MARK if call is failed_call else PLAIN}{pad}{head}  {shapes(call)}{more}")
            if closed:
                continue
        if call is failed_call:
            stack += [(depth, f"{MARK}{'  ' * min(depth, MAX_INDENT)}{text}") for text in (line, message)]
        stack += [(depth + 1, inner) for inner in reversed(runs(call.children, alike))]
    return rows


def shapes(call: Any) -> str:
    """`float32[4, 7] -> float32[4, 3]`; without a result if it did not return."""
    ins = specs([*call.args, *call.kwargs.values()])
    return f"{ins} -> {specs(call.output)}" if call.done else ins


def specs(values: Any) -> str:
    return ", ".join([str(x.spec) for _, x in leaves(values) if isinstance(x, Tensor)])
