"""`minflow exercises grade`: mark untrusted notebooks.

Only the answers are taken from a learner's notebook, by the ids of their cells (notebook.py). Each answer runs in its
own process (worker.py) with limits of time and memory, after the cells of the released lesson that it needs. A reader
of this package can find the hidden cases and, with effort, report success from inside: if marks matter, look at the
answers too.
"""

from __future__ import annotations

import ast
import builtins
import concurrent.futures
import dataclasses
import json
import os
import secrets
import signal
import subprocess
import symtable
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .. import cells
from ..card import Card
from ..definition import Exercise
from ..i18n import say
from . import notebook as nb

# Names that make an answer suspicious unless the solution uses them too.
SUSPICIOUS = {
    "minflow.exercises",
    "inspect",
    "gc",
    "ctypes",
    "importlib",
    "sys",
    "builtins",
    "__import__",
    "eval",
    "exec",
    "__subclasses__",
    "__globals__",
    "__closure__",
    "__traceback__",
    "tb_frame",
    "f_back",
    "gi_frame",
    "cr_frame",
}
COLUMNS = ("file", "lesson", "exercise", "points", "of", "outcome", "wrong answer", "remark")
BOOTSTRAP = "import sys; sys.path[:] = {path!r}; from minflow.exercises.teach.worker import main; main()"
SETUP_SECONDS, CASE_LIMIT_FACTOR = (
    30.0,
    15.0,
)  # seconds for start-up and the lesson's cells; limit of all cases, as a multiple of one case
MAX_OUTPUT_BYTES = 100_000  # bytes read from a process's output


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits and seeds of grading.

    memory: GB per answer. seconds: per answer; None means by its exercise. seed: seed of the cases. word: the teacher's
    word, which selects drawn questions.
    """

    memory: float = 2.0
    seconds: float | None = None
    seed: int = 0
    word: str = ""

    def time_for(self, exercise: Exercise) -> float:
        return self.seconds or SETUP_SECONDS + CASE_LIMIT_FACTOR * exercise.time_limit


@dataclasses.dataclass(frozen=True)
class Mark:
    """Mark of one exercise in one notebook, or, without an exercise, of an unreadable file.

    card: what the check shows; None if nothing was judged.
    """

    file: str
    lesson: str = ""
    exercise: str = ""
    points: float = 0.0
    of: int = 0
    outcome: str = "unreadable"
    wrong: str = ""
    remark: str = ""
    card: Card | None = None

    def row(self) -> tuple[Any, ...]:
        return (
            self.file,
            self.lesson,
            self.exercise,
            f"{self.points:g}",
            self.of,
            self.outcome,
            self.wrong,
            self.remark,
        )


def grade(
    paths: Iterable[str], limits: Limits, jobs: int | None = None, release: dict[str, Any] | None = None
) -> Iterator[Mark]:
    """Yield the marks of all exercises, notebook by notebook.

    jobs: parallel processes (default: one per core). release: the notebook that was given out, or the teacher's one of
    an exam; by default that of the lesson.
    """
    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        try:
            for path in nb.notebooks(paths):
                try:
                    notebook = nb.read(path)
                    released = release or nb.release_of(notebook, path)
                except (nb.NotebookError, LookupError) as error:
                    yield unreadable(path, error)
                    continue
                futures = [
                    pool.submit(mark, str(path), notebook, released, exercise, limits)
                    for exercise in nb.exercises_of(released)
                ]
                yield from (future.result() for future in futures)
        finally:
            pool.shutdown(cancel_futures=True)


def unreadable(path: Path, error: Exception) -> Mark:
    """Mark of a file that cannot be marked: 0 of the points of its lesson, if its name or its folder says which."""
    lesson = nb.lesson_named(path)
    unknown = "" if lesson else say("its name does not say its lesson, so its points are missing from the sums")
    return Mark(str(path), lesson, of=nb.points_of(lesson), remark="; ".join(filter(None, (str(error), unknown))))


def mark(file: str, notebook: dict[str, Any], released: dict[str, Any], exercise: Exercise, limits: Limits) -> Mark:
    """Mark one answer."""
    answer, remark = nb.find_answer(notebook, exercise)
    place = Mark(file, exercise.lesson, exercise.name, of=exercise.points, remark=remark)
    if cells.is_untouched(exercise.name, answer):
        return dataclasses.replace(place, outcome="not started")
    given = run_answer(exercise, setup_cells(notebook, released, exercise, answer), answer, limits)
    odd = sorted((mentioned_names(answer) - mentioned_names(cells.solved_cell(exercise.name))) & SUSPICIOUS)
    remarks = [text for text in (remark, str(given.get("remark", "")), odd and f"look at it: {', '.join(odd)}") if text]
    right = given.get("outcome") == "right"
    return dataclasses.replace(
        place,
        outcome=str(given.get("outcome", "")),
        wrong=str(given.get("wrong", "")),
        points=float(exercise.points) if right else exercise.partial.get(str(given.get("wrong", "")), 0.0),
        remark="; ".join(remarks),
    )


# ---- the cells that an answer needs ---------------------------------------------------------------------------------


def setup_cells(notebook: dict[str, Any], released: dict[str, Any], exercise: Exercise, answer: str) -> list[str]:
    """Sources of the cells to run before the answer.

    They are the first code cell of the release, and the cells above the answer that bind a name used in the answer or,
    recursively, in such a cell. If such a name belongs to another exercise, the learner's answer to that exercise is
    used.
    """
    known = nb.exercise_cells(released)
    others = {other.name: other for other in nb.exercises_of(released) if other is not exercise}
    above: list[str] = []
    for cell in released["cells"]:
        other, part = next((known[name] for name in nb.cell_ids(cell) if name in known), (None, ""))
        if other is exercise and part == "answer":
            break
        if cell.get("cell_type") == "code":
            if other is None:
                above.append(nb.as_python(cell["source"]))
            elif part == "answer" and other.name in others:
                above.append(nb.as_python(nb.find_answer(notebook, other)[0]))
    taken = set(range(min(1, len(above))))
    names = used_names(answer) | set(exercise.given)
    while more := {i for i, source in enumerate(above) if i not in taken and nb.bound_names(source) & names}:
        taken |= more
        names |= {name for i in more for name in used_names(above[i])}
    return [above[i] for i in sorted(taken)]


def used_names(source: str) -> set[str]:
    """Global names that a cell looks up, without builtins."""
    try:
        todo = [symtable.symtable(nb.as_python(source), "cell", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    names: set[str] = set()
    while todo:
        table = todo.pop()
        todo += table.get_children()
        names |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (symbol.is_global() or table.get_type() == "module")
        }
    return names - set(vars(builtins))


def mentioned_names(source: str) -> set[str]:
    """Names, attributes and modules mentioned in a cell."""
    try:
        tree = ast.parse(nb.as_python(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    names = {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names | {".".join(name.split(".")[:2]) for name in names}


# ---- the process ----------------------------------------------------------------------------------------------------


def run_answer(exercise: Exercise, cells_before: list[str], answer: str, limits: Limits) -> dict[str, Any]:
    """Judge an answer in a new process. Returns {"outcome", "wrong", "remark"}."""
    token, seconds = secrets.token_hex(16), limits.time_for(exercise)
    question = {
        "exercise": exercise.name,
        "before": cells_before,
        "answer": nb.as_python(answer),
        "token": token,
        "seed": limits.seed,
        "memory": limits.memory,
        "seconds": seconds,
    }
    path = [folder for folder in sys.path if folder]
    kept = {key: value for key, value in os.environ.items() if key != "NBGRADER_EXECUTION"}
    settings = {
        "MINFLOW_GRADING": "1",
        "MINFLOW_LIVE": "0",
        "MINFLOW_CARDS": "0",
        "MINFLOW_PROGRESS": "0",
        "MINFLOW_WORD": limits.word,
        "MINFLOW_SEED": str(limits.seed),
        "MINFLOW_LANG": "en",
        "MINFLOW_MACHINE": "0",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONIOENCODING": "utf-8",
        "MPLBACKEND": "agg",
    }
    with (
        tempfile.TemporaryDirectory(prefix="minflow-grade-", ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile() as out,
    ):
        process = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", "-c", BOOTSTRAP.format(path=path)],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=kept | settings,
            start_new_session=os.name == "posix",
        )
        late = False
        try:
            process.communicate(json.dumps(question).encode(), timeout=seconds)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            kill(process)
        out.seek(0)
        lines = out.read(MAX_OUTPUT_BYTES).decode("utf-8", "replace").splitlines()
    if late:
        return {"outcome": "stopped", "remark": f"stopped after {seconds:g} s"}
    for line in lines:
        if line.startswith(token):
            return dict(json.loads(line.removeprefix(token)))
    return {"outcome": "stopped", "remark": exit_remark(process.returncode)}


def kill(process: subprocess.Popen) -> None:
    """Kill the process and its children."""
    if os.name == "posix":
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
    process.kill()
    process.wait()


def exit_remark(code: int) -> str:
    """Remark on a process that ended without a verdict. code: its return code."""
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        return f"its process was ended by {name}" + (": out of processor time" if name == "SIGXCPU" else "")
    return "it ended its process"


def summary(marks: Iterable[Mark]) -> list[str]:
    """Points of each file, one line per file."""
    sums: dict[str, list[float]] = {}
    for mark in marks:
        total = sums.setdefault(mark.file, [0.0, 0.0])
        total[0] += mark.points
        total[1] += mark.of
    return [f"{nb.printable(file)}: {got:g} of {of:g}" for file, (got, of) in sums.items()]
