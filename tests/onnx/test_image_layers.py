"""Options of layers for signals, images and volumes: onnxruntime gives the same results.

Converters of single ops: `test_converters.py`; each layer and loss: `page.py`. Here options are combined.
"""

from itertools import product

import numpy as np
import onnx
import pytest

import minflow as flow
from minflow import nn
from minflow.nn import functional as F
from tests.onnx.helpers import run
from tests.onnx.test_exported_models import AIM, error, flat, images

INPUTS = {1: (2, 4, 11), 2: (2, 4, 9, 11), 3: (2, 4, 7, 8, 6)}


class Applied(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *x):
        return self.function(*x)


def same(function, *inputs, path):
    """Assert that the function gives the same in onnxruntime; integers exactly."""
    model = function if isinstance(function, nn.Module) else Applied(function)
    model.eval()
    flow.onnx.export(model, inputs, path)
    got = run(onnx.load(path), *[x.numpy() for x in inputs])
    for a, b in zip(got, [t.numpy() for t in flat(model(*inputs))], strict=True):
        assert (a == b).all() and a.shape == b.shape if b.dtype.kind == "i" else error(a, b) <= AIM


@pytest.mark.parametrize("n", [1, 2, 3])
def test_convolutions(n, tmp_path):
    flow.manual_seed(0)
    options = [(1, 0, 1, 1), (2, 1, 1, 2), (1, "same", 2, 2), (3, 2, 2, 1), (1, 1, 1, 4)]
    for stride, padding, dilation, groups in options:
        kernel = (3, 2, 2)[:n]
        layer = getattr(nn, f"Conv{n}d")(4, 8, kernel, stride, padding, dilation, groups)
        same(layer, images(*INPUTS[n]), path=tmp_path / "x.onnx")
        if padding != "same":
            for more in range(max(stride, dilation)):
                layer = getattr(nn, f"ConvTranspose{n}d")(
                    4, 8, kernel, stride, padding, more, groups, dilation=dilation
                )
                same(layer, images(*INPUTS[n]), path=tmp_path / "x.onnx")


@pytest.mark.parametrize("n", [1, 2, 3])
def test_pools(n, tmp_path):
    x, path = images(*INPUTS[n]), tmp_path / "x.onnx"
    for (k, s, p), ceil, flag in product([(2, 2, 0), (2, 3, 1), (3, 3, 1)], (False, True), (False, True)):
        same(getattr(nn, f"MaxPool{n}d")(k, s, p, return_indices=flag, ceil_mode=ceil), x, path=path)
        same(getattr(nn, f"AvgPool{n}d")(k, s, p, ceil, flag), x, path=path)
    for size in (1, 3):
        same(getattr(nn, f"AdaptiveAvgPool{n}d")(size), x, path=path)
        same(getattr(nn, f"AdaptiveMaxPool{n}d")(size, return_indices=True), x, path=path)
    pool, back = getattr(nn, f"MaxPool{n}d")(2, return_indices=True), getattr(nn, f"MaxUnpool{n}d")(2)
    same(lambda x: back(*pool(x), output_size=x.shape), x, path=path)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_pools_are_one_node(n):
    for name, kind, args in [
        ("MaxPool", "MaxPool", (2,)),
        ("AvgPool", "AveragePool", (3, 2, 1)),
        ("AdaptiveAvgPool", "GlobalAveragePool", (1,)),
        ("AdaptiveAvgPool", "AveragePool", (2,)),
        ("AdaptiveAvgPool", "Einsum", (3,)),
        ("LPPool", "LpPool", (2, 3, 1)),
    ]:
        layer = getattr(nn, f"{name}{n}d")(*args)
        model = flow.onnx.export(nn.Sequential(layer).eval(), images(2, 3, *(4, 8, 10)[:n])).model_proto
        assert [node.op_type for node in model.graph.node] == [kind]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_lp_pools(n, tmp_path):
    """Each in one node if ONNX has the same, else in parts."""
    x = images(2, 3, *(7, 8, 5)[:n])
    for options in (dict(), dict(stride=1), dict(norm_type=4.0), dict(ceil_mode=True), dict(norm_type=float("inf"))):
        layer = getattr(nn, f"LPPool{n}d")(**dict(norm_type=2, kernel_size=2) | options)
        same(layer, x, path=tmp_path / "x.onnx")
    same(getattr(nn, f"LPPool{n}d")(3, 2), x.abs(), path=tmp_path / "x.onnx")


@pytest.mark.parametrize("layer", [nn.MaxPool1d(2), nn.AvgPool1d(3, 2, 1), nn.LPPool1d(2, 3)], ids=str)
def test_signals_of_any_length(layer):
    model = nn.Sequential(layer).eval()
    program = flow.onnx.export(model, images(2, 3, 12), input_names=["x"], dynamic={"x": {2: "length"}})
    for length in (3, 8, 17):
        x = images(2, 3, length)
        assert error(run(program.model_proto, x.numpy())[0], model(x).numpy()) <= AIM


@pytest.mark.parametrize("n", [2, 3])
def test_avg_pool_divisors(n, tmp_path):
    for options in (
        dict(divisor_override=3),
        dict(divisor_override=3, ceil_mode=True),
        dict(divisor_override=2, padding=1),
    ):
        layer = getattr(nn, f"AvgPool{n}d")(2, **options)
        same(layer, images(2, 3, *(7, 9, 5)[:n]), path=tmp_path / "x.onnx")


