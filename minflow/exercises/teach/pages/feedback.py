"""Pages that `minflow exercises grade` writes beside the marks: one per notebook, for its student, and an index.

Names of files and everything in an answer may contain HTML, which is escaped. Read next: `html_page.py`.
"""

from __future__ import annotations

import html
import itertools
import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from ....io import atomic
from ...card import card_html
from ...i18n import say
from ...registry import find
from .. import notebook as nb
from ..grade import Mark
from .html_page import Html, page, table

INDEX = "index.html"


def write(marks: Iterable[Mark], folder: Path) -> Path:
    """Write the pages of all notebooks into `folder`, in the folders that the notebooks are in. Returns the index.

    Pages of notebooks that were graded into the folder before stay. Raises OSError.
    """
    of_file: dict[str, list[Mark]] = {}
    for mark in marks:
        of_file.setdefault(mark.file, []).append(mark)
    pages = page_names(of_file)
    for file, own in of_file.items():
        path = folder / pages[file]
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write(path, student_page(own, str(pages[file].with_suffix(""))).encode("utf-8", "replace"))
    atomic.write(folder / INDEX, index_page(of_file, pages).encode("utf-8", "replace"))
    return folder / INDEX


def page_names(files: Iterable[str]) -> dict[str, Path]:
    """Notebook -> path of its page, relative to the folder of the pages: as below the notebooks' common folder."""
    paths = {file: Path(os.path.abspath(file)) for file in files}
    try:
        common = os.path.commonpath([path.parent for path in paths.values()])
    except ValueError:  # on several drives
        common = None
    taken, result = {INDEX}, {}
    for file, path in paths.items():
        inside = path.relative_to(common) if common else Path(*path.parts[1:])
        names = (
            inside.with_name(f"{inside.stem}{number}.html") for number in itertools.chain([""], itertools.count(2))
        )
        result[file] = next(name for name in names if str(name).casefold() not in taken)
        taken.add(str(result[file]).casefold())
    return result


def points_text(marks: Iterable[Mark]) -> str:
    marks = list(marks)
    return say("{got} of {of}", got=f"{sum(mark.points for mark in marks):g}", of=sum(mark.of for mark in marks))


# ---- a student's page -----------------------------------------------------------------------------------------------


def student_page(marks: list[Mark], name: str) -> str:
    """Page of one notebook. name: where its page is, which names the student."""
    lesson = marks[0].lesson
    head = [html.escape(nb.printable(name)), html.escape(say("{points} points", points=points_text(marks)))]
    parts = [f"<p>{' &middot; '.join(head)}</p>"]
    if marks[0].outcome == "unreadable":
        text = say(
            "This file could not be read: {reason}. Nothing in it was marked.", reason=nb.printable(marks[0].remark)
        )
        parts.append(f"<p>{html.escape(text)}</p>")
    else:
        parts += [exercise_part(mark) for mark in marks]
    return page(lesson_title(lesson), "\n".join(parts))


def lesson_title(lesson: str) -> str:
    """Title such as "02 - Downhill", in the language of the command."""
    try:
        first = nb.read_release(nb.releases([lesson])[lesson])["cells"][0]["source"]
    except (nb.NotebookError, LookupError):
        return say("Feedback")
    return re.sub(r"^#+\s*", "", first.splitlines()[0]) if first else lesson


def exercise_part(mark: Mark) -> str:
    """Section of one exercise: its question, its points and the card."""
    exercise = find(mark.exercise)
    head = f"{exercise.number} {say(exercise.question)}".strip()
    points = points_text([mark]) if mark.of else say("no points")
    return (
        f"<section>\n<h2>{html.escape(head)} <span>{html.escape(points)}</span></h2>\n"
        f"{card_html(mark.card).replace('<details', '<details open') if mark.card else outcome_part(mark)}\n</section>"
    )


def outcome_part(mark: Mark) -> str:
    """Sentence for an answer that could not be judged."""
    texts = {"not started": say("There is no answer to this one.")}
    text = texts.get(mark.outcome) or say(
        "This answer could not be judged: {reason}.", reason=nb.printable(mark.remark)
    )
    return f"<p>{html.escape(text)}</p>"


# ---- the teacher's page ---------------------------------------------------------------------------------------------


def index_page(of_file: dict[str, list[Mark]], pages: dict[str, Path]) -> str:
    """Page with the points of each notebook, what is not right, and remarks, which students' pages do not show."""
    rows = []
    for file, marks in of_file.items():
        path = pages[file]
        text = html.escape(nb.printable(str(path.with_suffix(""))))
        link = quote(path.as_posix(), errors="surrogateescape")
        open_ = ", ".join(mark.exercise for mark in marks if mark.exercise and mark.outcome != "right")
        remarks = "; ".join(f"{mark.exercise}: {mark.remark}".removeprefix(": ") for mark in marks if mark.remark)
        rows.append((Html(f'<a href="{link}">{text}</a>'), points_text(marks), open_, nb.printable(remarks)))
    head = say("student"), say("points"), say("not right"), say("remarks")
    return page(
        say("Feedback"), table(say("Remarks are for teachers; the pages of students do not show them."), head, rows)
    )
