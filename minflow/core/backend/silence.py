"""`with silent(): ...`, without NumPy's warnings of what floats do: inf and NaN are results here.

It sets what `np.errstate(all="ignore")` sets, which works it out at each use: as long as a small kernel takes.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar, copy_context

import numpy as np

with np.errstate(all="ignore"):
    errors, QUIET = next((item for item in copy_context().items() if item[0].name == "numpy.ufunc.extobj"),
                         (ContextVar("none"), None))
set_errors, reset_errors = errors.set, errors.reset  # a method of an object is looked up at each call


class Silent:
    """Within the block NumPy does not warn."""

    __slots__ = ("before",)

    def __enter__(self) -> None:
        self.before = set_errors(QUIET)

    def __exit__(self, *error: object) -> None:
        reset_errors(self.before)


silent = functools.partial(np.errstate, all="ignore") if QUIET is None else Silent
