"""What a learner has tried: lines of JSON in `.progress.jsonl`, beside the lessons.

A line: time, exercise, attempt (how many changed ones there were), outcome, the name of the wrong answer, seconds, a
fingerprint of the source, versions. No source, no person, no network. Lines are only appended, so that two kernels at
once, or one that is killed, lose nothing.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from ..diagnosis.notebook import in_notebook

FILE = ".progress.jsonl"
COURSE = ".minflow-course"  # the record that marks a learner's copy of the course
OUTCOMES = ("right", "nearly", "wrong", "stopped", "refused", "not started")
MARKS = {"right": "\u2713", "tried": "~", "": "\u00b7"}  # how the states below are shown
LARGEST = 4_000_000  # bytes that are read: some ten thousand attempts
MEMORY: list[dict[str, Any]] = []  # of this process, where nothing is kept on disk


def place(here: Path | None = None) -> Path | None:
    """The file of this learner: $MINFLOW_PROGRESS ("0": none), else in the course's folder that we (or `here`) are in,
    else beside the notebook that runs; None in a plain program."""
    named = os.environ.get("MINFLOW_PROGRESS")
    if named is not None:
        return None if named in ("", "0") else Path(named).expanduser()
    here = here or Path.cwd()
    for folder in (here, *here.parents):
        if (folder / COURSE).is_file():
            return folder / FILE
    return here / FILE if in_notebook() else None


def attempts(path: Path | None = None) -> list[dict[str, Any]]:
    """All lines that can be read, oldest first; of a file that has grown without measure the last ones. path: the
    file; this learner's, or what this process remembers."""
    path = path or place()
    if path is None:
        return list(MEMORY)
    try:
        if not path.is_file():  # a pipe would wait for ever
            return list(MEMORY)
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LARGEST))
            text = file.read(LARGEST).decode("utf-8", "replace")
    except OSError:
        return list(MEMORY)
    lines = []
    for line in text.split("\n"):
        try:
            one = json.loads(line)
        except (ValueError, RecursionError):  # torn by a kill, or no line of ours
            continue
        if (
            isinstance(one, dict)
            and one.get("outcome") in OUTCOMES
            and all(isinstance(text, str) for text in (one.get("exercise"), one.setdefault("wrong", "")))
        ):
            lines.append(one)
    return lines


def keep(name: str, outcome: str, wrong: str, seconds: float, source: str) -> list[dict[str, Any]]:
    """Write an attempt down; an unchanged one is no other attempt. Returns all attempts at this exercise, this one
    last."""
    import minflow

    path = place()
    earlier = [one for one in attempts(path) if one["exercise"] == name]
    if earlier and earlier[-1].get("source") == source and earlier[-1]["outcome"] == outcome:
        return earlier
    versions = {"minflow": minflow.__version__, "python": ".".join(map(str, sys.version_info[:3]))}
    number = 1 + sum(one["outcome"] != "not started" for one in earlier)
    line = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "exercise": name,
        "attempt": number,
        "outcome": outcome,
        "wrong": wrong,
        "seconds": round(seconds, 3),
        "source": source,
        "versions": versions,
    }
    MEMORY.append(line)
    if path is not None:
        try:
            if path.is_file() or not path.exists():
                with open(path, "a+b") as file:
                    end = file.seek(0, os.SEEK_END)
                    file.seek(max(0, end - 1))
                    torn = end and file.read() != b"\n"  # somebody was ended while writing
                    file.write((b"\n" if torn else b"") + json.dumps(line, ensure_ascii=False).encode() + b"\n")
        except OSError:  # a folder that cannot be written to: what is kept is this kernel's memory
            pass
    return [*earlier, line]


def level(tried: list[dict[str, Any]]) -> int:
    """How often the last attempt's wrong answer has come in a row, in changed attempts: which hint is due."""
    count = 0
    for one in reversed(tried):
        if (one["wrong"], one["outcome"]) != (tried[-1]["wrong"], tried[-1]["outcome"]):
            break
        count += 1
    return count


def stuck(tried: list[dict[str, Any]]) -> bool:
    """Eight attempts, or half an hour, since the exercise was last right."""
    begun = next((i + 1 for i in range(len(tried) - 1, -1, -1) if tried[i]["outcome"] == "right"), 0)
    since = [one for one in tried[begun:] if one["outcome"] != "not started"]
    return len(since) >= 8 or len(since) > 1 and minutes(since[0], since[-1]) >= 30


def minutes(first: dict[str, Any], last: dict[str, Any]) -> float:
    try:
        times = [time.mktime(time.strptime(one["time"], "%Y-%m-%dT%H:%M:%SZ")) for one in (first, last)]
    except (KeyError, TypeError, ValueError, OverflowError):
        return 0.0
    return (times[1] - times[0]) / 60


def states(lines: list[dict[str, Any]] | None = None) -> dict[str, str]:
    """Exercise -> "right" once it was, else "tried". What was never begun is not in it."""
    result: dict[str, str] = {}
    for one in attempts() if lines is None else lines:
        if one["outcome"] == "right":
            result[one["exercise"]] = "right"
        elif one["outcome"] != "not started":
            result.setdefault(one["exercise"], "tried")
    return result
