"""The page that `minflow lab` opens: each lesson with its question, its duration, and the learner's progress.

It is Markdown, because JupyterLab's preview opens a lesson with one click on its link. The data of a lesson come from
the first cell of its notebook (`lesson` reads it), in that notebook's language.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from ..io import atomic
from ..io.files import open_regular
from . import record
from .i18n import say

FILE = "welcome.md"
PICTURE, DRAWN_CODE = "docs/tape.svg", "((w * x).sum() - 3) ** 2"
GRAPHS = "07"  # the first lesson for readers who know eager code
GLOSSARY = "docs/glossary.md"
PYTORCH, ONEFLOW, TEACHERS = "docs/coming-from-pytorch.md", "docs/coming-from-oneflow.md", "docs/teaching/README.md"
MARK = "<!-- minflow writes this page anew: what you add to it is lost -->"


@dataclasses.dataclass(frozen=True)
class Lesson:
    """Data from a notebook's first cell.

    number: "02", or "R1" for a reading tour. minutes: 0 if unknown. exercises: names, in order, without the questions
    about earlier lessons, which give no points.
    """

    path: Path
    number: str
    title: str
    question: str
    minutes: int
    exercises: tuple[str, ...]


def lesson(path: Path) -> Lesson:
    """Read the head of a notebook: `# 02 - Title`, `**Question:** ...`, `**Time:** 40 minutes` in its first cell."""
    try:
        with open_regular(path) as file:
            cells = [("".join(cell["source"]), cell["cell_type"]) for cell in json.load(file)["cells"]]
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        RecursionError,
    ):  # the learner's file may be damaged; it is still listed
        cells = []
    head = cells[0][0] if cells else ""
    title = re.match(r"#\s+(?:\w+\s+-\s+)?(.+)", head)
    question = re.search(r"^\*\*(?:Question|问题)[:：]\*\*\s*(.+)$", head, re.MULTILINE)
    minutes = re.search(r"^\*\*(?:Time|时间)[:：]\*\*\s*(\d+)", head, re.MULTILINE)
    code = "\n".join(text for text, kind in cells if kind == "code")
    return Lesson(
        path,
        path.stem.partition("_")[0],
        title[1].strip() if title else path.stem,
        question[1].strip() if question else "",
        int(minutes[1]) if minutes else 0,
        tuple(dict.fromkeys(re.findall(r"^check\(\s*[\"'](?!recall_)(\w+)[\"']", code, re.MULTILINE))),
    )


def lessons(folder: Path, pattern: str = "[0-9][0-9]_*.ipynb") -> list[Lesson]:
    """Lessons of a folder, in order, without the new versions beside changed ones."""
    return [lesson(path) for path in sorted(folder.glob(pattern)) if not re.search(r"\.new\d*$", path.stem)]


def tours(folder: Path) -> list[Lesson]:
    """Reading tours of a folder, in order."""
    return lessons(folder, "inside/R[0-9]_*.ipynb")


def page(folder: Path) -> str:
    """Markdown of the page for a learner's folder."""
    attempts = record.attempts(record.progress_file(folder) or folder / record.FILE)
    states = record.states(attempts)
    course, inside = lessons(folder), tours(folder)
    lines = [MARK, "", f"# {say('minflow: look inside a program that learns')}", "", *about(folder)]
    next_lesson, _ = record.next_exercise({item.number: item.exercises for item in course}, attempts)
    if todo := [item for item in course if item.number == next_lesson]:
        lines += ["", f"**{say('Go on with') if attempts else say('Begin with')} {link(todo[0], folder)}**"]
    lines += ["", *starting_points(folder, course)]
    marks = {"right": record.MARKS["right"], "tried": record.MARKS["tried"], "new": record.MARKS[""]}
    lines += [
        "",
        f"## {say('The course')}",
        "",
        say(
            "{count} lessons, about {hours} hours in all with their exercises. Click one to open it. In it, "
            "Shift+Enter runs a cell and goes to the next one.",
            count=len(course),
            hours=hours(course),
        ),
        "",
        *table(course, folder, states),
        "",
        say(
            "Exercises: {right} right, {tried} tried, {new} not yet. Reload this page in the browser (F5) to see "
            "what you have done since.",
            **marks,
        ),
    ]
    if (folder / GLOSSARY).is_file():
        lines += ["", say("[The words of the course]({file}), in English and Chinese.", file=GLOSSARY)]
    if inside:
        lines += [
            "",
            f"## {say('Inside minflow')}",
            "",
            say(
                "{count} tours, about {hours} hours, for those who want to read how it is made. No lesson needs them.",
                count=len(inside),
                hours=hours(inside),
            ),
            "",
            *table(inside, folder, states),
        ]
    return "\n".join(lines) + "\n"


