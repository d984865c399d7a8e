"""`flow.typing`: annotations for the arguments and results of a job function.

    def train_job(images: tp.Numpy.Placeholder((100, 1, 28, 28)),
                  labels: tp.Numpy.Placeholder((100,), dtype=flow.int32)) -> tp.Numpy: ...

A placeholder is a class for annotations: it holds a shape and a dtype, but no data. Read next: `signature.py`.
"""

from __future__ import annotations

import typing
from numbers import Integral
from typing import Any, Generic, TypeVar

from ..core.base.errors import JobError
from ..core.source_location import here
from ..core.spec import DType, float32
from .checks import dtype_of

T = TypeVar("T")
Dict, List, Tuple = typing.Dict, typing.List, typing.Tuple  # noqa: UP006 - programs annotate with these names


class ArrayType:
    """Base class of the annotations; with `shape` set, a placeholder for an argument.

    shape, dtype: shape and dtype of one device's array.  batch_axis: the axis of the samples, or None.
    """

    shape: tuple[int, ...] | None = None
    dtype: DType
    batch_axis: int | None

    def __new__(cls, *args: Any, **options: Any) -> ArrayType:
        hint = f"x: tp.{'Numpy' if cls.shape else cls.__name__}.Placeholder((100, 28, 28), dtype=flow.float)"
        raise JobError(f"tp.{cls.__name__} is an annotation; it cannot be called", where=here(), hint=hint)

    @classmethod
    def Placeholder(cls, shape: tuple[int, ...], dtype: DType = float32, batch_axis: int | None = 0) -> type[ArrayType]:
        """Annotation for an array argument of this kind, with `shape` and `dtype`."""
        kind = cls.__name__
        if not isinstance(shape, tuple | list):
            what = f"{kind}.Placeholder: shape must be a tuple"
            hint = f"tp.{kind}.Placeholder((100, 1, 28, 28)); of one axis: (100,)"
            raise JobError(what, values={"got": repr(shape)[:60]}, where=here(), hint=hint)
        if any(not isinstance(n, Integral) or isinstance(n, bool) or n < 1 for n in shape):
            what = f"{kind}.Placeholder: each size must be an integer of at least 1"
            hint = "the batch size is part of the shape: load batches of one size"
            raise JobError(what, values={"shape": tuple(shape)}, where=here(), hint=hint)
        if batch_axis is not None and shape and batch_axis not in range(-len(shape), len(shape)):
            what = f"{kind}.Placeholder: batch_axis must be an axis of the shape"
            hint = "batch_axis=0, or None"
            raise JobError(what, where=here(), values={"shape": tuple(shape), "batch_axis": batch_axis}, hint=hint)
        shape, dtype = tuple(map(int, shape)), dtype_of(f"{kind}.Placeholder", dtype)
        attributes = {
            "shape": shape,
            "dtype": dtype,
            "batch_axis": batch_axis if shape else None,
            "__module__": "minflow.typing",
        }
        return type(f"{kind}.Placeholder({shape}, dtype={dtype.name})", (cls,), attributes)  # so help(job) shows it


class Numpy(ArrayType):
    """One NumPy array: the whole logical tensor."""


class ListNumpy(ArrayType):
    """A list with one array per device. As an argument each may have fewer elements than the placeholder."""


class ListListNumpy(ArrayType):
    """A list with one list of arrays per device."""


class Callback(Generic[T]):
    """`-> Callback[T]`: the call returns at once; `job(...)(function)` passes the result, a T, to the function."""


class Bundle(Generic[T]):
    """`-> Bundle[T]`: any nesting of lists, tuples and dicts, as the function returns it; its leaves are T."""


KINDS = (Numpy, ListNumpy, ListListNumpy)


def text(annotation: Any) -> str:
    """An annotation as source text: `Tuple[Numpy, Numpy]`."""
    if isinstance(annotation, type) and issubclass(annotation, ArrayType):
        if annotation.shape is None:
            return annotation.__name__
        return f"{annotation.__mro__[1].__name__}({annotation.shape}, dtype={annotation.dtype.name})"
    arguments = typing.get_args(annotation)
    if arguments:
        origin = typing.get_origin(annotation)
        return f"{getattr(origin, '__name__', origin).capitalize()}[{', '.join(map(text, arguments))}]"
    return getattr(annotation, "__name__", repr(annotation))
