"""Norms that PyTorch does not have, batch norm aliases, and errors of norms. Read next: `test_layers.py`."""

import numpy as np
import pytest

import minflow as flow
from minflow import nn
from minflow.nn import functional as F

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 6, 4, 5))


def close(tensor, want):
    np.testing.assert_allclose(tensor.detach().numpy(), want, rtol=1e-9, atol=1e-12)


def test_rms_norms():
    want = X / np.sqrt((X * X).mean((2, 3), keepdims=True) + 0.5)
    close(F.rms_norm(flow.tensor(X), (4, 5), eps=0.5), want)
    layer = nn.RMSLayerNorm(5)
    assert list(layer.state_dict()) == ["weight"] and layer.variance_epsilon == 1e-6
    half = nn.RMSNorm(5).half()(flow.tensor(X).half())
    assert half.dtype is flow.float16 and repr(nn.RMSNorm(5)) == "RMSNorm((5,), eps=None, elementwise_affine=True)"


def test_batch_norm_aliases():
    model = nn.Sequential(nn.Conv2d(6, 4, 1), nn.Sequential(nn.BatchNorm2d(4)), nn.BatchNorm2d(4, affine=False)).eval()
    x = flow.tensor(X).float()
    want, names = model(x).numpy(), list(model.state_dict())
    new = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    assert [type(m).__name__ for m in new.modules() if isinstance(m, nn.SyncBatchNorm)] == ["SyncBatchNorm"] * 2
    assert list(new.state_dict()) == names and np.array_equal(new(x).numpy(), want) and not new[2].training
    fused, plain = nn.FusedBatchNorm2d(6).double(), nn.BatchNorm2d(6).double()
    y = flow.tensor(X)
    close(fused(y, y), np.maximum(plain(y).detach().numpy() + X, 0))
    close(fused(y), np.maximum(plain(y).detach().numpy(), 0))


def test_no_bias():
    assert list(nn.BatchNorm2d(3, track_running_stats=False, bias=False).state_dict()) == ["weight"]
    assert list(nn.GroupNorm(1, 3, bias=False).state_dict()) == ["weight"]
    assert repr(nn.GroupNorm(1, 3)) == "GroupNorm(1, 3, eps=1e-05, affine=True)"
    assert repr(nn.InstanceNorm1d(3)) == (
        "InstanceNorm1d(3, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False)"
    )


ONES = flow.ones
WRONG = [
    (lambda: F.group_norm(ONES(2, 6, 3), 4), r"6 channels \(axis 1\) cannot be split into 4 groups"),
    (lambda: F.group_norm(ONES(6), 2), "got 1 axes"),
    (lambda: F.group_norm(ONES(2, 6, 3), 2, ONES(5)), r"weight must be \(6,\), .* got \(5,\)"),
    (lambda: F.group_norm(ONES(1, 2), 2), "has one element"),
    (lambda: F.group_norm(ONES(2, 6, 3), 2, eps=[1.0]), r"eps must be a number, got \[1.0\]"),
    (lambda: nn.GroupNorm(4, 6), "num_channels is 6, which num_groups=4 does not divide"),
    (lambda: F.instance_norm(ONES(2, 3, 1)), r"an input \(2, 3, 1\) has one element"),
    (lambda: F.instance_norm(ONES(2, 3, 4), ONES(3)), "both needed"),
    (lambda: F.instance_norm(ONES(2, 3, 4), use_input_stats=False), "both needed"),
    (lambda: nn.InstanceNorm2d(3)(ONES(2, 3)), r"must be \(N, C, H, W\) or \(C, H, W\), got 2 axes"),
    (lambda: nn.InstanceNorm2d(3, affine=True)(ONES(2, 4, 3, 3)), "4 channels .axis 1., num_features is 3"),
    (lambda: F.rms_norm(ONES(2, 3), (4,)), r"the input ends with \[3\], normalized_shape is \[4\]"),
    (lambda: F.rms_norm(ONES(2, 3), (3,), ONES(2)), r"the weight has shape \[2\]"),
    (lambda: F.rms_norm(ONES(2, 3).long(), (3,)), "the input must be floating, got int64"),
    (lambda: F.local_response_norm(ONES(2, 3), 2), "got 2 axes"),
    (lambda: F.local_response_norm(ONES(2, 3, 4), 0), "size must be at least 1, got 0"),
    (lambda: nn.CrossMapLRN2d(3)(ONES(2, 3, 4)), "got 3 axes"),
    (lambda: nn.BatchNorm3d(3)(ONES(2, 3, 4, 4)), r"must be \(N, C, D, H, W\), got 4 axes"),
]


@pytest.mark.parametrize(("call", "match"), WRONG)
def test_errors(call, match):
    with pytest.raises(flow.MinflowError, match=match):
        call()


def test_unused_num_features_warns():
    with pytest.warns(flow.MinflowWarning, match="4 channels .axis 1., num_features is 3"):
        nn.InstanceNorm2d(3)(ONES(2, 4, 3, 3))
