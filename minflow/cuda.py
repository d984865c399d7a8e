"""What a program asks about GPUs. Without a CUDA backend and a device every answer is "none", never an error."""

from __future__ import annotations

from .core.messages.near import name_hints as _name_hints
from .core.backend import BACKENDS, is_available as _available
from .core.functions.typed import typed as _typed

# Tensors on a GPU by their dtype. To make one without a GPU is a DeviceError, and no tensor of a CPU is one.
BoolTensor, ByteTensor = _typed("BoolTensor", "cuda"), _typed("ByteTensor", "cuda")
CharTensor, ShortTensor = _typed("CharTensor", "cuda"), _typed("ShortTensor", "cuda")
IntTensor, LongTensor = _typed("IntTensor", "cuda"), _typed("LongTensor", "cuda")
HalfTensor, BFloat16Tensor = _typed("HalfTensor", "cuda"), _typed("BFloat16Tensor", "cuda")
FloatTensor, DoubleTensor = _typed("FloatTensor", "cuda"), _typed("DoubleTensor", "cuda")


def is_available() -> bool:
    """Can tensors live on a GPU here?"""
    return _available("cuda")


def device_count() -> int:
    """How many GPUs minflow can use."""
    return BACKENDS["cuda"].count() if is_available() else 0


def current_device() -> int:
    """Index of the GPU in use; 0."""
    return 0


def synchronize(device=None) -> None:
    """Wait until the GPU has done its work; without one there is nothing to wait for."""


def manual_seed(seed: int) -> None:
    """The generators are the same on all devices: see `flow.manual_seed`."""


def manual_seed_all(seed: int) -> None:
    """The generators are the same on all devices: see `flow.manual_seed`."""


def empty_cache() -> None:
    """Give unused GPU memory back; without a GPU there is none."""


__all__ = ["BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
           "IntTensor", "LongTensor", "ShortTensor", "current_device", "device_count", "empty_cache", "is_available",
           "manual_seed", "manual_seed_all", "synchronize"]
__getattr__ = _name_hints("flow.cuda", globals())
