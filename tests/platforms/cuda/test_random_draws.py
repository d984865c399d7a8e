"""Draws on the device have the bits of those on the CPU, and copy nothing."""

import numpy as np
import pytest

import minflow as flow
from minflow.nn import functional as F
from tests.strict_backend import UPLOADS, counted

DTYPES = ["float16", "bfloat16", "float32", "float64"]
DRAWS = {
    "rand": lambda **place: flow.rand(3, 5, 7, **place),
    "randint": lambda **place: flow.randint(-3, 1000, (1031,), **place),
    "uniform": lambda **place: flow.empty(513, **place).uniform_(-1.5, 0.25),
}
NORMAL = {
    "randn": lambda **place: flow.randn(1030, **place),
    "normal_": lambda **place: flow.zeros(77, **place).normal_(2.0, 3.0),
}


def bits(t: flow.Tensor) -> bytes:
    return t.cpu().array.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DRAWS)
def test_draws_have_the_bits_of_the_cpu(cuda_kernels, name, dtype):
    found = []
    for device in ("cpu", "cuda"):
        flow.manual_seed(11)
        place = dict(dtype=getattr(flow, dtype), device=device)
        found.append([DRAWS[name](**place), DRAWS[name](**place)])
    assert [*map(bits, found[0])] == [*map(bits, found[1])]
    assert all([t.device.type == "cuda" for t in found[1]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NORMAL)
def test_normal_draws(cuda_kernels, name, dtype):
    found = []
    for device in ("cpu", "cuda"):
        flow.manual_seed(12)
        found.append(NORMAL[name](dtype=getattr(flow, dtype), device=device).cpu().double().numpy())
    np.testing.assert_allclose(*found, rtol=2 * flow.finfo(getattr(flow, dtype)).eps, atol=1e-15)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_dropout_has_the_bits_of_the_cpu(cuda_kernels, dtype, p):
    x = flow.linspace(-3, 3, 1037).to(getattr(flow, dtype))

    def found(device):
        flow.manual_seed(13)
        leaf = x.to(device).detach().requires_grad_()
        out = F.dropout(leaf, p)
        out.sum().backward()
        return bits(out), bits(leaf.grad)

    assert found("cuda") == found("cpu")


def test_chances_have_the_bits_of_the_cpu(cuda_kernels):
    p = flow.linspace(0, 1, 1037)

    def found(device):
        flow.manual_seed(14)
        return bits(flow.bernoulli(p.to(device)))

    assert found("cuda") == found("cpu")


@pytest.mark.parametrize("name", [*DRAWS, *NORMAL])
def test_draws_copy_nothing(cuda_kernels, name):
    draw = (DRAWS | NORMAL)[name]
    draw(device="cuda")
    before = UPLOADS.copy()
    with counted() as copies:
        draw(device="cuda")
    assert not copies and before == UPLOADS


def test_a_graph_draws_on_the_device(cuda_kernels):
    class Noise(flow.nn.Graph):
        def build(self, x):
            return F.dropout(x, 0.5) + flow.rand(5, device=x.device)

    def found(device):
        flow.manual_seed(15)
        graph, x = Noise(), flow.ones(5, device=device)
        return [bits(graph(x)) for _ in range(3)]

    assert found("cuda") == found("cpu")
