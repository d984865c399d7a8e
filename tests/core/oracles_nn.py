"""Oracles of the ops of networks and optimizers: loops over pixels, windows and examples, one element at a time."""

import itertools

import numpy as np

from tests.core.oracles_update import downhill


def softmax(x, dim):
    if not x.ndim:
        return np.ones_like(x)
    e = np.exp(x - x.max(dim, keepdims=True)) if x.size else x
    return e / e.sum(dim, keepdims=True)


def softmax_log(x, dim):
    return np.log(softmax(x, dim))


# ---- losses ------------------------------------------------------------------------------------------------------


def places(labels, ignore_index):
    """(index of the label's score, position of the label) of each example that is not ignored."""
    for at in np.ndindex(labels.shape):
        if labels[at] != ignore_index:
            yield ((*at[:1], int(labels[at]), *at[1:])) if labels.ndim else (int(labels),), at


def nll(x, labels, ignore_index, reduction):
    losses = np.zeros(labels.shape, x.dtype)
    n = 0
    for source, at in places(labels, ignore_index):
        losses[at] = -x[source]
        n += 1
    return losses if reduction == "none" else losses.sum() / (n if reduction == "mean" else 1)


def nll_grad(grad, labels, shape, ignore_index, reduction):
    out = np.zeros(shape, grad.dtype)
    n = len(list(places(labels, ignore_index)))
    for source, at in places(labels, ignore_index):
        out[source] = -grad[at] if reduction == "none" else -grad / (n if reduction == "mean" else 1)
    return out


def cross_entropy(x, labels, ignore_index, reduction):
    probs = softmax(x, 1 if x.ndim > 1 else 0)
    return nll(np.log(probs), labels, ignore_index, reduction), probs


def cross_entropy_grad(probs, labels, grad, ignore_index, reduction):
    out = np.zeros_like(probs)
    n = len(list(places(labels, ignore_index)))
    for source, at in places(labels, ignore_index):
        column = ((*at[:1], slice(None), *at[1:])) if labels.ndim else (slice(None),)
        scale = grad[at] if reduction == "none" else grad / (n if reduction == "mean" else 1)
        out[column] = probs[column] * scale
        out[source] -= scale
    return out


# ---- convolution -------------------------------------------------------------------------------------------------


