"""flow.testing: which tensors assert_close accepts, and how it reports differences. The tolerances are PyTorch's."""

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import DTypeError
from minflow.testing import assert_allclose, assert_close, make_tensor

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("actual", "expected", "options"),
    [
        (flow.tensor([1.0, 2.0]), flow.tensor([1.0, 2.0 + 1e-6]), {}),
        (flow.tensor([INF, -INF]), flow.tensor([INF, -INF]), {}),
        (flow.tensor([NAN]), flow.tensor([NAN]), {"equal_nan": True}),
        (flow.tensor([1, 2]), flow.tensor([1.0, 2.0]), {"check_dtype": False}),
        (flow.tensor([100.0]), flow.tensor([101.0]), {"rtol": 0.02, "atol": 0.0}),
        ([flow.ones(2), {"a": 1.0}], [flow.ones(2), {"a": 1.0}], {}),
        (np.ones(3), np.ones(3), {}),
        (1.0, 1.0 + 1e-9, {}),
        (flow.tensor([True]), flow.tensor([True]), {}),
        (flow.tensor([2**60]), flow.tensor([2**60]), {}),
        (flow.zeros(0, 3), flow.zeros(0, 3), {}),
    ],
)
def test_assert_close_accepts(actual, expected, options):
    assert_close(actual, expected, **options)


@pytest.mark.parametrize(
    ("actual", "expected", "said"),
    [
        (flow.tensor([1.0, 2.0]), flow.tensor([1.0, 2.1]), r"1 of 2 .*50.0 %[\s\S]*index \(1,\)[\s\S]*absolute  0.1 "),
        (flow.tensor([NAN]), flow.tensor([NAN]), "1 of 1"),
        (flow.tensor([INF]), flow.tensor([1.0]), "actual inf, expected 1.0"),
        (flow.tensor([1.0]), flow.tensor([INF]), "expected inf"),
        (flow.tensor([1]), flow.tensor([1.0]), "dtypes differ: int64 and float32"),
        (flow.tensor([1, 2]), flow.tensor([1, 3]), "actual 2, expected 3"),
        (flow.tensor([2**60]), flow.tensor([2**60 + 1]), "absolute  1"),
        (flow.ones(2), flow.ones(2, 1), r"shapes differ: \[2\] and \[2, 1\]"),
        (flow.ones(2), np.ones(2), "types differ: Tensor and ndarray"),
        ([1.0, 2.0], [1.0], "lengths differ: 2 and 1"),
        ({"a": [1.0, 5.0]}, {"a": [1.0, 2.0]}, "entry 'a'\n  in the entry 1"),
        ({"a": 1.0}, {"b": 1.0}, "keys differ"),
        (1.0, 1.1, "1 of 1"),
    ],
)
def test_assert_close_refuses(actual, expected, said):
    with pytest.raises(AssertionError, match=said):
        assert_close(actual, expected)


def test_custom_message_and_options():
    with pytest.raises(AssertionError, match=r"^mine$"):
        assert_close(1.0, 2.0, msg="mine")
    with pytest.raises(AssertionError, match="^see: 1 of 1"):
        assert_close(1.0, 2.0, msg=lambda text: f"see: {text}")
    with pytest.raises(DTypeError, match="together") as caught:
        assert_close(1.0, 1.0, rtol=0.1)
    assert caught.value.values["rtol"] == "0.1"
    assert_allclose(flow.tensor([1, NAN]), np.array([1.0, NAN]))


def test_make_tensor():
    for dtype in (flow.float32, flow.int64, flow.uint8, flow.bool):
        x = make_tensor(3, 4, dtype=dtype, device="cpu")
        assert x.shape == (3, 4) and x.dtype is dtype
    x = make_tensor((2, 3), dtype=flow.float64, low=1, high=2, requires_grad=True, noncontiguous=True)
    assert x.requires_grad and not x.is_contiguous() and bool(((x >= 1) & (x < 2)).all())
    assert bool((make_tensor(50, dtype=flow.int64, low=0, high=2, exclude_zero=True) == 1).all())
