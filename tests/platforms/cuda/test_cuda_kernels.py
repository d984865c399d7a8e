"""Each kernel of the platform "cupy" against the reference kernel of its op: CUDA C, compiled for the CPU."""

import numpy as np
import pytest

import minflow as flow


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(3, 5), (7, 1000), (2, 33), (1, 1)])
def test_softmax(cuda_kernels, dtype, shape):
    x = flow.tensor(np.random.default_rng(0).normal(size=shape), dtype=getattr(flow, dtype))
    got = flow.softmax(x.to("cuda"), -1).cpu()
    assert (got.double() - flow.softmax(x.double(), -1)).abs().max() <= flow.finfo(x.dtype).eps
