"""All sums as symbols: each occurs once, and the held-out ones are separate."""

import numpy as np
import pytest

import minflow as flow
from minflow.core.base.errors import OutOfRangeError, ShapeError
from minflow.data import sums


@pytest.mark.parametrize("digits, backwards", [(1, False), (2, False), (2, True)])
def test_every_sum_occurs_once_and_is_correct(digits, backwards):
    data = sums(digits, backwards=backwards)
    n, length = 100**digits, 3 * digits + 4
    assert data.seen.shape == (n * 4 // 5, length) and data.held_out.shape == (n // 5, length)
    assert data.seen.dtype == data.held_out.dtype == np.int64 and data.alphabet == "0123456789+=."
    asked = set()
    for row in [*data.seen, *data.held_out]:
        question, result = data.decode(row).split("=")
        a, b = question.split("+")
        asked.add((a, b))
        assert len(a) == len(b) == digits and result.endswith(".")
        result = result.rstrip(".")
        assert str(int(a) + int(b)) == (result[::-1] if backwards else result)
    assert len(asked) == n


def test_seeds():
    first, same, other = sums(1), sums(1, seed=0), sums(1, seed=1)
    assert np.array_equal(first.seen, same.seen) and np.array_equal(first.held_out, same.held_out)
    assert {tuple(row) for row in first.held_out.tolist()} != {tuple(row) for row in other.held_out.tolist()}
    first.seen[:] = 0
    assert sums(1).seen.any()


def test_encode_and_decode():
    data = sums()
    assert data.encode("12+7=.").tolist() == [1, 2, 10, 7, 11, 12] and data.encode("").shape == (0,)
    assert data.decode(data.encode("3+4=7")) == data.decode(flow.tensor([3, 10, 4, 11, 7])) == "3+4=7"
    assert data.decode([]) == ""


def test_mistakes():
    data = sums(1)
    for digits in (0, 3, 1.0, True, "2"):
        with pytest.raises(OutOfRangeError, match="digits"):
            sums(digits)
    with pytest.raises(OutOfRangeError, match="(?s)seed.*-1"):
        sums(1, -1)
    with pytest.raises(OutOfRangeError, match="(?s)symbol.*'x'.*only 0123456789"):
        data.encode("1x")
    with pytest.raises(OutOfRangeError, match="(?s)id.*13.*0 to 12"):
        data.decode([13])
    with pytest.raises(ShapeError, match="(?s)shape.*80, 7.*decode.ids.0"):
        data.decode(data.seen)
