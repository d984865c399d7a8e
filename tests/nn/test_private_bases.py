"""Classes of programs that derive from PyTorch's private base classes of layers, or call their private methods."""

import pytest
from minflow.nn.modules.batchnorm import _BatchNorm
from minflow.nn.modules.instancenorm import _InstanceNorm

import minflow as flow
from minflow import nn
from minflow.nn import functional as F
from minflow.nn.modules.conv import _ConvNd
from minflow.nn.modules.loss import _WeightedLoss
from minflow.nn.modules.transformer import _get_activation_fn, _get_clones


class AnyBatchNorm(_BatchNorm):
    def _check_input_dim(self, input):
        if input.dim() < 3:
            raise ValueError("too few axes")


class OfVolumes(nn.BatchNorm2d):
    def _check_input_dim(self, input):
        pass


class AnyInstanceNorm(_InstanceNorm):
    pass


class OwnConv2d(_ConvNd):
    def __init__(self, channels, out, size):
        super().__init__(channels, out, (size, size), (1, 1), (1, 1), (1, 1), False, (0, 0), 1, True)

    def forward(self, x):
        return F.conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class OwnTransposed(_ConvNd):
    def __init__(self, channels, out, size):
        super().__init__(channels, out, (size, size), (2, 2), (0, 0), (1, 1), True, (1, 1), 1, False, "zeros")


class Standardized(nn.Conv2d):
    def forward(self, x):
        return self._conv_forward(x, self.weight - self.weight.mean((1, 2, 3), keepdim=True), self.bias)


class OwnLoss(_WeightedLoss):
    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__(weight, size_average, reduce, reduction)

    def forward(self, x, target):
        return F.cross_entropy(x, target, self.weight, reduction=self.reduction)


def test_norms_of_any_number_of_axes():
    x = flow.randn(4, 3, 5)
    layer = AnyBatchNorm(3)
    assert layer(x).allclose(nn.BatchNorm1d(3)(x)) and layer(x[..., None]).shape == (4, 3, 5, 1)
    with pytest.raises(ValueError, match="too few axes"):
        layer(x[..., 0])
    assert OfVolumes(3)(x[..., None, None]).shape == (4, 3, 5, 1, 1)
    assert AnyInstanceNorm(3)(x).allclose(nn.InstanceNorm1d(3)(x)) and AnyInstanceNorm(3)(x[..., None]).ndim == 4
    with pytest.raises(flow.ShapeError, match="channels"):
        AnyBatchNorm(2)(x)


def test_convolutions_with_the_constructor_of_the_base():
    x = flow.randn(2, 3, 5, 5)
    layer = OwnConv2d(3, 4, 3)
    assert layer(x).shape == (2, 4, 5, 5) and layer.weight.shape == (4, 3, 3, 3) and "padding=(1, 1)" in repr(layer)
    transposed = OwnTransposed(3, 4, 3)
    assert transposed.weight.shape == (3, 4, 3, 3) and transposed.output_padding == (1, 1) and transposed.bias is None
    layer = nn.ConvTranspose2d(3, 4, 3, stride=2)
    assert layer._output_padding(x, None, (2, 2), (0, 0), (3, 3), 2) == (0, 0)
    assert layer._output_padding(x, (12, 12), (2, 2), (0, 0), (3, 3), 2) == (1, 1)


def test_convolution_with_another_weight():
    x, layer = flow.randn(1, 3, 5, 5), Standardized(3, 4, 3, padding=1, padding_mode="circular")
    padded = F.pad(x, layer._reversed_padding_repeated_twice, mode="circular")
    weight = layer.weight - layer.weight.mean((1, 2, 3), keepdim=True)
    assert layer(x).allclose(F.conv2d(padded, weight, layer.bias), atol=1e-6)


def test_losses_and_parts_of_transformers():
    x, target, weight = flow.randn(2, 3), flow.tensor([0, 2]), flow.tensor([1.0, 2.0, 3.0])
    assert OwnLoss(weight)(x, target).equal(F.cross_entropy(x, target, weight))
    with pytest.warns(UserWarning, match="old names of reduction"):
        assert OwnLoss(weight, size_average=False)(x, target).equal(F.cross_entropy(x, target, weight, reduction="sum"))
    assert F._Reduction.get_enum("sum") == 2 and nn._reduction.legacy_get_string(False, None) == "sum"
    assert (
        nn._reduction.legacy_get_string(None, None) == "mean" and nn._reduction.legacy_get_string(True, False) == "none"
    )
    copies = _get_clones(nn.Linear(2, 2), 3)
    assert len(copies) == 3 and copies[0].weight is not copies[1].weight and copies[0].weight.equal(copies[2].weight)
    assert _get_activation_fn("gelu") is F.gelu
    assert nn.init._no_grad_uniform_(flow.ones(4), 2, 3).min() >= 2
