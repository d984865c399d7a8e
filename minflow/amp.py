"""Mixed precision by its usual names: autocast gives the dtypes that PyTorch's gives on a CPU, operation by operation.

A CPU has no faster half precision here, so it saves memory and shows what rounding does, and takes longer.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from .core.base.dtypes import HALVES
from .core.base.errors import DeviceError, DTypeError, StateError
from .core.base.interrupts import Restoring
from .core.messages.suggestions import name_hints as _name_hints
from .core.mode import MODE, Mode
from .core.ops.shape import cast, in_dtype
from .core.spec import as_dtype, bfloat16, float32
from .core.source_location import fail, warn

KEYS = {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"}  # of PyTorch's state
# Ops, and functions of several ops, that run in the lower dtype: products of matrices, convolutions, LSTM.
LOWER = set(
    """matmul conv2d conv2d_input_grad conv1d conv3d conv_transpose1d conv_transpose2d conv_transpose3d lstm
    scaled_dot_product_attention""".split()
)
# Those that run in float32, which the lower dtype would spoil.
WIDE = set(
    """prod trace cdist pair_distances quantile nanquantile inverse det slogdet cholesky qr svd eigh solve pinv
    nll softmax_cross_entropy binary_entropy logit_entropy ctc cross_entropy kl_div mse_loss l1_loss smooth_l1_loss
    huber_loss binary_cross_entropy binary_cross_entropy_with_logits multi_margin_loss multilabel_margin_loss
    combined_margin_loss poisson_nll_loss gaussian_nll_loss margin_ranking_loss hinge_embedding_loss soft_margin_loss
    cosine_embedding_loss triplet_margin_loss ctc_loss""".split()
)


class Casting:
    """Before the class of a mode: the inputs of an op are cast as the op, or the function that it is part of, asks."""

    def run(self, op, inputs, attrs):
        if self.low is not None and op is not cast:
            names = {op.name, self.scope.rpartition("/")[2]}
            wanted = float32 if names & WIDE else self.low if names & LOWER else None
            if wanted is not None:
                inputs = tuple(
                    [in_dtype(x, wanted) if hasattr(x, "spec") and is_cast(x.spec.dtype) else x for x in inputs]
                )
        return super().run(op, inputs, attrs)


def is_cast(dtype) -> bool:
    return dtype is float32 or dtype in HALVES


@functools.cache
def casting(kind: type) -> type:
    return type(f"Casting{kind.__name__}", (Casting, kind), {})


class autocast(Restoring):
    """A context or a decorator in which products of matrices and convolutions run in `dtype` (bfloat16, or float16),
    losses and some others in float32, and all else in what it is given. Parameters stay as they are, and so do the
    dtypes of their gradients. Without effect for "cuda" where there is no GPU, and says so."""

    variable = MODE

    def __init__(self, device_type: str = "cpu", dtype=None, enabled: bool = True, cache_enabled: bool | None = None):
        if device_type not in ("cpu", "cuda"):
            fail(DeviceError, f"autocast: there is no device type {device_type!r}", '"cpu" or "cuda"')
        self.device_type, self.enabled = device_type, enabled
        self.dtype = bfloat16 if dtype is None else as_dtype(dtype)
        if enabled and self.dtype not in HALVES:
            fail(
                DTypeError,
                f"autocast to {self.dtype.name}, which is not shorter than float32",
                "flow.bfloat16 or flow.float16",
                dtype=self.dtype,
            )
        super().__init__()

    def value(self) -> Mode:
        on = self.enabled and self.device_type == "cpu"
        if self.enabled and not on:
            warn("autocast on a GPU, and there is none: float32 stays float32", 'autocast("cpu")')
        mode = MODE.get()
        inner = mode.replace(low=self.dtype if on else None if self.device_type == "cpu" else mode.low)
        if inner.low is not None and not isinstance(mode, Casting):
            inner.__class__ = casting(type(mode))
        return inner

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return wrapped


def is_autocast_available(device_type: str) -> bool:
    """Has autocast an effect on this device type? On "cpu" alone."""
    return device_type == "cpu"


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """Are we inside autocast?"""
    return device_type == "cpu" and MODE.get().low is not None


def get_autocast_dtype(device_type: str = "cpu") -> Any:
    """The dtype of the autocast that we are in; outside, what it would be."""
    return MODE.get().low or bfloat16


class GradScaler:
    """Accepted by its usual methods; gradients in float32 need no scaling, so the scale is 1.

    device: as PyTorch's torch.amp.GradScaler("cuda", ...); torch.cuda.amp.GradScaler begins with init_scale.
    """

    def __init__(
        self,
        device: str | float = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        self.enabled, self.device = enabled, device

    def scale(self, outputs):
        """The loss, as it is."""
        return outputs

    def unscale_(self, optimizer) -> None:
        """Gradients are not scaled."""

    def step(self, optimizer, *args, **kwargs):
        """`optimizer.step()`."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale=None) -> None:
        """The scale stays 1."""

    def get_scale(self) -> float:
        """The factor of the loss: 1."""
        return 1.0

    def is_enabled(self) -> bool:
        """False: nothing is scaled."""
        return False

    def state_dict(self) -> dict:
        """Nothing is kept."""
        return {}

    def load_state_dict(self, state_dict: dict) -> None:
        """There is no state; that of PyTorch's scaler is passed over. Raises StateError for that of something else."""
        if not isinstance(state_dict, Mapping) or not KEYS.issuperset(state_dict):
            fail(
                StateError,
                "GradScaler.load_state_dict: this is no state of a GradScaler",
                "scaler.state_dict()",
                state_dict=state_dict,
            )


__all__ = ["GradScaler", "autocast", "get_autocast_dtype", "is_autocast_available", "is_autocast_enabled"]
__getattr__ = _name_hints("flow.amp", globals())
