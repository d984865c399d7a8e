"""Runs to compare: tables written by `log.py`, and curves in memory. Read next: `compare.py`."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from minflow.core.base.errors import FormatError, MinflowError
from minflow.core.source_location import here, warn
from minflow.views.text.listing import clean, count

from ..curve.series import Series
from .log import MEAN_SUFFIX, error_reason

MAX_HEADER_CHARS = 100_000  # characters of a header line
MAX_NAMED_KEYS = 3  # differing hyperparameters that are named
MAX_NAMED_FILES = 3  # files that are not runs that are named


class SavedRun(NamedTuple):
    """A run to draw. columns: name of a series -> steps, values, seconds."""

    name: str
    config: dict[str, Any]
    columns: dict[str, np.ndarray]


def read(path: Path) -> SavedRun:
    """Read a run from its table, without an incomplete last row. Raises FormatError."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # spreadsheets prepend a byte order mark
            header = next(csv.reader(iter(lambda: file.readline(MAX_HEADER_CHARS), "")), [])
            text = file.read() if "step" in header else ""  # never read another, possibly large, file
        rows = list(csv.reader(io.StringIO(text[: text.rfind("\n") + 1], newline="")))
    except (OSError, ValueError, csv.Error) as error:
        raise format_error(path, "this table of a run cannot be read", because=error_reason(error)) from error
    names = [name for name in header if name not in ("step", "epoch", "seconds") and not name.endswith(MEAN_SUFFIX)]
    if "step" not in header or not names or not rows:
        missing = "column `step`" if "step" not in header else "column of numbers" if not names else "row"
        raise format_error(
            path, f"this is not the table of a run: it has no {missing}", columns=", ".join(header)[:80] or "none"
        )
    for number, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise format_error(path, f"row {number} is broken: {len(row)} values for {len(header)} columns")
    columns = dict(zip(header, zip(*rows)))
    try:
        numbers = {
            name: np.array([float(x) if x else np.nan for x in columns[name]])
            for name in ("step", "seconds", *names)
            if name in columns
        }
    except ValueError as error:
        raise format_error(path, "a value of this table is not a number", because=error) from error
    times = numbers.get("seconds", numbers["step"])
    there = np.isfinite(numbers["step"]) & np.isfinite(times)
    series = {}
    for name in names:
        known = there & np.array([bool(x) for x in columns[name]])
        if known.any():
            series[name] = np.stack([numbers["step"], numbers[name], times])[:, known]
    return SavedRun(*read_about(path), series)


def read_about(path: Path) -> tuple[str, dict[str, Any]]:
    """Name and hyperparameters from the JSON file beside the table; the table's name if that is missing or broken."""
    try:
        data = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        config = data.get("config")
        return str(data.get("name") or path.stem), config if isinstance(config, dict) else {}
    except (OSError, ValueError, AttributeError, RecursionError):
        return path.stem, {}


def format_error(path: Path, what: str, **values) -> FormatError:
    hint = 'compare("runs/") of a folder that watch(..., log="runs/") has filled, or remove this file from it'
    return FormatError(what, values={"file": path, **values}, where=here(), hint=hint)


def runs_of_curve(curve, number: int) -> list[SavedRun]:
    """The runs of a curve so far: one for each watched source."""
    with curve._lock:
        curve._take()
        columns: dict[str, dict] = {}
        for s in curve._series.values():
            if s.count:
                prefix = curve._prefix_of(s)
                columns.setdefault(prefix, {})[s.name[len(prefix) :]] = s.table[:, : s.count].copy()
        names = {prefix: " ".join(filter(None, [curve.name, prefix.strip()])) for prefix in columns or [""]}
        return [
            SavedRun(name or f"run {number}", curve.configs.get(prefix, {}), columns.get(prefix, {}))
            for prefix, name in names.items()
        ]


