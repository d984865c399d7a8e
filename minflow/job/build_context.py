"""The job function that is being built now. Other modules ask here, so that they need not import `build.py`.

The context variable itself is in core, where overloaded names check whether a job is being built; its value is a
JobBuild. Read next: `build.py`.
"""

from __future__ import annotations

from typing import Any

from ..core.base.errors import JobError
from ..core.base.legacy_dispatch import BUILDING
from ..core.mode import MODE
from ..core.source_location import here

current = BUILDING.get  # the JobBuild, or None outside a job function


def building(what: str, instead: str = "for eager code there is flow.nn") -> Any:
    """The current build. Raises JobError outside a job function. what: the caller's name, such as
    "flow.layers.dense".  instead: the end of the hint.
    """
    build = current()
    if build is None:
        hint = f"call it in a function under @flow.global_function(); {instead}"
        raise JobError(f"{what} works only inside a job function", where=here(), hint=hint)
    return build


def in_module() -> bool:
    """True inside the forward of an nn.Module. There all names and operators have their modern meaning, even while a
    job function that calls the module is being built.
    """
    return MODE.get().entered is not None
