"""Legacy convolution and pooling in one to three dimensions, with data formats and paddings such as "SAME".

"SAME" gives ceil(n / stride) positions. The odd pixel of such a padding comes first with "SAME" and "SAME_LOWER", last
with "SAME_UPPER". The ops support only symmetric padding, which covers most cases; others cost a copy of the image. All
functions accept eager tensors as well. Read next: `../core/ops/conv.py`, `../core/ops/pool.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

from ...core.backend import namespace
from ...core.base.errors import ShapeError
from ...core.functions import cat, permute, reshape, squeeze, unsqueeze
from ...core.functions.creation import from_numpy, full
from ...core.ops.conv import conv2d as convolve, conv2d_input_grad
from ...core.ops.conv_composites import conv1d as convolve_signals, conv3d as convolve_volumes
from ...core.ops.pool import avg_pool2d as pool_mean, max_pool2d as pool_max
from ...core.source_location import fail
from ...core.tensor import Tensor
from ...nn.functional.arguments import check_tensor, same_dtype
from ...nn.functional.pooling_1d_3d import avg_pool3d as pool_mean_of_volumes, max_pool3d as pool_max_of_volumes
from .op_name import described, takes_name

CONVOLUTIONS = {1: convolve_signals, 2: convolve, 3: convolve_volumes}
FORMATS = {2: ("NCHW", "NHWC"), 1: ("NCW", "NWC"), 3: ("NCDHW", "NDHWC")}
PADDINGS = ("VALID", "SAME", "SAME_LOWER", "SAME_UPPER")
Sizes = int | Sequence[int]


class Axis(NamedTuple):
    """Windows along one axis: their number, and the padding before and after the image in pixels."""

    count: int  # type: ignore[assignment]  # the method of tuples is not used
    before: int
    after: int


# ---- arguments ---------------------------------------------------------------------------------------------------


def is_last(what: str, data_format: Any, rank: int = 2) -> bool:
    """True if the channels are the last axis. Raises ShapeError for an unknown format."""
    layout = data_format.upper() if isinstance(data_format, str) else data_format
    if layout not in FORMATS[rank]:
        first, last = FORMATS[rank]
        fail(ShapeError, f"{what}: data_format is {data_format!r}", f'data_format="{first}" or data_format="{last}"')
    return layout == FORMATS[rank][1]


def sizes(what: str, argument: str, value: Any, rank: int = 2) -> tuple[int, ...]:
    """One integer of at least 1 for each axis of the image, given as one for all axes or as a list."""
    values = list(value) if isinstance(value, list | tuple) else [1 if value is None else value]
    values = values * rank if len(values) == 1 else values
    if len(values) != rank or not all(
        hasattr(n, "__index__") and not isinstance(n, bool) and n.__index__() >= 1 for n in values
    ):
        expected = "an integer of at least 1" + (f", or {rank} of them" if rank > 1 else "")
        fail(ShapeError, f"{what}: {argument} must be {expected}, got {value!r}", f"{argument}=3")
    return tuple([n.__index__() for n in values])


def sides(what: str, padding: Any, last: bool, rank: int = 2) -> list[tuple[int, int]] | str:
    """Convert a padding to "VALID", "SAME_LOWER" or "SAME_UPPER", or to (before, after) in pixels for each axis of the
    image.
    """
    if isinstance(padding, str):
        name = padding.upper()
        if name not in PADDINGS:
            fail(ShapeError, f"{what}: padding is {padding!r}", " or ".join(f'padding="{p}"' for p in PADDINGS))
        return "SAME_LOWER" if name == "SAME" else name
    axes = FORMATS[rank][last]
    pairs = (
        [(n, n) if hasattr(n, "__index__") else tuple(n) for n in padding] if isinstance(padding, list | tuple) else []
    )
    image = slice(1, 1 + rank) if last else slice(2, None)
    around = pairs[:1] + pairs[-1:] if last else pairs[:2]
    if len(pairs) != len(axes) or any(len(p) != 2 or min(p) < 0 for p in pairs) or any(p != (0, 0) for p in around):
        shown = dict.fromkeys(axes, (0, 0)) | dict.fromkeys(axes.replace("N", "").replace("C", ""), (1, 1))
        example = "[" + ", ".join(map(str, shown.values())) + "]"
        what = f"{what}: padding must be one pair for each axis of {axes}, with 0 for N and C, got {padding!r}"
        fail(ShapeError, what, f'padding={example}, or padding="SAME"')
    return pairs[image]


def windows(
    what: str, shape: Sequence[int], kernel: Any, stride: Any, dilation: Any, padding: Any, ceil_mode: bool = False
) -> list[Axis]:
    """The windows along each axis of an image of this shape. Raises ShapeError if none fits."""
    axes = []
    for i, (n, k, s, d) in enumerate(zip(shape, kernel, stride, dilation)):
        reach = d * (k - 1) + 1
        if padding in ("SAME_LOWER", "SAME_UPPER"):
            count = -(-n // s)
            total = max((count - 1) * s + reach - n, 0)
            less, more = total // 2, total - total // 2
            axes.append(Axis(count, more, less) if padding == "SAME_LOWER" else Axis(count, less, more))
            continue
        before, after = (0, 0) if padding == "VALID" else padding[i]
        free = n + before + after - reach
        count = (-(-free // s) if ceil_mode else free // s) + 1
        if ceil_mode and (count - 1) * s >= n + before:  # the last window must begin inside
            count -= 1
        if free < 0 or count < 1:
            what = (
                f"{what}: a window that reaches over {reach} pixels does not fit in {n + before + after}, its padding "
                "included"
            )
            hint = 'padding="SAME", larger images, or fewer poolings before'
            fail(ShapeError, what, hint, image=tuple(shape), kernel=tuple(kernel))
        axes.append(Axis(count, before, max((count - 1) * s + reach - n - before, 0)))
    return axes


def extended(x: Tensor, pads: Sequence[tuple[int, int]], value: float = 0.0) -> Tensor:
    """Pad the last axes of an image with `value`."""
    first = x.spec.ndim - len(pads)
    for axis, pad in enumerate(pads, first):
        if any(pad):
            shape = x.spec.shape
            parts = [
                full((*shape[:axis], n, *shape[axis + 1 :]), value, dtype=x.spec.dtype) if n else None for n in pad
            ]
            x = cat([part for part in (parts[0], x, parts[1]) if part is not None], axis)
    return x


def fitted(
    x: Tensor, axes: list[Axis], kernel: Any, stride: Any, dilation: Any, most: Any, value: float = 0.0
) -> tuple[Tensor, tuple[int, ...]]:
    """(x, padding): an image and a symmetric padding that give exactly these windows. most: the largest padding of the
    op.
    """
    pads, rest = [], []
    for n, a, k, s, d, limit in zip(x.spec.shape[2:], axes, kernel, stride, dilation, most):
        side = a.before if a.before <= limit else 0
        front = a.before - side
        lack = (a.count - 1) * s + d * (k - 1) + 1 - (n + front + 2 * side)
        pads.append((front, max(lack, 0)))
        rest.append(side)
        extra = (n + front + max(lack, 0) + 2 * side - d * (k - 1) - 1) // s + 1 - a.count
        if extra:  # symmetric padding would give too many windows, so copy the first side as well
            pads[-1], rest[-1] = (a.before, a.after), 0
    return extended(x, pads, value), tuple(rest)


def channels_first(x: Tensor, last: bool) -> Tensor:
    return permute(x, (0, x.spec.ndim - 1, *range(1, x.spec.ndim - 1))) if last else x


def channels_back(x: Tensor, last: bool) -> Tensor:
    return permute(x, (0, *range(2, x.spec.ndim), 1)) if last else x


def check_rank(what: str, x: Tensor, rank: int, data_format: str) -> None:
    check_tensor(what, x)
    if x.spec.ndim != rank + 2:
        axes = data_format.upper()
        hint = f"flow.reshape(x, ...) to ({', '.join(axes)})"
        fail(ShapeError, f"{what}: the input must have {rank + 2} axes, {axes}, got {x.spec.ndim}", hint, input=x)


# ---- convolution -------------------------------------------------------------------------------------------------


def conv(
    what: str,
    x: Tensor,
    filters: Tensor,
    strides: Any,
    padding: Any,
    data_format: str,
    dilations: Any,
    groups: int,
    rank: int,
) -> Tensor:
    last = is_last(what, data_format, rank)
    check_rank(what, x, rank, data_format)
    check_rank(what, filters, rank, data_format)
    stride, dilation = sizes(what, "strides", strides, rank), sizes(what, "dilations", dilations, rank)
    channels = x.spec.shape[-1 if last else 1]
    inside = filters.spec.shape[-1 if last else 1]
    if groups != 1 and last:
        what = f"{what}: groups={groups} with data_format {data_format}"
        fail(ShapeError, what, f'data_format="{FORMATS[rank][0]}" for groups')
    if not hasattr(groups, "__index__") or groups < 1 or inside * groups != channels or filters.spec.shape[0] % groups:
        shown = f"{channels} channels (axis {x.spec.ndim - 1 if last else 1})"
        fits = channels // groups if hasattr(groups, "__index__") and groups > 0 else channels
        hint = f"filters of shape (F, {fits}, ...)"
        what = f"{what}: the input has {shown}, the filters take {inside} in groups={groups}"
        fail(ShapeError, what, hint, input=x, filters=filters)
    x, filters = same_dtype(what, channels_first(x, last), channels_first(filters, last))
    pads = sides(what, padding, last, rank)
    kernel = filters.spec.shape[2:]
    axes = windows(what, x.spec.shape[2:], kernel, stride, dilation, pads)
    x, sym = fitted(x, axes, kernel, stride, dilation, (math.inf,) * len(kernel))
    inputs = (x, filters) if rank == 2 else (x, filters, 0)  # 0 is the bias
    out = CONVOLUTIONS[rank](*inputs, stride=stride, padding=sym, dilation=dilation, groups=groups.__index__())
    return channels_back(out, last)


def convolution(name: str, rank: int, doc: str = "", same: str = "SAME") -> Callable:
    """The function `nn.<name>` of images with `rank` axes. doc: conv2d's by default.  same: the meaning of "SAME"."""

    def function(
        input: Tensor,
        filters: Tensor,
        strides: Sizes,
        padding: Any,
        data_format: str = FORMATS[rank][0],
        dilations: Sizes | None = None,
        groups: int = 1,
    ) -> Tensor:
        """out[n,f,i,j] = sum over c,u,v of input[n,c,i*s+u*d-p,j*s+v*d-p] * filters[f,c,u,v].

        input: float (N, C, H, W), filters: (F, C / groups, KH, KW); with "NHWC" (N, H, W, C) and (F, KH, KW, C), groups
        1. padding: "VALID", "SAME" (ceil(n / stride) positions; the odd pixel first), "SAME_LOWER" (the same),
        "SAME_UPPER" (the odd pixel last), or a pair of pixels for each of the four axes. Raises ShapeError if these do
        not fit.
        """
        padding = same if isinstance(padding, str) and padding.upper() == "SAME" else padding
        return conv(f"nn.{name}", input, filters, strides, padding, data_format, dilations, groups, rank)

    return takes_name(described(function, name, doc))


