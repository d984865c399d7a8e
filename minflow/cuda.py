"""GPUs: which there are, which one "cuda" means, their memory (`flow.cuda`).

Without CuPy and a GPU, queries report none instead of raising.
"""

from __future__ import annotations

from typing import Any

from .core.backend import BACKENDS as _BACKENDS, OPEN as _OPEN, backend_of as _backend_of, is_available as _available
from .core.base.errors import OutOfMemoryError as OutOfMemoryError
from .core.deferred import report_pending as _report_pending
from .core.functions.tensor_types import make_type as _typed
from .core.host import HostArray as _HostArray
from .core.memory import size_text as _size_text
from .core.messages.suggestions import name_hints as _name_hints
from .core.random import get_rng_state as _get_rng_state, set_rng_state as _set_rng_state
from .core.spec import CURRENT_GPU as _GPU, Device as _Device
from .core.streams import (
    Event as Event,
    Stream as Stream,
    StreamContext as StreamContext,
    current_stream as current_stream,
    default_stream as default_stream,
    set_stream as set_stream,
    stream as stream,
)

# GPU tensor types by dtype. Without a GPU their constructors raise DeviceError; isinstance is False for CPU tensors.
BoolTensor, ByteTensor = _typed("BoolTensor", "cuda"), _typed("ByteTensor", "cuda")
CharTensor, ShortTensor = _typed("CharTensor", "cuda"), _typed("ShortTensor", "cuda")
IntTensor, LongTensor = _typed("IntTensor", "cuda"), _typed("LongTensor", "cuda")
HalfTensor, BFloat16Tensor = _typed("HalfTensor", "cuda"), _typed("BFloat16Tensor", "cuda")
FloatTensor, DoubleTensor = _typed("FloatTensor", "cuda"), _typed("DoubleTensor", "cuda")


def is_available() -> bool:
    """True if tensors can be on a GPU: CuPy is installed, and finds one. The first call imports CuPy."""
    return _available("cuda")


def device_count() -> int:
    """Return the number of GPUs that minflow can use."""
    return _BACKENDS["cuda"].count() if is_available() else 0


def current_device() -> int:
    """Return the index of the GPU that "cuda" means in this thread: 0 without `set_device`."""
    return _GPU.get()


def device_of(which: Any = None) -> _Device:
    """Resolve None, an index, a name or a tensor to its GPU. Raises DeviceError without a GPU."""
    return _gpu(which).device


def _gpu(which: Any = None) -> Any:
    """The backend of a GPU: None, an index, a name or a tensor. Raises DeviceError if it does not exist."""
    which = getattr(which, "device", which)
    return _backend_of(_Device("cuda", which) if which is None or isinstance(which, int) else _Device(which))


def set_device(device: Any) -> None:
    """Let "cuda" mean this GPU in this thread. Negative indices are ignored. Raises DeviceError if there is none."""
    if not isinstance(device, int) or device >= 0:
        _GPU.set(device_of(device).index)


class device:
    """Context manager that selects a GPU; None and -1 select none. Raises DeviceError if it does not exist."""

    def __init__(self, device: Any = None):
        self.idx = -1 if device is None else getattr(device, "index", device)
        if device is not None and device != -1:
            self.idx = device_of(device).index

    def __enter__(self) -> device:
        self.before = _GPU.set(self.idx if self.idx >= 0 else _GPU.get())
        return self

    def __exit__(self, *error: Any) -> None:
        _GPU.reset(self.before)


def get_device_name(device: Any = None) -> str:
    """Return the name of the GPU, as its driver says it. Raises DeviceError without a GPU."""
    return _gpu(device).properties()["name"]


class _Properties:
    """Facts about a GPU under PyTorch's names, and all others under CUDA's."""

    def __init__(self, facts: dict[str, Any]):
        self.__dict__.update(facts)
        self.total_memory = facts["totalGlobalMem"]
        self.multi_processor_count = facts["multiProcessorCount"]
        self.warp_size = facts["warpSize"]

    def __repr__(self) -> str:
        memory = f"total_memory={self.total_memory >> 20}MB"
        capability = "major={major}, minor={minor}".format(**self.__dict__)
        return f"_CudaDeviceProperties(name='{self.name}', {capability}, {memory})"  # type: ignore[attr-defined]


