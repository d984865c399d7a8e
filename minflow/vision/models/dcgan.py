"""DCGAN: a generator of images, and a discriminator that tells generated images from real ones.

Source: Radford et al. 2016 (arXiv:1511.06434), section 3 and figure 1. Parameter names (`main.0.weight` ...) are those
of PyTorch's example, and so are the sizes for 64x64 images.
"""

from __future__ import annotations

from ... import nn
from ...core.base.errors import OutOfRangeError
from ...core.source_location import fail
from ...core.tensor import Tensor


def num_halvings(name: str, size: int) -> int:
    """Count how often `size` pixels must be halved to reach 4."""
    times = size.bit_length() - 3
    if size != 4 << max(times, 1):
        what = f"{name}: image_size must be a power of two, at least 8, got {size}"
        fail(OutOfRangeError, what, "image_size=32, 64, ...")
    return times


def reset_parameters(model: nn.Module) -> None:
    """Reinitialize all weights as in the paper: filters normal(0, 0.02), batch norm scales normal(1, 0.02)."""
    for m in model.modules():
        if isinstance(m, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.normal_(m.weight, 0.0, 0.02)
        elif isinstance(m, nn.BatchNorm2d):
            nn.init.normal_(m.weight, 1.0, 0.02)
            nn.init.zeros_(m.bias)


class DCGANGenerator(nn.Module):
    """Generator of DCGAN.

    input: random vectors (N, nz, 1, 1). Returns images (N, nc, image_size, image_size) in [-1, 1].

    nz: length of the random vector.  ngf: channels before the last layer.  nc: channels of the image.
    """

    def __init__(self, nz: int = 100, ngf: int = 64, nc: int = 3, image_size: int = 64):
        super().__init__()
        times = num_halvings("DCGANGenerator", image_size)
        wide = ngf << (times - 1)
        layers: list[nn.Module] = [
            nn.ConvTranspose2d(nz, wide, 4, 1, 0, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU(True),
        ]
        for _ in range(times - 1):
            layers += [
                nn.ConvTranspose2d(wide, wide // 2, 4, 2, 1, bias=False),
                nn.BatchNorm2d(wide // 2),
                nn.ReLU(True),
            ]
            wide //= 2
        self.main = nn.Sequential(*layers, nn.ConvTranspose2d(wide, nc, 4, 2, 1, bias=False), nn.Tanh())
        reset_parameters(self)

    def forward(self, input: Tensor) -> Tensor:
        return self.main(input)


class DCGANDiscriminator(nn.Module):
    """Discriminator of DCGAN.

    input: images (N, nc, image_size, image_size). Returns (N, 1, 1, 1): the probability that each is real.
    """

    def __init__(self, nc: int = 3, ndf: int = 64, image_size: int = 64):
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(nc, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
        for _ in range(num_halvings("DCGANDiscriminator", image_size) - 1):
            layers += [
                nn.Conv2d(ndf, 2 * ndf, 4, 2, 1, bias=False),
                nn.BatchNorm2d(2 * ndf),
                nn.LeakyReLU(0.2, inplace=True),
            ]
            ndf *= 2
        self.main = nn.Sequential(*layers, nn.Conv2d(ndf, 1, 4, 1, 0, bias=False), nn.Sigmoid())
        reset_parameters(self)

    def forward(self, input: Tensor) -> Tensor:
        return self.main(input)
