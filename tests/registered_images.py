"""Rows of `LAYERS` (`registered.py`) for the layers of signals, images and volumes."""

from minflow import nn

SPACE = {1: (2, 4, 7), 2: (2, 4, 5, 6), 3: (2, 4, 3, 4, 4)}  # axes of space -> a shape with four channels
IMAGE_BASES = set(  # what these layers inherit, and nobody makes
    "AdaptiveMaxPool AdaptivePool AvgPool ConstantPad Conv ConvTranspose Convolution FusedBatchNorm InstanceNorm "
    "LPPool MaxPool MaxUnpool Pad Pool".split()
)
IMAGE_LAYERS: dict[str, list[tuple]] = {}


def add(name: str, *makers) -> None:
    """`Conv{}d` for each number of axes, made in each of these ways from the class."""
    for n, shape in SPACE.items():
        cls = getattr(nn, name.format(n), None)
        rows = [(lambda make=make, cls=cls: make(cls), shape) for make in makers] if cls is not None else []
        IMAGE_LAYERS.setdefault(name.format(n), []).extend(rows)


add("Conv{}d", lambda c: c(4, 6, 3, 2, 1, groups=2), lambda c: c(4, 2, 2, padding="same"),
    lambda c: c(4, 2, 2, padding=1, padding_mode="reflect"),
    lambda c: c(4, 2, 2, padding="same", padding_mode="circular"))
add("ConvTranspose{}d", lambda c: c(4, 2, 3, 2, 1, 1), lambda c: c(4, 6, 2, groups=2, bias=False))
add("ConstantPad{}d", lambda c: c(1, 2.0))
for kind in ("Zero", "Reflection", "Replication", "Circular"):
    add(kind + "Pad{}d", lambda c: c(2))
add("InstanceNorm{}d", lambda c: c(4), lambda c: c(4, affine=True, track_running_stats=True),
    lambda c: c(4, track_running_stats=True).eval())
IMAGE_LAYERS |= {
    "BatchNorm3d": [(lambda: nn.BatchNorm3d(4), SPACE[3])],
    "FusedBatchNorm1d": [(lambda: nn.FusedBatchNorm1d(4), SPACE[1])],
    "FusedBatchNorm2d": [(lambda: nn.FusedBatchNorm2d(4), SPACE[2])],
    "FusedBatchNorm3d": [(lambda: nn.FusedBatchNorm3d(4), SPACE[3])],
    "SyncBatchNorm": [(lambda: nn.SyncBatchNorm(4), SPACE[2])],
    "GroupNorm": [(lambda: nn.GroupNorm(2, 4), SPACE[2]), (lambda: nn.GroupNorm(4, 4, affine=False), SPACE[1])],
    "RMSNorm": [(lambda: nn.RMSNorm(6), SPACE[2]), (lambda: nn.RMSNorm((5, 6), 0.1, False), SPACE[2])],
    "RMSLayerNorm": [(lambda: nn.RMSLayerNorm(6), SPACE[2])],
    "LocalResponseNorm": [(lambda: nn.LocalResponseNorm(3), SPACE[2])],
    "CrossMapLRN2d": [(lambda: nn.CrossMapLRN2d(2), SPACE[2])],
}


class Unpooled(nn.Module):
    """A pool and its way back, so that it takes one input."""

    def __init__(self, n):
        super().__init__()
        self.pool = getattr(nn, f"MaxPool{n}d")(2, return_indices=True)
        self.back = getattr(nn, f"MaxUnpool{n}d")(2)

    def forward(self, x):
        return self.back(*self.pool(x), output_size=x.shape)


add("MaxPool{}d", lambda c: c(3, 2, 1), lambda c: c(2, 1, dilation=2, ceil_mode=True))
add("AvgPool{}d", lambda c: c(3, 2, 1, count_include_pad=False))
add("LPPool{}d", lambda c: c(2, 2))
add("AdaptiveAvgPool{}d", lambda c: c(2))
add("AdaptiveMaxPool{}d", lambda c: c(3))
IMAGE_LAYERS |= {f"MaxUnpool{n}d": [(lambda n=n: Unpooled(n), shape)] for n, shape in SPACE.items()}
