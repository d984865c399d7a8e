"""RunLog: a curve's values in files for pandas and spreadsheets, written during the run.

`runs/lr 0.1.csv` has a row per step: step, epoch if known, a column for each series, means of epochs, and seconds since
the first value. `runs/lr 0.1.json` beside it has the data of the whole run: name, start, hyperparameters.
The last row stays open: later values of its step, such as a val_loss, are added to it. Read next: `saved_runs.py`.
"""

from __future__ import annotations

import atexit
import csv
import io
import json
import os
import re
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np

from minflow.core.base.errors import MinflowError
from minflow.core.base.locks import new_lock
from minflow.core.files.atomic import write
from minflow.core.source_location import caller, here, warn_at

FORBIDDEN_CHARS = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')  # in file names, on any common system
RESERVED_NAMES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)\s*(\.|$)", re.IGNORECASE)  # on Windows, with any suffix
MAX_NAME_BYTES = 120  # bytes of a name
OPEN_CURVES: WeakSet = WeakSet()  # curves with a log; written completely at program exit
MEAN_SUFFIX = "_epoch_mean"  # suffix of the column with a series' means, in the last row of each epoch


class RunLog:
    """The files of one curve: one for each watched source, under its prefix.

    folder: created if missing. Raises MinflowError before any training if it cannot be written. A later failure is
    reported once; the values stay in memory and are written when writing works again.
    """

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder).expanduser()
        self.files: dict[str, RunFile] = {}
        self.lock = new_lock()  # the update thread and the end of a block may both write
        self.problem, self.at = "", (caller(2), here())
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.folder).close()
        except (OSError, ValueError) as error:
            raise MinflowError(
                "the run cannot be kept in this folder",
                values={"log": self.folder, "because": error_reason(error)},
                where=here(),
                hint='log="runs/", a folder that can be written, or no log',
            ) from error

    @property
    def paths(self) -> list[Path]:
        return [file.path for file in self.files.values() if file.path is not None]

    def write(self, curve, note: str | None = None) -> None:
        """Write new values. note: note of the curve, at its end."""
        with self.lock:
            with curve._lock:
                news = self.new_values(curve)
            try:
                for file, parts in news:
                    file.write(parts, curve._epochs)
                if note is not None:
                    for file in self.files.values():
                        file.describe(note)
            except (OSError, ValueError) as error:
                self.fail(error)

    def new_values(self, curve) -> list[tuple[RunFile, dict]]:
        """Values that each file lacks: column -> (steps, values, times), copies. The caller holds the lock."""
        columns: dict[str, dict] = {}
        for s in curve._averaged():
            prefix = curve._prefix_of(s)
            columns.setdefault(prefix, {})[s.name[len(prefix) :]] = s
        news = []
        for prefix, series in columns.items():
            if prefix not in self.files:
                name = " ".join(filter(None, [curve.name, prefix.strip()])) or "run"
                self.files[prefix] = RunFile(self.folder, name, curve.configs.get(prefix, {}))
            file = self.files[prefix]
            if parts := file.new_values(series, curve._epochs.known(prefix.rstrip()), prefix.rstrip()):
                news.append((file, parts))
        return news

    def fail(self, error: Exception) -> None:
        if not self.problem:
            self.problem = f"the run is not kept: {error_reason(error)}"
            hint = "make room or give permission: it is written as soon as it can be; curve.csv(path) writes elsewhere"
            warn_at(f"watch: {self.problem}", hint, {"log": str(self.folder)}, *self.at, kind=f"log {id(self)}")


