"""Layers that change the spatial size: Upsample, PixelShuffle, Fold, Unfold and similar. They have no parameters.

Read next: `../functional/interpolation.py`, `../functional/unfold_fold.py`.
"""

from __future__ import annotations

from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from .legacy_overload import LegacyOverload
from .pooling import Sizes


class Upsample(Module):
    """Resize the input to a size or by a factor; see functional.interpolate for the modes.

    x: float (N, C, L), (N, C, H, W) or (N, C, D, H, W).
    """

    def __init__(
        self,
        size: int | tuple[int, ...] | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ):
        super().__init__()
        self.size, self.mode, self.align_corners = size, mode, align_corners
        self.scale_factor = (
            tuple(map(float, scale_factor))
            if isinstance(scale_factor, tuple | list)
            else scale_factor and float(scale_factor)
        )
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        how = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{how}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsample with mode "nearest", for images (N, C, H, W)."""

    def __init__(self, size: Sizes | None = None, scale_factor: float | tuple[float, float] | None = None):
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsample with mode "bilinear" and align_corners=True, for images (N, C, H, W)."""

    def __init__(self, size: Sizes | None = None, scale_factor: float | tuple[float, float] | None = None):
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(LegacyOverload, Module):
    """Rearrange channels into pixels: (..., C * r * r, H, W) to (..., C, H * r, W * r). Shi et al. 2016, eq. 4."""

    _repr_attributes = ("upscale_factor",)

    def __init__(self, upscale_factor: int):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Module):
    """Rearrange pixels into channels: (..., C, H * r, W * r) to (..., C * r * r, H, W)."""

    _repr_attributes = ("downscale_factor",)

    def __init__(self, downscale_factor: int):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)


class ChannelShuffle(Module):
    """Interleave groups of channels: the first channel of each group, then the second of each. x: (N, C, ...)."""

    _repr_attributes = ("groups",)

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)


class Unfold(Module):
    """The windows of images as columns: float (N, C, H, W) to (N, C * KH * KW, L); see functional.unfold."""

    _repr_attributes: tuple[str, ...] = ("kernel_size", "dilation", "padding", "stride")

    def __init__(self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1):
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(Module):
    """Sum columns into images of output_size: float (N, C * KH * KW, L) to (N, C, H, W); see functional.fold."""

    _repr_attributes = ("output_size", *Unfold._repr_attributes)

    def __init__(
        self, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ):
        super().__init__()
        self.output_size, self.kernel_size, self.dilation = output_size, kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
