"""`minflow exercises report`: table of a class from its learners' progress files, as CSV and HTML.

The files come from learners: lines may be truncated, names may contain anything. Lines that name no exercise of this
course are counted, not shown. The page is one file without scripts.
"""

from __future__ import annotations

import dataclasses
import datetime
import html
import itertools
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

from ... import record
from ...definition import Exercise
from ...i18n import say
from ...registry import all_exercises
from .. import notebook as nb
from .html_page import page, table

NAMES = (record.FILE, record.FILE.lstrip("."))  # the second is that of the copy which learners send
PAUSE = 30 * 60.0  # seconds between two attempts after which the learner counts as away
MAX_BYTES = 50_000_000  # bytes of a file that `read` accepts
STUCK = 30.0  # minutes at one exercise after which a teacher should ask
RIGHT, TRIED, NEW = "\u2713", "~", "\u00b7"
COMMON = 10  # wrong answers shown without unfolding


@dataclasses.dataclass(frozen=True)
class Work:
    """A learner's work on an exercise.

    attempts: changed answers until the first right one. minutes: between the first and last of them, without pauses.
    wrong: name of a wrong answer -> how often it occurred.
    """

    right: bool
    attempts: int
    minutes: float
    wrong: Counter[str]


@dataclasses.dataclass(frozen=True)
class ClassReport:
    """Work of a class. learners: name -> {exercise: Work}.

    unknown: count of truncated lines, unknown exercises, and files that are links or too large. missing: folders of
    learners without a file that was read.
    """

    exercises: list[Exercise]
    learners: dict[str, dict[str, Work]]
    unknown: int
    missing: list[str]

    def at(self, exercise: Exercise) -> list[Work]:
        """Work of all learners who began the exercise."""
        return [works[exercise.name] for works in self.learners.values() if exercise.name in works]


# ---- reading --------------------------------------------------------------------------------------------------------


def read(folder: Path) -> ClassReport:
    """Read all progress files below the folder; the first folder on the path to a file is the learner's name.

    Raises OSError if the folder cannot be read.
    """
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder")
    exercises = [exercise for exercise in all_exercises() if exercise.points]
    known = {exercise.name: exercise for exercise in exercises}
    lines: dict[str, list[dict[str, Any]]] = {}
    unknown = 0
    for path in progress_files(folder):
        if path.is_symlink() or path.stat().st_size > MAX_BYTES:  # a link could lead to another learner's file
            unknown += 1
            continue
        name = nb.printable(path.relative_to(folder).parts[0])
        readable = record.attempts(path)
        mine = [attempt for attempt in readable if attempt["exercise"] in known]
        unknown += count_lines(path) - len(mine)
        lines.setdefault(name, []).extend(mine)
    learners = {
        name: {exercise.name: work for exercise in exercises if (work := summarize_work(exercise, lines[name]))}
        for name in sorted(lines)
    }
    return ClassReport(
        [exercise for exercise in exercises if any(exercise.name in works for works in learners.values())],
        learners,
        unknown,
        [name for name in folder_names(folder) if name not in learners],
    )


def progress_files(folder: Path) -> list[Path]:
    """Progress files and links with their names, in the folders below `folder`; one of each folder.

    Learners' programs only append to a file, so of a file and its copy the larger one contains the other.
    """
    largest: dict[Path, Path] = {}
    for path in sorted(nb.files_below(folder, NAMES[1])):
        if path.name in NAMES and path.parent != folder and (path.is_file() or path.is_symlink()):
            largest[path.parent] = max(largest.get(path.parent, path), path, key=lambda file: file.lstat().st_size)
    return list(largest.values())


def folder_names(folder: Path) -> list[str]:
    """Printable names of the visible folders in `folder`."""
    return sorted(nb.printable(path.name) for path in folder.iterdir() if path.is_dir() and path.name[0] != ".")


def count_lines(path: Path) -> int:
    """Number of non-empty lines of a file, without attempts at recall questions."""
    recall = {exercise.name for exercise in all_exercises() if not exercise.points}
    text = path.read_text(encoding="utf-8", errors="replace")
    return sum(bool(line.strip()) for line in text.splitlines()) - sum(
        attempt["exercise"] in recall for attempt in record.attempts(path)
    )


def summarize_work(exercise: Exercise, lines: list[dict[str, Any]]) -> Work | None:
    """Summarize a learner's lines of one exercise; None if it was not begun."""
    mine = [
        attempt for attempt in lines if attempt["exercise"] == exercise.name and attempt["outcome"] != "not started"
    ]
    if not mine:
        return None
    mine.sort(key=timestamp)
    right = next((i for i, attempt in enumerate(mine) if attempt["outcome"] == "right"), None)
    until = mine if right is None else mine[: right + 1]
    times = [timestamp(attempt) for attempt in until if timestamp(attempt)]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    names = {wrong.name for wrong in exercise.wrongs}
    wrong = Counter(
        attempt["wrong"] for attempt in until if isinstance(attempt.get("wrong"), str) and attempt["wrong"] in names
    )
    return Work(right is not None, len(until), sum(gap for gap in gaps if gap < PAUSE) / 60, wrong)


