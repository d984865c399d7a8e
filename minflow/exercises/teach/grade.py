"""`minflow exercises grade`: mark untrusted notebooks.

Only the answers are taken from a learner's notebook, by the ids of their cells (notebook.py). Each answer runs in its
own process (grading/process.py), after the cells of the released lesson that it needs, and returns its results as
plain data. They are judged here, by the definition, which that process does not have. Nothing in a notebook ends the
run or changes another mark.
"""

from __future__ import annotations

import ast
import builtins
import collections
import concurrent.futures
import dataclasses
import functools
import os
import symtable
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from .. import cells, judge
from ..answer_source import AnswerSource, definitions
from ..card import Card, error_text, make_card
from ..checker import draw_for
from ..definition import Case, Exercise
from ..grading import process, wire, worker
from ..grading.process import Limits as Limits, Response
from ..i18n import say
from ..limits import OutOfTime, limited
from ..registry import find
from ..runner import Result
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
TRIAL = "slope"  # exercise of the trial; its solution needs no cell above it
MAX_REMARK = 300  # characters
COLUMNS = ("file", "lesson", "exercise", "points", "of", "outcome", "wrong answer", "remark")


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
    """Yield the marks of all exercises, notebook by notebook, each as soon as it is known.

    jobs: parallel processes (default: one per core). release: the notebook that was given out, or the teacher's one of
    an exam; by default that of the lesson. Raises process.WorkerFailed if answers cannot be run here.
    """
    jobs = jobs or os.cpu_count() or 1
    try_right_answer(limits)
    pending: collections.deque[Callable[[], Mark]] = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        try:
            for task in tasks(paths, limits, pool, release):
                pending.append(task)
                if len(pending) > 2 * jobs:  # enough for all processes; more would hold many notebooks in memory
                    yield pending.popleft()()
            while pending:
                yield pending.popleft()()
        finally:
            pool.shutdown(cancel_futures=True)


def try_right_answer(limits: Limits) -> None:
    """Mark a right answer: what fails on this machine must not look like mistakes of the students.

    Raises process.WorkerFailed.
    """
    exercise, answer = find(TRIAL), cells.solved_cell(TRIAL)
    seconds = limits.time_for(exercise)
    future = call_now(process.run, process.request(exercise, [], answer, limits), limits, seconds)
    finding = judged(exercise, [], answer, future, tuple, limits)
    if finding.outcome != "right":
        raise process.WorkerFailed(
            say("a right answer does not get its points here, so nothing was marked"),
            values={say("exercise"): TRIAL, say("remark"): finding.remark},
            where=say("in the trial before the first notebook"),
            hint=say("more memory (--memory 4), more time (--seconds 120), or fewer answers at a time (--jobs 1)"),
        )


def tasks(
    paths: Iterable[str], limits: Limits, pool: concurrent.futures.Executor, release: dict[str, Any] | None
) -> Iterator[Callable[[], Mark]]:
    """Start the processes, and yield a function that returns the mark for each."""
    given = list(map(str, paths))
    for path in nb.notebooks(given):
        try:
            notebook = nb.read(path, links=str(path) in given, outputs=False)
            released = release or nb.release_of(notebook, path)
            nb.require_release(notebook, released)
        except (nb.NotebookError, LookupError) as error:
            yield functools.partial(unreadable, path, error, release)
            continue
        for exercise in nb.exercises_of(released):
            yield start(pool.submit, str(path), notebook, released, exercise, limits)


def unreadable(path: Path, error: Exception, release: dict[str, Any] | None) -> Mark:
    """Mark of a file that cannot be marked: 0 of the points of the release, or of the lesson that it names."""
    lesson = nb.lesson_named(path)
    if release:
        points = sum(exercise.points for exercise in nb.exercises_of(release))
        return Mark(str(path), lesson, of=points, remark=str(error))
    unknown = "" if lesson else say("its name does not say its lesson, so its points are missing from the sums")
    return Mark(str(path), lesson, of=nb.points_of(lesson), remark="; ".join(filter(None, (str(error), unknown))))


def mark(file: str, notebook: dict[str, Any], released: dict[str, Any], exercise: Exercise, limits: Limits) -> Mark:
    """Mark one answer."""
    return start(call_now, file, notebook, released, exercise, limits)()


def call_now(function: Callable, *arguments: Any) -> concurrent.futures.Future:
    future: concurrent.futures.Future = concurrent.futures.Future()
    future.set_result(function(*arguments))
    return future


