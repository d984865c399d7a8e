"""Converters of views, copies and concatenation. A write through a view is a scatter into the flattened tensor."""

from __future__ import annotations

import math

from ...core.backend import namespace
from ...core.host import HostArray, host_array
from ...core.kernels import launch
from ...core.spec import float32, float64
from ..builder import Builder, converter

PAD_MODES = {"reflect": "reflect", "replicate": "edge"}  # "wrap" needs opset 19
END = 2**63 - 1  # end of an axis of any size


@converter("reshape")
def _(b, node, x):
    shape = node.attrs["shape"]
    return b.op("Reshape", x, b.shape(node, unknown=True), allowzero=int(0 in shape) or None)


@converter("permute")
def _(b, node, x):
    return b.op("Transpose", x, perm=list(node.attrs["dims"])) if node.attrs["dims"] else x


@converter("expand")
def _(b, node, x):
    return b.op("Expand", x, b.shape(node))


@converter("full")
def _(b, node):
    value = b.const(node.attrs["value"], node.attrs["dtype"])
    return b.op("Expand", value, b.shape(node)) if node.attrs["shape"] else b.op("Identity", value)


@converter("cat")
def _(b, node, *inputs):
    return b.op("Concat", *inputs, axis=node.attrs["dim"])


@converter("stack")
def _(b, node, *inputs):
    axis = node.attrs["dim"]
    return b.op("Concat", *[b.op("Unsqueeze", x, b.const([axis])) for x in inputs], axis=axis)


@converter("pad")
def _(b, node, x):
    before, after = zip(*node.attrs["widths"]) if node.attrs["widths"] else ((), ())
    value = b.const(node.attrs["value"], node.inputs[0].spec.dtype)
    return b.op("Pad", x, b.const([*before, *after]), value) if before else b.op("Identity", x)


def is_float(node) -> bool:
    """True for the dtypes for which onnxruntime moves elements by one operator."""
    return node.out_specs[0].dtype in (float32, float64)


def is_plain_border(node) -> bool:
    """True for modes of this opset, without cropping."""
    return is_float(node) and node.attrs["mode"] in PAD_MODES and min(map(min, node.attrs["widths"])) >= 0


@converter("pad_from_input", when=is_plain_border)
def _(b, node, x):
    lead = [0] * (node.inputs[0].spec.ndim - len(node.attrs["widths"]))
    before, after = zip(*node.attrs["widths"])
    return b.op("Pad", x, b.const([*lead, *before, *lead, *after]), mode=PAD_MODES[node.attrs["mode"]])


@converter("pixel_shuffle", when=lambda node: is_float(node) and node.out_specs[0].ndim == 4)
def _(b, node, x):
    return b.op("DepthToSpace", x, blocksize=node.attrs["upscale_factor"], mode="CRD")


@converter("getitem")
def _(b, node, x):
    """Slices first, then integers from the last axis to the first, then new axes."""
    index = b.attr(node, "index")
    axes = len(node.inputs[0].spec.shape)
    used = sum(i is not None and i is not Ellipsis for i in index)
    slices, numbers, new = [], [], []
    axis = place = 0
    for i in index:
        if i is None:
            new.append(place)
            place += 1
        elif i is Ellipsis:
            axis, place = axis + axes - used, place + axes - used
        elif i.__class__ is tuple:
            if i != (None, None, None):
                slices.append((axis, i))
            axis, place = axis + 1, place + 1
        else:
            numbers.append((axis, i))
            axis += 1
    if slices:
        x = slice_axes(b, x, slices)
    for axis, i in reversed(numbers):
        place = b.const(i) if i.__class__ is int else b.op("Squeeze", b.size(i))
        x = b.op("Gather", x, place, axis=axis)
    return b.op("Unsqueeze", x, b.const(new)) if new else x


def slice_axes(b: Builder, x: str, slices: list) -> str:
    """x[start:stop:step] along some axes. slices: (axis, (start, stop, step)) for each, with None as in Python."""
    starts, stops, steps = [], [], []
    for _, (start, stop, step) in slices:
        step = 1 if step is None else step
        starts.append((0 if step > 0 else END) if start is None else start)
        stops.append((END if step > 0 else -END) if stop is None else stop)
        steps.append(step)
    axes = [axis for axis, _ in slices]
    return b.op("Slice", x, b.size_vector(starts), b.size_vector(stops), b.const(axes), b.const(steps))


