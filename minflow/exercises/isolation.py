"""Isolation of answers: restore what an answer may change (random states, modes, warnings, output, jobs).

Also detects replaced functions of minflow (`replaced_attribute`). The restored states are process-wide, so one answer
runs at a time. Read next: `judge.py`.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import gc
import os
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import minflow as flow

from ..core import mode as core_mode
from ..core.base.locks import new_lock
from ..core.kernels import EAGER_PLATFORMS, PlatformsBySize, use_platforms
from ..core.messages.printing import OPTIONS
from ..diagnosis import notebook
from ..job.queue.stream import current_stream
from ..job.session import Session, default_session
from ..platforms.compiled.config import CompiledKernelConfig

MAX_LINES, MAX_CHARS = 20, 2000  # limits of an answer's recorded output
JOB_WAIT = 10.0  # seconds to wait for steps of jobs to finish
MAX_RECURSION = 5000  # recursion limit


class RecordedOutput:
    """Stream that records the beginning of one thread's output and counts the rest; other threads write through."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.thread = stream, threading.get_ident()
        self.text, self.omitted_lines = "", 0

    def write(self, text: str) -> int:
        if threading.get_ident() != self.thread:
            return self.stream.write(text)
        left = MAX_CHARS - len(self.text)
        kept = text[:left] if self.text.count("\n") < MAX_LINES and left > 0 else ""
        self.text += kept
        self.omitted_lines += text.count("\n", len(kept))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if threading.get_ident() != self.thread:
            self.stream.flush()

    def close(self) -> None:
        """Do nothing: an answer must not close stdout."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def is_running() -> bool:
    """True if this thread is running an answer."""
    return isinstance(sys.stdout, RecordedOutput) and sys.stdout.thread == threading.get_ident()


def change_folder(path: str) -> None:
    if current_folder() != path:
        os.chdir(path)


def current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # the folder was deleted
        return ""


def environment() -> dict:
    """A copy of the environment as the process holds it: decoding each name takes longer than most checks."""
    return os.environ._data.copy()  # type: ignore[attr-defined]


def set_environment(names: dict) -> None:
    if environment() != names:
        os.environ.clear()
        os.environ.update({os.environ.decodekey(key): os.environ.decodevalue(names[key]) for key in names})


def set_path(folders: list[str]) -> None:
    sys.path[:] = folders


def kernels_in_use() -> tuple:
    return CompiledKernelConfig.graphs, CompiledKernelConfig.passes, EAGER_PLATFORMS["cpu"]


def use_kernels(state: tuple) -> None:
    """Undo `compiled.use()` and `compiled.use(False)`."""
    CompiledKernelConfig.graphs, CompiledKernelConfig.passes, platforms = state
    if EAGER_PLATFORMS["cpu"] is not platforms:
        use_platforms("cpu", platforms)


def interrupt_handler() -> Any:
    return signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None


def set_interrupt_handler(handler: Any) -> None:
    if handler is not None:
        signal.signal(signal.SIGINT, handler)


def set_profiler(profiler: Any) -> None:
    if sys.getprofile() is not profiler:  # cProfile's is not callable, and sys.setprofile would refuse it
        sys.setprofile(profiler)


# (getter, setter) of each state
STATES: list[tuple[Callable, Callable]] = [
    (flow.get_rng_state, flow.set_rng_state),
    (np.random.get_state, np.random.set_state),
    (random.getstate, random.setstate),
    (core_mode.MODE.get, core_mode.MODE.set),
    (flow.get_default_dtype, flow.set_default_dtype),
    (np.geterr, lambda state: np.seterr(**state)),
    (np.get_printoptions, lambda state: np.set_printoptions(**state)),
    (lambda: dict(OPTIONS), OPTIONS.update),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (sys.gettrace, sys.settrace),
    (sys.getprofile, set_profiler),
    (gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    (current_folder, change_folder),
    (environment, set_environment),
    (interrupt_handler, set_interrupt_handler),
    (sys.getswitchinterval, sys.setswitchinterval),
    (lambda: sys.path[:], set_path),
    (kernels_in_use, use_kernels),
]
CASE_SEED = 0
ONE_AT_A_TIME = new_lock(threading.RLock)  # one answer at a time: the states belong to all threads


def seed_random_states() -> None:
    """Seed all random states: the same answer must get the same verdict each time, in this process or in another."""
    flow.manual_seed(CASE_SEED)
    np.random.seed(CASE_SEED)
    random.seed(CASE_SEED)


def no_input(*prompt: Any) -> str:
    raise EOFError("input() is not available while an answer is checked: use the arguments")


@contextlib.contextmanager
def restricted_calls() -> Iterator[None]:
    """Restrict calls of an answer: input() raises, and the recursion limit is capped, to protect memory and process.

    In a notebook exit() does not stop the kernel, and display() shows a limited number of outputs.
    """
    deep = sys.setrecursionlimit
    calls: list[tuple[Any, str, Any]] = [
        (builtins, "input", no_input),
        (sys, "setrecursionlimit", lambda most: deep(min(most, MAX_RECURSION))),
    ]
    shell = notebook.ipython()
    if shell is not None:
        shows = limited_calls(shell.display_pub.publish)
        calls += [(shell, "ask_exit", sys.exit), (shell.display_pub, "publish", shows)]
    before = [getattr(place, name) for place, name, call in calls]
    try:
        sys.setrecursionlimit(min(sys.getrecursionlimit(), MAX_RECURSION))
        for place, name, call in calls:
            setattr(place, name, call)
        yield
    finally:
        for (place, name, call), old in zip(calls, before):
            setattr(place, name, old)


def limited_calls(call: Callable) -> Callable:
    """Wrap a call so that it works only the first MAX_LINES times."""
    left = iter(range(MAX_LINES))
    return lambda *args, **kwargs: call(*args, **kwargs) if next(left, None) is not None else None


class Isolated:
    """Output of an isolated block. printed: lines, shortened. more: count of omitted lines. warned: warning texts."""

    printed: list[str]
    omitted_lines: int
    warned: list[str]


@contextlib.contextmanager
def isolated() -> Iterator[Isolated]:
    """Restore all states after the block, whatever it does."""
    result = Isolated()
    with ONE_AT_A_TIME, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        states = [get() for get, put in STATES]
        out, err, noticed = sys.stdout, sys.stderr, flow.notices(True)
        sys.stdout = sys.stderr = mine = RecordedOutput(out)
        CompiledKernelConfig.graphs = "none"  # a verdict must not depend on compiled kernels,
        if isinstance(EAGER_PLATFORMS["cpu"], PlatformsBySize):  # or on whether there are some
            use_platforms("cpu", tuple(EAGER_PLATFORMS["cpu"]))
        try:
            with restricted_calls(), own_session():
                yield result
        finally:
            sys.stdout, sys.stderr = out, err
            flow.notices(noticed)
            for state, (get, put) in zip(states, STATES):
                put(state)
        result.printed = mine.text.splitlines()[:MAX_LINES]
        result.omitted_lines = mine.omitted_lines + max(0, len(mine.text.splitlines()) - MAX_LINES)
        result.warned = [str(warning.message) for warning in caught]


@contextlib.contextmanager
def own_session() -> Iterator[None]:
    """Give jobs of the block a separate session.

    Jobs of the notebook keep their variables, steps, times and errors; runs in the background are paused meanwhile.
    """
    runs = [run for run in current_stream().runs if run.state == "running"]
    for run in runs:
        run.pause()
    end = time.monotonic() + JOB_WAIT
    while time.monotonic() < end and not all(run.resumed.waiters or run.done() for run in runs):
        time.sleep(0.001)  # a run may still be processing a batch
    current_stream().wait_until_idle(JOB_WAIT)
    of_stream: tuple[Any, ...] = current_stream().errors, current_stream().records, current_stream().counts
    kept, before = dict(vars(default_session())), [copy.copy(state) for state in of_stream]
    current_stream().errors.clear(), current_stream().records.clear()
    vars(default_session()).update(vars(Session()))
    try:
        yield
    finally:
        current_stream().cancel_queued(threading.current_thread())
        current_stream().wait_until_idle(JOB_WAIT)
        vars(default_session()).update(kept)
        for now, then in zip(of_stream, before):
            now.clear()
            (now.update if isinstance(now, dict) else now.extend)(then)
        for run in runs:
            run.resume()


# ---- changes of minflow itself ---------------------------------------------------------------------------------------

NAMESPACES: dict[str, Any] = {
    "minflow": flow,
    "minflow.Tensor": flow.Tensor,
    "minflow.nn": flow.nn,
    "minflow.nn.Module": flow.nn.Module,
    "minflow.nn.functional": flow.nn.functional,
    "minflow.optim": flow.optim,
    "numpy": np,
}
OPERATORS = {
    f"__{name}__"
    for name in (
        "add radd sub rsub mul rmul truediv rtruediv matmul rmatmul pow neg getitem setitem eq lt gt call"
    ).split()
}


def attributes(space: Any) -> dict[str, Any]:
    """Attributes of a module, or of a class with inherited ones; calls no descriptor."""
    result: dict[str, Any] = {}
    for part in reversed(space.__mro__) if isinstance(space, type) else [space]:
        result.update(vars(part))
    return result


# The public attributes that exercises use, as they were at import.
ORIGINAL_ATTRIBUTES = {
    name: [
        (key, value)
        for key, value in attributes(space).items()
        if key in OPERATORS or (not key.startswith("_") and (callable(value) or isinstance(value, property)))
    ]
    for name, space in NAMESPACES.items()
}


def replaced_attribute() -> str:
    """Name of the first replaced attribute, such as "minflow.Tensor.__add__"; "" if none was replaced."""
    for name, known in ORIGINAL_ATTRIBUTES.items():
        now = attributes(NAMESPACES[name])
        for key, value in known:
            if now.get(key) is not value:
                return f"{name}.{key}"
    return ""
