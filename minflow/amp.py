"""Mixed precision (`flow.amp`): autocast chooses the same dtype for each op as PyTorch's autocast.

Half precision is not faster on a CPU here: it saves memory, shows the effect of rounding, and takes longer. On a GPU
products take a fraction of the time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .core.autograd import run_decomposition
from .core.backend import is_available
from .core.base.dtypes import HALF_DTYPES
from .core.base.errors import DeviceError, DTypeError
from .core.base.interrupts import ContextVarScope
from .core.functionalize import version_counter_of
from .core.messages.suggestions import name_hints as _name_hints
from .core.mode import MODE, Mode, using
from .core.op import Op
from .core.ops.shape import in_dtype
from .core.source_location import fail, warn
from .core.spec import as_dtype, bfloat16, float16, float32
from .optim.grad_scaler import GradScaler as GradScaler, StaticGradScaler as StaticGradScaler

DEFAULTS = {"cpu": bfloat16, "cuda": float16}  # dtypes of autocast by device type, as in PyTorch
# Ops that PyTorch runs in float32 on GPUs, and in the dtype of their inputs on a CPU.
FLOAT32_ON_CUDA = frozenset(
    "acos asin cosh cosine_similarity cumprod cumsum erfinv exp expm1 log log10 log1p log2 log_softmax normalize "
    "pairwise_distance pow reciprocal rsqrt sinh softmax softplus square sum tan".split()
)
WIDEST_ON_CUDA = frozenset(["bilinear", "grid_sample", "index_put", "scatter_add", "where"])  # float32 if an input is


class Casting:
    """Mixin for a mode class: casts the inputs of an op as its definition requires (`Op.autocast`)."""

    def run(self, op, inputs, attrs):
        if self.low is not None:
            device_type = next((x.spec.device.type for x in inputs if hasattr(x, "spec")), "cpu")
            rule = rule_of(op, device_type, inputs) if device_type in self.low else None
            if rule == "parts":
                return run_parts(self, op, inputs, attrs)
            if rule is not None:
                target = self.low[device_type] if rule == "lower" else float32
                inputs = tuple(
                    [self.cast(x, target) if hasattr(x, "spec") and is_castable(x.spec.dtype) else x for x in inputs]
                )
        return super().run(op, inputs, attrs)

    def cast(self, x, dtype):
        """The tensor in this dtype. A cast of a parameter on a GPU is reused until the block ends or it is written."""
        if x.spec.dtype is not float32 or dtype is float32 or x.spec.device.type == "cpu" or self.trace is not None:
            return in_dtype(x, dtype)
        if self.casts is None or not (x.requires_grad and x.is_leaf):
            return in_dtype(x, dtype)
        key, version = (id(x), dtype, self.grad), version_counter_of(x).version
        known = self.casts.get(key)
        if known is None or known[1] != version:
            known = self.casts[key] = x, version, in_dtype(x, dtype)  # with x, whose id is used
        return known[2]


def rule_of(op: Op, device_type: str, inputs: Sequence[Any]) -> str | None:
    """How autocast runs an op on tensors of a device type: "lower", "float32", "parts"; None in their dtypes."""
    if device_type == "cuda":
        if op.name in FLOAT32_ON_CUDA:
            return "float32"
        if op.name in WIDEST_ON_CUDA:
            return "float32" if any([getattr(x, "dtype", None) is float32 for x in inputs]) else None
    return op.autocast


def is_castable(dtype) -> bool:
    return dtype is float32 or dtype in HALF_DTYPES


def run_parts(mode: Mode, op: Op, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Run a composite op as ordinary ops, in a scope of its own, so that each gets its dtype."""
    with using(mode.replace(scope=f"{mode.scope}/{op.name}")):
        outs = run_decomposition(op, inputs, attrs)
    return outs if op.many else outs[0]


@functools.cache
def casting_class(kind: type) -> type:
    return type(f"Casting{kind.__name__}", (Casting, kind), {})