conv2d = convolution("conv2d", 2)
conv1d = convolution(
    "conv1d",
    1,
    'conv2d along one axis. input: float (N, C, W), filters: (F, C / groups, KW); "NWC": (N, W, C) and (F, KW, C).',
)
conv3d = convolution(
    "conv3d",
    3,
    "conv2d of volumes. input: float (N, C, D, H, W), filters: (F, C / groups, KD, KH, KW); "
    '"NDHWC": (N, D, H, W, C) and (F, KD, KH, KW, C).',
)
compat_conv2d = convolution(
    "compat_conv2d", 2, """conv2d with TensorFlow's "SAME", which is "SAME_UPPER": the odd pixel last.""", "SAME_UPPER"
)
tf_conv2d = compat_conv2d


@partial(takes_name, place=6)
def conv2d_transpose(
    value: Tensor | None = None,
    filter: Tensor | None = None,
    output_shape: Sequence[int] | None = None,
    strides: Sizes | None = None,
    padding: Any = "VALID",
    data_format: str = "NCHW",
    input: Tensor | None = None,
    filters: Tensor | None = None,
    dilations: Sizes | None = None,
) -> Tensor:
    """Transposed convolution: the gradient of conv2d with respect to its input. Returns an image of output_shape.

    value (or input): (N, C, h, w).  filter (or filters): (C, F, KH, KW).  output_shape: (N, F, H, W), of which
    only H and W count.  With "NHWC" the channels are last in all three. padding: as in conv2d, for the image of
    output_shape.
    """
    what = "nn.conv2d_transpose"
    x: Any = input if value is None else value
    w: Any = filters if filter is None else filter
    last = is_last(what, data_format)
    check_rank(what, x, 2, data_format)
    check_rank(what, w, 2, data_format)
    if output_shape is None or len(output_shape) != 4:
        what = f"{what}: output_shape is {output_shape!r}"
        fail(ShapeError, what, f"output_shape=({', '.join(data_format.upper())})", value=x)
    stride, dilation = sizes(what, "strides", strides), sizes(what, "dilations", dilations)
    shape = tuple(map(int, output_shape))
    pixels = shape[1:3] if last else shape[2:]
    x, w = same_dtype(what, channels_first(x, last), channels_first(w, last))
    (count, *_), (_, channels, *kernel) = x.spec.shape, w.spec.shape
    axes = windows(what, pixels, kernel, stride, dilation, sides(what, padding, last))
    wanted = (count, w.spec.shape[0], *[a.count for a in axes])
    if x.spec.shape != wanted:
        which = (
            f"value has shape {list(x.spec.shape)}, output_shape {list(shape)} asks for {list(wanted)} (channels first)"
        )
        fail(ShapeError, f"{what}: {which}", "the output_shape whose conv2d has the shape of value", value=x, filter=w)
    padded = [n + a.before + a.after for n, a in zip(pixels, axes)]
    out = conv2d_input_grad(
        x, w, shape=(count, channels, *padded), stride=stride, padding=(0, 0), dilation=dilation, groups=1
    )
    (top, left), (h, w_) = [a.before for a in axes], pixels
    return channels_back(out[:, :, top : top + h, left : left + w_], last)


