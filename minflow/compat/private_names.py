"""Names of PyTorch with an underscore that public programs call: `torch._foreach_add_`, `torch._C._is_tracing`.

Read next: `../import_aliases.py`, whose NAME_ALIASES lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.base.errors import ShapeError
from ..core.functions.creation import tensor
from ..core.messages.suggestions import missing_name
from ..core.source_location import fail
from ..core.spec import float32
from ..core.tensor import Tensor
from ..nn import functional as F

# Methods of the functions over lists whose tensors take numbers or tensors, and those with a last argument by name.
BETWEEN = {"maximum": "clamp_min", "minimum": "clamp_max"}
WITH_VALUE = ("addcdiv", "addcmul")


def foreach(name: str) -> Callable:
    """Make the function `torch._foreach_{name}`, which calls a method for each tensor of a list."""
    plain = name.rstrip("_")
    method = getattr(Tensor, BETWEEN.get(plain, plain) + name[len(plain) :], None)
    if method is None:
        raise missing_name("flow", f"_foreach_{name}", ())

    def function(self: Any, *args: Any, **kwargs: Any) -> Any:
        if plain in WITH_VALUE and (len(args) > 2 or "scalars" in kwargs):
            value = args[2] if len(args) > 2 else kwargs.pop("scalars")
            args, kwargs = args[:2], {**kwargs, "value": value.tolist() if isinstance(value, Tensor) else value}
        lists = [it for it in (self, *args, *kwargs.values()) if isinstance(it, (list, tuple))]
        lengths = sorted({len(it) for it in lists})
        if len(lengths) != 1:
            what = f"_foreach_{name}: the lists have the lengths {lengths}"
            fail(ShapeError, what, "lists of the same length, one tensor or number for each")

        def element(value: Any, place: int) -> Any:
            return value[place] if isinstance(value, (list, tuple)) else value

        results = [
            method(element(self, i), *(element(it, i) for it in args), **{k: element(v, i) for k, v in kwargs.items()})
            for i in range(*lengths)
        ]
        return self if name != plain else tuple(results)

    function.__name__ = f"_foreach_{name}"
    return function


def _softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`nn.functional.softmax`. half_to_float: of float16 in float32."""
    return F.softmax(self, dim, dtype=float32 if half_to_float else None)


def _log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`nn.functional.log_softmax`. half_to_float: of float16 in float32."""
    return F.log_softmax(self, dim, dtype=float32 if half_to_float else None)


def _shape_as_tensor(self: Tensor) -> Tensor:
    """The shape as an int64 tensor."""
    return tensor(list(self.shape)).long()


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """v scaled so that its norm along all axes but `dim` is g; along all axes for dim=-1, as in PyTorch."""
    axes = [axis for axis in range(v.ndim) if dim == -1 or axis != dim % v.ndim]
    return v * (g / v.norm(2, axes, keepdim=True))


def _check(condition: Any, message: Callable[[], str] | None = None) -> None:
    """Raise RuntimeError with the text that `message()` returns, unless the condition holds."""
    if not condition:
        raise RuntimeError("Expected cond to be True" if message is None else message())


class _Reduction:
    """PyTorch's module of the arguments of losses."""

    @staticmethod
    def get_enum(reduction: str) -> int:
        """Number of a reduction: 0 for "none", 1 for "mean", 2 for "sum"."""
        F.arguments.check_reduction("get_enum", reduction)
        return ("none", "mean", "sum").index(reduction)

    @staticmethod
    def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
        """The reduction that the former arguments of losses mean."""
        if reduce is not None and not reduce:
            return "none"
        return "mean" if size_average is None or size_average else "sum"
