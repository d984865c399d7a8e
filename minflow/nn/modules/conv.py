"""Layers: Conv2d.

Read next: `../functional/conv.py`, and `../core/ops/conv.py` for the kernels.
"""

from __future__ import annotations

import math

from ...core.base.errors import ShapeError
from ...core.spec import Device, DType
from ...core.functions.creation import empty
from ...core.tensor import Tensor
from ...core.where import fail
from .. import functional as F
from .. import init
from ..functional.arguments import pair
from .linear import check_size
from ..module import Module
from ..parameter import Parameter


class Conv2d(Module):
    """Cross-correlation of images with filters, plus a bias per filter; see functional.conv2d.

    x: float (N, in_channels, H, W) or (in_channels, H, W).  weight: (out_channels, in_channels / groups, KH, KW).
    kernel_size, stride, padding, dilation: int or pair, in pixels; padding also "same" (stride 1) or "valid".
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, int],
        stride: int | tuple[int, int] = 1,
        padding: int | tuple[int, int] | str = 0,
        dilation: int | tuple[int, int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device | str | None = None,
        dtype: DType | None = None,
    ):
        super().__init__()
        for name, value in (("in_channels", in_channels), ("out_channels", out_channels), ("groups", groups)):
            check_size("Conv2d", name, value, 1)
        for name, value in (("in_channels", in_channels), ("out_channels", out_channels)):
            if value % groups:
                fail(
                    ShapeError,
                    f"Conv2d: {name} is {value}, which groups={groups} does not divide",
                    f"a multiple of {groups} for {name}, or another groups",
                )
        if padding_mode != "zeros":
            fail(
                ShapeError,
                f"Conv2d: padding_mode is {padding_mode!r}, and only 'zeros' is there",
                "F.pad before the convolution",
            )
        if isinstance(padding, str) and padding not in ("same", "valid"):
            fail(ShapeError, f"Conv2d: padding is {padding!r}", 'a number of pixels, a pair, "same" or "valid"')
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = pair("Conv2d", "kernel_size", kernel_size, 1)
        self.stride = pair("Conv2d", "stride", stride, 1)
        self.dilation = pair("Conv2d", "dilation", dilation, 1)
        self.padding = padding if isinstance(padding, str) else pair("Conv2d", "padding", padding, 0)
        self.padding_mode = padding_mode
        self.weight = Parameter(
            empty(out_channels, in_channels // groups, *self.kernel_size, dtype=dtype, device=device)
        )
        self.bias: Parameter | None
        self.register_parameter("bias", Parameter(empty(out_channels, dtype=dtype, device=device)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias anew: uniform in +-1/sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(init.fans(self.weight)[0])
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding not in ((0, 0), "valid") or self.padding == "valid":
            text += f", padding={self.padding}"
        if self.dilation != (1, 1):
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text if self.bias is not None else text + ", bias=False"
