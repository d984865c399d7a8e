"""interpolate with antialias=True, against PIL's rule written out for one axis."""

import numpy as np
import pytest

import minflow as flow
import minflow.nn.functional as F


def smoothed(x, m, kernel, half):
    n = len(x)
    ratio = n / m
    wide = max(ratio, 1)
    out = []
    for i in range(m):
        middle = ratio * (i + 0.5)
        first, last = max(int(middle - half * wide + 0.5), 0), min(int(middle + half * wide + 0.5), n)
        weights = np.array([kernel(abs(j - middle + 0.5) / wide) for j in range(first, last)])
        out.append(np.dot(x[first:last], weights / weights.sum()))
    return np.array(out)


def tent(d):
    return max(1 - d, 0)


def cubic(d):
    return (1.5 * d - 2.5) * d * d + 1 if d < 1 else ((2.5 - 0.5 * d) * d - 4) * d + 2 if d < 2 else 0


@pytest.mark.parametrize(("mode", "kernel", "half"), [("bilinear", tent, 1), ("bicubic", cubic, 2)])
@pytest.mark.parametrize("m", [1, 3, 5, 12, 17])
def test_each_axis_follows_pils_rule(mode, kernel, half, m):
    x = np.random.default_rng(m).random(12)
    want = smoothed(x, m, kernel, half)
    rows = F.interpolate(flow.tensor(x).reshape(1, 1, 12, 1), size=(m, 1), mode=mode, antialias=True)
    columns = F.interpolate(flow.tensor(x).reshape(1, 1, 1, 12), size=(1, m), mode=mode, antialias=True)
    assert np.allclose(rows.flatten().numpy(), want) and np.allclose(columns.flatten().numpy(), want)


def test_gradient_and_refusal():
    x = flow.ones(1, 1, 6, 6, requires_grad=True)
    F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True).sum().backward()
    assert x.grad.sum().item() == pytest.approx(9)
    with pytest.raises(flow.ShapeError, match="antialias for mode \"?'?nearest"):
        F.interpolate(x, size=3, antialias=True)
