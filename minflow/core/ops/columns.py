"""im2col and col2im: the pixels under a filter at each position as a column, and columns added back to an image.

Both are linear, and each is the gradient of the other. Read next: `conv.py`, which stores no columns.
"""

from __future__ import annotations

from itertools import product

from ..base.errors import ShapeError
from ..kernels import kernel
from ..op import define
from ..spec import Spec
from .conv import check_border, need_window, pixels_under, positions, zero_padded
from .examples import case, floats
from .rules import need_floating, via_float32

Pair = tuple[int, int]


def window_positions(op: str, size: Pair, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair) -> int:
    """The number of positions of the window along height and width of an image of this size."""
    need_window(op, kernel_size, stride, padding, dilation)
    rows, columns = positions(size, kernel_size, stride, padding, dilation)
    if min(rows, columns) < 1:
        raise ShapeError(
            f"{op}: a window of {kernel_size[0]}x{kernel_size[1]} with dilation {dilation} does not fit "
            f"into {size[0]}x{size[1]} pixels with padding {padding}",
            hint="a smaller window, or more padding",
        )
    check_border(op, (1, 1, *size), (rows, columns), padding, 8)
    return rows * columns


def columns_spec(x: Spec, kernel_size, stride, padding, dilation) -> Spec:
    need_floating("im2col", x)
    if x.ndim != 4:
        raise ShapeError("im2col: {x} must have four axes, (N, C, H, W)", hint="x.unsqueeze(0) for one image")
    count = window_positions("im2col", x.shape[2:], kernel_size, stride, padding, dilation)
    return x.replace(shape=(x.shape[0], x.shape[1] * kernel_size[0] * kernel_size[1], count))


def image_spec(columns: Spec, shape, kernel_size, stride, padding, dilation) -> Spec:
    need_floating("col2im", columns, "columns")
    if len(shape) != 4 or columns.ndim != 3:
        raise ShapeError(f"col2im: {{columns}} is {columns}, of images {shape}", hint="(N, C, H, W)")
    count = window_positions("col2im", shape[2:], kernel_size, stride, padding, dilation)
    want = (shape[0], shape[1] * kernel_size[0] * kernel_size[1], count)
    if columns.shape != want:
        raise ShapeError(
            f"col2im: {{columns}} must have shape {want} for images {shape}, got {columns.shape}",
            hint="columns from im2col with the same options",
        )
    return columns.replace(shape=tuple(shape))


IMAGE_LABELS = "n", "c", None, None  # a split of whole channels splits the axis of their columns likewise
WINDOW_ATTRS = dict(stride=(1, 1), padding=(0, 0), dilation=(1, 1))
CASES = [
    ((2, 3, 4, 5), dict(kernel_size=(2, 3))),
    ((1, 2, 5, 5), dict(kernel_size=(3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2))),
    ((0, 2, 4, 4), dict(kernel_size=(2, 2))),
]


def columns_of(shape, options) -> tuple[int, int, int]:
    k, o = options["kernel_size"], WINDOW_ATTRS | options
    rows, columns = positions(shape[2:], k, o["stride"], o["padding"], o["dilation"])
    return shape[0], shape[1] * k[0] * k[1], rows * columns


im2col = define(
    "im2col(x; kernel_size, stride, padding, dilation)",
    columns_spec,
    lambda g, x_spec, kernel_size, stride, padding, dilation: col2im(
        g, shape=x_spec.shape, kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation
    ),
    flops=0,
    sharding=lambda *_, **__: [IMAGE_LABELS, IMAGE_LABELS[:3]],
    linear=("x",),
    examples=[case(floats(*shape), **(WINDOW_ATTRS | o)) for shape, o in CASES],
    doc="(N, C, H, W) as (N, C * KH * KW, positions): column p holds the pixels under the window at position p.",
)

col2im = define(
    "col2im(columns; shape, kernel_size, stride, padding, dilation)",
    image_spec,
    lambda g, kernel_size, stride, padding, dilation: im2col(
        g, kernel_size=kernel_size, stride=stride, padding=padding, dilation=dilation
    ),
    sharding=lambda *_, **__: [IMAGE_LABELS[:3], IMAGE_LABELS],
    linear=("columns",),
    local_attrs="shape",
    examples=[case(floats(*columns_of(shape, o)), shape=shape, **(WINDOW_ATTRS | o)) for shape, o in CASES],
    doc="The adjoint of im2col: columns added back to their pixels; overlapping windows are summed.",
)


@kernel(im2col)
def _(xp, x, kernel_size, stride, padding, dilation):
    size = positions(x.shape[2:], kernel_size, stride, padding, dilation)
    if not x.size:
        return xp.zeros((len(x), x.shape[1] * kernel_size[0] * kernel_size[1], size[0] * size[1]), x.dtype)
    x = zero_padded(xp, x, padding) if any(padding) else x
    seen = [pixels_under(x, u, v, size, stride, dilation) for u, v in product(*map(range, kernel_size))]
    return xp.stack(seen, 2).reshape(len(x), x.shape[1] * len(seen), size[0] * size[1])


@kernel(col2im)
@via_float32
def _(xp, columns, shape, kernel_size, stride, padding, dilation):
    (n, c, h, w), (ph, pw) = shape, padding
    size = positions((h, w), kernel_size, stride, padding, dilation)
    if not columns.size:
        return xp.zeros(shape, columns.dtype)
    out = xp.zeros((n, c, h + 2 * ph, w + 2 * pw), columns.dtype)
    for k, (u, v) in enumerate(product(*map(range, kernel_size))):
        place = pixels_under(out, u, v, size, stride, dilation)
        place += columns.reshape(n, c, kernel_size[0] * kernel_size[1], *size)[:, :, k]
    return out[:, :, ph : ph + h, pw : pw + w]
