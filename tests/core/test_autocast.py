"""autocast gives each operation the dtype that PyTorch gives it on a CPU; parameters keep their dtype."""

import numpy as np
import pytest

import minflow as flow
from minflow import DeviceError, DTypeError, amp, nn
from minflow.core.kernels import observed
from minflow.core.op import OPS
from minflow.core.trace import trace
from tests.cases import in_cases
from tests.graphs import Predict
from tests.pytorch import needs_torch, torch

F = nn.functional
RNG = np.random.RandomState(0)
X, W, B = (RNG.randn(*shape).astype("float32") for shape in ((4, 6), (5, 6), (5,)))
IMAGES, KERNEL = RNG.randn(2, 3, 8, 8).astype("float32"), RNG.randn(4, 3, 3, 3).astype("float32")
LOW, SINGLE = "low", "float32"

# name -> (program, its result in PyTorch 2.13); y is a product and so of the lower dtype
PROGRAMS = {
    "matmul": (lambda L, p: p.x @ p.w.T, LOW),
    "mm": (lambda L, p: L.mm(p.x, p.w.T), LOW),
    "bmm": (lambda L, p: L.bmm(p.images[0], p.images[1].mT), LOW),
    "linear": (lambda L, p: L.nn.functional.linear(p.x, p.w, p.b), LOW),
    "addmm": (lambda L, p: L.addmm(p.b, p.x, p.w.T), LOW),
    "baddbmm": (lambda L, p: L.baddbmm(p.images[0], p.images[0], p.images[1]), LOW),
    "einsum": (lambda L, p: L.einsum("ij,kj->ik", p.x, p.w), LOW),
    "tensordot": (lambda L, p: L.tensordot(p.x, p.w, dims=([1], [1])), LOW),
    "outer": (lambda L, p: L.outer(p.b, p.b), SINGLE),
    "conv2d": (lambda L, p: L.nn.functional.conv2d(p.images, p.kernel, p.b[:4]), LOW),
    "conv_transpose2d": (lambda L, p: L.nn.functional.conv_transpose2d(p.images, p.kernel[:3], p.b[:3]), LOW),
    "softmax": (lambda L, p: p.x.softmax(1), SINGLE),
    "softmax of a product": (lambda L, p: p.y.softmax(1), LOW),
    "log_softmax of a product": (lambda L, p: L.nn.functional.log_softmax(p.y, 1), LOW),
    "layer_norm": (lambda L, p: L.nn.functional.layer_norm(p.x, (6,)), SINGLE),
    "LayerNorm of a product": (lambda L, p: L.nn.LayerNorm(5)(p.y), LOW),
    "BatchNorm2d of a convolution": (lambda L, p: L.nn.BatchNorm2d(4)(L.nn.functional.conv2d(p.images, p.kernel)), LOW),
    "product + float32": (lambda L, p: p.y + p.b, SINGLE),
    "product * 2": (lambda L, p: p.y * 2, LOW),
    "exp": (lambda L, p: p.y.exp(), LOW),
    "sum": (lambda L, p: p.y.sum(), LOW),
    "mean": (lambda L, p: p.y.mean(), LOW),
    "prod": (lambda L, p: p.y.prod(), SINGLE),
    "norm": (lambda L, p: p.y.norm(), LOW),
    "gelu": (lambda L, p: L.nn.functional.gelu(p.y), LOW),
    "relu": (lambda L, p: p.y.relu(), LOW),
    "max_pool2d": (lambda L, p: L.nn.functional.max_pool2d(L.nn.functional.conv2d(p.images, p.kernel), 2), LOW),
    "mse_loss": (lambda L, p: L.nn.functional.mse_loss(p.y, p.y * 2), SINGLE),
    "l1_loss": (lambda L, p: L.nn.functional.l1_loss(p.y, p.y * 2), SINGLE),
    "cross_entropy": (lambda L, p: L.nn.functional.cross_entropy(p.y, L.tensor([0, 1, 2, 3])), SINGLE),
    "nll_loss": (lambda L, p: L.nn.functional.nll_loss(p.y.log_softmax(1), L.tensor([0, 1, 2, 3])), SINGLE),
    "triplet_margin_loss": (lambda L, p: L.nn.functional.triplet_margin_loss(p.y, p.y * 2, p.y * 3), SINGLE),
    "bilinear": (lambda L, p: L.nn.functional.bilinear(p.x, p.x, p.images[:, :, :6, :6].reshape(6, 6, 6)), SINGLE),
    "trace": (lambda L, p: L.trace(p.y), SINGLE),
    "quantile": (lambda L, p: L.quantile(p.y, 0.3, dim=1), SINGLE),
    "quantile by a tensor": (lambda L, p: L.quantile(p.y.flatten(), p.y.sigmoid().flatten()[:2]), SINGLE),
    "nanquantile": (lambda L, p: p.y.nanquantile(0.3), SINGLE),
    "cdist": (lambda L, p: L.cdist(p.y, p.y), SINGLE),
    "ctc_loss": (lambda L, p: L.nn.functional.ctc_loss(p.y.log_softmax(1), L.tensor([1, 2]), (4,), (2,)), SINGLE),
    "bce": (lambda L, p: L.nn.functional.binary_cross_entropy_with_logits(p.y, L.ones(4, 5)), SINGLE),
    "cat": (lambda L, p: L.cat([p.y, L.ones(4, 5)]), SINGLE),
    "dropout": (lambda L, p: L.nn.functional.dropout(p.y), LOW),
    "embedding": (lambda L, p: L.nn.functional.embedding(L.tensor([0]), p.w), SINGLE),
    "rnn_tanh_cell": (lambda L, p: L.rnn_tanh_cell(p.x, L.ones(4, 5), p.w, p.w[:, :5], p.b, p.b), LOW),
    "gru_cell": (lambda L, p: L.gru_cell(p.x, L.ones(4, 5), *p.weights(3)), SINGLE),
    "lstm_cell": (lambda L, p: L.lstm_cell(p.x, (L.ones(4, 5), L.ones(4, 5)), *p.weights(4))[0], SINGLE),
    "double": (lambda L, p: p.x.double() @ p.w.double().T, "float64"),
    "integers": (lambda L, p: L.tensor([[1, 2]]) @ L.tensor([[1], [2]]), "int64"),
    "mixed": (lambda L, p: p.y @ p.y.float().T, LOW),
}


