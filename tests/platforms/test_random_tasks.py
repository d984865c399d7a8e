"""Compiled kernels of random tensors draw the bits of the reference kernels."""

import numpy as np
import pytest

from minflow.core.kernels import REFERENCE, select
from minflow.core.op import OPS
from minflow.core.spec import float16, float32, float64
from minflow.platforms.compiled.config import COMPILED
from minflow.platforms.compiled.kernels import random

SIZES = [0, 1, 5, 63, 64, 65, 4095, 4096, 4097, 100_001]


def draw(platforms, name, shape, **attrs):
    """Draw a tensor; return it, and the platforms that declined."""
    selected, counter = select(OPS[name], platforms), np.array([-5, 7])
    with np.errstate(all="ignore"):
        result = selected.call(counter, shape=shape, **{"dtype": float32, "offset": 3} | attrs)
    return result, selected.declined


def check(name, shape, supported=True, **attrs):
    found, declined = draw((COMPILED, REFERENCE), name, shape, **attrs)
    assert declined == (set() if supported else {COMPILED})
    assert found.tobytes() == draw((REFERENCE,), name, shape, **attrs)[0].tobytes()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("low, high", [(0.0, 1.0), (-2.0, 3.0), (1.0, 1.0), (2.0**24, 2.0**24 + 2)])
def test_uniform(size, low, high):
    check("uniform", (size,), low=low, high=high)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mean, std", [(0.0, 1.0), (-2.0, 3.0), (1e5, 0.01), (0.0, 0.0), (0.0, 1e38), (np.nan, 1.0)])
def test_normal(size, mean, std):
    check("normal", (size,), mean=mean, std=std)


@pytest.mark.parametrize("error", [1e-11, 1e-6])
def test_chunks_whose_rounding_is_unclear_are_drawn_again(monkeypatch, error):
    again = []
    original = random.normal_floats
    monkeypatch.setattr(random, "normal_floats", lambda *a: again.append(a) or original(*a))
    monkeypatch.setattr(random, "ERROR", error)
    check("normal", (100_001,), mean=0.5, std=2.0)
    assert again


@pytest.mark.parametrize(
    "shape, first, supported", [((6, 40), (2, 0), True), ((3, 4), (5, 0), False), ((6, 40), (0, 2), False)]
)
def test_part_of_a_global_tensor(shape, first, supported):
    """It is drawn alone if it is contiguous and begins with a block of four words."""
    part = ((9, 40 + first[1]), first)
    for name, law in (("uniform", {"low": 0.0, "high": 1.0}), ("normal", {"mean": 0.0, "std": 1.0})):
        check(name, shape, supported, part=part, **law)


@pytest.mark.parametrize("dtype", [float16, float64])
def test_other_dtypes_are_left_to_the_reference_kernel(dtype):
    check("uniform", (100,), False, low=0.0, high=1.0, dtype=dtype)
    check("normal", (100,), False, mean=0.0, std=1.0, dtype=dtype)
