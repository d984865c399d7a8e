"""U-Net, which classifies each pixel.

Source: Ronneberger et al. 2015 (arXiv:1505.04597), figure 1, with padded convolutions and batch norm; parameter names
are those of the implementation that most courses use (inc, down1 ... up4, outc).
"""

from __future__ import annotations

from ... import nn
from ...core.functions import cat
from ...core.tensor import Tensor
from ...nn import functional as F


class DoubleConv(nn.Module):
    """Two times 3x3 convolution, batch norm, ReLU. Keeps the size."""

    def __init__(self, in_channels: int, out_channels: int, mid_channels: int | None = None):
        super().__init__()
        middle = mid_channels or out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, middle, 3, padding=1, bias=False),
            nn.BatchNorm2d(middle),
            nn.ReLU(inplace=True),
            nn.Conv2d(middle, out_channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.double_conv(x)


class Down(nn.Module):
    """Halve the size, then DoubleConv."""

    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(in_channels, out_channels))

    def forward(self, x: Tensor) -> Tensor:
        return self.maxpool_conv(x)


class Up(nn.Module):
    """Double the size, concatenate the skip connection of that size, then DoubleConv."""

    def __init__(self, in_channels: int, out_channels: int, bilinear: bool = False):
        super().__init__()
        self.up: nn.Module
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, 2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x: Tensor, skipped: Tensor) -> Tensor:
        x = self.up(x)
        high, wide = skipped.shape[2] - x.shape[2], skipped.shape[3] - x.shape[3]
        if high or wide:  # the size was odd in the encoder
            x = F.pad(x, [wide // 2, wide - wide // 2, high // 2, high - high // 2])
        return self.conv(cat([skipped, x], 1))


class OutConv(nn.Module):
    """Logits of each pixel, by a 1x1 convolution."""

    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)


class UNet(nn.Module):
    """U-Net.

    x: float (N, n_channels, H, W), H and W at least 16. Returns logits (N, n_classes, H, W).

    bilinear: enlarge by interpolation instead of trained filters.  width: channels at full size: 64 in the paper, and
    8 are enough for a lesson.
    """

    def __init__(self, n_channels: int = 3, n_classes: int = 1, bilinear: bool = False, width: int = 64):
        super().__init__()
        self.n_channels, self.n_classes, self.bilinear = n_channels, n_classes, bilinear
        less, c = 2 if bilinear else 1, width
        self.inc = DoubleConv(n_channels, c)
        self.down1, self.down2, self.down3 = Down(c, 2 * c), Down(2 * c, 4 * c), Down(4 * c, 8 * c)
        self.down4 = Down(8 * c, 16 * c // less)
        self.up1, self.up2 = Up(16 * c, 8 * c // less, bilinear), Up(8 * c, 4 * c // less, bilinear)
        self.up3, self.up4 = Up(4 * c, 2 * c // less, bilinear), Up(2 * c, c, bilinear)
        self.outc = OutConv(c, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x4 = self.down3(x3)
        x = self.up1(self.down4(x4), x4)
        return self.outc(self.up4(self.up3(self.up2(x, x3), x2), x1))
