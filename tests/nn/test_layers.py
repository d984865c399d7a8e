"""Layers and functions against numpy: what each computes, written out once more in the plainest way."""

import math

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


@pytest.mark.parametrize(
    ("layer", "function"),
    [
        (nn.ReLU(), lambda x: np.maximum(x, 0)),
        (nn.ReLU6(), lambda x: np.clip(x, 0, 6)),
        (nn.LeakyReLU(0.1), lambda x: np.where(x > 0, x, 0.1 * x)),
        (nn.Sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
        (nn.Tanh(), np.tanh),
        (nn.SiLU(), lambda x: x / (1 + np.exp(-x))),
        (nn.GELU(), lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))),
        (nn.GELU("tanh"), lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
        (nn.Softmax(1), lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
        (nn.LogSoftmax(0), lambda x: x - np.log(np.exp(x).sum(0))),
        (nn.Identity(3, "anything", key=1), lambda x: x),
    ],
    ids=lambda p: repr(p) if isinstance(p, nn.Module) else "",
)
def test_activation(layer, function):
    close(layer(tensor(X)), function(X), atol=1e-7)
    x = flow.tensor(X, requires_grad=True)
    assert flow.autograd.gradcheck(layer, x)


def test_linear():
    layer = nn.Linear(6, 3).double()
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()
    close(layer(tensor(X)), X @ weight.T + bias)
    close(layer(tensor(X[0])), X[0] @ weight.T + bias)
    deep = RNG.standard_normal((2, 3, 4, 6))
    close(layer(tensor(deep)), deep @ weight.T + bias)
    x = flow.tensor(deep, requires_grad=True)
    layer(x).sum().backward()
    close(layer.weight.grad, np.broadcast_to(deep.sum((0, 1, 2)), (3, 6)))
    close(layer.bias.grad, np.full(3, 24.0))
    assert layer(flow.ones(0, 6, dtype=flow.float64)).shape == (0, 3)


def conv(x, w, stride, padding, dilation, groups):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    n, c, h, wide = x.shape
    f, per, kh, kw = w.shape
    oh, ow = (h - dilation * (kh - 1) - 1) // stride + 1, (wide - dilation * (kw - 1) - 1) // stride + 1
    out = np.zeros((n, f, oh, ow))
    for filter in range(f):
        first = filter // (f // groups) * per
        for i in range(oh):
            for j in range(ow):
                rows, columns = i * stride + dilation * np.arange(kh), j * stride + dilation * np.arange(kw)
                patch = x[:, first : first + per][:, :, rows][:, :, :, columns]
                out[:, filter, i, j] = (patch * w[filter]).sum((1, 2, 3))
    return out


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 1, 1), (1, 2, 2, 1), (1, 1, 1, 3)]
)
def test_conv2d(stride, padding, dilation, groups):
    layer = nn.Conv2d(3, 6, 3, stride, padding, dilation, groups).double()
    want = conv(IMAGES, layer.weight.detach().numpy(), stride, padding, dilation, groups)
    close(layer(tensor(IMAGES)), want + layer.bias.detach().numpy()[:, None, None])


def test_pooling():
    close(nn.MaxPool2d(2)(tensor(IMAGES)), IMAGES[:, :, :, :6].reshape(2, 3, 3, 2, 3, 2).max((3, 5)))
    close(nn.AvgPool2d((3, 2))(tensor(IMAGES)), IMAGES[:, :, :, :6].reshape(2, 3, 2, 3, 3, 2).mean((3, 5)))
    close(nn.AdaptiveAvgPool2d(1)(tensor(IMAGES)), IMAGES.mean((2, 3), keepdims=True))


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


def test_layer_norm():
    layer = nn.LayerNorm(6).double()
    close(layer(tensor(X)), (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5))


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
    for wrong in (1.5, np.float32(1), True, flow.tensor(True)):  # also where there is nothing to look up
        with pytest.raises(flow.MinflowError, match="padding_idx must be an integer, not"):
            F.embedding(flow.zeros(0, dtype=flow.int64), flow.ones(3, 2), padding_idx=wrong)


