"""A tree of modules as a record, made by `nn/summary.py`. Read next: `../text/listing.py`, the tree as text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby


@dataclass(frozen=True)
class ModuleRecord:
    """A module with its children. params, trainable, nbytes: totals of the module and all inside it, each tensor
    counted once.

    own: names and specs of its own parameters and buffers.  outputs: specs of the last call.  earlier: those of earlier
    calls, each time they changed.  calls: number of calls (None: not observed).  macs, written: multiply-accumulates
    of all calls inside it, and the bytes of their results.
    error: message of the failure, at the layer where it happened.  count: number of equal adjacent modules that it
    represents, named `name`, "0-999"; the other fields describe one of them.
    """

    name: str
    kind: str
    extra: str = ""
    own: tuple[tuple[str, str], ...] = ()
    params: int = 0
    trainable: int = 0
    nbytes: int = 0
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    earlier: tuple[tuple[str, ...], ...] = ()
    calls: int | None = None
    macs: int = 0
    written: int = 0
    error: str = ""
    shared: bool = False
    count: int = 1
    children: tuple[ModuleRecord, ...] = ()


def folded(record: ModuleRecord) -> ModuleRecord:
    """Merge numbered adjacent modules that are equal, including the shapes of their inputs and outputs."""
    children: list[ModuleRecord] = []
    for _, equal in groupby(map(folded, record.children), lambda x: replace(x, name="0") if x.name.isdigit() else x):
        run = list(equal)
        if len(run) > 2 or run[0].children:
            run = [replace(run[0], name=f"{run[0].name}-{run[-1].name}", count=len(run))] if len(run) > 1 else run
        children += run
    return replace(record, children=tuple(children))


def rows_of(record: ModuleRecord) -> list[tuple[int, ModuleRecord, int]]:
    """(depth, record, number of modules it represents) of a module and all inside it, equal neighbors merged."""
    rows, stack = [], [(0, folded(record), 1)]
    while stack:
        depth, module, times = stack.pop()
        rows.append((depth, module, times := times * module.count))
        stack += [(depth + 1, child, times) for child in reversed(module.children)]
    return rows


def rows_with_errors(rows: list[tuple[int, ModuleRecord, int]]) -> set[int]:
    """Indices of the rows that have an error, or contain a row that has."""
    result: set[int] = set()
    below = -1  # depth of the last row found
    for i in range(len(rows) - 1, -1, -1):
        depth, module, _ = rows[i]
        if module.error or depth < below:
            result.add(i)
            below = depth
    return result
