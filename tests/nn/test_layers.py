"""Layers and functions by hand: batch norm, dropout, embeddings, in-place writes, and errors.

The values of every layer and function: `../test_public_calls.py`.
"""

import numpy as np
import pytest

import minflow as flow
from minflow import nn

F = nn.functional
RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 6))
IMAGES = RNG.standard_normal((2, 3, 6, 7))


def close(tensor, array, **options):
    np.testing.assert_allclose(tensor.detach().numpy(), array, **{"rtol": 1e-9, "atol": 1e-12, **options})


def tensor(array):
    return flow.tensor(array)


def test_batch_norm():
    layer = nn.BatchNorm2d(3).double()
    mean, var = IMAGES.mean((0, 2, 3)), IMAGES.var((0, 2, 3))
    normal = (IMAGES - mean[:, None, None]) / np.sqrt(var + 1e-5)[:, None, None]
    close(layer(tensor(IMAGES)), normal)
    count = IMAGES.size / 3
    close(layer.running_mean, 0.1 * mean)
    close(layer.running_var, 0.9 + 0.1 * var * count / (count - 1))
    assert layer.num_batches_tracked.item() == 1
    layer.eval()
    held = layer.running_mean.numpy().copy()
    close(
        layer(tensor(IMAGES)), (IMAGES - held[:, None, None]) / np.sqrt(layer.running_var.numpy() + 1e-5)[:, None, None]
    )
    close(layer.running_mean, held)
    assert layer.num_batches_tracked.item() == 1
    layer.reset_running_stats()
    assert layer.running_mean.tolist() == [0, 0, 0] and layer.num_batches_tracked.item() == 0


def test_dropout():
    layer = nn.Dropout(0.25)
    x = flow.ones(200, 100)
    flow.manual_seed(5)
    out = layer(x).numpy()
    assert set(np.unique(out)) == {np.float32(0), np.float32(1 / 0.75)} and abs((out == 0).mean() - 0.25) < 0.02
    assert (layer(x).numpy() != out).any()
    flow.manual_seed(5)
    assert (layer(x).numpy() == out).all()
    assert layer.eval()(x) is x
    y = flow.ones(50, requires_grad=True)
    dropped = F.dropout(y, 0.5)
    dropped.sum().backward()
    assert (y.grad.numpy() == dropped.detach().numpy()).all()
    assert (F.dropout(x, 1.0).numpy() == 0).all()


def test_embedding():
    layer = nn.Embedding(5, 2, padding_idx=1)
    index = flow.tensor([[0, 1], [4, 4]])
    out = layer(index)
    assert out.shape == (2, 2, 2) and out.tolist() == layer.weight.detach().numpy()[index.numpy()].tolist()
    out.sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1], [0, 0], [0, 0], [0, 0], [2, 2]]
    frozen = nn.Embedding.from_pretrained(flow.ones(3, 2))
    assert not frozen.weight.requires_grad and frozen(flow.tensor(2)).tolist() == [1, 1]
    for wrong in (1.5, np.float32(1), True, flow.tensor(True)):  # even for an empty index
        with pytest.raises(flow.MinflowError, match="padding_idx must be an integer, not"):
            F.embedding(flow.zeros(0, dtype=flow.int64), flow.ones(3, 2), padding_idx=wrong)


@pytest.mark.parametrize(("wrong", "says"), [
    (lambda x: F.layer_norm(x, (1,), eps=flow.ones(3)), r"(?s)layer_norm: eps must be one number, .*eps +float32\[3\]"),
    (lambda x: F.batch_norm(x, None, None, training=True, eps=np.ones(1)), r"eps must be .* got shape \(1,\)"),
    (lambda x: nn.BatchNorm1d(1, momentum=flow.ones(3))(x), r"batch_norm: momentum must be .* got shape \(3,\)"),
    (lambda x: F.pad(x, [1.5, 2.0]), "pad must be an integer, not float"),
    (lambda x: x.index_fill_(0, flow.tensor([1]), flow.ones(1)), r"the value has shape \(1,\), and must have one"),
    (lambda x: F.softmax(x, True), "dim must be an integer, not bool"),
    (lambda x: nn.LogSoftmax(0.5)(x), "dim must be an integer, not float"),
])  # fmt: skip
def test_arrays_are_not_scalars_and_bools_are_not_axes(wrong, says):
    with pytest.raises(flow.MinflowError, match=says):
        wrong(flow.ones(2, 1))


def test_pad_returns_a_copy():
    x = flow.ones(2, 3)
    for widths in ((), (0, 0), (-1, 0), (0, -1, -1, 0), (1, -1)):
        F.pad(x, widths).fill_(7)
    assert x.tolist() == [[1, 1, 1]] * 2


def test_in_place_activations():
    for layer in (nn.ReLU(inplace=True), nn.ReLU6(inplace=True), nn.LeakyReLU(inplace=True), nn.SiLU(inplace=True)):
        x = flow.tensor(X)
        want = type(layer)()(flow.tensor(X))
        assert layer(x) is x and x.tolist() == want.tolist()
        leaf = flow.tensor(X, requires_grad=True)
        layer(leaf * 1.0).sum().backward()
        other = flow.tensor(X, requires_grad=True)
        type(layer)()(other).sum().backward()
        close(leaf.grad, other.grad.numpy())
