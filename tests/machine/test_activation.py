"""erf and relu6's gradient in one pass: the numbers of float64, NaN and infinity, every length, any number of
threads."""

import math

import numpy as np
import pytest

pytest.importorskip("numba", reason="the machine is compiled by numba, which is not installed")

from minflow.accepted.threads import Settings
from minflow.core.ops import activation as ops
from minflow.core.ops import elementwise
from minflow.machine import activation

EDGES = [0.0, -0.0, 1e-40, -1e-40, 1e-30, 3.9999998, 4.0, 4.0000005, -4.0, 100.0, -1e30, math.inf, -math.inf, math.nan]


def numbers(size, scale=2.0):
    x = np.random.default_rng(size).standard_normal(size).astype("f4") * np.float32(scale)
    x[: len(EDGES)] = EDGES
    return x


@pytest.mark.parametrize("size", [4096, 4097, 4111, 70000, 200003])
def test_erf_is_that_of_float64(size):
    x = numbers(size)
    wanted = np.array([math.erf(v) for v in x.tolist()])
    mine = activation.erf(x)
    assert np.nanmax(np.abs(mine - wanted) - 2**-24 * np.abs(wanted)) <= 2e-45  # as near as float32 comes
    there = ~np.isnan(x)
    assert np.array_equal(np.isnan(mine), ~there) and np.array_equal(np.signbit(mine[there]), np.signbit(x[there]))


def test_erf_never_leaves_its_bounds_and_rises():
    x = np.linspace(-6, 6, 100001, dtype="f4")
    y = activation.erf(x)
    assert np.abs(y).max() == 1 and (np.diff(y) >= 0).all() and np.array_equal(y, -activation.erf(-x))


@pytest.mark.parametrize("size", [4096, 4099, 150001])
def test_relu6_grad_is_numpys(size):
    x, y = numbers(size), np.roll(numbers(size, 4.0), 7)
    y[100:104] = 6, 0, np.float32(5.9999995), 6.5
    wanted = ops.relu6_grad.kernel(x, y)
    assert np.array_equal(activation.relu6_grad(x, y), wanted, equal_nan=True)


@pytest.mark.parametrize("function, count", [(activation.erf, 1), (activation.relu6_grad, 2)])
def test_nothing_beyond_out_is_written_and_threads_change_nothing(monkeypatch, function, count):
    arrays, found = [numbers(100003 + i)[:100003] for i in range(count)], []
    for threads in (1, 2, 5):
        monkeypatch.setattr(Settings, "threads", threads)
        around = np.full(100003 + 64, 77, "f4")
        function(*arrays, out=around[32:-32])
        assert (around[:32] == 77).all() and (around[-32:] == 77).all()
        found.append(around)
    assert all(np.array_equal(one, found[0], equal_nan=True) for one in found)


@pytest.mark.parametrize("x", [
    np.ones(10, "f4"), np.ones(5000, "f8"), np.ones((100, 100), "f4").T[::2], np.ones(0, "f4")])
def test_what_does_not_fit(x):
    assert activation.erf(x) is None and activation.relu6_grad(x, x) is None
    assert activation.relu6_grad(np.ones(5000, "f4"), np.ones((1, 5000), "f4")) is None


def test_the_ops_run_them(monkeypatch):
    from minflow import machine

    x = numbers(5000)
    before = machine.used()
    machine.use()
    try:
        assert np.array_equal(elementwise.erf.kernel(x), activation.erf(x), equal_nan=True)
    finally:
        machine.use(before)