@converter("diagonal")
def _(b, node, x):
    """Gather the viewed elements from the flattened tensor."""
    offset, first, second = (node.attrs[name] for name in ("offset", "dim1", "dim2"))
    places = flat_indices(b, node).diagonal(offset, first, second)
    return gather_flat(b, x, places)


def gather_flat(b: Builder, x: str, places: HostArray) -> str:
    """The elements of flattened x at these indices."""
    return b.op("Gather", b.op("Reshape", x, b.const([-1])), b.const(places), axis=0)


def flat_indices(b: Builder, node) -> HostArray:
    """The index of each element of the view in its flattened input."""
    spec = b.static_spec(node.inputs[0])
    return namespace().arange(spec.size).reshape(spec.shape)


@converter("view_write")
def _(b, node, base, value):
    places = flat_indices(b, node)
    for op, attrs in node.attrs["path"]:
        places = launch(op, (places,), attrs)
    places = host_array(places)
    dtype, shape = node.out_specs[0].dtype, node.out_specs[0].shape
    flat, whole = b.const([-1]), b.const(shape, "int64")
    value = b.value(value, dtype)
    if node.inputs[1].__class__ in (bool, int, float) or node.inputs[1].spec.shape != places.shape:
        value = b.op("Expand", value, b.const(places.shape, "int64"))
    if places.size == math.prod(shape) and (places.reshape(-1) == namespace().arange(places.size)).all():
        return b.op("Reshape", value, whole)
    written = b.op(
        "ScatterElements",
        b.op("Reshape", base, flat),
        b.const(places.reshape(-1)),
        b.op("Reshape", value, flat),
        axis=0,
    )
    return b.op("Reshape", written, whole)


@converter("sum_to")
def _(b, node, x):
    have, want = node.inputs[0].spec.shape, node.attrs["shape"]
    lead = len(have) - len(want)
    axes = [i for i in range(len(have)) if i < lead or want[i - lead] == 1 != have[i]]
    x = b.op("ReduceSum", x, b.const(axes), keepdims=1) if axes else x
    return b.op("Squeeze", x, b.const([*range(lead)])) if lead else x


@converter("as_strided")
def _(b, node, x):
    """Gather the elements by their indices in the flattened tensor."""
    return gather_flat(b, x, launch(node.op, (flat_indices(b, node),), node.attrs))


@converter("windows")
def _(b, node, x):
    """The windows along their axis, with their elements as the last axis."""
    dim, spec = node.attrs["dim"], b.static_spec(node.inputs[0], node.attrs["dim"])
    places = launch(node.op, (namespace().arange(spec.shape[dim]),), node.attrs | {"dim": 0})
    seen = b.op("Gather", x, b.const(places), axis=dim)
    order = [axis for axis in range(spec.ndim + 1) if axis != dim + 1] + [dim + 1]
    return seen if dim == spec.ndim - 1 else b.op("Transpose", seen, perm=order)


@converter("strided_look")
def _(b, node, x):
    """A parameter over a foreign, non-contiguous array: its elements in contiguous order."""
    return b.const(launch(node.op, (node.inputs[0].node.array,), node.attrs))


# ---- joining and reordering --------------------------------------------------------------------------------------


@converter("flip")
def _(b, node, x):
    return slice_axes(b, x, [(axis, (None, None, -1)) for axis in node.attrs["axes"]]) if node.attrs["axes"] else x


@converter("roll")
def _(b, node, x):
    for shift, axis in zip(node.attrs["shifts"], node.attrs["axes"]):
        size = b.static_spec(node.inputs[0], axis).shape[axis]
        if size and shift % size:
            cut = size - shift % size
            x = b.op(
                "Concat", slice_axes(b, x, [(axis, (cut, None, 1))]), slice_axes(b, x, [(axis, (0, cut, 1))]), axis=axis
            )
    return x


@converter("tril", "triu")
def _(b, node, x):
    return b.op("Trilu", x, b.const(node.attrs["diagonal"]), upper=int(node.op.name == "triu"))