class RunFile:
    """One table. columns: those of the header.  offset: start of the last row in the file, which is rewritten while
    values of its step may still arrive.
    """

    def __init__(self, folder: Path, name: str, config: dict):
        self.folder, self.name = folder, name
        self.path: Any = None
        self.about = {
            "name": name,
            "started": datetime.now().astimezone().isoformat(timespec="seconds"),
            "minflow": sys.modules["minflow"].__version__,
            "config": config,
        }
        self.columns: list[str] = []
        self.restart()

    def restart(self) -> None:
        self.written: dict[str, int] = {}  # column -> number of values in the file
        self.averaged: dict[str, int] = {}
        self.open: dict[str, float] = {}  # the last row
        self.offset = 0

    def new_values(self, series: dict, known: bool, prefix: str) -> dict:
        means = [name for name, s in series.items() if s.epochs and not s.decreases]
        columns = ["step", *["epoch"] * known, *series, *[name + MEAN_SUFFIX for name in means], "seconds"]
        if columns != self.columns:  # a new column: rewrite the file
            self.columns = columns
            self.restart()
        parts = {name: s.table[:, self.written.get(name, 0) : s.count].copy() for name, s in series.items()}
        ended = {
            name: {
                series[name].steps[one.stop - 1]: one.mean for one in series[name].epochs[self.averaged.get(name, 0) :]
            }
            for name in means
        }
        if not any(part.size for part in parts.values()) and not any(ended.values()):
            return {}
        first = next(iter(series.values()))
        for name, part in parts.items():
            part[2] += series[name].zero - first.zero
        counts = {name: s.count for name, s in series.items()}, {name: len(series[name].epochs) for name in means}
        return {"parts": parts, "means": ended, "counts": counts, "first": first.table.item(0, 0), "prefix": prefix}

    def write(self, news: dict, epochs) -> None:
        rows = merge_by_step(self.open, news["parts"])
        for row in rows:
            for name, ended in news["means"].items():
                if row["step"] in ended:
                    row[name + MEAN_SUFFIX] = ended[row["step"]]
        if "epoch" in self.columns:
            steps, seconds = (np.array([row[name] for row in rows]) for name in ("step", "seconds"))
            for row, number in zip(rows, epochs.numbers(news["prefix"], news["first"], steps, seconds).tolist()):
                row["epoch"] = number
        lines = [csv_line([exact_text(row[name]) if name in row else "" for name in self.columns]) for row in rows]
        if self.path is None:
            self.path = self.create()
        if not self.offset:
            header = csv_line(self.columns)
            write(self.path, b"".join([header, *lines]), "watch")
            self.offset = len(header)
        else:
            with open(self.path, "r+b") as file:
                file.seek(self.offset)
                file.truncate()
                file.write(b"".join(lines))
        self.offset += sum(map(len, lines[:-1]))
        self.open, (self.written, self.averaged) = rows[-1], news["counts"]

    def create(self) -> Path:
        """Create a file under an unused name."""
        taken, name = {entry.name.casefold() for entry in os.scandir(self.folder)}, file_name(self.name)
        number = 1
        while True:
            stem = name if number == 1 else f"{name}-{number}"
            if not {f"{stem}.csv".casefold(), f"{stem}.json".casefold()} & taken:
                try:
                    open(self.folder / f"{stem}.csv", "xb").close()
                except FileExistsError:  # created by another program in this moment
                    pass
                else:
                    self.path = self.folder / f"{stem}.csv"
                    self.about["name"] += stem[len(name) :]
                    self.describe()
                    return self.path
            number += 1

    def describe(self, note: str | None = None) -> None:
        """Write the data of the whole run. note: given at the end of the run."""
        if self.path is not None:
            ended = {"ended": datetime.now().astimezone().isoformat(timespec="seconds"), "note": note}
            text = json.dumps(self.about | (ended if note is not None else {}), indent=1)
            write(self.path.with_suffix(".json"), text + "\n", "watch")


@atexit.register
def write_at_exit() -> None:
    for curve in tuple(OPEN_CURVES):
        curve._log.write(curve)


def merge_by_step(last: dict, parts: dict[str, np.ndarray]) -> list[dict[str, float]]:
    """The rows: values in order of arrival, merged by step. last: the row to continue."""
    times = np.concatenate([part[2] for part in parts.values()])
    names = [name for name, part in parts.items() for _ in range(part.shape[1])]
    steps, values = (np.concatenate([part[k] for part in parts.values()]).tolist() for k in (0, 1))
    row = dict(last)
    rows = [row] if row else []
    for i, seconds in zip(times.argsort(kind="stable").tolist(), np.sort(times).tolist()):
        if not row or row["step"] != steps[i] or names[i] in row:
            row = {"step": steps[i], "seconds": round(seconds, 6)}
            rows.append(row)
        row[names[i]] = values[i]
    return rows


def csv_line(words: list[str]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(words)
    return out.getvalue().encode("utf-8", "backslashreplace")


def exact_text(x: float) -> str:
    """A number that reads back exactly; integers without a decimal point."""
    return f"{x:.0f}" if x == x // 1 and abs(x) < 2**53 else repr(x)


def file_name(name: str) -> str:
    """A valid file name without suffix on Linux, macOS and Windows."""
    short = FORBIDDEN_CHARS.sub("-", name.encode("utf-8", "replace").decode())
    short = short.encode()[:MAX_NAME_BYTES].decode(errors="ignore").strip(" .") or "run"
    return f"_{short}" if RESERVED_NAMES.match(short) else short


def error_reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
