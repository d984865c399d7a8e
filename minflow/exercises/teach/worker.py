"""Process in which grade.py runs one answer: set limits, run the lesson's cells and the answer, judge it.

The question arrives as JSON on stdin. The verdict goes to stdout as one line after a secret token that the answer has
not seen. The sandbox is best effort: no connections to other machines, no other programs, no writing outside its
folder. Python code cannot fully confine Python code.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import json
import linecache
import os
import sys
import types
from collections.abc import Iterator
from typing import Any

PROGRAMS = {
    "os.fork",
    "os.forkpty",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "os.startfile",
    "subprocess.Popen",
    "os.kill",
    "os.killpg",
    "pty.spawn",
}
NETWORK = {
    "socket.connect",
    "socket.bind",
    "socket.sendto",
    "socket.sendmsg",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.gethostbyaddr",
}
FILES = {
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.mkdir",
    "os.link",
    "os.symlink",
    "os.chmod",
    "os.chown",
    "os.truncate",
    "os.utime",
    "shutil.rmtree",
    "shutil.move",
}
CELL_SECONDS = 5.0  # limit of the answer's cell, in limits of one case
LARGEST_FILE = 50_000_000


def main() -> None:
    question = json.loads(sys.stdin.buffer.read())
    channel = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    set_limits(question["memory"], question["seconds"])
    leave_network()
    try:
        verdict = judge_answer(question)
    except Exception as error:  # an error of the grader; those of the answer are caught in `judge_answer`
        verdict = {"outcome": "failed", "remark": f"grading fails: {type(error).__name__}: {error}"[:300]}
    channel.write((question["token"] + json.dumps(verdict) + "\n").encode())
    channel.flush()
    os._exit(0)  # do not wait for threads started by the answer


# ---- limits ---------------------------------------------------------------------------------------------------------


def set_limits(memory: float, seconds: float) -> None:
    """Set resource limits if the system has them: memory in GB, processor time in seconds, file size."""
    try:
        import resource
    except ImportError:  # Windows: only the time is limited, by grade.py
        return
    size = int(memory * 1e9)
    # RLIMIT_DATA, not RLIMIT_AS: WebAssembly reserves gigabytes of address space. macOS ignores both.
    for name, most in (
        ("RLIMIT_DATA", size),
        ("RLIMIT_CPU", int(seconds) + 1),
        ("RLIMIT_FSIZE", LARGEST_FILE),
        ("RLIMIT_CORE", 0),
    ):
        with contextlib.suppress(ValueError, OSError, AttributeError):
            resource.setrlimit(getattr(resource, name), (most, most))


def leave_network() -> None:
    """Leave the network on Linux: with our privileges, else in a new user namespace."""
    if sys.platform == "linux":
        import ctypes

        new_network, new_user = 0x40000000, 0x10000000
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(None)
            if library.unshare(new_network):
                library.unshare(new_network | new_user)


def refuse_access(folder: str) -> None:
    """Refuse network, programs and writing outside `folder` from now on, by an audit hook, which cannot be removed."""
    inside = os.path.realpath(folder) + os.sep

    def outside(path: Any) -> bool:
        return not isinstance(path, int) and not (os.path.realpath(os.fsdecode(path)) + os.sep).startswith(inside)

    def hook(event: str, arguments: tuple) -> None:
        if event == "open":
            path, _mode, flags = arguments
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) if isinstance(flags, int) else 0
            if not writes or path is None or path == os.devnull or not outside(path):
                return
        elif event in FILES:
            if not any(outside(path) for path in arguments[:2] if isinstance(path, str | bytes | os.PathLike)):
                return
        elif event in NETWORK:
            if is_local(arguments):
                return
        elif event not in PROGRAMS:
            return
        raise PermissionError(f"{event} is refused while answers are graded")

    sys.addaudithook(hook)


def is_local(arguments: tuple) -> bool:
    """True if a socket event stays on this machine."""
    place = arguments[-1] if isinstance(arguments[-1], tuple | str) else arguments[0]
    host = place[0] if isinstance(place, tuple) and place else place
    return isinstance(host, str) and (host == "localhost" or host == "::1" or host.startswith(("127.", "/", "\0")))


# ---- the answer -----------------------------------------------------------------------------------------------------


def judge_answer(question: dict[str, Any]) -> dict[str, str]:
    """Judge the answer. Everything that judges is imported, and recorded to detect changes, before a cell runs."""
    from .. import card, checker, judge
    from ..limits import OutOfTime, limited
    from ..registry import find

    exercise = find(question["exercise"])
    module = types.ModuleType("__main__")
    module.__dict__["display"] = lambda *things, **settings: None  # notebooks have `display`
    sys.modules["__main__"] = module
    for i, source in enumerate(question["before"]):
        with contextlib.suppress(Exception):  # the answer will miss the names it should have bound
            execute(source, f"<ipython-input-{i}-before>", module)
    given = tuple(module.__dict__.get(name, ...) for name in exercise.given)
    if exercise.draw_object is not None and not given:
        given = (checker.draw(exercise.name),)
    known = dict(judging_objects(exercise))
    refuse_access(os.getcwd())
    try:
        limited(
            CELL_SECONDS * exercise.time_limit, lambda: execute(question["answer"], "<ipython-input-0-answer>", module)
        )
    except OutOfTime:
        return {"outcome": "stopped", "remark": "the cell does not end"}
    except BaseException as error:
        return {"outcome": "stopped", "remark": f"the cell raises {type(error).__name__}: {error}"[:300]}
    if exercise.answer not in module.__dict__:
        return {"outcome": "not started", "remark": f"the cell does not bind {exercise.answer}"}
    if touched := changed(known, exercise):
        return {"outcome": "changed", "remark": f"{touched} was changed"}
    answer = module.__dict__[exercise.answer]
    try:
        verdict = judge.judge(exercise, answer, given, question["seed"])
        remark = card.make_card(verdict).headline
    except BaseException as error:
        return {"outcome": "stopped", "remark": f"the check raises {type(error).__name__}: {error}"[:300]}
    if touched := changed(known, exercise):
        return {"outcome": "changed", "remark": f"{touched} was changed"}
    return {
        "outcome": verdict.outcome,
        "wrong": verdict.wrong.name if verdict.wrong else "",
        "remark": "" if verdict.ok else remark,
    }


def execute(source: str, file: str, module: types.ModuleType) -> None:
    """Run a cell as a notebook does: tracebacks find its lines, and top-level `await` works."""
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    # without our own __future__ annotations, which would turn a job's annotations into strings
    code = compile(source, file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    result = eval(code, module.__dict__)
    if inspect.iscoroutine(result):
        import asyncio

        asyncio.run(result)


def judging_objects(exercise: Any) -> Iterator[tuple[str, Any]]:
    """Yield (name, object) of everything that judges.

    These are the attributes of the checker's modules and classes, the code of its functions, Python's builtins, the
    exercise and the elements of its lists.
    """
    import builtins

    spaces: dict[str, Any] = {
        name: module
        for name, module in list(sys.modules.items())
        if name.startswith("minflow.exercises") and module is not None
    }
    spaces |= {"builtins": builtins, exercise.name: exercise}
    for name, space in spaces.items():
        for key, value in list(vars(space).items()):
            yield from parts_of(f"{name}.{key}", value)


def parts_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    yield name, value
    if isinstance(value, list):
        yield from ((f"{name}[{i}]", item) for i, item in enumerate(value))
        yield f"the length of {name}", len(value)
    elif isinstance(value, types.FunctionType):
        yield f"the code of {name}", value.__code__
    elif isinstance(value, type) and value.__module__.startswith("minflow.exercises"):
        yield from ((f"{name}.{key}", item) for key, item in list(vars(value).items()))


def changed(known: dict[str, Any], exercise: Any) -> str:
    """Name of the first object that was replaced since `known`; "" if none was."""
    now = dict(judging_objects(exercise))
    return next((name for name, value in known.items() if now.get(name) is not value), "")
