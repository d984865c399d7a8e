"""PyTorch's memory formats. Here elements are in C order, or a view has other strides.

A memory format is accepted wherever PyTorch takes one, and does not change strides.
"""

from __future__ import annotations

from typing import Any

from ..base.errors import DTypeError
from ..source_location import fail


class Layout:
    """`flow.strided`, the layout of every dense tensor, and `flow.sparse_coo`."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"minflow.{self.name}"

    __str__ = __repr__

    def __reduce__(self) -> str:
        return self.name


class memory_format(Layout):
    """`flow.channels_last` and the others."""


strided, sparse_coo = Layout("strided"), Layout("sparse_coo")
contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")
CHANNELS_LAST_NDIM = {channels_last: 4, channels_last_3d: 5}  # the number of axes


def check_format(name: str, format: Any) -> None:
    """Refuse anything that is not a memory format."""
    if not isinstance(format, memory_format | None):
        what = f"{name}: memory_format must be a flow.memory_format, got a {type(format).__name__}"
        fail(DTypeError, what, "flow.contiguous_format", memory_format=format)


def view_in_format(x: Any, format: Any) -> Any:
    """The view of x that is contiguous if x has that format; None if the number of axes does not fit the format."""
    check_format("is_contiguous", format)
    if format not in CHANNELS_LAST_NDIM:
        return x
    return x.permute(0, *range(2, x.ndim), 1) if x.ndim == CHANNELS_LAST_NDIM[format] else None
