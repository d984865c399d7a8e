"""Layers, losses and functions against PyTorch: values, gradients and reprs, in float64 from the same numbers."""

import re

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from tests.pytorch import T, needs_torch, torch

pytestmark = needs_torch

X2, X3, X4 = (4, 6), (3, 6, 5), (2, 6, 9, 8)
LAYERS = [
    ("Linear", (6, 3), {}, X2),
    ("Linear", (5, 3), {"bias": False}, X3),
    ("Linear", (8, 3), {}, X4),
    ("Linear", (6, 3), {}, (6,)),
    ("Identity", (), {}, X2),
    ("Flatten", (), {}, X4),
    ("Flatten", (2,), {}, X4),
    ("Unflatten", (1, (2, 3)), {}, X4),
    ("Conv2d", (6, 4, 3), {}, X4),
    ("Conv2d", (6, 4, (3, 2)), {"stride": (2, 1), "padding": (1, 2)}, X4),
    ("Conv2d", (6, 4, 3), {"dilation": 2, "bias": False}, X4),
    ("Conv2d", (6, 6, 3), {"groups": 6, "padding": 1}, X4),
    ("Conv2d", (6, 12, 3), {"groups": 3, "stride": 2}, X4),
    ("Conv2d", (6, 4, 1), {}, X4),
    ("Conv2d", (6, 4, 3), {"padding": "same"}, X4),
    ("Conv2d", (6, 4, (2, 4)), {"padding": "same"}, X4),
    ("Conv2d", (6, 4, 3), {"padding": "valid"}, X4),
    ("Conv2d", (6, 4, 3), {}, X4[1:]),
    ("MaxPool2d", (2,), {}, X4),
    ("MaxPool2d", (3, 2, 1), {}, X4),
    ("MaxPool2d", (3, 2), {"ceil_mode": True}, X4),
    ("MaxPool2d", (2,), {"dilation": 2, "stride": 1}, X4),
    ("MaxPool2d", (2,), {}, X4[1:]),
    ("AvgPool2d", (2,), {}, X4),
    ("AvgPool2d", (3, 2, 1), {}, X4),
    ("AvgPool2d", (3, 2, 1), {"count_include_pad": False}, X4),
    ("AvgPool2d", (3, 2), {"ceil_mode": True}, X4),
    ("AvgPool2d", (2,), {"divisor_override": 3}, X4),
    ("AdaptiveAvgPool2d", (1,), {}, X4),
    ("AdaptiveAvgPool2d", ((3, 5),), {}, X4),
    ("AdaptiveAvgPool2d", ((None, 4),), {}, X4),
    ("BatchNorm1d", (6,), {}, X2),
    ("BatchNorm1d", (6,), {}, X3),
    ("BatchNorm2d", (6,), {}, X4),
    ("BatchNorm2d", (6,), {"affine": False, "eps": 1e-3}, X4),
    ("BatchNorm2d", (6,), {"track_running_stats": False}, X4),
    ("BatchNorm2d", (6,), {"momentum": None}, X4),
    ("LayerNorm", (6,), {}, X2),
    ("LayerNorm", ((6, 5),), {"eps": 1e-3}, X3),
    ("LayerNorm", (5,), {"elementwise_affine": False}, X3),
    ("LayerNorm", (5,), {"bias": False}, X3),
    ("Dropout", (0.0,), {}, X2),
    ("ReLU", (), {}, X2),
    ("ReLU6", (), {}, X2),
    ("LeakyReLU", (), {}, X2),
    ("LeakyReLU", (0.2,), {}, X2),
    ("LeakyReLU", (-0.5,), {}, X2),
    ("GELU", (), {}, X2),
    ("GELU", (), {"approximate": "tanh"}, X2),
    ("SiLU", (), {}, X2),
    ("Sigmoid", (), {}, X2),
    ("Tanh", (), {}, X2),
    ("Softmax", (1,), {}, X3),
    ("Softmax", (-1,), {}, X4),
    ("LogSoftmax", (1,), {}, X2),
    ("LogSoftmax", (0,), {}, X3),
    ("Sequential", (), {}, X2),
]
NAMES = [f"{name}-{args}-{list(options.values())}-{len(shape)}d" for name, args, options, shape in LAYERS]


def close(a, b, rtol=1e-10, atol=1e-10):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=rtol, atol=atol)


def both(name, args, options):
    """The same layer in both libraries, with the same float64 numbers."""
    mine, theirs = getattr(nn, name)(*args, **options), getattr(T, name)(*args, **options).double()
    rng = np.random.default_rng(3)
    for p in theirs.parameters():
        p.data = torch.from_numpy(rng.standard_normal(p.shape))
    mine.double().load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    return mine, theirs


def numbers(shape, seed=0, scale=2.0):
    return np.random.default_rng(seed).standard_normal(shape) * scale


