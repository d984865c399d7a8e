"""Registry of exercises: those of the course, by lesson from the file names, and external ones (external.py).

Each exercise of the course is imported on first use.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from pathlib import Path

from ..core.base.errors import MinflowError
from ..core.source_location import here
from ..diagnosis.name_suggestions import similar_names
from . import external
from .definition import Exercise

FOLDER = Path(__file__).parent / "lessons"


class UnknownExercise(MinflowError, LookupError):
    """The name of an exercise does not exist."""


@functools.cache
def course_lessons() -> dict[str, list[str]]:
    """Lesson ("02") of the course -> names of its exercises, in alphabetical order."""
    return {
        folder.name[1:]: sorted(file.stem for file in folder.glob("*.py") if file.stem != "__init__")
        for folder in sorted(FOLDER.glob("l[0-9][0-9]"))
    }


def lessons() -> dict[str, list[str]]:
    """Lesson ("02") -> names of its exercises, external ones too.

    A definition that cannot be used, or whose name is not its own, is left out with a warning.
    """
    others = external.files()
    result = {lesson: [name for name in names if name not in others] for lesson, names in course_lessons().items()}
    for name, places in others.items():
        try:
            result.setdefault(find(name).lesson, []).append(name)
        except external.DefinitionError as error:
            external.warn(error, places[0], 1)
    return {lesson: sorted(names) for lesson, names in sorted(result.items())}


def find(name: str) -> Exercise:
    """Exercise by name. Raises UnknownExercise with similar names, or external.DefinitionError."""
    places = external.files().get(name, [])
    if file := course_file(name):
        places = [file, *places]
    if len(places) > 1:
        raise external.clash(f"exercise {name!r}", places)
    if places:
        return import_exercise(file.parent.name, name) if file else external.load(places[0])
    if re.match("r[1-6]_", str(name)) and (found := readings(name[:2]).get(name)):
        return found
    if (variant := re.fullmatch(r"(\w+)_([0-9a-f]{8})", str(name))) and course_file(variant[1]):
        return importlib.import_module(".exam.variants", __package__).variant(*variant.groups())
    every = [other for names in lessons().values() for other in names]
    near = similar_names(str(name), every)
    hint = f"did you mean {' or '.join(near)}?" if near else "progress() lists all exercises"
    raise UnknownExercise(f"there is no exercise {name!r}", where=here(), hint=hint)


@functools.cache
def import_exercise(lesson: str, name: str) -> Exercise:
    """Exercise of the course."""
    return importlib.import_module(f".lessons.{lesson}.{name}", __package__).exercise


def course_file(name: str) -> Path | None:
    """File that defines an exercise of the course; None for another name."""
    lesson = next((lesson for lesson, names in course_lessons().items() if name in names), "")
    return FOLDER / f"l{lesson}" / f"{name}.py" if lesson else None


def forget() -> None:
    """Forget all definitions: the next `find` reads them from disk."""
    for module in [module for module in sys.modules if module.startswith(f"{__package__}.lessons.")]:
        del sys.modules[module]
    import_exercise.cache_clear()
    external.LOADED.clear()


def readings(tour: str) -> dict[str, Exercise]:
    """Name -> question of a reading tour ("r1"), in order. They are not part of the course."""
    return {reading.name: reading for reading in importlib.import_module(f".inside.{tour}", __package__).readings}


def lesson_exercises(lesson: str) -> list[Exercise]:
    """Exercises of a lesson ("02"), in order."""
    return sorted((find(name) for name in lessons().get(lesson, ())), key=sort_key)


def sort_key(exercise: Exercise) -> tuple[int, int]:
    """Sort key of an exercise: (2, 1) for "02.1"."""
    lesson, _, number = exercise.number.partition(".")
    return int(lesson), int(number)


def all_exercises() -> list[Exercise]:
    """All exercises, in the order of the course."""
    return [exercise for lesson in lessons() for exercise in lesson_exercises(lesson)]
