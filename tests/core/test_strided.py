"""Writes to columns of an array give the values of the same operation on a copy.

NumPy 2.4 negates wrong elements if input and result are both strided, for some strides.
"""

import numpy as np
import pytest

import minflow as flow


@pytest.mark.parametrize("name", ["neg_", "sigmoid_", "exp_", "abs_", "tanh_", "sqrt_", "square_", "relu_", "floor_"])
def test_strided_writes_match_contiguous_writes(name):
    for dtype in (flow.float32, flow.float64):
        for columns in (2, 3, 4, 8, 16):
            numbers = (np.arange(5 * columns).reshape(5, columns) + 0.25) / columns
            x = flow.tensor(numbers, dtype=dtype)
            want = getattr(x[:, 1].clone(), name)().tolist()
            getattr(x[:, 1], name)()
            assert x[:, 1].tolist() == want, (dtype, columns)
            assert x[:, 0].tolist() == flow.tensor(numbers, dtype=dtype)[:, 0].tolist()