class autocast(ContextVarScope):
    """Context manager or decorator for mixed precision.

    On tensors of this device type, matrix products and convolutions run in `dtype` (by default bfloat16 on "cpu" and
    float16 on "cuda"), losses and a few other ops in float32, and everything else in the dtype of its inputs.
    Parameters and their gradients keep their dtypes. With "cuda" and no GPU it has no effect, and warns.

    Without a device type, as `torch.cuda.amp.autocast()`, it is for "cuda" if there is a GPU, else for "cpu"; its first
    argument may be `enabled`.  cache_enabled: False to cast a parameter for each op on a GPU that reads it.
    """

    variable = MODE

    def __init__(
        self,
        device_type: str | bool = True,
        dtype=None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ):
        if isinstance(device_type, bool):
            enabled, device_type = device_type and enabled, "cuda" if is_available("cuda") else "cpu"
        if device_type not in ("cpu", "cuda"):
            fail(DeviceError, f'autocast: device_type must be "cpu" or "cuda", got {device_type!r}', '"cpu" or "cuda"')
        self.device_type, self.enabled, self.cache_enabled = device_type, enabled, cache_enabled
        self.dtype = DEFAULTS[device_type] if dtype is None else as_dtype(dtype)
        if enabled and self.dtype not in HALF_DTYPES:
            what = f"autocast: dtype must be bfloat16 or float16, got {self.dtype.name}"
            fail(DTypeError, what, "flow.bfloat16 or flow.float16", dtype=self.dtype)
        super().__init__()

    def value(self) -> Mode:
        available, mode = is_available(self.device_type), MODE.get()
        if self.enabled and not available:
            warn("autocast: no GPU is available, so float32 stays float32", 'autocast("cpu")')
        low = dict(mode.low or {})
        if self.enabled and available:
            low[self.device_type] = self.dtype
        elif available:
            low.pop(self.device_type, None)
        casts = {} if mode.casts is None and self.cache_enabled is not False else mode.casts
        inner = mode.replace(low=low or None, casts=casts if low else None)
        if inner.low is not None and not isinstance(mode, Casting):
            inner.__class__ = casting_class(type(mode))
        return inner

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return wrapped


def custom_fwd(fwd: Callable | None = None, *, device_type: str = "cpu", cast_inputs: Any = None) -> Any:
    """Decorate `forward` of an autograd.Function; cast_inputs: its floating inputs get this dtype inside autocast.

    Without cast_inputs it runs in the autocast that is active; with it, without autocast.
    """
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._fwd_used_autocast = is_autocast_enabled(device_type) and cast_inputs is None
        if cast_inputs is None or not is_autocast_enabled(device_type):
            return fwd(ctx, *args, **kwargs)
        dtype = as_dtype(cast_inputs)
        cast = [x.to(dtype) if hasattr(x, "spec") and is_castable(x.spec.dtype) else x for x in args]
        with autocast(device_type, enabled=False):
            return fwd(ctx, *cast, **kwargs)

    return decorated


def custom_bwd(bwd: Callable | None = None, *, device_type: str = "cpu") -> Any:
    """Decorate `backward` of an autograd.Function whose forward has `custom_fwd`: it runs in the same autocast."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(ctx: Any, *args: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args)

    return decorated


def is_autocast_available(device_type: str) -> bool:
    """True if autocast has an effect on this device type: if there is a device of this type."""
    return is_available(device_type)


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """True inside an enabled autocast."""
    return is_available(device_type) and device_type in (MODE.get().low or {})


def get_autocast_dtype(device_type: str = "cpu") -> Any:
    """Dtype of the current autocast; outside of one, the default: bfloat16 on "cpu", float16 on "cuda"."""
    return (MODE.get().low or {}).get(device_type) or DEFAULTS[device_type]


__all__ = [
    "GradScaler",
    "StaticGradScaler",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_enabled",
]
__getattr__ = _name_hints("flow.amp", globals())
