"""Exercises outside the package: folders of a teacher's own definitions, and of lessons with them.

Folders are named by `$MINFLOW_EXERCISES` (several are separated as in PATH) and by installed packages, under the entry
point group `minflow.exercises`. A folder has a file per exercise, itself or in subfolders such as `l17`, and notebooks
such as `17_tides.ipynb`. A file is read again when it has changed. Read next: `registry.py`.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import linecache
import os
import re
import sys
import traceback
import types
import warnings
from collections.abc import Iterable
from pathlib import Path

from ..core.base.errors import MinflowError, MinflowWarning
from .definition import NOT_GIVEN, Exercise

VARIABLE = "MINFLOW_EXERCISES"
GROUP = "minflow.exercises"
LESSON_PATTERN = "[0-9][0-9]_*.ipynb"
LOADED: dict[Path, tuple[int, Exercise | DefinitionError]] = {}  # by file: time of its last change, outcome
WARNED: set[str] = set()


class DefinitionError(MinflowError, LookupError):
    """A definition that cannot be used. `where` is its file and line."""


def folders() -> list[Path]:
    """External folders, in order, each once."""
    named = filter(None, os.environ.get(VARIABLE, "").split(os.pathsep))
    every = [*(Path(name).expanduser().resolve() for name in named), *installed_folders()]
    return list(dict.fromkeys(every))


def add_folder(folder: Path) -> None:
    """Add a folder for this process and those that it starts, before the others."""
    if folder.resolve() not in folders():
        earlier = os.environ.get(VARIABLE, "")
        os.environ[VARIABLE] = os.pathsep.join(filter(None, [str(folder.resolve()), earlier]))


@functools.cache
def installed_folders() -> tuple[Path, ...]:
    """Folders of installed packages, found without importing them."""
    result = []
    for point in importlib.metadata.entry_points(group=GROUP):
        try:
            spec = importlib.util.find_spec(point.value)
        except ImportError:
            spec = None
        places = list(spec.submodule_search_locations or ()) if spec else []
        if not places:
            fault = DefinitionError(
                f"the exercises of {point.dist.name if point.dist else point.name} cannot be found",
                where=f"in the entry point {point.name} = {point.value}",
                hint="name a package, the folder that contains the definitions",
            )
            warn(fault, point.value, 1)
        result += [Path(place).resolve() for place in places]
    return tuple(result)


def files() -> dict[str, list[Path]]:
    """Exercise -> the files of this name; more than one clash."""
    result: dict[str, list[Path]] = {}
    for folder in folders():
        for file in sorted([*folder.glob("*.py"), *folder.glob("l[0-9][0-9]/*.py")]):
            if not file.name.startswith("_"):
                result.setdefault(file.stem, []).append(file)
    return result


def notebooks(course: Iterable[Path]) -> dict[str, Path]:
    """Lesson ("02") -> its notebook: those of the course and external ones. Raises DefinitionError for a number that
    two notebooks have.
    """
    result: dict[str, Path] = {}
    for file in [*course, *(file for folder in folders() for file in sorted(folder.glob(LESSON_PATTERN)))]:
        number = file.name[:2]
        if number in result:
            raise clash(f"lesson {number}", [result[number], file])
        result[number] = file
    return result


def load(file: Path) -> Exercise:
    """Exercise of a file. Raises DefinitionError with the file and line."""
    try:
        changed = file.stat().st_mtime_ns
    except OSError as error:
        raise DefinitionError(f"the definition cannot be read: {error.strerror}", where=f"in {file}") from None
    if file not in LOADED or LOADED[file][0] != changed:
        outcome: Exercise | DefinitionError
        try:
            outcome = run(file)
        except DefinitionError as error:
            outcome = error
        LOADED[file] = changed, outcome
    result = LOADED[file][1]
    if isinstance(result, DefinitionError):
        raise result
    return result


def run(file: Path) -> Exercise:
    """Run a definition. Others cannot import it as a module, so `grade` sends its functions as code."""
    linecache.checkcache(str(file))
    module = types.ModuleType(f"minflow_exercise_{file.stem}")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        exec(compile(file.read_bytes(), str(file), "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as error:
        raise DefinitionError(
            f"the definition of exercise {file.stem!r} cannot be used: {type(error).__name__}: {error}",
            where=f"in {file}, line {line_of(error, file)}",
            hint="correct this line; check, grade and the course's own exercises work without it meanwhile",
        ) from error
    finally:
        del sys.modules[module.__name__]
    exercise = module.__dict__.get("exercise")
    if problem := mismatch(exercise, file):
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        line = next((i for i, text in enumerate(lines, 1) if re.match(r"exercise\b", text)), 1)
        raise DefinitionError(
            f"the definition of exercise {file.stem!r} cannot be used: {problem}", where=f"in {file}, line {line}"
        )
    return exercise  # type: ignore[return-value]


def mismatch(exercise: object, file: Path) -> str:
    """Disagreement between a definition and its file, or a part that every check needs; "" if there is none."""
    if not isinstance(exercise, Exercise):
        return "it must bind `exercise` to an Exercise"
    if exercise.name != file.stem:
        return f"its Exercise is named {exercise.name!r}, so the file must be {exercise.name}.py"
    if not exercise.name.isidentifier():
        return f"{exercise.name!r} is not a name in Python"
    if not re.fullmatch(r"\d\d\.\d+", str(exercise.number)):
        return f"its number must be lesson and position, such as '17.1', got {exercise.number!r}"
    if file.parent not in folders() and file.parent.name != f"l{exercise.lesson}":
        return f"it is in the folder {file.parent.name}, but its number is {exercise.number}"
    if exercise.right is NOT_GIVEN:
        return "it has no answer decorated by @exercise.solution"
    if exercise.make_cases is None and not exercise.value:
        return "it has no function decorated by @exercise.cases"
    return ""


def line_of(error: BaseException, file: Path) -> int:
    """Line of the file where the error was raised; the first if none was running."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return error.lineno or 1
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return (lines[-1] if lines else None) or 1


def clash(what: str, places: list[Path]) -> DefinitionError:
    """Error for a name that several files have. what: such as "exercise 'slope'"."""
    return DefinitionError(
        f"{len(places)} files define {what}",
        values={str(i): place for i, place in enumerate(places, 1)},
        hint="give each a name of its own; lessons from 17 on are not the course's",
    )


def warn(error: DefinitionError, file: object, line: int) -> None:
    """Warn once about a definition that is left out of lists."""
    if str(error) not in WARNED:
        WARNED.add(str(error))
        warning = MinflowWarning(str(error))
        warning.parts = error
        warnings.warn_explicit(warning, MinflowWarning, str(file), line)
