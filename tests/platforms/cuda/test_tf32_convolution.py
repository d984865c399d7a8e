"""Convolutions whose factors are rounded to TF32, which has 10 bits of fraction."""

import numpy as np
import pytest

import minflow as flow
from minflow.core.op import OPS
from tests.platforms.cuda.kernel_calls import Call, calls


@pytest.fixture
def tf32():
    flow.backends.cudnn.allow_tf32 = True
    yield
    flow.backends.cudnn.allow_tf32 = False


def to_tf32(x: np.ndarray) -> np.ndarray:
    return ((x.view("u4") + 0x1000) & 0xFFFFE000).view("f4")


def depthwise_or_empty(call: Call) -> bool:
    """True if tensor cores do not run a call."""
    return call.attrs["groups"] > 2 or not all([x.size for x in call.arrays])


@pytest.mark.parametrize("name", ["conv2d", "conv2d_input_grad", "conv2d_weight_grad"])
def test_factors_are_rounded(name, cuda_kernels, tf32, reference_kernels):
    op = OPS[name]
    for call in calls(op):
        if {x.dtype.name for x in call.arrays} != {"float32"} or depthwise_or_empty(call):
            continue
        (got,), (exact,) = call.run("cuda"), call.in_float64().run("cpu")
        (rounded,) = call._replace(arrays=[to_tf32(x) for x in call.arrays]).in_float64().run("cpu")
        unit = np.finfo("f4").eps * np.abs(exact).max()
        assert np.abs(got - rounded).max() <= 32 * unit
        assert np.abs(got - exact).max() > 100 * unit, "the factors are not rounded"


def test_flag():
    assert not flow.backends.cudnn.allow_tf32 and not flow.backends.cuda.matmul.allow_tf32
    with flow.backends.cudnn.flags(allow_tf32=True):
        assert flow.backends.cudnn.allow_tf32 and not flow.backends.cuda.matmul.allow_tf32
    assert not flow.backends.cudnn.allow_tf32
