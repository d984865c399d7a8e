"""Vision transformers, with the parameter names and results of torchvision.

Source: Dosovitskiy et al. 2021 (arXiv:2010.11929), section 3.1 and table 1. Read next: `../../nn/modules/attention.py`.
"""

from __future__ import annotations

import functools
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ... import nn
from ...core.base.errors import OutOfRangeError, ShapeError
from ...core.functions import cat
from ...core.functions.creation import empty, zeros
from ...core.source_location import fail
from ...core.tensor import Tensor
from .weights import build

Norm = Callable[[int], nn.Module]


class MLPBlock(nn.Sequential):
    """Two linear layers with GELU in between: (..., in_dim) to (..., in_dim), with mlp_dim hidden units."""

    def __init__(self, in_dim: int, mlp_dim: int, dropout: float):
        super().__init__(
            nn.Linear(in_dim, mlp_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(mlp_dim, in_dim),
            nn.Dropout(dropout),
        )
        for m in (self[0], self[3]):
            nn.init.xavier_uniform_(m.weight)
            nn.init.normal_(m.bias, std=1e-6)


class EncoderBlock(nn.Module):
    """x + attention(norm(x)), then x + mlp(norm(x)). x: (N, S, hidden_dim)."""

    def __init__(
        self, num_heads: int, hidden_dim: int, mlp_dim: int, dropout: float, attention_dropout: float, norm_layer: Norm
    ):
        super().__init__()
        self.num_heads = num_heads
        self.ln_1 = norm_layer(hidden_dim)
        self.self_attention = nn.MultiheadAttention(hidden_dim, num_heads, dropout=attention_dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm_layer(hidden_dim)
        self.mlp = MLPBlock(hidden_dim, mlp_dim, dropout)

    def forward(self, input: Tensor) -> Tensor:
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x) + input
        return x + self.mlp(self.ln_2(x))


class Encoder(nn.Module):
    """Position embeddings, then the blocks. input: (N, seq_length, hidden_dim)."""

    def __init__(
        self,
        seq_length: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float,
        attention_dropout: float,
        norm_layer: Norm,
    ):
        super().__init__()
        self.pos_embedding = nn.Parameter(nn.init.normal_(empty(1, seq_length, hidden_dim), std=0.02))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.Sequential(
            OrderedDict(
                (
                    f"encoder_layer_{i}",
                    EncoderBlock(num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer),
                )
                for i in range(num_layers)
            )
        )
        self.ln = norm_layer(hidden_dim)

    def forward(self, input: Tensor) -> Tensor:
        return self.ln(self.layers(self.dropout(input + self.pos_embedding)))


def rename_legacy_keys(module: nn.Module, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
    """Rename linear layers in an older state_dict, such as torchvision's published files."""
    for name in [n for n in state_dict if n.startswith(prefix) and ".mlp.linear_" in n]:
        now = name.replace(".mlp.linear_1.", ".mlp.0.").replace(".mlp.linear_2.", ".mlp.3.")
        state_dict[now] = state_dict.pop(name)


class VisionTransformer(nn.Module):
    """Vision transformer.

    x: float (N, 3, image_size, image_size). Returns the logits (N, num_classes).

    The image is cut into patches of patch_size x patch_size pixels; each becomes a vector of hidden_dim elements. After
    num_layers blocks, the class is predicted from an additional "class token". representation_size: width of a tanh
    layer before the last one, if any.
    """

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        num_layers: int,
        num_heads: int,
        hidden_dim: int,
        mlp_dim: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        num_classes: int = 1000,
        representation_size: int | None = None,
        norm_layer: Norm | None = None,
    ):
        super().__init__()
        if image_size % patch_size:
            what = f"VisionTransformer: image_size must be a multiple of patch_size, got {image_size} and {patch_size}"
            fail(OutOfRangeError, what, "a patch_size that divides image_size")
        norm_layer = norm_layer or functools.partial(nn.LayerNorm, eps=1e-6)
        self.image_size, self.patch_size, self.hidden_dim = image_size, patch_size, hidden_dim
        self.num_classes, self.representation_size = num_classes, representation_size
        self.conv_proj = nn.Conv2d(3, hidden_dim, patch_size, stride=patch_size)
        self.seq_length = (image_size // patch_size) ** 2 + 1
        self.class_token = nn.Parameter(zeros(1, 1, hidden_dim))
        self.encoder = Encoder(
            self.seq_length, num_layers, num_heads, hidden_dim, mlp_dim, dropout, attention_dropout, norm_layer
        )
        heads: OrderedDict[str, nn.Module] = OrderedDict()
        if representation_size is not None:
            heads["pre_logits"] = nn.Linear(hidden_dim, representation_size)
            heads["act"] = nn.Tanh()
            nn.init.trunc_normal_(heads["pre_logits"].weight, std=math.sqrt(1 / hidden_dim))
            nn.init.zeros_(heads["pre_logits"].bias)
        heads["head"] = nn.Linear(representation_size or hidden_dim, num_classes)
        self.heads = nn.Sequential(heads)
        nn.init.trunc_normal_(self.conv_proj.weight, std=math.sqrt(1 / (3 * patch_size * patch_size)))
        for tensor in (self.conv_proj.bias, self.heads.head.weight, self.heads.head.bias):
            nn.init.zeros_(tensor)
        self.register_load_state_dict_pre_hook(rename_legacy_keys)

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 4 or x.shape[2] != self.image_size or x.shape[3] != self.image_size:
            size = self.image_size
            what = f"VisionTransformer takes batches of images of {size}x{size}, got shape {list(x.shape)}"
            fail(ShapeError, what, f"transforms.Resize(({size}, {size})); or image_size=... of the model", x=x)
        x = self.conv_proj(x).flatten(2).permute(0, 2, 1)
        x = cat([self.class_token.expand(x.shape[0], -1, -1), x], 1)
        return self.heads(self.encoder(x)[:, 0])


def vit_b_16(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> VisionTransformer:
    """The base model for images of 224x224, with patches of 16 pixels: 86,567,656 parameters."""
    sizes = dict(image_size=224, patch_size=16, num_layers=12, num_heads=12, hidden_dim=768, mlp_dim=3072)
    return build("vit_b_16", VisionTransformer, pretrained, weights, **sizes | kwargs)


def vit_tiny(pretrained: Any = False, progress: bool = True, weights: Any = None, **kwargs: Any) -> VisionTransformer:
    """A model for lessons: 4 blocks of width 64, images of 32x32 in patches of 4 pixels, 10 classes."""
    sizes = dict(image_size=32, patch_size=4, num_layers=4, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=10)
    return build("vit_tiny", VisionTransformer, pretrained, weights, **sizes | kwargs)
