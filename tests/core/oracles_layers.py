"""Oracles of distances and of CTC: all differences at once, and all alignments one by one."""

import itertools

import numpy as np


def lengths(apart, p):
    if p == 0:
        return (apart != 0).sum(-1)
    if p == np.inf:
        return np.abs(apart).max(-1, initial=0)
    return (np.abs(apart) ** p).sum(-1) ** (1 / p)


def pair_distances(a, b, p):
    return lengths(a[..., :, None, :].astype("float64") - b[..., None, :, :], p)


def pair_distances_grad(grad, a, b, distance, p):
    """Gradient by the formula sign(d) * |d|**(p - 1) / distance**(p - 1)."""
    apart = a[:, None].astype("float64") - b
    if p == 0:
        return np.zeros(a.shape)
    slope = np.sign(apart) * np.abs(apart) ** (p - 1) * distance[..., None].astype("float64") ** (1 - p)
    return (slope * grad[..., None]).sum(1)


def alignments(log_probs, targets, frames, labels, blank):
    """(n, path, log probability) of every path of classes that becomes the target without repeats and blanks."""
    starts = np.cumsum(labels) - labels
    for n in range(log_probs.shape[1]):
        row = targets[n] if targets.ndim == 2 else targets[starts[n] :]
        wanted = row[: labels[n]].tolist()
        for way in itertools.product(range(log_probs.shape[2]), repeat=int(frames[n])):
            if [c for c, _ in itertools.groupby(way) if c != blank] == wanted:
                yield n, way, sum(float(log_probs[t, n, c]) for t, c in enumerate(way))


def ctc(log_probs, targets, frames, labels, blank):
    total = np.zeros(log_probs.shape[1])
    for n, _, chance in alignments(log_probs, targets, frames, labels, blank):
        total[n] += np.exp(chance)
    return -np.log(total)


def ctc_grad(grad, log_probs, *rest, blank):
    losses, out = ctc(log_probs, *rest, blank), np.zeros(log_probs.shape)
    for n, way, chance in alignments(log_probs, *rest, blank):
        for t, c in enumerate(way):
            out[t, n, c] -= grad[n] * np.exp(chance + losses[n])
    return out


def bags_reduced(rows, place, counts, bags, pooling):
    out = np.zeros((bags, rows.shape[1]))
    for bag in range(bags):
        inside = [row for row, at, count in zip(rows, place, counts) if at == bag and count]
        if inside:
            out[bag] = {"sum": np.sum, "mean": np.mean, "max": np.max}[pooling](inside, axis=0)
    return out


ORACLES = {
    "bilinear": lambda x1, x2, weight, bias: np.einsum("...i,kij,...j->...k", x1, weight, x2) + bias,
    "pdist": lambda x, p: np.array([lengths(a - b, p) for a, b in itertools.combinations(x.astype("float64"), 2)]),
    "reduce_bags": bags_reduced,
    "at_least": lambda x, least, name: np.where(x < least, least, x),
    "pair_distances": pair_distances,
    "pair_distances_grad": pair_distances_grad,
    "ctc": ctc,
    "ctc_grad": ctc_grad,
}
