"""The rows of operations on global tensors, with the bytes of boxing, as tables.

Read next: `../../introspection/graph/ranks/sbp_choices.py`, which makes the records.
"""

from __future__ import annotations

from ..records.reports import SbpCall, SbpCalls, SbpChoice, SbpRow
from .listing import clean
from .numbers import nbytes_text
from .tables import Cell, Sheet, Table

MAX_ROWS = 20  # rows of a table


def sbp_sheet(record: SbpCalls) -> Sheet:
    parts: list[Table | str] = []
    for call in record.calls:
        inputs = [f"{name} = {clean(value)}{f' {spec}' if spec else ''}" for name, value, spec in call.inputs]
        parts.append(f"{call.name}: {', '.join(inputs)}{f'; {call.where}' if call.where else ''}")
        for choice in call.choices:
            parts += choice_parts(call, choice)
    if any([row.sums for call in record.calls for choice in call.choices for row in choice.rows]):
        parts.append("sums: bytes to add up partial results that are larger than the inputs.")
    return Sheet(record.title, parts)


def choice_parts(call: SbpCall, choice: SbpChoice) -> list[Table | str]:
    """A table of the rows, the cheapest first, and the reason for the first one."""
    tensors = [i for i, (_, _, spec) in enumerate(call.inputs) if spec]
    sums = any([row.sums for row in choice.rows])
    head = ["row", *[call.inputs[i][0] for i in tensors], *["sums"] * sums, "bytes"]
    rows: list[list[str | Cell]] = []
    for row in choice.rows[:MAX_ROWS]:
        boxings = [boxing_text(choice.have[i], row.inputs[i], row.nbytes[i]) for i in tensors]
        more = [nbytes_text(round(row.sums))] * sums
        title = row_text(row)
        rows.append(
            [Cell(title, title, badges=("chosen",) * row.chosen), *boxings, *more, nbytes_text(round(row.total))]
        )
    along = "" if choice.axis is None else f"Along axis {choice.axis} of the ranks: "
    left = len(choice.rows) - len(rows)
    shown = f" {left} rows with more bytes are left out." if left > 0 else ""
    return [Table(head, rows, [len(head) - 1 - k for k in range(1 + sums)]), f"{along}{choice.why}.{shown}"]


def row_text(row: SbpRow) -> str:
    """`S(0), B -> S(0)`."""
    return f"{', '.join(filter(None, row.inputs))} -> {', '.join(row.outputs)}"


def boxing_text(before: str, after: str, nbytes: float) -> str:
    """`B -> S(0), 1.2 kB`; `B` for an input that is not boxed."""
    return after if before == after else f"{before} -> {after}, {nbytes_text(round(nbytes))}"
