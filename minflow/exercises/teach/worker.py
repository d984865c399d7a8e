"""The process in which grade.py runs one answer: limits first, then the lesson's cells, the answer, and its verdict.

The question comes as JSON on stdin, the verdict goes to stdout as one line behind a secret word, which the answer has
not seen. What is refused to the answer is best effort: no sockets to other machines, no other programs, no file written
outside of its folder. Python code cannot be locked in by Python code.
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
CELL_SECONDS = 5.0  # limits of one case that the answer's cell itself may take
LARGEST_FILE = 50_000_000


def main() -> None:
    question = json.loads(sys.stdin.buffer.read())
    channel = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    limit(question["memory"], question["seconds"])
    alone()
    try:
        verdict = judged(question)
    except Exception as error:  # ours: the answer's own are caught there
        verdict = {"outcome": "failed", "remark": f"grading fails: {type(error).__name__}: {error}"[:300]}
    channel.write((question["token"] + json.dumps(verdict) + "\n").encode())
    channel.flush()
    os._exit(0)  # threads of the answer have nothing more to say


# ---- limits ---------------------------------------------------------------------------------------------------------


def limit(memory: float, seconds: float) -> None:
    """Of the system, where it has them: memory in GB, time of the processor, size of a file."""
    try:
        import resource
    except ImportError:  # Windows: the time alone, which grade.py keeps
        return
    size = int(memory * 1e9)
    # What is written to, not what is reserved: WebAssembly reserves gigabytes. macOS heeds neither.
    for name, most in (
        ("RLIMIT_DATA", size),
        ("RLIMIT_CPU", int(seconds) + 1),
        ("RLIMIT_FSIZE", LARGEST_FILE),
        ("RLIMIT_CORE", 0),
    ):
        with contextlib.suppress(ValueError, OSError, AttributeError):
            resource.setrlimit(getattr(resource, name), (most, most))


def alone() -> None:
    """Leave the network, where Linux lets us: first as one who may, then as nobody."""
    if sys.platform == "linux":
        import ctypes

        new_network, new_user = 0x40000000, 0x10000000
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(None)
            if library.unshare(new_network):
                library.unshare(new_network | new_user)


def refuse(folder: str) -> None:
    """From here on: no network, no programs, no writing outside of `folder`. A hook cannot be taken away again."""
    inside = os.path.realpath(folder) + os.sep

    def away(path: Any) -> bool:
        return not isinstance(path, int) and not (os.path.realpath(os.fsdecode(path)) + os.sep).startswith(inside)

    def hook(event: str, arguments: tuple) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC) if isinstance(flags, int) else 0
            if not writes or path is None or path == os.devnull or not away(path):
                return
        elif event in FILES:
            if not any(away(one) for one in arguments[:2] if isinstance(one, str | bytes | os.PathLike)):
                return
        elif event in NETWORK:
            if local(arguments):
                return
        elif event not in PROGRAMS:
            return
        raise PermissionError(f"{event} is refused while answers are graded")

    sys.addaudithook(hook)


def local(arguments: tuple) -> bool:
    """Does it stay on this machine?"""
    place = arguments[-1] if isinstance(arguments[-1], tuple | str) else arguments[0]
    host = place[0] if isinstance(place, tuple) and place else place
    return isinstance(host, str) and (host == "localhost" or host == "::1" or host.startswith(("127.", "/", "\0")))


# ---- the answer -----------------------------------------------------------------------------------------------------


def judged(question: dict[str, Any]) -> dict[str, str]:
    """The verdict on the answer. All that judges is imported, and known as it is, before a cell runs."""
    from .. import card, checker, judge
    from ..registry import find
    from ..limits import OutOfTime, limited

    exercise = find(question["exercise"])
    module = types.ModuleType("__main__")
    module.__dict__["display"] = lambda *things, **settings: None  # a notebook has it
    sys.modules["__main__"] = module
    for i, source in enumerate(question["before"]):
        with contextlib.suppress(Exception):  # what it should have bound is missed by the answer
            execute(source, f"<ipython-input-{i}-before>", module)
    given = tuple(module.__dict__.get(name, ...) for name in exercise.given)
    if exercise.draws is not None and not given:
        given = (checker.draw(exercise.name),)
    known = dict(pieces(exercise))
    refuse(os.getcwd())
    try:
        limited(CELL_SECONDS * exercise.limit, lambda: execute(question["answer"], "<ipython-input-0-answer>", module))
    except OutOfTime:
        return {"outcome": "stopped", "remark": "the cell itself does not end"}
    except BaseException as error:
        return {"outcome": "stopped", "remark": f"the cell raises {type(error).__name__}: {error}"[:300]}
    if exercise.answer not in module.__dict__:
        return {"outcome": "not started", "remark": f"the cell binds no {exercise.answer}"}
    if touched := changed(known, exercise):
        return {"outcome": "changed", "remark": f"{touched} was changed"}
    answer = module.__dict__[exercise.answer]
    try:
        verdict = judge.judge(exercise, answer, given, question["seed"])
        remark = card.card_of(verdict).headline
    except BaseException as error:
        return {"outcome": "stopped", "remark": f"the check raises {type(error).__name__}: {error}"[:300]}
    if touched := changed(known, exercise):
        return {"outcome": "changed", "remark": f"{touched} was changed"}
    return {
        "outcome": verdict.outcome,
        "wrong": verdict.name.name if verdict.name else "",
        "remark": "" if verdict.ok else remark,
    }


def execute(source: str, file: str, module: types.ModuleType) -> None:
    """Run a cell as a notebook does: its lines can be found by tracebacks, and it may wait at its top."""
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    # not with our own __future__ annotations: then a job would read its kinds as text
    code = compile(source, file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    result = eval(code, module.__dict__)
    if inspect.iscoroutine(result):
        import asyncio

        asyncio.run(result)


def pieces(exercise: Any) -> Iterator[tuple[str, Any]]:
    """What judges, by name: every attribute of the checker's modules and of their classes, the code of its functions,
    Python's builtins, the exercise and what its lists hold."""
    import builtins

    spaces: dict[str, Any] = {
        name: module
        for name, module in list(sys.modules.items())
        if name.startswith("minflow.exercises") and module is not None
    }
    spaces |= {"builtins": builtins, exercise.name: exercise}
    for name, space in spaces.items():
        for key, value in list(vars(space).items()):
            yield from inside(f"{name}.{key}", value)


def inside(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    yield name, value
    if isinstance(value, list):
        yield from ((f"{name}[{i}]", one) for i, one in enumerate(value))
        yield f"the length of {name}", len(value)
    elif isinstance(value, types.FunctionType):
        yield f"the code of {name}", value.__code__
    elif isinstance(value, type) and value.__module__.startswith("minflow.exercises"):
        yield from ((f"{name}.{key}", one) for key, one in list(vars(value).items()))


def changed(known: dict[str, Any], exercise: Any) -> str:
    """The first piece that is not what it was; "" if all are."""
    now = dict(pieces(exercise))
    return next((name for name, value in known.items() if now.get(name) is not value), "")