class Arguments:
    def __init__(self, L):
        self.x, self.w, self.b, self.images, self.kernel = map(L.tensor, (X, W, B, IMAGES, KERNEL))

    @property
    def y(self):
        return self.x @ self.w.T

    def weights(self, gates):
        """Those of a recurrent cell."""
        return [self.w.repeat(gates, 1), self.w[:, :5].repeat(gates, 1), self.b.repeat(gates), self.b.repeat(gates)]


@in_cases("low", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_dtypes(name, low):
    program, wanted = PROGRAMS[name]
    with flow.autocast("cpu", dtype=getattr(flow, low)):
        assert program(flow, Arguments(flow)).dtype.name == (low if wanted == LOW else wanted)


@needs_torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_dtypes_and_values_match_pytorch(name):
    with torch.autocast("cpu"), flow.autocast("cpu"):
        theirs, ours = (PROGRAMS[name][0](L, Arguments(L)) for L in (torch, flow))
    assert ours.dtype.name == str(theirs.dtype)[6:]
    if name != "dropout":
        np.testing.assert_allclose(ours.float().detach().numpy(), theirs.float().detach().numpy(), 0.03, 0.03)


def test_parameters_and_their_gradients_stay_float32():
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5))
    with flow.autocast("cpu", flow.bfloat16):
        out = model(flow.tensor(X))
        loss = F.cross_entropy(out, flow.tensor([0, 1, 2, 3]))
    loss.backward()
    assert out.dtype is flow.bfloat16 and loss.dtype is flow.float32
    assert {p.dtype for p in model.parameters()} == {p.grad.dtype for p in model.parameters()} == {flow.float32}
    exact = F.cross_entropy(model(flow.tensor(X)), flow.tensor([0, 1, 2, 3]))
    assert exact.item() != loss.item() and abs(exact.item() - loss.item()) < 0.02


def test_nested_and_as_a_decorator():
    x = flow.tensor(X)

    @flow.autocast("cpu")
    def product():
        return x @ x.T

    assert product().dtype is flow.bfloat16 and (x @ x.T).dtype is flow.float32
    with flow.autocast("cpu", dtype=flow.float16):
        assert flow.is_autocast_enabled("cpu") and flow.get_autocast_dtype("cpu") is flow.float16
        with flow.autocast("cpu", enabled=False):
            assert (x @ x.T).dtype is flow.float32 and not flow.is_autocast_enabled("cpu")
        assert (x @ x.T).dtype is flow.float16
    assert not flow.is_autocast_enabled("cpu") and flow.get_autocast_dtype("cpu") is flow.bfloat16


