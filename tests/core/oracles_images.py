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


def pixel_shuffle(x, upscale_factor):
    r, (*outer, c, h, w) = upscale_factor, x.shape
    out = np.zeros((*outer, c // r**2, h * r, w * r), x.dtype)
    for *place, k, i, j in np.ndindex(x.shape):
        channel, (u, v) = k // r**2, divmod(k % r**2, r)
        out[(*place, channel, i * r + u, j * r + v)] = x[(*place, k, i, j)]
    return out


def pixel_unshuffle(x, downscale_factor):
    r, (*outer, c, h, w) = downscale_factor, x.shape
    out = np.zeros((*outer, c * r**2, h // r, w // r), x.dtype)
    for *place, k, i, j in np.ndindex(x.shape):
        out[(*place, k * r**2 + i % r * r + j % r, i // r, j // r)] = x[(*place, k, i, j)]
    return out


def channel_shuffle(x, groups):
    size = x.shape[1] // groups
    return x[:, [group * size + i for i in range(size) for group in range(groups)]]


def pad_from_input(x, widths, mode):
    """NumPy's padding of a cropped array ("circular"), or cropped afterwards."""
    around = [(0, 0)] * (x.ndim - len(widths)) + [*widths]
    crop = lambda y: y[tuple([slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(y.shape, around)])]
    borders = [(max(b, 0), max(a, 0)) for b, a in around]
    if mode == "circular":
        return np.pad(crop(x), borders, mode="wrap")
    return crop(np.pad(x, borders, mode={"reflect": "reflect", "replicate": "edge"}[mode]))


def cubic(d, slope):
    if d < 1:
        return (slope + 2) * d**3 - (slope + 3) * d**2 + 1
    return slope * (d**3 - 5 * d**2 + 8 * d - 4) if d < 2 else 0.0


def resizing_matrix(n, m, factor, mode, align_corners, antialias):
    """Weights of n pixels in each of m."""
    found, step = np.zeros((m, n)), 1 / factor if factor else n / m
    if align_corners:
        step = (n - 1) / (m - 1) if m > 1 else 0.0
    for i in range(m):
        if mode.startswith("nearest"):
            found[i, min(int((i + 0.5 * (mode == "nearest-exact")) * step), n - 1)] = 1
        elif antialias:
            wide = max(step, 1)
            for j in range(n):
                d = abs(j + 0.5 - step * (i + 0.5)) / wide
                found[i, j] = cubic(d, -0.5) if mode == "cubic" else max(1 - d, 0)
            found[i] /= found[i].sum()
        else:
            place = i * step if align_corners else (i + 0.5) * step - 0.5
            place = place if mode == "cubic" else max(place, 0)
            for j in range(int(np.floor(place)) - 1, int(np.floor(place)) + 3):
                d = abs(place - j)
                found[i, min(max(j, 0), n - 1)] += cubic(d, -0.75) if mode == "cubic" else max(1 - d, 0)
    return found


def interpolate(x, output_size, factors, mode, align_corners, antialias):
    dtype, x = x.dtype, x.astype(float)
    for axis, (m, factor) in enumerate(zip(output_size, factors), 2):
        if x.shape[axis] != m or factor not in (None, 1.0):
            weights = resizing_matrix(x.shape[axis], m, factor, mode, align_corners, antialias)
            x = np.moveaxis(np.tensordot(weights, x, (1, axis)), 0, axis)
    return x.astype(dtype)


def inside(place, size, padding_mode, align_corners):
    """A position, moved into an axis of this size unless it is padded with zeros."""
    low, high = (0, size - 1) if align_corners else (-0.5, size - 0.5)
    while padding_mode == "reflection" and high > low and not low <= place <= high:
        place = 2 * (low if place < low else high) - place
    return place if padding_mode == "zeros" else min(max(place, 0), size - 1)


def grid_sample(x, grid, mode, padding_mode, align_corners):
    space = x.shape[2:]
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    kernel = (lambda d: cubic(d, -0.75)) if mode == "cubic" else lambda d: max(1 - d, 0)
    for image, *at in np.ndindex(*grid.shape[:-1]):
        places = []
        for g, n in zip(grid[(image, *at)][::-1].astype(float), space):
            place = (g + 1) / 2 * (n - 1) if align_corners else ((g + 1) * n - 1) / 2
            places.append(place if mode == "cubic" else inside(place, n, padding_mode, align_corners))
        for corner in np.ndindex(*[4] * len(space)):
            pixel = [int(np.floor(p)) + k - 1 for p, k in zip(places, corner)]
            weight = np.prod([kernel(abs(p - j)) for p, j in zip(places, pixel)])
            if mode == "cubic":
                pixel = [int(inside(j, n, padding_mode, align_corners)) for j, n in zip(pixel, space)]
            if weight and all(0 <= j < n for j, n in zip(pixel, space)):
                out[(image, slice(None), *at)] += weight * x[(image, slice(None), *pixel)]
    return out.astype(x.dtype)


def affine_grid(theta, output_size, align_corners):
    out = np.zeros((len(theta), *output_size, len(output_size)), theta.dtype)
    for at in np.ndindex(*output_size):
        ends = [max(n - 1, 1) if align_corners else n for n in output_size]
        point = [(2 * i - (n - 1)) / end for i, n, end in zip(at, output_size, ends)]
        out[(slice(None), *at)] = theta @ np.array([*point[::-1], 1.0])
    return out


ORACLES = {
    "im2col": im2col,
    "col2im": col2im,
    "interpolate": interpolate,
    "grid_sample": grid_sample,
    "affine_grid": affine_grid,
    "pixel_shuffle": pixel_shuffle,
    "pixel_unshuffle": pixel_unshuffle,
    "channel_shuffle": channel_shuffle,
    "pad_from_input": pad_from_input,
}
