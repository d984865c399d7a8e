"""`with silent(): ...`, without NumPy's warnings of what floats do: inf and NaN are results here.

It sets what `np.errstate(all="ignore")` sets, which works it out at each use: as long as a small kernel takes.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar, copy_context
from typing import Any

import numpy as np

from ..base.interrupts import ContextVarScope

with np.errstate(all="ignore"):
    errors, QUIET = next(
        (item for item in copy_context().items() if item[0].name == "numpy.ufunc.extobj"),
        (ContextVar("none", default=None), None),
    )
get_errors, set_errors = errors.get, errors.set  # a method of an object is looked up at each call


class Silent(ContextVarScope):
    """Within the block NumPy does not warn."""

    variable = errors

    def value(self) -> Any:
        return QUIET


silent = functools.partial(np.errstate, all="ignore") if QUIET is None else Silent
