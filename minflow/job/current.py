"""The job function that is being built now. All others ask here, so nobody has to import `build.py` for it.

Knows no build: what stands in the variable is its JobBuild. Read next: `build.py`.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from ..core.base.errors import JobError
from ..core.where import here

BUILDING: ContextVar[Any] = ContextVar("the job function that is being built", default=None)
current = BUILDING.get  # its JobBuild; None outside a job function


def building(what: str) -> Any:
    """The build that runs now; raises JobError outside a job function. what: "flow.layers.dense"."""
    build = current()
    if build is None:
        hint = "call it in a function under @flow.global_function(); for eager code there is flow.nn"
        raise JobError(f"{what} works only inside a job function", where=here(), hint=hint)
    return build
