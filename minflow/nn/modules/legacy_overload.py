"""Layers whose names are also functions of OneFlow's job-function API. Read next: `../../job/legacy/overloads.py`."""

from __future__ import annotations

from typing import Any

from ...core.base.legacy_dispatch import BUILDING, find_overload


class LegacyOverload:
    """While a job function is built, calling the class with a Blob calls the legacy function of the same name."""

    def __new__(cls, *args: Any, **options: Any) -> Any:
        if BUILDING.get() is not None and (function := find_overload(f"flow.nn.{cls.__name__}", args, options)):
            return function(*args, **options)
        return super().__new__(cls, *args, **options)
