"""`python -m tests.fuzz.models --models 1000 --seed N`: random models with compiled kernels, and with NumPy.

A model is a chain of random layers of odd sizes, with branches, a loss and an optimizer. `checked` runs a step as
`tests/platforms/test_checked_tasks.py` does: NumPy recomputes each operation from the inputs that its task read, with
guard bands around every value, and NaN in all uninitialized memory. `compared` runs some steps with compiled kernels,
with another thread count, and without them. Child processes run the models, and one that crashes is named.
"""

from __future__ import annotations

import argparse
import faulthandler
import functools
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import minflow as flow
from minflow import nn
from minflow.compat.namespaces.threads import Settings
from minflow.core.base.errors import MinflowError, MinflowWarning
from minflow.core.kernels import HOST_PLATFORMS, select
from minflow.platforms import compiled
from minflow.platforms.compiled.runtime import task_scheduler, tasks

from .draw import Draw

F = nn.functional
LARGEST = 40_000  # elements of a value, and millions of multiplications of a layer
CLASSES = 5


class Apply(nn.Module):
    """A module that applies a function to the input and some layers."""

    def __init__(self, function: Callable, *layers: nn.Module):
        super().__init__()
        self.function, self.layers = function, nn.ModuleList(layers)

    def forward(self, x):
        return self.function(x, *self.layers)


def wide(d: Draw) -> int:
    return d.one(1, 2, 3, 5, 8, 15, 16, 17, 24, 31, 32, 33, 40, 48, 63, 64, 70) if d.chance(0.7) else d.randint(1, 70)


# ---- layers of images (N, C, H, W) -----------------------------------------------------------------------------------


def conv(d: Draw, c: int, h: int, w: int):
    size = d.one(1, 1, 3, 3, 5, 2, 4, 7, (3, 1), (1, 5), (2, 3), (5, 5))
    stride = d.one(1, 1, 1, 2, 3, (1, 2), (2, 1))
    padding = d.one(0, 1, 1, 2, 3, (0, 2), (1, 0))
    dilation = d.one(1, 1, 1, 1, 2, (1, 3))
    groups, out = 1, wide(d)
    if d.chance(0.1):
        groups = d.one(*[g for g in range(1, c + 1) if c % g == 0])
        out = groups * d.one(1, 2, 3)
    return nn.Conv2d(c, out, size, stride, padding, dilation, groups, bias=d.chance(0.6))


def depthwise(d: Draw, c: int, h: int, w: int):
    size = d.one(3, 3, 3, 5, 2, 1, (3, 5), 7)
    return nn.Conv2d(
        c,
        c * d.one(1, 1, 1, 2),
        size,
        d.one(1, 1, 2, (2, 1), 3),
        d.one(1, 1, 0, 2, (0, 1), 3),
        d.one(1, 1, 1, 2),
        c,
        bias=d.chance(0.4),
    )


def transposed(d: Draw, c: int, h: int, w: int):
    groups = d.one(1, 1, *[g for g in range(1, c + 1) if c % g == 0])
    stride = d.one(1, 2, 3, (2, 1))
    return nn.ConvTranspose2d(
        c,
        groups * d.one(1, 3, 16, 20),
        d.one(1, 2, 3, 4, (3, 2)),
        stride,
        d.one(0, 1),
        d.one(0, 0, 1) if stride in (2, 3) else 0,
        groups,
        d.chance(0.5),
        d.one(1, 1, 2),
    )


def resized(d: Draw, c: int, h: int, w: int):
    """Images of another size, or patches of them."""
    mode, size = d.one("bilinear", "bicubic", "nearest", "area"), (d.randint(1, h + 3), d.randint(1, w + 3))
    aligned = dict(align_corners=d.chance(0.5)) if mode in ("bilinear", "bicubic") else {}
    shuffled = (
        [nn.PixelShuffle(2)]
        if c % 4 == 0
        else [nn.PixelUnshuffle(d.one(*[n for n in (1, 2, 3) if h % n == 0 == w % n]))]
    )
    return d.one(
        Apply(lambda x: F.interpolate(x, size, mode=mode, **aligned)),
        *shuffled,
        nn.LocalResponseNorm(3),
        Apply(lambda x: F.unfold(x, 3, padding=1).reshape(len(x), c * 9, h, w)),
        nn.LPPool2d(2, 2),
        nn.ReflectionPad2d((0, min(1, w - 1), 0, 0)),
        nn.Dropout2d(0.4),
        nn.Upsample(scale_factor=2),
    )


def norm(d: Draw, c: int, h: int, w: int):
    groups = d.one(*[g for g in range(1, c + 1) if c % g == 0])
    return d.one(
        nn.BatchNorm2d(c),
        nn.BatchNorm2d(c),
        nn.BatchNorm2d(c),
        nn.BatchNorm2d(c, affine=d.chance(0.5)),
        nn.BatchNorm2d(c, track_running_stats=False),
        nn.GroupNorm(groups, c),
        nn.InstanceNorm2d(c),
        nn.InstanceNorm2d(c, affine=True),
        nn.LayerNorm((h, w)),
        nn.LayerNorm((c, h, w)),
        nn.LayerNorm(w),
    )


