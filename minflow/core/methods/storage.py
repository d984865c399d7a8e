"""Methods and properties that describe a tensor's storage, resize it, or apply a Python function to each element.

All tensors are dense, in the memory of the CPU or of one device: questions about PyTorch's other kinds
of tensors have one answer here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .. import functions as F
from ..backend import backend_of_array, namespace, to_host
from ..base.errors import DTypeError, GradError, OutOfRangeError, SbpError, ShapeError, TraceError
from ..functionalize import stride_probe, version_counter_of, write_into
from ..functions.fill import empty_of, size_of
from ..functions.storages import TypedStorage, UntypedStorage
from ..host import host_array
from ..messages.suggestions import hint_methods
from ..mode import MODE
from ..source_location import fail

if TYPE_CHECKING:
    from ..functions.memory_format import Layout
    from ..tensor import Tensor


@hint_methods
class Storage:
    """Kind and storage of the tensor."""

    is_cpu = property(lambda self: self.device.type == "cpu", doc="True if the tensor is in CPU memory.")
    is_meta = property(lambda self: self.device.type == "meta", doc="True on the device meta, without elements.")
    is_mkldnn = property(lambda self: False, doc="False: the layout is NumPy's.")
    is_mps = property(lambda self: False, doc="False: Apple's GPUs are not used.")
    is_nested = property(lambda self: False, doc="False: all rows have the same length.")
    is_quantized = property(lambda self: False, doc="False: elements are not quantized.")
    is_sparse_csr = property(lambda self: False, doc="False: sparse tensors have the layout COO.")
    is_xpu = property(lambda self: False, doc="False: Intel's GPUs are not used.")
    retains_grad = property(lambda self: self._grad_owner()._retains is not None, doc="True after `retain_grad()`.")

    @property
    def _version(self: Tensor) -> int:
        """Number of writes to the storage, counted from the first look at it, save or view."""
        return version_counter_of(self).version

    def is_inference(self: Tensor) -> bool:
        """False: inference mode creates ordinary tensors."""
        return False

    def is_distributed(self: Tensor) -> bool:
        """True for a global tensor, which has parts on several ranks."""
        return self.is_global

    def is_set_to(self: Tensor, tensor: Tensor) -> bool:
        """True if both view the same elements of the same memory."""
        arrays = [stride_probe(x) if x.array is None else x.array for x in (self, tensor)]
        mine, its = [backend_of_array(array).storage_key(array) for array in arrays]
        return (mine, self.shape, self.stride()) == (its, tensor.shape, tensor.stride())

    def const_data_ptr(self: Tensor) -> int:
        """Address of the first element, for reading."""
        return self.data_ptr()

    def dim_order(self: Tensor) -> tuple[int, ...]:
        """The axes, in order of descending stride."""
        return tuple(sorted(range(self.ndim), key=lambda d: -self.stride(d)))

    def storage(self: Tensor) -> TypedStorage:
        """The memory that this tensor and its views share, in elements."""
        return TypedStorage(self)

    def untyped_storage(self: Tensor) -> UntypedStorage:
        """The memory that this tensor and its views share, in bytes."""
        return UntypedStorage(self)

    # ---- another size -----------------------------------------------------------------------------------------------

    def resize_(self: Tensor, *sizes: int | Sequence[int], memory_format: Layout | None = None) -> Tensor:
        """Resize in place: the first elements are kept, and new ones are uninitialized."""
        shape = size_of(sizes)
        if self.is_global:
            fail(SbpError, "resize_ of a global tensor", "x.reshape(...), or a new tensor", x=self, size=shape)
        if MODE.get().trace is not None or self.requires_grad:
            what = "resize_ is not possible while a graph is built, or on a tensor that requires grad"
            hint = "x.reshape(...), or flow.cat with the elements to add"
            fail(TraceError if MODE.get().trace is not None else GradError, what, hint, x=self, size=shape)
        fresh, n = empty_of(shape, self.dtype, self.device), min(math.prod(shape), self.numel())
        if shape != self.shape:
            fresh.array.reshape(-1)[:n] = self.array.reshape(-1)[:n]
            self.data = fresh
        return self

    def resize_as_(self: Tensor, tensor: Tensor, memory_format: Layout | None = None) -> Tensor:
        """Resize in place to the shape of another tensor; see `resize_`."""
        return self.resize_(*tensor.shape)

    def set_(
        self: Tensor,
        source: Tensor | None = None,
        storage_offset: int = 0,
        size: Sequence[int] | None = None,
        stride: Sequence[int] | None = None,
    ) -> Tensor:
        """Make this tensor a view of another tensor's storage, optionally with its own offset, sizes and strides."""
        if source is None:
            source = empty_of((0,), self.dtype, self.device)
        if not hasattr(source, "spec") or source.dtype is not self.dtype or (size is None and storage_offset != 0):
            fail(
                DTypeError,
                "set_ takes a tensor of the same dtype, and an offset with a size; there are no "
                "storages apart from tensors",
                "x.set_(y), or x.data = y",
                x=self,
                source=source,
            )
        self.data = source if size is None else F.as_strided(source.detach(), size, stride or (1,), storage_offset)
        return self

    # ---- element by element
    # -------------------------------------------------------------------------------------------

    def apply_(self: Tensor, callable: Callable) -> Tensor:
        """Replace each element by the result of a Python function of it: slow, and not in a graph."""
        return apply_elementwise(self, "apply_", callable)

    def map_(self: Tensor, tensor: Tensor, callable: Callable) -> Tensor:
        """Replace each element by the result of a Python function of it and of that of another tensor."""
        return apply_elementwise(self, "map_", callable, tensor)

    def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable) -> Tensor:
        """Replace each element by the result of a Python function of it and of those of two other tensors."""
        return apply_elementwise(self, "map2_", callable, x, y)


def apply_elementwise(target: Tensor, name: str, function: Callable, *others: Tensor) -> Tensor:
    if target.requires_grad:
        what = f"{name}: the tensor requires grad, and the derivative of a Python function is not known"
        fail(GradError, what, "x.detach(), or an autograd.Function", x=target)
    if not callable(function) and target.numel():
        what = f"{name}: the argument must be a function, got {type(function).__name__}"
        fail(DTypeError, what, "lambda x: x + 1", function=function)
    arrays = [to_host(MODE.get().tensor_of(x)._read_array(name)) for x in (target, *others)]
    try:
        rows = namespace().broadcast_arrays(*arrays)
    except ValueError:
        rows = ()
    if not rows or rows[0].shape != arrays[0].shape:
        what = f"{name}: the other tensors cannot be broadcast to shape {tuple(target.shape)}"
        fail(ShapeError, what, "other.expand_as(x)", x=target, **{f"other{k}": x for k, x in enumerate(others)})
    results = [function(*row) for row in zip(*[row.reshape(-1).tolist() for row in rows])]
    try:
        written = host_array(results, arrays[0].dtype)
    except OverflowError:
        what = f"{name}: the function returned a value that does not fit into {target.dtype.name}"
        fail(OutOfRangeError, what, "x.long() first", x=target)
    return write_into(target, written.reshape(arrays[0].shape))
