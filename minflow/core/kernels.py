"""Registry of kernels: the code of each op on each platform, and the selection of the one that runs.

An op's definition says what is computed; a kernel computes it on one platform. The platforms of a device are tried in
order. The last one, "reference", is beside the definitions: obviously right, and written for any array namespace `xp`.
Kernels are registered and never replaced; `use_platforms` changes only the order. Must not know Tensor or any platform.
Read next: `eager.py`, which launches kernels; `platforms/__init__.py`, whose packages register them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from .backend import BACKENDS, OPEN, backend_of
from .base.errors import InternalError
from .base.signatures import argument_names
from .host import HostArray
from .spec import DEVICE_OF_ARRAY, LARGE, Device, Spec, cpu

if TYPE_CHECKING:
    from .ir import Node
    from .op import Op

REFERENCE = "reference"
DECOMPOSED = object()  # in place of a specialized kernel: the op runs as its decomposition
HOST_PLATFORMS = "numpy", REFERENCE  # those that need nothing but NumPy


class PlatformsBySize(tuple[str, ...]):
    """Platforms of a small call, in order.

    large: a function that returns those of a large call. The first call may load a platform. Later ones must return the
    same, so that the bits of a result depend only on the sizes of its arrays.
    """

    large: Callable[[], tuple[str, ...]]

    def __new__(cls, small: Sequence[str], large: Callable[[], tuple[str, ...]]) -> PlatformsBySize:
        result = super().__new__(cls, small)
        result.large = large
        return result


class Kernel(NamedTuple):
    """The code of an op on one platform.

    call: `call(*arrays, **attrs, out=None)`; the name of a ufunc of the array namespace; or None if only plans use this
    kernel. `out` is a list if the op has several outputs. Returns NotImplemented, if `declines`, for arrays that it
    does not support: then the next platform is called.
    specialize: None, or a function (*specs, **attrs) that returns a kernel of the arrays alone, whose result needs no
    copy, or None if there is no such kernel.
    lower: None, or a function (arrays, outs, **attrs) that prepares a call of a plan, whose arrays stay in place, or
    returns None if it does not support them.
    tolerance: largest difference from the reference kernel, in units of eps of the dtype times the largest element of
    the result; 0 is exact.
    portable: True if `call` takes the array namespace as its first argument.
    accepts: None, or a function (*specs, **attrs) that returns False for arrays for which another kernel, or the
    decomposition of a composite op, is faster.
    on_host: True if the code is for arrays on the CPU: those of another device are copied there and back.
    bfloat16: True if the kernel takes bfloat16; others of an op that is not `dtype_agnostic` get float32.
    moves: those of the op's `host_inputs` that plans copy to the device for this kernel, which takes both.
    smallest: if `declines`, it does not support arrays that have fewer elements each.
    """

    call: Callable | str | None
    specialize: Callable | None = None
    lower: Any = None
    tolerance: float = 0.0
    declines: bool = False
    portable: bool = False
    accepts: Callable | None = None
    on_host: bool = False
    bfloat16: bool = False
    moves: Sequence[str] = ()
    smallest: int = 0


class Selection(NamedTuple):
    """The kernels that run an op: `call` tries those of these platforms in order.

    lower: of `lowering_platform`, or None.  declined: platforms whose kernels have not supported the arrays of a call.
    specialize: see `Kernel`.
    """

    call: Callable
    specialize: Callable | None
    lower: Any
    platforms: tuple[str, ...]
    lowering_platform: str = ""
    declined: Collection[str] = ()

    @property
    def platform(self) -> str:
        """The platform whose kernel runs, given that all calls have arrays of the same shapes and strides."""
        return next(p for p in self.platforms if p not in self.declined)


KERNELS: dict[tuple[Op, str], Kernel] = {}
EAGER_PLATFORMS: dict[str, tuple[str, ...]] = {"cpu": HOST_PLATFORMS}  # of eager code, by device type, in order
ON_CHANGE: list[Callable[[], None]] = []  # clear the caches that contain selected kernels
SELECTORS: dict[str, Callable[[Op], Selection]] = {}  # device type without kernels of its own -> `select`
IN_OWN_DTYPE: dict[Callable, Callable] = {}  # kernel that widens float16 -> the same for arrays of other dtypes
OBSERVERS: list[Callable] = []  # of kernels that eager code runs: `observed`


def register(op: Op, platform: str, kernel: Kernel) -> None:
    """Register the kernel of an op on a platform. Raises InternalError if it has one there."""
    if (op, platform) in KERNELS:
        raise InternalError(
            f"the op {op.name!r} has two kernels on the platform {platform!r}", hint="register one of them elsewhere"
        )
    KERNELS[op, platform] = kernel
    clear_caches()


def clear_caches() -> None:
    """Clear the caches that contain selected kernels."""
    for clear in ON_CHANGE:
        clear()


def kernel(
    op: Op,
    function: Callable | None = None,
    *,
    ufunc: str | None = None,
    specialize: Callable | None = None,
    platform: str = REFERENCE,
    tolerance: float = 0.0,
    declines: bool = False,
    accepts: Callable | None = None,
    on_host: bool = False,
    bfloat16: bool = False,
    moves: Sequence[str] = (),
    smallest: int = 0,
) -> Any:
    """Register array code for an op: a function `(xp, *arrays, **attrs, out=None)`, or a ufunc by name.

    Decorates the function if it is not given. The result of a function without `out` is copied into `out`; a view stays
    a view. The other arguments: see `Kernel`.
    """
    if ufunc is not None:
        register(op, platform, Kernel(ufunc))
        return None
    if function is None:
        options: Any = {"specialize": specialize, "platform": platform, "tolerance": tolerance}
        options |= {"declines": declines, "accepts": accepts, "on_host": on_host, "bfloat16": bfloat16, "moves": moves}
        options["smallest"] = smallest
        return functools.partial(kernel, op, **options)
    call = function if not op.takes_out or "out" in argument_names(function) else copied_out(function)
    facts = True, accepts, on_host, bfloat16, moves, smallest
    register(op, platform, Kernel(call, specialize, None, tolerance, declines, *facts))
    return function


def copied_out(function: Callable) -> Callable:
    """Add `out=` to a kernel that returns new arrays."""

    @functools.wraps(function)
    def written(xp, *arrays, out=None, **attrs):
        results = function(xp, *arrays, **attrs)
        if out is None or results is NotImplemented:
            return results
        for place, result in zip(out, results) if results.__class__ is tuple else ((out, results),):
            place[...] = result
        return out

    return written


def call_on(op: Op, platform: str, device_type: str = "cpu") -> Callable:
    """The kernel of an op on one platform, for the arrays of a device type. Raises KeyError if it has none there."""
    call: Any = KERNELS[op, platform].call
    portable = KERNELS[op, platform].portable
    if isinstance(call, str):
        return getattr(BACKENDS[device_type].namespace, call)
    copies = KERNELS[op, platform].on_host and device_type != cpu.type
    if portable:
        call = functools.partial(call, BACKENDS[cpu.type if copies else device_type].namespace)
    return functools.partial(run_on_host, call) if copies else call


def run_on_host(call: Callable, *arrays, out: Any = None, **attrs) -> Any:
    """Run a kernel for the CPU on arrays of another device."""
    backend = backend_of(device_of(arrays))
    results = call(*[backend.to_host(x) if x.__class__ in DEVICE_OF_ARRAY else x for x in arrays], **attrs)
    if out is None:
        return tuple(map(backend.from_host, results)) if results.__class__ is tuple else backend.from_host(results)
    for place, result in zip(out, results) if results.__class__ is tuple else ((out, results),):
        place[...] = backend.from_host(result)
    return out


def select(
    op: Op,
    platforms: Sequence[str] | None = None,
    device_type: str = "cpu",
    large: bool = False,
    size: int | None = None,
) -> Selection:
    """The kernels that run an op: those of `platforms`, by default of eager code, in order.

    large: True for a call that `is_large`.  size: of the largest input, to omit kernels that would decline it.
    Raises InternalError if the op has no kernel there.
    """
    if op.inline_kernel is not None:
        return Selection(op.inline_kernel, None, None, (REFERENCE,))
    if device_type in SELECTORS:
        return SELECTORS[device_type](op)
    order = platforms or EAGER_PLATFORMS[device_type]
    if large and isinstance(order, PlatformsBySize):
        order = order.large()
    kernels, first = candidates(op, tuple(order), device_type, bool(OBSERVERS) and platforms is None)
    if len(first.platforms) == 1:
        return first
    call, declined = first.call, set[str]()
    for p in reversed(first.platforms[:-1]):
        if size is not None and size < kernels[p].smallest:
            continue
        if kernels[p].bfloat16 and not op.dtype_agnostic:
            call = in_float32(call)
        call = with_fallback(p, kernels[p].call, call, declined)
    return first._replace(call=call, declined=declined)


@functools.lru_cache(4_000)
def candidates(op: Op, order: tuple[str, ...], device_type: str, reports: bool) -> tuple[dict[str, Kernel], Selection]:
    """The kernels of an op by platform, in order, and the selection whose `call` is that of the last platform.

    reports: True to report each call to the observers.
    """
    tried = [p for p in order if (op, p) in KERNELS]
    kernels = {p: KERNELS[op, p]._replace(call=call_on(op, p, device_type)) for p in tried}
    if reports:
        kernels = {p: reporting(op, p, k) for p, k in kernels.items()}
    calls = [p for p in tried if kernels[p].call is not None]
    last = next((i for i, p in enumerate(calls) if not kernels[p].declines), None)
    if last is None:
        raise InternalError(f"the op {op.name!r} has no kernel for {device_type}", values={"platforms": tried})
    specialize = functools.partial(specialized, kernels) if any([k.specialize for k in kernels.values()]) else None
    lowering = next((p for p in tried if kernels[p].lower), "")
    lower = kernels[lowering].lower if lowering else None
    return kernels, Selection(kernels[calls[last]].call, specialize, lower, tuple(calls[: last + 1]), lowering)


ON_CHANGE.append(candidates.cache_clear)


def specialized(kernels: Mapping[str, Kernel], *specs, **attrs) -> Callable | None:
    """The kernel of these arrays alone; None if there is none, or if an earlier platform runs them."""
    for kernel in kernels.values():
        if kernel.specialize is not None and (found := kernel.specialize(*specs, **attrs)) is not None:
            return found
        if kernel.accepts is not None and kernel.accepts(*specs, **attrs):
            return None
    return None


def select_for(node: Node, platforms: Sequence[str] | None) -> Selection:
    """The kernels of `platforms`, by default of eager code, that run a node in a plan."""
    return select(node.op, platforms_for(node, platforms), device_of_node(node).type)


def device_of_node(node: Node) -> Device:
    return node.out_specs[0].device


def platforms_for(node: Node, platforms: Sequence[str] | None) -> Sequence[str]:
    """Those of `platforms`, which are of the CPU and by default those of eager code, that run a node, in order."""
    if (device := device_of_node(node)) is not cpu:
        return EAGER_PLATFORMS[device.type]
    inputs = [getattr(x, "spec", x) for x in node.inputs]
    return platforms_of(node.op, inputs, node.out_specs, platforms or EAGER_PLATFORMS["cpu"])


def platforms_of(op: Op, inputs: Sequence, outputs: Sequence, platforms: Sequence[str]) -> Sequence[str]:
    """Those of `platforms` that run a call with these arrays, or their specs."""
    by_size = isinstance(platforms, PlatformsBySize)
    return platforms.large() if by_size and is_large(op, inputs, outputs) else platforms


def is_large(op: Op, inputs: Sequence, outputs: Sequence) -> bool:
    """True if a call is worth loading platforms: arrays, or their specs, are large, and NumPy is slow on them."""
    if callable(op.slow_on_numpy):
        return op.slow_on_numpy(inputs, outputs)
    return op.slow_on_numpy and any([getattr(x, "size", 0) >= LARGE for x in (*inputs, *outputs)])


def with_fallback(platform: str, preferred: Callable, other: Callable, declined: set[str]) -> Callable:
    """A kernel that calls `other` if `preferred`, of this platform, does not support the arrays."""

    def call(*arrays, out=None, **attrs):
        result = preferred(*arrays, **attrs, out=out)
        if result is NotImplemented:
            declined.add(platform)
            return other(*arrays, **attrs, out=out)
        return result

    return call


def in_float32(call: Any) -> Callable:
    """A kernel that computes in float32 if arrays are bfloat16, and rounds the results into `out`."""

    def run(*arrays, out=None, **attrs):
        half = [getattr(x, "dtype", None) is not None and x.dtype.name == "bfloat16" for x in arrays]
        if out is None or True not in half:
            return call(*arrays, out=out, **attrs)
        results = call(*[x.astype("float32") if is_half else x for x, is_half in zip(arrays, half)], out=None, **attrs)
        for place, result in zip(out, results) if results.__class__ is tuple else ((out, results),):
            place[...] = result
        return out

    return run


def takes_bfloat16(op: Op, specs: Sequence, attrs: Mapping, device: Device) -> bool:
    """True if a kernel of this device computes an op in bfloat16."""
    kernels = [KERNELS[op, p] for p in EAGER_PLATFORMS.get(device.type, ()) if (op, p) in KERNELS]
    return any([k.bfloat16 and (k.accepts is None or k.accepts(*specs, **attrs)) for k in kernels])


@contextmanager
def observed(observer: Callable) -> Iterator[None]:
    """Call `observer(op, platform, arrays, result)` after each kernel of eager code in this block, in any thread."""
    OBSERVERS.append(observer)
    clear_caches()
    try:
        yield
    finally:
        OBSERVERS.remove(observer)
        clear_caches()


def reporting(op: Op, platform: str, kernel: Kernel) -> Kernel:
    """A kernel that reports its calls to the observers."""

    def report(call):
        def run(*arrays, **options):
            result = call(*arrays, **options)
            if result is not NotImplemented:
                for observe in list(OBSERVERS):
                    observe(op, platform, arrays, result)
            return result

        return call and run

    specialize = kernel.specialize
    special = specialize and (lambda *specs, **attrs: report(specialize(*specs, **attrs)))
    return kernel._replace(call=report(kernel.call), specialize=special)


class Calls(dict):
    """Cache: op -> the call of eager code on the arrays of a device type; on large arrays if `large`."""

    def __init__(self, device_type: str, large: bool = False):
        self.device_type, self.large = device_type, large
        ON_CHANGE.append(self.clear)

    def __missing__(self, op: Op) -> Callable:
        call = select(op, device_type=self.device_type, large=self.large).call
        if op.inline_kernel is None:  # such an op belongs to one call of a Function
            self[op] = call
        return call


CALLS = Calls("cpu")
LARGE_CALLS = Calls("cpu", large=True)
CALLS_OF_DEVICES: dict[str, Calls] = {}  # the calls of other device types, which do not depend on sizes


def calls_of(device: Device) -> Calls:
    """The calls of eager code on the arrays of a device; on the CPU, those on few elements."""
    if device is cpu:
        return CALLS
    if device.type not in CALLS_OF_DEVICES:
        CALLS_OF_DEVICES[device.type] = Calls(device.type)
    return CALLS_OF_DEVICES[device.type]


def use_platforms(device_type: str, platforms: Sequence[str]) -> None:
    """Change the platforms of eager code, in order. Plans keep the kernels that they were built with."""
    EAGER_PLATFORMS[device_type] = platforms if isinstance(platforms, PlatformsBySize) else tuple(platforms)
    clear_caches()


def launch(op: Op, arrays: Sequence, attrs: Mapping, specs: Sequence[Spec] = (), out: Any = None) -> Any:
    """Run the selected kernel of an op: into `out`, or into new C-contiguous arrays of these specs.

    Without `out`, numpy would keep the strides of inputs and may return scalars. A kernel that takes no `out` (a view,
    or a result whose shape depends on elements) returns its result. specs: needed if there is no `out`.
    """
    device = specs[0].device if specs and specs[0] is not None else device_of(arrays)
    if device is not cpu:
        OPEN[device].activate()
        call, arrays = calls_of(device)[op], moved(op, arrays, device)
    else:
        large = op.slow_on_numpy and is_large(op, arrays, specs if out is None else out if op.many else (out,))
        call = (LARGE_CALLS if large else CALLS)[op]
    if out is None:
        if not op.takes_out:
            return call(*arrays, **attrs)
        # results of rules that are numbers are on the CPU, even beside others on a device
        created = [OPEN[spec.device].empty(spec.shape, spec.np) for spec in specs]
        out = created if op.many else created[0]
    call(*arrays, **attrs, out=out)
    return out


def prepared(op: Op, inputs: Sequence, attrs: Mapping, specs: Sequence[Spec]) -> Callable:
    """`launch` for inputs of the same specs on the CPU, with its decisions made. inputs: arrays or their specs."""
    large = bool(op.slow_on_numpy) and is_large(op, inputs, specs)
    call = select(op, large=large, size=max([getattr(x, "size", 1) for x in inputs], default=0)).call
    if call.__class__ is functools.partial and call.func in IN_OWN_DTYPE and not any(map(is_float16, inputs)):
        call = functools.partial(IN_OWN_DTYPE[call.func], *call.args)
    call = functools.partial(call, **attrs) if attrs else call
    if not op.takes_out:
        return call
    empty, many, shape, dtype = OPEN[cpu].empty, op.many, specs[0].shape, specs[0].np

    def into_new(*arrays):
        out = [empty(spec.shape, spec.np) for spec in specs] if many else empty(shape, dtype)
        call(*arrays, out=out)
        return out

    return into_new


def is_float16(x: Any) -> bool:
    """True for an array, or its spec, of float16."""
    return hasattr(x, "dtype") and x.dtype.name == "float16"


def is_moved(op: Op, i: int) -> bool:
    """True if input i of an op has to be on the device of the others."""
    return op.variadic or op.inputs[i] not in op.host_inputs


def is_moved_for(node: Node, i: int, selected: Selection) -> bool:
    """True if input i of a node has to be on the device of the others for the kernel that runs first."""
    first = KERNELS.get((node.op, selected.platforms[0]))
    return is_moved(node.op, i) or (first is not None and node.op.inputs[i] in first.moves)


def moved(op: Op, arrays: Sequence, device: Device) -> list:
    """The inputs of a kernel on this device: 0-d arrays, and others that the op allows, may be on the CPU."""
    return [
        OPEN[device].from_host(x) if isinstance(x, HostArray) and is_moved(op, i) else x for i, x in enumerate(arrays)
    ]


def device_of(arrays: Iterable) -> Device:
    """The device of a kernel's arrays: not the CPU if one is elsewhere."""
    others = [find(x) for x in arrays if (find := DEVICE_OF_ARRAY.get(x.__class__)) is not None]
    return others[0] if others else cpu


def runs_decomposed(op: Op, specs: Sequence, attrs: Mapping, platforms: Sequence[str]) -> bool:
    """True if a composite op runs as its decomposition: none of the platforms has a kernel for these specs."""
    kernels = [KERNELS[op, p] for p in platforms if p != REFERENCE and (op, p) in KERNELS]
    return not any([k.accepts is None or k.accepts(*specs, **attrs) for k in kernels])


def has_kernel(op: Op) -> bool:
    """True if the op can run: it has a reference kernel."""
    return op.inline_kernel is not None or (op, REFERENCE) in KERNELS