def test_in_a_graph():
    @flow.autocast("cpu")
    def product(x):
        return x @ x.T

    found = Predict(product)(flow.tensor(X))
    assert found.dtype is flow.bfloat16 and found.tolist() == product(flow.tensor(X)).tolist()


def test_parts_of_a_cell_get_their_dtypes():
    """One node outside of autocast; within it, products in the lower dtype, in a scope of the cell."""
    cell, args = nn.GRUCell(6, 5), [flow.tensor(X), flow.zeros(4, 5)]
    lower = flow.autocast("cpu", flow.float16)(cell)
    plain, low = (trace(function, args)[0].nodes for function in (cell, lower))
    assert [(str(node.op), node.scope) for node in plain] == [("gru_cell", "GRUCell")]
    products = [node for node in low if str(node.op) == "matmul"]
    assert {(node.out_specs[0].dtype, node.scope) for node in products} == {(flow.float16, "GRUCell/gru_cell")}
    assert Predict(lower)(*args).tolist() == lower(*args).tolist() != cell(*args).tolist()


def test_half_precision_outside_of_autocast():
    """Then trace keeps the dtype, and quantiles are refused."""
    y = flow.tensor(X).half()
    assert flow.trace(y).dtype is flow.float16
    with pytest.raises(DTypeError, match="quantile: the input must be float32 or float64, got float16"):
        flow.quantile(y, 0.3)
    with flow.autocast("cpu"), pytest.raises(DTypeError, match="quantile: q is float64, the input is float32"):
        flow.quantile(y, flow.ones(2).double())


def test_mistakes():
    with pytest.raises(DTypeError, match="must be bfloat16 or float16, got float64"):
        flow.autocast("cpu", dtype=flow.float64)
    with pytest.raises(DeviceError, match="got 'tpu'"):
        flow.autocast("tpu")
    with pytest.warns(UserWarning, match="no GPU is available"), flow.autocast("cuda"):
        assert (flow.ones(2, 2) @ flow.ones(2, 2)).dtype is flow.float32


# ---- on a GPU --------------------------------------------------------------------------------------------------------


def test_default_dtype_on_a_gpu(cuda):
    x = flow.tensor(X, device=cuda)
    with flow.autocast("cuda"):
        assert (x @ x.T).dtype is flow.float16 and flow.get_autocast_dtype("cuda") is flow.float16
        assert (x.cpu() @ x.cpu().T).dtype is flow.float32 and not flow.is_autocast_enabled("cpu")
        with flow.autocast("cpu"), flow.autocast("cuda", flow.bfloat16):
            assert (x @ x.T).dtype is flow.bfloat16 is (x.cpu() @ x.cpu().T).dtype
        with flow.autocast("cuda", enabled=False):
            assert (x @ x.T).dtype is flow.float32
    assert not flow.is_autocast_enabled("cuda")


def test_ops_in_float32_on_a_gpu(cuda):
    """Those of PyTorch's list of autocast for CUDA, whose results may be too large for float16."""
    assert set(OPS) >= amp.FLOAT32_ON_CUDA | amp.WIDEST_ON_CUDA
    with flow.autocast("cuda"):
        y = flow.tensor(X, device=cuda) @ flow.tensor(W, device=cuda).T
        found = [y.exp(), y.softmax(1), y.sum(), y**2.0, F.softplus(y), F.cross_entropy(y, y.argmax(1))]
        assert y.dtype is flow.float16 and {x.dtype for x in found} == {flow.float32}
        assert flow.where(y > 0, y, flow.ones(4, 5, device=cuda)).dtype is flow.float32
        found = [y + y, y.relu(), y.tanh(), y.mean(), F.gelu(y), F.layer_norm(y, (5,)), flow.where(y > 0, y, y)]
        assert {x.dtype for x in found} == {flow.float16}


def test_bfloat16_reaches_kernels_that_take_it(cuda_kernels):
    """Products of cuBLAS; ops without such a kernel run in float32, with one rounding."""
    x, ran = flow.tensor(X, device="cuda"), []
    with flow.autocast("cuda", flow.bfloat16), observed(lambda op, platform, *_: ran.append((op.name, platform))):
        y = x @ x.T
    assert y.dtype is flow.bfloat16 and [name for name, _ in ran] == ["permute", "cast", "cast", "matmul"]
    assert ran[-1] == ("matmul", "cupy")
    expected = (flow.tensor(X) @ flow.tensor(X).T).bfloat16()
    assert (y.cpu().float() - expected.float()).abs().max() <= 0.04
    empty = flow.ones(3, 0, dtype=flow.bfloat16, device="cuda")  # which this kernel declines
    assert (empty @ empty.T).tolist() == [[0] * 3] * 3


