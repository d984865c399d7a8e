"""Protocols through which other libraries read tensors: NumPy arrays, NumPy's operators, DLPack.

NumPy, SciPy, scikit-learn, pandas and matplotlib need nothing else. The opposite direction is in
`../functions/creation.py`, which is the one to read next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import functions as F
from ..backend import namespace
from ..base.errors import GradError, SbpError
from ..functionalize import lend
from ..host import HostArray, python_number
from ..mode import MODE
from ..source_location import fail
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
        tensor`, `numpy.exp(tensor)`); its other functions return arrays.
        """
        op = BY_UFUNC.get(ufunc.__name__)
        if method == "__call__" and op is not None and out is None and not options:
            lift = MODE.get().tensor_of
            return op(*[lift(x) if isinstance(x, HostArray) else python_number(x) for x in inputs])
        if out is not None:
            options["out"] = tuple([array_of(x) for x in out])
        return getattr(ufunc, method)(*[array_of(x) for x in inputs], **options)

    def __dlpack__(
        self: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """The capsule through which another library shares this memory. stream: ignored on the CPU."""
        if self.requires_grad:
            what = "DLPack cannot export a tensor that requires grad: the other library would not record gradients"
            fail(GradError, what, ".detach() first", tensor=self)
        if self.is_global:
            what = "DLPack shares the memory of one process, and this tensor is global"
            fail(SbpError, what, "x.to_local(), or x.numpy()", tensor=self)
        new = {"max_version": max_version, "dl_device": dl_device, "copy": copy}  # NumPy 2.0 has none of these
        self.read_array("dlpack")
        return lend(self).__dlpack__(**{k: v for k, v in new.items() if v is not None})

    def __dlpack_device__(self: Tensor) -> tuple[int, int]:
        return self.read_array("dlpack").__dlpack_device__()


def array_of(x: Any) -> Any:
    return x.numpy() if isinstance(x, Interop) else x  # type: ignore[attr-defined]  # x is a Tensor
