"""Data augmentation: random changes of color and geometry. Read next: `warps.py`, `color.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.base.errors import DTypeError, OutOfRangeError
from ...core.functions.creation import randn
from ...core.source_location import fail
from ...core.tensor import Tensor
from ...utils.data.scalar_random import random_words, scale_to_range, with_probability
from . import color, warps
from .images import check_image, image_size, pillow_mode, to_height_width
from .transforms import RandomChange, Transform


def scale_word(low: float, high: float, word: int) -> float:
    """Map a 32-bit word to [low, high)."""
    return low + (high - low) * word / 2.0**32


def probability(name: str, p: float) -> float:
    if not 0 <= p <= 1:
        fail(OutOfRangeError, f"{name}: p must be in [0, 1], got {p}", "p=0.5")
    return p


def min_max(name: str, what: str, value: Any, low: float = -math.inf, high: float = math.inf) -> tuple[float, float]:
    """Return (min, max): a single number n means (-n, n)."""
    ends = (-value, value) if isinstance(value, int | float) else tuple(value)
    if len(ends) != 2 or not low <= ends[0] <= ends[1] <= high:
        hint = "(min, max) in order"
        fail(OutOfRangeError, f"{name}: {what} must be a number or (min, max) in [{low}, {high}], got {value}", hint)
    return ends


class ColorJitter(Transform):
    """Change brightness, contrast, saturation and hue randomly, in random order.

    brightness, contrast, saturation: factors in [1 - b, 1 + b], or (min, max).  hue: turns in [-h, h], or (min, max),
    within [-0.5, 0.5].
    """

    _repr_attributes = ("brightness", "contrast", "saturation", "hue")

    def __init__(self, brightness: Any = 0, contrast: Any = 0, saturation: Any = 0, hue: Any = 0):
        super().__init__()
        self.brightness = self.factors("brightness", brightness)
        self.contrast = self.factors("contrast", contrast)
        self.saturation = self.factors("saturation", saturation)
        self.hue = min_max("ColorJitter", "hue", hue, -0.5, 0.5)

    @staticmethod
    def factors(what: str, value: Any) -> tuple[float, float]:
        """Return (min, max) of a factor: a single number x means (max(0, 1 - x), 1 + x)."""
        if isinstance(value, int | float):
            if value < 0:
                hint = "a number, or (min, max)"
                fail(OutOfRangeError, f"ColorJitter: {what} must be non-negative, got {value}", hint)
            value = max(0.0, 1.0 - value), 1.0 + value
        return min_max("ColorJitter", what, value, 0)

    def forward(self, image: Any) -> Any:
        check_image("ColorJitter", image)
        steps: list[Any] = [
            (color.adjust_brightness, self.brightness),
            (color.adjust_contrast, self.contrast),
            (color.adjust_saturation, self.saturation),
            (color.adjust_hue, self.hue),
        ]
        factors, order = random_words(), random_words()
        left = [(function, scale_word(*ends, word), ends) for (function, ends), word in zip(steps, factors)]
        for word in order:
            function, factor, ends = left.pop(scale_to_range(len(left), word))
            if ends not in ((1.0, 1.0), (0, 0)):
                image = function(image, factor)
        return image


class Grayscale(Transform):
    """Convert to gray, with num_output_channels channels: 1 or 3."""

    _repr_attributes = ("num_output_channels",)

    def __init__(self, num_output_channels: int = 1):
        super().__init__()
        self.num_output_channels = num_output_channels

    def forward(self, image: Any) -> Any:
        return color.rgb_to_grayscale(image, self.num_output_channels)


class RandomGrayscale(Transform):
    """Convert to gray with probability p, keeping the number of channels."""

    _repr_attributes = ("p",)

    def __init__(self, p: float = 0.1):
        super().__init__()
        self.p = probability("RandomGrayscale", p)

    def forward(self, image: Any) -> Any:
        channels = warps.get_dimensions(image)[0]
        return color.rgb_to_grayscale(image, channels) if with_probability(self.p, random_words()[0]) else image


class GaussianBlur(Transform):
    """Blur with a random sigma in pixels, from (min, max), or with a fixed one; see `functional.gaussian_blur`."""

    _repr_attributes = ("kernel_size", "sigma")

    def __init__(self, kernel_size: int | Sequence[int], sigma: float | Sequence[float] = (0.1, 2.0)):
        super().__init__()
        self.kernel_size = (kernel_size,) * 2 if isinstance(kernel_size, int) else tuple(kernel_size)
        self.sigma = min_max("GaussianBlur", "sigma", (sigma, sigma) if isinstance(sigma, int | float) else sigma, 1e-9)

    def forward(self, image: Any) -> Any:
        return warps.gaussian_blur(image, self.kernel_size, scale_word(*self.sigma, random_words()[0]))


class RandomRotation(Transform):
    """Rotate by a random angle in degrees, from [-d, d] or (min, max); see `functional.rotate`."""

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: Any = "nearest",
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: Any = 0,
    ):
        super().__init__()
        self.degrees = min_max("RandomRotation", "degrees", degrees)
        self.interpolation, self.expand, self.center, self.fill = interpolation, expand, center, fill
        pillow_mode("RandomRotation", interpolation)

    @staticmethod
    def get_params(degrees: Sequence[float]) -> float:
        """Draw a random angle in degrees."""
        return scale_word(*degrees, random_words()[0])

    def forward(self, image: Any) -> Any:
        angle = self.get_params(self.degrees)
        return warps.rotate(image, angle, self.interpolation, self.expand, self.center, self.fill)

    def extra_repr(self) -> str:
        return f"degrees={list(self.degrees)}, interpolation={self.interpolation}, expand={self.expand}"


class RandomAffine(Transform):
    """Rotate, translate, scale and shear randomly about the center; see `functional.affine`.

    degrees: in [-d, d], or (min, max).  translate: the maximum, as fractions of (width, height).  scale: (min, max).
    shear: degrees along x, in [-s, s] or (min, max); four numbers for x and y.
    """

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: Any = "nearest",
        fill: Any = 0,
        center: Sequence[float] | None = None,
    ):
        super().__init__()
        self.degrees = min_max("RandomAffine", "degrees", degrees)
        self.translate = (0.0, 0.0) if translate is None else tuple(translate)
        if len(self.translate) != 2 or not all(0 <= t <= 1 for t in self.translate):
            what = f"RandomAffine: translate must be two numbers in [0, 1], got {translate}"
            fail(OutOfRangeError, what, "translate=(0.1, 0.1)")
        self.scale = min_max("RandomAffine", "scale", (1.0, 1.0) if scale is None else scale, 1e-9)
        shears = (0.0, 0.0) if shear is None else (-shear, shear) if isinstance(shear, int | float) else tuple(shear)
        self.shear = (
            min_max("RandomAffine", "shear", shears[:2]),
            min_max("RandomAffine", "shear", shears[2:] or (0, 0)),
        )
        self.interpolation, self.fill, self.center = interpolation, fill, center

    def forward(self, image: Any) -> Any:
        check_image("RandomAffine", image)
        (h, w), (a, x, y, s), (sx, sy, *_) = image_size(image), random_words(), random_words()
        across, down = self.translate[0] * w, self.translate[1] * h
        moved = round(scale_word(-across, across, x)), round(scale_word(-down, down, y))
        shear = scale_word(*self.shear[0], sx), scale_word(*self.shear[1], sy)
        return warps.affine(
            image,
            scale_word(*self.degrees, a),
            moved,
            scale_word(*self.scale, s),
            shear,
            self.interpolation,
            self.fill,
            self.center,
        )

    def extra_repr(self) -> str:
        return f"degrees={list(self.degrees)}, translate={self.translate}, scale={self.scale}, shear={self.shear}"


class RandomResizedCrop(Transform):
    """Crop a random part of the image and resize it to a fixed size.

    scale: fraction of the image's area, (min, max).  ratio: width / height of the part. After ten parts that do not
    fit, uses the largest centered one. Szegedy et al. 2015 (arXiv:1409.4842), section 6.
    """

    _repr_attributes = ("size", "scale", "ratio", "interpolation")

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3 / 4, 4 / 3),
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
    ):
        super().__init__()
        self.size = to_height_width("RandomResizedCrop", size)
        self.scale = min_max("RandomResizedCrop", "scale", scale, 0)
        self.ratio = min_max("RandomResizedCrop", "ratio", ratio, 1e-9)
        self.interpolation, self.antialias = interpolation, antialias
        pillow_mode("RandomResizedCrop", interpolation)

    @staticmethod
    def get_params(img: Any, scale: Sequence[float], ratio: Sequence[float]) -> tuple[int, int, int, int]:
        """Draw a random part: (top, left, height, width)."""
        h, w = image_size(img)
        for _ in range(10):
            first, second, third, fourth = random_words()
            area = h * w * scale_word(*scale, first)
            shape = math.exp(scale_word(math.log(ratio[0]), math.log(ratio[1]), second))
            width, height = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
            if 0 < width <= w and 0 < height <= h:
                return scale_to_range(h - height + 1, third), scale_to_range(w - width + 1, fourth), height, width
        width, height = min(w, round(h * ratio[1])), min(h, round(w / ratio[0]))
        return (h - height) // 2, (w - width) // 2, height, width

    def forward(self, image: Any) -> Any:
        check_image("RandomResizedCrop", image)
        part = self.get_params(image, self.scale, self.ratio)
        return warps.resized_crop(image, *part, self.size, self.interpolation)


class RandomErasing(Transform):
    """Overwrite a random rectangle of a tensor [..., C, H, W], with probability p.

    scale: fraction of the area.  ratio: height / width.  value: one number, one per channel, or "random" for normally
    distributed values. Zhong et al. 2017 (arXiv:1708.04896).
    """

    _repr_attributes = ("p", "scale", "ratio", "value", "inplace")
    takes_arrays = False

    def __init__(
        self,
        p: float = 0.5,
        scale: Sequence[float] = (0.02, 0.33),
        ratio: Sequence[float] = (0.3, 3.3),
        value: Any = 0,
        inplace: bool = False,
    ):
        super().__init__()
        self.p, self.value, self.inplace = probability("RandomErasing", p), value, inplace
        self.scale = min_max("RandomErasing", "scale", scale, 0, 1)
        self.ratio = min_max("RandomErasing", "ratio", ratio, 1e-9)
        if isinstance(value, str) and value != "random":
            fail(OutOfRangeError, f"RandomErasing: invalid value {value!r}", "a number, one per channel, or 'random'")

    def forward(self, image: Any) -> Any:
        if not isinstance(image, Tensor) or image.ndim < 3:
            kind = f"tensor {list(image.shape)}" if isinstance(image, Tensor) else type(image).__name__
            fail(DTypeError, f"RandomErasing takes a tensor [C, H, W], got {kind}", "ToTensor() comes first")
        if not with_probability(self.p, random_words()[0]):
            return image
        _channels, h, w = image.shape[-3:]
        for _ in range(10):
            first, second, third, fourth = random_words()
            area = h * w * scale_word(*self.scale, first)
            shape = math.exp(scale_word(math.log(self.ratio[0]), math.log(self.ratio[1]), second))
            height, width = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
            if height < h and width < w:
                top, left = scale_to_range(h - height + 1, third), scale_to_range(w - width + 1, fourth)
                return warps.erase(image, top, left, height, width, self.filling(image, height, width), self.inplace)
        return image

    def filling(self, image: Tensor, height: int, width: int) -> Any:
        """The value that fills the rectangle."""
        if self.value == "random":
            return randn(image.shape[-3], height, width).to(image.dtype)
        if isinstance(self.value, int | float):
            return self.value
        return image.new_tensor(self.value).reshape(-1, 1, 1)


class RandomInvert(RandomChange):
    """Invert all colors with probability p."""

    change = staticmethod(color.invert)


class RandomAutocontrast(RandomChange):
    """Stretch the colors of each channel to the whole range with probability p."""

    change = staticmethod(color.autocontrast)


class RandomEqualize(RandomChange):
    """Equalize the histogram of each channel with probability p. A tensor must have bytes."""

    change = staticmethod(color.equalize)


class RandomPosterize(RandomChange):
    """Keep the `bits` highest bits of each color with probability p."""

    _repr_attributes = ("bits", "p")

    def __init__(self, bits: int, p: float = 0.5):
        super().__init__(p)
        self.bits = bits

    def change(self, image: Any) -> Any:
        return color.posterize(image, self.bits)


class RandomSolarize(RandomChange):
    """Invert the colors that are at least `threshold` with probability p."""

    _repr_attributes = ("threshold", "p")

    def __init__(self, threshold: float, p: float = 0.5):
        super().__init__(p)
        self.threshold = threshold

    def change(self, image: Any) -> Any:
        return color.solarize(image, self.threshold)


class RandomAdjustSharpness(RandomChange):
    """Scale the sharpness by `sharpness_factor` with probability p."""

    _repr_attributes = ("sharpness_factor", "p")

    def __init__(self, sharpness_factor: float, p: float = 0.5):
        super().__init__(p)
        self.sharpness_factor = sharpness_factor

    def change(self, image: Any) -> Any:
        return color.adjust_sharpness(image, self.sharpness_factor)


class RandomPerspective(RandomChange):
    """Move the corners inward with probability p, each by at most distortion_scale (0 to 1) times half of the size."""

    def __init__(self, distortion_scale: float = 0.5, p: float = 0.5, interpolation: Any = "bilinear", fill: Any = 0):
        super().__init__(p)
        self.distortion_scale = distortion_scale
        if not 0 <= distortion_scale <= 1:
            what = f"RandomPerspective: distortion_scale must be in [0, 1], got {distortion_scale}"
            fail(OutOfRangeError, what, "distortion_scale=0.5")
        self.interpolation, self.fill = interpolation, fill
        pillow_mode("RandomPerspective", interpolation)

    @staticmethod
    def get_params(width: int, height: int, distortion_scale: float) -> tuple[list, list]:
        """Draw the four corners of the result, clockwise from the top left. Returns those of the image, and these."""
        across, down = (int(distortion_scale * (n // 2)) + 1 for n in (width, height))
        right, bottom = width - 1, height - 1
        (a, b, c, d), (e, f, g, h) = random_words(), random_words()
        left = scale_to_range(across, a), scale_to_range(across, b)
        top = scale_to_range(down, c), scale_to_range(down, d)
        moved = [
            [left[0], top[0]],
            [right - scale_to_range(across, e), top[1]],
            [right - scale_to_range(across, f), bottom - scale_to_range(down, g)],
            [left[1], bottom - scale_to_range(down, h)],
        ]
        return [[0, 0], [right, 0], [right, bottom], [0, bottom]], moved

    def change(self, image: Any) -> Any:
        height, width = image_size(image)
        corners = self.get_params(width, height, self.distortion_scale)
        return warps.perspective(image, *corners, self.interpolation, self.fill)
