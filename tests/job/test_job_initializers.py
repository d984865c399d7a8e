"""Initializers and regularizers: values against the formulas, and errors."""

import math

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import JobError
from minflow.core.random import Generator
from minflow.job import FLOW, checks
from minflow.job.legacy import initializers as init, regularizers

SHAPE = (400, 300)


def filled(initializer, shape=SHAPE, dtype=flow.float32, seed=3):
    found = initializer.fill(shape, dtype, Generator(seed))
    assert found.shape == tuple(shape) and found.dtype == dtype.np and found.flags.c_contiguous
    return found


def test_seed_determines_the_values():
    for make in (init.truncated_normal, init.random_normal_initializer, init.random_uniform_initializer):
        assert np.array_equal(filled(make()), filled(make()))
        assert not np.array_equal(filled(make()), filled(make(), seed=4))


def test_integer_uniform_is_integral():
    found = filled(init.random_uniform_initializer(-2, 3, dtype=flow.int32), dtype=flow.int32)
    assert set(np.unique(found)) == {-2, -1, 0, 1, 2}


def uniform(low, high):
    return (low + high) / 2, (high - low) / math.sqrt(12), low, high


def normal(mean, deviation):
    return mean, deviation, -math.inf, math.inf


def truncated(mean, deviation):
    """A truncated normal distribution has a smaller standard deviation."""
    return mean, 0.8796 * deviation, mean - 2 * deviation, mean + 2 * deviation


LIMIT, XAVIER = math.sqrt(6 / 700), math.sqrt(2 / 700)
SCALED = {
    "truncated_normal": normal,
    "random_normal": normal,
    "random_uniform": lambda mean, deviation: uniform(-math.sqrt(3) * deviation, math.sqrt(3) * deviation),
}
GAINS = {"relu": math.sqrt(2), "leaky_relu": math.sqrt(2 / 1.04), "tanh": 5 / 3, None: 1}
FILLED = [  # (initializer, mean, standard deviation, bounds)
    (init.zeros_initializer(), 0, 0, 0, 0),
    (init.ones_initializer(), 1, 0, 1, 1),
    (init.constant_initializer(), 0, 0, 0, 0),
    (init.constant_initializer(2.5), 2.5, 0, 2.5, 2.5),
    (init.random_uniform_initializer(0.5, 0.5), 0.5, 0, 0.5, 0.5),
    (init.random_uniform_initializer(-1, 3), *uniform(-1, 3)),
    (init.random_normal_initializer(2.0, 0.5), *normal(2, 0.5)),
    (init.truncated_normal(0.1), *truncated(0, 0.1)),
    (init.truncated_normal_initializer(1.0, 0.1), *truncated(1, 0.1)),
    *[(make(), *uniform(-LIMIT, LIMIT)) for make in (init.xavier_uniform_initializer, init.glorot_uniform_initializer)],
    *[(make(), *normal(0, XAVIER)) for make in (init.xavier_normal_initializer, init.glorot_normal_initializer)],
    *[
        (init.variance_scaling_initializer(2.0, mode, name), *bounds(0, math.sqrt(2 / n)))
        for mode, n in (("fan_in", 300), ("fan_out", 400), ("fan_avg", 350))
        for name, bounds in SCALED.items()
    ],
    *[
        (
            init.kaiming_initializer(SHAPE, name, nonlinearity=nonlinearity, negative_slope=0.2),
            *SCALED[name](0, gain / math.sqrt(300)),
        )
        for nonlinearity, gain in GAINS.items()
        for name in ("random_normal", "random_uniform")
    ],
]


@pytest.mark.parametrize("initializer, mean, deviation, low, high", FILLED)
def test_initializer_has_mean_deviation_and_bounds(initializer, mean, deviation, low, high):
    found = filled(initializer, dtype=flow.float64)
    assert abs(found.mean() - mean) <= 0.01 * deviation and abs(found.std() - deviation) <= 0.01 * deviation
    assert low <= found.min() and found.max() <= high
    if math.isfinite(low):  # up to the bounds
        assert found.min() - low <= 0.001 * (high - low) and high - found.max() <= 0.001 * (high - low)


FILTERS, LAST = (64, 32, 3, 5), (64, 3, 5, 32)


@pytest.mark.parametrize("shape, data_format", [(FILTERS, "NCHW"), (FILTERS, ""), (LAST, "NHWC")])
def test_fan_includes_the_kernel_area(shape, data_format):
    assert init.fan(shape, "fan_in", data_format) == 32 * 15
    assert init.fan(shape, "fan_out", data_format) == 64 * 15
    assert init.fan(shape, "fan_avg", data_format) == 48 * 15


def test_there_are_twelve_initializers_and_truncated_normal():
    assert sum(path.startswith("legacy.initializers.") for path in FLOW.values()) == 13


@pytest.mark.parametrize("wrong, told", [
    (lambda: init.random_uniform_initializer(2, 1), "minval 2 is above maxval 1"),
    (lambda: init.truncated_normal(-0.1), r"stddev must be at least 0, got -0\.1"),
    (lambda: init.random_normal_initializer(seed=3), "seed=3"),
    (lambda: init.variance_scaling_initializer(mode="fan"), "mode is 'fan'"),
    (lambda: init.variance_scaling_initializer(distribution="normal"), "distribution is 'normal'"),
    (lambda: init.xavier_uniform_initializer("CHW"), "data_format is 'CHW'"),
    (lambda: init.kaiming_initializer((3,)), r"shape must be .*, got \(3,\)"),
    (lambda: init.kaiming_initializer(SHAPE, nonlinearity="gelu"), "nonlinearity is 'gelu'"),
    (lambda: checks.check_initializer("flow.layers.dense", 0.1), r"constant_initializer\(0\.1\)"),
    (
        lambda: checks.check_initializer("flow.layers.dense", init.zeros_initializer),
        r"flow\.zeros_initializer\(\.\.\.\), called"
    ),
    (lambda: checks.check_initializer("flow.layers.dense", np.zeros(3)), "got ndarray"),
    (lambda: regularizers.l2(-1), "l2 must be .*, got -1"),
    (lambda: checks.check_regularizer("flow.layers.dense", 0.1), r"l2\(0\.1\)"),
    (lambda: checks.check_regularizer("flow.layers.dense", regularizers.l1), "got function"),
])  # fmt: skip
def test_mistakes(wrong, told):
    with pytest.raises(JobError, match=told):
        wrong()


@pytest.mark.parametrize("made, expected", [
    (regularizers.l1(0.5), [-0.5, 0, 0.5]), (regularizers.l2(0.5), [-1, 0, 1.5]),
    (regularizers.l1_l2(0.5, 0.25), [-1, 0, 1.25]),
])  # fmt: skip
def test_regularizer_gradient_is_that_of_the_penalty(made, expected):
    weight = flow.tensor([-2.0, 0.0, 3.0])
    assert np.allclose(made.penalty_gradient(weight).numpy(), expected)


def test_regularizer_defaults():
    assert (regularizers.l1().l1, regularizers.l2().l2) == (0.01, 0.01)
    assert (regularizers.l1_l2().l1, regularizers.l1_l2().l2) == (0.01, 0.01)
