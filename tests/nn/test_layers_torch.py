"""Layers against PyTorch: reprs, state, outputs, gradients and running statistics, from the same float64 values; and
states saved by PyTorch.

Values at kinks, of all options and of functions: `../test_public_calls.py`, which needs no PyTorch.
"""

import re

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from tests.pytorch import T, needs_torch, torch

pytestmark = needs_torch
SPACE = {1: (7,), 2: (5, 6), 3: (4, 5, 4)}
OF_SPACE = [  # name, arguments
    ("Conv{}d", lambda n: dict(in_channels=4, out_channels=6, kernel_size=3, stride=2, padding=1, groups=2)),
    ("Conv{}d", lambda n: dict(in_channels=4, out_channels=2, kernel_size=(2, 3, 2)[:n], padding="same", dilation=2)),
    ("Conv{}d", lambda n: dict(in_channels=4, out_channels=2, kernel_size=2, padding="same", padding_mode="circular")),
    (
        "Conv{}d",
        lambda n: dict(in_channels=4, out_channels=2, kernel_size=3, padding=1, padding_mode="reflect", bias=False),
    ),
    ("Conv{}d", lambda n: dict(in_channels=4, out_channels=2, kernel_size=3, padding=2, padding_mode="replicate")),
    (
        "ConvTranspose{}d",
        lambda n: dict(in_channels=4, out_channels=2, kernel_size=3, stride=2, padding=1, output_padding=1),
    ),
    ("ConvTranspose{}d", lambda n: dict(in_channels=4, out_channels=6, kernel_size=(3, 2, 1)[:n], groups=2)),
    ("ConvTranspose{}d", lambda n: dict(in_channels=4, out_channels=2, kernel_size=2, dilation=3, output_padding=2)),
    ("ConstantPad{}d", lambda n: dict(padding=1, value=2.0)),
    ("ZeroPad{}d", lambda n: dict(padding=(1, 0, 2, -1, 0, 1)[: 2 * n])),
    ("InstanceNorm{}d", lambda n: dict(num_features=4)),
    ("MaxPool{}d", lambda n: dict(kernel_size=3, stride=2, padding=1, ceil_mode=True)),
    ("MaxPool{}d", lambda n: dict(kernel_size=2, dilation=2, stride=1)),
    ("AvgPool{}d", lambda n: dict(kernel_size=3, stride=2, padding=1, ceil_mode=True)),
    ("AvgPool{}d", lambda n: dict(kernel_size=2, padding=1, count_include_pad=False)),
    ("LPPool{}d", lambda n: dict(norm_type=2, kernel_size=2)),
    ("LPPool{}d", lambda n: dict(norm_type=float("inf"), kernel_size=2, stride=1)),
    ("AdaptiveAvgPool{}d", lambda n: dict(output_size=3)),
    ("AdaptiveMaxPool{}d", lambda n: dict(output_size=(3, 4, 6)[:n])),
    ("InstanceNorm{}d", lambda n: dict(num_features=4, affine=True, track_running_stats=True, momentum=0.3)),
    *[
        (f"{kind}Pad{{}}d", lambda n: dict(padding=(1, 2, 0, 1, 2, 0)[: 2 * n]))
        for kind in ("Reflection", "Replication", "Circular")
    ],
]
TABLE, SIGNALS, IMAGES = (4, 6), (3, 6, 5), (2, 6, 9, 8)
OTHERS = [  # name, arguments, input shape
    ("Linear", dict(in_features=6, out_features=3), TABLE),
    ("Linear", dict(in_features=6, out_features=3), (6,)),
    ("Linear", dict(in_features=8, out_features=3, bias=False), IMAGES),
    ("Identity", dict(), TABLE),
    ("Flatten", dict(), IMAGES),
    ("Flatten", dict(start_dim=2), IMAGES),
    ("Unflatten", dict(dim=1, unflattened_size=(2, 3)), IMAGES),
    ("AvgPool2d", dict(kernel_size=2, divisor_override=3), IMAGES),
    ("AdaptiveAvgPool2d", dict(output_size=(None, 4)), IMAGES),
    ("BatchNorm1d", dict(num_features=6), TABLE),
    ("BatchNorm1d", dict(num_features=6), SIGNALS),
    ("BatchNorm2d", dict(num_features=6, affine=False, eps=1e-3), IMAGES),
    ("BatchNorm2d", dict(num_features=6, track_running_stats=False), IMAGES),
    ("BatchNorm2d", dict(num_features=6, momentum=None), IMAGES),
    ("LayerNorm", dict(normalized_shape=6), TABLE),
    ("LayerNorm", dict(normalized_shape=(6, 5), eps=1e-3), SIGNALS),
    ("LayerNorm", dict(normalized_shape=5, elementwise_affine=False), SIGNALS),
    ("LayerNorm", dict(normalized_shape=5, bias=False), SIGNALS),
    ("Dropout", dict(p=0.0), TABLE),
    ("ReLU", dict(), TABLE),
    ("ReLU6", dict(), TABLE),
    ("LeakyReLU", dict(negative_slope=-0.5), TABLE),
    ("GELU", dict(), TABLE),
    ("GELU", dict(approximate="tanh"), TABLE),
    ("SiLU", dict(), TABLE),
    ("Sigmoid", dict(), TABLE),
    ("Tanh", dict(), TABLE),
    ("Softmax", dict(dim=1), SIGNALS),
    ("LogSoftmax", dict(dim=0), SIGNALS),
    ("Sequential", dict(), TABLE),
]
CASES = OTHERS + [
    (name.format(n), options(n), (*batch, 4, *size))
    for name, options in OF_SPACE
    for n, size in SPACE.items()
    for batch in ((2,), ())
]


