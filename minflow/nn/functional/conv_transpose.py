"""Transposed convolution: the map from the output gradient of a convolution to its input gradient, as a layer.

It enlarges signals, images and volumes. The op is the gradient op of conv2d. Source: Dumoulin & Visin 2016
(arXiv:1603.07285), chapter 4. Read next: `conv.py`.
"""

from __future__ import annotations

from ...core.base.errors import ShapeError
from ...core.ops.columns import col2im
from ...core.ops.conv import conv2d_input_grad as turned
from ...core.source_location import fail
from ...core.tensor import Tensor
from .arguments import check_tensor, composite, same_dtype, sizes
from .conv import Size1, Size2, Size3, Sizes, add_bias
from .conv_shapes import check_shapes
from .shape import pad


def conv_transpose_impl(
    name: str,
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    groups: int,
    dilation: Sizes,
) -> Tensor:
    """A transposed convolution over n spatial axes."""
    check_tensor(name, input)
    check_shapes(name, n, input, weight, bias, groups)
    s, d = sizes(name, "stride", stride, 1, n), sizes(name, "dilation", dilation, 1, n)
    p, more = sizes(name, "padding", padding, 0, n), sizes(name, "output_padding", output_padding, 0, n)
    if any(extra >= max(step, spread) for extra, step, spread in zip(more, s, d)):
        what = f"{name}: output_padding {more} is not below the stride {s} or the dilation {d}"
        fail(ShapeError, what, "less output_padding: it selects one of the sizes that the stride allows")
    x, w = same_dtype(name, input, weight)
    x = x.unsqueeze(0) if x.spec.ndim == n + 1 else x
    kernel = w.spec.shape[2:]
    out = tuple(
        [
            (m - 1) * step - 2 * q + spread * (k - 1) + extra + 1
            for m, step, q, spread, k, extra in zip(x.spec.shape[2:], s, p, d, kernel, more)
        ]
    )
    if min(out) < 1 or not all(kernel) or not all(x.spec.shape[2:]):
        what = f"{name}: the result would have the size {out}"
        fail(ShapeError, what, "a larger input or kernel, or less padding", input=input, weight=weight)
    if any(extra >= step for extra, step in zip(more, s)):  # whole strides of output_padding: append zeros to the input
        x = pad(x, [width for extra, step in zip(more[::-1], s[::-1]) for width in (0, extra // step)])
    if n == 3:
        y = conv_transpose_volumes(x, w, out, s, p, d, groups)
    else:
        ones, zeros = (1,) * (2 - n), (0,) * (2 - n)
        x, w = (x, w) if n == 2 else (x.unsqueeze(2), w.unsqueeze(2))
        y = turned(
            x,
            w,
            shape=(x.spec.shape[0], w.spec.shape[1] * groups, *ones, *out),
            stride=(*ones, *s),
            padding=(*zeros, *p),
            dilation=(*ones, *d),
            groups=groups,
        )
    return add_bias(y, bias, input, 2 if n == 1 else None)


def conv_transpose_volumes(x: Tensor, w: Tensor, out: tuple, s: tuple, p: tuple, d: tuple, groups: int) -> Tensor:
    """Apply each depth slice of the filter to each depth slice of the input; col2im sums the images over the depth."""
    (n, c, depth, h, width), (_, per_group, kd, kh, kw) = x.spec.shape, w.spec.shape
    filters = per_group * groups
    images = turned(
        x.transpose(1, 2).reshape(n * depth, c, h, width),
        w.reshape(c, per_group * kd, kh, kw),
        shape=(n * depth, filters * kd, *out[1:]),
        stride=s[1:],
        padding=p[1:],
        dilation=d[1:],
        groups=groups,
    )
    pixels = out[1] * out[2]
    columns = images.reshape(n, depth, filters * kd, pixels).transpose(1, 2).reshape(n, filters * kd, depth * pixels)
    y = col2im(
        columns,
        shape=(n, filters, out[0], pixels),
        kernel_size=(kd, 1),
        stride=(s[0], 1),
        padding=(p[0], 0),
        dilation=(d[0], 1),
    )
    return y.reshape(n, filters, *out)


@composite("conv_transpose1d")
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size1 = 1,
    padding: Size1 = 0,
    output_padding: Size1 = 0,
    groups: int = 1,
    dilation: Size1 = 1,
) -> Tensor:
    """out[n,f,i*s+u*d-p] += input[n,c,i] * weight[c,f,u] for all c, i, u; plus bias[f].

    input: float (N, C, L) or (C, L). weight: (C, F / groups, K). bias: (F,) or None.
    Returns (N, F, (L-1)*s - 2p + d*(K-1) + output_padding + 1). Raises ShapeError if C differs or the output would be
    empty.
    """
    return conv_transpose_impl(
        "conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@composite("conv_transpose2d")
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size2 = 1,
    padding: Size2 = 0,
    output_padding: Size2 = 0,
    groups: int = 1,
    dilation: Size2 = 1,
) -> Tensor:
    """out[n,f,i*s+u*d-p,j*s+v*d-p] += input[n,c,i,j] * weight[c,f,u,v] for all c, i, j, u, v; plus bias[f].

    input: float (N, C, H, W) or (C, H, W). weight: (C, F / groups, KH, KW). bias: (F,) or None.
    Returns (N, F, (H-1)*s - 2p + d*(KH-1) + output_padding + 1, likewise for W); output_padding must be below stride or
    dilation. Raises ShapeError if C differs or the output would be empty.
    """
    return conv_transpose_impl(
        "conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@composite("conv_transpose3d")
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size3 = 1,
    padding: Size3 = 0,
    output_padding: Size3 = 0,
    groups: int = 1,
    dilation: Size3 = 1,
) -> Tensor:
    """Transposed convolution of volumes: as conv_transpose2d, with one more spatial axis.

    input: float (N, C, D, H, W) or (C, D, H, W). weight: (C, F / groups, KD, KH, KW). bias: (F,) or None.
    """
    return conv_transpose_impl(
        "conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation
    )