def get_device_properties(device: Any = None) -> _Properties:
    """Return facts about the GPU: name, major, minor, total_memory (bytes), multi_processor_count, and CUDA's other
    names. Raises DeviceError without a GPU.
    """
    return _Properties(_gpu(device).properties())


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the compute capability, (major, minor). Raises DeviceError without a GPU."""
    facts = _gpu(device).properties()
    return facts["major"], facts["minor"]


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return (free, total) memory of the GPU in bytes. Raises DeviceError without a GPU."""
    return _gpu(device).memory()[:2]


def init() -> None:
    """Initialize CUDA. Raises DeviceError without a GPU."""
    device_of()


def is_initialized() -> bool:
    """True if a GPU is in use."""
    return any([device.type == "cuda" for device in _OPEN])


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """True if there is a GPU that computes in bfloat16: with tensor cores from compute capability 8.0 on."""
    return is_available() and (including_emulation or get_device_capability() >= (8, 0))


def memory_allocated(device: Any = None) -> int:
    """Return the bytes of arrays on the GPU; 0 without one."""
    return _gpu(device).memory().allocated if is_available() else 0


def max_memory_allocated(device: Any = None) -> int:
    """Return the most bytes of arrays on the GPU since the start or `reset_peak_memory_stats`; 0 without one."""
    return _gpu(device).memory().peak if is_available() else 0


def memory_reserved(device: Any = None) -> int:
    """Return the bytes that the memory pool holds, for arrays and to use again; 0 without a GPU. Its maximum is the
    same, since the pool shrinks only in `empty_cache`.
    """
    return _gpu(device).memory().reserved if is_available() else 0


max_memory_reserved = memory_cached = max_memory_cached = memory_reserved


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let `max_memory_allocated` begin anew at the bytes that are in use now."""
    if is_available():
        _gpu(device).reset_peak()


reset_max_memory_allocated = reset_max_memory_cached = reset_accumulated_memory_stats = reset_peak_memory_stats


def memory_stats(device: Any = None) -> dict[str, int]:
    """Return memory statistics of the GPU in bytes, under PyTorch's names; empty without one."""
    if not is_available():
        return {}
    memory = _gpu(device).memory()
    return {
        "allocated_bytes.all.current": memory.allocated,
        "allocated_bytes.all.peak": memory.peak,
        "reserved_bytes.all.current": memory.reserved,
        "reserved_bytes.all.peak": memory.reserved,
    }


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return the memory statistics as text."""
    if not is_available():
        return "no GPU memory is in use"
    return "\n".join([f"{name:30} {_size_text(n):>10}" for name, n in memory_stats(device).items()])


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Limit arrays to a fraction of the memory of the GPU: more raises OutOfMemoryError. Ignored without one."""
    if is_available():
        _gpu(device).limit_memory(fraction)


def synchronize(device: Any = None) -> None:
    """Wait until the GPU is idle, and raise the errors of checks that wait; without one, return."""
    if is_available():
        backend = _gpu(device)
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
    """Return the memory of GPUs that no array uses to the driver; without a GPU there is none."""
    for device, backend in list(_OPEN.items()):
        if device.type == "cuda":
            backend.empty_cache()  # type: ignore[attr-defined]


def ipc_collect() -> None:
    """Release GPU memory that other processes no longer use; without a GPU there is none."""


__all__ = sorted(
    n
    for n, it in globals().items()
    if n[:1] != "_"
    and (n.endswith(("Tensor", "Error")) or getattr(it, "__module__", "") in (__name__, Stream.__module__))
)
_missing_name = _name_hints("flow.cuda", globals())


def __getattr__(name: str) -> Any:
    return is_initialized() if name == "_initialized" else _missing_name(name)  # PyTorch's flag, which programs read
