"""Small cases in which PyTorch's answer, or the reason of a refusal, was missing."""

import math

import pytest

import minflow as flow

F = flow.nn.functional


@pytest.mark.parametrize(
    "call, number",
    [
        (lambda x: x.clamp_(-1), "-1"),
        (lambda x: x.clamp(-1, 300), "-1"),
        (lambda x: x.clamp(max=300), "300"),
        (lambda x: x + 256, "256"),
    ],
)
def test_out_of_range_number_is_named(call, number):
    with pytest.raises(flow.OutOfRangeError, match=rf": {number} does not fit into uint8\n(.|\n)*uint8\[3\]"):
        call(flow.tensor([0, 3, 255], dtype=flow.uint8))


def test_uint8_tensor_is_a_condition_and_a_mask():
    mask, x = flow.tensor([1, 0, 2], dtype=flow.uint8), flow.tensor([5.0, 6.0, 7.0])
    assert flow.where(mask, x, 0.0).tolist() == x.where(mask, flow.zeros(3)).tolist() == [5.0, 0.0, 7.0]
    assert x[mask].tolist() == [5.0, 7.0]
    x[mask] = 1.0
    assert x.tolist() == [1.0, 6.0, 1.0]
    with pytest.raises(flow.DTypeError, match="the condition must be bool, got int64"):
        flow.where(mask.long(), x, 0.0)


@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.smooth_l1_loss])
def test_loss_promotes_its_arguments(loss):
    whole, half = flow.tensor([1, 2, 4]), flow.tensor([1.5, 2.0, 2.0])
    for a, b in ((whole, half), (half, whole), (whole, half.double()), (half, half.double())):
        wanted = loss(a.double(), b.double())
        assert loss(a, b).dtype is flow.result_type(a, b)
        assert math.isclose(loss(a, b).item(), wanted.item(), rel_tol=1e-6)
    with pytest.raises(flow.DTypeError, match="the input must be floating, got int64"):
        loss(whole, whole)


@pytest.mark.parametrize("ends", [(math.nan, 1.0), (0.0, math.nan), (0.0, math.inf), (-math.inf, math.inf)])
def test_linspace_with_a_nonfinite_end(ends):
    assert flow.linspace(*ends, 4).isnan().all() and flow.logspace(*ends, 4).isnan().all()
    assert flow.linspace(*ends, 1).tolist() == pytest.approx([ends[0]], nan_ok=True)
    with pytest.raises(flow.OutOfRangeError, match="(start|end) is (-?inf|nan), which int64 cannot hold"):
        flow.linspace(*ends, 4, dtype=flow.int64)
