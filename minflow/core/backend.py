"""Backends: what differs between devices, one object per device. Kernels are registered elsewhere: `kernels.py`.

The engine allocates, copies and reads arrays through the Backend of their device, and computes with its array
namespace. A platform registers the class of its device type: `platforms/numpy/backend.py` that of the CPU. Must not
import Tensor, nor any array library. Read next: `kernels.py`.
"""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from .base.errors import DeviceError, InternalError
from .memory import free_bytes_if_short, size_text
from .source_location import here
from .spec import DEVICE_OF_ARRAY, Device, Spec, cpu

if TYPE_CHECKING:
    from .host import HostArray
    from .ir import Node
    from .op import Op

Array: TypeAlias = Any  # an array of the library of its device


class Memory(NamedTuple):
    """The memory of a device in bytes.

    free, total: of the device, for all processes.  allocated: of arrays of this process; peak: the most of that so
    far.  reserved: what the pool of this process holds, for arrays and to use again.
    """

    free: int
    total: int
    allocated: int
    peak: int
    reserved: int


class Backend:
    """The memory of a device and its array library. Subclasses define what has no body here.

    namespace: the array namespace, `xp` in kernels.  array_type: the class of its arrays.  has_elements: False if its
    arrays have only a shape and a dtype, so that nothing about elements can be checked.
    """

    namespace: Any
    array_type: type
    has_elements = True

    def __init__(self, device: Device):
        self.device = device

    @classmethod
    def count(cls) -> int:
        """The number of devices of this type. May raise if the driver is broken."""
        raise NotImplementedError

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """A new C-contiguous array whose elements are undefined."""
        raise NotImplementedError

    def unread(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array in place of one whose elements nothing reads, without memory of its own."""
        return self.namespace.broadcast_to(self.namespace.zeros((), dtype), shape)

    def copy(self, array: Array) -> Array:
        """A C-contiguous copy."""
        raise NotImplementedError

    def from_host(self, array: HostArray) -> Array:
        """A C-contiguous copy on this device."""
        raise NotImplementedError

    def to_host(self, array: Array) -> HostArray:
        """The elements in the memory of the host, which waits for them. May share memory on the CPU."""
        raise NotImplementedError

    def begin_copy(self, array: Array) -> Callable[[], HostArray]:
        """Begin to copy the elements to the host; return a function that waits for them, but not for later work."""
        raise NotImplementedError

    def is_writable(self, array: Array) -> bool:
        """False if the elements must not be written."""
        return True

    def owner(self, array: Array) -> object:
        """The object that owns the memory of an array: two arrays that share memory have the same owner."""
        raise NotImplementedError

    def storage_key(self, array: Array) -> Hashable:
        """Equal for two arrays that begin at the same element of one storage, while both are alive."""
        raise NotImplementedError

    def byte_bounds(self, array: Array) -> tuple[int, int]:
        """The first byte of an array and the byte after its last one, comparable within the device."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Wait for all work on this device."""

    def free_bytes_if_short(self, needed: int) -> int | None:
        """The free bytes if fewer than `needed`; else None."""
        return free_bytes_if_short(needed)

    def memory(self) -> Memory:
        """The memory of this device. Raises what the driver raises."""
        raise NotImplementedError

    def activate(self) -> None:
        """Let the array library compute on this device in this thread. Called before kernels are launched."""

    def event(self, stream: Any = None) -> Any:
        """The end of the work that a stream has been given until now, by default this thread's."""
        raise NotImplementedError

    def seconds_between(self, before: Any, after: Any) -> float:
        """The time between two events. Waits until both have happened."""
        raise NotImplementedError

    def pinned(self, array: HostArray) -> HostArray:
        """A copy in pinned memory of the host, which this device reads without help of the processor."""
        raise NotImplementedError

    def is_pinned(self, array: HostArray) -> bool:
        """True if an array is in pinned memory of the host."""
        return False

    def from_pinned(self, array: HostArray) -> Array:
        """A copy on this device of an array in pinned memory, which must not change before this thread's stream has
        copied it.
        """
        raise NotImplementedError

    # ---- streams: queues of work of a device -------------------------------------------------------------------------

    def stream(self) -> Any:
        """The stream to which this thread submits work."""
        raise NotImplementedError

    def default_stream(self) -> Any:
        """The stream of every thread until it uses another one."""
        raise NotImplementedError

    def new_stream(self, priority: int = 0) -> Any:
        """A stream whose work runs beside that of others. priority: lower numbers run first."""
        raise NotImplementedError

    def use_stream(self, stream: Any) -> None:
        """Let this thread submit its work to a stream."""
        raise NotImplementedError

    def wait(self, event: Any) -> None:
        """Let work that this thread submits from now on begin after an event."""
        raise NotImplementedError

    def wait_on_host(self, work: Any) -> None:
        """Wait for an event, or for all work of a stream."""
        raise NotImplementedError

    def has_ended(self, work: Any) -> bool:
        """True if an event has happened, or if all work of a stream has ended."""
        raise NotImplementedError

    def graph_memory(self) -> Any:
        """Memory for the temporary arrays of captured calls, which keep their addresses while this object is alive."""
        return None

    def capture(
        self, calls: Iterable[Callable], memory: Any
    ) -> tuple[Callable[[], None] | None, int, Exception | None]:
        """Record the work of calls instead of doing it. Returns (a function that submits it to this thread's stream,
        the number of calls, None), or (None, the number of calls before the one that cannot be captured, its error).
        """
        raise NotImplementedError

    def special(self, by: str) -> Any:
        """The special functions of SciPy on this device, for the op `by`."""
        raise NotImplementedError

    def silent(self) -> AbstractContextManager:
        """Suppress the floating-point warnings of the array library, if it has any."""
        return nullcontext()

    # ---- calls of a plan, whose arrays stay in place ----------------------------------------------------------------

    def bare(self, kernel: Callable) -> Callable:
        """The kernel to call in a plan, which has suppressed floating-point warnings."""
        return kernel

    def bind(self, op: Op, kernel: Callable, args: Sequence, places: Sequence[Array]) -> functools.partial:
        """Bind a kernel to its inputs and outputs."""
        return functools.partial(kernel, *args, out=places if op.many else places[0])

    def direct(
        self, node: Node, call: functools.partial, inputs: Sequence[Array], out: Array, platforms: Sequence[str] | None
    ) -> Callable | None:
        """A plan's only call, as a function of its input arrays that returns a list of one new array; None if
        the bound call is as fast.
        """
        return None


@contextmanager
def on_stream(backend: Backend, stream: Any) -> Iterator[None]:
    """Submit the work of this thread on a device to a stream in this block."""
    before = backend.stream()
    backend.use_stream(stream)
    try:
        yield
    finally:
        backend.use_stream(before)


BACKENDS: dict[str, type[Backend]] = {}  # by device type
BEFORE_READ: list[Callable[[Backend], None]] = []  # run before elements on another device than the CPU are read
OPEN: dict[Device, Backend] = {}  # backends in use; that of the CPU always
# By device type: a function that registers the backend, or returns why there is none and what to try.
LOADERS: dict[str, Callable[[], tuple[str, str]]] = {}
TENSOR_TYPES: list[type] = []  # Tensor, which this module must not import
UNAVAILABLE: dict[str, tuple[str, str]] = {}  # what it has returned


def register_backend(device_type: str, kind: type[Backend]) -> None:
    """Register the backend of a device type. Raises InternalError if there is one."""
    if device_type in BACKENDS:
        raise InternalError(f"the device type {device_type!r} has two backends", hint="register one of them")
    BACKENDS[device_type] = kind
    if device_type == cpu.type:
        OPEN[cpu] = kind(cpu)
    else:
        DEVICE_OF_ARRAY[kind.array_type] = lambda array: Device(device_type, array.device.id)


def load_backend(device_type: str) -> type[Backend] | None:
    """The backend of a device type, which is imported when a program first asks for it; None if there is none."""
    if device_type not in BACKENDS and device_type in LOADERS and device_type not in UNAVAILABLE:
        why = LOADERS[device_type]()
        if device_type not in BACKENDS:
            UNAVAILABLE[device_type] = why
    return BACKENDS.get(device_type)


def is_available(device_type: str) -> bool:
    """True if this device type has a backend and at least one device. Never raises."""
    backend = load_backend(device_type)
    try:
        return backend is not None and backend.count() > 0
    except Exception:  # a broken driver counts as no device
        return False


def backend_of(device: Device) -> Backend:
    """The backend of `device`. Raises DeviceError if it is not available."""
    found = OPEN.get(device)
    if found is None:
        kind = load_backend(device.type)
        if kind is None or not is_available(device.type) or device.index >= kind.count():
            raise unavailable(device)
        found = OPEN[device] = kind(device)
    return found


def unavailable(device: Device, by: str = "") -> DeviceError:
    """The error for a device that is not here."""
    load_backend(device.type)
    why, command = UNAVAILABLE.get(device.type, ("", ""))
    alternative = 'device = "cuda" if flow.cuda.is_available() else "cpu"'
    available = [name for name, kind in BACKENDS.items() if kind.has_elements and is_available(name)]
    return DeviceError(
        f"{by}there is no device {device} here" + (f": {why}" if why else ""),
        values={"available": ", ".join(available)},
        where=here(),
        hint=f"{command}; or {alternative}" if command else alternative,
    )


class ForkedBackend:
    """A backend in a child process, which has none of the state of its driver: all but its device is refused."""

    def __init__(self, device: Device):
        self.device = device

    def __getattr__(self, name: str) -> Any:
        raise DeviceError(
            f"a forked process uses {self.device}, which its parent used before the fork",
            where=here(),
            hint='multiprocessing.get_context("spawn"); or use the device first in the child, x.cpu() in the parent',
        )


def refuse_devices() -> None:
    """After a fork, in the child: CUDA works only in the process that has initialized it."""
    for device in OPEN.keys() - {cpu}:
        OPEN[device] = ForkedBackend(device)  # type: ignore[assignment]


if hasattr(os, "register_at_fork"):  # Windows cannot fork
    os.register_at_fork(after_in_child=refuse_devices)


def is_array(x: Any) -> bool:
    """True if x is an array of a tensor, on any device."""
    return any([isinstance(x, kind.array_type) for kind in BACKENDS.values()])


def device_array(x: Any) -> Array | None:
    """An array of another library on a GPU, as an array of our backend that shares its memory; None if x is no such
    array.
    """
    if getattr(x, "__cuda_array_interface__", None) is None:
        return None
    return backend_of(Device("cuda")).namespace.asarray(x)


def backend_of_array(array: Array) -> Backend:
    """The backend of the device of an array."""
    find = DEVICE_OF_ARRAY.get(array.__class__)
    return backend_of(cpu if find is None else find(array))


def on_host(array: Array) -> bool:
    """True if the elements can be read without waiting: an array on the CPU, or a number."""
    return array.__class__ not in DEVICE_OF_ARRAY


def namespace_of(array: Array) -> Any:
    """The array namespace of the device of an array."""
    return backend_of_array(array).namespace


def backend_with(namespace: Any) -> Backend:
    """The backend in use that has this array namespace, for kernels."""
    return next(backend for backend in OPEN.values() if backend.namespace is namespace)


def namespace(device: Device = cpu) -> Any:
    """The array namespace of a device."""
    return backend_of(device).namespace


def empty(spec: Spec) -> Array:
    """A new C-contiguous array of this spec, on its device."""
    return backend_of(spec.device).empty(spec.shape, spec.np)


def full(spec: Spec, value: complex) -> Array:
    """A new C-contiguous array of this spec, on its device, filled with one number."""
    array = empty(spec)
    array.fill(value)
    return array


def to_host(array: Array) -> HostArray:
    """The elements of an array in the memory of the host. Raises the errors of checks that wait (`deferred.py`)."""
    backend = backend_of_array(array)
    if backend.device is not cpu:
        for run in BEFORE_READ:
            run(backend)
    return backend.to_host(array)


def owner_of(array: Array) -> object:
    """The object that owns the memory of an array."""
    return backend_of_array(array).owner(array)


def placed(array: Array, device: Device) -> Array:
    """The array itself if it is on a device; else its copy there."""
    return array if backend_of_array(array) is backend_of(device) else on_device(array, device)


def on_device(array: Array, device: Device) -> Array:
    """A C-contiguous copy of an array on a device."""
    if backend_of_array(array) is (target := backend_of(device)):
        return target.copy(array)
    return to_host(array) if device is cpu else target.from_host(to_host(array))


def constant_on(array: HostArray, device: Device) -> Array:
    """An array that is not written: its copy on the device; or itself if it is on the CPU, or if the device, without
    which a graph can be traced, is not available.
    """
    if device is not cpu and is_available(device.type):
        return on_device(array, device)
    array.flags.writeable = False
    return array


def largest_tensors(device: Device, count: int = 3) -> dict[str, str]:
    """Name the largest tensors on a device, for an error: of those that share memory, the largest. Searches all objects
    of the process.
    """
    backend, sizes = backend_of(device), dict[int, tuple[int, Spec]]()
    for x in [x for x in gc.get_objects() if isinstance(x, *TENSOR_TYPES)]:
        if x.spec.device is device and x.array is not None:
            first, end = backend.byte_bounds(x.array)
            owner = id(backend.owner(x.array))
            sizes[owner] = max(sizes.get(owner, (0, x.spec)), (end - first, x.spec), key=lambda found: found[0])
    largest = sorted(sizes.values(), key=lambda found: -found[0])[:count]
    return {f"tensor {i} of {len(sizes)}": f"{spec}, {size_text(n)}" for i, (n, spec) in enumerate(largest, 1)}
