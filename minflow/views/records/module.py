"""A tree of modules as a record; `nn/summary.py` makes it. Read next: `../text/listing.py`, the tree as text."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class ModuleRecord:
    """A module and those inside it. params, trainable, nbytes: of the module and all inside it, each tensor once.

    own: names and specs of its own parameters and buffers.  outputs: of its last call.  earlier: those of calls before
    it, where the next call gave others.  calls: how often it ran (None: nobody looked).  macs, written: multiply-
    accumulates of all that ran in it, and the bytes of their results.
    error: what went wrong in it, at the layer where it did.  count: how many equal neighbours it stands for, named
    `name`, "0-999"; all else is that of each.
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
    """Numbered neighbours that are equal, down to the shapes that passed them, as one record."""
    runs: list[list[ModuleRecord]] = []
    for child in map(folded, record.children):
        first = runs[-1][0] if runs else None
        if first and child.name.isdigit() and first.name.isdigit() and replace(child, name=first.name) == first:
            runs[-1].append(child)
        else:
            runs.append([child])
    children: list[ModuleRecord] = []
    for run in runs:
        if len(run) > 2 or run[0].children:
            run = [replace(run[0], name=f"{run[0].name}-{run[-1].name}", count=len(run))] if len(run) > 1 else run
        children += run
    return replace(record, children=tuple(children))


def rows_of(record: ModuleRecord) -> list[tuple[int, ModuleRecord, int]]:
    """(depth, record, how many modules it stands for) of a module and of all inside it, equal neighbours folded."""
    rows, stack = [], [(0, folded(record), 1)]
    while stack:
        depth, module, times = stack.pop()
        rows.append((depth, module, times := times * module.count))
        stack += [(depth + 1, child, times) for child in reversed(module.children)]
    return rows


def rows_with_errors(rows: list[tuple[int, ModuleRecord, int]]) -> set[int]:
    """The rows in which an error stands, or inside of which."""
    result: set[int] = set()
    below = -1  # the depth of the last row that is one
    for i in range(len(rows) - 1, -1, -1):
        depth, module, _ = rows[i]
        if module.error or depth < below:
            result.add(i)
            below = depth
    return result
