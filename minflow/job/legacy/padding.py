"""Legacy padding functions: `flow.pad` and the 2-D paddings of images `(N, C, H, W)`. Read next: `arrays.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.base.errors import OutOfRangeError, ShapeError
from ...core.functions.arguments import integer
from ...core.functions.creation import tensor
from ...core.ops import index as i
from ...core.source_location import fail
from ...nn.functional.shape import pad as bordered
from .op_name import folded, takes_name
from .windows import FORMATS, is_last, sides as paddings, sizes, windows

if TYPE_CHECKING:
    from ...core.tensor import Tensor


@takes_name
def pad(x: Tensor, paddings: Sequence[Sequence[int]], constant_value: float = 0) -> Tensor:
    """Pad x with constant_value. paddings: a pair (before, after) for each axis, starting with the first axis."""
    if (
        not isinstance(paddings, Sequence)
        or len(paddings) != x.spec.ndim
        or any(not isinstance(p, Sequence) or len(p) != 2 for p in paddings)
    ):
        what = f"pad: paddings is {paddings!r}, and x has {x.spec.ndim} axes"
        fail(ShapeError, what, f"one pair (before, after) for each axis: {[(0, 0)] * x.spec.ndim}", x=x)
    return bordered(x, [integer(n, "paddings") for pair in reversed(paddings) for n in pair], value=constant_value)


@takes_name
def same_padding(
    x: Tensor, padding: str, data_format: str, kernel_size: Any, strides: Any, dilation_rate: Any
) -> Tensor:
    """Pad each image with zeros so that unpadded windows then have ceil(n / stride) positions along each axis.

    padding: "SAME_LOWER" or "SAME" puts the odd pixel first, "SAME_UPPER" last.  data_format: "NCHW", "NHWC", or a 1-D
    or 3-D format such as "NCW".
    """
    rank = x.spec.ndim - 2
    if (
        rank not in FORMATS
        or not isinstance(padding, str)
        or padding.upper() not in ("SAME", "SAME_LOWER", "SAME_UPPER")
    ):
        what = f"same_padding: padding is {padding!r} for a tensor of {x.spec.ndim} axes"
        fail(ShapeError, what, 'padding="SAME" and images (N, C, H, W)', x=x)
    last = is_last("same_padding", data_format, rank)
    kernel, stride, dilation = [
        sizes("same_padding", argument, value, rank)
        for argument, value in (("kernel_size", kernel_size), ("strides", strides), ("dilation_rate", dilation_rate))
    ]
    image = x.spec.shape[1:-1] if last else x.spec.shape[2:]
    positions = windows("same_padding", image, kernel, stride, dilation, paddings("same_padding", padding, last, rank))
    pairs = [(a.before, a.after) for a in positions]
    return pad(x, [(0, 0), *pairs, (0, 0)] if last else [(0, 0), (0, 0), *pairs])


def sides(name: str, x: Tensor, padding: Any) -> tuple[int, int, int, int]:
    """(left, right, top, bottom) of an int or four of them, for images."""
    if x.spec.ndim != 4:
        what = f"{name}: x has {x.spec.ndim} axes, images have four: (N, C, H, W)"
        fail(ShapeError, what, "flow.pad takes any number of axes", x=x)
    four = (padding,) * 4 if isinstance(padding, int) else tuple(padding) if isinstance(padding, Sequence) else ()
    if len(four) != 4:
        fail(ShapeError, f"{name}: padding is {padding!r}", "an int, or (left, right, top, bottom)", x=x)
    left, right, top, bottom = [integer(n, "padding") for n in four]
    return left, right, top, bottom


@takes_name
def constant_pad2d(x: Tensor, padding: Any, constant_value: float = 0) -> Tensor:
    """Pad each image with constant_value. padding: an int, or (left, right, top, bottom) in pixels."""
    return bordered(x, sides("constant_pad2d", x, padding), value=constant_value)


@takes_name
def zero_pad2d(x: Tensor, padding: Any) -> Tensor:
    """Pad each image with zeros. padding: an int, or (left, right, top, bottom) in pixels."""
    return bordered(x, sides("zero_pad2d", x, padding), value=0)


def gather_padded(name: str, x: Tensor, padding: Any, place: Any, largest: int) -> Tensor:
    """Pad x with its own pixels, which `place(position, size)` selects. largest: the border may be at most size +
    largest pixels wide.
    """
    left, right, top, bottom = sides(name, x, padding)
    for axis, before, after in ((2, top, bottom), (3, left, right)):
        n = x.spec.shape[axis]
        if min(before, after) < 0 or (max(before, after) > n + largest and largest < 0):
            what = f"{name}: a border of {before} and {after} pixels on axis {axis} of size {n}"
            fail(OutOfRangeError, what, f"from 0 to {n + largest}" if largest < 0 else "0 or more", x=x)
        if before or after:
            positions = [place(p, n) for p in range(-before, n + after)]
            x = i.take(x, tensor(positions, device=x.spec.device), axis=axis)
    return x


@folded
def replication_pad2d(x: Tensor, padding: Any) -> Tensor:
    """Pad each image by repeating its edge pixels. padding: an int, or (left, right, top, bottom) in pixels."""
    return gather_padded("replication_pad2d", x, padding, lambda p, n: min(max(p, 0), n - 1), 0)


@folded
def reflection_pad2d(x: Tensor, padding: Any) -> Tensor:
    """Pad each image by mirroring it at its edge pixels, which are not repeated. padding: as in zero_pad2d, but smaller
    than the image.
    """
    return gather_padded("reflection_pad2d", x, padding, lambda p, n: n - 1 - abs(n - 1 - abs(p)), -1)
