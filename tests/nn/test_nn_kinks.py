"""Losses and activations at values that random floats miss: at 0, at the limits, at infinity. Expected values by hand
or from PyTorch.

A row: the function, x (a tensor), its values, and the gradient of their sum. Other functions: `../core/test_kinks.py`.
"""

import math

import numpy as np
import pytest

import minflow as flow
from minflow import nn

F = nn.functional
INF, NAN, LN2 = math.inf, math.nan, math.log(2)
TOLERANCE = {"float64": 1e-8, "float32": 1e-6, "float16": 2e-3}
pytestmark = pytest.mark.usefixtures("no_notices")


def against(target, loss):
    """Apply `loss` to x and a target of its dtype, without reduction."""
    return lambda x: loss(x, flow.tensor(target, dtype=x.dtype), reduction="none")


def like(x, *numbers):
    return flow.tensor(numbers, dtype=x.dtype)


def logits(target, **weights):
    def losses(x):
        given = {name: flow.tensor(w, dtype=x.dtype) for name, w in weights.items()}
        return F.binary_cross_entropy_with_logits(x, flow.tensor(target, dtype=x.dtype), reduction="none", **given)

    return losses


def legacy_logits(target):
    return lambda x: flow.nn.sigmoid_cross_entropy_with_logits(flow.tensor(target, dtype=x.dtype), x)


def labeled(loss, weight=None):
    """Apply `loss` to two rows of x, ignoring the first."""

    def losses(x):
        given = None if weight is None else flow.tensor(weight, dtype=x.dtype)
        return loss(x, flow.tensor([-100, 1]), given).reshape(1)

    return losses


