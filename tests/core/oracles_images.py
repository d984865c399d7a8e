"""Oracles of image ops: loops over windows and pixels, one element at a time."""

import numpy as np


def counts_of(size, kernel_size, stride, padding, dilation):
    """Number of window positions along each axis."""
    return [
        len(range(0, n + 2 * p - d * (k - 1), s)) for n, k, s, p, d in zip(size, kernel_size, stride, padding, dilation)
    ]


def window_pixels(shape, kernel_size, stride, padding, dilation):
    """((n, row of the columns, column), position in the image) of every pixel of every window."""
    n, c, *size = shape
    counts = counts_of(size, kernel_size, stride, padding, dilation)
    for image, channel, i, j, u, v in np.ndindex(n, c, *counts, *kernel_size):
        row, column = i * stride[0] + u * dilation[0] - padding[0], j * stride[1] + v * dilation[1] - padding[1]
        if 0 <= row < size[0] and 0 <= column < size[1]:
            place = (channel * kernel_size[0] + u) * kernel_size[1] + v
            yield (image, place, i * counts[1] + j), (image, channel, row, column)


def im2col(x, kernel_size, **options):
    places = np.prod(counts_of(x.shape[2:], kernel_size, **options))
    out = np.zeros((x.shape[0], x.shape[1] * np.prod(kernel_size), places), x.dtype)
    for column, pixel in window_pixels(x.shape, kernel_size, **options):
        out[column] = x[pixel]
    return out


def col2im(columns, shape, **options):
    out = np.zeros(shape, columns.dtype)
    for column, pixel in window_pixels(shape, **options):
        out[pixel] += columns[column]
    return out


ORACLES = {"im2col": im2col, "col2im": col2im}
