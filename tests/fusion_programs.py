"""Programs whose ops can be fused: random ones, and parts of models."""

import numpy as np

import minflow as flow
from minflow import nn

PLAIN = ["tanh", "sigmoid", "erf", "relu", "relu6", "abs", "neg", "square", "exp", "log", "sqrt", "rsqrt", "reciprocal"]
PAIRS = ["add", "sub", "mul", "div", "maximum", "minimum", "where"]


def bounded(x):
    """Keep values in a range where rounding errors do not grow."""
    return flow.tanh(x * 0.5)


def step(rng, values, mask):
    """Apply a random op to existing values."""
    x = values[rng.integers(len(values))]
    if rng.random() < 0.4:
        name = PLAIN[rng.integers(len(PLAIN))]
        if name in ("log", "sqrt", "rsqrt", "reciprocal"):
            return getattr(flow, name)(flow.square(x) + 0.5)
        function = nn.functional.relu6 if name == "relu6" else getattr(flow, name)
        return function(bounded(x)) if name == "exp" else function(x)
    y = values[rng.integers(len(values))] if rng.random() < 0.8 else float(np.round(rng.standard_normal(), 2))
    name = PAIRS[rng.integers(len(PAIRS))]
    if name == "where":
        return flow.where(mask, x, y)
    if name == "div":
        return bounded(x) / (flow.square(y) + 0.5 if isinstance(y, flow.Tensor) else 2.5)
    if name in ("maximum", "minimum") and isinstance(y, float):
        return flow.relu(x)
    return bounded(getattr(flow, name)(x, y))


def random_program(seed, rows_too, length=12):
    """Return a program of (x, row, column, number, mask).

    rows_too: it may also contain means, sums and softmax along the last axis.
    """

    def program(x, row, column, number, mask):
        rng, values = np.random.default_rng(seed), [x, row, column, number, x * 0.5]
        shown = []
        for _ in range(length):
            if rows_too and rng.random() < 0.25:
                value = [v for v in values if v.shape == x.shape][-1]
                value = [
                    lambda v: v.mean(-1, keepdim=True),
                    lambda v: bounded(v.sum(-1, keepdim=True)),
                    lambda v: flow.softmax(v, dim=-1),
                    lambda v: flow.log_softmax(v, dim=-1),
                    lambda v: v.reshape(-1, v.shape[-1]).reshape(v.shape) * 2,
                ][rng.integers(5)](value)
            else:
                value = step(rng, values, mask)
            values.append(value)
            if rng.random() < 0.15:
                shown.append(value)
        last = [v for v in values if v.shape == x.shape][-1]
        over_rows = [last.reshape(-1, last.shape[-1]).sum(0)] if rows_too else []
        return [*shown, last, *over_rows]

    return program


def inputs_of(shape, seed=0):
    """Return the arguments of a random program."""
    rng = np.random.default_rng(seed)
    x, row = rng.standard_normal(shape), rng.standard_normal(shape[-1])
    column, number = rng.standard_normal((*shape[:-1], 1)), rng.standard_normal(())
    return [np.asarray(a, "f4") for a in (x, row, column, number)] + [rng.random(shape[-2:]) < 0.5]


class Decoder(nn.Module):
    """Two GPT layers: layer norm, attention, GELU."""

    def __init__(self, width=32, heads=2, words=17, length=12):
        super().__init__()
        self.heads, self.tokens = heads, nn.Embedding(words, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(5)])
        self.qkv = nn.ModuleList([nn.Linear(width, 3 * width) for _ in range(2)])
        self.up = nn.ModuleList([nn.Linear(width, 4 * width) for _ in range(2)])
        self.down = nn.ModuleList([nn.Linear(4 * width, width) for _ in range(2)])
        self.register_buffer("mask", flow.tril(flow.ones(length, length)) == 0)

    def forward(self, x):
        h = self.tokens(x)
        n, length, width = h.shape
        for i in range(2):
            q, k, v = self.qkv[i](self.norms[2 * i](h)).split(width, 2)
            q, k, v = (t.reshape(n, length, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v))
            scores = (q @ k.transpose(-2, -1)) / 4
            weights = flow.softmax(scores.masked_fill(self.mask, -1e9), dim=-1)
            h = h + (weights @ v).transpose(1, 2).reshape(n, length, width)
            h = h + self.down[i](nn.functional.gelu(self.up[i](self.norms[2 * i + 1](h))))
        return self.norms[4](h) @ self.tokens.weight.T


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 64), nn.Sigmoid(), nn.BatchNorm1d(64), nn.Linear(64, 10)
        )

    def forward(self, x):
        return self.layers(x)


def training(name, passes, optimizer=flow.optim.AdamW, lr=1e-2):
    """Return the training graph of a model, compiled with these passes, and a batch."""
    flow.manual_seed(0)
    rng = np.random.default_rng(0)
    if name == "decoder":
        model, x = Decoder(), flow.tensor(rng.integers(0, 17, (3, 12)))
        y = flow.tensor(rng.integers(0, 17, 36))
    else:
        model, x, y = (
            Dense(),
            flow.tensor(rng.standard_normal((24, 40)).astype("f4")),
            flow.tensor(rng.integers(0, 10, 24)),
        )
    updates = optimizer(model.parameters(), lr=lr)

    class Training(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(updates)

        def build(self, x, y):
            logits = self.model(x)
            loss = nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), y)
            loss.backward()
            return loss

    graph = Training()
    graph.passes = list(passes)
    return graph, (x, y)
