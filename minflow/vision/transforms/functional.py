"""The transforms as functions, without random choices. Read next: `images.py`."""

from ...core.messages.suggestions import name_hints as _name_hints
from .color import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    invert,
    rgb_to_grayscale,
    to_grayscale,
)
from .images import (
    InterpolationMode,
    center_crop,
    crop,
    hflip,
    image_size,
    normalize,
    pad,
    resize,
    to_pil_image,
    to_tensor,
    vflip,
)
from .warps import (
    affine,
    convert_image_dtype,
    erase,
    five_crop,
    gaussian_blur,
    get_dimensions,
    get_image_size,
    pil_to_tensor,
    resized_crop,
    rotate,
    ten_crop,
)

__all__ = [
    "InterpolationMode",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "affine",
    "center_crop",
    "convert_image_dtype",
    "crop",
    "erase",
    "five_crop",
    "gaussian_blur",
    "get_dimensions",
    "get_image_size",
    "hflip",
    "image_size",
    "invert",
    "normalize",
    "pad",
    "pil_to_tensor",
    "resize",
    "resized_crop",
    "rgb_to_grayscale",
    "rotate",
    "ten_crop",
    "to_grayscale",
    "to_pil_image",
    "to_tensor",
    "vflip",
]

__getattr__ = _name_hints("flow.vision.transforms.functional", globals())