@pytest.mark.filterwarnings("ignore:Using padding='same'")  # PyTorch's own remark on even kernels
@pytest.mark.parametrize(("name", "args", "options", "shape"), LAYERS, ids=NAMES)
def test_layer(name, args, options, shape):
    mine, theirs = both(name, args, options)
    text = repr(theirs)
    if "Norm" in name:  # recent versions add `bias=`; books and older ones do not have it
        text = re.sub(", bias=(True|False)", "", text)
    assert repr(mine) == text
    assert [(k, tuple(v.shape)) for k, v in mine.state_dict().items()] == [
        (k, tuple(v.shape)) for k, v in theirs.state_dict().items()
    ]
    for training in (True, True, False):  # twice, so that running statistics add up
        mine.train(training), theirs.train(training)
        array = numbers(shape)
        x, y = flow.tensor(array, requires_grad=True), torch.tensor(array, requires_grad=True)
        out, want = mine(x), theirs(y)
        assert tuple(out.shape) == tuple(want.shape)
        close(out, want)
        g = numbers(want.shape, 1)
        mine.zero_grad(), theirs.zero_grad()
        out.backward(flow.tensor(g))
        want.backward(torch.tensor(g))
        close(x.grad, y.grad)
        for p, q in zip(mine.parameters(), theirs.parameters()):
            close(p.grad, q.grad)
        for p, q in zip(mine.buffers(), theirs.buffers()):
            close(p, q)


def test_max_pool_indices():
    array = numbers(X4)
    out, where = nn.MaxPool2d(3, 2, 1, return_indices=True)(flow.tensor(array))
    want, places = T.MaxPool2d(3, 2, 1, return_indices=True)(torch.tensor(array))
    close(out, want)
    assert where.dtype is flow.int64 and (where.numpy() == places.numpy()).all()


def test_embedding():
    for options in ({}, {"padding_idx": 2}):
        mine, theirs = both("Embedding", (5, 3), options)
        index = np.array([[0, 2, 2], [4, 4, 1]])
        out, want = mine(flow.tensor(index)), theirs(torch.tensor(index))
        close(out, want)
        g = numbers(want.shape)
        out.backward(flow.tensor(g)), want.backward(torch.tensor(g))
        close(mine.weight.grad, theirs.weight.grad)
        assert repr(mine) == repr(theirs)


LOGITS, LABELS = (5, 4), np.array([0, 3, 1, 1, 2])
IMAGES, PIXELS = (2, 4, 3, 3), np.random.default_rng(5).integers(0, 4, (2, 3, 3))
WEIGHT = np.array([0.5, 1.0, 2.0, 3.0])
PROBABILITIES = np.random.default_rng(6).dirichlet(np.ones(4), 5)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight": WEIGHT},
        {"ignore_index": 1},
        {"label_smoothing": 0.1},
        {"weight": WEIGHT, "ignore_index": 1, "label_smoothing": 0.2},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("shape", "target"),
    [(LOGITS, LABELS), (IMAGES, PIXELS), (LOGITS, PROBABILITIES), ((4,), np.array(2))],
    ids=["labels", "pixels", "probabilities", "single"],
)
def test_cross_entropy(shape, target, options, reduction):
    if target.dtype.kind == "f" and "ignore_index" in options:
        pytest.skip("probabilities have no ignore_index")
    compare("CrossEntropyLoss", shape, target, {**options, "reduction": reduction})
    if target.dtype.kind == "i" and "label_smoothing" not in options:
        compare("NLLLoss", shape, target, {**options, "reduction": reduction})


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("MSELoss", {}),
        ("L1Loss", {}),
        ("BCELoss", {}),
        ("BCELoss", {"weight": WEIGHT}),
        ("BCEWithLogitsLoss", {}),
        ("BCEWithLogitsLoss", {"weight": WEIGHT}),
        ("BCEWithLogitsLoss", {"pos_weight": WEIGHT}),
        ("BCEWithLogitsLoss", {"weight": WEIGHT, "pos_weight": WEIGHT[::-1].copy()}),
    ],
    ids=str,
)
def test_numbers_loss(name, options, reduction):
    target = np.random.default_rng(2).random((5, 4))
    target[0] = [0, 1, 0, 1]
    compare(name, (5, 4), target, {**options, "reduction": reduction}, unit=name == "BCELoss")


def compare(name, shape, target, options, unit=False):
    def make(library, tensor):
        return getattr(library, name)(**{k: tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()})

    array = np.random.default_rng(4).random(shape) if unit else numbers(shape)
    x, y = flow.tensor(array, requires_grad=True), torch.tensor(array, requires_grad=True)
    loss, want = make(nn, flow.tensor)(x, flow.tensor(target)), make(T, torch.tensor)(y, torch.tensor(target))
    close(loss, want)
    g = numbers(want.shape, 1)
    loss.backward(flow.tensor(g)), want.backward(torch.tensor(g))
    close(x.grad, y.grad)


