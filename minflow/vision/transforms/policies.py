"""Policies of augmentation: AutoAugment, RandAugment and TrivialAugmentWide.

A policy applies named operations, each at one of `num_magnitude_bins` steps of its strength. A tensor must have bytes.
Read next: `color.py` and `warps.py`, the operations.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping
from typing import Any

from ...core.base.errors import OutOfRangeError
from ...core.source_location import fail
from ...utils.data.scalar_random import random_words, scale_to_range, with_probability
from . import color, warps
from .images import check_image, image_size, pillow_mode
from .transforms import Transform


class AutoAugmentPolicy(enum.Enum):
    """Data set on which a policy was learned."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


# Cubuk et al. 2018 (arXiv:1805.09501), tables 7 to 9: pairs of (operation, probability, step of the strength).
POLICIES = {
    "imagenet": """
    Posterize 0.4 8 Rotate 0.6 9; Solarize 0.6 5 AutoContrast 0.6 -; Equalize 0.8 - Equalize 0.6 -;
    Posterize 0.6 7 Posterize 0.6 6; Equalize 0.4 - Solarize 0.2 4; Equalize 0.4 - Rotate 0.8 8;
    Solarize 0.6 3 Equalize 0.6 -; Posterize 0.8 5 Equalize 1.0 -; Rotate 0.2 3 Solarize 0.6 8;
    Equalize 0.6 - Posterize 0.4 6; Rotate 0.8 8 Color 0.4 0; Rotate 0.4 9 Equalize 0.6 -;
    Equalize 0.0 - Equalize 0.8 -; Invert 0.6 - Equalize 1.0 -; Color 0.6 4 Contrast 1.0 8;
    Rotate 0.8 8 Color 1.0 2; Color 0.8 8 Solarize 0.8 7; Sharpness 0.4 7 Invert 0.6 -;
    ShearX 0.6 5 Equalize 1.0 -; Color 0.4 0 Equalize 0.6 -; Equalize 0.4 - Solarize 0.2 4;
    Solarize 0.6 5 AutoContrast 0.6 -; Invert 0.6 - Equalize 1.0 -; Color 0.6 4 Contrast 1.0 8;
    Equalize 0.8 - Equalize 0.6 -
    """,
    "cifar10": """
    Invert 0.1 - Contrast 0.2 6; Rotate 0.7 2 TranslateX 0.3 9; Sharpness 0.8 1 Sharpness 0.9 3;
    ShearY 0.5 8 TranslateY 0.7 9; AutoContrast 0.5 - Equalize 0.9 -; ShearY 0.2 7 Posterize 0.3 7;
    Color 0.4 3 Brightness 0.6 7; Sharpness 0.3 9 Brightness 0.7 9; Equalize 0.6 - Equalize 0.5 -;
    Contrast 0.6 7 Sharpness 0.6 5; Color 0.7 7 TranslateX 0.5 8; Equalize 0.3 - AutoContrast 0.4 -;
    TranslateY 0.4 3 Sharpness 0.2 6; Brightness 0.9 6 Color 0.2 8; Solarize 0.5 2 Invert 0.0 -;
    Equalize 0.2 - AutoContrast 0.6 -; Equalize 0.2 - Equalize 0.6 -; Color 0.9 9 Equalize 0.6 -;
    AutoContrast 0.8 - Solarize 0.2 8; Brightness 0.1 3 Color 0.7 0; Solarize 0.4 5 AutoContrast 0.9 -;
    TranslateY 0.9 9 TranslateY 0.7 9; AutoContrast 0.9 - Solarize 0.8 3; Equalize 0.8 - Invert 0.1 -;
    TranslateY 0.7 9 AutoContrast 0.9 -
    """,
    "svhn": """
    ShearX 0.9 4 Invert 0.2 -; ShearY 0.9 8 Invert 0.7 -; Equalize 0.6 - Solarize 0.6 6;
    Invert 0.9 - Equalize 0.6 -; Equalize 0.6 - Rotate 0.9 3; ShearX 0.9 4 AutoContrast 0.8 -;
    ShearY 0.9 8 Invert 0.4 -; ShearY 0.9 5 Solarize 0.2 6; Invert 0.9 - AutoContrast 0.8 -;
    Equalize 0.6 - Rotate 0.9 3; ShearX 0.9 4 Solarize 0.3 3; ShearY 0.8 8 Invert 0.7 -;
    Equalize 0.9 - TranslateY 0.6 6; Invert 0.9 - Equalize 0.6 -; Contrast 0.3 3 Rotate 0.8 4;
    Invert 0.8 - TranslateY 0.0 2; ShearY 0.7 6 Solarize 0.4 8; Invert 0.6 - Rotate 0.8 4;
    ShearY 0.3 7 TranslateX 0.9 3; ShearX 0.1 6 Invert 0.6 -; Solarize 0.7 2 TranslateY 0.6 7;
    ShearY 0.8 4 Invert 0.8 -; ShearX 0.7 9 TranslateY 0.8 3; ShearY 0.8 5 AutoContrast 0.7 -;
    ShearX 0.7 2 Invert 0.1 -
    """,
}
# Largest strength of each operation; TranslateX, TranslateY and Posterize depend on the policy. Solarize falls to 0.
FACTORS = dict.fromkeys(("Brightness", "Color", "Contrast", "Sharpness"), 0.9)
STRENGTHS = {"ShearX": 0.3, "ShearY": 0.3, "Rotate": 30.0, "Solarize": 255.0, "AutoContrast": 0.0, "Equalize": 0.0}
SIGNED = {"ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", *FACTORS}
FUNCTIONS: dict[str, Callable] = {
    "Brightness": lambda image, strength: color.adjust_brightness(image, 1 + strength),
    "Color": lambda image, strength: color.adjust_saturation(image, 1 + strength),
    "Contrast": lambda image, strength: color.adjust_contrast(image, 1 + strength),
    "Sharpness": lambda image, strength: color.adjust_sharpness(image, 1 + strength),
    "Posterize": lambda image, strength: color.posterize(image, int(strength)),
    "Solarize": lambda image, strength: color.solarize(image, strength),
    "AutoContrast": lambda image, strength: color.autocontrast(image),
    "Equalize": lambda image, strength: color.equalize(image),
    "Invert": lambda image, strength: color.invert(image),
    "Identity": lambda image, strength: image,
}


