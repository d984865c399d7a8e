"""stft and istft by their definition, and in graphs. Against PyTorch: `test_stft_torch.py`."""

import numpy as np
import pytest

import minflow as flow
from tests.graph_models import graph_of

WINDOW = flow.hann_window(8, dtype=flow.float64)


def signal():
    return flow.tensor(np.random.default_rng(0).standard_normal(29))


def test_each_column_is_the_spectrum_of_a_frame():
    x = signal()
    found = flow.stft(x, 8, 3, window=WINDOW, center=False, return_complex=True).numpy()
    frames = [x.numpy()[k : k + 8] * WINDOW.numpy() for k in range(0, 22, 3)]
    np.testing.assert_allclose(found, np.fft.rfft(frames).T, atol=1e-12)


def test_there_and_back():
    x = signal()
    spectra = flow.stft(x, 8, window=WINDOW, return_complex=True)
    assert flow.allclose(flow.istft(spectra, 8, window=WINDOW, length=29), x)


def test_graph_gives_the_same_bits():
    def build(self, x):
        spectra = flow.stft(x, 8, window=WINDOW, return_complex=True)
        return spectra.abs(), flow.istft(spectra * 2, 8, window=WINDOW, length=29)

    graph = graph_of(build)
    graph.config.exact(True)
    assert all(flow.equal(a, b) for a, b in zip(graph(signal()), build(None, signal()), strict=True))


def test_notices():
    with pytest.warns(flow.MinflowWarning, match="without a window"):
        spectra = flow.stft(signal(), 8, return_complex=True)
    with pytest.warns(flow.MinflowWarning, match="the others are 0"):
        assert flow.istft(spectra, 8, window=flow.ones(8), length=40)[-8:].abs().sum() == 0
    with pytest.raises(flow.DTypeError, match="return_complex must be given") as caught:
        flow.stft(signal(), 8, window=WINDOW)
    assert "return_complex=True" in caught.value.hint
    with pytest.raises(flow.DTypeError, match="align_to_window"):
        flow.stft(signal(), 8, window=WINDOW, center=False, return_complex=True, align_to_window=True)
