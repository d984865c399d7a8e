"""Rules of optimizers as in PyTorch's documentation (LAMB: OneFlow's), one step on numpy arrays."""

import numpy as np


def downhill(p, grad, weight_decay, maximize):
    return (-grad if maximize else grad) + weight_decay * p


def rmsprop(p, grad, v, mean, buf, step, lr, alpha, eps, weight_decay, maximize, momentum=0.0):
    """All four forms: a mean or a buffer that is None is omitted from the results."""
    g = downhill(p, grad, weight_decay, maximize)
    v = alpha * v + (1 - alpha) * g**2
    spread = v
    if mean is not None:
        mean = mean * alpha + (1 - alpha) * g
        spread = v - mean**2
    move = g / (np.sqrt(spread) + eps)
    if buf is not None:
        move = buf = momentum * buf + move
    return p - lr * move, *[x for x in (v, mean, buf) if x is not None], step + 1


def adagrad(p, grad, total, step, lr, lr_decay, eps, weight_decay, maximize):
    g = downhill(p, grad, weight_decay, maximize)
    total, rate = total + g**2, lr / (1 + step * lr_decay)
    return p - rate * g / (np.sqrt(total) + eps), total, step + 1


def adadelta(p, grad, v, u, step, lr, rho, eps, weight_decay, maximize):
    g = downhill(p, grad, weight_decay, maximize)
    v = v * rho + g**2 * (1 - rho)
    change = np.sqrt(u + eps) / np.sqrt(v + eps) * g
    return p - lr * change, v, u * rho + change**2 * (1 - rho), step + 1


def rprop(p, grad, prev, size, step, lr, etaminus, etaplus, smallest, largest, maximize):
    p, prev, size = p.copy(), prev.copy(), size.copy()
    g = -grad if maximize else grad.copy()
    for i in np.ndindex(p.shape):
        agree = g[i] * prev[i]
        if agree > 0:
            size[i] = min(size[i] * etaplus, largest)
        elif agree < 0:
            size[i], g[i] = max(size[i] * etaminus, smallest), 0
        size[i] = min(max(size[i], smallest), largest)
        p[i] -= np.sign(g[i]) * size[i]
    return p, g, size, step + 1


def asgd(p, grad, ax, mu, eta, step, lr, lambd, alpha, t0, weight_decay, maximize):
    g, t = downhill(p, grad, weight_decay, maximize), float(step) + 1
    p = p - lambd * eta.astype("f8") * p - eta.astype("f8") * g
    ax = p if mu == 1 else ax + mu.astype("f8") * (p - ax)
    return p, ax, np.float32(1 / max(1, t - t0)), np.float32(lr / (1 + lambd * lr * t) ** alpha), np.float32(t)


def adamax(p, grad, m, u, step, lr, beta1, beta2, eps, weight_decay, maximize):
    g, t = downhill(p, grad, weight_decay, maximize), float(step) + 1
    m, u = beta1 * m + (1 - beta1) * g, np.maximum(beta2 * u, np.abs(g) + eps)
    return p - lr * m / ((1 - beta1**t) * u), m, u, np.float32(t)


def nadam(p, grad, m, v, product, step, lr, beta1, beta2, eps, momentum_decay, weight_decay, decoupled, maximize):
    g, t = downhill(p, grad, 0 if decoupled else weight_decay, maximize), float(step) + 1
    p = p - lr * weight_decay * p if decoupled else p
    now, then = (beta1 * (1 - 0.5 * 0.96 ** (k * momentum_decay)) for k in (t, t + 1))
    product = np.float32(product * np.float32(now))
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g**2
    mean = then * m / (1 - float(product) * then) + (1 - now) * g / (1 - float(product))
    return p - lr * mean / (np.sqrt(v / (1 - beta2**t)) + eps), m, v, product, np.float32(t)


def radam(p, grad, m, v, step, lr, beta1, beta2, eps, weight_decay, decoupled, maximize):
    g, t = downhill(p, grad, 0 if decoupled else weight_decay, maximize), float(step) + 1
    p = p - lr * weight_decay * p if decoupled else p
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g**2
    limit = 2 / (1 - beta2) - 1
    rho = limit - 2 * t * beta2**t / (1 - beta2**t)
    mean, adapted = m / (1 - beta1**t), 1.0
    if rho > 5:
        r = ((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho)) ** 0.5
        adapted = r * (1 - beta2**t) ** 0.5 / (np.sqrt(v) + eps)
    return p - lr * mean * adapted, m, v, np.float32(t)


def lamb(p, grad, m, v, step, lr, beta1, beta2, eps, weight_decay, decoupled, corrected, maximize):
    g, t = downhill(p, grad, 0 if decoupled else weight_decay, maximize), float(step) + 1
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g**2
    fix1, fix2 = (1 - beta1**t, 1 - beta2**t) if corrected else (1, 1)
    a = m / fix1 / (np.sqrt(v) / np.sqrt(fix2) + eps)
    ours, its = np.linalg.norm(p), np.linalg.norm(a)
    trust = ours / its if ours > 0 and its > 0 else 1.0
    return p - lr * trust * (a + (weight_decay if decoupled else 0) * p), m, v, np.float32(t)


def sparse_adam(p, grad, m, v, step, lr, beta1, beta2, eps, maximize):
    p, m, v, t = p.copy(), m.copy(), v.copy(), float(step) + 1
    for k in [k for k in range(len(p)) if np.any(grad[k])]:
        g = -grad[k] if maximize else grad[k]
        m[k], v[k] = beta1 * m[k] + (1 - beta1) * g, beta2 * v[k] + (1 - beta2) * g**2
        p[k] -= lr * (1 - beta2**t) ** 0.5 / (1 - beta1**t) * m[k] / (np.sqrt(v[k]) + eps)
    return p, m, v, np.float32(t)


ORACLES = {
    "rmsprop": lambda p, grad, v, step, lr, **options: rmsprop(p, grad, v, None, None, step, lr, **options),
    "rmsprop_momentum": lambda p, grad, v, buf, step, lr, **options: rmsprop(
        p, grad, v, None, buf, step, lr, **options
    ),
    "rmsprop_centered": lambda p, grad, v, mean, step, lr, **options: rmsprop(
        p, grad, v, mean, None, step, lr, **options
    ),
    "rmsprop_centered_momentum": rmsprop,
    "adagrad": adagrad,
    "adadelta": adadelta,
    "rprop": rprop,
    "asgd": asgd,
    "adamax": adamax,
    "nadam": nadam,
    "radam": radam,
    "lamb": lamb,
    "sparse_adam": sparse_adam,
}
