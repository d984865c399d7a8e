"""Rows of `LAYERS` (`exported_cases.py`) for layers on signals, images and volumes."""

import minflow as flow
from minflow import nn
from minflow.nn import functional as F

SPACE = {1: (2, 4, 7), 2: (2, 4, 5, 6), 3: (2, 4, 3, 4, 4)}  # number of spatial axes -> input shape with four channels
IMAGE_BASES = set(  # base classes that users do not construct
    "AdaptiveAvgPool AdaptiveMaxPool AdaptivePool AvgPool ByAxes ConstantPad Conv ConvTranspose Convolution "
    "FusedBatchNorm InstanceNorm LPPool MaxPool MaxUnpool Pad Pool".split()
)
IMAGE_LAYERS: dict[str, list[tuple]] = {}


def add(name: str, *makers) -> None:
    """Add `Conv{}d` and the like for each number of axes, constructed in each of these ways."""
    for n, shape in SPACE.items():
        cls = getattr(nn, name.format(n), None)
        rows = [(lambda make=make, cls=cls: make(cls), shape) for make in makers] if cls is not None else []
        IMAGE_LAYERS.setdefault(name.format(n), []).extend(rows)


add(
    "Conv{}d",
    lambda c: c(4, 6, 3, 2, 1, groups=2),
    lambda c: c(4, 2, 2, padding="same"),
    lambda c: c(4, 2, 2, padding=1, padding_mode="reflect"),
    lambda c: c(4, 2, 2, padding="same", padding_mode="circular"),
)
add("ConvTranspose{}d", lambda c: c(4, 2, 3, 2, 1, 1), lambda c: c(4, 6, 2, groups=2, bias=False))
add("ConstantPad{}d", lambda c: c(1, 2.0))
for kind in ("Zero", "Reflection", "Replication", "Circular"):
    add(kind + "Pad{}d", lambda c: c(2))
add(
    "InstanceNorm{}d",
    lambda c: c(4),
    lambda c: c(4, affine=True, track_running_stats=True),
    lambda c: c(4, track_running_stats=True).eval(),
)
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
    """A pooling layer and its inverse, so that there is one input."""

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


class Sampled(nn.Module):
    """A spatial transformer with a trained map."""

    def __init__(self, padding_mode):
        super().__init__()
        self.theta = nn.Parameter(flow.tensor([[0.7, 0.2, 0.1], [-0.3, 0.9, 0.2]]))
        self.padding_mode = padding_mode

    def forward(self, x):
        grid = F.affine_grid(self.theta.expand(x.shape[0], 2, 3), (x.shape[0], x.shape[1], 3, 4), align_corners=False)
        return F.grid_sample(x, grid, padding_mode=self.padding_mode, align_corners=False)


IMAGE_LAYERS |= {
    "ChannelShuffle": [(lambda: nn.ChannelShuffle(2), SPACE[2])],
    "Fold": [(lambda: nn.Sequential(nn.Unfold(2), nn.Fold((5, 6), 2)), SPACE[2])],
    "PixelShuffle": [(lambda: nn.PixelShuffle(2), SPACE[2])],
    "PixelUnshuffle": [(lambda: nn.PixelUnshuffle(2), (2, 3, 4, 6))],
    "Unfold": [(lambda: nn.Unfold(2, padding=1), SPACE[2])],
    "Upsample": [
        (lambda mode=mode, n=n: nn.Upsample(scale_factor=1.7, mode=mode), SPACE[n])
        for n, mode in ((1, "linear"), (2, "bicubic"), (3, "trilinear"), (2, "nearest"), (3, "area"))
    ],
    "UpsamplingNearest2d": [(lambda: nn.UpsamplingNearest2d(7), SPACE[2])],
    "UpsamplingBilinear2d": [
        (lambda: nn.UpsamplingBilinear2d(scale_factor=2), SPACE[2]),
        (lambda: Sampled("zeros"), SPACE[2]),
        (lambda: Sampled("reflection"), SPACE[2]),
    ],
}


def called(layer, shape):
    """Return a lazy layer after its first call."""
    layer(flow.zeros(*shape))
    return layer


IMAGE_BASES |= {"Lazy", "LazyConv", "LazyNorm", "FractionalMaxPool"}
IMAGE_LAYERS["LazyLinear"] = [(lambda: called(nn.LazyLinear(3), SPACE[1]), SPACE[1])]
for n, shape in SPACE.items():
    for kind, options in (("Conv", (2, 2)), ("ConvTranspose", (2, 2)), ("BatchNorm", ()), ("InstanceNorm", ())):
        name = f"Lazy{kind}{n}d"
        make = lambda name=name, options=options, shape=shape: called(getattr(nn, name)(*options), shape)
        IMAGE_LAYERS[name] = [(make, shape)]
