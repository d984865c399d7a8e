"""What an answer may not change for what runs after it: random states, modes, warnings, output; and whether somebody
has changed minflow itself."""

from __future__ import annotations

import contextlib
import gc
import random
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import minflow as flow

from ..core import mode as core_mode

LINES, LETTERS = 20, 2000  # of an answer's own output that are kept


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
