"""Runs of notebook cells: whether the cell of an answer ran to its end, and the names that it bound.

A variable keeps its value if its cell fails or binds another name, so a check could judge an answer that the learner
has replaced. Outside IPython no run is known. Read next: `checker.py`.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import re
from typing import Any

from ..core.base.errors import MinflowError
from ..diagnosis import frames, notebook
from ..diagnosis.name_suggestions import similar_names
from .answer_source import top_names
from .cells import check_cell
from .definition import Exercise
from .i18n import find_non_ascii, say
from .registry import find

MAX_RUNS = 1000  # runs that are remembered
CHECK_CALL = re.compile(r"^\s*check\(\s*[\"'](\w+)[\"']", re.MULTILINE)
DEFINITION = re.compile(r"^[ \t]*(?:(?:async[ ]+)?def|class)[ ]+(\w+)|^(\w+)[ ]*=(?!=)", re.MULTILINE)
SIMILAR = 0.7  # least similarity of an answer's name and a misspelling of it


@dataclasses.dataclass(frozen=True)
class CellRun:
    """One run of a cell.

    cell: id of the cell, "" if the front end sends none. source: its text as Python. tree: its syntax, None if Python
    cannot read it. error: type and first line of the error that ended it, or "". missing: unknown name of a NameError.
    line: the line of the cell where it ended, 0 if it ran to its end. rebound: variables with a new value.
    """

    cell: str
    source: str
    tree: ast.Module | None
    error: str
    missing: str
    line: int
    rebound: frozenset[str]

    def mentions(self, name: str) -> bool:
        """True if the cell was written to bind `name`, whether or not it did."""
        if self.tree is None:
            return any(name in pair for pair in DEFINITION.findall(self.source))
        return name in self.rebound or name in top_names(self.tree)

    def binds(self, name: str) -> bool:
        """True if the run bound `name`: it did not end in or before the last statement that binds it."""
        places = [at for at in (self.tree.body if self.tree else ()) if name in top_names(ast.Module([at], []))]
        if not places:
            return name in self.rebound
        return not self.line or (places[-1].end_lineno or 0) < self.line


class CellRuns:
    """Runs of this kernel's cells, oldest first.

    running: source of the running cell. ids: identity of each variable before it; None if it began before us.
    """

    def __init__(self) -> None:
        self.runs: collections.deque[CellRun] = collections.deque(maxlen=MAX_RUNS)
        self.running = ""
        self.ids: dict[str, int] | None = None

    def start(self, info: Any = None) -> None:
        self.running, self.ids = as_python(str(getattr(info, "raw_cell", None) or "")), variable_ids()

    def end(self, result: Any) -> None:
        before, now, info = self.ids, variable_ids(), result.info
        source, error = as_python(str(info.raw_cell or "")), result.error_before_exec or result.error_in_exec
        tree = syntax_tree(source)
        self.runs.append(
            CellRun(
                str(getattr(info, "cell_id", None) or ""),
                source,
                tree,
                error_text(error),
                str(getattr(error, "name", None) or "") if isinstance(error, NameError) else "",
                error_line(error) if error is not None else 0,
                frozenset(name for name in now if before is not None and before.get(name) != now[name]),
            )
        )


RUNS = CellRuns()


def follow() -> None:
    """Remember runs of cells from now on, if IPython runs this program, and advise on checks without an answer."""
    if notebook.follow_cells(RUNS.start, RUNS.end):
        frames.EXPLANATIONS.append(missing_answer)


def variable_ids() -> dict[str, int]:
    """Identity of each variable of the notebook. Holding the objects themselves would keep them alive."""
    names = getattr(notebook.ipython(), "user_ns", {})
    return {name: id(value) for name, value in list(names.items()) if not name.startswith("_")}


def as_python(text: str) -> str:
    """Source of a cell without IPython's own syntax."""
    try:
        return notebook.ipython().transform_cell(text)
    except Exception:  # SyntaxError of an unfinished line, or an extension's error
        return text


def syntax_tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def error_text(error: BaseException | None) -> str:
    if error is None:
        return ""
    try:
        text = str(error).partition("\n")[0]
    except Exception:  # the learner's own __str__
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def error_line(error: BaseException) -> int:
    """Line of the cell that was running when `error` was raised; at least 1."""
    line, traceback = 0, error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not line and code.co_name == "<module>" and notebook.cell_name(code.co_filename):
            line = frames.stopped_line(traceback)
        traceback = traceback.tb_next
    return line or (isinstance(error, SyntaxError) and error.lineno) or 1


# ---- the run that an answer comes from -------------------------------------------------------------------------------


