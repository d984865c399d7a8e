"""Storages as PyTorch shows them: all elements of the memory that a tensor and its views share.

There are no storages apart from tensors: a storage is a one-axis tensor over the memory, under PyTorch's names.
Read next: `../functionalize.py`, views and their bases.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..base.errors import DTypeError
from ..functionalize import root_of
from ..source_location import fail
from .arguments import is_tensor

if TYPE_CHECKING:
    from ..spec import Device, DType
    from ..tensor import Tensor


class Storage:
    """The base class of both kinds of storage. elements: the memory as a tensor of one axis."""

    def __init__(self, tensor: Tensor):
        if not is_tensor(tensor):
            what = f"{type(self).__name__} takes a tensor, whose memory it shows"
            fail(DTypeError, what, "flow.empty(n).untyped_storage()", tensor=tensor)
        root = root_of(tensor)[0].detach()
        span = 1 + sum([(n - 1) * step for n, step in zip(root.shape, root.stride())]) if root.numel() else 0
        self.elements = root.as_strided((span,), (1,))

    @property
    def device(self) -> Device:
        """The device that holds the memory."""
        return self.elements.device

    def data_ptr(self) -> int:
        """Address of the first element: equal for tensors that share their memory."""
        return self.elements.data_ptr()

    def element_size(self) -> int:
        """Bytes per element."""
        return self.elements.element_size()

    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.elements.nbytes

    def size(self) -> int:
        """Number of elements."""
        return self.nbytes() // self.element_size()

    def tolist(self) -> list:
        """All elements as Python numbers."""
        return self.elements.tolist()

    def resize_(self, size: int) -> None:
        """Raise DTypeError: a storage keeps its size."""
        what = f"a storage cannot be resized, to {size}: the tensors that share it would lose or gain elements"
        fail(DTypeError, what, "x.resize_(*sizes), or x.data = flow.empty(0)", size=size)

    def __getitem__(self, index: int | slice) -> Any:
        return self.tolist()[index]

    def __iter__(self) -> Iterator:
        return iter(self.tolist())

    def __len__(self) -> int:
        return self.size()

    def __repr__(self) -> str:
        kind, dtype = type(self).__name__, self.elements.dtype.name
        return f"{kind} of {self.size()} elements, {dtype}, {self.nbytes()} bytes, {self.device}"


class TypedStorage(Storage):
    """The elements of the memory behind a tensor, in the tensor's dtype: `x.storage()`."""

    @property
    def dtype(self) -> DType:
        """The data type of the elements."""
        return self.elements.dtype

    def untyped(self) -> UntypedStorage:
        """The same memory, in bytes."""
        return UntypedStorage(self.elements)

    def fill_(self, value: Any) -> TypedStorage:
        """Write one number to all elements."""
        self.elements.fill_(value)
        return self

    def copy_(self, source: TypedStorage) -> TypedStorage:
        """Write the elements of another storage of the same size."""
        self.elements.copy_(source.elements)
        return self

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self.elements[index] = value


class UntypedStorage(Storage):
    """The bytes of the memory behind a tensor: `x.untyped_storage()`."""

    def element_size(self) -> int:
        return 1

    def tolist(self) -> list[int]:
        """All bytes, as numbers from 0 to 255."""
        return list(self.elements._read_array("storage").tobytes())

    def fill_(self, value: Any) -> UntypedStorage:
        """Raise DTypeError: the bytes are read-only."""
        return refuse_bytes(value)

    def __setitem__(self, index: int | slice, value: Any) -> None:
        refuse_bytes(value)


def refuse_bytes(value: Any) -> Any:
    fail(DTypeError, "the bytes of an untyped storage are read-only", "x.storage() writes elements", value=value)
