"""Random ops: the distributions, reproducibility, and draws of any slice of a tensor."""

import math

import numpy as np
import pytest
from scipy import stats

import minflow as flow
from minflow.core.base.errors import DTypeError, OutOfRangeError
from minflow.core.functions import dropout, randint_of, uniform
from minflow.core.ops import random as r
from minflow.core.spec import float16, float32, float64, int64, uint8
from tests.cases import in_cases

BIG = 40_000


def test_uniform_is_uniform_and_below_one():
    for dtype in (float16, float32, float64):
        x = uniform((BIG,), 0.0, 1.0, dtype, flow.Generator(1)).numpy().astype("float64")
        assert x.min() >= 0 and x.max() <= (1 if dtype is float16 else np.nextafter(1, 0))
        assert stats.kstest(x, "uniform").pvalue > 1e-4
    x = uniform((BIG,), -2.0, 3.0, float32, flow.Generator(1)).numpy()
    assert -2 <= x.min() < -1.99 and 2.99 < x.max() <= 3


def test_normal_is_normal():
    for dtype in (float32, float64):
        x = flow.randn(BIG, dtype=dtype, generator=flow.Generator(2)).numpy()
        assert stats.kstest(x, "norm").pvalue > 1e-4 and abs(np.corrcoef(x[::2], x[1::2])[0, 1]) < 0.02
    x = flow.randn(5, generator=flow.Generator(2)).numpy()
    assert np.isfinite(x).all() and x.dtype == np.float32


def test_randint_covers_its_range_evenly():
    x = randint_of((BIG,), -3, 5, int64, flow.Generator(3)).numpy()
    counts = np.bincount(x + 3)
    assert len(counts) == 8 and stats.chisquare(counts).pvalue > 1e-4
    assert flow.randint(0, 2**32, (4,)).dtype is int64
    with pytest.raises(OutOfRangeError, match=r"\[5, 5\)"):
        flow.randint(5, 5, (2,))


def test_randperm_is_a_permutation():
    x = flow.randperm(1000, generator=flow.Generator(4)).numpy()
    assert sorted(x) == list(range(1000)) and (x != np.arange(1000)).mean() > 0.9


def test_bernoulli_follows_its_probabilities():
    p = flow.tensor([[0.0], [0.25], [1.0]]).expand(3, BIG)
    x = flow.bernoulli(p, generator=flow.Generator(5)).numpy()
    assert x.mean(1)[0] == 0 and abs(x.mean(1)[1] - 0.25) < 0.01 and x.mean(1)[2] == 1
    with pytest.raises(DTypeError, match="int64"):
        flow.bernoulli(flow.tensor([1, 0]))


@in_cases("p", [1.5, -0.5, math.nan])
def test_invalid_probabilities(p):
    with pytest.raises(OutOfRangeError, match=rf"probabilities from 0 to 1, got {p:g} to {p:g}"):
        flow.bernoulli(flow.tensor([p]))
    with pytest.raises(OutOfRangeError, match="p must be from 0 to 1"):
        flow.zeros(2).bernoulli_(p)
    assert flow.bernoulli(flow.zeros(0)).shape == (0,)


@in_cases("p", [0.1, 0.5, 0.999, 1.0])
def test_dropout_keeps_the_mean(p):
    x = flow.ones(BIG, requires_grad=True)
    y = dropout(x, p, generator=flow.Generator(6))
    y.sum().backward()
    kept = y.numpy() != 0
    assert abs(kept.mean() - (1 - p)) < 0.01 and np.array_equal(x.grad.numpy(), y.numpy())
    if p < 1:
        np.testing.assert_allclose(y.numpy()[kept], 1 / (1 - p), rtol=1e-6)
    assert dropout(x, p, training=False) is x


def test_dropout_error_names_p():
    with pytest.raises(OutOfRangeError, match="1.5"):
        dropout(flow.ones(3), 1.5)
    with pytest.raises(DTypeError, match="int64"):
        dropout(flow.tensor([1, 2]), 0.5)


def test_generator_is_reproducible_and_advances():
    a, b = flow.Generator(7), flow.Generator(7)
    first = flow.rand(5, generator=a)
    assert flow.equal(first, flow.rand(5, generator=b)) and not flow.equal(first, flow.rand(5, generator=a))


@in_cases("start", [0, 1, 2, 3, 7, 10])
@in_cases("dtype", [float32, float64])
def test_any_slice_can_be_drawn_alone(start, dtype):
    counter = np.array([11, 5])
    for draw in (r.uniform_floats, r.normal_floats):
        whole = draw(np, counter, 2, 50, dtype)
        part = draw(np, counter, 2, 9, dtype, start)
        assert part.tobytes() == whole[start : start + 9].tobytes()


def test_in_place_forms():
    x = flow.empty(1000)
    assert 0.4 < x.uniform_(generator=flow.Generator(1)).mean().item() < 0.6
    assert abs(x.normal_(3.0, 0.1, generator=flow.Generator(1)).mean().item() - 3) < 0.02
    assert set(x.bernoulli_(0.5, generator=flow.Generator(1)).tolist()) == {0.0, 1.0}
    y = flow.zeros(1000, dtype=uint8).random_(0, 256, generator=flow.Generator(1))
    assert y.dtype is uint8 and y.numpy().max() > 240


def test_box_and_muller_by_hand():
    words = r.words(np, np.array([3, 0]), 0, 2)
    u = (words + 0.5) / 2**32
    x = r.normal_floats(np, np.array([3, 0]), 0, 2, float32)
    radius = math.sqrt(-2 * math.log(u[0]))
    np.testing.assert_allclose(
        x, [radius * math.cos(2 * math.pi * u[1]), radius * math.sin(2 * math.pi * u[1])], rtol=1e-12
    )


def test_a_generator_takes_a_device_first_as_in_pytorch():
    for generator in (flow.Generator("cpu"), flow.Generator(flow.device("cpu")), flow.Generator(device="cpu")):
        assert generator.device is flow.device("cpu")
    assert flow.Generator(3).initial_seed() == 3 and flow.default_generator.device is flow.device("cpu")
    with pytest.raises(flow.DeviceError, match="no device 'gpu'"):
        flow.Generator("gpu")
