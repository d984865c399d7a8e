"""Attention in tiles on a GPU, whose CUDA C is compiled for the CPU: strides, masks, and which calls run in tiles."""

import math

import numpy as np
import pytest

import minflow as flow
from minflow.core.kernels import observed
from minflow.core.ops.attention import scaled_dot_product_attention as op
from minflow.core.spec import Device
from minflow.platforms.cupy.kernels.attention import WIDEST, accepts, accepts_grad, strided, tiling_of
from tests.strict_backend import StrictArray, strict

F = flow.nn.functional
RNG = np.random.default_rng(0)


def random(*shape):
    return flow.tensor(RNG.normal(size=shape).astype("f4"))


def heads(x, device):
    """Queries, keys and values as multi-head attention splits them from one product: strided arrays."""
    parts = x.to(device).reshape(2, 40, 3, 4, 8).permute(2, 0, 3, 1, 4)
    return [part.detach().requires_grad_() for part in parts]


@pytest.mark.parametrize("causal", [False, True])
def test_heads_inside(cuda_kernels, causal):
    x, ran, found = random(2, 40, 96), [], {}
    weights = random(2, 4, 40, 8)
    with observed(lambda op, platform, *_: ran.append((op.name, platform))):
        for device in ("cpu", "cuda"):
            inputs = heads(x, device)
            out = F.scaled_dot_product_attention(*inputs, is_causal=causal)
            (out * weights.to(device)).sum().backward()
            found[device] = [out, *[y.grad for y in inputs]]
    assert {(op.name, "cupy"), (op.gradient.name, "cupy")} <= set(ran)
    for one, other in zip(*found.values()):
        np.testing.assert_allclose(other.cpu().detach().numpy(), one.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_strides():
    x = np.zeros((2, 40, 3, 4, 8), "f4").transpose(2, 0, 3, 1, 4)[0]
    for array, steps in [(x, [3840, 8, 96]), (x[0], [0, 8, 96]), (x[0, 0], [0, 0, 96]), (x[:, :1], [3840, 8, 96])]:
        found, strides = strided(strict, given := StrictArray(array), 1)
        assert found is given and strides == steps
    turned = StrictArray(x.swapaxes(-1, -2))
    found, strides = strided(strict, turned, 1)
    assert found is not turned and strides == [1280, 320, 40]
    mask = StrictArray(np.broadcast_to(np.ones((40, 40), bool), (2, 4, 40, 40)))
    assert strided(strict, mask, 2) == (mask, [0, 0, 40, 1])


def on_both(mask, nowhere, v=None):
    """Results on the CPU and the device: of attention, and its gradients."""
    rng, found = np.random.default_rng(1), []
    arrays = [rng.normal(size=(2, n, 8)).astype("f4") for n in (5, 70, 70, 5)]
    arrays[2] = arrays[2] if v is None else v(arrays[2])
    for device in ("cpu", "cuda"):
        q, k, v, weights = [flow.tensor(x, device=device) for x in arrays]
        inputs = [x.requires_grad_() for x in (q, k, v)]
        out = op(*inputs, flow.tensor(mask, device=device), scale=0.5, nowhere=nowhere)
        (out * weights).sum().backward()
        found.append([x.detach().cpu().numpy() for x in (out, *[x.grad for x in inputs])])
    return found


@pytest.mark.parametrize("nowhere", [True, False])
@pytest.mark.parametrize("added", [True, False])
def test_queries_without_keys(cuda_kernels, no_notices, nowhere, added):
    """Their results are 0 or NaN, as on the CPU."""
    mask = RNG.random((2, 5, 70)) < 0.5
    mask[:, 2] = False
    if added:
        mask = np.where(mask, np.float32(0.5), np.float32(-math.inf))
    one, other = on_both(mask, nowhere)
    assert np.isnan(other[0]).any() is np.bool_(not nowhere) and (nowhere is False or not other[0][:, 2].any())
    for x, y in zip(one, other):
        np.testing.assert_allclose(y, x, rtol=1e-4, atol=1e-5)


def test_tiles_of_hidden_keys_are_skipped(cuda_kernels, no_notices):
    """NaN there does not reach the result, unlike on the CPU."""

    def spoiled(v):
        v[:, 64:] = math.nan
        return v

    mask = np.ones((5, 70), bool)
    mask[:, 64:] = False
    one, other = on_both(mask, True, spoiled)
    assert np.isnan(one[0]).all() and np.isfinite(other[0]).all()


def spec(*shape, dtype="float32"):
    return flow.ones(*shape, dtype=getattr(flow, dtype)).spec.replace(device=Device("cuda"))


@pytest.mark.parametrize(
    "query, key, mask, runs",
    [
        (spec(2, 5, 8), spec(2, 7, 8), int, True),
        (spec(2, 5, WIDEST), spec(2, 7, WIDEST), spec(5, 7, dtype="bool"), True),
        (spec(2, 5, WIDEST + 1), spec(2, 7, WIDEST + 1), int, False),
        (spec(2, 5, 8), spec(1, 7, 8), int, False),  # broadcast keys
        (spec(2, 5, 8, dtype="float64"), spec(2, 7, 8, dtype="float64"), int, False),
        (spec(5, 8, dtype="float16"), spec(7, 8, dtype="float16"), spec(7, dtype="float16"), True),
        (spec(2, 5, 8), spec(2, 7, 8), spec(3, 2, 5, 7), False),  # a mask with more axes
        (spec(2, 5, 8), spec(2, 7, 8), spec(5, 7, dtype="float64"), False),
        (spec(2, 0, 8), spec(2, 7, 8), int, False),
    ],
)
def test_calls_in_tiles(query, key, mask, runs):
    inputs, attrs = (query, key, key, mask), dict(scale=1.0, nowhere=False)
    assert accepts(*inputs, **attrs) is runs is accepts_grad(query, *inputs, needs=7, **attrs)
    assert not accepts_grad(query, *inputs, needs=15, **attrs)  # the gradient of the mask


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(cuda_kernels, dtype):
    """One kernel in this dtype, which sums in float32: no casts."""
    ran, x = [], [random(2, 9, 8).to(getattr(flow, dtype)) for _ in range(3)]
    with observed(lambda op, platform, *_: ran.append((op.name, platform))):
        got = F.scaled_dot_product_attention(*[y.to("cuda") for y in x])
    assert got.dtype is x[0].dtype and [name for name, _ in ran if name != "copy_to"] == [op.name]
    expected = F.scaled_dot_product_attention(*x).float().numpy()
    np.testing.assert_allclose(got.cpu().float().numpy(), expected, atol=flow.finfo(x[0].dtype).eps * 2)


@pytest.mark.parametrize(
    "dtype, capability, file",
    [
        ("float32", 90, "attention"),
        ("float16", 75, "attention_half"),
        ("bfloat16", 75, "attention"),  # whose tensor cores lack it
        ("bfloat16", 80, "attention_half"),
    ],
)
def test_tensor_cores(dtype, capability, file):
    assert tiling_of(dtype, 64, False, capability).file == file
    assert tiling_of(dtype, 64, True, capability).file == f"{file}_grad"
