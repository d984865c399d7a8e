"""Protocols through which other libraries read tensors: NumPy arrays, NumPy's operators, DLPack.

NumPy, SciPy, scikit-learn, pandas and matplotlib need nothing else. The opposite direction is in
`../functions/creation.py`, which is the one to read next.
"""

from __future__ import annotations

import copy
import sys
from types import FrameType, MethodType
from typing import TYPE_CHECKING, Any

from .. import functions as F
from ..backend import namespace
from ..base.errors import GradError, SbpError
from ..host import HostArray, HostScalar, python_number
from ..mode import MODE
from ..source_location import fail
from ..spec import cpu
from .operators import BY_UFUNC

if TYPE_CHECKING:
    from ..tensor import Tensor


# NumPy functions with the same meaning as ours, besides operators
BY_UFUNC = BY_UFUNC | {
    name: getattr(F, name)
    for name in """absolute arccos arccosh arcsin arcsinh arctan
    arctan2 arctanh ceil copysign cos cosh deg2rad exp exp2 expm1 floor fmax fmin fmod heaviside hypot isfinite isinf
    isnan log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor negative nextafter
    positive rad2deg reciprocal sign signbit sin sinh sqrt square tan tanh trunc""".split()
}


class Interop:
    """Protocols of other libraries."""

    def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> HostArray:
        return namespace().array(self.numpy(), dtype, copy=copy)

    def __array_ufunc__(self: Tensor, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        """NumPy's operators and elementwise functions return tensors, with gradients, if minflow has them (`array *
        tensor`, `numpy.exp(tensor)`); the others compute on arrays, see `__array_wrap__`.
        """
        op = BY_UFUNC.get(ufunc.__name__)
        if method == "__call__" and op is not None and out is None and not options:
            lift = MODE.get().tensor_of
            return op(*[lift(x) if isinstance(x, HostArray) else python_number(x) for x in inputs])
        if out is not None:
            options["out"] = tuple([array_of(x) for x in out])
        result = getattr(ufunc, method)(*[array_of(x) for x in inputs], **options)
        if out is not None or any(getattr(x, "requires_grad", False) for x in inputs):
            return result
        return tuple(map(tensor_if_array, result)) if isinstance(result, tuple) else tensor_if_array(result)

    def __array_wrap__(self: Tensor, array: HostArray, context: Any = None, return_scalar: bool = False) -> Any:
        """The result of `numpy.reshape(x, shape)` and other functions that compute on arrays: a tensor, as in PyTorch.
        If the tensor requires grad it is the array, since no gradient can flow through it.
        """
        return array if self.requires_grad else MODE.get().tensor_of(array)

    def __dlpack__(
        self: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """The capsule through which another library shares this memory. stream: that of the other library, which waits
        for this tensor; ignored on the CPU.
        """
        if self.requires_grad:
            what = "DLPack cannot export a tensor that requires grad: the other library would not record gradients"
            fail(GradError, what, ".detach() first", tensor=self)
        if self.is_global:
            what = "DLPack shares the memory of one process, and this tensor is global"
            fail(SbpError, what, "x.to_local(), or x.numpy()", tensor=self)
        new = {"max_version": max_version, "dl_device": dl_device, "copy": copy}  # NumPy 2.0 has none of these
        if self.spec.device is not cpu:
            new["stream"] = stream
        return self._lent_array("dlpack").__dlpack__(**{k: v for k, v in new.items() if v is not None})

    def __dlpack_device__(self: Tensor) -> tuple[int, int]:
        local = self.spec.device is not cpu and self.is_local
        return (self.array if local else self._read_array("dlpack")).__dlpack_device__()

    @property
    def __cuda_array_interface__(self: Tensor) -> dict[str, Any]:
        """The address, shape and strides of a tensor on a GPU, for CuPy, Numba and PyTorch. Raises AttributeError
        elsewhere, as if there were none, and for a tensor that requires grad.
        """
        if self.spec.device is cpu or self.requires_grad or self.is_global or self.array is None:
            why = "requires grad: .detach() first" if self.requires_grad else "is not on a GPU of this process"
            raise AttributeError(f"the tensor has no __cuda_array_interface__, because it {why}")
        return self._lent_array("interface").__cuda_array_interface__


def tensor_if_array(x: Any) -> Any:
    return MODE.get().tensor_of(x) if isinstance(x, HostArray | HostScalar) else x


def array_of(x: Any) -> Any:
    return x.numpy() if isinstance(x, Interop) else x  # type: ignore[attr-defined]  # x is a Tensor


def deepcopy_of_computed(tensor: Tensor) -> Any:
    """Raise GradError: the tape of a computed tensor cannot be copied. Only for a bound method, such as an attribute
    `self.total = x.sum` of a module, return the tensor itself, as PyTorch does.
    """
    frame: FrameType | None = sys._getframe(2)  # that of copy.deepcopy
    above = frame and frame.f_back
    if above is not None and above.f_code is METHOD_COPY.__code__:
        return tensor
    what = "deepcopy of a tensor that was computed and requires grad: its tape cannot be copied"
    return fail(GradError, what, "copy.deepcopy(x.detach()), or x.detach().clone()", tensor=tensor)


METHOD_COPY = copy._deepcopy_dispatch[MethodType]  # type: ignore[attr-defined]
