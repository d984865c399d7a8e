"""Two results in words: exactly equal, equal up to rounding, or different."""

import numpy as np
import pytest

import minflow as flow
from minflow.exercises import agreement


@pytest.mark.parametrize(
    "one, other, words",
    [
        ([1.0, 2.0], [1.0, 2.0], "equal in all digits"),
        (0.0, 0.0, "equal in all digits"),
        ([np.nan], [np.nan], "equal in all digits"),
        (flow.tensor([3.0]), np.float32([3.0]), "equal in all digits"),
        ([100.0, 1.0], [100.0, 1.0009], "equal but for rounding: the largest difference is 9.0e-04"),
        ([100.0, 1.0], [100.0, 1.002], "different: the largest difference is 2.0e-03"),
        ([1.0], [np.nan], "different: the largest difference is nan"),
    ],
)
def test_words_follow_from_the_numbers(one, other, words):
    assert agreement(one, other) == words


def test_shapes_must_be_equal():
    with pytest.raises(ValueError, match=r"shapes must be equal, got \(2,\) and \(1,\)"):
        agreement([1.0, 2.0], [1.0])
