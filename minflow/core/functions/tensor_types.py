"""Tensor types by dtype: `flow.LongTensor([1, 2])`, `isinstance(x, flow.FloatTensor)`, `x.type("FloatTensor")`.

A TypedTensor creates Tensors and answers `isinstance`; it has no instances of its own. Read next: `creation.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backend import backend_of
from ..base.dtypes import DType, as_dtype, default_dtype, set_default_dtype
from ..base.errors import DTypeError, ShapeError
from ..host import HostScalar, python_number
from ..ops.shape import getitem
from ..source_location import fail
from ..spec import Device
from .arguments import is_tensor
from .fill import copy_of, empty_of, finish, place_of, size_of

if TYPE_CHECKING:
    from ..tensor import Tensor


NAMES = {
    "bool": "BoolTensor", "uint8": "ByteTensor", "int8": "CharTensor", "int16": "ShortTensor", "int32": "IntTensor",
    "int64": "LongTensor", "float16": "HalfTensor", "bfloat16": "BFloat16Tensor", "float32": "FloatTensor",
    "float64": "DoubleTensor", "complex64": "ComplexFloatTensor", "complex128": "ComplexDoubleTensor",
    "uint16": "UInt16Tensor", "uint32": "UInt32Tensor", "uint64": "UInt64Tensor",
}  # fmt: skip
BY_NAME = {name: dtype for dtype, name in NAMES.items()}


class TypedTensor(type):
    """The metaclass of `FloatTensor` and the others. dtype: of the tensors that it creates.  kind: "cpu" or "cuda"."""

    dtype: DType
    kind: str

    def __call__(cls, *data: Any, device: Device | str | None = None) -> Tensor:
        """A tensor of this dtype: `LongTensor([1, 2])` from data, `FloatTensor(2, 3)` from a shape, uninitialized."""
        place = place_of(cls.kind if device is None else device)
        return finish(data_or_shape(cls.__name__, data, cls.dtype), place, False)

    def __instancecheck__(cls, x: Tensor) -> bool:
        return is_tensor(x) and x.spec.dtype is cls.dtype and x.spec.device.type == cls.kind

    def __repr__(cls) -> str:
        return f"<class 'minflow.{'' if cls.kind == 'cpu' else cls.kind + '.'}{cls.__name__}'>"


def make_type(name: str, kind: str = "cpu") -> TypedTensor:
    dtype = as_dtype(BY_NAME[name])
    doc = f"A {dtype.name} tensor: of numbers, `{name}([1, 2])`, or of a shape, not initialized, `{name}(2, 3)`."
    home = "minflow" if kind == "cpu" else f"minflow.{kind}"  # where pickle looks it up
    return TypedTensor(name, (), {"dtype": dtype, "kind": kind, "__doc__": doc, "__module__": home})


def data_or_shape(name: str, data: tuple, dtype: DType) -> Tensor:
    """The data of a new tensor: uninitialized for a shape, `Tensor(2, 3)`; or the elements, `Tensor([1., 2.])`.

    A tensor that already has the dtype gives a view, not a copy; `Tensor(x)` takes any dtype.
    """
    if len(data) == 1 and is_tensor(data[0]):
        same = name == "Tensor" or data[0].spec.dtype is dtype
        return getitem(data[0], index=()) if same else data[0].to(dtype)
    if len(data) == 1 and data[0].__class__.__name__ == "Size":
        return empty_of(size_of(tuple(data[0])), dtype)
    if all(isinstance(python_number(n), int) for n in data):
        return empty_of(size_of(data if data else (0,)), dtype)
    if len(data) != 1 or isinstance(data[0], float | HostScalar):
        what = f"{name} takes a list, an array or a tensor, or the sizes of a shape"
        fail(ShapeError, what, f"{name}([1.5]), or flow.tensor(1.5)", arguments=data)
    return copy_of(data[0], dtype)


def type_of(x: Tensor) -> str:
    """The name of the type of a tensor: "minflow.FloatTensor"."""
    place = "minflow." if x.spec.device.type == "cpu" else f"minflow.{x.spec.device.type}."
    return place + NAMES[x.spec.dtype.name]


def parse_type(kind: Any) -> tuple[DType, str]:
    """The dtype and kind of device of a type, given as a dtype, FloatTensor, "torch.FloatTensor", "FloatTensor", ..."""
    if isinstance(kind, TypedTensor):
        return kind.dtype, kind.kind
    if isinstance(kind, str) and kind.endswith("Tensor"):
        place, _, name = kind.rpartition(".")
        library, _, device = place.partition(".")
        if library in ("", "torch", "oneflow", "flow", "minflow") and device in ("", "cuda"):
            if name == "Tensor":
                return default_dtype(), device or "cpu"
            if name in BY_NAME:
                return as_dtype(BY_NAME[name]), device or "cpu"
        fail(DTypeError, f"there is no type {kind}", '"minflow.FloatTensor", or a dtype: flow.float32', type=kind)
    if (isinstance(kind, type) and hasattr(kind, "spec")) or getattr(kind, "__name__", "") == "Tensor":
        return default_dtype(), "cpu"
    return as_dtype(kind), ""


def set_default_tensor_type(t: Any) -> None:
    """Make `t` ("minflow.DoubleTensor", flow.DoubleTensor, ...) the type of new tensors made from Python floats: its
    dtype becomes the default dtype. Raises DTypeError for one that is not floating, DeviceError for one on a GPU.
    """
    dtype, kind = parse_type(t)
    if kind == "cuda":
        backend_of(Device("cuda"))
    set_default_dtype(dtype)