def stale_answer(exercise: Exercise, answer: Any) -> str:
    """Say why `answer` does not come from the last run of its cell; "" if it does, or if no run is known."""
    names = getattr(notebook.ipython(), "user_ns", {})
    if names.get(exercise.answer) is not answer:  # another variable, or a value typed into the check
        return ""
    return failed_run(exercise)


def failed_run(exercise: Exercise) -> str:
    """Say why the last run of the answer's cell did not bind it; "" if it did, or if no run is known."""
    run = answer_run(exercise)
    if run is None or run.binds(exercise.answer):
        return ""
    if run.tree is None:
        return unreadable(run.source)
    if run.error:
        return stopped(exercise, run)
    return near_miss(exercise.answer, run.tree)


def answer_run(exercise: Exercise) -> CellRun | None:
    """Last run of a cell that was written to bind the answer, perhaps by a wrong name; None if none is known."""
    own, name = f"{exercise.name}-answer".replace("_", "-"), exercise.answer
    if (running := syntax_tree(RUNS.running)) and name in top_names(running):  # one cell answers and checks
        return None
    known = any(run.cell == own for run in RUNS.runs)
    for run in reversed(RUNS.runs):
        if run.mentions(name):
            return run
        # Without ids of cells, only the cell that ran last is taken for the answer's.
        if (run.cell == own if known else run is RUNS.runs[-1]) and (run.tree is None or near_miss(name, run.tree)):
            return run
    return None


def unreadable(source: str) -> str:
    """Explain a syntax error."""
    if odd := find_non_ascii(source):
        line, _column, sign, plain = odd[0]
        why = say("Line {line} contains {sign}; write {plain} in code.", line=line, sign=sign, plain=plain)
    else:
        try:
            compile(source, "", "exec")
            why = ""
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line, text = getattr(error, "lineno", 0) or 1, getattr(error, "msg", "") or str(error)
            why = say("Line {line}: {error}.", line=line, error=text)
    return say("Python cannot read the cell of your answer, so it set nothing. {why}", why=why).rstrip()


def stopped(exercise: Exercise, run: CellRun) -> str:
    """Explain a cell that raised before it bound the answer."""
    result = say(
        "The cell of your answer stopped in line {line}, before it set {name}: {error}",
        line=run.line,
        name=f"`{exercise.answer}`",
        error=run.error,
    )
    if run.missing and exercise.value and asks_for_text(exercise.right):
        result += "\n" + say("A text needs quotes: {text}.", text=f'`"{run.missing}"`')
    return result


def asks_for_text(right: Any) -> bool:
    """True if a right answer is or contains a text, or is computed from the question."""
    inside = right.values() if isinstance(right, dict) else right if isinstance(right, tuple | list) else [right]
    return any(isinstance(item, str) or callable(item) for item in inside)


def near_miss(name: str, tree: ast.Module) -> str:
    """Explain a cell that nearly binds `name`; "" if it contains no such statement."""
    for statement in tree.body:
        line, compared = statement.lineno, getattr(statement, "value", None)
        if isinstance(compared, ast.Compare) and is_name(compared.left, name):
            return say("Line {line}: `==` compares two values. To set {name}, write `=`.", line=line, name=f"`{name}`")
        if isinstance(statement, ast.AnnAssign) and statement.value is None and is_name(statement.target, name):
            return say(
                "Line {line}: `:` only describes the type. To set {name}, write `=`.", line=line, name=f"`{name}`"
            )
        for other in sorted(top_names(ast.Module([statement], []))):
            plain, asked = (word.replace("_", "").lower() for word in (other, name))
            if similar_names(plain, [asked], 1, SIMILAR):
                return say(
                    "Line {line} sets {other}, but the check looks at {name}.",
                    line=line,
                    other=f"`{other}`",
                    name=f"`{name}`",
                )
    return ""


def is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


class MissingAnswer(MinflowError, NameError):
    """A check was run before the cell of its answer had set the name."""


def missing_answer(error: BaseException) -> MissingAnswer | None:
    """Our error for a NameError of a check whose answer is not set, such as after a restart of the kernel."""
    cells = getattr(getattr(notebook.ipython(), "history_manager", None), "input_hist_raw", None) or [""]
    name, found = getattr(error, "name", None), CHECK_CALL.search(cells[-1])
    if not isinstance(error, NameError) or not name or not found or name not in cells[-1]:
        return None
    try:
        exercise = find(found[1])
    except LookupError:
        return None
    hint = failed_run(exercise) if exercise.answer == name else ""
    if not re.search(rf"\b{name}\b", call := check_cell(exercise.name)):
        hint = say("This check is called as {call}.", call=f"`{call}`")
    hint = hint or say(
        "run the cell above that sets {name}. After a restart of the kernel nothing is set: Run > Run All Above "
        "Selected Cell",
        name=name,
    )
    return MissingAnswer(str(error), hint=hint).with_traceback(error.__traceback__)
