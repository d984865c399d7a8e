"""bfloat16: the upper half of a float32. Every op computes in float32 and rounds once, in its gradients too."""

import struct
import subprocess
import sys

import numpy as np
import pytest

import minflow as flow
from minflow import DTypeError
from tests.graphs import Training, eager_steps
from tests.pytorch import needs_torch, torch

X = [[1.0, -2.5, 0.3, 100.0], [3.1, 0.0, -7.7, 1e-3], [0.1, 0.2, 0.7, -1.9]]
Y = [[0.5, 1.1, -3.0, 0.01], [2.0, -1.0, 0.4, 9.0], [1.3, 1.7, 0.6, -0.2]]


def rounded(x) -> np.ndarray:
    """Round float32 to the nearest number of 8 bits, ties to even; written by hand."""
    bits = np.asarray(x, "float32").view("uint32")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype("uint32").view("float32")


def test_results_are_rounded_once():
    x, y = flow.tensor(X).bfloat16(), flow.tensor(Y, dtype=flow.bfloat16)
    assert x.dtype is y.dtype is flow.bfloat16 and x.element_size() == 2 and x.is_floating_point()
    a, b = rounded(X), rounded(Y)
    assert x.float().tolist() == a.tolist() == x.tolist()
    for found, wanted in (
        (x + y, a + b), (x * y, a * b), (x - 1, a - 1), (2.5 * x, 2.5 * a), (x.sin(), np.sin(a)), (x @ y.T, a @ b.T),
        (x.sum(), a.sum()), (x.mean(0), a.mean(0)), (x.var(), a.var(ddof=1)), (x.norm(), np.sqrt((a * a).sum())),
        (x.cumsum(1), a.cumsum(1)), (flow.where(x > 0, x, y), np.where(a > 0, a, b)),
        (y[:, 1:].exp(), np.exp(b[:, 1:])),
    ):  # fmt: skip
        assert found.dtype is flow.bfloat16
        np.testing.assert_allclose(found.float().numpy(), rounded(wanted.astype("float32")), 1e-2 if wanted.ndim else 0)
    exact = x * y + 0
    assert exact.tolist() == rounded(rounded(a * b)).tolist()


def test_dtypes_of_results():
    x = flow.ones(3, dtype=flow.bfloat16)
    assert (x > 0).dtype is flow.bool and x.argmax().dtype is x.nonzero().dtype is flow.int64
    assert (x + flow.ones(3)).dtype is (x + flow.ones(3).half()).dtype is flow.float32
    assert (x + flow.tensor([1, 2, 3])).dtype is (x + flow.tensor(2.0)).dtype is (x / 2).dtype is flow.bfloat16
    assert [t.dtype for t in x.sort()] == [flow.bfloat16, flow.int64]
    assert (flow.rand(1000, dtype=flow.bfloat16) < 1).all() and flow.randn(3, dtype=flow.bfloat16).dtype is x.dtype


def test_structure_and_writes():
    x = flow.tensor(X, dtype=flow.bfloat16)
    view = x.T[1]
    view += 1
    x[0, 0] = 7.03
    x.mul_(2)
    assert x[0].tolist() == [14.0625, -3, 0.6015625, 200] and flow.cat([x, x]).shape == (6, 4)
    assert x.clone().tolist() == x.reshape(4, 3).reshape(3, 4).tolist() == x.contiguous().tolist()
    assert repr(flow.tensor([1.0, 2.3], dtype=flow.bfloat16)) == "tensor([1.0000, 2.2969], dtype=minflow.bfloat16)"


def test_numpy_conversion_is_refused():
    x = flow.ones(2, dtype=flow.bfloat16)
    with pytest.raises(DTypeError, match=r"numpy\(\) of bfloat16"):
        x.numpy()
    assert x.float().numpy().tolist() == x.tolist() == [1, 1] and x[0].item() == 1 and f"{x[0]:.2f}" == "1.00"


def test_finfo_matches_the_bits():
    info = flow.finfo(flow.bfloat16)
    largest = struct.unpack("<f", b"\x00\x00\x7f\x7f")[0]
    assert info.max == largest == flow.tensor(largest, dtype=flow.bfloat16).item()
    assert (flow.tensor(1.0, dtype=flow.bfloat16) + info.eps).item() == 1 + info.eps
    assert (flow.tensor(1.0, dtype=flow.bfloat16) + info.eps / 2).item() == 1


def test_saved_and_loaded(tmp_path):
    x = flow.tensor(X, dtype=flow.bfloat16)
    flow.save({"x": x}, tmp_path / "x.safetensors")
    found = flow.load(tmp_path / "x.safetensors")["x"]
    assert found.dtype is flow.bfloat16 and found.tolist() == x.tolist()


@pytest.mark.parametrize("optimizer", [flow.optim.SGD, flow.optim.Adam])
def test_model_trains_eagerly_and_as_a_graph(optimizer):
    def model():
        flow.manual_seed(0)
        return flow.nn.Sequential(flow.nn.Linear(4, 8), flow.nn.Tanh(), flow.nn.Linear(8, 1)).bfloat16()

    x, eager, traced = flow.tensor(X).bfloat16(), model(), model()
    losses = eager_steps(eager, optimizer(eager.parameters(), 0.05), x, 20)
    graph = Training(traced, optimizer(traced.parameters(), 0.05))
    assert [graph(x).item() for _ in losses] == losses
    assert losses[-1] < losses[0] / 2 and eager[0].weight.dtype is flow.bfloat16
    assert all(a.tolist() == b.tolist() for a, b in zip(eager.parameters(), traced.parameters()))


def test_ml_dtypes_is_imported_lazily():
    program = (
        "import sys, minflow as flow; flow.finfo(flow.bfloat16); before = 'ml_dtypes' in sys.modules\n"
        "flow.ones(1).bfloat16(); print(before, 'ml_dtypes' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


PROGRAMS = {
    "linear": lambda L, x, y: (x @ y.T).sum(),
    "mul": lambda L, x, y: (x * y + x).sum(),
    "softmax": lambda L, x, y: (x.softmax(1) * y).sum(),
    "log_softmax": lambda L, x, y: L.nn.functional.log_softmax(x, 1)[0, 1] * 3,
    "gelu": lambda L, x, y: L.nn.functional.gelu(x).sum(),
    "layer_norm": lambda L, x, y: (L.nn.functional.layer_norm(x, (4,)) * y).sum(),
    "mse": lambda L, x, y: L.nn.functional.mse_loss(x, y),
    "cross_entropy": lambda L, x, y: L.nn.functional.cross_entropy(x, L.tensor([0, 2, 1])),
    "indexing": lambda L, x, y: (x[:, [0, 2]] * y[:, 1:3]).sum(),
}


@needs_torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_match_pytorch(name):
    """Values and gradients within two ulp, and equal dtypes."""
    results = []
    for L in (flow, torch):
        x, y = (L.tensor(numbers).to(L.bfloat16).requires_grad_() for numbers in (X, Y))
        loss = PROGRAMS[name](L, x, y)
        loss.backward()
        results.append([t for t in (loss.detach(), x.grad, y.grad) if t is not None])
    for ours, theirs in zip(*results, strict=True):
        assert ours.dtype is flow.bfloat16 and theirs.dtype is torch.bfloat16
        np.testing.assert_allclose(ours.float().numpy(), theirs.float().numpy(), 2.0**-6, 2e-2)