def newest_runs(folder: Path, most: int) -> tuple[list[SavedRun], int, list[FormatError]]:
    """(the most recently written runs of a folder, oldest first; the number left out; errors of files that are not
    runs).
    """
    try:
        with os.scandir(folder) as entries:
            files = [(entry.stat(), entry.path) for entry in entries if entry.name.lower().endswith(".csv")]
    except OSError as error:
        raise format_error(folder, "this folder of runs cannot be read", because=error_reason(error)) from error
    paths = [Path(path) for of, path in sorted(files, key=lambda file: file[0].st_mtime_ns) if stat.S_ISREG(of.st_mode)]
    runs: list[SavedRun] = []
    skipped: list[FormatError] = []
    while paths and len(runs) < most:
        try:
            runs.insert(0, read(paths.pop()))
        except FormatError as error:
            skipped.append(error)
    return runs, len(paths), skipped


def gather_runs(things: Sequence, most: int, needed: bool = True) -> tuple[list[SavedRun], str]:
    """At most `most` runs, with distinct names, and a note about those left out.

    things: folders, tables, curves. An argument that is not a run raises; inside a folder it is only reported.
    needed: True if it is an error to find none.
    """
    runs: list[SavedRun] = []
    left = 0
    skipped: list[Any] = []
    for thing in [one for each in things for one in (each if isinstance(each, list | tuple) else [each])]:
        if hasattr(thing, "_series") and hasattr(thing, "configs"):
            runs += runs_of_curve(thing, len(runs) + 1)
            continue
        if not isinstance(thing, str | os.PathLike):
            raise MinflowError(
                "compare takes runs",
                values={"got": repr(thing)[:60]},
                where=here(),
                hint='compare("runs/"), compare("runs/a.csv", "runs/b.csv"), compare(curve_a, curve_b)',
            )
        path = Path(thing).expanduser()
        if path.is_dir():
            found, more, wrong = newest_runs(path, most)
            runs, left, skipped = runs + found, left + more, skipped + wrong
        else:
            runs.append(read(path))
    if skipped and runs:
        names = ", ".join(Path(error.values["file"]).name for error in skipped[:MAX_NAMED_FILES])
        rest = f" and {len(skipped) - MAX_NAMED_FILES} more" if len(skipped) > MAX_NAMED_FILES else ""
        warn(f"compare: skipped {names}{rest}: {skipped[0].what}", "a folder that contains only runs")
    if not runs and needed:
        raise (
            skipped[0]
            if len(skipped) == 1
            else MinflowError(
                "compare: there is no run here",
                values={"looked in": ", ".join(map(str, things))[:80] or "nothing"},
                where=here(),
                hint='watch(..., log="runs/") keeps runs; compare("runs/") shows them',
            )
        )
    left += max(len(runs) - most, 0)
    note = (
        (
            f"{count(left, 'older or further run')} {'is' if left == 1 else 'are'} not shown: "
            'name some, compare("runs/a.csv", ...)'
        )
        if left
        else ""
    )
    return with_distinct_names(runs[:most]), note


def with_distinct_names(runs: list[SavedRun]) -> list[SavedRun]:
    """The runs with distinct names, which contain the hyperparameters that differ."""
    keys = [
        key
        for key in dict.fromkeys(key for run in runs for key in run.config)
        if len({repr(run.config[key]) for run in runs if key in run.config}) > 1
    ]
    named: list[SavedRun] = []
    for run in runs:
        facts = [f"{key} {short_value(run.config[key])}" for key in keys if key in run.config]
        facts = [clean(fact)[:30] for fact in facts if fact not in run.name][:MAX_NAMED_KEYS]
        name = clean(run.name)[:60] + (f" ({', '.join(facts)})" if facts else "")
        same = sum(one.name == name or one.name.startswith(f"{name} #") for one in named)
        named.append(run._replace(name=f"{name} #{same + 1}" if same else name))
    return named


def short_value(value: Any) -> Any:
    """500.0 as 500, as it is usually written in a run's name."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e6 else value


def series_of(runs: list[SavedRun], first: int = 0) -> list[Series]:
    """The runs as series, all of a run with the same color, starting with color `first`."""
    result = []
    for number, run in enumerate(runs, first):
        for column, (steps, values, seconds) in run.columns.items():
            s = Series(f"{run.name} {column}")
            s.extend(steps.tolist(), values.tolist(), seconds.tolist())
            s.shown, s.style = f"{run.name}:", number
            s.within_run(column)
            result.append(s)
    return result
