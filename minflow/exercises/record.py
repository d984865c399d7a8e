"""Record of a learner's attempts: lines of JSON in `.progress.jsonl` next to the lessons.

Fields: time, exercise, attempt (the count of changed answers), outcome, name of the wrong answer, seconds, fingerprint
of the source, versions. No source, no personal data, no network. Lines are only appended, so that concurrent or killed
kernels lose nothing. Read next: `progress.py`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.base import __version__
from ..diagnosis.notebook import in_notebook

FILE = ".progress.jsonl"
COURSE_RECORD = ".minflow-course"  # course.RECORD_NAME, which marks a learner's copy of the course
OUTCOMES = ("right", "nearly", "wrong", "stopped", "refused", "not started")
MARKS = {"right": "\u2713", "tried": "~", "": "\u00b7"}  # symbols of the states below
MAX_BYTES = 4_000_000  # bytes read from the end of a file: about ten thousand attempts
MEMORY: list[dict[str, Any]] = []  # attempts of this process, used if there is no file


def progress_file(here: Path | None = None) -> Path | None:
    """Path of the learner's file, or None in a plain program.

    It is $MINFLOW_PROGRESS ("0": None), else in the course folder that contains `here` (the working directory), else
    beside the running notebook.
    """
    named = os.environ.get("MINFLOW_PROGRESS")
    if named is not None:
        return None if named in ("", "0") else Path(named).expanduser()
    here = here or Path.cwd()
    for folder in (here, *here.parents):
        if (folder / COURSE_RECORD).is_file():
            return folder / FILE
    return here / FILE if in_notebook() else None


def attempts(path: Path | None = None) -> list[dict[str, Any]]:
    """Valid lines, oldest first; the last LARGEST bytes of a very large file.

    path: the file; by default this learner's. Without a readable file: the attempts of this process.
    """
    path = path or progress_file()
    if path is None:
        return list(MEMORY)
    try:
        if not path.is_file():  # reading a pipe would block
            return list(MEMORY)
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_BYTES))
            text = file.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return list(MEMORY)
    lines = []
    for line in text.split("\n"):
        try:
            attempt = json.loads(line)
        except (ValueError, RecursionError):  # truncated by a kill, or not one of our lines
            continue
        if (
            isinstance(attempt, dict)
            and attempt.get("outcome") in OUTCOMES
            and all(isinstance(text, str) for text in (attempt.get("exercise"), attempt.setdefault("wrong", "")))
        ):
            lines.append(attempt)
    return lines


def add_attempt(name: str, outcome: str, wrong: str, seconds: float, source: str) -> list[dict[str, Any]]:
    """Record an attempt unless it repeats the last one. Returns all attempts at this exercise, oldest first."""
    path = progress_file()
    earlier = [attempt for attempt in attempts(path) if attempt["exercise"] == name]
    if earlier and earlier[-1].get("source") == source and earlier[-1]["outcome"] == outcome:
        return earlier
    versions = {"minflow": __version__, "python": ".".join(map(str, sys.version_info[:3]))}
    number = 1 + sum(attempt["outcome"] != "not started" for attempt in earlier)
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
                    torn = end and file.read() != b"\n"  # a writer was killed
                    file.write((b"\n" if torn else b"") + json.dumps(line, ensure_ascii=False).encode() + b"\n")
        except OSError:  # read-only folder: the attempt stays in this kernel's memory
            pass
    return [*earlier, line]


def level(tried: list[dict[str, Any]]) -> int:
    """Number of consecutive attempts with the same wrong answer as the last one; it selects the hint."""
    count = 0
    for attempt in reversed(tried):
        if (attempt["wrong"], attempt["outcome"]) != (tried[-1]["wrong"], tried[-1]["outcome"]):
            break
        count += 1
    return count


def stuck(tried: list[dict[str, Any]]) -> bool:
    """True after eight attempts or half an hour since the exercise was last right."""
    begun = next((i + 1 for i in range(len(tried) - 1, -1, -1) if tried[i]["outcome"] == "right"), 0)
    since = [attempt for attempt in tried[begun:] if attempt["outcome"] != "not started"]
    return len(since) >= 8 or (len(since) > 1 and minutes(since[0], since[-1]) >= 30)


def minutes(first: dict[str, Any], last: dict[str, Any]) -> float:
    try:
        times = [time.mktime(time.strptime(attempt["time"], "%Y-%m-%dT%H:%M:%SZ")) for attempt in (first, last)]
    except (KeyError, TypeError, ValueError, OverflowError):
        return 0.0
    return (times[1] - times[0]) / 60


def states(lines: list[dict[str, Any]] | None = None) -> dict[str, str]:
    """Exercise -> "right" if it ever was, else "tried". Exercises never begun are left out."""
    result: dict[str, str] = {}
    for attempt in attempts() if lines is None else lines:
        if attempt["outcome"] == "right":
            result[attempt["exercise"]] = "right"
        elif attempt["outcome"] != "not started":
            result.setdefault(attempt["exercise"], "tried")
    return result


def next_exercise(lessons: Mapping[str, Sequence[str]], lines: list[dict[str, Any]]) -> tuple[str, str]:
    """(lesson, exercise) to go on with: in the lesson of the last attempt, else in the first one that is not done.

    lessons: lesson -> its exercises. Returns ("", "") if all are right.
    """
    known = states(lines)
    open_exercises = {
        lesson: [name for name in names if known.get(name) != "right"] for lesson, names in lessons.items()
    }
    last = lines[-1]["exercise"] if lines else ""
    places = [lesson for lesson, names in lessons.items() if last in names] + list(lessons)
    return next(((lesson, open_exercises[lesson][0]) for lesson in places if open_exercises[lesson]), ("", ""))
