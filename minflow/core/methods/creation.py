"""Methods that create a tensor of the same dtype: `x.new_zeros(2)`."""

from __future__ import annotations

from ..functions.fill import copy_of, empty_of, finish, full_of, ones_of, size_of, zeros_of
from ..messages.suggestions import hint_methods


@hint_methods
class Creation:
    """New tensors like this one."""

    def new_tensor(self, data, dtype=None, device=None, requires_grad=False, *, layout=None, pin_memory=False):
        """A tensor from data, by default in the dtype of this one."""
        return finish(copy_of(data, self.dtype if dtype is None else dtype), device, requires_grad)

    def new_full(
        self, size, fill_value, dtype=None, device=None, requires_grad=False, *, layout=None, pin_memory=False
    ):
        """A tensor filled with one value, by default in the dtype of this one."""
        return finish(full_of(size, fill_value, self.dtype if dtype is None else dtype), device, requires_grad)

    def new_zeros(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
        """Zeros, by default in the dtype of this one."""
        return finish(zeros_of(size_of(size), self.dtype if dtype is None else dtype), device, requires_grad)

    def new_ones(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
        return finish(ones_of(size_of(size), self.dtype if dtype is None else dtype), device, requires_grad)

    def new_empty(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
        """An uninitialized tensor, by default in the dtype of this one."""
        return finish(empty_of(size_of(size), self.dtype if dtype is None else dtype), device, requires_grad)