@pytest.mark.parametrize(("wrong", "says"), [
    (lambda x: F.layer_norm(x, (1,), eps=flow.ones(3)), r"(?s)layer_norm: eps has shape \(3,\).*eps +float32\[3\]"),
    (lambda x: F.batch_norm(x, None, None, training=True, eps=np.ones(1)), r"batch_norm: eps has shape \(1,\)"),
    (lambda x: nn.BatchNorm1d(1, momentum=flow.ones(3))(x), r"batch_norm: momentum has shape \(3,\)"),
    (lambda x: F.pad(x, [1.5, 2.0]), "pad must be an integer, not float"),
    (lambda x: x.index_fill_(0, flow.tensor([1]), flow.ones(1)), r"the value has shape \(1,\), where one number"),
    (lambda x: F.softmax(x, True), "dim must be an integer, not bool"),
    (lambda x: nn.LogSoftmax(0.5)(x), "dim must be an integer, not float"),
])  # fmt: skip
def test_an_array_is_no_number_and_a_truth_value_no_axis(wrong, says):
    with pytest.raises(flow.MinflowError, match=says):
        wrong(flow.ones(2, 1))


def test_pad_gives_a_tensor_of_its_own():
    x = flow.ones(2, 3)
    for widths in ((), (0, 0), (-1, 0), (0, -1, -1, 0), (1, -1)):
        F.pad(x, widths).fill_(7)
    assert x.tolist() == [[1, 1, 1]] * 2


def test_losses():
    logits, labels = RNG.standard_normal((5, 4)), np.array([0, 3, 1, 1, 2])
    logs = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    chosen = -logs[np.arange(5), labels]
    weight = np.array([1.0, 2.0, 0.5, 1.0])
    close(nn.CrossEntropyLoss()(tensor(logits), tensor(labels)), chosen.mean())
    close(nn.CrossEntropyLoss(reduction="none")(tensor(logits), tensor(labels)), chosen)
    close(
        nn.CrossEntropyLoss(tensor(weight))(tensor(logits), tensor(labels)),
        (chosen * weight[labels]).sum() / weight[labels].sum(),
    )
    close(nn.CrossEntropyLoss(ignore_index=1)(tensor(logits), tensor(labels)), chosen[labels != 1].mean())
    close(
        nn.CrossEntropyLoss(label_smoothing=0.1)(tensor(logits), tensor(labels)),
        0.9 * chosen.mean() - 0.1 * logs.mean(),
    )
    close(nn.NLLLoss(reduction="sum")(tensor(logs), tensor(labels)), chosen.sum())
    close(nn.MSELoss()(tensor(X), tensor(X * 2)), (X**2).mean())
    close(nn.L1Loss()(tensor(X), tensor(X * 2)), np.abs(X).mean())
    p, y = 1 / (1 + np.exp(-X)), (X > 0.3) * 1.0
    entropy = -(y * np.log(p) + (1 - y) * np.log(1 - p))
    close(nn.BCELoss()(tensor(p), tensor(y)), entropy.mean())
    close(nn.BCEWithLogitsLoss()(tensor(X), tensor(y)), entropy.mean())
    positive = -(3 * y * np.log(p) + (1 - y) * np.log(1 - p))
    close(nn.BCEWithLogitsLoss(pos_weight=flow.tensor(3.0).double())(tensor(X), tensor(y)), positive.mean())
    assert nn.BCELoss()(flow.tensor([0.0, 1.0]), flow.tensor([1.0, 1.0])).item() == 50.0


def test_shapes():
    x = flow.ones(2, 3, 4, 5)
    assert nn.Flatten()(x).shape == (2, 60) and nn.Flatten(0, 1)(x).shape == (6, 4, 5)
    assert nn.Unflatten(1, (3, 1))(x).shape == (2, 3, 1, 4, 5)
    close(F.pad(tensor(X), (1, 2, 0, 1), value=3.0), np.pad(X, ((0, 1), (1, 2)), constant_values=3.0))
    assert F.one_hot(flow.tensor([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]
    close(F.normalize(tensor(X)), X / np.sqrt((X**2).sum(1, keepdims=True)))


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


def test_a_classifier_learns():
    flow.manual_seed(0)
    x = flow.randn(64, 2)
    y = (x[:, 0] * x[:, 1] > 0).long()
    net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
    for _ in range(200):
        loss = nn.CrossEntropyLoss()(net(x), y)
        net.zero_grad()
        loss.backward()
        with flow.no_grad():
            for p in net.parameters():
                p -= 0.5 * p.grad
    assert (net(x).argmax(1) == y).float().mean().item() > 0.95
