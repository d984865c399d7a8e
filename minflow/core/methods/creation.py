"""Methods that make a new tensor of this one's dtype: `x.new_zeros(2)`."""

from __future__ import annotations

from ..functions.fill import copy_of, empty_of, finish, full_of, ones_of, size_of, zeros_of
from ..messages.suggestions import hint_methods


@hint_methods
class Creation:
    """New tensors like this one."""

    def new_tensor(self, data, dtype=None, device=None, requires_grad=False, *, layout=None, pin_memory=False):
        """A tensor of data, by default in this one's dtype."""
        return finish(copy_of(data, self.dtype if dtype is None else dtype), device, requires_grad)

    def new_full(
        self, size, fill_value, dtype=None, device=None, requires_grad=False, *, layout=None, pin_memory=False
    ):
        """A tensor of one number, by default in this one's dtype."""
        return finish(full_of(size, fill_value, self.dtype if dtype is None else dtype), device, requires_grad)

    def new_zeros(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
        """Zeros, by default in this one's dtype."""
        return finish(zeros_of(size_of(size), self.dtype if dtype is None else dtype), device, requires_grad)

    def new_ones(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
        return finish(ones_of(size_of(size), self.dtype if dtype is None else dtype), device, requires_grad)

    def new_empty(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
        """Whatever lies in the memory, by default in this one's dtype."""
        return finish(empty_of(size_of(size), self.dtype if dtype is None else dtype), device, requires_grad)