def about(folder: Path) -> list[str]:
    """Paragraph about minflow, beside a picture drawn by it."""
    words = say("the tape of a loss, as minflow draws it")
    picture = [f'<img src="{PICTURE}" align="right" width="180" alt="{words}">', ""]
    there = (folder / PICTURE).is_file()
    caption = " " + say("The picture is the tape of {code}, drawn by minflow.", code=f"`{DRAWN_CODE}`")
    return [
        *(picture if there else []),
        say(
            "minflow is a small deep-learning framework with the names of PyTorch and OneFlow. "
            "You can look at everything in it while it runs: the tape behind a gradient, the tree of a network, "
            "the loss as it falls. The course goes "
            "from a first program that learns to a GPT that adds. Its lessons are notebooks with exercises that check "
            "themselves. They are your own copies: change what you like."
        )
        + (caption if there else ""),
    ]


def starting_points(folder: Path, course: list[Lesson]) -> list[str]:
    """Table of where readers of different experience start, with links to files of the folder."""
    by_number = {item.number: link(item, folder) for item in course}

    def links(*places: tuple[str, str]) -> list[str]:
        return [f"[{text}]({place})" for text, place in places if (folder / place).is_file()]

    first = [link(item, folder) for item in course[:1]]
    graphs = [by_number[GRAPHS]] if GRAPHS in by_number else []
    rows = {
        say("know Python, but not deep learning"): first,
        say("know PyTorch or OneFlow"): [
            *graphs,
            *links(("Coming from PyTorch", PYTORCH), ("Coming from OneFlow", ONEFLOW)),
        ],
        say("want to teach it"): links(("For teachers", TEACHERS)),
    }
    return [
        f"| {say('if you')} | {say('start with')} |",
        "|---|---|",
        *(f"| {who} | {', '.join(where)} |" for who, where in rows.items() if where),
    ]


def hours(course: Iterable[Lesson]) -> str:
    """Total duration of lessons in hours, such as "27.8" or "2"."""
    return f"{sum(item.minutes for item in course) / 60:.1f}".removesuffix(".0")


def is_done(item: Lesson, states: dict[str, str]) -> bool:
    """True if all exercises of a lesson were right once; False for a lesson without exercises."""
    return bool(item.exercises) and all(states.get(name) == "right" for name in item.exercises)


def table(course: Iterable[Lesson], folder: Path, states: dict[str, str]) -> list[str]:
    heads = [say("lesson"), say("its question"), say("minutes"), say("exercises")]
    rows = ["| " + " | ".join(heads) + " |", "|---|---|---|---|"]
    for item in course:
        signs = "".join(record.MARKS[states.get(name, "")] for name in item.exercises)
        right = sum(states.get(name) == "right" for name in item.exercises)
        count = say("{right} of {all}", right=right, all=len(item.exercises)) if item.exercises else ""
        cells = [link(item, folder), item.question, str(item.minutes or ""), f"{signs} {count}".strip()]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return rows


def link(item: Lesson, folder: Path) -> str:
    return f"[{item.number} - {item.title}]({quote(item.path.relative_to(folder).as_posix())})"


def refresh() -> None:
    """Rewrite the page of the learner whose notebook is running, if there is one.

    It is the nearest page above the working directory, since each language has its own folder and page.
    """
    kept, here = record.progress_file(), Path.cwd()
    for folder in (here, *here.parents) if kept else ():
        if (folder / FILE).is_file():
            write(folder)
            break
        if folder == kept.parent:
            break


def write(folder: Path) -> Path | None:
    """Write the page into a learner's folder.

    Returns the file, or None if the learner has a file of that name or the folder is read-only.
    """
    path = folder / FILE
    try:
        with open_regular(path) as file:
            if not file.read(len(MARK)).decode(errors="replace").startswith(MARK):
                return None
    except FileNotFoundError:
        pass
    except OSError:
        return None
    text = page(folder).encode("utf-8", "replace")
    try:
        atomic.write(path, text)
    except OSError:
        return None
    return path
