"""The public functions against PyTorch: results, dtypes, gradients of the sum of squares. Skipped without PyTorch."""

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import MinflowError
from tests.pytorch import needs_torch, torch

pytestmark = needs_torch

rng = np.random.default_rng(0)
X, Y = [rng.standard_normal((3, 4)).astype("float32") for _ in range(2)]
V = rng.standard_normal(4).astype("float32")
I = rng.integers(0, 5, (3, 4))
M = X > 0
B, C = rng.standard_normal((2, 3, 4)).astype("float32"), rng.standard_normal((2, 4, 5)).astype("float32")
D = rng.standard_normal((2, 1, 3, 4)).astype("float32")
S = np.array(2.5, "float32")

PROGRAMS = {
    # arithmetic and comparison
    "add": (lambda F, x, y: (F.add(x, y, alpha=2), x + 1, 1 + x, x + y.T.reshape(3, 4)), X, Y),
    "sub": (lambda F, x, y: (F.sub(x, y, alpha=0.5), 5 - x, x - y[0]), X, Y),
    "div": (
        lambda F, x, y: (x / y, 2 / y, F.div(x, y, rounding_mode="floor"), F.div(x, y, rounding_mode="trunc")),
        X,
        Y,
    ),
    "div of integers": (
        lambda F, i: (i / 2, F.div(i - 2, 3, rounding_mode="trunc"), F.div(i - 2, 3, rounding_mode="floor"), i // 3),
        I,
    ),
    "promotion": (lambda F, i, m: (i + 1.5, m + 1, m * 1.5, i * m, i + i.to(F.uint8), i > 1.5), I, M),
    "zero-d promotion": (lambda F, x, s: (x * s.double(), x.double() * s, (x > 0) * s), X, S),
    "pow": (lambda F, x, y: (x**3, x**-1, x**2, x**0, 2**x, F.pow(F.abs(x), 0.5), F.pow(F.abs(x), y)), X, Y),
    "pow of integers": (lambda F, i: (i**2, 2**i, i**0.5), I),
    "pow of integers to negative": (lambda F, i: i**-1, I),
    "remainder": (lambda F, x, y: (F.remainder(x, y), F.fmod(x, y), x % 0.7), X, Y),
    "remainder of integers": (lambda F, i: ((i - 2) % 3, F.fmod(i - 2, 3)), I),
    "clamp": (lambda F, x: (F.clamp(x, -0.5, 0.5), F.clamp(x, min=0), x.clamp(max=0.3), F.clip(x, 0, 1)), X),
    "clamp by tensors": (lambda F, x, y: (F.clamp(x, min=y), F.clamp(x, y - 1, y + 1)), X, Y),
    "clamp of integers": (lambda F, i: (F.clamp(i, min=2), F.clamp(i, min=1.5), F.clamp(i, 1, 3)), I),
    "where": (
        lambda F, m, x, y: (F.where(m, x, y), F.where(m, x, 0), F.where(m, 0.0, x), F.where(m, x, y[0])),
        M,
        X,
        Y,
    ),
    "where alone": (lambda F, m: F.where(m), M),
    "where promotes": (lambda F, m, i: (F.where(m, 1.5, i), F.where(m, i, 0)), M, I),
    "masked_fill": (lambda F, x, m: (x.masked_fill(m, 0), x.masked_fill(m, float("-inf")).exp()), X, M),
    "lerp": (lambda F, x, y: (F.lerp(x, y, 0.3), F.addcmul(x, x, y, value=2), F.addcdiv(x, y, F.abs(x) + 1)), X, Y),
    "maximum": (lambda F, x, y: (F.maximum(x, y), F.minimum(x, x), F.maximum(x, F.round(x))), X, Y),
    "functions": (
        lambda F, x: (x.abs(), F.sign(x), F.erf(x), F.rsqrt(x.abs()), F.square(x), F.tan(x), F.expm1(x), x.sigmoid()),
        X,
    ),
    "functions of integers": (
        lambda F, i: (F.log(i + 1), F.sqrt(i), F.exp(i), F.sigmoid(i), F.floor(i), F.ceil(i), F.trunc(i)),
        I,
    ),
    "rounding": (lambda F, x: (F.round(x), F.round(x, decimals=1), x.floor(), x.ceil(), x.trunc()), X * 10),
    "comparisons": (lambda F, x, y: (x == y, x != y, x < y, x <= 0, x > 0, x >= y, F.isclose(x, x + 1e-9)), X, Y),
    "logic": (lambda F, x, m: (F.logical_and(x, m), F.logical_or(x, m), F.logical_xor(x, m), F.logical_not(m)), X, M),
    "bits": (lambda F, i, m: (i & 3, i | 1, i ^ 2, ~i, m & ~m, m | m, m ^ m), I, M),
    "infinities": (lambda F, x: (F.isnan(x / 0), F.isinf(x / 0), F.isfinite(F.log(x))), X),
    # reduction
    "sum": (
        lambda F, x: (x.sum(), x.sum(0), x.sum((0, 1)), x.sum(1, keepdim=True), F.sum(x, dim=-1), F.sum(x, axis=1)),
        X,
    ),
    "sum of integers": (lambda F, i, m: (i.sum(), i.sum(0), m.sum(), i.prod(1), m.sum(1)), I, M),
    "mean": (lambda F, x: (x.mean(), x.mean(1), F.mean(x, (0, 1), keepdim=True)), X),
    "mean of integers": (lambda F, i: i.mean(), I),
    "prod": (lambda F, x: (x.prod(), x.prod(1), F.clamp(x, min=0).prod(0)), X),
    "max": (lambda F, x, y: (F.max(x), *F.max(x, 1), *F.max(x, dim=0, keepdim=True), *F.min(x, -1), F.max(x, y)), X, Y),
    "amax": (lambda F, x: (F.amax(x, 1), F.amax(x), F.amin(x, (0, 1)), F.amax(F.round(x), 1)), X),
    "argmax": (lambda F, x: (F.argmax(x), F.argmax(x, 1), x.argmin(0, keepdim=True)), X),
    "ties": (lambda F, i: (i.argmax(1), i.max(1)[1]), I * 0),
    "var": (
        lambda F, x: (
            x.var(),
            x.var(1),
            x.var(0, unbiased=False),
            x.std(1, keepdim=True),
            F.var(x, dim=1, correction=0),
        ),
        X,
    ),
    "std of equal numbers": (lambda F, x: (x * 0).std(), X),
    "norm": (
        lambda F, x: (x.norm(), x.norm(p=1), x.norm(2, 1), x.norm(float("inf")), F.norm(x, p=3, dim=0), (x * 0).norm()),
        X,
    ),
    "logsumexp": (lambda F, x: (F.logsumexp(x, 1), F.logsumexp(x, 0, keepdim=True), F.logsumexp(x * 1000, (0, 1))), X),
    "softmax": (lambda F, x: (F.softmax(x, 1), F.log_softmax(x, dim=0)), X),
    "cumsum": (lambda F, x: (x.cumsum(1), F.cumsum(x, dim=0)), X),
    "any and all": (lambda F, m: (m.any(), m.all(1), F.any(m, 0), F.count_nonzero(m)), M),
    "sort": (lambda F, x: (*F.sort(x, 1, descending=True), *x.sort(0), F.argsort(x, dim=1)), X),
    "sort is stable": (lambda F, i: (*i.sort(dim=0, stable=True), *i.sort(dim=1, descending=True, stable=True)), I),
    "topk": (lambda F, x: (*F.topk(x, 2), *x.topk(2, 0, largest=False)), X),
    "median": (lambda F, x: (x.median(), x.median(1)[0], x.median(0)[1]), X),
    "zero-d": (
        lambda F, s: (
            s.sum(0),
            s.max(),
            s.cumsum(0),
            s.squeeze(),
            s.unsqueeze(0),
            s.flatten(),
            s.argmax(),
            *F.max(s, 0),
        ),
        S,
    ),
    # shape
    "reshape": (lambda F, x: (x.reshape(2, 6), x.reshape(-1), x.T.reshape(3, 4), x.view(4, 3), x.flatten()), X),
    "view of a transposed": (lambda F, x: x.T.view(12), X),
    "flatten": (lambda F, b: (b.flatten(1), b.unflatten(2, (2, 2)), F.flatten(b, 0, 1), b.flatten(-2)), B),
    "squeeze": (
        lambda F, d: (d.squeeze(), d.squeeze(1), d.squeeze(0), d.unsqueeze(-1), d.unsqueeze(0), d.squeeze((0, 1))),
        D,
    ),
    "transpose": (lambda F, b: (b.transpose(0, 2), b.permute(2, 0, 1), b.swapaxes(0, 1), b.mT, F.movedim(b, 0, -1)), B),
    "movedim": (lambda F, b: (F.movedim(b, (0, 1), (2, 0)), F.movedim(b, (2, 0), (0, 1))), B),
    "expand": (
        lambda F, x: (
            x.unsqueeze(1).expand(-1, 2, -1),
            x.repeat(2, 3),
            x.tile(2),
            F.tile(x, (2, 1, 1)),
            x.expand(5, 3, 4),
        ),
        X,
    ),
    "cat": (
        lambda F, x, y: (F.cat([x, y]), F.cat((x, y), dim=1), F.stack([x, y]), F.stack([x, y], -1), F.vstack([x, y])),
        X,
        Y,
    ),
    "cat promotes": (lambda F, x, i: F.cat([x, i]), X, I),
    "split": (
        lambda F, x: (*F.split(x, 3, 1), *x.split([1, 2], 0), *x.chunk(3, 1), *x.unbind(1), x.narrow(1, 1, 2)),
        X,
    ),
    "flip": (lambda F, x: (x.flip(0), F.flip(x, [0, 1]), x.roll(1, 0), F.roll(x, (1, -1), (0, 1)), F.roll(x, 3)), X),
    "meshgrid": (lambda F, v: (*F.meshgrid(v, v[:3], indexing="ij"), *F.meshgrid(v, v[:3], indexing="xy")), V),
    "repeat_interleave": (lambda F, x: (F.repeat_interleave(x, 2, dim=1), F.repeat_interleave(x, 2)), X),
    "triangles": (lambda F, x: (x.tril(), F.triu(x, 1), F.diagonal(x), F.diagonal(x, 1), F.diag(x), F.trace(x)), X),
    "diag of a vector": (lambda F, v: (F.diag(v), F.diag(v, -1)), V),
    # indexing
    "gather": (lambda F, x, i: (F.gather(x, 1, i % 4), x.gather(0, i[:2] % 3)), X, I),
    "scatter": (lambda F, x, i: (x.scatter(1, i[:, :1] % 4, 1.5), x.scatter(1, i[:, :1] % 4, x[:, :1] * 2)), X, I),
    "scatter_add": (lambda F, x, i, y: (x.scatter_add(0, i % 3, y), x.scatter_add(1, i % 4, y * 2)), X, I, Y),
    "index_select": (lambda F, x: F.index_select(x, 1, F.tensor([0, 2, 2])), X),
    "index_add": (lambda F, x, y: (x.index_add(0, F.tensor([0, 2, 0]), y), F.take(x, F.tensor([0, 5, -1]))), X, Y),
    "masked_select": (lambda F, x, m: F.masked_select(x, m), X, M),
    "nonzero": (lambda F, i: (F.nonzero(i), F.argwhere(i), *F.nonzero(i, as_tuple=True)), I),
    "take_along_dim": (lambda F, x: F.take_along_dim(x, F.argsort(x, 1), 1), X),
    "indexing": (
        lambda F, x: (x[[0, 2]], x[:, [1, 1]], x[F.tensor([0, 1]), F.tensor([1, 2])], x[x > 0], x[1], x[None, [0]]),
        X,
    ),
    # linear algebra
    "matmul": (
        lambda F, x, y: (x @ y.T, F.mm(x, y.T), F.matmul(x, y.T), F.addmm(x @ y.T, x, y.T, beta=0.5, alpha=2)),
        X,
        Y,
    ),
    "vectors": (lambda F, x, v: (x @ v, F.mv(x, v), v @ x.T, F.dot(v, v), F.outer(v, v), v @ v), X, V),
    "stacks": (lambda F, b, c: (F.bmm(b, c), b @ c, F.baddbmm(b @ c, b, c, beta=0.3), b[:, None] @ c), B, C),
    "stack times matrix": (lambda F, b, x, v: (b @ x.T, x @ b.mT, b @ v, F.tensordot(b, x, dims=([2], [1]))), B, X, V),
    "einsum": (
        lambda F, x: (F.einsum("ij->ji", x), F.einsum("ij->", x), F.einsum("ij->j", x), F.einsum("ij,ij->i", x, x)),
        X,
    ),
    "einsum of stacks": (
        lambda F, b, c: (F.einsum("bij,bjk->bik", b, c), F.einsum("bij,bjk", b, c), F.einsum("bij,bjk->kb", b, c)),
        B,
        C,
    ),
    "einsum of diagonals": (
        lambda F, x: (F.einsum("ii->i", x), F.einsum("ii", x), F.einsum("ij,jk,kl->il", x, x, x)),
        X[:, :3].copy(),
    ),
    "einsum with dots": (
        lambda F, b, v: (F.einsum("...i,i->...", b, v), F.einsum("...i,i", b, v), F.einsum("b...,b...->...", b, b)),
        B,
        V,
    ),
    "integers and floats": (lambda F, x, i: x @ i.T, X, I),
}


def listed(results) -> list:
    return [results] if hasattr(results, "detach") else list(results)


def ran(program, F, arrays, grad: bool):
    make = torch.from_numpy if F is torch else flow.from_numpy
    inputs = [make(a.copy()) for a in arrays]
    for t in inputs:
        if grad and t.is_floating_point():
            t.requires_grad_()
    return inputs, listed(program(F, *inputs))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_torch(name):
    program, *arrays = PROGRAMS[name]
    try:
        inputs, wanted = ran(program, torch, arrays, grad=True)
    except (RuntimeError, IndexError):
        with pytest.raises(MinflowError):
            ran(program, flow, arrays, grad=True)
        return
    ours, results = ran(program, flow, arrays, grad=True)
    assert len(results) == len(wanted)
    for got, want in zip(results, wanted):
        assert got.dtype.name == str(want.dtype).removeprefix("torch.") and tuple(got.shape) == tuple(want.shape)
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=2e-5, atol=1e-6)
    losses = [sum([(t * t).sum() for t in ts if t.is_floating_point() and t.requires_grad]) for ts in (wanted, results)]
    if not hasattr(losses[0], "backward"):
        return
    for loss in losses:
        loss.backward()
    for x, t in zip(ours, inputs):
        if t.grad is not None and bool(torch.isfinite(t.grad).all()):
            np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-4, atol=1e-5)
