"""The page that `minflow lab` opens: each lesson with its question, its minutes, and what the learner has done.

It is Markdown, since JupyterLab's preview opens a lesson at one click on its link. What it says of a lesson stands in
the first cell of the notebook (`lesson` reads it), in the language of that notebook.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from . import record
from .words import say

FILE = "welcome.md"
MARK = "<!-- minflow writes this page anew: what you add to it is lost -->"


@dataclasses.dataclass(frozen=True)
class Lesson:
    """What a notebook says of itself. number: "02", or "R1" of a reading tour.  minutes: 0 if it does not say.
    exercises: names, in the order of the notebook."""

    path: Path
    number: str
    title: str
    question: str
    minutes: int
    exercises: tuple[str, ...]


def lesson(path: Path) -> Lesson:
    """Read the head of a notebook: `# 02 - Title`, `**Question:** ...`, `**Time:** 40 minutes` in its first cell."""
    try:
        cells = [("".join(cell["source"]), cell["cell_type"]) for cell in json.loads(path.read_bytes())["cells"]]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):  # the learner's file: it is still listed
        cells = []
    head = cells[0][0] if cells else ""
    title = re.match(r"#\s+(?:\w+\s+-\s+)?(.+)", head)
    question = re.search(r"^\*\*(?:Question|问题)[:：]\*\*\s*(.+)$", head, re.MULTILINE)
    minutes = re.search(r"^\*\*(?:Time|时间)[:：]\*\*\s*(\d+)", head, re.MULTILINE)
    code = "\n".join(text for text, kind in cells if kind == "code")
    return Lesson(path, path.stem.partition("_")[0], title[1].strip() if title else path.stem,
                  question[1].strip() if question else "", int(minutes[1]) if minutes else 0,
                  tuple(dict.fromkeys(re.findall(r"^check\(\s*[\"'](\w+)[\"']", code, re.MULTILINE))))


def lessons(folder: Path, pattern: str = "[0-9][0-9]_*.ipynb") -> list[Lesson]:
    """Those of a folder, in their order, without the new versions that lie beside changed ones."""
    return [lesson(path) for path in sorted(folder.glob(pattern)) if not re.search(r"\.new\d*$", path.stem)]


def tours(folder: Path) -> list[Lesson]:
    """The reading tours through minflow's own source."""
    return lessons(folder, "inside/R[0-9]_*.ipynb")


def page(folder: Path) -> str:
    """The page of a learner's folder, as Markdown."""
    states = record.states(record.attempts(record.place(folder) or folder / record.FILE))
    course = lessons(folder)
    lines = [MARK, "", f"# {say('The course')}", "",
             say("Click a lesson to open it. In it, Shift+Enter runs a cell and goes to the next one.")]
    begun = [i for i, one in enumerate(course) if any(name in states for name in one.exercises)]
    if todo := [one for one in course[max(begun, default=0):] if not done(one, states)]:
        lines += ["", f"**{say('Go on with') if begun else say('Begin with')} {link(todo[0], folder)}**"]
    marks = {"right": record.MARKS["right"], "tried": record.MARKS["tried"], "new": record.MARKS[""]}
    lines += ["", *table(course, folder, states), "",
              say("Exercises: {right} right, {tried} tried, {new} not yet. Reload this page in the browser (F5) to see "
                  "what you have done since.", **marks)]
    if inside := tours(folder):
        lines += ["", f"## {say('Inside minflow')}", "",
                  say("Tours for those who want to read how it is made. No lesson needs them."), "",
                  *table(inside, folder, states)]
    return "\n".join(lines) + "\n"


def done(one: Lesson, states: dict[str, str]) -> bool:
    """Whether all its exercises were right once; of a lesson without any nobody knows."""
    return bool(one.exercises) and all(states.get(name) == "right" for name in one.exercises)


def table(course: Iterable[Lesson], folder: Path, states: dict[str, str]) -> list[str]:
    heads = [say("lesson"), say("its question"), say("minutes"), say("exercises")]
    rows = ["| " + " | ".join(heads) + " |", "|---|---|---|---|"]
    for one in course:
        signs = "".join(record.MARKS[states.get(name, "")] for name in one.exercises)
        right = sum(states.get(name) == "right" for name in one.exercises)
        count = say("{right} of {all}", right=right, all=len(one.exercises)) if one.exercises else ""
        cells = [link(one, folder), one.question, str(one.minutes or ""), f"{signs} {count}".strip()]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return rows


def link(one: Lesson, folder: Path) -> str:
    return f"[{one.number} - {one.title}]({quote(one.path.relative_to(folder).as_posix())})"


def refresh() -> None:
    """Write the page of the learner whose notebook runs, if there is one: the nearest above it, since each language has
    a folder and a page of its own."""
    kept, here = record.place(), Path.cwd()
    for folder in (here, *here.parents) if kept else ():
        if (folder / FILE).is_file():
            write(folder)
            break
        if folder == kept.parent:
            break


def write(folder: Path) -> Path | None:
    """Write the page into a learner's folder. Returns the file; None where a file of theirs is in its place, or none
    can be written."""
    path = folder / FILE
    try:
        if path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(MARK):
            return None
        path.write_text(page(folder), encoding="utf-8")
    except OSError:
        return None
    return path
