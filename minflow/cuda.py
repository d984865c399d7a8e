"""Queries about GPUs (`flow.cuda`). Without a CUDA backend and a device they report no GPU instead of raising."""

from __future__ import annotations

from typing import Any

from .core.backend import BACKENDS, backend_of as _backend_of, is_available as _available
from .core.deferred import report_pending as _report_pending
from .core.functions.tensor_types import make_type as _typed
from .core.host import HostArray as _HostArray
from .core.messages.suggestions import name_hints as _name_hints
from .core.random import get_rng_state as _get_rng_state, set_rng_state as _set_rng_state
from .core.spec import Device as _Device

# GPU tensor types by dtype. Without a GPU their constructors raise DeviceError; isinstance is False for CPU tensors.
BoolTensor, ByteTensor = _typed("BoolTensor", "cuda"), _typed("ByteTensor", "cuda")
CharTensor, ShortTensor = _typed("CharTensor", "cuda"), _typed("ShortTensor", "cuda")
IntTensor, LongTensor = _typed("IntTensor", "cuda"), _typed("LongTensor", "cuda")
HalfTensor, BFloat16Tensor = _typed("HalfTensor", "cuda"), _typed("BFloat16Tensor", "cuda")
FloatTensor, DoubleTensor = _typed("FloatTensor", "cuda"), _typed("DoubleTensor", "cuda")


def is_available() -> bool:
    """True if tensors can be on a GPU."""
    return _available("cuda")


def device_count() -> int:
    """Return the number of GPUs that minflow can use."""
    return BACKENDS["cuda"].count() if is_available() else 0


def current_device() -> int:
    """Return the index of the current GPU, 0."""
    return 0


def device_of(which: Any = None) -> _Device:
    """Resolve None, an index, a name or a tensor to its GPU. Raises DeviceError without a GPU."""
    which = getattr(which, "device", which)
    result = _Device("cuda", which) if which is None or isinstance(which, int) else _Device(which)
    _backend_of(result)
    return result


def set_device(device: Any) -> None:
    """Make a GPU current; negative indices are ignored. Raises DeviceError if it does not exist."""
    if not isinstance(device, int) or device >= 0:
        device_of(device)


class device:
    """Context manager that selects a GPU; None and -1 select none. Raises DeviceError if it does not exist."""

    def __init__(self, device: Any = None):
        self.idx = -1 if device is None else getattr(device, "index", device)
        set_device(-1 if device is None else device)

    def __enter__(self) -> device:
        return self

    def __exit__(self, *error: Any) -> None:
        return None


def get_device_name(device: Any = None) -> str:
    """Return the name of the GPU. Raises DeviceError without a GPU."""
    return str(device_of(device))


def get_device_properties(device: Any = None) -> Any:
    """Return the properties of the GPU. Raises DeviceError without a GPU."""
    return device_of(device)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the compute capability, (major, minor). Raises DeviceError without a GPU."""
    device_of(device)
    return 0, 0


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return (free, total) memory of the GPU in bytes. Raises DeviceError without a GPU."""
    device_of(device)
    return 0, 0


def init() -> None:
    """Initialize CUDA. Raises DeviceError without a GPU."""
    device_of()


def is_initialized() -> bool:
    """True if a GPU is available."""
    return is_available()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True if there is a GPU that computes in bfloat16."""
    return is_available()


def memory_allocated(device: Any = None) -> int:
    """Return the bytes of tensors on the GPU; 0 without one."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_cached = max_memory_cached = memory_allocated


def reset_peak_memory_stats(device: Any = None) -> None:
    """Reset the maximum; without a GPU it stays 0."""


reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = reset_peak_memory_stats


def memory_stats(device: Any = None) -> dict[str, int]:
    """Return memory statistics of the GPU; empty without one."""
    return {}


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return the memory statistics as text."""
    return "no GPU memory is in use"


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Accepted and ignored: there is no GPU memory to divide."""


def synchronize(device: Any = None) -> None:
    """Wait until the GPU is idle, and raise the errors of checks that wait; without one, return."""
    if is_available():
        backend = _backend_of(device_of(device))
        backend.synchronize()
        _report_pending(backend)


def manual_seed(seed: int) -> None:
    """Ignored: all devices share the generator of `flow.manual_seed`."""


def manual_seed_all(seed: int) -> None:
    """Ignored: all devices share the generator of `flow.manual_seed`."""


def seed() -> None:
    """Ignored: all devices share the generator of `flow.seed`."""


def seed_all() -> None:
    """Ignored: all devices share the generator of `flow.seed`."""


def get_rng_state(device: Any = None) -> _HostArray:
    """Return the state of the generator that all devices share: `flow.get_rng_state`."""
    return _get_rng_state()


def get_rng_state_all() -> list[_HostArray]:
    """Return one state per GPU; an empty list without one."""
    return [_get_rng_state()] * device_count()


def set_rng_state(new_state: Any, device: Any = None) -> None:
    """Restore a state returned by `get_rng_state`; all devices share the generator."""
    _set_rng_state(new_state)


def set_rng_state_all(new_states: Any) -> None:
    """Restore the states returned by `get_rng_state_all`."""
    for state in new_states:
        _set_rng_state(state)


def empty_cache() -> None:
    """Release unused cached GPU memory; without a GPU there is none."""


def ipc_collect() -> None:
    """Release GPU memory that other processes no longer use; without a GPU there is none."""


__all__ = sorted(
    n
    for n, it in globals().items()
    if n[:1] != "_" and (n.endswith("Tensor") or getattr(it, "__module__", "") == __name__)
)
__getattr__ = _name_hints("flow.cuda", globals())
