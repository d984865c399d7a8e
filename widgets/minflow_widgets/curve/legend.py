"""Legends of a curve's panels as rows of cells, and the curve in words.

A single line has a sentence; several lines are rows of a table, which the picture and the page lay out. Read next:
`panels.py`, `curve_svg.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from minflow.views.text.listing import clean
from minflow.views.words import say

from .series import STRIP_WORDS, Series, number


class Row(NamedTuple):
    """A row of a legend: a sentence, or several cells of a table.

    line: index of the line whose sample precedes it, among those of the panel.  kind: "head" for the names of columns,
    "bad" for a warning.
    """

    cells: list[str]
    line: int | None = None
    kind: str = ""


def latest_step(series: Sequence[Series], s: Series) -> float | None:
    """The last step of the series with the same prefix."""
    return max([one.steps[-1] for one in series if one.count and one.prefix == s.prefix], default=None)


def advice(series: Sequence[Series], s: Series) -> str:
    """Advice for a value that is not finite; only for the first of the series with the same prefix."""
    ill = [one for one in series if one.first_nonfinite and one.word in ("loss", "norm") and one.prefix == s.prefix]
    if s is not min(ill, key=lambda one: one.first_nonfinite[0] if one.first_nonfinite else 0.0, default=None):
        return ""
    if s.first_nonfinite and s.first_nonfinite[0] <= 1 and s.first_nonfinite[0] == s.steps[0]:
        return "before any update: look at the data"
    return "lower the learning rate"


def series_warnings(series: Sequence[Series], s: Series) -> list[str]:
    """First step that was not finite, and advice with the learning rate of that step."""
    if not s.first_nonfinite:
        return []
    words = advice(series, s)
    if words == "lower the learning rate":
        rates = [one.at(s.first_nonfinite[0]) for one in series if one.word == "lr" and one.prefix == s.prefix]
        words += f" ({number(rates[0])})" if rates else ""
    return [s.warning(), words] if words else [s.warning()]


def legend(series: Sequence[Series], members: Sequence[Series], runs: Mapping[str, Mapping] | None = None) -> list[Row]:
    """The legend of the panel with these members.

    series: all series of the curve.  runs: prefix of a source -> values of further columns by their titles.
    """
    if len(members) < 2:
        return [row for s in members for row in sentences(series, s)]
    left = dict(runs or {})
    columns = [cells_of(s, left.pop(s.prefix, {})) for s in members]  # of a run, its first line has its values
    titles = list(dict.fromkeys([title for cells in columns for title in cells]))
    head = Row(["", *titles], None, "head")
    table = [
        Row([name_of(s), *[cells.get(title, "") for title in titles]], k)
        for k, (s, cells) in enumerate(zip(members, columns))
    ]
    return [head, *table, *[Row([words], None, "bad") for words in table_warnings(series, members)]]


def sentences(series: Sequence[Series], s: Series) -> list[Row]:
    said = [Row([s.legend(latest_step(series, s))], 0), Row([s.epoch_now()])]
    return [row for row in said if row.cells[0]] + [Row([words], None, "bad") for words in series_warnings(series, s)]


def name_of(s: Series) -> str:
    return clean(s.shown.removesuffix(":") or s.name)


def cells_of(s: Series, run: Mapping[str, str]) -> dict[str, str]:
    """Title of a column -> text, the most important first: columns without room are dropped from the right."""
    cells = {say("last"): number(s.values[-1]) if s.count else "-", **run}
    if s.best is not None and s.word not in STRIP_WORDS:
        cells[say("highest" if s.sign < 0 else "lowest")] = number(s.best[0])
        cells[say("at step")] = number(s.best[1])
    if s.epochs:
        cells[say("epoch mean")] = number(s.epochs[-1].mean)
    return cells


def table_warnings(series: Sequence[Series], members: Sequence[Series]) -> list[str]:
    """One sentence for all members that are not finite, then their advice."""
    ill = [s for s in members if s.first_nonfinite]
    words = [", ".join([f"{name_of(s)}: {s.warning()}" for s in ill])] if ill else []
    return words + list(dict.fromkeys(filter(None, [advice(series, s) for s in ill])))


def is_problem(note: str) -> bool:
    """True if the note under a curve reports more than that the user has stopped its run."""
    by_user = "stopped by the stop button", "stopped after"
    return note not in ("", "stopped") and not note.startswith(by_user)


def describe(series: Sequence[Series], note: str = "") -> str:
    """The curve in words: the last and the best value of each series."""
    last = max((s.steps[-1] for s in series if s.count), default=None)
    parts = [say("no values") if last is None else say("step {step}", step=number(last))]
    for s in series:
        bad = f" ({': '.join(series_warnings(series, s))})" if s.first_nonfinite else ""
        parts.append(", ".join(filter(None, [s.label(latest_step(series, s)), s.epoch_means()])) + bad)
    return "; ".join([*parts, note] if note else parts)
