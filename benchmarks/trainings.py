"""Models, batches and optimizers of the benchmarks, the same in minflow and in PyTorch.

One definition serves both libraries: a library is (the package, its `nn`). All sizes are defined here.
Read next: `eager.py`, `graph.py`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

VOCAB, LAYERS, HEADS, WIDTH, LENGTH = 96, 4, 4, 128, 64  # of the small GPT


class Training(NamedTuple):
    """A model and what a training step needs. batch: (inputs, labels)."""

    model: Any
    loss_fn: Any
    optimizer: Any
    batch: tuple


def flow_library():
    import minflow as flow
    from minflow import nn

    return flow, nn


def torch_library():
    import torch
    from torch import nn

    return torch, nn


def libraries(torch: bool = True) -> list:
    """minflow, and PyTorch if it is wanted and installed."""
    try:
        return [flow_library(), torch_library()] if torch else [flow_library()]
    except ImportError:
        print("PyTorch is not installed: minflow's own figures only")
        return [flow_library()]


def make(library, name: str) -> Training:
    """ "mlp", "lenet", "mobilenet" (train mode, SGD, ten classes) or "gpt" (AdamW), with its batch."""
    lib, nn = library
    rng = np.random.default_rng(0)
    if name == "gpt":
        model = gpt(lib, nn)
        tokens = rng.integers(0, VOCAB, (8, LENGTH + 1))
        batch = tokens[:, :-1].copy(), tokens[:, 1:].reshape(-1)
        optimizer = lib.optim.AdamW(model.parameters(), lr=1e-3)
    else:
        layers, shape = {"mlp": mlp, "lenet": lenet, "mobilenet": mobilenet_v2}[name](nn)
        model = nn.Sequential(*layers)
        batch = rng.standard_normal(shape).astype("f4"), rng.integers(0, 10, shape[0])
        optimizer = lib.optim.SGD(model.parameters(), lr=0.01)
    model.train()
    return Training(model, nn.CrossEntropyLoss(), optimizer, tuple([lib.from_numpy(array) for array in batch]))


def mlp(nn):
    return [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10)], (100, 784)


def lenet(nn):
    layers = [
        nn.Conv2d(1, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(3136, 512),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(512, 10),
    ]
    return layers, (100, 1, 28, 28)


def mobilenet_v2(nn, num_classes: int = 10):
    """MobileNetV2 (Sandler et al. 2018, table 2) from layers that both libraries have."""

    def conv_bn(a, b, kernel, stride=1, groups=1):
        return [
            nn.Conv2d(a, b, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(b),
            nn.ReLU6(inplace=True),
        ]

    class Block(nn.Module):
        def __init__(self, a, b, stride, expand):
            super().__init__()
            mid = a * expand
            layers = conv_bn(a, mid, 1) if expand != 1 else []
            layers += [*conv_bn(mid, mid, 3, stride, mid), nn.Conv2d(mid, b, 1, bias=False), nn.BatchNorm2d(b)]
            self.conv, self.add = nn.Sequential(*layers), stride == 1 and a == b

        def forward(self, x):
            return x + self.conv(x) if self.add else self.conv(x)

    layers, a = conv_bn(3, 32, 3, 2), 32
    for t, c, n, s in [
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ]:
        for i in range(n):
            layers.append(Block(a, c, s if i == 0 else 1, t))
            a = c
    layers += [
        *conv_bn(320, 1280, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(1280, num_classes),
    ]
    return layers, (64, 3, 32, 32)


def gpt(lib, nn):
    """A decoder of LAYERS blocks (layer norm first, GELU, attention written out), the head tied to the embedding."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down, self.act = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH), nn.GELU()
            self.register_buffer("mask", lib.tril(lib.ones(LENGTH, LENGTH)) == 0)

        def forward(self, x):
            n = x.shape[0]
            q, k, v = self.qkv(self.norm1(x)).split(WIDTH, 2)
            q, k, v = (t.view(n, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2) for t in (q, k, v))
            scores = (q @ k.transpose(-2, -1)) / math.sqrt(WIDTH // HEADS)
            weights = lib.softmax(scores.masked_fill(self.mask, -1e9), dim=-1)
            x = x + self.out((weights @ v).transpose(1, 2).reshape(n, LENGTH, WIDTH))
            return x + self.down(self.act(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(VOCAB, WIDTH), nn.Embedding(LENGTH, WIDTH)
            self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCAB, bias=False)
            self.head.weight = self.tokens.weight

        def forward(self, x):
            h = self.blocks(self.tokens(x) + self.places(lib.arange(LENGTH, device=x.device)))
            return self.head(self.norm(h)).reshape(-1, VOCAB)

    return GPT()
