"""Parameter: a tensor that a Module trains.

Assigning one to an attribute of a Module registers it. Independent of modules. Read next: `module.py`.
"""

from __future__ import annotations

from typing import Any, Self

from ..core.base.errors import DTypeError, GradError, ModuleError, TraceError
from ..core.functionalize import version_counter_of
from ..core.functions.creation import as_tensor, empty
from ..core.messages.suggestions import missing_names
from ..core.overrides import SUBCLASSES, disabled_torch_function_impl, overrides
from ..core.source_location import fail
from ..core.spec import Device, DType, float16, float32, float64
from ..core.tensor import Tensor


class Parameter(Tensor):
    """A leaf tensor that requires grad and shares the storage of `data` (a Tensor, or any data that `tensor` takes)."""

    __torch_function__: Any = disabled_torch_function_impl  # results are plain tensors

    def __init__(self, data: Any = (), requires_grad: bool = True):
        if "spec" in vars(self):  # `__new__` of a program's class has made it
            return
        source = as_tensor(data).detach().contiguous()
        if source.array is None:
            what = "a Parameter was made of a symbolic tensor while a graph is built"
            fail(TraceError, what, "make parameters in __init__, before the graph is built", data=data)
        if SUBCLASSES and overrides(type(source)) and not overrides(type(self)):
            name = type(source).__name__
            what = f"a Parameter gives plain tensors, and its data is of the class {name}"
            hint = f"nn.Parameter(x.as_subclass(flow.Tensor)), and in forward self.weight.as_subclass({name})"
            fail(DTypeError, what, hint, data=data)
        if source.is_sparse:
            what = "a Parameter of a sparse tensor would train the elements that are not specified, too"
            hint = "nn.Parameter(values), and in forward flow.sparse_coo_tensor(indices, self.values, size)"
            fail(GradError, what, hint, data=data)
        super().__init__(source.array, source.spec)
        self._version_counter = version_counter_of(source)
        if requires_grad:
            self.requires_grad_()

    def __deepcopy__(self, memo: dict) -> Self:
        """Copy the parameter without its `.grad`, as in PyTorch; copies of other tensors keep theirs."""
        twin = super().__deepcopy__(memo)
        twin._gradient = None
        return twin


class Buffer(Tensor):
    """A tensor that a Module registers as a buffer when it is assigned to an attribute: state that is not trained.

    persistent: True if it is part of state_dict.
    """

    __torch_function__: Any = disabled_torch_function_impl

    def __init__(self, data: Any = (), *, persistent: bool = True):
        if "spec" in vars(self):
            return
        source = as_tensor(data).detach()
        super().__init__(source.array, source.spec)
        self._version_counter = version_counter_of(source)
        self.persistent = persistent


class Uninitialized(Tensor):
    """Placeholder in a lazy layer before its first call: it has a dtype and a device, but no shape and no elements."""

    @property
    def shape(self) -> Any:
        what = f"this {type(self).__name__} has no shape yet: its lazy layer was not called"
        fail(ModuleError, what, "model(x) once, with an input as in training, then its shape")

    def __deepcopy__(self, memo: dict) -> Self:
        kind: Any = type(self)  # one of the two below
        new = kind(requires_grad=self.requires_grad, device=self.device, dtype=self.dtype)
        memo[id(self)] = new
        return new

    def materialize(
        self, shape: tuple[int, ...], device: Device | str | None = None, dtype: DType | None = None
    ) -> None:
        """Become a Parameter, or a buffer, of this shape; its elements are not initialized."""
        self.data = empty(*shape, dtype=dtype or self.dtype, device=device or self.device)
        self.__class__ = Parameter if isinstance(self, Parameter) else Tensor  # type: ignore[assignment]  # on purpose


def is_lazy(param: Any) -> bool:
    """True if a parameter or buffer of a lazy layer has no shape yet."""
    return isinstance(param, Uninitialized)


class UninitializedParameter(Uninitialized, Parameter):
    """A Parameter whose shape is set by the first input of its lazy layer."""

    def __init__(self, requires_grad: bool = True, device: Device | str | None = None, dtype: DType | None = None):
        super().__init__(empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(Uninitialized):
    """A buffer whose shape is set by the first input of its lazy layer."""

    def __init__(self, requires_grad: bool = False, device: Device | str | None = None, dtype: DType | None = None):
        source = empty(0, device=device, dtype=dtype)
        super().__init__(source.array, source.spec)
        self._version_counter = version_counter_of(source)

    def to(self, *args: Any, **kwargs: Any) -> UninitializedBuffer:
        new = super().to(*args, **kwargs)
        return UninitializedBuffer(device=new.device, dtype=new.dtype)

    def float(self) -> UninitializedBuffer:
        return self.to(float32)

    def double(self) -> UninitializedBuffer:
        return self.to(float64)

    def half(self) -> UninitializedBuffer:
        return self.to(float16)


__getattr__ = missing_names("flow.nn.parameter", globals())
del globals()["__dir__"]  # otherwise completion would list imported names