def parse_policies(name: str) -> list[list[tuple[str, float, int]]]:
    """Return the pairs of (operation, probability, step) of a policy."""
    words = [line.split() for line in POLICIES[name].replace("\n", " ").split(";")]
    return [[(kind, float(p), int(step) if step != "-" else 0) for kind, p, step in (w[:3], w[3:])] for w in words]


def apply_operation(image: Any, kind: str, strength: float, interpolation: Any, fill: Any) -> Any:
    """Apply one operation of a policy, by its name."""
    if kind in ("ShearX", "ShearY"):
        degrees = math.degrees(math.atan(strength))
        shear, corner = ((degrees, 0.0), (0.0, degrees))[kind == "ShearY"], (0, 0)
        return warps.affine(image, 0.0, (0, 0), 1.0, shear, interpolation, fill, corner)
    if kind in ("TranslateX", "TranslateY"):
        moved = ((int(strength), 0), (0, int(strength)))[kind == "TranslateY"]
        return warps.affine(image, 0.0, moved, 1.0, (0.0, 0.0), interpolation, fill)
    if kind == "Rotate":
        return warps.rotate(image, strength, interpolation, fill=fill)
    return FUNCTIONS[kind](image, strength)


class Policy(Transform):
    """Base class of policies. interpolation: "nearest" or "bilinear".  fill: color outside of the image."""

    def __init__(self, num_magnitude_bins: int, interpolation: Any, fill: Any):
        super().__init__()
        self.num_magnitude_bins, self.interpolation, self.fill = num_magnitude_bins, interpolation, fill
        pillow_mode(type(self).__name__, interpolation)
        if num_magnitude_bins < 2:
            what = f"{type(self).__name__}: num_magnitude_bins must be at least 2, got {num_magnitude_bins}"
            fail(OutOfRangeError, what, "num_magnitude_bins=31")

    def largest(self, height: int, width: int) -> Mapping[str, float]:
        """Return the largest strength of each operation, for an image of this size in pixels."""
        moves = {"TranslateX": 150 / 331 * width, "TranslateY": 150 / 331 * height}
        return {"Identity": 0.0, **STRENGTHS, **FACTORS, **moves, "Posterize": 4.0}

    def strength(self, kind: str, step: int, image: Any) -> float:
        """Return the strength of an operation at a step from 0 to num_magnitude_bins - 1."""
        part, top = step / (self.num_magnitude_bins - 1), self.largest(*image_size(image)).get(kind, 0.0)
        if kind == "Posterize":  # bits that remain
            return 8 - round(top * part)
        return top * (1 - part) if kind == "Solarize" else top * part

    def draw(self, image: Any, step: int | None = None) -> Any:
        """Apply a random operation, at a random step unless one is given."""
        first, second, third, _ = random_words()
        kinds = list(self.largest(1, 1))
        step = scale_to_range(self.num_magnitude_bins, second) if step is None else step
        return self.apply_signed(image, kinds[scale_to_range(len(kinds), first)], step, third)

    def apply_signed(self, image: Any, kind: str, step: int, word: int) -> Any:
        """Apply an operation, in either direction if it has two."""
        strength = self.strength(kind, step, image)
        strength = -strength if kind in SIGNED and with_probability(0.5, word) else strength
        return apply_operation(image, kind, strength, self.interpolation, self.fill)


