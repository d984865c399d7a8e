"""einops accepts our tensors: its functions need no setup; its layers are in `einops.layers.minflow`."""

import subprocess
import sys

import numpy as np
import pytest

import minflow as flow
from minflow import nn

einops = pytest.importorskip("einops", reason="einops is not installed")

A = np.arange(48, dtype="float32").reshape(2, 3, 2, 4)


@pytest.mark.parametrize("pattern, sizes", [
    ("b c h w -> b h w c", {}), ("b c h w -> b (c h w)", {}),
    ("b c (h1 h2) (w1 w2) -> (b h2 w2) c h1 w1", {"h2": 2, "w2": 2}),
    ("b c ... -> ... c b", {}), ("b c h w -> b c 1 h w", {}),
])  # fmt: skip
def test_rearrange(pattern, sizes):
    x = flow.tensor(A, requires_grad=True)
    found = einops.rearrange(x, pattern, **sizes)
    assert isinstance(found, flow.Tensor) and np.array_equal(found.detach(), einops.rearrange(A, pattern, **sizes))
    (found * found).sum().backward()
    assert np.array_equal(x.grad, 2 * A)


@pytest.mark.parametrize("reduction", ["sum", "mean", "max", "min", "prod"])
def test_reduce(reduction):
    found = einops.reduce(flow.tensor(A), "b c (h h2) w -> b w c", reduction, h2=2)
    np.testing.assert_allclose(found, einops.reduce(A, "b c (h h2) w -> b w c", reduction, h2=2))
    if reduction in ("max", "min"):
        x = flow.tensor([[1.0, 1.0]], requires_grad=True)
        einops.reduce(x, "a b -> a", reduction).backward()
        assert x.grad.tolist() == [[0.5, 0.5]]
    whole = einops.reduce(flow.tensor(A) > 5, "b c h w -> b", "any")
    assert whole.tolist() == [True, True]


def test_repeat_pack_and_einsum():
    x = flow.tensor(A)
    assert np.array_equal(einops.repeat(x, "b c h w -> b c h (w 3)"), einops.repeat(A, "b c h w -> b c h (w 3)"))
    assert np.array_equal(einops.rearrange([x, x], "n b c h w -> b (n c) h w"), np.concatenate([A, A], 1))
    packed, shapes = einops.pack([x, x[:, 0]], "b * w")
    assert packed.shape == (2, 8, 4) and [tuple(s) for s in shapes] == [(3, 2), (2,)]
    assert einops.unpack(packed, shapes, "b * w")[0].tolist() == A.tolist()
    np.testing.assert_allclose(einops.einsum(x, x, "b c h w, b c h v -> b w v"), np.einsum("bchw,bchv->bwv", A, A))
    assert einops.parse_shape(x, "b c _ w") == {"b": 2, "c": 3, "w": 4}
    assert np.array_equal(einops.asnumpy(x), A)
    with pytest.raises(einops.EinopsError, match=r"minflow.Size\(\[2, 3, 2, 4\]\)"):
        einops.rearrange(x, "b c h -> b")


def test_layers_in_a_model_and_in_a_graph():
    from einops.layers.minflow import EinMix, Rearrange, Reduce

    model = nn.Sequential(
        Rearrange("b c h w -> b (h w) c"), EinMix("b t c -> b t k", weight_shape="c k", bias_shape="k", c=3, k=5),
        nn.ReLU(), Reduce("b t k -> b k", "mean"),
    )  # fmt: skip
    assert "Rearrange('b c h w -> b (h w) c')" in repr(model)
    assert list(model.state_dict()) == ["1.weight", "1.bias"] and model[1].weight.requires_grad
    x = flow.tensor(A)
    eager = model(x)
    assert eager.shape == (2, 5)
    eager.sum().backward()
    assert model[1].weight.grad is not None

    class Forward(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model

        def build(self, x):
            return einops.rearrange(self.model(x), "b (k) -> k b")

    assert np.array_equal(Forward()(x), eager.detach().numpy().T)


def run(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return done.stdout.split()


def test_einops_is_imported_first():
    assert run("import einops, minflow; print(*einops.rearrange(minflow.ones(2, 3), 'a b -> b a').shape)") == ["3", "2"]


def test_programs_of_other_libraries():
    """`from einops.layers.torch import Rearrange`, as in vision transformers, after minflow."""
    for_each = """
import minflow.compat.{0}, {0}
from einops import rearrange, repeat
from einops.layers.{0} import Rearrange, Reduce
x = {0}.ones(2, 3, 4, 4)
patches = Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=2, q=2)
model = {0}.nn.Sequential(patches, Reduce("b n d -> b d", "max"))
print(*model(x).shape, *repeat(rearrange(x, "b c h w -> b (c h w)"), "b d -> b n d", n=2).shape)
"""
    assert run(for_each.format("torch") + for_each.format("oneflow")) == ["2", "12", "2", "2", "48"] * 2
