"""Operators and what they do together against PyTorch: results, dtypes, gradients of the sum of squares. Skipped
without PyTorch. Single calls of functions are recorded: `../oracle/`."""

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
S = np.array(2.5, "float32")

PROGRAMS = {
    "add": (lambda F, x, y: (F.add(x, y, alpha=2), x + 1, 1 + x, x + y.T.reshape(3, 4), 5 - x, x - y[0]), X, Y),
    "div": (
        lambda F, x, y: (x / y, 2 / y, F.div(x, y, rounding_mode="floor"), F.div(x, y, rounding_mode="trunc")),
        X,
        Y,
    ),
    "promotion": (lambda F, i, m: (i + 1.5, m + 1, m * 1.5, i * m, i + i.to(F.uint8), i > 1.5), I, M),
    "zero-d promotion": (lambda F, x, s: (x * s.double(), x.double() * s, (x > 0) * s), X, S),
    "pow": (lambda F, x, y: (x**3, x**-1, x**2, x**0, 2**x, F.pow(F.abs(x), 0.5), F.pow(F.abs(x), y)), X, Y),
    "pow of integers": (lambda F, i: (i**2, 2**i, i**0.5), I),
    "pow of integers to negative": (lambda F, i: i**-1, I),
    "remainder": (lambda F, x, y: (F.remainder(x, y), F.fmod(x, y), x % 0.7), X, Y),
    "remainder of integers": (lambda F, i: ((i - 2) % 3, F.fmod(i - 2, 3)), I),
    "where promotes": (lambda F, m, i: (F.where(m, 1.5, i), F.where(m, i, 0)), M, I),
    "comparisons": (lambda F, x, y: (x == y, x != y, x < y, x <= 0, x > 0, x >= y, F.isclose(x, x + 1e-9)), X, Y),
    "bits": (lambda F, i, m: (i & 3, i | 1, i ^ 2, ~i, m & ~m, m | m, m ^ m), I, M),
    "infinities": (lambda F, x: (F.isnan(x / 0), F.isinf(x / 0), F.isfinite(F.log(x))), X),
    "view of a transposed": (lambda F, x: x.T.view(12), X),
    "cat promotes": (lambda F, x, i: F.cat([x, i]), X, I),
    "meshgrid": (lambda F, v: (*F.meshgrid(v, v[:3], indexing="ij"), *F.meshgrid(v, v[:3], indexing="xy")), V),
    "indexing": (
        lambda F, x: (x[[0, 2]], x[:, [1, 1]], x[F.tensor([0, 1]), F.tensor([1, 2])], x[x > 0], x[1], x[None, [0]]),
        X,
    ),
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
