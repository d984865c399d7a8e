"""The backend of GPUs: CuPy's arrays. The only module that imports CuPy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any

import cupy

from ...core.backend import Memory, register_backend
from ...core.host import HostArray
from ...core.source_location import need
from ...core.spec import Device
from .cublas import Handle, Handles, library
from .device_code import CudaBackend
from .gemm import Gemm

HOPPER = 90  # compute capability from which the largest workspace of cuBLAS helps
WORKSPACE, SMALL_WORKSPACE = 32 << 20, 8 << 20  # bytes, as NVIDIA recommends

POOL = cupy.get_default_memory_pool()
PEAKS: Counter[int] = Counter()  # by device: the most bytes of arrays so far


def allocate(size: int) -> cupy.cuda.MemoryPointer:
    """Allocate from the pool of CuPy, and note the peak, which CuPy does not."""
    found = POOL.malloc(size)
    used, device = POOL.used_bytes(), found.device_id
    if used > PEAKS[device]:
        PEAKS[device] = used
    return found


class CuPyBackend(CudaBackend):
    """Arrays of CuPy on one GPU, in the order of the current stream of each thread."""

    namespace = cupy
    array_type = cupy.ndarray

    def __init__(self, device: Device):
        super().__init__(device)
        self.gpu = cupy.cuda.Device(device.index)
        self.handles = Handles(self.new_handle)

    @classmethod
    def count(cls) -> int:
        return cupy.cuda.runtime.getDeviceCount()

    def activate(self) -> None:
        if cupy.cuda.runtime.getDevice() != self.device.index:
            self.gpu.use()

    def empty(self, shape: tuple[int, ...], dtype: Any) -> cupy.ndarray:
        self.activate()
        return cupy.empty(shape, dtype)

    def copy(self, array: cupy.ndarray) -> cupy.ndarray:
        self.activate()
        return array.copy(order="C")

    def from_host(self, array: HostArray) -> cupy.ndarray:
        self.activate()
        return cupy.array(array, order="C")

    def to_host(self, array: cupy.ndarray) -> HostArray:
        self.activate()
        return cupy.asnumpy(array, order="C")

    def owner(self, array: cupy.ndarray) -> object:
        return array.data.mem

    def storage_key(self, array: cupy.ndarray) -> Hashable:
        return array.data.ptr

    def byte_bounds(self, array: cupy.ndarray) -> tuple[int, int]:
        return cupy.byte_bounds(array)

    def synchronize(self) -> None:
        self.gpu.synchronize()

    def event(self) -> cupy.cuda.Event:
        self.activate()
        event = cupy.cuda.Event()
        event.record()
        return event

    def seconds_between(self, before: cupy.cuda.Event, after: cupy.cuda.Event) -> float:
        after.synchronize()
        return cupy.cuda.get_elapsed_time(before, after) / 1e3

    def special(self, by: str) -> Any:
        return need("cupyx.scipy.special", by)

    def memory(self) -> Memory:
        with self.gpu:
            free, total = cupy.cuda.runtime.memGetInfo()
            allocated = POOL.used_bytes()
            return Memory(free, total, allocated, max(PEAKS[self.device.index], allocated), POOL.total_bytes())

    def reset_peak(self) -> None:
        PEAKS[self.device.index] = 0

    def empty_cache(self) -> None:
        with self.gpu:
            POOL.free_all_blocks()
        cupy.get_default_pinned_memory_pool().free_all_blocks()

    def limit_memory(self, fraction: float) -> None:
        with self.gpu:
            POOL.set_limit(fraction=fraction)

    def properties(self) -> dict[str, Any]:
        found = cupy.cuda.runtime.getDeviceProperties(self.device.index)
        return found | {"name": found["name"].decode()}

    def compile(self, source: str) -> Callable[[str], Callable]:
        self.activate()
        module = cupy.RawModule(code=source, options=("--std=c++17",))

        def function(name: str) -> Callable:
            found = module.get_function(name)
            return lambda grid, block, args, shared=0: found(grid, block, args, shared_mem=shared)

        return function

    def new_handle(self) -> Handle:
        workspace = WORKSPACE if int(self.gpu.compute_capability) >= HOPPER else SMALL_WORKSPACE
        return Handle(library(), cupy.cuda.alloc, workspace)

    def gemm(self, call: Gemm, left: cupy.ndarray, right: cupy.ndarray, out: cupy.ndarray) -> None:
        stream, addresses = cupy.cuda.get_current_stream().ptr, [x.data.ptr for x in (left, right, out)]
        self.handles.current().gemm(stream, out.dtype.name, call, *addresses)


if cupy.cuda.get_allocator() == POOL.malloc:  # not one that the program has chosen
    cupy.cuda.set_allocator(allocate)
register_backend("cuda", CuPyBackend)
