"""The job function that is being built now. All others ask here, so nobody has to import `build.py` for it.

The variable itself stands in core, where names with two meanings ask whether a job is being built; its value is a
JobBuild. Read next: `build.py`.
"""

from __future__ import annotations

from typing import Any

from ..core.base.errors import JobError
from ..core.base.legacy_dispatch import BUILDING
from ..core.mode import MODE
from ..core.source_location import here

current = BUILDING.get  # its JobBuild; None outside a job function


def building(what: str) -> Any:
    """The build that runs now; raises JobError outside a job function. what: "flow.layers.dense"."""
    build = current()
    if build is None:
        hint = "call it in a function under @flow.global_function(); for eager code there is flow.nn"
        raise JobError(f"{what} works only inside a job function", where=here(), hint=hint)
    return build


def in_module() -> bool:
    """True if the forward of an nn.Module runs. There all names and operators mean the same as in eager, also while a
    job function that calls the module is built."""
    return MODE.get().entered is not None
