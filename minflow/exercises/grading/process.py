"""Process of one answer: start it in the sandbox, send it the cases, read its results, end it.

Without a sandbox (`Limits.trust`) it runs with the teacher's rights. Read next: `sandbox.py`, `worker.py`.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from ...core.base.errors import MinflowError
from .. import external
from ..definition import Exercise
from ..i18n import say
from ..judge import Reference
from ..registry import find
from . import sandbox, wire, worker

BOOTSTRAP = "import sys; sys.path[:] = {path!r}; from minflow.exercises.grading.worker import main; main()"
SETUP_SECONDS = 30.0  # for the start and the lesson's cells
CASE_LIMIT_FACTOR = 15.0  # limit of all cases, as a multiple of one case
DRAWS = re.compile(r"""\bdraw\(\s*["'](\w{1,80})["']""")  # a call in a cell, and the name of its exercise
MAX_DRAWS = 10
MAX_LINES, MAX_BYTES = 100, 16_000_000  # of a response
MAX_COMPLAINT = 10_000  # bytes of stderr that are read


class WorkerFailed(MinflowError, RuntimeError):
    """A process ended before any code of a learner ran in it, so no answer can be marked."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits and seeds of grading.

    memory: GB per answer. seconds: per answer; None means by its exercise. seed: seed of the cases. word: the teacher's
    word, which selects drawn questions. trust: True to run answers without a sandbox.
    """

    memory: float = 2.0
    seconds: float | None = None
    seed: int = 0
    word: str = ""
    trust: bool = False

    def time_for(self, exercise: Exercise) -> float:
        return self.seconds or SETUP_SECONDS + CASE_LIMIT_FACTOR * exercise.time_limit


@dataclasses.dataclass(frozen=True)
class Response:
    """Output of a process. lines: its messages, not decoded yet. remark: how it ended without more of them."""

    lines: list[bytes]
    remark: str


@dataclasses.dataclass(frozen=True)
class Prepared:
    """Cases of an exercise for a seed. reference: for the judge. cases: what the answer's process gets."""

    reference: Reference
    cases: bytes


@functools.cache
def prepared(exercise: Exercise, seed: int) -> Prepared:
    from .request import dump_cases

    reference = Reference(exercise, seed)
    return Prepared(reference, dump_cases(exercise, [*reference.shown, *reference.hidden]))


@functools.lru_cache(100)
def draws(names: frozenset[str]) -> bytes:
    """Pickle what `draw` needs for the names among these that are exercises."""
    from .request import dump_draws

    exercises = []
    for name in names:
        with suppress(LookupError):
            exercises.append(find(name))
    return dump_draws(exercises)


def request(exercise: Exercise, before: list[str], answer: str, limits: Limits) -> bytes:
    """Pickle what the process needs."""
    return pickle.dumps(
        {
            "name": exercise.answer,
            "before": before,
            "answer": answer,
            "cases": None if exercise.make_cases is None else prepared(exercise, limits.seed).cases,
            "draws": draws(frozenset(DRAWS.findall("\n".join([*before, answer]))[:MAX_DRAWS])),
            "limit": exercise.time_limit,
            "fence": limits.trust,
            "memory": limits.memory,
            "seconds": limits.time_for(exercise),
        }
    )


def run(data: bytes, limits: Limits, seconds: float) -> Response:
    """Run a request in a new process. Raises WorkerFailed."""
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
    with ExitStack() as stack:
        out, complaint = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        if limits.trust:
            folder = stack.enter_context(temporary_folder())
            path = [folder for folder in sys.path if folder]
            command = [sys.executable, "-I", "-X", "utf8", "-c", BOOTSTRAP.format(path=path)]
            settings = {key: value for key, value in os.environ.items() if key != "NBGRADER_EXECUTION"} | settings
            options: dict[str, Any] = {"cwd": folder}
        else:
            rules = stack.enter_context(tempfile.TemporaryFile())
            command = sandbox.command(BOOTSTRAP.format(path=sandbox.sys_path()), rules, external.folders())
            settings |= {"PATH": os.environ.get("PATH", os.defpath), "HOME": sandbox.FOLDER}
            options = {"pass_fds": [rules.fileno()]}
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=complaint,
            env=settings,
            start_new_session=os.name == "posix",
            **options,
        )
        late = False
        try:
            process.communicate(data, timeout=seconds)
        except subprocess.TimeoutExpired:
            late = True
        finally:
            kill(process)
        out.seek(0)
        lines: list[bytes] = []
        size = 0
        while len(lines) < MAX_LINES and size < MAX_BYTES and (line := out.readline(wire.MAX_BYTES + 2)):
            lines.append(line)
            size += len(line)
        complaint.seek(0)
        complained = complaint.read(MAX_COMPLAINT)
    remark = f"stopped after {seconds:g} s" if late else exit_remark(process.returncode)
    if worker.READY not in complained:
        raise not_ready(remark, complained, limits, seconds)
    if lines and not lines[-1].endswith(b"\n"):  # the process was ended while it wrote
        lines.pop()
    return Response(lines, remark)


def not_ready(remark: str, complained: bytes, limits: Limits, seconds: float) -> WorkerFailed:
    """Error of a process that did not come to the learner's code. complained: its stderr."""
    said = complained.decode("utf-8", "replace").strip().splitlines()
    return WorkerFailed(
        say("an answer's process ended before the answer ran: this is not the student's mistake"),
        values={
            say("end"): remark,
            say("last line on stderr"): said[-1] if said else say("none"),
            say("memory"): f"{limits.memory:g} GB",
            say("time limit"): f"{seconds:g} s",
        },
        where=say("in a process with the teacher's rights") if limits.trust else say("in the sandbox"),
        hint=say("more memory (--memory 4), more time (--seconds 120), or fewer answers at a time (--jobs 1)"),
    )


@contextmanager
def temporary_folder() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="minflow-grade-")
    try:
        yield folder
    finally:
        try:
            shutil.rmtree(folder, ignore_errors=True)
        except RecursionError:  # thousands of nested folders
            if os.name == "posix":
                subprocess.run(["rm", "-rf", "--", folder], check=False)


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
    if code > 128:  # bubblewrap's code for a process ended by a signal
        code = 128 - code
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else str(-code)
        return f"its process was ended by {name}" + (": out of processor time" if name == "SIGXCPU" else "")
    return "it ended its process"
