"""`with silent(): ...` suppresses NumPy's floating-point warnings, since inf and NaN are results here.

It has the effect of `np.errstate(all="ignore")`, which costs as much as a small kernel because it recomputes its state
at each use.
"""

from __future__ import annotations

import functools
import itertools
import threading
from contextvars import ContextVar, copy_context

import numpy as np

from ..base.interrupts import ContextVarScope

with np.errstate(all="ignore"):
    errors, QUIET = next(
        (item for item in copy_context().items() if item[0].name == "numpy.ufunc.extobj"),
        (ContextVar("none", default=None), None),
    )
get_errors, set_errors = errors.get, errors.set  # bound once, so that a call needs no attribute lookup


class Scopes(threading.local):
    """The scope of each thread: making one for each kernel would double the time of small ones."""

    def __init__(self) -> None:
        class Silent(ContextVarScope):
            """Suppress NumPy's floating-point warnings within the block; entered by C code alone, since it is often."""

            variable = errors

        self.silent = Silent()
        quiet = map(set_errors, itertools.repeat(QUIET))
        Silent.__enter__ = map(self.silent.tokens.append, quiet).__next__  # type: ignore[method-assign, assignment]


SCOPES = Scopes()


def scope_of_thread() -> ContextVarScope:
    """The scope of the calling thread, which may be entered again inside its own block."""
    return SCOPES.silent


silent = functools.partial(np.errstate, all="ignore") if QUIET is None else scope_of_thread
