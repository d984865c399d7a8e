"""The digits that ship with the package."""

import numpy as np
import pytest

from minflow.core.base.errors import OutOfRangeError
from minflow.data import digits
from minflow.data.digits import digit_arrays


@pytest.mark.parametrize("size", [8, 28])
def test_shapes_are_those_of_load_mnist(size):
    (train_images, train_labels), (test_images, test_labels) = digits(100, image_size=size)
    assert train_images.shape == (14, 100, 1, size, size) and test_images.shape == (3, 100, 1, size, size)
    assert train_labels.shape == (14, 100) and test_labels.shape == (3, 100)
    assert train_images.dtype == np.float32 and train_labels.dtype == np.int32
    assert train_images.min() == 0 and 0.9 < train_images.max() <= 1


def test_digits_equal_scikit_learns():
    parts = [digit_arrays(train, 8) for train in (True, False)]
    assert [len(labels) for _, labels in parts] == [1497, 300]
    sums = sum(float(images.sum(dtype="float64")) for images, _ in parts) * 16
    assert sums == 561718.0  # load_digits().images.sum()
    assert np.bincount(np.concatenate([labels for _, labels in parts])).tolist() == [
        178,
        182,
        177,
        183,
        181,
        182,
        181,
        179,
        174,
        180,
    ]
    assert parts[1][0][0][0].tolist() == [v / 16 for v in (0, 0, 5, 13, 9, 1, 0, 0)]


def test_size_28_centers_digits_of_size_20():
    images, _ = digit_arrays(False, 28)
    border = np.ones((28, 28), bool)
    border[4:24, 4:24] = False
    assert images.shape[1:] == (28, 28) and not images[:, border].any()
    small, _ = digit_arrays(False, 8)
    # Linear interpolation keeps the mean of the stretched image, except at the border.
    assert abs(images.sum() / small.sum() - (20 / 8) ** 2) < 0.05


def test_returned_arrays_are_writable_copies():
    first, again = digits(50)[0][0], digits(50)[0][0]
    first[:] = 7
    assert again.max() <= 1 and digits(50)[0][0].max() <= 1


def test_channels_last():
    nhwc = digits(50, data_format="NHWC")[0][0]
    assert nhwc.shape == (29, 50, 8, 8, 1) and np.array_equal(nhwc[..., 0], digits(50)[0][0][:, :, 0])


@pytest.mark.parametrize("arguments, values", [((0,), "0"), ((301,), "301"), ((50, 14), "14"), ((50, 8, "HWC"), "HWC")])
def test_mistakes(arguments, values):
    with pytest.raises(OutOfRangeError, match=values):
        digits(*arguments)
