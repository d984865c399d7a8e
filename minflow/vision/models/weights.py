"""Pretrained weights: the file of each model, the folders to search, and the message if it is missing.

Nothing is downloaded. torchvision's weights enums exist here with its file names, so that programs that use
`ResNet18_Weights.DEFAULT` run, given the file. Read next: `../../data/cache.py`, the folder of these files.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ...core.base.errors import DataError, OutOfRangeError
from ...core.source_location import fail, here
from ...core.tensor import Tensor
from ...data.cache import cache_dir, find_file
from ...io import load
from ...nn import Module

BASE_URL = "https://download.pytorch.org/models/"
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]  # of the ImageNet images, per channel
SUFFIXES = (".safetensors", ".pth", ".npz")
ModelT = TypeVar("ModelT", bound=Module)


class Weights(enum.Enum):
    """Pretrained weights of one model. The value of a member is torchvision's file name without `.pth`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__doc__ = f"Files of trained weights for {cls.__name__.removesuffix('_Weights')}; DEFAULT is the best."

    @property
    def url(self) -> str:
        """URL of torchvision's file."""
        return f"{BASE_URL}{self.value}.pth"

    def transforms(self) -> Callable[[Any], Tensor]:
        """Return the preprocessing for these weights: a normalized crop of 224 x 224 pixels."""
        from ..transforms import CenterCrop, Compose, Normalize, Resize, ToTensor

        return Compose([Resize(256), CenterCrop(224), ToTensor(), Normalize(MEAN, STD)])


class AlexNet_Weights(Weights):
    IMAGENET1K_V1 = DEFAULT = "alexnet-owt-7be5be79"


class MobileNet_V2_Weights(Weights):
    IMAGENET1K_V1 = "mobilenet_v2-b0353104"
    IMAGENET1K_V2 = DEFAULT = "mobilenet_v2-7ebf99e0"


class ResNet18_Weights(Weights):
    IMAGENET1K_V1 = DEFAULT = "resnet18-f37072fd"


class ResNet34_Weights(Weights):
    IMAGENET1K_V1 = DEFAULT = "resnet34-b627a593"


class ResNet50_Weights(Weights):
    IMAGENET1K_V1 = "resnet50-0676ba61"
    IMAGENET1K_V2 = DEFAULT = "resnet50-11ad3fa6"


class ResNet101_Weights(Weights):
    IMAGENET1K_V1 = "resnet101-63fe2227"
    IMAGENET1K_V2 = DEFAULT = "resnet101-cd907fc2"


class ResNet152_Weights(Weights):
    IMAGENET1K_V1 = "resnet152-394f9c45"
    IMAGENET1K_V2 = DEFAULT = "resnet152-f82ba261"


class ResNeXt50_32X4D_Weights(Weights):
    IMAGENET1K_V1 = DEFAULT = "resnext50_32x4d-7cdf4587"


class Wide_ResNet50_2_Weights(Weights):
    IMAGENET1K_V1 = DEFAULT = "wide_resnet50_2-95faca4d"


class SqueezeNet1_0_Weights(Weights):
    IMAGENET1K_V1 = DEFAULT = "squeezenet1_0-b66bff10"


class SqueezeNet1_1_Weights(Weights):
    IMAGENET1K_V1 = DEFAULT = "squeezenet1_1-b8a52dc0"


class VGG11_Weights(Weights):
    IMAGENET1K_V1 = DEFAULT = "vgg11-8a719046"


class VGG13_Weights(Weights):
    IMAGENET1K_V1 = DEFAULT = "vgg13-19584684"


class VGG16_Weights(Weights):
    IMAGENET1K_V1 = DEFAULT = "vgg16-397923af"


class VGG19_Weights(Weights):
    IMAGENET1K_V1 = DEFAULT = "vgg19-dcbb9e9d"


class VGG11_BN_Weights(Weights):
    IMAGENET1K_V1 = DEFAULT = "vgg11_bn-6002323d"


class VGG13_BN_Weights(Weights):
    IMAGENET1K_V1 = DEFAULT = "vgg13_bn-abd245e5"


class VGG16_BN_Weights(Weights):
    IMAGENET1K_V1 = DEFAULT = "vgg16_bn-6c64b313"


class VGG19_BN_Weights(Weights):
    IMAGENET1K_V1 = DEFAULT = "vgg19_bn-c79401a0"


class ViT_B_16_Weights(Weights):
    IMAGENET1K_V1 = DEFAULT = "vit_b_16-c867db91"


WEIGHTS_BY_MODEL = {kind.__name__.removesuffix("_Weights").lower(): kind for kind in Weights.__subclasses__()}


def build(
    name: str, model_class: Callable[..., ModelT], pretrained: Any, weights: Any, /, *args: Any, **kwargs: Any
) -> ModelT:
    """Return model_class(*args, **kwargs) with the requested weights.

    pretrained: True for the first published weights, as in older programs.  weights: one of the model's `Weights`, its
    name, such as "DEFAULT", or None for a random initialization. Raises DataError, before any computation, if their
    file is missing.
    """
    if not isinstance(pretrained, bool):  # resnet18(ResNet18_Weights.DEFAULT)
        pretrained, weights = False, pretrained
    if weights is None and not pretrained:
        return model_class(*args, **kwargs)
    chosen = select_weights(name, weights) if name in WEIGHTS_BY_MODEL else None
    stem = chosen.value if chosen else name
    asked = f"weights={weights!r}" if weights is not None else "pretrained=True"
    path = weights_file(f"{name}({asked})", stem, chosen.url if chosen else "none: they are your own")
    model = model_class(*args, **kwargs)
    model.load_state_dict(load(path))
    return model


def select_weights(name: str, weights: Any) -> Weights:
    """Select the weights of a model. None: the first published, which `pretrained=True` means in older programs."""
    members = WEIGHTS_BY_MODEL[name].__members__
    if isinstance(weights, Weights) and weights in members.values():
        return weights
    key = "IMAGENET1K_V1" if weights is None else weights.rpartition(".")[2] if isinstance(weights, str) else ""
    if key not in members:
        what = f"{name}: there are no weights {weights!r}"
        fail(OutOfRangeError, what, f"one of {', '.join(members)}; or None for random weights")
    return members[key]


def weights_file(call: str, stem: str, address: str, file: str = "") -> Path:
    """Find the file of weights `stem` in the data folder. Raises DataError, with URL and folder, if it is missing."""
    path = next((path for end in SUFFIXES if (path := find_file(stem + end, [cache_dir()])) is not None), None)
    if path is None:
        raise DataError(
            f"{call}: minflow ships no trained weights and fetches none, and {file or f'{stem}.pth'} is missing",
            values={"file": f"{stem}.safetensors or {stem}.pth", "address": address, "folder": cache_dir()},
            where=here(),
            hint="put the file into that folder (MINFLOW_DATA names another one), then call this again; or "
            "model.load_state_dict(flow.load('weights.safetensors')) of any state_dict with these names",
        )
    return path
