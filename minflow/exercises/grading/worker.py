"""Process in which process.py runs one answer: set limits, run the lesson's cells and the answer, send its results.

The request arrives as a pickle on stdin: arguments of the cases, but no expected result and no solution. The results go
to stdout as lines of plain data (wire.py): first a description of the answer, then a line per case, at last what was
replaced in minflow. Nothing here is trusted by the judge. Outside of a sandbox an audit hook is a fence against
accidents: Python code cannot confine Python code.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import linecache
import os
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any, BinaryIO

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
READY = b"\nminflow: the answer comes next\n"
CELL_SECONDS = 5.0  # limit of the answer's cell, in limits of one case
ANSWER_FILE = "<ipython-input-0-answer>"
LARGEST_FILE = 50_000_000
OPEN_FILES, STACK_BYTES = 256, 64 * 2**20


def main() -> None:
    request = pickle.loads(sys.stdin.buffer.read())
    channel = os.fdopen(os.dup(1), "wb", buffering=0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nowhere, number)
    set_limits(request["memory"], request["seconds"])
    leave_network()
    run(request, channel, lambda: announce(nowhere))
    os._exit(0)  # do not wait for threads started by the answer


def announce(nowhere: int) -> None:
    """Say on stderr that all code of a learner is still to come, and close it: that code could not take this back."""
    os.write(2, READY)
    os.dup2(nowhere, 2)


# ---- limits ---------------------------------------------------------------------------------------------------------


def set_limits(memory: float, seconds: float) -> None:
    """Set resource limits if the system has them: memory in GB, processor time in seconds, file size."""
    try:
        import resource
    except ImportError:  # Windows: only the time is limited, by process.py
        return
    size = int(memory * 1e9)
    # RLIMIT_DATA, not RLIMIT_AS: WebAssembly reserves gigabytes of address space. macOS ignores both.
    for name, most in (
        ("RLIMIT_DATA", size),
        ("RLIMIT_CPU", int(seconds) + 1),
        ("RLIMIT_FSIZE", LARGEST_FILE),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_NOFILE", OPEN_FILES),
        ("RLIMIT_STACK", STACK_BYTES),
        ("RLIMIT_MEMLOCK", 0),
    ):
        with contextlib.suppress(ValueError, OSError, AttributeError):
            kind = getattr(resource, name)
            soft = resource.getrlimit(kind)[0]
            resource.setrlimit(kind, (most if soft == resource.RLIM_INFINITY else min(soft, most), most))


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


def run(request: dict[str, Any], channel: BinaryIO, ready: Callable[[], None]) -> None:
    """Run the cells and the cases of a request, and send the results. ready: called before the first cell."""
    from .. import isolation
    from ..limits import limited
    from ..runner import LocalRunner, Result, describe
    from . import wire

    cases = request["cases"] and pickle.loads(request["cases"])
    allow_draws(pickle.loads(request["draws"]))
    module = types.ModuleType("__main__")
    module.__dict__["display"] = lambda *things, **settings: None  # notebooks have `display`
    sys.modules["__main__"] = module
    ready()
    for i, source in enumerate(request["before"]):
        with contextlib.suppress(Exception):  # the answer will miss the names it should have bound
            execute(source, before_file(i), module)
    if request["fence"]:
        refuse_access(os.getcwd())
    send = channel.write
    try:
        limited(CELL_SECONDS * request["limit"], lambda: execute(request["answer"], ANSWER_FILE, module))
    except BaseException as error:
        send(wire.dump({"error": wire.dump_error(describe(error, None))}))
        return
    if request["name"] not in module.__dict__:
        send(wire.dump({"unbound": True}))
        return
    if touched := isolation.replaced_attribute():
        send(wire.dump({"changed": touched}))
        return
    answer = module.__dict__[request["name"]]
    runner = LocalRunner(answer, request["limit"])
    own = runner.source
    line = getattr(own.node, "lineno", 0) if own else 0
    send(wire.dump({"kind": runner.kind, "source": [own.file if own else "", line]}))
    if cases is None:  # the answer is a value
        send(wire.dump_result(Result(answer)))
    for result in runner.results(cases or ()):
        send(wire.dump_result(result))
    if touched := isolation.replaced_attribute():
        send(wire.dump({"changed": touched}))


def allow_draws(draws: dict[str, Callable]) -> None:
    """Have `draw` work without the definitions, and `check` and `hint` do nothing: answers may contain their calls."""
    from ... import exercises
    from .. import checker, definition

    def find(name: str) -> Any:
        exercise = definition.Exercise("0.0", name, kind="read", level="recall", question="", fact="")
        exercise.draw_object = draws.get(name)
        return exercise

    checker.find = find
    exercises.check = exercises.hint = lambda *args, **kwargs: None


def before_file(index: int) -> str:
    return f"<ipython-input-{index}-before>"


def execute(source: str, file: str, module: types.ModuleType) -> None:
    """Run a cell as a notebook does: tracebacks find its lines, and top-level `await` works."""
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    # without our own __future__ annotations, which would turn a job's annotations into strings
    code = compile(source, file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    result = eval(code, module.__dict__)
    if inspect.iscoroutine(result):
        import asyncio

        asyncio.run(result)
