"""Initializers of job functions, which fill a variable when it is created.

An initializer has a method `fill(shape, dtype, generator)` that returns a NumPy array. It draws from the variable's own
generator, so the result does not depend on other variables. Independent of jobs. Read next: `layers.py`, which has
the default of each layer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

from ...core.backend import namespace
from ...core.base.errors import JobError
from ...core.host import HostArray
from ...core.ops.random import normal_floats, uniform_floats, words
from ...core.random import Generator
from ...core.source_location import fail
from ...core.spec import DType, as_dtype, float32, float64
from ..checks import Initializer

TRUNCATED_STD = 0.87962566103423978  # standard deviation of N(0, 1) truncated to [-2, 2]
DISTRIBUTIONS = ("truncated_normal", "random_normal", "random_uniform")
MODES = ("fan_in", "fan_out", "fan_avg")


def normal_numbers(size: int, dtype: DType, generator: Generator) -> HostArray:
    """`float64[size]` from N(0, 1); one counter of the generator is used."""
    return normal_floats(namespace(), generator.draw(), 0, size, float64 if dtype is float64 else float32)


def uniform_numbers(size: int, dtype: DType, generator: Generator) -> HostArray:
    """`float64[size]` from [0, 1); one counter of the generator is used."""
    drawn = uniform_floats(namespace(), generator.draw(), 0, size, float64 if dtype is float64 else float32)
    return drawn.astype("float64")


def truncated_numbers(size: int, dtype: DType, generator: Generator) -> HostArray:
    """`float64[size]` from N(0, 1), redrawn outside (-2, 2)."""
    numbers = normal_numbers(size, dtype, generator)
    outside = namespace().flatnonzero(abs(numbers) >= 2)
    while outside.size:
        numbers[outside] = normal_numbers(outside.size, dtype, generator)
        outside = outside[abs(numbers[outside]) >= 2]
    return numbers


def shaped(numbers: HostArray, shape: tuple[int, ...], dtype: DType) -> HostArray:
    return numbers.reshape(shape).astype(dtype.np, copy=False)


@dataclass(frozen=True)
class Constant:
    """`value` everywhere."""

    value: float

    def fill(self, shape: tuple[int, ...], dtype: Any, generator: Generator) -> HostArray:
        return namespace().full(shape, self.value, dtype.np)


@dataclass(frozen=True)
class Uniform:
    """Uniform in [minval, maxval); integers for an integer variable."""

    minval: float
    maxval: float

    def fill(self, shape: tuple[int, ...], dtype: Any, generator: Generator) -> HostArray:
        xp, size = namespace(), math.prod(shape)
        if not dtype.floating:
            width = max(int(self.maxval) - int(self.minval), 1)
            wide = words(xp, generator.draw(), 0, size).astype("uint64") * width
            return shaped((wide >> 32).astype("int64") + int(self.minval), shape, dtype)
        numbers = uniform_numbers(size, dtype, generator) * (self.maxval - self.minval) + self.minval
        filled = shaped(numbers, shape, dtype)
        below = xp.nextafter(dtype.np.type(self.maxval), dtype.np.type(self.minval))  # rounding may give maxval
        return xp.minimum(filled, below) if self.minval < self.maxval else filled


@dataclass(frozen=True)
class Normal:
    """N(mean, stddev**2)."""

    mean: float
    stddev: float

    def fill(self, shape: tuple[int, ...], dtype: Any, generator: Generator) -> HostArray:
        return shaped(normal_numbers(math.prod(shape), dtype, generator) * self.stddev + self.mean, shape, dtype)


@dataclass(frozen=True)
class TruncatedNormal:
    """N(mean, stddev**2), truncated to two standard deviations around the mean."""

    mean: float
    stddev: float

    def fill(self, shape: tuple[int, ...], dtype: Any, generator: Generator) -> HostArray:
        return shaped(truncated_numbers(math.prod(shape), dtype, generator) * self.stddev + self.mean, shape, dtype)


@dataclass(frozen=True)
class VarianceScaling:
    """Random values with variance scale / n, where n depends on `mode` and the shape."""

    scale: float
    mode: str
    distribution: str
    data_format: str

    def fill(self, shape: tuple[int, ...], dtype: Any, generator: Generator) -> HostArray:
        variance = self.scale / max(fan(shape, self.mode, self.data_format), 1)
        if self.distribution == "truncated_normal":
            chosen: Initializer = TruncatedNormal(0.0, math.sqrt(variance) / TRUNCATED_STD)
        elif self.distribution == "random_normal":
            chosen = Normal(0.0, math.sqrt(variance))
        else:
            limit = math.sqrt(3.0 * variance)
            chosen = Uniform(-limit, limit)
        return chosen.fill(shape, dtype, generator)


def fan(shape: Sequence[int], mode: str, data_format: str) -> float:
    """Number of inputs of one output (fan_in), number of outputs of one input (fan_out), or their mean.

    shape: (out, in) or filters, (F, C, ...) for "" and "NC...", (F, ..., C) for "N...C".
    """
    pixels = shape[1:-1] if channels_last(data_format) else shape[2:]
    fan_in, fan_out = math.prod(shape[1:]), shape[0] * math.prod(pixels) if shape else 1
    return fan_in if mode == "fan_in" else fan_out if mode == "fan_out" else (fan_in + fan_out) / 2


def channels_last(data_format: str) -> bool:
    """True for "NHWC" and the like, False for "NCHW" and "". Raises JobError for anything else."""
    if data_format == "" or data_format.startswith("NC"):
        return False
    if data_format.startswith("N") and data_format.endswith("C"):
        return True
    fail(JobError, f"data_format is {data_format!r}", 'data_format="NCHW" (channels first) or "NHWC" (channels last)')


def choose(name: str, argument: str, value: Any, choices: Sequence[str]) -> str:
    chosen = value.lower() if isinstance(value, str) else value
    if chosen not in choices:
        fail(JobError, f"{name}: {argument} is {value!r}", " or ".join(f'{argument}="{c}"' for c in choices))
    return chosen


def real(name: str, argument: str, value: Any) -> None:
    """Raise JobError unless `value` is a number."""
    if not isinstance(value, Real) and not (isinstance(value, HostArray) and value.ndim == 0):
        fail(JobError, f"{name}: {argument} must be a number, got {value!r:.60}", f"{name}({argument}=0.1)")


def deviation(name: str, stddev: float) -> float:
    real(name, "stddev", stddev)
    if not stddev >= 0:
        fail(JobError, f"{name}: stddev must be at least 0, got {stddev!r}", f"{name}(stddev=0.1)")
    return float(stddev)


# ---- public names ------------------------------------------------------------------------------------------------


def constant_initializer(value: float = 0, dtype: DType = float32) -> Constant:
    """`value` everywhere. dtype: an integer dtype truncates value."""
    real("constant_initializer", "value", value)
    return Constant(float(value) if as_dtype(dtype).floating else int(value))


def zeros_initializer(dtype: DType = float32) -> Constant:
    """0 everywhere."""
    return constant_initializer(0, dtype)


def ones_initializer(dtype: DType = float32) -> Constant:
    """1 everywhere."""
    return constant_initializer(1, dtype)


def random_uniform_initializer(minval: float = 0, maxval: float = 1, dtype: DType = float32) -> Uniform:
    """Uniform in [minval, maxval)."""
    real("random_uniform_initializer", "minval", minval)
    real("random_uniform_initializer", "maxval", maxval)
    if minval > maxval:
        what = f"random_uniform_initializer: minval {minval} is above maxval {maxval}"
        fail(JobError, what, f"random_uniform_initializer({maxval}, {minval})")
    floating = as_dtype(dtype).floating
    return Uniform(float(minval), float(maxval)) if floating else Uniform(int(minval), int(maxval))


def random_normal_initializer(
    mean: float = 0.0, stddev: float = 1.0, seed: int | None = None, dtype: DType | None = None
) -> Normal:
    """Normal, N(mean, stddev**2). seed, dtype: must be None; get_variable's random_seed sets a variable's seed."""
    if seed is not None or dtype is not None:
        what = f"random_normal_initializer: seed={seed!r} and dtype={dtype!r} are the variable's, not the initializer's"
        hint = (
            "flow.get_variable(..., random_seed=1, dtype=flow.float32, initializer=flow.random_normal_initializer(0, "
            "1))"
        )
        fail(JobError, what, hint)
    real("random_normal_initializer", "mean", mean)
    return Normal(float(mean), deviation("random_normal_initializer", stddev))


def truncated_normal_initializer(mean: float = 0.0, stddev: float = 1.0) -> TruncatedNormal:
    """Normal, N(mean, stddev**2), redrawn beyond two standard deviations from the mean."""
    real("truncated_normal_initializer", "mean", mean)
    return TruncatedNormal(float(mean), deviation("truncated_normal_initializer", stddev))


def truncated_normal(stddev: float = 1.0) -> TruncatedNormal:
    """Normal, N(0, stddev**2), redrawn beyond two standard deviations from 0."""
    return TruncatedNormal(0.0, deviation("truncated_normal", stddev))


def variance_scaling_initializer(
    scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal", data_format: str = ""
) -> VarianceScaling:
    """Random values with variance scale / n, where n is fan_in, fan_out or their mean (mode "fan_avg") of the
    variable's shape.

    distribution: "truncated_normal", "random_normal" or "random_uniform". data_format: layout of filters, "NC..." or
    "N...C"; "" means channels first.
    """
    name = "variance_scaling_initializer"
    channels_last(data_format)
    mode, kind = choose(name, "mode", mode, MODES), choose(name, "distribution", distribution, DISTRIBUTIONS)
    return VarianceScaling(float(scale), mode, kind, data_format)


def glorot_uniform_initializer(data_format: str = "") -> VarianceScaling:
    """U(-a, a) with a = sqrt(6 / (fan_in + fan_out)). Glorot & Bengio 2010, eq. 16."""
    return variance_scaling_initializer(1.0, "fan_avg", "random_uniform", data_format)


def glorot_normal_initializer(data_format: str = "") -> VarianceScaling:
    """N(0, 2 / (fan_in + fan_out)). Glorot & Bengio 2010, eq. 12."""
    return variance_scaling_initializer(1.0, "fan_avg", "random_normal", data_format)


xavier_uniform_initializer = glorot_uniform_initializer
xavier_normal_initializer = glorot_normal_initializer


def kaiming_initializer(
    shape: Sequence[int],
    distribution: str = "random_normal",
    mode: str = "fan_in",
    nonlinearity: str | None = "leaky_relu",
    negative_slope: float = 0.0,
    data_format: str = "NCHW",
) -> Normal | Uniform:
    """Random values with standard deviation gain / sqrt(n), for a variable of this shape. He et al. 2015, eq. 10, 14.

    gain: sqrt(2) for "relu", sqrt(2 / (1 + negative_slope**2)) for "leaky_relu", 5/3 for "tanh", 1 for "sigmoid" or
    None. Raises JobError for a shape of fewer than two axes, or another nonlinearity.
    """
    name = "kaiming_initializer"
    if len(shape) < 2 or math.prod(shape) <= 0:
        what = f"{name}: shape must be (out, in) or that of filters, got {tuple(shape)}"
        fail(JobError, what, f"{name}(shape=weight_shape)")
    gains = {None: 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0)}
    gains["leaky_relu"] = math.sqrt(2.0 / (1 + negative_slope**2))
    if nonlinearity not in gains:
        choices = [g for g in gains if g]
        choose(name, "nonlinearity", nonlinearity, choices)
    kind = choose(name, "distribution", distribution, DISTRIBUTIONS[1:])
    stddev = gains[nonlinearity] / math.sqrt(fan(tuple(shape), choose(name, "mode", mode, MODES), data_format))
    return (
        Normal(0.0, stddev) if kind == "random_normal" else Uniform(-math.sqrt(3.0) * stddev, math.sqrt(3.0) * stddev)
    )
