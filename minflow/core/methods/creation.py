"""Methods that create a tensor of the same dtype: `x.new_zeros(2)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..functions.fill import as_leaf, copy_of, empty_of, finish, full_of, ones_of, place_like, size_of, zeros_of
from ..functions.tensor_types import data_or_shape
from ..messages.suggestions import hint_methods
from ..spec import cpu

if TYPE_CHECKING:
    from ..base.dtypes import DTypeLike
    from ..base.placement import Placement, SbpLike
    from ..functions.memory_format import Layout
    from ..spec import Device
    from ..tensor import Tensor


@hint_methods
class Creation:
    """New tensors like this one."""

    def new(self: Tensor, *data: Any, size: Sequence[int] | None = None, device: Device | str | None = None) -> Tensor:
        """A tensor of the dtype and on the device of this one: of data, `x.new([1, 2])`; or of a shape, `x.new(2, 3)`,
        uninitialized.
        """
        if size is not None:
            return self.new_empty(size, device=device)
        place = place_like(self, device)
        return finish(data_or_shape("new", data, self.dtype), None if place is cpu else place, False)

    def new_tensor(
        self: Tensor,
        data: Any,
        dtype: DTypeLike | None = None,
        device: Device | str | None = None,
        requires_grad: bool = False,
        *,
        placement: Placement | None = None,
        sbp: SbpLike | None = None,
        layout: Layout | None = None,
        pin_memory: bool = False,
    ) -> Tensor:
        """A tensor from data, by default in the dtype of this one."""
        place = place_like(self, device, placement, sbp)
        return as_leaf(copy_of(data, self.dtype if dtype is None else dtype, place), requires_grad)

    def new_full(
        self: Tensor,
        size: int | Sequence[int],
        fill_value: Tensor | float,
        dtype: DTypeLike | None = None,
        device: Device | str | None = None,
        requires_grad: bool = False,
        *,
        placement: Placement | None = None,
        sbp: SbpLike | None = None,
        layout: Layout | None = None,
        pin_memory: bool = False,
    ) -> Tensor:
        """A tensor filled with one value, by default in the dtype and on the device of this one."""
        place = place_like(self, device, placement, sbp)
        return as_leaf(full_of(size, fill_value, self.dtype if dtype is None else dtype, place), requires_grad)

    def new_zeros(
        self: Tensor,
        *size: int | Sequence[int],
        dtype: DTypeLike | None = None,
        device: Device | str | None = None,
        requires_grad: bool = False,
        placement: Placement | None = None,
        sbp: SbpLike | None = None,
        layout: Layout | None = None,
        pin_memory: bool = False,
    ) -> Tensor:
        """Zeros, by default in the dtype and on the device of this one."""
        place = place_like(self, device, placement, sbp)
        return as_leaf(zeros_of(size_of(size), self.dtype if dtype is None else dtype, place), requires_grad)

    def new_ones(
        self: Tensor,
        *size: int | Sequence[int],
        dtype: DTypeLike | None = None,
        device: Device | str | None = None,
        requires_grad: bool = False,
        placement: Placement | None = None,
        sbp: SbpLike | None = None,
        layout: Layout | None = None,
        pin_memory: bool = False,
    ) -> Tensor:
        place = place_like(self, device, placement, sbp)
        return as_leaf(ones_of(size_of(size), self.dtype if dtype is None else dtype, place), requires_grad)

    def new_empty(
        self: Tensor,
        *size: int | Sequence[int],
        dtype: DTypeLike | None = None,
        device: Device | str | None = None,
        requires_grad: bool = False,
        placement: Placement | None = None,
        sbp: SbpLike | None = None,
        layout: Layout | None = None,
        pin_memory: bool = False,
    ) -> Tensor:
        """An uninitialized tensor, by default in the dtype and on the device of this one."""
        place = place_like(self, device, placement, sbp)
        return as_leaf(empty_of(size_of(size), self.dtype if dtype is None else dtype, place), requires_grad)
