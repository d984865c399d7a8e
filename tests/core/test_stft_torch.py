"""stft and istft against PyTorch: values and gradients, and refusals of the same calls. Skipped without PyTorch."""

import warnings

import numpy as np
import pytest

import minflow as flow
from tests.cases import in_cases
from tests.pytorch import needs_torch, torch

pytestmark = needs_torch
RANDOM = np.random.default_rng(3)
SIGNAL = RANDOM.standard_normal((2, 50))
IMAGINARY = RANDOM.standard_normal((2, 50))
OPTIONS = [
    {},
    {"hop_length": 3},
    {"win_length": 9},
    {"center": False, "hop_length": 2},
    {"pad_mode": "constant"},
    {"pad_mode": "replicate", "normalized": True},
    {"pad_mode": "circular", "onesided": False},
    {"onesided": True, "n_fft": 15},
]


def same(ours, theirs):
    assert str(ours.dtype).partition(".")[2] == str(theirs.dtype).partition(".")[2] and ours.shape == theirs.shape
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-12)


def run(lib, options, complex_signal=False, view=None):
    """A signal there and back, with the gradients of a function of both."""
    options = {"n_fft": 16} | options
    n_fft, width = options.pop("n_fft"), options.get("win_length")
    x = lib.tensor(SIGNAL + 1j * IMAGINARY if complex_signal else SIGNAL, requires_grad=True)
    w = lib.tensor(np.linspace(0.5, 1.5, width or n_fft), requires_grad=True)
    spectra = lib.stft(x, n_fft, window=w, return_complex=True if view is None else view, **options)
    whole = lib.view_as_complex(spectra) if view is False else spectra
    options.pop("pad_mode", None)
    back = lib.istft(whole, n_fft, window=w, return_complex=complex_signal, **options)
    weight = lib.tensor(np.linspace(-1, 1, back.shape[-1]))
    total = (whole.abs() ** 2).sum() + (back * weight).abs().sum()
    total.backward()
    return spectra, back, x.grad, w.grad


def both(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ours, theirs in zip(run(flow, *args, **options), run(torch, *args, **options), strict=True):
            same(ours, theirs)


@in_cases("options", OPTIONS)
def test_real_signal(options):
    both(options)


def test_real_view():
    both({}, view=False)


@in_cases("options", [{}, {"hop_length": 5, "win_length": 13}, {"normalized": True}])
def test_complex_signal(options):
    both(options, complex_signal=True)


@in_cases("length", [None, 30, 48, 60])
def test_length(length):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = []
        for lib in (flow, torch):
            window = lib.hann_window(16, dtype=lib.float64)
            spectra = lib.stft(lib.tensor(SIGNAL[0]), 16, window=window, return_complex=True)
            results.append(lib.istft(spectra, 16, window=window, length=length))
    same(*results)


def test_without_a_window_and_as_methods():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for lib in (flow, torch):
            lib.spectra = lib.tensor(SIGNAL).stft(16, return_complex=True)
        same(flow.spectra, torch.spectra)
        same(flow.spectra.istft(16, length=50), torch.spectra.istft(16, length=50))
    del flow.spectra, torch.spectra


@in_cases(
    "call",
    [
        lambda lib, x, w: lib.stft(x, 16, window=w),
        lambda lib, x, w: lib.stft(x, 64, window=lib.ones(64), return_complex=True, center=False),
        lambda lib, x, w: lib.stft(x, 128, window=lib.ones(128), return_complex=True),
        lambda lib, x, w: lib.stft(x, 16, 0, window=w, return_complex=True),
        lambda lib, x, w: lib.stft(x, 16, win_length=17, window=lib.ones(17), return_complex=True),
        lambda lib, x, w: lib.stft(x, 16, window=lib.ones(3), return_complex=True),
        lambda lib, x, w: lib.stft(x[None], 16, window=w, return_complex=True),
        lambda lib, x, w: lib.stft(x.long(), 16, window=w, return_complex=True),
        lambda lib, x, w: lib.stft(x + 0j, 16, window=w, onesided=True),
        lambda lib, x, w: lib.istft(x, 16, window=w),
        lambda lib, x, w: lib.istft(lib.ones(9, 4) + 0j, 16, window=lib.zeros(16)),
        lambda lib, x, w: lib.istft(lib.ones(8, 4) + 0j, 16, window=w),
        lambda lib, x, w: lib.istft(lib.ones(9, 4) + 0j, 16, window=w, return_complex=True),
        lambda lib, x, w: lib.istft(lib.ones(9, 0) + 0j, 16, window=w),
    ],
)
def test_refused(call):
    for lib, kind in ((torch, RuntimeError), (flow, flow.MinflowError)):
        with pytest.raises(kind):
            call(lib, lib.tensor(SIGNAL), lib.ones(16, dtype=lib.float64))