class AutoAugment(Policy):
    """Apply one of 25 pairs of operations that were learned on a data set: IMAGENET, CIFAR10 or SVHN.

    Source: Cubuk et al. 2018 (arXiv:1805.09501).
    """

    _repr_attributes = ("policy", "fill")

    def __init__(self, policy: Any = AutoAugmentPolicy.IMAGENET, interpolation: Any = "nearest", fill: Any = None):
        super().__init__(10, interpolation, fill)
        self.policy = policy
        name = getattr(policy, "value", policy)
        if name not in POLICIES:
            fail(OutOfRangeError, f"AutoAugment: there is no policy {policy!r}", f"one of {', '.join(POLICIES)}")
        self.policies = parse_policies(name)

    def forward(self, image: Any) -> Any:
        check_image("AutoAugment", image)
        pair = self.policies[scale_to_range(len(self.policies), random_words()[0])]
        for kind, p, step in pair:
            first, second, _, _ = random_words()
            if with_probability(p, first):
                image = self.apply_signed(image, kind, step, second)
        return image


class RandAugment(Policy):
    """Apply num_ops random operations, all at the step `magnitude` of num_magnitude_bins.

    Source: Cubuk et al. 2019 (arXiv:1909.13719).
    """

    _repr_attributes = ("num_ops", "magnitude", "num_magnitude_bins", "interpolation", "fill")

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Any = "nearest",
        fill: Any = None,
    ):
        super().__init__(num_magnitude_bins, interpolation, fill)
        self.num_ops, self.magnitude = num_ops, magnitude
        if not 0 <= magnitude < num_magnitude_bins:
            what = f"RandAugment: magnitude must be in [0, {num_magnitude_bins - 1}], got {magnitude}"
            fail(OutOfRangeError, what, "magnitude=9")

    def forward(self, image: Any) -> Any:
        check_image("RandAugment", image)
        for _ in range(self.num_ops):
            image = self.draw(image, self.magnitude)
        return image


class TrivialAugmentWide(Policy):
    """Apply one random operation at a random step. Source: Mueller and Hutter 2021 (arXiv:2103.10158)."""

    _repr_attributes = ("num_magnitude_bins", "interpolation", "fill")

    def __init__(self, num_magnitude_bins: int = 31, interpolation: Any = "nearest", fill: Any = None):
        super().__init__(num_magnitude_bins, interpolation, fill)

    def largest(self, height: int, width: int) -> Mapping[str, float]:
        """Return the largest strengths, which are wider than those of the other policies."""
        wide = {**dict.fromkeys(("ShearX", "ShearY", *FACTORS), 0.99), "Rotate": 135.0, "Posterize": 6.0}
        return {**super().largest(height, width), **wide, "TranslateX": 32.0, "TranslateY": 32.0}

    def forward(self, image: Any) -> Any:
        check_image("TrivialAugmentWide", image)
        return self.draw(image)