# ---- pooling -----------------------------------------------------------------------------------------------------


def pooling(kind: str, rank: int, doc: str = "") -> Callable:
    """The function `nn.<kind>_pool<rank>d`, kind "max" or "avg". doc: max_pool2d's by default."""
    name = f"{kind}_pool{rank}d"

    def function(
        input: Tensor,
        ksize: Sizes,
        strides: Sizes,
        padding: Any,
        data_format: str = FORMATS[rank][0],
        ceil_mode: bool = False,
    ) -> Tensor:
        """The maximum of each window; padding is never the maximum.

        input: float (N, C, H, W), or (N, H, W, C) with "NHWC". ksize, strides: int or pair, in pixels. padding: as
        conv2d's.
        ceil_mode: with "VALID" or pixels, include a last window that extends over the edge.
        """
        what = f"nn.{name}"
        last = is_last(what, data_format, rank)
        check_rank(what, input, rank, data_format)
        kernel, stride = sizes(what, "ksize", ksize, rank), sizes(what, "strides", strides, rank)
        pads = sides(what, padding, last, rank)
        if not isinstance(pads, str) and any(max(p) >= k for p, k in zip(pads, kernel)):
            what = f"{what}: padding {pads} for windows of {list(kernel)}"
            fail(ShapeError, what, "less padding: a window must see the image", input=input)
        x = channels_first(input, last)
        if rank == 1:
            x, kernel, stride = unsqueeze(x, 2), (1, *kernel), (1, *stride)
            pads = pads if isinstance(pads, str) else [(0, 0), *pads]
        ones = (1,) * len(kernel)
        pixels = x.spec.shape[2:]
        axes = windows(what, pixels, kernel, stride, ones, pads, bool(ceil_mode))
        most = [k // 2 for k in kernel]
        filled, sym = fitted(x, axes, kernel, stride, ones, most, -math.inf if kind == "max" else 0.0)
        options: dict[str, Any] = dict(kernel_size=kernel, stride=stride, padding=sym, ceil_mode=False)
        if kind == "max":
            options["dilation"] = ones
            out: Any = pool_max_of_volumes(filled, **options) if rank == 3 else pool_max(filled, **options)[0]
        else:
            pool = pool_mean_of_volumes if rank == 3 else pool_mean
            divisor = None if filled is x else 1
            out = pool(filled, count_include_pad=False, divisor_override=divisor, **options)
            if filled is not x:  # padding does not count in a mean
                out = out * shares(pixels, axes, kernel, stride, x.spec.dtype).to(out.spec.device)
        return channels_back(squeeze(out, 2) if rank == 1 else out, last)

    return takes_name(described(function, name, doc))


def shares(pixels: Any, axes: list[Axis], kernel: Any, stride: Any, dtype: Any) -> Tensor:
    """1 / (number of image pixels in each window): (OH, OW), or (OD, OH, OW) for a volume."""
    xp, counts = namespace(), []
    for n, a, k, s in zip(pixels, axes, kernel, stride):
        start = xp.arange(a.count) * s - a.before
        counts.append(xp.minimum(start + k, n) - xp.maximum(start, 0))
    return from_numpy((1 / reduce(xp.multiply.outer, counts)).astype(dtype.np))


max_pool2d = pooling("max", 2)
avg_pool2d = pooling("avg", 2, "The mean of the image pixels in each window; arguments as in max_pool2d.")
max_pool1d = pooling("max", 1, 'max_pool2d along one axis. input: float (N, C, W), or (N, W, C) with "NWC".')
avg_pool1d = pooling("avg", 1, 'avg_pool2d along one axis. input: float (N, C, W), or (N, W, C) with "NWC".')
max_pool3d = pooling(
    "max",
    3,
    "The maximum of each window of a volume. input: float (N, C, D, H, W), or (N, D, H, W, C) with "
    '"NDHWC"; the other arguments are max_pool2d\'s.',
)
avg_pool3d = pooling("avg", 3, "The mean of the voxels in each window of a volume; arguments as in max_pool3d.")


def pixel_shuffle(input: Tensor, height: int, width: int) -> Tensor:
    """(N, C * height * width, H, W) to (N, C, H * height, W * width): channels become pixels."""
    check_rank("nn.PixelShuffle", input, 2, "NCHW")
    n, c, h, w = input.spec.shape
    if height < 1 or width < 1 or c % (height * width):
        hint = f"a multiple of {height * width} channels"
        what = f"nn.PixelShuffle: {c} channels cannot become {height} x {width} pixels each"
        fail(ShapeError, what, hint, input=input)
    apart = reshape(input, (n, c // (height * width), height, width, h, w))
    return reshape(permute(apart, (0, 1, 4, 2, 5, 3)), (n, c // (height * width), h * height, w * width))
