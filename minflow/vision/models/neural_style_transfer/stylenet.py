"""Fast style transfer, with the names of flowvision and of PyTorch's example.

Source: Johnson et al. 2016 (arXiv:1603.08155) and its supplement, table 1, with upsampling and a convolution instead of
a transposed convolution (Odena et al. 2016, distill.pub) and instance norm (Ulyanov et al. 2016, arXiv:1607.08022).
"""

from __future__ import annotations

from typing import Any

from .... import nn
from ....core.base.errors import OutOfRangeError
from ....core.functions import clamp
from ....core.source_location import fail
from ....core.tensor import Tensor
from ....io import load
from ..weights import weights_file

EXAMPLES = "https://www.dropbox.com/s/lrvwfehqdcxoza8/saved_models.zip?dl=1"  # of PyTorch's example, fast_neural_style
OWN_FORMAT = "https://oneflow-public.oss-cn-beijing.aliyuncs.com/model_zoo/flowvision/neural_style_transfer/"
# Style -> URL of its published weights.
STYLES = {
    "sketch": f"{OWN_FORMAT}sketch_oneflow.tar.gz - written by OneFlow, which can save it as numpy.savez does",
    **dict.fromkeys(("candy", "mosaic", "rain_princess", "udnie"), f"{EXAMPLES} - a zip, to be unpacked"),
}


class ConvLayer(nn.Module):
    """A convolution with reflection padding. upsample: factor by which the image is enlarged first."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int, upsample: int | None = None):
        super().__init__()
        self.interpolate = nn.UpsamplingNearest2d(scale_factor=upsample) if upsample else None
        self.reflection_pad = nn.ReflectionPad2d(kernel_size // 2)
        self.conv2d = nn.Conv2d(in_channels, out_channels, kernel_size, stride)

    def forward(self, x: Tensor) -> Tensor:
        x = x if self.interpolate is None else self.interpolate(x)
        return self.conv2d(self.reflection_pad(x))


class ResidualBlock(nn.Module):
    """x + two convolutions of x."""

    def __init__(self, channels: int):
        super().__init__()
        self.conv1, self.in1 = ConvLayer(channels, channels, 3, 1), nn.InstanceNorm2d(channels, affine=True)
        self.conv2, self.in2 = ConvLayer(channels, channels, 3, 1), nn.InstanceNorm2d(channels, affine=True)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.in2(self.conv2(self.relu(self.in1(self.conv1(x))))) + x


def drop_statistics(module: nn.Module, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
    """Remove the instance norms' statistics from a state_dict of PyTorch's example, which never uses them."""
    for name in [n for n in state_dict if n.startswith(prefix) and n.endswith((".running_mean", ".running_var"))]:
        del state_dict[name]


class NeuralStyleTransfer(nn.Module):
    """Network that renders a photograph in one style.

    X: a photograph, float (N, 3, H, W) in [0, 255], H and W multiples of 4. Returns the stylized image, of the same
    shape.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.in1 = ConvLayer(3, 32, 9, 1), nn.InstanceNorm2d(32, affine=True)
        self.conv2, self.in2 = ConvLayer(32, 64, 3, 2), nn.InstanceNorm2d(64, affine=True)
        self.conv3, self.in3 = ConvLayer(64, 128, 3, 2), nn.InstanceNorm2d(128, affine=True)
        self.res1, self.res2, self.res3 = ResidualBlock(128), ResidualBlock(128), ResidualBlock(128)
        self.res4, self.res5 = ResidualBlock(128), ResidualBlock(128)
        self.deconv1, self.in4 = ConvLayer(128, 64, 3, 1, upsample=2), nn.InstanceNorm2d(64, affine=True)
        self.deconv2, self.in5 = ConvLayer(64, 32, 3, 1, upsample=2), nn.InstanceNorm2d(32, affine=True)
        self.deconv3 = ConvLayer(32, 3, 9, 1)
        self.relu = nn.ReLU()
        self.register_load_state_dict_pre_hook(drop_statistics)

    def forward(self, X: Tensor) -> Tensor:
        y = self.relu(self.in1(self.conv1(X)))
        y = self.relu(self.in2(self.conv2(y)))
        y = self.relu(self.in3(self.conv3(y)))
        y = self.res5(self.res4(self.res3(self.res2(self.res1(y)))))
        y = self.relu(self.in4(self.deconv1(y)))
        y = self.relu(self.in5(self.deconv2(y)))
        return clamp(self.deconv3(y), 0, 255)


def neural_style_transfer(
    pretrained: bool = False, progress: bool = True, style_model: str = "sketch"
) -> NeuralStyleTransfer:
    """Network for style transfer: 1,679,235 parameters.

    style_model: sketch, candy, mosaic, rain_princess or udnie. pretrained: True to read its weights from a file of that
    name. Raises DataError if the file is missing.
    """
    if style_model not in STYLES:
        what = f"neural_style_transfer: there is no style_model {style_model!r}"
        fail(OutOfRangeError, what, f"one of {', '.join(STYLES)}")
    if not pretrained:
        return NeuralStyleTransfer()
    path = weights_file("neural_style_transfer(pretrained=True)", style_model, STYLES[style_model])
    model = NeuralStyleTransfer()
    model.load_state_dict(load(path))
    return model
