"""Oracles of the ops that count, sort, accumulate and scatter. See `oracles.py`."""

import itertools

import numpy as np


def recurrence(a, b, axis):
    out = np.zeros(b.shape)
    rows, a, b = [np.moveaxis(x, axis, 0) for x in (out, a, b)]
    for i in range(len(b)):
        rows[i] = b[i] + (a[i] * rows[i - 1] if i else 0)
    return out


def running(function):
    """Apply the function to all slices up to each slice."""

    def along(x, axis):
        parts = [np.take(x, range(i + 1), axis) for i in range(x.shape[axis])]
        return np.stack([function(part, axis=axis) for part in parts], axis) if parts else x

    return along


def extreme(values, wins):
    def along(x, axis):
        def last(row, axis=None):
            return max(range(len(row)), key=lambda i: (wins(row[i]), i))

        places = running(lambda part, axis: np.apply_along_axis(last, axis, part) if part.size else part)(x, axis)
        return running(values)(x, axis), places.astype("int64")

    return along


def most_frequent(x, axis):
    def last(row):
        values, counts = np.unique(row, return_counts=True)
        return np.flatnonzero(row == values[counts.argmax()])[-1]

    return np.expand_dims(np.apply_along_axis(last, axis, x), axis)


def places(edges, x, right, dtype):
    rows = np.broadcast_to(edges, (*x.shape[:-1], edges.shape[-1])) if x.ndim else edges
    less = np.less_equal if right else np.less
    return less(rows[..., None, :], x[..., None]).sum(-1).astype(dtype.np) if x.ndim else less(rows, x).sum()


def grouped(x, axis, runs):
    rows = [np.asarray(row).ravel().tolist() for row in (x.ravel() if axis is None else np.moveaxis(x, axis, 0))]
    if runs:
        numbers = np.cumsum([0] + [a != b for a, b in itertools.pairwise(rows)])
    else:
        order = sorted(map(list, {tuple(row) for row in rows}))
        numbers = np.array([order.index(row) for row in rows], "int64")
    return numbers.reshape(x.shape) if axis is None else numbers


def counted(x, weights, minlength):
    n = max(int(x.max(initial=-1)) + 1, minlength)
    weights = np.broadcast_to(weights, x.shape)
    return np.array([weights[x == k].sum() for k in range(n)], weights.dtype)


def strided_view(x, size, stride, offset):
    out, flat = np.empty(size), x.ravel()
    for place in np.ndindex(*size):
        out[place] = flat[offset + sum(i * k for i, k in zip(place, stride))]
    return out


def windows(x, dim, size, step):
    starts = range(0, x.shape[dim] - size + 1, step)
    return np.stack([np.moveaxis(np.take(x, range(i, i + size), dim), dim, -1) for i in starts], dim)


def scatter_reduce(x, index, src, dim, reduce, include_self):
    meets = {place: [x[place]] if include_self else [] for place in np.ndindex(x.shape)}
    for place in np.ndindex(index.shape):
        meets[(*place[:dim], int(index[place]), *place[dim + 1 :])].append(src[place])
    join = {"prod": np.prod, "amax": np.max, "amin": np.min}[reduce]
    out = x.copy()
    for place, values in meets.items():
        out[place] = join(values) if values else x[place]
    return out


def kept(boxes, order, threshold):
    def overlap(a, b):
        sides = [max(min(a[k + 2], b[k + 2]) - max(a[k], b[k]), 0) for k in (0, 1)]
        area = lambda box: (box[2] - box[0]) * (box[3] - box[1])
        both = sides[0] * sides[1]
        return both / (area(a) + area(b) - both)

    result = []
    for i in order:
        if all(overlap(boxes[i], boxes[j]) <= threshold for j in result):
            result.append(i)
    return np.array(result, "int64")


ORACLES = {
    "recurrence": recurrence,
    "cumprod": running(np.prod),
    "cummax": extreme(np.max, lambda v: v),
    "cummin": extreme(np.min, lambda v: -v),
    "logcumsumexp": running(lambda part, axis: np.log(np.exp(part).sum(axis))),
    "nanmedian": lambda x: np.sort(x, axis=None)[(x.size - 1) // 2],
    "mode_place": most_frequent,
    "searchsorted": places,
    "isin": lambda x, among, invert: (x[..., None] == among).any(-1) != invert,
    "groups": grouped,
    "firsts": lambda group: np.array([list(group).index(k) for k in sorted(set(group))], "int64"),
    "bincount": counted,
    "histc": lambda x, bins, low, high: np.histogram(
        x, bins, (low, high) if low < high else (x.min(), x.max()) if x.size else (0, 1)
    )[0],
    "as_strided": strided_view,
    "windows": windows,
    "scatter_reduce": scatter_reduce,
    "nms": kept,
    # random: tests/core/test_distribution_sampling.py
    "multinomial": None,
    "poisson": None,
    "binomial": None,
}
