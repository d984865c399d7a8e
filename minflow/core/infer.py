"""The specs of an op's results, inferred before every kernel: first shape and dtype, by the op's rule, then the device.

This is the only place that decides the device of a result; rules get specs without devices. Results are cached in a
bounded table. `source_location.explain` adds the user's names, values, module and line to an error.
Read next: `dispatch.py`, the only way to run an op.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from .backend import OPEN, largest_tensors, unavailable
from .base.errors import DeviceError, DTypeError, MinflowError, OutOfMemoryError, TraceError
from .base.placement import Placement
from .ir import NUMBERS
from .kernels import (
    DECOMPOSED,
    EAGER_PLATFORMS,
    ON_CHANGE,
    is_large,
    platforms_of,
    prepared,
    runs_decomposed,
    select,
    takes_bfloat16,
)
from .memory import MIN_CHECKED_BYTES, size_text
from .mode import MODE
from .sharding import GlobalCall, logical
from .source_location import explain, here, input_names
from .spec import DEPENDS_ON_DEFAULT, Device, Spec, bfloat16, cpu, default_dtype, promote
from .symbolic_shapes import SymInt

INFER_CACHE: dict = {}  # results of `infer`, bounded; errors are not cached
INFER_CACHE_LIMIT = 20_000
GLOBAL = object()  # in place of a dtype: the inputs are global tensors, see `infer`
DEPENDS_ON_DEFAULT.append(INFER_CACHE.clear)
ON_CHANGE.append(INFER_CACHE.clear)


def infer(op: Any, inputs: Sequence, attrs: Mapping, specs: tuple = ()):
    """The result of `resolve`, cached, with a kernel: (None, output specs, result of `specialized_kernel`); or (dtype
    that the inputs must be cast to, None, None); or (bfloat16, output specs, None) if the op must be computed in
    float32. `run_in_dtype` does the casts of the last two. For global tensors, (GLOBAL, output specs, GlobalCall), or
    (GLOBAL, None, DECOMPOSED). specs: those of the inputs, if all are tensors and the
    caller has them.
    """
    specs = specs or tuple([NUMBERS.get(x.__class__) or x.spec for x in inputs])
    key = (op, specs, tuple(attrs.items())) if attrs else (op, specs)
    try:
        return INFER_CACHE[key]
    except KeyError:
        pass
    except TypeError:  # an unhashable attr (a slice before Python 3.12)
        key = None
    try:
        dtype, outs = resolve(op, specs, attrs)
        if dtype is None and (op.distributes or any([s.__class__ is Spec and s.placement is not None for s in specs])):
            result = infer_global(op, specs, attrs, outs)
            if key is not None:
                if len(INFER_CACHE) >= INFER_CACHE_LIMIT:
                    INFER_CACHE.clear()
                INFER_CACHE[key] = result
            return result
        if symbolic(specs, outs):
            if key is not None:
                INFER_CACHE[key] = dtype, outs, None
            return dtype, outs, None
        known = outs is not None and outs != (None,)
        large = known and not op.is_view and sum([s.nbytes for s in outs]) > MIN_CHECKED_BYTES
        device = outs[0].device if known else cpu
        if MODE.get().trace is None:
            check_device(op.name, device)
            if large:
                check_memory(op.name, outs)
    except MinflowError as error:
        raise explain(error, op, inputs) from None
    runs = device.type in EAGER_PLATFORMS
    specialized = dtype is None and runs and known
    result = dtype, outs, specialized_kernel(op, specs, outs, attrs, device) if specialized else None
    if key is not None and outs != (None,) and not large and runs:  # others are checked at each call
        if len(INFER_CACHE) >= INFER_CACHE_LIMIT:
            INFER_CACHE.clear()
        INFER_CACHE[key] = result
    return result


def symbolic(specs: tuple, outs: tuple | None) -> bool:
    """True for specs with symbolic sizes, which have no kernel."""
    return any([s.__class__ is Spec and type(s.size) is SymInt for s in (*specs, *(outs or ()))])


def specialized_kernel(op: Any, specs: tuple, outs: tuple, attrs: Mapping, device: Device) -> Any:
    """The kernel of these arrays alone, or one that is `prepared`; None for large arrays and devices; or DECOMPOSED."""
    specialize = select(op, device_type=device.type).specialize if device is cpu or op.is_view else None
    if specialize is not None and is_large(op, specs, outs):
        specialize = select(op, device_type=device.type, large=True).specialize
    if op.composite and runs_decomposed(op, specs, attrs, platforms_of(op, specs, outs, EAGER_PLATFORMS[device.type])):
        return DECOMPOSED
    found = None if specialize is None else specialize(*specs, **attrs)
    # the key of an attr 0.0 is that of -0.0, and 1 equals True: some results differ
    binds = device is cpu and op.takes_out and not op.custom and "value" not in attrs
    return prepared(op, specs, attrs, outs) if found is None and binds and not is_large(op, specs, outs) else found


def infer_global(op: Any, specs: tuple, attrs: Mapping, outs: tuple) -> tuple:
    """The result of `infer` for global tensors. Raises DeviceError if they are on different ranks."""
    if op.composite or (op.on_ranks is not None and op.on_ranks(**attrs) is not None):
        return GLOBAL, None, DECOMPOSED
    placement = common_placement(op, specs) if not op.distributes else None
    call = GlobalCall(op, placement, specs, attrs, outs)
    return GLOBAL, call.outs, call


def common_placement(op: Any, specs: tuple) -> Placement | None:
    """The placement of an op's global tensors. 0-d local tensors, and inputs that an op reads on the CPU, count as
    numbers: they are the same on each rank.
    """
    first: str = ""
    placement: Placement | None = None
    for name, s in zip(input_names(op, specs), specs):
        if not isinstance(s, Spec):
            continue
        if s.placement is None and (s.ndim == 0 or name.partition("[")[0] in op.host_inputs):
            continue
        if not first:
            first, placement = name, s.placement
        elif s.placement != placement:
            raise mixed_placements(op, first, placement, name, s.placement)
    return placement


def mixed_placements(op: Any, first: str, one: Placement | None, name: str, other: Placement | None) -> DeviceError:
    if one is None or other is None:
        local, whole = (first, name) if one is None else (name, first)
        (axes,) = [len(p.hierarchy) for p in (one, other) if p is not None]
        sbp = "flow.sbp.broadcast" if axes == 1 else f"[flow.sbp.broadcast] * {axes}"
        return DeviceError(
            f"{op.name}: {{{whole}}} is a global tensor, and {{{local}}} is a local one",
            hint=f"{{{local}}}.to_global({{{whole}}}.placement, {sbp}), if each rank has the same elements; "
            f"or {{{whole}}}.to_local()",
        )
    return DeviceError(
        f"{op.name}: {{{first}}} is on the ranks {list(one.order)}, and {{{name}}} on the ranks {list(other.order)}",
        hint=f"{{{name}}}.to_global(placement={{{first}}}.placement)",
    )


def check_device(name: str, device: Device) -> None:
    """Raise DeviceError if eager code has no kernels for this device."""
    if device.type not in EAGER_PLATFORMS:
        raise unavailable(device, f"{name}: ")


def check_memory(name: str, outs: Sequence[Spec]) -> None:
    """Raise OutOfMemoryError if there is no memory for these results, before it is allocated. A plan is checked as a
    whole.
    """
    needed = sum([spec.nbytes for spec in outs])
    device = outs[0].device if outs else cpu
    if (free := OPEN.get(device, OPEN[cpu]).free_bytes_if_short(needed)) is not None:
        raise OutOfMemoryError(
            f"{name}: the result, {', '.join(map(str, outs))}, needs {size_text(needed)} of memory, and "
            f"{size_text(free)} are free",
            values={"needed": f"{needed} bytes", "free": f"{free} bytes"}
            | ({} if device is cpu else largest_tensors(device)),
            where=here(),
            hint="smaller sizes, or a smaller dtype; expand() repeats elements without allocating",
        )


def resolve(op: Any, specs: tuple, attrs: Mapping) -> tuple:
    """(dtype to compute in or None, output specs or None), as `infer` returns them: shapes and dtypes by the op's rule,
    then the device. specs: the Spec of each tensor input, the type of each Python number.
    """
    if op.distributes:
        return None, (op.infer(*specs, **attrs),)
    specs = tuple(map(logical, specs))
    dtype, outs = consult(op, with_device(specs, cpu), attrs)
    device = attrs["device"] if op.moves else device_of_result(op, specs)
    if device is None or outs is None:
        return dtype, outs
    if dtype is bfloat16 and device is not cpu and takes_bfloat16(op, specs, attrs, device):
        dtype = None
    specs = zip(op.outputs, outs, with_device(outs, device))
    return dtype, tuple([out if name in op.host_inputs else moved for name, out, moved in specs])


def with_device(specs: tuple, device: Device) -> tuple:
    """These specs on a device; types of numbers, and None for a data-dependent shape, are unchanged."""
    return tuple([s.replace(device=device) if isinstance(s, Spec) and s.device is not device else s for s in specs])


def consult(op: Any, specs: tuple, attrs: Mapping) -> tuple:
    """Shapes and dtypes by the op's rule, as `resolve` returns them. The rule ignores the device of its specs."""
    if len(specs) == 1 and not isinstance(specs[0], Spec):
        what = f"{op.name}: the input must be a tensor, got {specs[0].__name__}"
        raise DTypeError(what, hint="flow.tensor(...) around a number")
    if op.elementwise:
        dtype = promote(*specs)
        if op.elementwise == "float" and dtype.rank < 2:
            dtype = default_dtype()
        if any(isinstance(s, Spec) and s.dtype is not dtype for s in specs):
            return dtype, None
    dtypes = [s.dtype for s in specs if isinstance(s, Spec)]
    if op.domain == "real" and (any(d.rank == 3 for d in dtypes) or (op.composite and complex in specs)):
        raise DTypeError(f"{op.name}: not defined for complex numbers", hint="x.real, x.imag, x.abs() or x.angle()")
    out = op.infer(*specs, **attrs)
    return bfloat16 if bfloat16 in dtypes and not op.dtype_agnostic else None, out if op.many else (out,)