def test_functions():
    F, G = nn.functional, T.functional
    array = numbers(X3)
    x, y = flow.tensor(array), torch.tensor(array)
    for widths in ((1, 2), (0, 1, 2, 0), (-1, 2), (1, 1, -2, 0, 0, 3), (0, 0)):
        close(F.pad(x, widths, value=1.5), G.pad(y, widths, value=1.5))
    for p, dim in ((2.0, 1), (1.0, -1), (2.0, 0)):
        close(F.normalize(x, p, dim), G.normalize(y, p, dim))
    index = np.array([[0, 2], [1, 0]])
    for classes in (-1, 4):
        ours, theirs = F.one_hot(flow.tensor(index), classes), G.one_hot(torch.tensor(index), classes)
        assert ours.dtype is flow.int64 and ours.tolist() == theirs.tolist()
    for name in ("relu", "relu6", "leaky_relu", "silu"):
        a, b = flow.tensor(array), torch.tensor(array)
        ours, theirs = getattr(F, name)(a, inplace=True), getattr(G, name)(b, inplace=True)
        assert ours is a
        close(a, b)
    close(F.softmax(x.float(), -1, dtype=flow.float64), G.softmax(y.float(), -1, dtype=torch.float64))


def test_functions_of_nan_and_large_numbers():
    array = np.array([np.nan, np.inf, -np.inf, 1e4, -1e4, 0.0])
    for name in ("relu", "relu6", "sigmoid", "tanh", "leaky_relu"):
        close(getattr(nn.functional, name)(flow.tensor(array)), getattr(T.functional, name)(torch.tensor(array)))
    logits = np.array([[1e4, -1e4, 0.0]])
    for target in ([0], [1]):
        close(
            nn.functional.cross_entropy(flow.tensor(logits), flow.tensor(target)),
            T.functional.cross_entropy(torch.tensor(logits), torch.tensor(target)),
        )
    close(
        nn.functional.binary_cross_entropy_with_logits(flow.tensor(logits), flow.tensor([[0.0, 0.0, 1.0]]).double()),
        T.functional.binary_cross_entropy_with_logits(torch.tensor(logits), torch.tensor([[0.0, 0.0, 1.0]]).double()),
    )


def test_clip_grad():
    grads = [numbers((3, 4)), numbers((5,))]
    for norm_type in (2.0, 1.0, float("inf"), 3.0):
        mine, theirs = (
            [nn.Parameter(flow.tensor(g * 0)) for g in grads],
            [T.Parameter(torch.tensor(g * 0)) for g in grads],
        )
        for p, q, g in zip(mine, theirs, grads):
            p.grad, q.grad = flow.tensor(g), torch.tensor(g)
        a, b = nn.utils.clip_grad_norm_(mine, 1.5, norm_type), T.utils.clip_grad_norm_(theirs, 1.5, norm_type)
        close(a, b)
        for p, q in zip(mine, theirs):
            close(p.grad, q.grad)


def test_model_with_the_names_of_torch_loads_its_state():
    def make(library):
        return library.Sequential(
            library.Conv2d(1, 4, 3),
            library.BatchNorm2d(4),
            library.ReLU(),
            library.Flatten(),
            library.Linear(4 * 36, 10),
        )

    mine, theirs = make(nn), make(T)
    mine.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    array = np.random.default_rng(0).standard_normal((3, 1, 8, 8)).astype("float32")
    close(mine(flow.tensor(array)), theirs(torch.tensor(array)), 1e-4, 1e-5)


def test_names_of_hooks_state_and_reprs_of_containers():
    def make(library):
        class Net(library.Module):
            def __init__(self):
                super().__init__()
                self.layers = library.ModuleList([library.Linear(2, 2), library.Linear(2, 2), library.ReLU()])
                self.named = library.ModuleDict({"a": library.Dropout(0.1), "b": library.Softmax(dim=1)})
                self.empty = library.Sequential()

        return Net()

    assert repr(make(nn)) == repr(make(T))
    assert list(make(nn).state_dict()) == list(make(T).state_dict())


@pytest.mark.parametrize("name", ["linear", "conv2d", "relu", "tanh", "sigmoid", "leaky_relu", "selu"])
def test_gains(name):
    assert nn.init.calculate_gain(name) == pytest.approx(T.init.calculate_gain(name))
    assert nn.init.calculate_gain("leaky_relu", 0.3) == pytest.approx(T.init.calculate_gain("leaky_relu", 0.3))


def test_weights_from_files_of_torch(tmp_path):
    def make(library):
        return library.Sequential(library.Linear(3, 4), library.BatchNorm1d(4), library.Linear(4, 2))

    theirs = make(T)
    array = np.random.default_rng(0).standard_normal((3, 3)).astype("float32")
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_file(theirs.state_dict(), tmp_path / "model.safetensors")
    np.savez(tmp_path / "model.npz", **{k: v.numpy() for k, v in theirs.state_dict().items()})
    for state in (flow.load(tmp_path / "model.safetensors"), np.load(tmp_path / "model.npz")):
        mine = make(nn)
        mine.load_state_dict(state)
        close(mine.eval()(flow.tensor(array)), theirs.eval()(torch.tensor(array)), 1e-5, 1e-6)