ROWS = {
    "logits at 0": (logits([0.0, 1.0, 0.5]), [0.0, -0.0, 0.0], [LN2] * 3, [0.5, -0.5, 0.0]),
    "targets far outside": (logits([-60000.0, 3.0]), [0.0, 1.0], [LN2, 1.31326169 - 3], [60000.5, -2.26894142]),
    "large logits": (logits([1.0, 0.0, 1.0, 0.0]), [20.0, -20.0, -20.0, 20.0], [2.06115362e-9] * 2 + [20.0] * 2,
                     [-2.06115362e-9, 2.06115362e-9, -1.0, 1.0]),
    "logits with pos_weight": (
        logits([1.0, 0.0], pos_weight=[3.0, 3.0]), [0.0, -20.0], [3 * LN2, 2.06115362e-9], [-1.5, 2.06115362e-9]
    ),
    "legacy logits at 0": (legacy_logits([0.0, 1.0]), [0.0, 0.0], [LN2, LN2], [0.5, -0.5]),
    "softplus": (F.softplus, [0.0, -INF, INF, NAN, 30.0], [LN2, 0.0, INF, NAN, 30.0], [0.5, 0.0, 1.0, NAN, 1.0]),
    "softplus of slope 2": (lambda x: F.softplus(x, 2.0, 1.0), [0.0, 1.0], [LN2 / 2, 1.0], [0.5, 1.0]),
    "logsigmoid": (F.logsigmoid, [0.0, INF, -INF], [-LN2, 0.0, -INF], [0.5, 0.0, 1.0]),
    "legacy softplus": (flow.math.softplus, [0.0], [LN2], [0.5]),
    "legacy mish": (nn.mish, [0.0], [0.0], [0.6]),
    "leaky_relu": (
        F.leaky_relu, [0.0, -0.0, -INF, INF, NAN], [0.0, 0.0, -INF, INF, NAN], [0.01, 0.01, 0.01, 1.0, 0.01]
    ),
    "leaky_relu of slope 0": (lambda x: F.leaky_relu(x, 0.0), [0.0, -1.0, 2.0], [0.0, 0.0, 2.0], [0.0, 0.0, 1.0]),
    "nll of an ignored row": (labeled(F.nll_loss), [[-INF, -INF], [-1.0, -2.0]], [2.0], [[0.0, 0.0], [0.0, -1.0]]),
    "nll of an ignored row, weighted": (labeled(F.nll_loss, weight=[1.0, 2.0]),
                                            [[-INF, -INF], [-1.0, -2.0]], [2.0], [[0.0, 0.0], [0.0, -1.0]]),
    "cross_entropy of an ignored row": (
        labeled(F.cross_entropy), [[-INF, INF], [0.0, 0.0]], [LN2], [[NAN, NAN], [0.5, -0.5]]
    ),
    "layer_norm of large": (lambda x: F.layer_norm(x, (2,)), [300.0, -300.0], [1.0, -1.0], [0.0, 0.0]),
    "leaky_relu of an infinite slope": (lambda x: F.leaky_relu(x, INF), [2.0, -1.0], [2.0, -INF], [1.0, INF]),
    "nll of weight 0": (lambda x: F.nll_loss(x, flow.tensor([1]), like(x, 1.0, 0.0)), [[1.0, 2.0]], NAN, [[0.0, NAN]]),
    "nll of nothing": (lambda x: F.nll_loss(x, flow.tensor([-100])), [[1.0, 2.0]], NAN, [[0.0, 0.0]]),
    "avg_pool2d of large": (lambda x: F.avg_pool2d(x, 2), [[[[60000.0, 60000.0], [-1000.0, 1000.0]]]], [[[[30000.0]]]],
                            [[[[0.25, 0.25], [0.25, 0.25]]]]),
    "legacy hardtanh": (nn.hardtanh, [-1.0, 1.0, 0.5, NAN], [-1.0, 1.0, 0.5, NAN], [0.0, 0.0, 1.0, 1.0]),
    "legacy hardsigmoid": (nn.hardsigmoid, [-3.0, 3.0, 0.0, INF], [0.0, 1.0, 0.5, 1.0], [0.0, 0.0, 1 / 6, 0.0]),
    "legacy hardswish": (nn.hardswish, [-3.0, 3.0, 0.0, INF], [0.0, 3.0, 0.0, INF], [0.0, 1.0, 0.5, 1.0]),
    "legacy smooth_l1_loss": (
        lambda x: flow.smooth_l1_loss(x, like(x, 0.0, 0.0, 0.0)), [0.0, 1.0, INF], [0.0, 0.5, INF], [0.0, 1.0, 1.0]
    ),
    "mse_loss of large": (against([0.0], F.mse_loss), [200.0], [40000.0], [400.0]),
    "gelu of large": (lambda x: F.gelu(x, "tanh"), [1e4, -1e4], [1e4, 0.0], [1.0, 0.0]),
    "soft cross_entropy of nothing": (
        lambda x: F.cross_entropy(x, x.detach()), np.zeros((0, 2)), NAN, np.zeros((0, 2))
    ),
    "linear of large": (
        lambda x: F.linear(x, like(x, 2.0).reshape(1, 1), like(x, -60000.0)), [[50000.0]], [[40000.0]], [[2.0]]
    ),
    "conv2d of large": (lambda x: F.conv2d(x, like(x, 1.0, 1.0, -1.0).reshape(1, 1, 1, 3)), [[[[60000.0, 60000.0,
                        60000.0]]]],
                        [[[[60000.0]]]], [[[[1.0, 1.0, -1.0]]]]),
    "relu6": (F.relu6, [0.0, -0.0, 6.0, NAN, INF], [0.0, 0.0, 6.0, NAN, 6.0], [0.0, 0.0, 0.0, 1.0, 0.0]),
    "l1_loss": (against([1.0, 0.0, INF], F.l1_loss), [1.0, NAN, INF], [0.0, NAN, NAN], [0.0, 0.0, 0.0]),
    "batch_norm of large": (
        lambda x: F.batch_norm(x, None, None, training=True), [[900.0], [-900.0]], [[1.0], [-1.0]], [[0.0], [0.0]]
    ),
    "max_pool2d of -inf": (lambda x: F.max_pool2d(x, 2, padding=1), [[[[-INF, 1.0], [2.0, 3.0]]]], [[[[-INF, 1.0],
                           [2.0, 3.0]]]],
                           [[[[1.0, 1.0], [1.0, 1.0]]]]),
    "target of logits": (lambda x: F.binary_cross_entropy_with_logits(like(x, 6e-5, -INF), x, reduction="sum"), [0.25,
                         0.5], INF,
                         [-6e-5, INF]),
    "max_pool2d of NaN": (
        lambda x: F.max_pool2d(x, 2), [[[[NAN, 1.0], [NAN, 2.0]]]], [[[[NAN]]]], [[[[0.0, 0.0], [1.0, 0.0]]]]
    ),
    "adaptive_avg_pool2d of NaN": (lambda x: F.adaptive_avg_pool2d(x, (1, 2)), [[[[NAN, 1.0], [0.0, INF]]]], [[[[NAN,
                                   INF]]]],
                                   [[[[0.5, 0.5], [0.5, 0.5]]]]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", ROWS)
def test_row(name, dtype):
    function, x, values, slopes = ROWS[name]
    x = flow.tensor(x, dtype=getattr(flow, dtype), requires_grad=True)
    out = function(x)
    out.sum().backward()
    assert out.dtype is x.dtype and x.grad.dtype is x.dtype
    with np.errstate(over="ignore"):
        for got, want in ((out.detach(), values), (x.grad, slopes)):
            np.testing.assert_allclose(
                got.numpy(), np.asarray(want, dtype), rtol=TOLERANCE[dtype], atol=0 if dtype == "float64" else 1e-7
            )


def test_gradient_of_a_confident_model():
    """A sigmoid of exactly 0 or 1: PyTorch's gradient g * (p - t) / max(p * (1 - p), 1e-12), never NaN."""
    x = flow.tensor([200.0, -200.0, 200.0, -200.0], requires_grad=True)
    p, target = x.sigmoid(), flow.tensor([1.0, 0.0, 0.0, 1.0])
    loss = F.binary_cross_entropy(p, target, reduction="none")
    (g,) = flow.autograd.grad(loss.sum(), p, retain_graph=True)
    assert loss.tolist() == [0.0, 0.0, 100.0, 100.0] and g.tolist() == pytest.approx([0.0, 0.0, 1e12, -1e12])
    loss.mean().backward()
    assert x.grad.tolist() == [0.0] * 4
    half = flow.tensor([1.0, 0.0], dtype=flow.float16, requires_grad=True)
    F.binary_cross_entropy(half, flow.tensor([0.0, 0.0], dtype=flow.float16)).backward()
    assert half.grad.isfinite().all()


def test_float16_with_float32_parameters_stays_float16():
    x = flow.tensor([[300.0, -300.0], [-300.0, 300.0]], dtype=flow.float16)
    for layer in (nn.LayerNorm(2), nn.BatchNorm1d(2), nn.BatchNorm1d(2).eval()):
        out = layer(x)
        assert out.dtype is flow.float16 and out.isfinite().all()


@pytest.mark.parametrize("order, norm", [(2.0, 500.0), (3.0, 449.79414), (INF, 400.0)])
def test_clipping_large_float16(order, norm):
    p = nn.Parameter(flow.zeros(2, dtype=flow.float16))
    p.grad = flow.tensor([300.0, 400.0], dtype=flow.float16)
    assert nn.utils.clip_grad_norm_(p, 1.0, order).item() == pytest.approx(norm, rel=1e-3)
    assert p.grad.tolist() == pytest.approx([300 / norm, 400 / norm], rel=2e-3)


def test_legacy_functions_of_large_float16():
    x = flow.tensor([[300.0, -300.0]], dtype=flow.float16)
    middle, spread = nn.moments(x, [1])
    assert middle.dtype is spread.dtype is flow.float16 and middle.item() == 0 and spread.item() == INF  # 90,000
    assert nn.layer_norm(inputs=x, begin_norm_axis=1).tolist() == [[1.0, -1.0]]
    assert flow.math.gelu(x=x).tolist() == nn.mish(x).tolist() == nn.swish(x, beta=2.0).tolist() == [[300.0, 0.0]]
    clipped = flow.optimizer.grad_clipping.by_global_norm(1.0).clipped(
        [flow.tensor([300.0, 400.0], dtype=flow.float16)]
    )
    assert clipped[0].dtype is flow.float16 and clipped[0].tolist() == pytest.approx([0.6, 0.8], rel=1e-3)