def device_of_result(op: Any, specs: tuple) -> Device | None:
    """The device of an op's results, by PyTorch's rule: that of its tensors. None if there are none but those that
    the op reads on the CPU: the rule states it.

    Tensors on another device may be combined with 0-d tensors on the CPU, which count as numbers, and with inputs that
    the op reads on the CPU or moves (`Op.host_inputs`, `Op.moved_inputs`). Raises DeviceError for any other mixture,
    also of 0-d tensors that are joined.
    """
    tensors = [(name, s) for name, s in zip(input_names(op, specs), specs) if isinstance(s, Spec)]
    first, device = next(((name, s.device) for name, s in tensors if s.device is not cpu), ("", cpu))
    for name, s in tensors:
        is_number = s.ndim == 0 and not op.variadic
        on_host = s.device is cpu and (is_number or name.partition("[")[0] in (*op.host_inputs, *op.moved_inputs))
        if s.device is not device and not on_host:
            hint = f'{{owner of {name}}}.to("{device}")'
            if device.type == "meta":
                hint += ' for the shapes alone; or to_empty(device="cpu") of the module on meta, and load_state_dict'
            raise DeviceError(f"{op.name}: {{{first}}} is on {device}, and {{{name}}} is on {s.device}", hint=hint)
    stated = device is cpu and all([name.partition("[")[0] in op.host_inputs for name, _ in tensors])
    return None if stated else device


def data_dependent(*specs, **attrs) -> None:
    """The shape rule of an op whose output shape depends on the elements; raises unless in eager mode."""
    if MODE.get().trace is not None:
        raise TraceError(
            "the shape of the result depends on elements, which do not exist while a graph is built",
            hint="flow.where(mask, x, 0) keeps the shape; (x * mask).sum() leaves out the rest; "
            "flow.nonzero_static(mask, size=n) has n rows; or do it before the call",
        )
    return None


def __getattr__(name: str):
    if name == "INFERRED":  # copies of the reading tour R1 read it
        warnings.warn("infer.INFERRED is now infer.INFER_CACHE", DeprecationWarning, stacklevel=2)
        return INFER_CACHE
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
