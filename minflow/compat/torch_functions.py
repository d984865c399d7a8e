"""Functions of PyTorch's root namespace that take the arguments of its kernels: `torch.layer_norm`, `torch.embedding`.

Those of `nn.functional` have other orders of arguments. Imported on first use. Read next: `../nn/functional/norm.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core.functions.creation import as_tensor, tensor
from ..core.functions.fill import as_leaf
from ..core.functions.storages import Storage
from ..core.spec import Device, DType
from ..core.tensor import Tensor
from ..func import vmap as vmap
from ..nn import functional as F

if TYPE_CHECKING:
    from ..core.base.dtypes import DTypeLike


def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`nn.functional.batch_norm`, with the weight and the bias first."""
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`nn.functional.instance_norm`, with the weight and the bias first."""
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """`nn.functional.layer_norm`."""
    return F.layer_norm(input, tuple(normalized_shape), weight, bias, eps)


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """`nn.functional.embedding`, with the weight first; padding_idx: -1 for none."""
    padding = None if padding_idx < 0 else padding_idx
    return F.embedding(indices, weight, padding, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """`nn.functional.pad` with a constant."""
    return F.pad(input, pad, value=value)


def asarray(
    obj: Any,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    copy: bool | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of data, which shares its memory if possible and not `copy`. The result is outside the tape."""
    result = as_tensor(obj, dtype, device).detach()
    return as_leaf(result.clone() if copy else result, requires_grad)


def scalar_tensor(
    s: float, *, dtype: DTypeLike | None = None, device: Device | str | None = None, requires_grad: bool = False
) -> Tensor:
    """A 0-d tensor of a number, by default in the default dtype."""
    return tensor(s, float if dtype is None else dtype, device, requires_grad)


def get_device(input: Tensor) -> int:
    """Index of the GPU of a tensor; -1 on the CPU."""
    return input.get_device()


def is_storage(obj: Any) -> bool:
    """True if obj is a storage: `x.storage()` or `x.untyped_storage()`."""
    return isinstance(obj, Storage)


def typename(obj: Any) -> str:
    """The type of an object as a text: "minflow.FloatTensor", "minflow.nn.Linear", "int"."""
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if isinstance(obj, type) else type(obj)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _log_api_usage_once(event: str) -> None:
    """Do nothing: the use of functions is not logged."""


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Device | None, DType | None, bool, Any]:
    """Return (device, dtype, non_blocking, memory_format) of the arguments of `Module.to`."""
    place, dtype = kwargs.get("device"), kwargs.get("dtype")
    non_blocking = kwargs.get("non_blocking", False)
    for it in args:
        if isinstance(it, Tensor):
            place, dtype = it.device, it.dtype
        elif isinstance(it, DType):
            dtype = it
        elif isinstance(it, bool):
            non_blocking = it
        elif it is not None:
            place = it
    return None if place is None else Device(place), dtype, non_blocking, kwargs.get("memory_format")