def start(
    submit: Callable[..., concurrent.futures.Future],
    file: str,
    notebook: dict[str, Any],
    released: dict[str, Any],
    exercise: Exercise,
    limits: Limits,
) -> Callable[[], Mark]:
    """Start the process of an answer by `submit`, and return a function that waits for it and returns the mark."""
    answer, remark = nb.find_answer(notebook, exercise)
    remarks = [text for text in (nb.format_remark(notebook), remark) if text]
    place = Mark(file, exercise.lesson, exercise.name, of=exercise.points, remark="; ".join(remarks))
    if cells.is_untouched(exercise.name, answer):
        return lambda: dataclasses.replace(place, outcome="not started")
    if len(answer) > nb.MAX_SOURCE:
        remark = f"the cell has more than {nb.MAX_SOURCE:,} characters"
        too_long = Finding("refused", remark=remark, card=Card("refused", exercise.name, remark))
        return lambda: finished(place, exercise, answer, too_long, remarks)
    answer = nb.as_python(answer)
    before = setup_cells(notebook, released, exercise, answer)
    future = submit(process.run, process.request(exercise, before, answer, limits), limits, limits.time_for(exercise))
    given = functools.partial(given_values, exercise, released, limits)

    def wait() -> Mark:
        finding = judged(exercise, before, answer, future, given, limits)
        return finished(place, exercise, answer, with_missing_name(finding, notebook, released), remarks)

    return wait


def with_missing_name(finding: Finding, notebook: dict[str, Any], released: dict[str, Any]) -> Finding:
    """Add to the card and the remark why a name is unknown, if a cell that the learner added or changed binds it."""
    name = finding.missing
    if not name or not finding.card or name in nb.names_of(released) or name not in nb.names_of(notebook):
        return finding
    text = say("{name} is in another cell, which does not count: put it into the answer's cell", name=name)
    finding.card.paragraphs.append(text)
    return dataclasses.replace(finding, remark=f"{finding.remark[: MAX_REMARK - len(text)]}; {text}")


def finished(place: Mark, exercise: Exercise, answer: str, finding: Finding, remarks: list[str]) -> Mark:
    odd = sorted((mentioned_names(answer) - mentioned_names(cells.solved_cell(exercise.name))) & SUSPICIOUS)
    remarks = [text for text in (*remarks, finding.remark, odd and f"look at it: {', '.join(odd)}") if text]
    right = finding.outcome == "right"
    return dataclasses.replace(
        place,
        outcome=finding.outcome,
        wrong=finding.wrong,
        points=float(exercise.points) if right else exercise.partial.get(finding.wrong, 0.0),
        remark="; ".join(remarks),
        card=finding.card,
    )


# ---- judging --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Finding:
    """Verdict on an answer.

    wrong: name of the wrong answer. remark: for the teacher. card: for the learner. missing: the unknown name, after a
    NameError.
    """

    outcome: str
    wrong: str = ""
    remark: str = ""
    card: Card | None = None
    missing: str = ""


class Ended(Exception):
    """The process ended before it sent its results. The text says how."""


class Replayed:
    """Runner of an answer that ran in another process: its results, as they were sent."""

    def __init__(self, response: Response, kind: str, source: AnswerSource | None) -> None:
        self.kind, self.source, self.response = kind, source, response
        self.lines = iter(response.lines[1:])

    def results(self, cases: Iterable[Case]) -> Iterator[Result]:
        for _ in cases:
            line = next(self.lines, None)
            if line is None:
                raise Ended(self.response.remark)
            result = wire.load_result(line)
            yield result
            if result.ends_run:
                break


def judged(
    exercise: Exercise,
    before: list[str],
    answer: str,
    future: concurrent.futures.Future,
    given: Callable[[], tuple],
    limits: Limits,
) -> Finding:
    """Judge the response of an answer's process, whatever it contains. Raises process.WorkerFailed."""
    try:
        response = future.result()
        values = given() if exercise.make_cases is None else ()  # may start a process: before the limit of comparing
        sources = {worker.before_file(i): source for i, source in enumerate(before)} | {worker.ANSWER_FILE: answer}
        seconds = judge.CHECK_LIMIT * max(exercise.time_limit, 1.0)
        verdict = limited(seconds, lambda: verdict_on(exercise, response, sources, values, limits))
        shown = make_card(verdict)
        raised = verdict.result.error if verdict.result and verdict.case is None else None
        remark = "" if verdict.ok else shown.headline
        if verdict.outcome == "stopped" and verdict.case is not None and not verdict.result.timed_out:
            first_line, _, _ = error_text(verdict.result.error).partition("\n")
            remark = f"{remark}: {first_line}"
        elif raised:  # by the cell, before any case
            remark = (
                "the cell does not end" if raised.is_a("OutOfTime") else f"the cell raises {raised.name}: {raised.text}"
            )
        elif verdict.outcome == "not started" and response.lines and b"unbound" in response.lines[0]:
            remark = f"the cell does not bind {exercise.answer}"
        wrong = verdict.wrong.name if verdict.wrong else ""
        missing = verdict.result.error.missing if verdict.result and verdict.result.error else ""
        return Finding(verdict.outcome, wrong, remark[:MAX_REMARK], shown, missing)
    except process.WorkerFailed:
        raise
    except Ended as error:
        remark = str(error)
    except wire.WireError as error:
        remark = f"its process sends something else than results: {error}"
    except OutOfTime:
        remark = "comparing its results takes too long"
    except Exception as error:  # an error of the grader
        remark = f"grading fails: {type(error).__name__}: {error}"[:MAX_REMARK]
        return Finding("failed", remark=remark, card=Card("stopped", exercise.name, remark))
    return Finding("stopped", remark=remark, card=Card("stopped", exercise.name, remark))


