"""Layers that enlarge signals, images and volumes: ConvTranspose1d, ConvTranspose2d, ConvTranspose3d.

Read next: `../functional/conv_transpose.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.base.errors import ShapeError
from ...core.source_location import fail
from ...core.spec import Device, DType
from ...core.tensor import Tensor
from .. import functional as F
from ..functional.arguments import check_tensor, sizes
from ..module import Module
from .conv import Convolution


class ConvTranspose(Convolution):
    """A transposed convolution. Its weight is (in_channels, out_channels / groups, ...).

    output_padding: size added at the end of the output, to select one of the sizes that the stride allows.
    Alternatively, the call takes output_size, the size of the output, with or without (N, C) before it.
    """

    transposed, _kind = True, "conv_transpose"

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int, ...] = 1,
        padding_mode: str = "zeros",
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        Module.__init__(self)
        name = type(self).__name__
        padding = sizes(name, "padding", padding, 0, self._axes)
        self._initialize(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype
        )
        self.output_padding = sizes(name, "output_padding", output_padding, 0, self._axes)

    padding: tuple[int, ...]  # never a string

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        more = self.output_padding if output_size is None else self._output_padding_for(input, output_size)
        return getattr(F, type(self)._function)(
            input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation
        )

    def _output_padding_for(self, input: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """Return the output_padding that leads to output_size."""
        name, n = type(self).__name__, self._axes
        check_tensor(name, input)
        size = tuple(output_size)
        size = size[-n:] if len(size) == input.spec.ndim else size
        if len(size) != n or input.spec.ndim not in (n + 1, n + 2):
            what = f"{name}: output_size is {tuple(output_size)} for an input of {input.spec.ndim} axes"
            fail(ShapeError, what, f"{n} sizes, or the whole shape of the output", input=input)
        least = [
            (m - 1) * s - 2 * p + d * (k - 1) + 1
            for m, s, p, d, k in zip(input.spec.shape[-n:], self.stride, self.padding, self.dilation, self.kernel_size)
        ]
        if any(not a <= w < a + s for a, w, s in zip(least, size, self.stride)):
            most = tuple([a + s - 1 for a, s in zip(least, self.stride)])
            what = f"{name}: output_size must be from {tuple(least)} to {most}, got {size}"
            fail(ShapeError, what, "one of these sizes", input=input)
        return tuple([w - a for a, w in zip(least, size)])

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None, *options: Any) -> tuple[int, ...]:
        """PyTorch's name of `output_padding_for`. options: stride, padding, ..., which are those of the layer."""
        return self.output_padding if output_size is None else self._output_padding_for(input, output_size)


class ConvTranspose1d(ConvTranspose, axes=1):
    """x: float (N, in_channels, L) or (in_channels, L)."""


class ConvTranspose2d(ConvTranspose, axes=2):
    """x: float (N, in_channels, H, W) or (in_channels, H, W)."""


class ConvTranspose3d(ConvTranspose, axes=3):
    """x: float (N, in_channels, D, H, W) or (in_channels, D, H, W)."""
