"""Base of the layers that exist for signals, images and volumes, such as MaxPool1d, MaxPool2d and MaxPool3d."""

from __future__ import annotations

from typing import Any

from ..module import Module


class ByAxes(Module):
    """Base of layers for several numbers of axes.

    `class MaxPool1d(MaxPool, axes=1)` has the attributes _axes = 1 and _function = "max_pool1d", because MaxPool
    has _kind = "max_pool", and its docstring ends with that of MaxPool. A subclass without the class argument inherits
    them.
    """

    _axes: Any = 2
    _kind, _function = "", ""
    _shared_doc: str | None = None

    def __init_subclass__(cls, axes: Any = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        if axes is None:
            cls._shared_doc = cls.__dict__.get("_shared_doc") or cls.__doc__ or cls._shared_doc
        else:
            cls._axes, cls._function = axes, cls._kind and f"{cls._kind}{axes}d"
            cls.__doc__ = f"{cls.__doc__} {cls._shared_doc}"