def timestamp(line: dict[str, Any]) -> float:
    """Time of a line in seconds since 1970; 0 if it has none."""
    try:
        return datetime.datetime.fromisoformat(line["time"]).timestamp()
    except (KeyError, TypeError, ValueError, OverflowError):
        return 0.0


# ---- writing --------------------------------------------------------------------------------------------------------


def points(works: dict[str, Work], exercises: list[Exercise]) -> int:
    return sum(exercise.points for exercise in exercises if exercise.name in works and works[exercise.name].right)


def as_csv(given: ClassReport) -> str:
    """One row per learner: points, then "right 2" or "tried 5" per exercise, with the number of attempts."""
    head = ["learner", "points", *(exercise.name for exercise in given.exercises)]
    rows = [
        [name, points(works, given.exercises), *(state(works.get(exercise.name)) for exercise in given.exercises)]
        for name, works in given.learners.items()
    ]
    return nb.to_csv([head, *rows])


def state(work: Work | None) -> str:
    return "" if work is None else f"{'right' if work.right else 'tried'} {work.attempts}"


def as_html(given: ClassReport) -> str:
    """HTML page: common wrong answers, results by exercise, unfinished work, and results by learner."""
    n = len(given.learners)
    begun = say("Learners: {n}. Exercises begun: {begun}.", n=n, begun=len(given.exercises))
    if given.unknown:
        begun += " " + say("{lines} lines were torn or name no exercise of this course.", lines=given.unknown)
    if given.missing:
        begun += " " + html.escape(without_file(given.missing))
    head = say("exercise"), say("wrong answer"), say("learners"), say("attempts"), say("what the hint says")
    wrong = wrong_answers(given)
    parts = [
        f"<p>{begun}</p>",
        f"<h2>{say('Wrong answers of the class')}</h2>",
        table(say("Mistakes to explain next, the most common first."), head, wrong[:COMMON]),
    ]
    if rarer := wrong[COMMON:]:
        summary = say("{count} less common ones", count=len(rarer))
        parts.append(f"<details><summary>{summary}</summary>{table(say('Less common.'), head, rarer)}</details>")
    parts += [
        f"<h2>{say('Exercises')}</h2>",
        table(
            say("Begun and right count learners; attempts and minutes are medians until it was right."),
            (
                say("exercise"),
                say("question"),
                say("begun"),
                say("right"),
                say("at the first attempt"),
                say("attempts"),
                say("minutes"),
            ),
            [exercise_row(exercise, given) for exercise in given.exercises],
        ),
    ]
    parts += [
        f"<h2>{say('Unfinished')}</h2>",
        table(
            say("Tried and not right yet, longest first. From {minutes} minutes on, go and ask.", minutes=f"{STUCK:g}"),
            (say("learner"), say("exercise"), say("attempts"), say("minutes"), say("last named wrong answers")),
            unfinished(given),
        ),
    ]
    marks = [
        (name, points(works, given.exercises), *(mark(works.get(exercise.name)) for exercise in given.exercises))
        for name, works in given.learners.items()
    ]
    parts += [
        f"<h2>{say('Learners')}</h2>",
        table(
            say(
                "{right} right, {tried} tried, {new} not begun; with the number of attempts.",
                right=RIGHT,
                tried=TRIED,
                new=NEW,
            ),
            (say("learner"), say("points"), *(exercise.name for exercise in given.exercises)),
            marks,
        ),
    ]
    return page(say("The class"), "\n".join(parts))


def without_file(names: list[str]) -> str:
    return say("No {files} to read in: {names}.", files=say(" or ").join(NAMES), names=", ".join(names))


def wrong_answers(given: ClassReport) -> list[tuple]:
    rows = []
    for exercise in given.exercises:
        for wrong in exercise.wrongs:
            times = [work.wrong[wrong.name] for work in given.at(exercise) if work.wrong[wrong.name]]
            if times:
                hint = say(wrong.hints[0]) if wrong.hints else ""
                rows.append((exercise.name, exercise.say(wrong.name), len(times), sum(times), hint))
    return sorted(rows, key=lambda row: (-row[2], -row[3]))


def exercise_row(exercise: Exercise, given: ClassReport) -> tuple:
    works = given.at(exercise)
    right = [work for work in works if work.right]
    return (
        exercise.name,
        say(exercise.question),
        len(works),
        len(right),
        sum(work.attempts == 1 for work in right),
        median(work.attempts for work in right),
        median(work.minutes for work in right),
    )


def median(values: Any) -> str:
    values = list(values)
    return f"{statistics.median(values):.3g}" if values else ""


def unfinished(given: ClassReport) -> list[tuple]:
    rows = [
        (name, exercise, work.attempts, round(work.minutes), ", ".join(map(say, work.wrong)))
        for name, works in given.learners.items()
        for exercise, work in works.items()
        if not work.right
    ]
    return sorted(rows, key=lambda row: (-row[3], -row[2]))


def mark(work: Work | None) -> str:
    return NEW if work is None else f"{RIGHT if work.right else TRIED} {work.attempts}"
