"""Functions and methods of several ops: onnxruntime gives the same results."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.functions.creation import from_numpy
from tests.onnx.helpers import run, traced_model

F = nn.functional
X = np.random.default_rng(0).standard_normal((3, 4, 5)).astype("float32")
I = np.array([[3, 0, 2], [1, 1, 0]])
PLACES = flow.zeros(3, 1, 5).long()


def written(x):
    y = x.clone()
    y[:, 0] = 1
    y[0, 1:3, ::2] *= 2
    y[y > 1] = 0.5
    y += 1
    return [y]


CASES = {
    "index": (X, lambda x: [x[0], x[:, 1:3], x[..., None, -1], x[:, ::2, 1:], x[[0, 2]], x[:, [1, 0]],
                            x[flow.tensor([0, 1]), flow.tensor([2, 3])], x.index_select(2, flow.tensor([4, 0]))]),
    "write": (X, written),
    "masks": (X, lambda x: [flow.where(x > 0, x, 0.0), x.masked_fill(x > 0, 1.5), (x > 0) & (x < 1), ~(x > 0)]),
    "scatter": (X, lambda x: [x.scatter(1, PLACES, 9.0), x.index_add(1, flow.tensor([0, 2]), x[:, :2]),
                              x.take_along_dim(x.argsort(1), 1), x.index_fill(0, flow.tensor([1]), 2.0)]),
    "products": (X, lambda x: [flow.einsum("abc,abd->acd", x, x), x @ x.mT, flow.outer(x[0, 0], x[0, 0]),
                               flow.cdist(x, x), flow.tensordot(x, x, ([1, 2], [1, 2]))]),
    "join": (X, lambda x: [flow.stack([x, x], 1), *x.chunk(2, 1), *x.unbind(0), x.repeat(2, 1, 1), x.tile((2,)),
                           x.flip(0), x.roll(2, 1), x.rot90(), *flow.meshgrid(x[0, 0], x[0, 1])]),
    "reduce": (X, lambda x: [x.std(), x.norm(), x.logsumexp(1), *x.max(1), *x.topk(2, 1), x.argsort(2),
                             x.kthvalue(2, 1)[0], x.quantile(0.3), x.cumsum(2), x.mean((0, 1)), x.amax((1, 2))]),
    "integers": (I, lambda i: [F.one_hot(i, 5), flow.eye(4)[i], i.float().log1p(), i / 2, i // 2, i % 2, -i // 2,
                               -i % 3, i**2, 2**i, i & 1, i.clamp(min=1), i.clamp(max=2), i.clamp(1, 2)]),
    "round": (X, lambda x: [x.round(), x.floor(), x.trunc(), x.frac(), x.remainder(0.7), x.fmod(0.7), x // 0.7,
                            x.int(), x.long().float(), x.double(), x.half()]),
    "layers": (X, lambda x: [F.gelu(x), F.silu(x), F.softplus(x), F.hardswish(x), F.elu(x), F.mish(x), F.normalize(x),
                             F.glu(x[..., :4]), F.interpolate(x, scale_factor=2), F.pad(x, (1, 2))]),
    "matrices": (X, lambda x: [flow.tril(x), flow.diag(x[0, 0]), flow.diagonal(x, 0, 1, 2), x.unfold(2, 3, 1),
                               flow.arange(5) + x, flow.linspace(0, 1, 5) * x]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_functions(name):
    x, function = CASES[name]
    want = [t.numpy() for t in function(from_numpy(x.copy()))]
    for a, b in zip(run(traced_model(function, [from_numpy(x)]), x), want, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * max(abs(b).max(), 1) if b.dtype.kind == "f" else 0)
