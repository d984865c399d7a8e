"""Oracles of the composite pools: one window at a time, with its positions along each axis."""

import itertools
import math

import numpy as np

from tests.core.oracles_nn import parts, pooled_shape


def spans(shape, kernel_size, stride, padding, ceil_mode, dilation):
    """The positions of each window along each axis, those of the padding too."""
    counts = pooled_shape(shape, kernel_size, stride, padding, ceil_mode, dilation)[2:]
    return [
        [[i * s - p + u * d for u in range(k)] for i in range(m)]
        for m, k, s, p, d in zip(counts, kernel_size, stride, padding, dilation)
    ]


def windows(x, axes):
    """(index in the result, elements of one window by position) for each window. axes: the result of `spans`."""
    for index in np.ndindex(*x.shape[:2], *map(len, axes)):
        reach = [
            [at for at in positions[i] if 0 <= at < size] for i, positions, size in zip(index[2:], axes, x.shape[2:])
        ]
        yield index, {at: x[index[:2]][at] for at in itertools.product(*reach)}


def largest(x, axes):
    shape = (*x.shape[:2], *map(len, axes))
    y, indices = np.zeros(shape, x.dtype), np.zeros(shape, "int64")
    for index, window in windows(x, axes):
        best = max(window, key=window.get)
        y[index], indices[index] = window[best], np.ravel_multi_index(best, x.shape[2:])
    return y, indices


def means(x, axes, divisor=lambda index, count: count):
    y = np.zeros((*x.shape[:2], *map(len, axes)), x.dtype)
    for index, window in windows(x, axes):
        y[index] = sum(window.values()) / divisor(index[2:], len(window))
    return y


def avg_pool(x, count_include_pad, divisor_override, **options):
    axes = spans(x.shape, **options, dilation=(1,) * (x.ndim - 2))

    def with_padding(index, count):
        """The padding counts, but not what is beyond it."""
        limits = [size + p for size, p in zip(x.shape[2:], options["padding"])]
        return math.prod([sum(at < n for at in positions[i]) for i, positions, n in zip(index, axes, limits)])

    return means(
        x, axes, lambda *window: divisor_override or (with_padding(*window) if count_include_pad else window[1])
    )


def adaptive_axes(x, output_size):
    return [parts(size, m) for size, m in zip(x.shape[2:], output_size)]


def lp_pool(x, norm_type, kernel_size, stride, ceil_mode):
    """A window that is partly outside counts its mean for each element of the kernel."""
    n = x.ndim - 2
    axes = spans(x.shape, kernel_size, stride, (0,) * n, ceil_mode, (1,) * n)
    if norm_type == math.inf:
        return largest(abs(x), axes)[0]
    return (means(x**norm_type, axes) * math.prod(kernel_size)) ** (1 / norm_type)


def max_unpool(x, indices, output_size):
    out = np.zeros((*x.shape[:2], *output_size), x.dtype)
    for at in np.ndindex(x.shape):
        out[at[:2]].reshape(-1)[indices[at]] = x[at]
    return out


FAMILIES = {
    "max_pool": ((1, 3), lambda x, **options: largest(x, spans(x.shape, **options))),
    "avg_pool": ((1, 3), avg_pool),
    "adaptive_max_pool": ((1, 2, 3), lambda x, output_size: largest(x, adaptive_axes(x, output_size))),
    "adaptive_avg_pool": ((1, 3), lambda x, output_size: means(x, adaptive_axes(x, output_size))),
    "lp_pool": ((1, 2, 3), lp_pool),
    "max_unpool": ((1, 2, 3), max_unpool),
}
ORACLES = {f"{name}{n}d": oracle for name, (axes, oracle) in FAMILIES.items() for n in axes}
