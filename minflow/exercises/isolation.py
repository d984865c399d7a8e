"""What an answer may not change for what runs after it: random states, modes, warnings, output, jobs; and whether
somebody has changed minflow itself."""

from __future__ import annotations

import contextlib
import copy
import gc
import random
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import minflow as flow

from ..core import mode as core_mode
from ..job.queue.stream import STREAM
from ..job.session import SESSION, Session

LINES, LETTERS = 20, 2000  # of an answer's own output that are kept
PATIENCE = 10.0  # seconds that steps of jobs get to end


class Printed:
    """What one thread prints: the beginning is kept, the rest counted. Other threads print where they always did."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.thread = stream, threading.get_ident()
        self.text, self.more = "", 0

    def write(self, text: str) -> int:
        if threading.get_ident() != self.thread:
            return self.stream.write(text)
        room = LETTERS - len(self.text)
        kept = text[:room] if self.text.count("\n") < LINES and room > 0 else ""
        self.text += kept
        self.more += text.count("\n", len(kept))
        return len(text)

    def flush(self) -> None:
        if threading.get_ident() != self.thread:
            self.stream.flush()

    def close(self) -> None:
        """Not by an answer."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class Isolated:
    """printed: lines of output, shortened. more: how many lines were left out. warned: the texts of warnings."""

    printed: list[str]
    more: int
    warned: list[str]


@contextlib.contextmanager
def isolated() -> Iterator[Isolated]:
    """Put everything back as it was, whatever the block does."""
    result = Isolated()
    states = flow.get_rng_state(), np.random.get_state(), random.getstate()
    mode, dtype = core_mode.MODE.get(), flow.get_default_dtype()
    out, err, limit = sys.stdout, sys.stderr, sys.getrecursionlimit()
    sys.stdout = sys.stderr = mine = Printed(out)
    noticed = flow.notices(True)
    collecting = gc.isenabled()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with own_session():
                yield result
    finally:
        sys.stdout, sys.stderr = out, err
        sys.setrecursionlimit(limit)
        core_mode.MODE.set(mode)
        flow.set_default_dtype(dtype)
        flow.notices(noticed)
        flow.set_rng_state(states[0])
        np.random.set_state(states[1])
        random.setstate(states[2])
        if collecting:
            gc.enable()
        result.printed = mine.text.splitlines()[:LINES]
        result.more = mine.more + max(0, len(mine.text.splitlines()) - LINES)
        result.warned = [str(one.message) for one in caught]


@contextlib.contextmanager
def own_session() -> Iterator[None]:
    """Jobs of the block have a session of their own. Those of the notebook keep their variables, steps, times and
    errors; what runs in the background pauses meanwhile."""
    runs = [run for run in STREAM.runs if run.state == "running"]
    for run in runs:
        run.pause()
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and not all(run.going.waiters or run.done() for run in runs):
        time.sleep(0.001)  # one may be on its way with a batch
    STREAM.idle(PATIENCE)
    of_stream: tuple[Any, ...] = STREAM.errors, STREAM.records, STREAM.counts
    kept, before = dict(vars(SESSION)), [copy.copy(one) for one in of_stream]
    STREAM.errors.clear(), STREAM.records.clear()
    vars(SESSION).update(vars(Session()))
    try:
        yield
    finally:
        STREAM.cancel_queued(threading.current_thread())
        STREAM.idle(PATIENCE)
        vars(SESSION).update(kept)
        for now, then in zip(of_stream, before):
            now.clear()
            (now.update if isinstance(now, dict) else now.extend)(then)
        for run in runs:
            run.resume()


# ---- has minflow been changed? ---------------------------------------------------------------------------------------

def attributes() -> dict[str, Any]:
    """The public attributes of what exercises are made of, by name."""
    spaces = {"minflow": flow, "minflow.Tensor": flow.Tensor, "minflow.nn": flow.nn,
              "minflow.nn.Module": flow.nn.Module, "minflow.nn.functional": flow.nn.functional,
              "minflow.optim": flow.optim, "numpy": np}
    return {f"{name}.{key}": value for name, space in spaces.items() for key, value in members(space)
            if (callable(value) or isinstance(value, property)) and not key.startswith("_") or key in OPERATORS}


def members(space: Any) -> Iterator[tuple[str, Any]]:
    """(name, attribute), of a class those that it inherits too; nothing is computed for it."""
    for one in reversed(space.__mro__) if isinstance(space, type) else [space]:
        yield from vars(one).items()


OPERATORS = {f"__{name}__" for name in (
    "add radd sub rsub mul rmul truediv rtruediv matmul rmatmul pow neg getitem setitem eq lt gt call").split()}
ORIGINAL = attributes()


def changed() -> str:
    """ "minflow.Tensor.__add__" where that is not minflow's own any more; "" where all is as it was."""
    now = attributes()
    return next((name for name, value in ORIGINAL.items() if now.get(name) is not value), "")
