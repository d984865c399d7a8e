"""A loaded graph with an interpolation between convolutions uses the kernels of the graph that was saved.

Single layers: `../nn/test_every_layer.py`.
"""

import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

import minflow as flow
from minflow import nn
from tests.cases import Cases
from tests.nn.test_every_layer import check_predicting, kernels as kernels


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
def test_interpolation_between_convolutions(mode, tmp_path, kernels):
    kernels(True)
    with Cases() as case:
        for i, options in enumerate([{"scale_factor": 2}, {"scale_factor": 1.7}, {"size": (6, 13)}]):
            resize = nn.Upsample(mode=mode, **options, **({} if mode == "nearest" else {"align_corners": False}))
            model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), resize, nn.Conv2d(16, 8, 3))
            x = flow.randn(2, 3, 16, 20).numpy()
            check_predicting(model, x, tmp_path / f"{i}", lambda what, options=options: case(f"{options}: {what}"))
