"""What a program asks about GPUs. Without a CUDA backend and a device every answer is "none", never an error."""

from __future__ import annotations

from typing import Any

import numpy as np

from .core.messages.suggestions import name_hints as _name_hints
from .core.backend import BACKENDS, backend_of as _backend_of, is_available as _available
from .core.functions.tensor_types import typed as _typed
from .core.random import get_rng_state as _get_rng_state, set_rng_state as _set_rng_state
from .core.spec import Device as _Device

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


def device_of(which: Any = None) -> _Device:
    """The GPU that is meant by None, a number, a name or a tensor. Raises DeviceError where there is none."""
    which = getattr(which, "device", which)
    result = _Device("cuda", which) if which is None or isinstance(which, int) else _Device(which)
    _backend_of(result)
    return result


def set_device(device: Any) -> None:
    """Use that GPU from now on; a negative number is none. Raises DeviceError where it is not there."""
    if not isinstance(device, int) or device >= 0:
        device_of(device)


class device:
    """`with flow.cuda.device(0):` uses that GPU. Raises DeviceError where it is not there; None and -1 are no GPU."""

    def __init__(self, device: Any = None):
        self.idx = -1 if device is None else getattr(device, "index", device)
        set_device(-1 if device is None else device)

    def __enter__(self) -> device:
        return self

    def __exit__(self, *error: Any) -> None:
        return None


def get_device_name(device: Any = None) -> str:
    """What the GPU is called. Raises DeviceError where there is none."""
    return str(device_of(device))


def get_device_properties(device: Any = None) -> Any:
    """What the GPU is like. Raises DeviceError where there is none."""
    return device_of(device)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """What the GPU can do, as (major, minor). Raises DeviceError where there is none."""
    device_of(device)
    return 0, 0


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of the GPU. Raises DeviceError where there is none."""
    device_of(device)
    return 0, 0


def init() -> None:
    """Start CUDA. Raises DeviceError where there is no GPU."""
    device_of()


def is_initialized() -> bool:
    """Is there a GPU in use?"""
    return is_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Can a GPU here compute in bfloat16?"""
    return is_available()


def memory_allocated(device: Any = None) -> int:
    """Bytes of tensors on the GPU; 0 without one."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_cached = max_memory_cached = memory_allocated


def reset_peak_memory_stats(device: Any = None) -> None:
    """Begin the maximum again; without a GPU it stays 0."""


reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = reset_peak_memory_stats


def memory_stats(device: Any = None) -> dict[str, int]:
    """Numbers of the memory of the GPU; none without one."""
    return {}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The same as a text."""
    return "no GPU memory is in use"


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Accepted: there is no GPU memory to divide."""


def synchronize(device: Any = None) -> None:
    """Wait until the GPU has done its work; without one there is nothing to wait for."""


def manual_seed(seed: int) -> None:
    """The generators are the same on all devices: see `flow.manual_seed`."""


def manual_seed_all(seed: int) -> None:
    """The generators are the same on all devices: see `flow.manual_seed`."""


def seed() -> None:
    """The generators are the same on all devices: see `flow.seed`."""


def seed_all() -> None:
    """The generators are the same on all devices: see `flow.seed`."""


def get_rng_state(device: Any = None) -> np.ndarray:
    """The state of the generator, which is the same on all devices: see `flow.get_rng_state`."""
    return _get_rng_state()


def get_rng_state_all() -> list[np.ndarray]:
    """The state for each GPU: an empty list without one."""
    return [_get_rng_state()] * device_count()


def set_rng_state(new_state: Any, device: Any = None) -> None:
    """Put the generator, the same on all devices, where `get_rng_state` was called."""
    _set_rng_state(new_state)


def set_rng_state_all(new_states: Any) -> None:
    """The same of what `get_rng_state_all` gave."""
    for state in new_states:
        _set_rng_state(state)


def empty_cache() -> None:
    """Give unused GPU memory back; without a GPU there is none."""


def ipc_collect() -> None:
    """Give memory back that other processes no longer use; without a GPU there is none."""


__all__ = sorted(
    n
    for n, it in globals().items()
    if n[:1] != "_" and (n.endswith("Tensor") or getattr(it, "__module__", "") == __name__)
)
__getattr__ = _name_hints("flow.cuda", globals())