def verdict_on(
    exercise: Exercise, response: Response, sources: dict[str, str], given: tuple, limits: Limits
) -> judge.Verdict:
    if not response.lines:
        raise Ended(response.remark)
    first = wire.load(response.lines[0])
    if "error" in first:
        return judge.Verdict(exercise, "stopped", result=Result(error=wire.error(first["error"])))
    if "unbound" in first:
        return judge.Verdict(exercise, "not started")
    if "changed" in first:  # while the cell ran
        return judge.Verdict(exercise, "changed", message=wire.text(first["changed"]))
    kind = wire.text(first.get("kind"))
    if kind not in ("class", "function", "value", "nothing"):
        raise wire.WireError("an answer of an unknown kind")
    if exercise.make_cases is None:
        runner = Replayed(response, kind, None)
        [result] = runner.results([Case((), {})])
        verdict = judge.judge_value(exercise, result.value, given)
    else:
        runner = Replayed(response, kind, find_source(exercise, sources, *wire.items(first.get("source"), 2)))
        verdict = judge.judge_code(process.prepared(exercise, limits.seed).reference, runner)
    if response.lines[-1].startswith(b'{"changed"'):  # while the cases ran
        return judge.Verdict(exercise, "changed", message=wire.text(wire.load(response.lines[-1]).get("changed")))
    return verdict


def find_source(exercise: Exercise, sources: dict[str, str], file: Any, line: Any) -> AnswerSource | None:
    """Source of an answer: its definition in the learner's cell, else where its process says that it is."""
    try:
        last = [
            node for node in ast.parse(sources[worker.ANSWER_FILE]).body if getattr(node, "name", "") == exercise.answer
        ]
        file, line = (worker.ANSWER_FILE, last[-1].lineno) if last else (wire.text(file), wire.count(line))
        text = sources.get(file, "")
        node = next((node for node in definitions(text) if node.lineno == line), None)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a cell with IPython's own lines
        node = None
    if node is None:
        return AnswerSource(file, "", None) if file else None
    lines = text.splitlines(keepends=True)[node.lineno - 1 : node.end_lineno]
    return AnswerSource(file, textwrap.dedent("".join(lines)), node)


def given_values(exercise: Exercise, released: dict[str, Any], limits: Limits) -> tuple:
    """The variables that the exercise takes after a value: its drawn object, or what cells of the release bind."""
    if exercise.draw_object is not None:
        return (draw_for(exercise, limits.word),)
    if not exercise.given:
        return ()
    return released_values(exercise, tuple(setup_cells(released, released, exercise, "")), limits)


@functools.lru_cache(64)
def released_values(exercise: Exercise, before: tuple[str, ...], limits: Limits) -> tuple:
    request = process.request(exercise, list(before), f"{exercise.answer} = ({', '.join(exercise.given)},)", limits)
    runner = Replayed(process.run(request, limits, limits.time_for(exercise)), "value", None)
    [result] = runner.results([Case((), {})])
    return result.value


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
        todo = [symtable.symtable(nb.as_python(source[: nb.MAX_SOURCE]), "cell", "exec")]
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
    tree = nb.syntax_tree(nb.as_python(source))
    if tree is None:
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


def summary(marks: Iterable[Mark]) -> list[str]:
    """Points of each file, one line per file."""
    sums: dict[str, list[float]] = {}
    for mark in marks:
        total = sums.setdefault(mark.file, [0.0, 0.0])
        total[0] += mark.points
        total[1] += mark.of
    return [
        f"{nb.printable(file)}: " + say("{got} of {of}", got=f"{got:g}", of=f"{of:g}")
        for file, (got, of) in sums.items()
    ]
