"""Pooling of signals and volumes, adaptive pooling, and unpooling: ties, NaN, -inf, indices, and errors."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.core.trace import trace
from minflow.nn import functional as F
from tests.pytorch import needs_torch, torch

NAN, INF = float("nan"), float("inf")
SPACE = {1: (9,), 2: (7, 8), 3: (5, 6, 4)}


def tied(*shape):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 3, shape).astype("float32")
    x[rng.random(shape) < 0.08] = NAN
    x[rng.random(shape) < 0.3] = -INF
    return x


@needs_torch
@pytest.mark.parametrize("n", SPACE)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("max_pool", dict(kernel_size=2)),
        ("max_pool", dict(kernel_size=3, stride=2, padding=1, ceil_mode=True)),
        ("max_pool", dict(kernel_size=2, stride=1, dilation=2)),
        *[("adaptive_max_pool", dict(output_size=size)) for size in (1, 2, 3, 10)],
    ],
    ids=str,
)
def test_indices_match_pytorch(n, name, options):
    x = tied(2, 3, *SPACE[n])
    if name == "adaptive_max_pool":
        x[x == -INF] = 1.0
    mine = getattr(F, f"{name}{n}d")(flow.tensor(x), **options, return_indices=True)
    theirs = getattr(torch.nn.functional, f"{name}{n}d")(torch.tensor(x), **options, return_indices=True)
    for a, b in zip(mine, theirs, strict=True):
        assert np.array_equal(a.numpy(), b.numpy(), equal_nan=True)


def test_results_match_by_hand():
    x = flow.tensor([[[1.0, 5.0, 5.0, 2.0, 0.0]]], requires_grad=True)
    y, i = F.max_pool1d(x, 3, 1, return_indices=True)
    assert y.tolist() == [[[5.0, 5.0, 5.0]]] and i.tolist() == [[[1, 1, 2]]]
    y.sum().backward()
    assert x.grad.tolist() == [[[0.0, 2.0, 1.0, 0.0, 0.0]]]
    assert F.avg_pool1d(x, 2, padding=1).tolist() == [[[0.5, 5.0, 1.0]]]
    assert F.adaptive_avg_pool1d(x, 2).detach().numpy() == pytest.approx(np.array([[[11 / 3, 7 / 3]]]))
    assert F.lp_pool1d(x, 1, 5).tolist() == [[[13.0]]] and F.lp_pool1d(x, INF, 5).tolist() == [[[5.0]]]
    volume = flow.arange(8.0).reshape(1, 2, 2, 2)
    assert F.avg_pool3d(volume, 2, divisor_override=4).tolist() == [[[[7.0]]]]
    assert F.adaptive_max_pool3d(volume, 1, True)[1].tolist() == [[[[7]]]]


@pytest.mark.parametrize("n", SPACE)
def test_max_unpool(n):
    x = flow.randn(2, 3, *SPACE[n])
    y, i = getattr(F, f"max_pool{n}d")(x, 2, return_indices=True)
    y = y.detach().requires_grad_()
    back = getattr(F, f"max_unpool{n}d")(y, i, 2, output_size=x.shape)
    assert back.shape == x.shape and np.array_equal(back.detach().numpy(), np.where(back.numpy() != 0, x.numpy(), 0))
    assert back.sum().item() == pytest.approx(y.sum().item(), rel=1e-4)
    back.sum().backward()
    assert np.array_equal(y.grad.numpy(), np.ones(y.shape))


def test_unpool_does_not_add_duplicate_indices():
    x = flow.tensor([[[1.0, 9.0, 2.0]]])
    y, i = F.max_pool1d(x, 2, 1, return_indices=True)
    assert F.max_unpool1d(y, i, 2, 1).tolist() == [[[0.0, 9.0, 0.0]]]


def test_lp_pool_of_zeros_has_zero_gradient():
    x = flow.zeros(1, 1, 4, requires_grad=True)
    F.lp_pool1d(x, 2, 2).sum().backward()
    assert x.grad.tolist() == [[[0.0] * 4]]


def test_pool_attributes_are_in_argument_order():
    def program(x):
        return [F.max_pool2d(x, 2, dilation=2), F.avg_pool2d(x, 2, divisor_override=3)]

    graph, _ = trace(program, [flow.rand(1, 1, 6, 6)])
    largest, mean = [list(node.attrs) for node in graph.nodes]
    assert largest == ["kernel_size", "stride", "padding", "dilation", "ceil_mode"]
    assert mean == ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"]


ONES = flow.ones
WRONG = [
    (lambda: F.max_pool1d(ONES(4), 2), r"must be \(N, C, L\) or \(C, L\), got 1 axes"),
    (lambda: F.max_pool3d(ONES(1, 2, 3, 3, 3).long(), 2), "max_pool3d: the input must be floating, got int64"),
    (lambda: F.max_pool1d(ONES(2, 4), 2, padding=2), "padding 2 is more than half of the window of 2"),
    (lambda: F.avg_pool3d(ONES(1, 2, 2, 2), (3, 1, 1)), r"a window of \(3, 1, 1\).*does not fit into \(2, 2, 2\)"),
    (lambda: F.avg_pool3d(ONES(1, 2, 2, 2), 2, divisor_override=0), "divisor_override is 0"),
    (lambda: F.avg_pool1d(ONES(2, 0, 3), 2), r"an input of shape \[2, 0, 3\] has no elements to pool"),
    (lambda: F.adaptive_max_pool2d(ONES(1, 3, 3), (1, 2, 3)), r"output_size must be .* got \(1, 2, 3\)"),
    (lambda: F.lp_pool2d(ONES(1, 4, 4), 0, 2), "norm_type must not be 0"),
    (lambda: F.max_unpool1d(ONES(1, 2), flow.tensor([[0, 9]]), 2), "index 9.* size 4"),
    (lambda: F.max_unpool1d(ONES(1, 2), flow.tensor([[0]]), 2), r"the input has shape \(1, 2\), the indices"),
    (lambda: F.max_unpool2d(ONES(1, 2, 2), ONES(1, 2, 2).long(), 2, output_size=(9, 9)), r"output_size is \(9, 9\)"),
    (lambda: nn.MaxUnpool2d((2, 2, 2)), r"kernel_size must be .* got \(2, 2, 2\)"),
]


@pytest.mark.parametrize(("call", "match"), WRONG)
def test_errors(call, match):
    with pytest.raises(flow.MinflowError, match=match):
        call()


FRACTIONAL = [((2, 3, 11, 9), (2, 3), (5, 4)), ((3, 11, 9), 2, (10, 1)), ((2, 2, 9, 8, 7), (2, 3, 2), (4, 1, 5))]


@pytest.mark.parametrize("shape, kernel, size", FRACTIONAL)
def test_fractional_windows(shape, kernel, size):
    """Window i of m begins at floor((i + u) * step) - floor(u * step), and the last one at the end."""
    rng = np.random.default_rng(0)
    n = len(size)
    x, u = rng.normal(size=shape), rng.random((shape[0] if len(shape) > n + 1 else 1, shape[-n - 1], n))
    pool = getattr(F, f"fractional_max_pool{n}d_with_indices")
    y, indices = pool(flow.tensor(x), kernel, size, _random_samples=flow.tensor(u))
    assert y.shape == (*shape[:-n], *size)
    picked = np.take_along_axis(x.reshape(*shape[:-n], -1), indices.numpy().reshape(*shape[:-n], -1), -1)
    np.testing.assert_array_equal(y.numpy().reshape(picked.shape), picked)
    kernels = (kernel,) * n if isinstance(kernel, int) else kernel
    last = x[(..., *[slice(whole - k, None) for whole, k in zip(shape[-n:], kernels)])]
    np.testing.assert_array_equal(y.numpy()[(..., *[-1] * n)], last.max(tuple(range(-n, 0))))
    layer = getattr(nn, f"FractionalMaxPool{n}d")(kernel, output_ratio=0.5, return_indices=True)
    assert layer(flow.tensor(x))[1].shape == (*shape[:-n], *[whole // 2 for whole in shape[-n:]])


@needs_torch
@pytest.mark.parametrize("shape, kernel, size", FRACTIONAL)
def test_fractional_windows_are_those_of_torch(shape, kernel, size):
    rng = np.random.default_rng(0)
    n = len(size)
    x, u = rng.normal(size=shape), rng.random((shape[0] if len(shape) > n + 1 else 1, shape[-n - 1], n))
    results = []
    for lib in (flow, torch):
        image = lib.tensor(x, requires_grad=True)
        pool = getattr(lib.nn.functional, f"fractional_max_pool{n}d")
        y, indices = pool(image, kernel, size, return_indices=True, _random_samples=lib.tensor(u))
        (y * y).sum().backward()
        results.append([np.asarray(it.detach()) for it in (y, indices, image.grad)])
    for ours, theirs in zip(*results):
        np.testing.assert_array_equal(ours, theirs)


def test_mistakes_of_fractional_pools():
    for words, text in [
        ({}, "one of output_size"),
        (dict(output_size=9), "do not fit into"),
        (dict(output_ratio=(0.5, 0.5, 0.5)), "must be 2 numbers"),
        (dict(output_size=2, _random_samples=flow.rand(1, 1, 3)), r"must be \(1, 1, 2\)"),
    ]:
        with pytest.raises(flow.ShapeError, match=text):
            F.fractional_max_pool2d(flow.ones(1, 1, 8, 8), 2, **words)


def test_functions_that_return_indices():
    x = flow.randn(1, 2, 6, 6)
    y, indices = F.max_pool2d_with_indices(x, 2, 2, 0, 1, False, False)
    assert y.equal(F.max_pool2d(x, 2)) and indices.equal(F.max_pool2d(x, 2, return_indices=True)[1])
    assert F.adaptive_max_pool2d_with_indices(x, output_size=2)[1].equal(F.adaptive_max_pool2d(x, 2, True)[1])
    with pytest.raises(flow.CallError, match="max_pool1d_with_indices also needs kernel_size"):
        F.max_pool1d_with_indices(x[0])


def test_convolution_of_time_first():
    x, weight, bias = flow.randn(7, 2, 4), flow.randn(3, 4, 5), flow.randn(5)
    y = flow.conv_tbc(x, weight, bias, pad=1)
    expected = sum(F.pad(x, (0, 0, 0, 0, 1, 1))[k : k + 7] @ weight[k] for k in range(3)) + bias
    np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=1e-4, atol=1e-5)
    with pytest.raises(flow.ShapeError, match="an input of 2"):
        F.conv_tbc(x[0], weight, bias)