def convolution_terms(x_shape, w_shape, out_shape, stride, padding, dilation, groups):
    """(index in the result, in the images, in the filters) of every product of a convolution."""
    filters_per_group = w_shape[0] // groups
    for n, f, *place in np.ndindex(out_shape):
        for c, *tap in np.ndindex(w_shape[1:]):
            pixel = [i * s + u * d - p for i, u, s, d, p in zip(place, tap, stride, dilation, padding)]
            if all(0 <= i < m for i, m in zip(pixel, x_shape[2:])):
                yield (n, f, *place), (n, f // filters_per_group * w_shape[1] + c, *pixel), (f, c, *tap)


def convolve(x, weight, stride, padding, dilation, groups):
    """A cross-correlation over any number of axes."""
    each = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    size = [(m + 2 * p - d * (k - 1) - 1) // s + 1 for m, k, s, p, d in each]
    out = np.zeros((x.shape[0], weight.shape[0], *size), x.dtype)
    for o, i, w in convolution_terms(x.shape, weight.shape, out.shape, stride, padding, dilation, groups):
        out[o] += x[i] * weight[w]
    return out


def convolve_transposed(x, weight, stride, padding, dilation, groups, output_padding):
    each = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding)
    size = [(m - 1) * s - 2 * p + d * (k - 1) + extra + 1 for m, k, s, p, d, extra in each]
    out = np.zeros((x.shape[0], weight.shape[1] * groups, *size), x.dtype)
    for i, o, w in convolution_terms(out.shape, weight.shape, x.shape, stride, padding, dilation, groups):
        out[o] += x[i] * weight[w]
    return out


def with_bias(function, n):
    """A convolution over n axes of a batch or of one example, plus the bias of each filter."""

    def biased(x, weight, bias, **options):
        out = function(x.reshape(-1, *x.shape[-n - 1 :]), weight, **options)
        out += np.reshape(bias, (-1,) + (1,) * n)
        return out if x.ndim == n + 2 else out[0]

    return biased


def conv2d_input_grad(grad, weight, shape, **options):
    out = np.zeros(shape, grad.dtype)
    for o, i, w in convolution_terms(shape, weight.shape, grad.shape, **options):
        out[i] += grad[o] * weight[w]
    return out


def conv2d_weight_grad(grad, x, shape, **options):
    out = np.zeros(shape, grad.dtype)
    for o, i, w in convolution_terms(x.shape, shape, grad.shape, **options):
        out[w] += grad[o] * x[i]
    return out


# ---- pooling -----------------------------------------------------------------------------------------------------


def window(i, j, shape, kernel_size, stride, padding, dilation=(1, 1)):
    """Pixels of one window that are inside the image, row by row."""
    for u, v in np.ndindex(*kernel_size):
        row, column = i * stride[0] + u * dilation[0] - padding[0], j * stride[1] + v * dilation[1] - padding[1]
        if 0 <= row < shape[2] and 0 <= column < shape[3]:
            yield row, column


def pooled_shape(shape, kernel_size, stride, padding, ceil_mode, dilation=(1, 1)):
    sizes = []
    for n, k, s, p, d in zip(shape[2:], kernel_size, stride, padding, dilation):
        count = len([start for start in range(-p, n + p, s) if start + d * (k - 1) < n + p])
        if ceil_mode:  # one more window if it begins in the image or its left border
            count += count * s - p < n and (n + 2 * p - d * (k - 1) - 1) % s != 0
        sizes.append(count)
    return (*shape[:2], *sizes)


def max_pool2d(x, **options):
    shape = pooled_shape(x.shape, **options)
    options.pop("ceil_mode")
    y, indices = np.zeros(shape, x.dtype), np.zeros(shape, "int64")
    for n, c, i, j in np.ndindex(shape):
        best = max(window(i, j, x.shape, **options), key=lambda at: x[n, c][at])
        y[n, c, i, j], indices[n, c, i, j] = x[n, c][best], best[0] * x.shape[3] + best[1]
    return y, indices


def max_pool2d_grad(grad, indices, shape, apart):
    out = np.zeros(shape, grad.dtype)
    for n, c, i, j in np.ndindex(grad.shape):
        out[n, c].reshape(-1)[indices[n, c, i, j]] += grad[n, c, i, j]
    return out


def max_pool2d_pick(x, indices):
    return np.stack([x[n, c].reshape(-1)[indices[n, c]] for n, c in np.ndindex(x.shape[:2])]).reshape(indices.shape)


def window_divisors(shape, out_shape, kernel_size, stride, padding, count_include_pad, divisor_override):
    """(window, pixel, divisor of the window's sum)."""
    for i, j in np.ndindex(out_shape[2:]):
        inside = list(window(i, j, shape, kernel_size, stride, padding))
        reach = [
            min(at * s - p + k, n + p) - (at * s - p)
            for at, s, p, k, n in zip((i, j), stride, padding, kernel_size, shape[2:])
        ]
        count = divisor_override or (reach[0] * reach[1] if count_include_pad else len(inside))
        for row, column in inside:
            yield (i, j), (row, column), count


def avg_pool2d(x, count_include_pad, divisor_override, **options):
    out = np.zeros(pooled_shape(x.shape, **options), x.dtype)
    options.pop("ceil_mode")
    for (i, j), (row, column), count in window_divisors(
        x.shape, out.shape, **options, count_include_pad=count_include_pad, divisor_override=divisor_override
    ):
        out[:, :, i, j] += x[:, :, row, column] / count
    return out


def avg_pool2d_grad(grad, shape, ceil_mode, **options):
    out = np.zeros(shape, grad.dtype)
    for (i, j), (row, column), count in window_divisors(shape, grad.shape, **options):
        out[:, :, row, column] += grad[:, :, i, j] / count
    return out


def parts(size: int, into: int):
    """Windows of adaptive pooling along one axis: from floor to ceil of equal parts."""
    return [range(k * size // into, -(-(k + 1) * size // into)) for k in range(into)]


def adaptive(x, output_size):
    out = np.zeros((*x.shape[:2], *output_size), x.dtype)
    for (i, rows), (j, columns) in itertools.product(
        *[enumerate(parts(n, m)) for n, m in zip(x.shape[2:], output_size)]
    ):
        out[:, :, i, j] = x[:, :, rows.start : rows.stop, columns.start : columns.stop].mean((2, 3))
    return out


def adaptive_grad(grad, shape):
    out = np.zeros(shape, grad.dtype)
    for (i, rows), (j, columns) in itertools.product(
        *[enumerate(parts(n, m)) for n, m in zip(shape[2:], grad.shape[2:])]
    ):
        out[:, :, rows.start : rows.stop, columns.start : columns.stop] += (
            grad[:, :, i : i + 1, j : j + 1] / len(rows) / len(columns)
        )
    return out


# ---- batch norm --------------------------------------------------------------------------------------------------


def batch_norm(x, weight, bias, eps):
    rows = np.moveaxis(x, 1, -1).reshape(-1, x.shape[1])
    mean, var = rows.mean(0), rows.var(0)
    y = (rows - mean) / np.sqrt(var + eps) * weight + bias
    return np.moveaxis(y.reshape(x.shape[0], *x.shape[2:], x.shape[1]), -1, 1), mean, var


def batch_norm_grad(grad, x, weight, mean, var, eps):
    """From the textbook: Ioffe & Szegedy 2015 (arXiv:1502.03167), the equations of section 3."""
    shape = (1, -1) + (1,) * (x.ndim - 2)
    axes = (0, *range(2, x.ndim))
    m = x.size // x.shape[1]
    centered, spread = x - mean.reshape(shape), (var + eps).reshape(shape)
    to_hat = grad * weight.reshape(shape)
    to_var = (to_hat * centered * -0.5 * spread**-1.5).sum(axes, keepdims=True)
    to_mean = -(to_hat / np.sqrt(spread)).sum(
        axes, keepdims=True
    )  # its second term is 0, because the mean of `centered` is 0
    gx = to_hat / np.sqrt(spread) + to_var * 2 * centered / m + to_mean / m
    return gx, (grad * centered / np.sqrt(spread)).sum(axes), grad.sum(axes)


def layer_norm(x, weight, bias, axes, eps):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps) * weight + bias


def group_norm(x, weight, bias, groups, eps):
    rows = layer_norm(x.reshape(len(x), groups, -1), 1, 0, (-1,), eps).reshape(x.shape)
    wide = lambda v: np.reshape(v, (-1,) + (1,) * (x.ndim - 2))
    return rows * wide(weight) + wide(bias)


def attention(query, key, value, mask, scale, nowhere):
    scores = scale * np.einsum("...le,...se->...ls", query, key) + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("...ls,...sv->...lv", weights / weights.sum(-1, keepdims=True), value)


def rms_norm(x, weight, axes, eps):
    return x / np.sqrt((x**2).mean(axes, keepdims=True) + eps) * weight


def batch_norm_inference(x, mean, var, weight, bias, eps):
    wide = lambda v: np.reshape(v, (-1,) + (1,) * (x.ndim - 2))
    return (x - wide(mean)) / wide(np.sqrt(var + eps)) * wide(weight) + wide(bias)


def local_response_norm(x, size, alpha, beta, k):
    out = np.empty(x.shape)
    for c in range(x.shape[1]):
        window = x[:, max(c - size // 2, 0) : c + (size - 1) // 2 + 1]
        out[:, c] = x[:, c] / (k + alpha * (window**2).sum(1) / size) ** beta
    return out


def order_norm(x, p, axis, keepdims):
    """The norm of order p along an axis, one power at a time."""
    size = np.abs(x)
    return size.max(axis, keepdims=keepdims) if p == np.inf else (size**p).sum(axis, keepdims=keepdims) ** (1 / p)


def normalize(x, p, axes, eps):
    return x / np.maximum(order_norm(x, p, axes, True), eps)


def cosine_similarity(x1, x2, axis, eps):
    return (normalize(x1 + 0 * x2, 2, axis, eps) * normalize(x2 + 0 * x1, 2, axis, eps)).sum(axis)


def pairwise_distance(x1, x2, p, eps, keepdims):
    return order_norm(x1 - x2 + eps, p, -1 if max(x1.ndim, x2.ndim) else None, keepdims)


def with_batch_statistics(grad, x, weight, mean, var):
    """The gradient of batch_norm_grad with respect to x includes the dependence of the statistics on x, so they must
    belong to x.
    """
    axes = (0, *range(2, x.ndim))
    return [grad, x, weight, x.mean(axes), x.var(axes)]


# ---- optimizers, as in PyTorch's documentation --------------------------------------------------------------------


def sgd(p, grad, lr, weight_decay, maximize):
    return p - lr * downhill(p, grad, weight_decay, maximize)


def sgd_momentum(p, grad, buf, lr, momentum, nesterov, weight_decay, maximize):
    g = downhill(p, grad, weight_decay, maximize)
    buf = momentum * buf + g
    return p - lr * (g + momentum * buf if nesterov else buf), buf


def sgd_dampened(p, grad, buf, step, lr, momentum, dampening, weight_decay, maximize):
    g = downhill(p, grad, weight_decay, maximize)
    buf = momentum * buf + (g if step < 1 else (1 - dampening) * g)
    return p - lr * buf, buf, step + 1


def adam(p, grad, exp_avg, exp_avg_sq, step, lr, **options):
    p, m, v, _, t = amsgrad(p, grad, exp_avg, exp_avg_sq, None, step, lr, **options)
    return p, m, v, t


def amsgrad(
    p, grad, exp_avg, exp_avg_sq, most, step, lr, beta1, beta2, eps, weight_decay, decoupled, corrected, maximize
):
    g, t = downhill(p, grad, 0 if decoupled else weight_decay, maximize), float(step) + 1
    if decoupled:
        p = p - lr * weight_decay * p
    m, v = beta1 * exp_avg + (1 - beta1) * g, beta2 * exp_avg_sq + (1 - beta2) * g * g
    most = v if most is None else np.maximum(most, v)
    fix1, fix2 = (1 - beta1**t, 1 - beta2**t) if corrected else (1, 1)
    return p - lr * (m / fix1) / (np.sqrt(most / fix2) + eps), m, v, most, np.float32(t)


ORACLES = {
    "relu6": lambda x: np.minimum(np.maximum(x, 0), 6),
    "relu6_grad": lambda x, y: np.where((y > 0) & (y < 6), x, 0),
    "softmax": softmax,
    "log_softmax": softmax_log,
    "nll": nll,
    "nll_grad": nll_grad,
    "softmax_cross_entropy": cross_entropy,
    "softmax_cross_entropy_grad": cross_entropy_grad,
    "conv2d": convolve,
    **{f"conv{n}d": with_bias(convolve, n) for n in (1, 3)},
    **{f"conv_transpose{n}d": with_bias(convolve_transposed, n) for n in (1, 2, 3)},
    "conv2d_input_grad": conv2d_input_grad,
    "conv2d_weight_grad": conv2d_weight_grad,
    "batch_norm": batch_norm,
    "layer_norm": layer_norm,
    "scaled_dot_product_attention": attention,
    "group_norm": group_norm,
    "rms_norm": rms_norm,
    "batch_norm_inference": batch_norm_inference,
    "local_response_norm": local_response_norm,
    "normalize": normalize,
    "cosine_similarity": cosine_similarity,
    "pairwise_distance": pairwise_distance,
    "batch_norm_grad": batch_norm_grad,
    "max_pool2d": max_pool2d,
    "max_pool2d_grad": max_pool2d_grad,
    "max_pool2d_pick": max_pool2d_pick,
    "avg_pool2d": avg_pool2d,
    "avg_pool2d_grad": avg_pool2d_grad,
    "adaptive_avg_pool2d": adaptive,
    "adaptive_avg_pool2d_grad": adaptive_grad,
    "accumulate": lambda total, grad, count: grad if count == 0 else total + grad,
    "sgd": sgd,
    "sgd_momentum": sgd_momentum,
    "sgd_dampened": sgd_dampened,
    "adam": adam,
    "adam_amsgrad": amsgrad,
}