def test_training_on_a_gpu(cuda):
    """Weights and their gradients stay float32, and the loss is that of float32 within the rounding of float16."""
    model = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 5)).to(cuda)
    x, label = flow.tensor(X, device=cuda), flow.tensor([0, 1, 2, 3], device=cuda)
    exact = F.cross_entropy(model(x), label)
    with flow.autocast("cuda"):
        loss = F.cross_entropy(model(x), label)
    loss.backward()
    assert exact.item() != loss.item() and abs(exact.item() - loss.item()) < 0.01
    assert {p.grad.dtype for p in model.parameters()} == {flow.float32}


def casts_of(program) -> int:
    ran = []
    with observed(lambda op, *_: ran.append(op.name)):
        program()
    return ran.count("cast")


def test_casts_of_parameters_are_reused_on_a_gpu(cuda):
    """Until the block ends, or the parameter is written; a cast without a gradient does not serve one with it."""
    w, x = nn.Parameter(flow.tensor(W, device=cuda)), flow.tensor(X, device=cuda)
    with flow.autocast("cuda", cache_enabled=False):
        assert [casts_of(lambda: F.linear(x, w)) for _ in range(2)] == [2, 2]
    with flow.autocast("cuda"):
        assert [casts_of(lambda: F.linear(x, w)) for _ in range(2)] == [2, 1]
        assert [casts_of(lambda: x @ w.T) for _ in range(2)] == [2, 2]  # w.T is not a parameter
        with flow.no_grad():
            assert [casts_of(lambda: F.linear(x, w)) for _ in range(2)] == [2, 1]
            w.mul_(2)
        assert [casts_of(lambda: F.linear(x, w)) for _ in range(2)] == [2, 1]
        (F.linear(x, w).sum() + F.linear(x, w).sum()).backward()
        F.linear(x, w).sum().backward()  # through the same cast
    expected = 3 * x.sum(0).cpu().numpy()
    np.testing.assert_allclose(w.grad.cpu().numpy(), np.broadcast_to(expected, (5, 6)), atol=0.02)


def test_forms_of_cuda_amp(cuda):
    x = flow.tensor(X, device=cuda)
    with flow.cuda.amp.autocast():
        assert (x @ x.T).dtype is flow.float16
        with flow.cuda.amp.autocast(False):
            assert (x @ x.T).dtype is flow.float32
    with flow.cuda.amp.autocast(enabled=True, dtype=flow.bfloat16):
        assert (x @ x.T).dtype is flow.bfloat16
    with flow.cuda.amp.autocast(enabled=False):
        assert (x @ x.T).dtype is flow.float32


def test_forms_of_cuda_amp_without_a_gpu():
    x = flow.tensor(X)
    with flow.cuda.amp.autocast():
        assert (x @ x.T).dtype is flow.bfloat16


@pytest.mark.parametrize("low", ["float16", "bfloat16"])
def test_graph_on_a_gpu(cuda_kernels, low):
    """Attention, norms and products in a graph give the losses of eager code."""
    layers, losses = [], []
    for _ in range(2):
        flow.manual_seed(0)
        layers.append(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).to(cuda_kernels))
    optimizers = [flow.optim.SGD(layer.parameters(), lr=0.1) for layer in layers]
    x = flow.tensor(np.tile(X, 2)[None, :, :8], device=cuda_kernels)

    def loss_of(layer, low):
        with flow.autocast("cuda", getattr(flow, low)):
            return layer(x).square().mean()

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.layer, self.low = layers[0], low
            self.add_optimizer(optimizers[0])

        def build(self):
            loss = loss_of(self.layer, self.low)
            loss.backward()
            return loss

    graph = Train()
    for _ in range(3):
        optimizers[1].zero_grad()
        loss = loss_of(layers[1], low)
        loss.backward()
        optimizers[1].step()
        losses.append((graph().item(), loss.item()))
    for one, other in losses:
        assert one == pytest.approx(other, rel=1e-4)
    assert losses[0][0] > losses[1][0] > losses[2][0]