def pool(d: Draw, c: int, h: int, w: int):
    size, stride = d.one(2, 2, 3, 3, (2, 3), 5, 1, (1, 2)), d.one(1, 2, 2, 3, None, (2, 1))
    padding, ceil = d.one(0, 0, 0, 1), d.chance(0.3)
    least = min(size) if isinstance(size, tuple) else size
    padding = min(padding, least // 2)
    return d.one(
        nn.MaxPool2d(size, stride, padding, ceil_mode=ceil),
        nn.MaxPool2d(size, stride, padding, d.one(1, 2), ceil_mode=ceil),
        nn.MaxPool2d(2),
        nn.AvgPool2d(size, stride, padding, ceil, count_include_pad=d.chance(0.5)),
        nn.AdaptiveAvgPool2d(d.one(1, 1, 2, 3, (1, 2), (h, 1))),
        nn.AdaptiveMaxPool2d(d.one(1, 2, 3, (2, 1))),
    )


def chain(d: Draw, c: int, h: int, w: int):
    """Sequences that passes fuse: convolution, norm, activation, pool; or a bottleneck with its sum."""
    first = d.one(conv, conv, depthwise)(d, c, h, w)
    out, acts = first.out_channels, (nn.ReLU, nn.ReLU6, nn.ReLU, nn.SiLU)
    layers = [first, *([nn.BatchNorm2d(out)] if d.chance(0.6) else []), *([d.one(*acts)()] if d.chance(0.8) else [])]
    if d.chance(0.3):
        layers.append(d.one(nn.MaxPool2d(2), nn.MaxPool2d(3, 2), nn.MaxPool2d((2, 3), (1, 2)), nn.AvgPool2d(2)))
    if d.chance(0.4):
        many, size = out * d.one(1, 2, 3), d.one(3, 3, 5, (3, 1))
        same = size // 2 if isinstance(size, int) else (1, 0)
        act = d.one(*acts)
        inner = nn.Sequential(
            nn.Conv2d(out, many, 1, bias=False),
            nn.BatchNorm2d(many),
            act(),
            nn.Conv2d(many, many, size, 1, same, groups=d.one(many, many, 1), bias=d.chance(0.2)),
            nn.BatchNorm2d(many),
            act(),
            nn.Conv2d(many, out, 1, bias=False),
            nn.BatchNorm2d(out),
        )
        layers.append(d.one(inner, Apply(lambda x, inner: x + inner(x), inner)))
    return nn.Sequential(*layers)


def gate(d: Draw, c: int, h: int, w: int):
    """Squeeze and excite."""
    few = d.one(1, 4, 16)
    inner = nn.Sequential(
        nn.AdaptiveAvgPool2d(1),
        nn.Conv2d(c, few, 1),
        nn.ReLU(),
        nn.Conv2d(few, c, 1),
        d.one(nn.Sigmoid(), nn.Hardsigmoid()),
    )
    return Apply(lambda x, inner: x * inner(x), inner)


def shifted(d: Draw, c: int, h: int, w: int):
    """Views and slices."""
    a, b = sorted([d.randint(0, c), d.randint(0, c)])
    b = max(b, a + 1)
    return d.one(
        Apply(lambda x: x[:, a:b]),
        Apply(lambda x: x[:, :, ::2]),
        Apply(lambda x: x[..., 1:]),
        Apply(lambda x: x.flip(3)),
        Apply(lambda x: x.permute(0, 1, 3, 2)),
        Apply(lambda x: F.pad(x, (1, 0, 2, 1))),
        Apply(lambda x: x.permute(0, 2, 3, 1).reshape(len(x), h, w * c).reshape(len(x), h, w, c).permute(0, 3, 1, 2)),
        Apply(lambda x: x.reshape(len(x), c, h * w).reshape(len(x), c, w, h)),
        Apply(lambda x: F.interpolate(x, scale_factor=2, mode="nearest")),
        Apply(lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate")),
        Apply(lambda x: x.roll(1, 2)),
        Apply(lambda x: x.expand(2, *x.shape).sum(0)),
        Apply(lambda x: x.transpose(2, 3).contiguous()),
    )


# ---- layers of rows (N, T, D) and (N, D) -----------------------------------------------------------------------------


class Attention(nn.Module):
    def __init__(self, wide: int, heads: int, masked: bool):
        super().__init__()
        self.qkv, self.out, self.heads, self.masked = nn.Linear(wide, 3 * wide), nn.Linear(wide, wide), heads, masked

    def forward(self, x):
        n, t, wide = x.shape
        q, k, v = [
            a.reshape(n, t, self.heads, wide // self.heads).permute(0, 2, 1, 3) for a in self.qkv(x).split(wide, 2)
        ]
        scores = q @ k.transpose(-2, -1) * (wide // self.heads) ** -0.5
        if self.masked:
            scores = scores.masked_fill(flow.ones(t, t).tril() == 0, float("-inf"))
        return x + self.out((scores.softmax(-1) @ v).permute(0, 2, 1, 3).reshape(n, t, wide))


class Repeated(nn.Module):
    """Cells called in a loop, and a layer called twice: parameters with several users."""

    def __init__(self, cell: nn.Module, layer: nn.Module):
        super().__init__()
        self.cell, self.layer = cell, layer

    def forward(self, x):
        state, found = None, []
        for t in range(x.shape[1]):
            state = self.cell(x[:, t], state)
            found.append(state[0] if isinstance(state, tuple) else state)
        return self.layer(self.layer(flow.stack(found, 1)).tanh())


def recurrent(d: Draw, wide: int, some: int):
    """A recurrent layer of any kind; the output is (N, T, D)."""
    kind, first = d.one(nn.RNN, nn.LSTM, nn.GRU), dict(batch_first=True)
    options = first | d.one(
        {},
        {},
        dict(bidirectional=True),
        dict(num_layers=2),
        dict(bias=False),
        dict(num_layers=2, dropout=0.3),
        dict(num_layers=2, bidirectional=True),
    )
    if kind is nn.RNN and d.chance(0.5):
        options["nonlinearity"] = "relu"
    if kind is nn.LSTM and some > 1 and d.chance(0.3):
        options["proj_size"] = some // 2
    return d.one(
        Apply(lambda x, layer: layer(x)[0], kind(wide, some, **options)),
        Repeated(d.one(nn.RNNCell, nn.LSTMCell, nn.GRUCell)(wide, some), nn.Linear(some, some)),
    )


def attending(d: Draw, wide: int):
    heads = d.one(*[g for g in range(1, wide + 1) if wide % g == 0])
    causal, act = d.chance(0.5), d.one("relu", "gelu")

    def itself(x, layer):
        mask = flow.full((x.shape[1], x.shape[1]), float("-inf")).triu(1) if causal else None
        return layer(x, x, x, attn_mask=mask, need_weights=False)[0]

    def split(x):
        return x.reshape(*x.shape[:2], heads, wide // heads).transpose(1, 2)

    return d.one(
        Attention(wide, heads, causal),
        Apply(itself, nn.MultiheadAttention(wide, heads, batch_first=True)),
        nn.TransformerEncoderLayer(
            wide, heads, 2 * wide, d.one(0.0, 0.1), act, batch_first=True, norm_first=d.chance(0.5)
        ),
        Apply(
            lambda x: (
                F.scaled_dot_product_attention(split(x), split(x * 0.5), split(x), is_causal=causal)
                .transpose(1, 2)
                .reshape(x.shape)
            )
        ),
    )


def along(d: Draw, wide: int):
    """Convolutions and pools of one dimension, along T."""
    out, mode = d.one(1, 16, 20), d.one("linear", "nearest")
    made = d.one(
        lambda: nn.Conv1d(wide, out, d.one(1, 2, 3, 5), d.one(1, 2), d.one(0, 1, 2), d.one(1, 2)),
        lambda: nn.Conv1d(wide, wide, 3, padding=1, groups=wide),
        lambda: nn.ConvTranspose1d(wide, out, d.one(2, 3, 4), d.one(1, 2), d.one(0, 1)),
        lambda: nn.Sequential(
            nn.Conv1d(wide, out, 3, padding=d.one(1, 2), bias=False), nn.BatchNorm1d(out), nn.ReLU(), nn.MaxPool1d(2)
        ),
        lambda: nn.AvgPool1d(d.one(2, 3)),
        lambda: nn.GroupNorm(1, wide),
        lambda: nn.InstanceNorm1d(wide),
        lambda: nn.AdaptiveMaxPool1d(d.one(1, 3)),
        lambda: Apply(lambda x: F.interpolate(x, scale_factor=2, mode=mode)),
    )()
    return Apply(lambda x, layer: layer(x.transpose(1, 2)).transpose(1, 2), made)


def rows(d: Draw, *shape: int):
    wide = shape[-1]
    some = d.one(1, 3, 10, 16, 17, 33, 64, 70, 129)
    found = [
        lambda: nn.Linear(wide, some, bias=d.chance(0.8)),
        lambda: nn.Linear(wide, some),
        lambda: nn.Sequential(nn.Linear(wide, some), activation(d), nn.Linear(some, wide)),
        lambda: nn.LayerNorm(wide),
        lambda: nn.RMSNorm(wide),
        lambda: Apply(lambda x: x.softmax(-1)),
        lambda: Apply(lambda x: F.log_softmax(x, -1)),
        lambda: Apply(lambda x: x - x.mean(-1, keepdim=True)),
        lambda: Apply(lambda x: x / (x.square().sum(-1, keepdim=True) + 1).sqrt()),
    ]
    if len(shape) == 2:
        found += [
            lambda: attending(d, wide),
            lambda: recurrent(d, wide, d.one(1, 5, 16, 20)),
            lambda: along(d, wide),
            lambda: attending(d, wide),
            lambda: recurrent(d, wide, d.one(1, 5, 16, 20)),
            lambda: along(d, wide),
            lambda: Apply(lambda x: x.mean(1, keepdim=True)),
            lambda: Apply(lambda x: x.cumsum(1)),
            lambda: Apply(lambda x, norm: norm(x.transpose(1, 2)).transpose(1, 2), nn.BatchNorm1d(wide)),
            lambda: Apply(lambda x: x.transpose(1, 2)),
            lambda: Apply(lambda x: x[:, ::2]),
            lambda: Apply(lambda x: x.max(1, keepdim=True)[0] - x),
        ]
    else:
        found += [
            lambda: nn.BatchNorm1d(wide),
            lambda: Apply(lambda x: x @ x.T @ x * 0.1),
            lambda: Apply(lambda x, layer: layer(x, x * 0.5), nn.Bilinear(wide, wide, some)),
            lambda: Apply(lambda x, layer: F.linear(layer(x).tanh(), layer.weight.T), nn.Linear(wide, some)),
            lambda: Apply(lambda x: F.normalize(x)),
            lambda: Apply(lambda x: x.sort(1)[0]),
            lambda: Apply(lambda x, one: F.linear(x, one.weight / (1 + one.weight.norm())), nn.Linear(wide, 9)),
        ]
    return d.one(*found)()


# ---- layers of any shape ---------------------------------------------------------------------------------------------


def activation(d: Draw):
    return d.one(
        nn.ReLU(),
        nn.ReLU(),
        nn.ReLU6(),
        nn.ReLU(inplace=True),
        nn.GELU(),
        nn.SiLU(),
        nn.Sigmoid(),
        nn.Tanh(),
        nn.LeakyReLU(0.1),
        nn.ELU(),
        nn.Softplus(),
        nn.Hardswish(),
        nn.Hardtanh(),
        nn.PReLU(),
        nn.Mish(),
        nn.SELU(),
        nn.GELU("tanh"),
        nn.LogSigmoid(),
        nn.Softsign(),
        nn.Threshold(0.1, 0.2),
        nn.ReLU6(inplace=True),
    )


def arithmetic(d: Draw, *shape: int):
    lead = [d.one(1, n) for n in shape]
    mask = np.random.RandomState(d.randint(0, 99)).rand(*lead) > 0.4
    values = flow.tensor(np.random.RandomState(d.randint(0, 99)).randn(*lead).astype("f4"))
    return d.one(
        Apply(lambda x: x * 1.5 + 0.25),
        Apply(lambda x: x + values),
        Apply(lambda x: values * x),
        Apply(lambda x: flow.where(flow.tensor(mask), x, x * 0.5)),
        Apply(lambda x: (x > 0).float() * x + x),
        Apply(lambda x: x.masked_fill(flow.tensor(mask), 0.5)),
        Apply(lambda x: x.clamp(-1, 1)),
        Apply(lambda x: x.square() - x**3 * 0.1),
        Apply(lambda x: (x.abs() + 0.5).log()),
        Apply(lambda x: 1 - x),
        Apply(lambda x: x.sum(tuple(range(1, x.ndim)), keepdim=True) * 0.1 + x),
        Apply(lambda x: -x),
        Apply(lambda x: x - x.mean()),
        Apply(lambda x: x / (1 + x.abs().amax(-1, keepdim=True))),
        Apply(lambda x: (x * 0.5).exp().clamp(max=3)),
        Apply(lambda x: x.clone().add_(1).mul_(0.5)),
        Apply(lambda x: (x - x.mean(0, keepdim=True)) * (x.var(0, unbiased=False, keepdim=True) + 1).rsqrt()),
        Apply(lambda x: (x * 0.5).sin() + (x * 0.5).cos()),
        Apply(lambda x: flow.maximum(x, values)),
        Apply(lambda x: x.double().mul(0.5).float()),
        Apply(lambda x: x * values[..., :1]),
        Apply(lambda x: flow.stack([x, x * 2]).mean(0)),
        Apply(lambda x: x.reciprocal().clamp(-2, 2)),
        Apply(lambda x: x.double().tanh().to(flow.float32) * 2),
        Apply(lambda x: (x * 4).int().float() + x),
        Apply(lambda x: x * x.detach()),
        Apply(lambda x: flow.where(x > 0, x, x.neg()) / (x.size(0) + 1)),
        Apply(lambda x: (x.double() * values.double()).sum(-1, keepdim=True).float() * 0.1 + x),
        nn.Dropout(d.one(0.1, 0.5)),
        nn.Dropout(0.3),
    )


def branch(d: Draw, make: Callable, shape: tuple):
    """Two branches, joined if their shapes match."""
    a, b = make(d), make(d)
    axis = 1 if len(shape) > 1 else -1
    return d.one(
        Apply(lambda x, a: x + a(x), a),
        Apply(lambda x, a, b: flow.cat([a(x), b(x)], axis), a, b),
        Apply(lambda x, a: flow.cat([x, a(x)], axis), a),
        Apply(lambda x, a, b: a(x) * b(x), a, b),
        Apply(lambda x, a: x - a(x) * x, a),
        Apply(lambda x, a, b: a(x) + b(x), a, b),
        Apply(lambda x, a: a(x) + a(x), a),
        Apply(lambda x, a, b: flow.cat([x, a(x), b(x), x], axis), a, b),
    )


def layer(d: Draw, shape: tuple, deep: int = 0):
    """A random layer for values of this shape, without the batch."""
    if deep < 2 and d.chance(0.2):
        return branch(d, lambda d: layer(d, shape, deep + 1), shape)
    if len(shape) == 3:
        kinds = {
            chain: 6,
            conv: 3,
            depthwise: 2,
            transposed: 0.7,
            norm: 2,
            pool: 2,
            gate: 0.7,
            shifted: 1,
            resized: 0.7,
        }
        made = d.choices([*kinds], [*kinds.values()])[0]
        found = d.choices([lambda: made(d, *shape), lambda: activation(d), lambda: arithmetic(d, *shape)], [6, 2, 1])[0]
    else:
        found = d.choices([lambda: rows(d, *shape), lambda: activation(d), lambda: arithmetic(d, *shape)], [5, 2, 1])[0]
    return found()


def turned(d: Draw, shape: tuple):
    """Convert images to rows."""
    if len(shape) == 3:
        return d.one(
            nn.Flatten(),
            Apply(lambda x: x.flatten(2).transpose(1, 2)),
            Apply(lambda x: x.mean((2, 3))),
            Apply(lambda x: x.flatten(2)),
        )
    return d.one(nn.Flatten(), Apply(lambda x: x[:, -1]), Apply(lambda x: x.mean(1)))


# ---- models ----------------------------------------------------------------------------------------------------------


def graphs_of(case: Case, model: nn.Module, more: bool = False) -> tuple[type[nn.Graph], type[nn.Graph]]:
    """Graphs of a training step and of a prediction. more: training also returns other values of the output."""

    class Training(nn.Graph):
        def __init__(self, optimizer, scheduler=None):
            super().__init__()
            self.model = model
            self.config.keep_gradients(case.gradients)
            self.config.set_gradient_accumulation_steps(case.accumulated)
            self.add_optimizer(optimizer, lr_sch=scheduler)

        def build(self, x, y):
            out = self.model(x)
            loss = case.loss(out, y)
            loss.backward()
            return (loss, out, {"sum": out.detach().sum(), "first": out[:, 0]}) if more else (loss, out)

    class Predicting(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model

        def build(self, x, *labels):
            return self.model(x)

    return Training, Predicting


class Case:
    """model: the layers.  x, y: one batch for each step.  loss(out, y).  optimizer(parameters).  graph(): for training.

    Everything is determined by the seed.
    """

    def __init__(self, seed: object, small: bool = False):
        self.d = d = Draw(f"model {seed}")
        self.seed, self.small = seed, small
        flow.manual_seed(d.randint(0, 1 << 30))
        self.batch = d.one(0, 1, 2, 3, 7, 7, 16, 33) if d.chance(0.9) else d.randint(1, 40)
        kind = d.choices(["images", "rows", "words", "vectors"], [12, 3, 1, 2])[0]
        size = [d.randint(1, 33), d.randint(1, 33)] if d.chance(0.5) else [d.one(7, 8, 14, 16, 28, 32)] * 2
        self.shape = {
            "images": (d.one(1, 3, wide(d)), *size),
            "rows": (d.randint(1, 33), wide(d)),
            "vectors": (d.one(1, 7, 64, 130, 300),),
            "words": (d.randint(1, 20),),
        }[kind]
        self.words = kind == "words"
        self.random = np.random.RandomState(d.randint(0, 1 << 30))
        self.model = nn.Sequential()
        rest = 2 if self.batch < 2 else self.batch
        shape = self.grow(nn.Embedding(30, d.one(8, 16, 33)), self.shape, rest) if self.words else self.shape
        for _ in range(d.randint(2, 9)):
            shape = self.grow(layer(d, shape), shape, rest)
        while len(shape) > 1:
            shape = self.grow(turned(d, shape), shape, rest)
        shape = self.grow(nn.Linear(shape[0], CLASSES), shape, rest)
        for p in self.model.parameters():
            if p.ndim == 1:
                p.data = p.data + flow.tensor(self.random.uniform(-0.2, 0.2, p.shape).astype("f4"))
        self.kind = d.one("entropy", "entropy", "square", "mean", "bce", "nll")
        self.optimizing = d.one(
            lambda p: flow.optim.SGD(p, lr=0.05),
            lambda p: flow.optim.SGD(p, lr=0.05, momentum=0.9),
            lambda p: flow.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
            lambda p: flow.optim.SGD(p, lr=0.05, weight_decay=0.1),
            lambda p: flow.optim.Adam(p, lr=1e-3, eps=1e-3),
            lambda p: flow.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.1),
            lambda p: flow.optim.AdamW(p, lr=1e-3, eps=1e-3),
            lambda p: flow.optim.SGD([{"params": list(p), "clip_grad_max_norm": 0.5}], lr=0.05),
        )
        self.accumulated = d.one(1, 1, 1, 1, 2) if self.batch else 1
        self.gradients, self.spoiled = d.chance(0.7), d.chance(0.1)
        self.start = {k: v.numpy().copy() for k, v in self.model.state_dict().items()}
        self.batches = [self.drawn() for _ in range(3)]

    def grow(self, made: nn.Module, shape: tuple, batch: int) -> tuple:
        """Append a layer if it accepts the shape; return the shape after it."""
        x = (
            flow.tensor(self.random.randint(0, 30, (batch, *shape)))
            if isinstance(made, nn.Embedding)
            else (flow.tensor(self.random.randn(batch, *shape).astype("f4")))
        )
        try:
            with flow.no_grad():
                y = made(x)
        except MinflowError:
            return shape
        if y.ndim < 2 or y.shape[0] != batch or 0 in y.shape or y.numel() > LARGEST * 8 or y.dtype != flow.float32:
            return shape
        self.model.append(made)
        return tuple(y.shape[1:])

    def drawn(self):
        batch = self.batch * self.accumulated
        shape = (batch, *self.shape)
        if self.words:
            return self.random.randint(0, 30, shape), self.random.randint(0, CLASSES, (batch,))
        x = self.random.randn(*shape).astype("f4")
        if self.spoiled and x.size:
            x.reshape(-1)[self.random.randint(0, x.size, 2)] = self.random.choice([np.nan, np.inf, -np.inf], 2)
        return x, self.random.randint(0, CLASSES, (batch,))

    def loss(self, out, y):
        if self.kind == "entropy":
            return F.cross_entropy(out, y)
        if self.kind == "nll":
            return F.nll_loss(F.log_softmax(out, 1), y)
        target = F.one_hot(y, CLASSES).float()
        if self.kind == "bce":
            return F.binary_cross_entropy_with_logits(out, target)
        return F.mse_loss(out, target) if self.kind == "square" else (out * target).mean()

    def fresh(self) -> None:
        """Reset the model and the generator."""
        self.model.load_state_dict({k: flow.tensor(v.copy()) for k, v in self.start.items()})
        for p in self.model.parameters():
            p.grad = None
        flow.manual_seed(7)

    def graph(self, train: bool = True):
        training, predicting = graphs_of(self, self.model)
        self.fresh()
        self.model.train(train)
        return training(self.optimizing(self.model.parameters())) if train else predicting()

    def tensors(self, k: int):
        return [flow.tensor(a) for a in self.batches[k]]

    def results(self, train: bool = True, tasks: int = 2) -> dict[str, np.ndarray]:
        """Results of some steps, and the state of the model after them."""
        graph = self.graph(train)
        found = {}
        for k in range(tasks):
            out = graph(*self.tensors(k))
            found.update({f"out {k}.{i}": a.numpy().copy() for i, a in enumerate(out if train else [out])})
            if not k and train and self.gradients:
                found.update({f"gradient of {name}": g.numpy().copy() for name, g in graph.grads.items()})
        found.update({k: v.numpy().copy() for k, v in self.model.state_dict().items()})
        return found

    def eager(self) -> dict[str, np.ndarray]:
        self.fresh()
        self.model.train()
        x, y = self.tensors(0)
        out = self.model(x)
        loss = self.loss(out, y)
        loss.backward()
        found = {"loss": loss.numpy().copy(), "out": out.detach().numpy().copy()}
        found.update(
            {
                f"gradient of {name}": p.grad.numpy().copy()
                for name, p in self.model.named_parameters()
                if p.grad is not None
            }
        )
        return found

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: input {(self.batch, *self.shape)}, {self.kind}, accumulated {self.accumulated}, "
            f"spoiled {self.spoiled}\n{self.model}"
        )


# ---- comparisons -----------------------------------------------------------------------------------------------------


def reference_result(node, inputs: list) -> list[np.ndarray]:
    """NumPy's result for a node."""
    found = select(node.op, HOST_PLATFORMS).call(*inputs, **node.attrs)
    return list(found) if node.op.many else [found]


def read_numbers(inputs: list) -> int:
    return max([np.size(x) for x in inputs], default=0)


class Spoiled:
    """NumPy with uninitialized memory filled with NaN."""

    def __getattr__(self, name: str):
        return getattr(np, name)

    def empty(self, shape, dtype: object = float) -> np.ndarray:
        return spoiled(np.empty(shape, dtype))


def spoiled(x: np.ndarray) -> np.ndarray:
    x.reshape(-1).view(np.uint8)[...] = 0xFF
    return x


def spoil_scratch() -> None:
    """Fill this thread's scratch memory of tasks with NaN."""
    task_scheduler.THREAD_SCRATCH.grow(max(task_scheduler.THREAD_SCRATCH.bytes, 1 << 22))
    spoiled(task_scheduler.THREAD_SCRATCH.memory)


def checked(case: Case, train: bool) -> list[str]:
    """Faults of one step, operation by operation."""
    from minflow.compiler import plan_cache
    from minflow.compiler.buffer_assignment import Layout
    from tests.platforms.test_checked_tasks import Guarded, check_operations, near

    case.accumulated, bad = 1, []
    before, dying = plan_cache.Plan, Layout.dying
    plan_cache.Plan, Layout.dying = Guarded, lambda *_: None
    tasks.np = Spoiled()
    spoil_scratch()
    try:
        compiled.use()
        graph = case.graph(train)
        x, y = [t[: max(case.batch, 2)] for t in case.tensors(0)]  # batch norm: a size that grew with 2 refuses 1
        graph(x, y)
    finally:
        plan_cache.Plan, Layout.dying = before, dying
        tasks.np = np

    def close(wanted, got, node, pixels, read, inputs, i):
        """As `near`, or as close as NumPy is when the last bits of inputs change. An Inf times the zeros of unused
        lanes is NaN, so blocked values with Inf are not compared.
        """
        if pixels and wanted.ndim == 3:
            wanted, got = wanted[:, :pixels], got[:, :pixels]
        finite = np.isfinite(wanted)
        if case.spoiled or not finite.all():
            if not (pixels or "conv" in node.op.name or np.array_equal(finite, np.isfinite(got))):
                bad.append(f"{node.op}: other numbers are finite: {node}")
            return
        try:
            near(wanted, got, node, None, read * max(1, (read_numbers(inputs) / max(wanted.size, 1)) ** 0.5 / 10))
        except AssertionError as error:
            moved = [wanted]
            if wanted.dtype.kind == "f" and "max_pool" not in node.op.name:
                with np.errstate(all="ignore"):
                    moved += [
                        reference_result(
                            node, [rounded(a, case.random) if isinstance(a, np.ndarray) else a for a in inputs]
                        )[i]
                        for _ in range(4)
                    ]
            change = np.max([np.abs((m[:, :pixels] if pixels and m.ndim == 3 else m) - wanted) for m in moved], 0)
            allowed = 1e-5 * np.abs(wanted).max(initial=0) + 30 * np.maximum(change, np.median(change))
            if not (np.abs(got - wanted) <= allowed).all():
                bad.append(f"{node.op}: {' '.join(str(error).split())[:700]}")

    for part in graph._last.parts:
        spoil_scratch()
        try:
            check_operations(part.plan, [x.array, y.array], close)
        except AssertionError as error:
            bad.append(f"guard: {str(error)[:600]}")
    return bad


def compared(case: Case, train: bool) -> list[str]:
    """Differences between compiled kernels and NumPy, and between thread counts."""
    compiled.use(False)
    reference_result = case.results(train)
    compiled.use()
    flow.set_num_threads(1)
    fast = case.results(train)
    Settings.threads = case.d.one(2, 3, 4)  # of compiled kernels: BLAS has other bits with other thread counts
    again = case.results(train)
    Settings.threads = 1
    bad = [f"threads: {k} differs" for k in fast if not np.array_equal(fast[k], again[k], equal_nan=True)]
    return bad + differences(reference_result, fast, case, functools.partial(case.results, train))


def noisy(case: Case, results: Callable[[], dict]) -> dict[str, np.ndarray]:
    """Results when the last bits of inputs and parameters change."""
    batches, start = case.batches, case.start
    case.batches = [(rounded(x, case.random), y) for x, y in batches]
    case.start = {k: rounded(v, case.random) for k, v in start.items()}
    found = results()
    case.batches, case.start = batches, start
    return found


def rounded(x: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """The same with other last bits."""
    return x if x.dtype.kind != "f" else (x * (1 + 1e-6 * random.randn(*x.shape))).astype(x.dtype)


def differences(reference_result: dict, fast: dict, case: Case, results: Callable[[], dict]) -> list[str]:
    """Differences of compiled results beyond rounding, and beyond NumPy's own when other last bits cross a kink. Models
    that diverge, and those with NaN or Inf, are not compared.
    """
    if reference_result.keys() != fast.keys():
        return [f"names {reference_result.keys() ^ fast.keys()}"]
    floats = [name for name, x in reference_result.items() if x.dtype.kind == "f"]
    bad = [
        f"{name} differs"
        for name in reference_result.keys() - floats
        if not np.array_equal(reference_result[name], fast[name])
    ]
    sizes = [np.abs(reference_result[name]).max(initial=0) for name in floats]
    largest = max(sizes)
    if case.spoiled or not all([size < 1e3 for size in sizes]):
        return bad
    moved: list[dict] = []
    of_gradients = max(
        [np.abs(reference_result[k]).max(initial=0) for k in floats if k.startswith("gradient")], default=0
    )
    for name in floats:
        wanted, got = reference_result[name], fast[name]
        error, scale = np.abs(wanted - got).max(initial=0), np.abs(wanted).max(initial=0)
        allowed = 2e-3 * scale + 3e-5 * (of_gradients if name.startswith("gradient") else largest) + 1e-6
        if error <= allowed:
            continue
        if not moved:
            compiled.use(False)
            moved = [noisy(case, results) for _ in range(8)]
            compiled.use()
        change = max([np.abs(wanted - one[name]).max(initial=0) for one in moved])
        if not error <= allowed + 10 * change:
            bad.append(f"{name} differs by {error:.3g} of {scale:.3g}, and by {change:.3g} with other last bits")
    return bad


def eager(case: Case) -> list[str]:
    compiled.use(False)
    reference_result = case.eager()
    compiled.use()
    fast = case.eager()
    return differences(reference_result, fast, case, case.eager)


def findings(seed: object) -> list[str]:
    """All faults of the models of this seed."""
    thresholds(small=int(str(seed).split()[-1]) % 2 == 0)
    compiled.use(False)
    case = Case(seed)
    found = []
    for what, check in (
        ("checked", lambda: checked(case, True)),
        ("compared", lambda: compared(case, True)),
        ("predicting", lambda: checked(case, False) + compared(case, False)),
        ("eager", lambda: eager(case)),
    ):
        if what == "checked" or what == "compared" or not found:
            try:
                found += [f"{what}: {line}" for line in check()]
            except MinflowError:
                compiled.use(False)
                try:
                    case.eager() if what == "eager" else case.results(what != "predicting")
                except MinflowError:
                    continue  # the same without compiled kernels
                found.append(f"{what}: {traceback.format_exc()}")
            except Exception:
                found.append(f"{what}: {traceback.format_exc()[-1500:]}")
    return found


def thresholds(small: bool) -> None:
    """small: also block and fuse what is too small to gain by it."""
    from minflow.platforms.compiled.kernels import gemm
    from minflow.platforms.compiled.passes import elementwise_fusion, gemm_epilogue, layout

    for module, name, usual in (
        (layout, "LEAST", 1 << 20),
        (gemm_epilogue, "LEAST", 1 << 15),
        (gemm_epilogue, "NARROW", 16),
        (elementwise_fusion, "SMALL", 1 << 12),
        (gemm, "LEAST", 1 << 24),
    ):
        setattr(module, name, 1 if small else usual)


def main(module: str = "tests.fuzz.models", findings: Callable = findings, kind: type[Case] = Case) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first model; the others count on from it")
    parser.add_argument("--each", type=int, default=20, help="models in one process")
    parser.add_argument("--out", type=Path, default=None, help="a file for what is found")
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args()
    if options.here:
        faulthandler.enable()
        warnings.simplefilter("ignore", MinflowWarning)
        count = 0
        for seed in range(options.seed, options.seed + options.models):
            print(f"seed {seed}", flush=True)
            found = findings(seed)
            count += bool(found)
            if found:
                compiled.use(False)
                print(f"FOUND in {kind(seed)}", *found[:6], "", sep="\n", flush=True)
        return 1 if count else 0
    bad, seed, end = 0, options.seed, options.seed + options.models
    while seed < end:
        many = min(options.each, end - seed)
        command = [sys.executable, "-m", module, "--here", "--models", str(many), "--seed", str(seed)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60 * many)
            code, text = done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired as error:
            code, text = -1000, (error.stdout or b"").decode()
        last = [int(line.split()[1]) for line in text.splitlines() if line.startswith("seed ") and line[5:].isdigit()]
        seed = last[-1] + 1 if last else seed + many
        if code:
            bad += 1
            lines = text if code in (0, 1) else text + f"CRASHED with {code} at seed {seed - 1}\n"
            print(lines, flush=True)
            if options.out:
                with options.out.open("a", encoding="utf-8") as file:
                    file.write(lines)
        print(f"up to {seed}: {bad} processes found something", file=sys.stderr, flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