def test_dilated_pool_with_partial_ceil_mode_is_refused(tmp_path):
    layer = nn.MaxPool2d(2, 3, 1, dilation=2, ceil_mode=True)
    with pytest.raises(flow.GraphError, match=r"\(9, 11\) to \(4, 4\) by its ceil_mode, ONNX to \(4, 5\)"):
        same(layer, images(1, 1, 9, 11), path=tmp_path / "x.onnx")


def test_unused_pool_indices_are_omitted(tmp_path):
    path = tmp_path / "x.onnx"
    for flag, count in ((False, 1), (True, 2)):
        same(nn.MaxPool2d(2, return_indices=flag), images(1, 2, 4, 4), path=path)
        pool = next(node for node in onnx.load(path).graph.node if node.op_type == "MaxPool")
        assert len(pool.output) == count


def test_resizing(tmp_path):
    x, path = images(2, 3, 9, 11), tmp_path / "x.onnx"
    for mode, size in product(("nearest", "nearest-exact", "bilinear", "bicubic", "area"), ((5, 4), (18, 13))):
        same(lambda x, mode=mode, size=size: F.interpolate(x, size, mode=mode), x, path=path)
    same(lambda x: F.interpolate(x, (4, 20), mode="bilinear", align_corners=True), x, path=path)
    for mode, align in product(("bilinear", "bicubic"), (False, True)):
        same(lambda x, m=mode, a=align: F.interpolate(x, (4, 20), None, m, a, antialias=True), x, path=path)
    for mode, factor in product(("nearest", "bilinear", "bicubic"), (2, 3, 1.7, 0.6, 1.3)):
        same(lambda x, mode=mode, factor=factor: F.interpolate(x, None, factor, mode), x, path=path)
    for mode in ("reflect", "replicate", "circular", "constant"):
        same(lambda x, mode=mode: F.pad(x, (2, 1, 1, 2), mode), x, path=path)


def test_grid_sample(tmp_path):
    grid = flow.tensor(np.random.default_rng(3).uniform(-1.4, 1.4, (2, 5, 6, 2)).astype("float32"))
    for mode, padding in product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")):
        same(
            lambda x, grid, mode=mode, padding=padding: F.grid_sample(x, grid, mode, padding),
            images(2, 3, 9, 11),
            grid,
            path=tmp_path / "x.onnx",
        )
    grid[0, 0, 0, 0] = np.nan
    same(lambda x, grid: F.grid_sample(x, grid), images(2, 3, 9, 11), grid, path=tmp_path / "x.onnx")


def operators(function, *inputs):
    return [node.op_type for node in flow.onnx.export(Applied(function).eval(), inputs).model_proto.graph.node]


def test_one_operator_where_it_rounds_alike():
    x = images(1, 2, 5, 6)
    assert operators(lambda x: F.interpolate(x, scale_factor=3), x) == ["Resize"]
    assert operators(lambda x: F.interpolate(x, (7, 9), mode="bicubic", antialias=True), x) == ["Resize"]
    assert operators(lambda x: F.interpolate(x, (4, 6)), x) == ["Gather"]  # other pixels, if a position is rounded
    assert "Resize" not in operators(lambda x: F.interpolate(x.double(), scale_factor=2, mode="bilinear"), x)
    assert operators(F.grid_sample, x, flow.zeros(1, 2, 2, 2)) == ["IsNaN", "Where", "GridSample"]
    assert "GridSample" not in operators(F.grid_sample, images(1, 1, 2, 2, 2), flow.zeros(1, 1, 1, 1, 3))


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_resizing_of_images_of_any_size(mode):
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Upsample(scale_factor=2, mode=mode), nn.Conv2d(8, 2, 1))
    model.eval()
    axes = {"x": {0: "n", 2: "height", 3: "width"}}
    program = flow.onnx.export(model, images(2, 3, 8, 9), input_names=["x"], dynamic=axes)
    for shape in ((1, 3, 5, 7), (3, 3, 16, 4)):
        x = images(*shape)
        assert error(run(program.model_proto, x.numpy())[0], model(x).detach().numpy()) <= AIM


def test_fold_and_unfold(tmp_path):
    x, path = images(2, 3, 9, 11), tmp_path / "x.onnx"
    same(nn.Unfold((2, 3), 2, (0, 2), 1), x, path=path)
    same(lambda x: F.fold(F.unfold(x, 3, 2, 1, 2), (9, 11), 3, 2, 1, 2), x, path=path)
    same(lambda x: x.unfold(2, 3, 2).unfold(1, 2, 1), x, path=path)
    same(lambda x: x.as_strided((3, 4), (2, 3), 1), x, path=path)


def test_parameter_over_a_strided_foreign_array(tmp_path):
    weight = flow.from_numpy(np.arange(12, dtype="float32").reshape(3, 4).T)
    same(lambda x: x @ weight, images(2, 4), path=tmp_path / "x.onnx")


def test_attention(tmp_path):
    flow.manual_seed(0)
    path, (q, k, v) = tmp_path / "x.onnx", [images(2, 3, n, m) for n, m in ((5, 8), (6, 8), (6, 4))]
    mask = flow.tensor(np.random.default_rng(3).random((5, 6)) > 0.5)
    mask[2] = False  # every key is masked
    same(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v, path=path)
    same(F.scaled_dot_product_attention, q, k, v, mask, path=path)
