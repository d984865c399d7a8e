"""Conversion of data to a numpy array: numbers, nested lists, arrays, tensors in lists, with dtype inference.

Must not import the Tensor class: a tensor is an object with a `spec`. Read next: `functions/fill.py`.
"""

from __future__ import annotations

import functools
import math

from .backend import Array, empty, namespace, namespace_of, to_host
from .base.dtypes import BY_PYTHON, promote_types
from .base.errors import DTypeError, MinflowError, OutOfRangeError, ShapeError
from .host import HostArray, HostScalar, host_array
from .messages.wrong_arguments import contains_itself, contains_itself_error
from .ops.shape import check_fits
from .source_location import fail
from .spec import DType, Spec, as_dtype, bfloat16, bool_, default_dtype, int64, uint8

ARRAY_TYPES = (HostArray, HostScalar)


def array_of(data, dtype: DType | None) -> HostArray:
    """A new numpy array of numbers or nested lists, also of arrays and tensors; Python floats get the default dtype."""
    if isinstance(data, ARRAY_TYPES):
        data = namespace().asarray(data)
        if data.dtype.kind not in "biufc" and data.dtype != bfloat16.np:
            fail(DTypeError, f"tensor() cannot hold an array of {data.dtype}", "array.astype('float32')", data=data)
        wanted = as_dtype(data.dtype.newbyteorder("=")) if dtype is None else dtype
        return host_array(check_range(data, wanted), wanted.np)
    try:
        array = host_array(to_numpy(data, depth_of(data)))
    except MinflowError:
        raise
    except ValueError as error:
        hint = "give every row the same number of elements"
        fail(ShapeError, "tensor() of lists whose lengths differ", hint, reason=error)
    except RecursionError:
        if contains_itself(data):
            raise contains_itself_error("tensor()", "data", data) from None
        raise
    kind = array.dtype.kind
    if kind not in "biufcO" or (kind == "O" and not all(isinstance(x, int | float) for x in array.flat)):
        hint = "numbers, bools, or nested lists of them"
        fail(DTypeError, f"tensor() cannot hold {type(data).__name__} of {array.dtype}", hint, data=data)
    if dtype is None:
        if not has_arrays(data):
            dtype = {"f": default_dtype(), "c": default_dtype().to_complex(), "b": bool_}.get(kind, int64)
        else:
            dtype = functools.reduce(promote_types, leaf_dtypes(data))
    if kind == "O" and (dtype.floating or any(isinstance(x, float) for x in array.flat)):
        dtype, array = dtype if dtype.floating else default_dtype(), array.astype("float64")
    if kind == "c" and 0 < dtype.rank < 3:
        fail(DTypeError, f"tensor(): complex numbers do not fit into {dtype.name}", "dtype=flow.complex64", data=data)
    return check_range(array, dtype, "iuOf").astype(dtype.np, copy=False)


def check_range(array: HostArray, dtype: DType, kinds: str = "iuO") -> HostArray:
    """The array, after checking that an integer dtype can hold its elements; numpy would wrap some of them around and
    refuse others. Raises OutOfRangeError.
    """
    if array.dtype.kind in kinds and dtype.rank == 1 and array.size:
        low, high = array.min(), array.max()  # NaN, if there is one
        try:
            check_fits(low, dtype)
            check_fits(high, dtype)
        except OutOfRangeError as error:
            fail(OutOfRangeError, error.what, error.hint, smallest=low, largest=high)
    return array


def copy_keeping_strides(array: HostArray) -> HostArray:
    """A copy with the same strides, since the order in which kernels sum may depend on strides."""
    if array.flags.c_contiguous or not array.size:
        return host_array(array)
    low = sum([(n - 1) * stride for n, stride in zip(array.shape, array.strides) if stride < 0])
    high = sum([(n - 1) * stride for n, stride in zip(array.shape, array.strides) if stride > 0])
    memory = empty(Spec((high - low + array.itemsize,), uint8))
    copy = HostArray(array.shape, array.dtype, memory, -low, array.strides)
    copy[...] = array
    return copy


def storage_size(array: Array) -> int:
    """Number of elements from the first to the last of an array, including those in gaps; 0 if the strides are not
    multiples of the itemsize, as for a field of records.
    """
    if any(stride % array.itemsize for stride in array.strides):
        return 0
    return 1 + sum([(n - 1) * stride for n, stride in zip(array.shape, array.strides)]) // array.itemsize


def storage_of(array: Array) -> Array:
    """All elements from the first to the last of an array, including those in gaps, as a 1-d array."""
    return namespace_of(array).lib.stride_tricks.as_strided(array, (storage_size(array) or 1,), (array.itemsize,))


def leaf_dtypes(data) -> list[DType]:
    """The dtypes to promote for lists that contain tensors or arrays; Python numbers count as arrays."""
    if isinstance(data, list | tuple):
        return [dtype for x in data for dtype in leaf_dtypes(x)]
    if hasattr(data, "spec"):
        return [data.spec.dtype]
    if isinstance(data, ARRAY_TYPES):
        return [as_dtype(data.dtype)]
    kind = next((t for t in BY_PYTHON if isinstance(data, t)), None)
    return [as_dtype(kind or host_array(data).dtype)]


def depth_of(data) -> int:
    """Number of axes of nested lists, found by their first entries. A tensor counts as a number."""
    if isinstance(data, list | tuple):
        return 1 + (depth_of(data[0]) if data else 0)
    return 0 if hasattr(data, "spec") else namespace().ndim(data)


def to_numpy(data, depth: int):
    """Convert the tensors in nested lists to arrays of `depth` axes, as the first entries have, like PyTorch: in a
    list that begins with a number or a tensor, each tensor must have one element.
    """
    if isinstance(data, list | tuple):
        return [to_numpy(x, depth - 1) for x in data]
    if isinstance(data, ARRAY_TYPES):
        return data.astype("float32") if data.dtype.name == "bfloat16" else data
    if not hasattr(data, "spec"):
        return data
    array, depth = to_numpy(to_host(data._read_array("tensor")), 0), max(depth, 0)
    if array.ndim < depth or array.size != math.prod(array.shape[:depth]):
        one = ("one element", "one axis")[depth] if depth < 2 else f"{depth} axes"
        what = f"tensor() of lists: a tensor in them must have {one}, got shape {array.shape}"
        fail(ShapeError, what, "flow.stack([...]) or flow.cat([...]) of tensors", element=data)
    return array.reshape(array.shape[:depth])


def has_arrays(data) -> bool:
    if isinstance(data, list | tuple):
        return any(has_arrays(x) for x in data)
    return isinstance(data, ARRAY_TYPES) or hasattr(data, "spec")
