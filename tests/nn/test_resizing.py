"""Resizing, grid sampling, fold and unfold, pixel shuffle: against PyTorch, by hand, and errors."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.nn import functional as F
from tests.pytorch import needs_torch, torch

SPACE = {1: (7,), 2: (5, 6), 3: (4, 5, 3)}
PLAIN = ("nearest", "nearest-exact", "area")
MODES = {1: (*PLAIN, "linear"), 2: (*PLAIN, "bilinear", "bicubic"), 3: (*PLAIN, "trilinear")}
RNG = np.random.default_rng(0)


def same(name, *arrays, **options):
    """Compare values and gradients of a function of nn.functional in float64."""
    ours = [flow.tensor(a, requires_grad=True) for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    y, z = getattr(F, name)(*ours, **options), getattr(torch.nn.functional, name)(*theirs, **options)
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-7, atol=1e-9)
    g = RNG.standard_normal(tuple(z.shape))
    y.backward(flow.tensor(g)), z.backward(torch.tensor(g))
    for a, b in zip(ours, theirs, strict=True):
        mine = np.zeros(a.shape) if a.grad is None else a.grad.numpy()
        np.testing.assert_allclose(mine, b.grad.numpy(), rtol=1e-7, atol=1e-9)


@needs_torch
@pytest.mark.parametrize(("n", "mode"), [(n, mode) for n in SPACE for mode in MODES[n]])
@pytest.mark.parametrize(
    "options",
    [dict(size=6), dict(scale_factor=1.7), dict(scale_factor=0.6), dict(scale_factor=1.7, recompute_scale_factor=True)],
    ids=str,
)
def test_interpolate(n, mode, options):
    x = RNG.standard_normal((2, 3, *SPACE[n]))
    for align in (None,) if mode in PLAIN else (False, True):
        same("interpolate", x, mode=mode, align_corners=align, **options)


@needs_torch
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_grid_sample(mode, padding_mode, align_corners):
    for n in (2, 3) if mode != "bicubic" else (2,):
        x, grid = RNG.standard_normal((2, 3, *SPACE[n])), RNG.uniform(-1.8, 1.8, (2, *(4, 2, 3)[:n], n))
        same("grid_sample", x, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners)


@needs_torch
@pytest.mark.filterwarnings("ignore:Since version 1.3.0")  # PyTorch's warning about align_corners
def test_affine_grid_fold_and_shuffle():
    for align in (False, True):
        same("affine_grid", RNG.standard_normal((2, 2, 3)), size=(2, 1, 3, 1), align_corners=align)
        same("affine_grid", RNG.standard_normal((2, 3, 4)), size=(2, 1, 3, 2, 4), align_corners=align)
    options = dict(kernel_size=(2, 3), stride=(2, 1), padding=1, dilation=(1, 2))
    x = RNG.standard_normal((2, 3, 6, 7))
    columns = torch.nn.functional.unfold(torch.tensor(x), **options).numpy()
    for example in (slice(None), 0):
        same("unfold", x[example], **options)
        same("fold", columns[example], output_size=(6, 7), **options)
    same("pixel_shuffle", RNG.standard_normal((2, 8, 3, 2)), upscale_factor=2)
    same("pixel_unshuffle", RNG.standard_normal((8, 4, 6)), downscale_factor=2)


def test_results_match_by_hand():
    x = flow.tensor([[[1.0, 2.0, 4.0]]])
    assert F.interpolate(x, 6).tolist() == [[[1.0, 1.0, 2.0, 2.0, 4.0, 4.0]]]
    assert F.interpolate(x, 5, mode="linear", align_corners=True).tolist() == [[[1.0, 1.5, 2.0, 3.0, 4.0]]]
    assert F.interpolate(x, scale_factor=1 / 3, mode="area").tolist()[0][0] == [pytest.approx(7 / 3)]
    assert F.interpolate(flow.tensor([[[[1, 2]]]], dtype=flow.uint8), scale_factor=2).dtype is flow.uint8
    image = flow.arange(4.0).reshape(1, 1, 2, 2)
    middle = flow.zeros(1, 1, 1, 2)
    assert F.grid_sample(image, middle, align_corners=False).item() == 1.5
    assert F.grid_sample(image, flow.full((1, 1, 1, 2), float("nan")), align_corners=True).item() == 0.0
    channels = flow.arange(4.0).reshape(1, 4, 1, 1)
    assert F.channel_shuffle(channels, 2).flatten().tolist() == [0.0, 2.0, 1.0, 3.0]
    ones = flow.ones(1, 1, 3, 3)
    assert F.fold(F.unfold(ones, 2), (3, 3), 2)[0, 0].tolist() == [[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 1.0]]


def test_layers():
    x = flow.randn(1, 4, 2, 3)
    assert nn.Upsample(scale_factor=2)(x).shape == (1, 4, 4, 6)
    assert repr(nn.Upsample(scale_factor=2, mode="bilinear")) == "Upsample(scale_factor=2.0, mode='bilinear')"
    assert repr(nn.UpsamplingNearest2d(size=(2, 3))) == "UpsamplingNearest2d(size=(2, 3), mode='nearest')"
    assert repr(nn.Fold((4, 5), 2)) == "Fold(output_size=(4, 5), kernel_size=2, dilation=1, padding=0, stride=1)"
    assert np.array_equal(nn.PixelUnshuffle(2)(nn.PixelShuffle(2)(x)).numpy(), x.numpy())
    assert F.channel_shuffle(x, 1).data_ptr() != x.data_ptr()
    for old, new in (
        (F.upsample(x, 4), F.interpolate(x, 4)),
        (F.upsample_nearest(x, 4), F.interpolate(x, 4)),
        (F.upsample_bilinear(x, 4), F.interpolate(x, 4, mode="bilinear", align_corners=True)),
    ):
        assert np.array_equal(old.numpy(), new.numpy())


X, ONES = flow.ones(1, 4, 3, 3), flow.ones
WRONG = [
    (lambda: F.interpolate(X), "must be given, got None and None"),
    (lambda: F.interpolate(X, 2, 2), "must be given, got 2 and 2"),
    (lambda: F.interpolate(X, (1, 2, 3)), r"size must be a whole number, or one for each of 2 axes, got \(1, 2, 3\)"),
    (lambda: F.interpolate(X, 0), r"got \(0, 0\) from \(3, 3\)"),
    (lambda: F.interpolate(X, 2, mode="linear"), "mode 'linear' needs an input of 3 axes, got 4"),
    (lambda: F.interpolate(X, 2, mode="cubic"), "mode is 'cubic'"),
    (lambda: F.interpolate(X, 2, align_corners=True), "align_corners=True has no meaning for mode 'nearest'"),
    (lambda: F.interpolate(X, 2, antialias=True), "antialias"),
    (lambda: F.interpolate(X, 2, recompute_scale_factor=True), "recompute_scale_factor with a size"),
    (lambda: F.interpolate(X.long(), 2), "the input must be floating, got int64"),
    (lambda: F.grid_sample(X, ONES(1, 2, 2, 3)), r"shape \(1, 4, 3, 3\) and a grid of shape \(1, 2, 2, 3\)"),
    (lambda: F.grid_sample(X, ONES(1, 2, 2, 2), "cubic"), "mode is 'cubic'"),
    (lambda: F.grid_sample(X, ONES(1, 2, 2, 2).double()), "the grid is float64"),
    (lambda: F.grid_sample(ONES(1, 1, 2, 2, 2), ONES(1, 1, 1, 1, 3), "bicubic"), "the input has 5 axes"),
    (lambda: F.affine_grid(ONES(1, 2, 3), (2, 1, 3, 3)), r"theta of shape \(1, 2, 3\) for size \(2, 1, 3, 3\)"),
    (lambda: F.affine_grid(ONES(1, 2, 3).long(), (1, 1, 3, 3)), "theta is int64"),
    (lambda: F.unfold(X, 5), r"a window of \(5, 5\).*does not fit into \(3, 3\)"),
    (lambda: F.unfold(X[0, 0], 2), r"the input must be .* got \(3, 3\)"),
    (lambda: F.unfold(X.long(), 2), "unfold: the input must be floating, got int64"),
    (lambda: F.fold(ONES(1, 5, 4), (3, 3), 2), r"the input must be \(N, C \* 4, 4\) .*got \(1, 5, 4\)"),
    (lambda: F.pixel_shuffle(X, 3), r"shape \(1, 4, 3, 3\) with upscale_factor 3"),
    (lambda: F.pixel_unshuffle(X, 2), r"shape \(1, 4, 3, 3\) with downscale_factor 2"),
    (lambda: F.channel_shuffle(X, 3), r"shape \(1, 4, 3, 3\) in 3 groups"),
]


@pytest.mark.parametrize(("call", "match"), WRONG)
def test_errors(call, match):
    with pytest.raises(flow.MinflowError, match=match):
        call()