@pytest.mark.filterwarnings("ignore")  # PyTorch's warnings about even kernels and new names
@pytest.mark.parametrize(("name", "options", "shape"), CASES, ids=[f"{name}-{len(shape)}d" for name, _, shape in CASES])
def test_layers_match_pytorch(name, options, shape):
    ours, theirs = [getattr(lib, name)(**options).double() for lib in (nn, T)]
    assert repr(ours) == (re.sub(", bias=(True|False)", "", repr(theirs)) if "Norm" in name else repr(theirs))
    rng = np.random.default_rng(0)
    for p in theirs.parameters():
        p.data = torch.from_numpy(rng.standard_normal(p.shape))
    ours.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    numbers = rng.standard_normal(shape)
    for training in (True, True, False):  # twice, so that running statistics accumulate
        ours.train(training), theirs.train(training)
        x, y = flow.tensor(numbers, requires_grad=True), torch.tensor(numbers, requires_grad=True)
        out, want = ours(x), theirs(y)
        for loss, model in (((out * out).sum(), ours), ((want * want).sum(), theirs)):
            model.zero_grad()
            loss.backward()
        same(out, want, "outputs")
        same(x.grad, y.grad, "the gradient of the input")
        for (key, mine), (other_key, other) in zip(ours.state_dict().items(), theirs.state_dict().items(), strict=True):
            assert key == other_key
            same(mine, other, key)
        for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            same(mine.grad, other.grad, "the gradients of parameters")


COMPLEX = [
    ("conv1d", (2, 4, 9), (6, 2, 3), dict(stride=2, padding=1, groups=2)),
    ("conv2d", (2, 3, 7, 6), (2, 3, 3, 2), dict(padding="same", dilation=2)),
    ("conv2d", (3, 5, 5), (2, 3, 3, 3), dict()),
    ("conv3d", (1, 2, 4, 4, 3), (3, 2, 2, 2, 2), dict(stride=(1, 2, 1))),
    ("conv_transpose1d", (2, 4, 5), (4, 3, 3), dict(stride=2, output_padding=1, groups=2)),
    ("conv_transpose2d", (2, 3, 4, 4), (3, 2, 3, 3), dict(padding=1, dilation=2)),
    ("conv_transpose3d", (1, 2, 3, 3, 2), (2, 1, 2, 2, 2), dict()),
]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name, input, weight, options", COMPLEX)
def test_complex_convolutions(name, input, weight, options, bias):
    rng = np.random.default_rng(3)
    filters = weight[1] * options.get("groups", 1) if "transpose" in name else weight[0]
    arrays = [rng.standard_normal((*shape, 2)).view(complex)[..., 0] for shape in (input, weight, (filters,))]
    results = []
    for library in (flow, torch):
        leaves = [library.tensor(array, requires_grad=True) for array in arrays[: 2 + bias]]
        out = getattr(library.nn.functional, name)(*leaves, **options)
        (out.abs() ** 2 + out.real * 3).sum().backward()
        results.append([out, *[x.grad for x in leaves]])
    for mine, other in zip(*results, strict=True):
        same(mine, other, name)


def test_complex_layers():
    x = np.random.default_rng(0).standard_normal((2, 3, 6, 6)) * (1 + 2j)
    ours, theirs = (library.Conv2d(3, 4, 3, padding=1, padding_mode="circular") for library in (nn, T))
    ours, theirs = ours.to(flow.complex128), theirs.to(torch.complex128)
    ours.load_state_dict({key: flow.tensor(value.numpy()) for key, value in theirs.state_dict().items()})
    same(ours(flow.tensor(x)), theirs(torch.tensor(x)), "outputs")
    with pytest.raises(flow.DTypeError, match="the input is complex128, the parameters are float32") as caught:
        nn.Conv2d(3, 4, 3)(flow.tensor(x))
    assert caught.value.hint == "module.to(flow.complex128), or weight.to(flow.complex128)"


def same(ours, theirs, what):
    assert tuple(ours.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-8, atol=1e-10, err_msg=what)


def test_state_and_reprs_of_containers():
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


def test_weights_from_pytorch_files(tmp_path):
    def make(library):
        return library.Sequential(library.Linear(3, 4), library.BatchNorm1d(4), library.Linear(4, 2))

    theirs = make(T)
    array = np.random.default_rng(0).standard_normal((3, 3)).astype("float32")
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_file(theirs.state_dict(), tmp_path / "model.safetensors")
    np.savez(tmp_path / "model.npz", **{k: v.numpy() for k, v in theirs.state_dict().items()})
    want = theirs.eval()(torch.tensor(array)).detach().numpy()
    for state in (flow.load(tmp_path / "model.safetensors"), np.load(tmp_path / "model.npz")):
        mine = make(nn)
        mine.load_state_dict(state)
        np.testing.assert_allclose(mine.eval()(flow.tensor(array)).detach().numpy(), want, rtol=1e-5, atol=1e-6)
