"""The backend of GPUs: CuPy's arrays. The only module that imports CuPy."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import cupy
import cupyx

from ...core.backend import Memory, register_backend
from ...core.host import HostArray
from ...core.source_location import need
from ...core.spec import Device
from .cublas import TYPES, Handle, Handles, library
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


PINNED = 1  # cudaMemoryTypeHost


class CuPyBackend(CudaBackend):
    """Arrays of CuPy on one GPU, in the order of the current stream of each thread."""

    namespace = cupy
    array_type = cupy.ndarray

    def __init__(self, device: Device):
        super().__init__(device)
        self.gpu = cupy.cuda.Device(device.index)
        self.capability = int(self.gpu.compute_capability)
        self.handles = Handles(self.new_handle)
        self.captures: dict[int, cupy.cuda.Stream] = {}  # address of a stream -> the stream that records its calls

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

    def begin_copy(self, array: cupy.ndarray) -> Callable[[], HostArray]:
        self.activate()
        pinned = cupyx.empty_pinned(array.shape, array.dtype)
        array.get(out=pinned, blocking=False)
        event = self.event()

        def wait() -> HostArray:
            event.synchronize()
            return pinned

        return wait

    def pinned(self, array: HostArray) -> HostArray:
        if not array.size:
            return array
        result = cupyx.empty_pinned((array.nbytes,), "uint8").view(array.dtype).reshape(array.shape)
        result[...] = array
        return result

    def is_pinned(self, array: HostArray) -> bool:
        self.activate()
        return cupy.cuda.runtime.pointerGetAttributes(array.ctypes.data).type == PINNED

    def from_pinned(self, array: HostArray) -> cupy.ndarray:
        result = self.empty(array.shape, array.dtype)
        result.set(array, stream=self.stream())
        return result

    def owner(self, array: cupy.ndarray) -> object:
        return array.data.mem

    def storage_key(self, array: cupy.ndarray) -> Hashable:
        return array.data.ptr

    def address(self, array: cupy.ndarray) -> int:
        return array.data.ptr

    def byte_bounds(self, array: cupy.ndarray) -> tuple[int, int]:
        return cupy.byte_bounds(array)

    def synchronize(self) -> None:
        self.gpu.synchronize()

    def event(self, stream: cupy.cuda.Stream | None = None) -> cupy.cuda.Event:
        self.activate()
        event = cupy.cuda.Event()
        event.record(stream)
        return event

    def seconds_between(self, before: cupy.cuda.Event, after: cupy.cuda.Event) -> float:
        after.synchronize()
        return cupy.cuda.get_elapsed_time(before, after) / 1e3

    def stream(self) -> cupy.cuda.Stream:
        self.activate()
        return cupy.cuda.get_current_stream()

    def default_stream(self) -> cupy.cuda.Stream:
        return cupy.cuda.Stream.null

    def new_stream(self, priority: int = 0) -> cupy.cuda.Stream:
        self.activate()
        return cupy.cuda.Stream(non_blocking=True, priority=priority)

    def use_stream(self, stream: cupy.cuda.Stream) -> None:
        self.activate()
        stream.use()

    def wait(self, event: cupy.cuda.Event) -> None:
        self.stream().wait_event(event)

    def wait_on_host(self, work: cupy.cuda.Event | cupy.cuda.Stream) -> None:
        work.synchronize()

    def has_ended(self, work: cupy.cuda.Event | cupy.cuda.Stream) -> bool:
        return work.done

    def graph_memory(self) -> cupy.cuda.MemoryPool:
        return cupy.cuda.MemoryPool()

    def capture(
        self, calls: Iterable[Callable], memory: cupy.cuda.MemoryPool
    ) -> tuple[Callable[[], None] | None, int, Exception | None]:
        before = self.stream()
        # One for each stream, on which libraries then have the workspace of one stream: their graphs run in turn.
        stream = self.captures.get(before.ptr) or self.captures.setdefault(before.ptr, self.new_stream())
        done = 0
        with refused_uploads(), cupy.cuda.using_allocator(memory.malloc):
            stream.use()
            try:
                stream.begin_capture()
                try:
                    for call in calls:
                        call()
                        done += 1
                except BaseException:
                    with suppress(Exception):  # the error may have ended the capture
                        stream.end_capture()
                    raise
                graph = stream.end_capture()
            except Exception as error:
                return None, done, error
            finally:
                before.use()
        return Launch(graph, memory), done, None

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
        workspace = WORKSPACE if self.capability >= HOPPER else SMALL_WORKSPACE
        return Handle(library(), cupy.cuda.alloc, workspace)

    def gemm(self, call: Gemm, left: cupy.ndarray, right: cupy.ndarray, out: cupy.ndarray) -> None:
        stream, addresses = cupy.cuda.get_current_stream().ptr, [x.data.ptr for x in (left, right, out)]
        self.handles.current().gemm(stream, TYPES[out.dtype.name], call, *addresses)


if cupy.cuda.get_allocator() == POOL.malloc:  # not one that the program has chosen
    cupy.cuda.set_allocator(allocate)


class Launch:
    """A CUDA graph, which a call submits to the current stream, and the memory of its temporary arrays."""

    def __init__(self, graph: cupy.cuda.Graph, memory: cupy.cuda.MemoryPool):
        self.graph, self.memory = graph, memory

    def __call__(self) -> None:
        self.graph.launch()


class UploadRefused(RuntimeError):
    """A captured call copies from the host: a CUDA graph would read that memory again at each launch."""


CAPTURING: set[int] = set()  # threads that capture


@contextmanager
def refused_uploads() -> Iterator[None]:
    """Refuse this thread pinned memory, through which CuPy copies arrays from the host."""
    cupy.cuda.set_pinned_memory_allocator(pinned_memory)
    CAPTURING.add(threading.get_ident())
    try:
        yield
    finally:
        CAPTURING.discard(threading.get_ident())


def pinned_memory(size: int) -> cupy.cuda.PinnedMemoryPointer:
    if threading.get_ident() in CAPTURING:
        raise UploadRefused("it copies an array from the host")
    return cupy.get_default_pinned_memory_pool().malloc(size)


register_backend("cuda", CuPyBackend)
