"""Transposed convolution: the map from the output gradient of a convolution to its input gradient, as a layer.

It enlarges signals, images and volumes. Read next: `../../core/ops/conv_composites.py`.
"""

from __future__ import annotations

from typing import Any

from ...core.functions.linear_algebra import match_product
from ...core.op import Op
from ...core.ops import conv_composites
from ...core.tensor import Tensor
from .arguments import check_tensor, same_dtype, sizes
from .conv import Size1, Size2, Size3, Sizes, by_real_parts


def conv_transpose_nd(
    op: Op,
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
    """A transposed convolution over n axes."""
    name = op.name
    check_tensor(name, input)
    attrs: Any = dict(
        stride=sizes(name, "stride", stride, 1, n),
        padding=sizes(name, "padding", padding, 0, n),
        output_padding=sizes(name, "output_padding", output_padding, 0, n),
        dilation=sizes(name, "dilation", dilation, 1, n),
        groups=groups,
    )
    input, weight = same_dtype(name, input, weight)
    if input.spec.dtype.is_complex:
        real = lambda *parts: conv_transpose_nd(op, n, *parts, **attrs)
        return by_real_parts(real, input, weight, bias)
    return op(input, weight, 0 if bias is None else match_product(bias, input), **attrs)


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

    input: float or complex (N, C, L) or (C, L). weight: (C, F / groups, K). bias: (F,) or None.
    Returns (N, F, (L-1)*s - 2p + d*(K-1) + output_padding + 1). Raises ShapeError if C differs or the output would be
    empty.
    """
    return conv_transpose_nd(
        conv_composites.conv_transpose1d, 1, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


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

    input: float or complex (N, C, H, W) or (C, H, W). weight: (C, F / groups, KH, KW). bias: (F,) or None.
    Returns (N, F, (H-1)*s - 2p + d*(KH-1) + output_padding + 1, likewise for W); output_padding must be below stride or
    dilation. Raises ShapeError if C differs or the output would be empty.
    """
    return conv_transpose_nd(
        conv_composites.conv_transpose2d, 2, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


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

    input: float or complex (N, C, D, H, W) or (C, D, H, W). weight: (C, F / groups, KD, KH, KW). bias: (F,) or None.
    """
    return conv_transpose_nd(
        conv_composites.conv_transpose3d, 3, input, weight, bias, stride, padding, output_padding, groups, dilation
    )
