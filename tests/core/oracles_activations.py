"""Oracles of activations, element by element in float64."""

import math

import numpy as np


def each(function):
    """An elementwise function of a Python float."""
    return lambda x, **attrs: np.vectorize(lambda v: function(float(v), **attrs), otypes=["float64"])(x)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def gelu(x, approximate):
    if approximate == "tanh":
        return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x / 2 * (1 + math.erf(x / math.sqrt(2)))


def elu(x, alpha, scale, input_scale):
    return scale * (x if x > 0 else alpha * math.expm1(input_scale * x))


def prelu(x, weight):
    slopes = weight.reshape((-1,) + (1,) * (x.ndim - 2)) if weight.size > 1 else weight.item()
    return np.where(x > 0, x, slopes * x)


def glu(x, axis):
    first, second = np.split(x, 2, axis)
    return first * each(sigmoid)(second)


def alpha_dropout(x, kept, p):
    """Klambauer et al. 2017, section 3: a * y + b, with the moments of y if x has mean 0 and variance 1."""
    limit = -1.0507009873554805 * 1.6732632423543772
    y = kept * x + (1 - kept) * limit
    return (y - p * limit) * (1 - p + limit**2 * p * (1 - p)) ** -0.5


ORACLES = {
    "alpha_dropout": alpha_dropout,
    "gelu": each(gelu),
    "quick_gelu": each(lambda x: x * sigmoid(1.702 * x)),
    "silu": each(lambda x: x * sigmoid(x)),
    "mish": each(lambda x: x * math.tanh(math.log1p(math.exp(x)))),
    "softsign": each(lambda x: x / (1 + abs(x))),
    "elu": each(elu),
    "prelu": prelu,
    "rrelu": lambda x, slope: np.where(x > 0, x, slope * x),
    "hardsigmoid": each(lambda x: min(max(x / 6 + 0.5, 0), 1)),
    "hardswish": each(lambda x: x * min(max(x + 3, 0), 6) / 6),
    "glu": glu,
}
