"""Update rules of Adam's relatives: Adamax, NAdam, RAdam, LAMB, SparseAdam, with running means of the gradient and
its square.

They run as described in `update.py`, which has Adam. Read next: `../../optim/moments.py`.
"""

from __future__ import annotations

import math

from ..host.float_warnings import silent
from ..kernels import kernel
from .elementwise import where
from .examples import Maker, case, floats, positive
from .reduce import sum as total
from .shape import cast
from .update import count, define_rule, descent_gradient, empty, rate, running_mean, single, small, square


def moments(p, grad, exp_avg, exp_avg_sq, lr, beta1, beta2, weight_decay, decoupled, maximize):
    """(p after decoupled decay, the gradient, its running mean, that of its square)."""
    down = descent_gradient(p, grad, 0.0 if decoupled else weight_decay, maximize)
    p = p * (1 - float(lr) * weight_decay) if decoupled and weight_decay else p
    return p, down, running_mean(exp_avg, down, 1 - beta1), beta2 * exp_avg_sq + (1 - beta2) * down * down


betas = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weight_decay": 0.0, "maximize": False}
late = floats((), low=9.0, high=9.0, dtype="float32")
single_square = positive(5)(dtype="float32")

adamax = define_rule(
    "adamax(p, grad, exp_avg, exp_inf, step, lr; beta1, beta2, eps, weight_decay, maximize)"
    " -> p, exp_avg, exp_inf, step",
    examples=[
        case(small, small(), small(), square, count, rate, **betas),
        case(single, single(), single(), single_square, count, rate, **betas | {"weight_decay": 0.1, "maximize": True}),
        case(empty, empty(), empty(), empty(), count, rate, **betas),
    ],
    doc="p - lr / (1 - beta1**t) * m / u, where u = max(beta2 * u, |grad| + eps). Kingma & Ba 2015 (arXiv:1412.6980), "
    "algorithm 2.",
)


@kernel(adamax)
def _(xp, p, grad, exp_avg, exp_inf, step, lr, beta1, beta2, eps, weight_decay, maximize):
    down = descent_gradient(p, grad, weight_decay, maximize)
    exp_avg = running_mean(exp_avg, down, 1 - beta1)
    exp_inf = xp.maximum(beta2 * exp_inf, xp.abs(down) + eps)
    return p - float(lr) / (1 - beta1 ** (float(step) + 1)) * (exp_avg / exp_inf), exp_avg, exp_inf, step + 1


nadam = define_rule(
    "nadam(p, grad, exp_avg, exp_avg_sq, mu_product, step, lr; beta1, beta2, eps, momentum_decay, weight_decay,"
    " decoupled, maximize) -> p, exp_avg, exp_avg_sq, mu_product, step",
    examples=[
        case(small, small(), small(), square, count, count(), rate, momentum_decay=4e-3, decoupled=False, **betas),
        case(
            small,
            small(),
            small(),
            square,
            count,
            count(),
            rate,
            momentum_decay=0.1,
            decoupled=True,
            **betas | {"weight_decay": 0.1, "maximize": True},
        ),
    ],
    doc="Adam that looks one step of momentum ahead; beta1 rises by beta1 * (1 - 0.96**(t * momentum_decay) / 2). "
    "Dozat 2016, section 4.",
)


@kernel(nadam)
def _(
    xp,
    p,
    grad,
    exp_avg,
    exp_avg_sq,
    mu_product,
    step,
    lr,
    beta1,
    beta2,
    eps,
    momentum_decay,
    weight_decay,
    decoupled,
    maximize,
):
    now, lr = float(step) + 1, float(lr)
    p, down, exp_avg, exp_avg_sq = moments(
        p, grad, exp_avg, exp_avg_sq, lr, beta1, beta2, weight_decay, decoupled, maximize
    )
    mu, ahead = [beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay)) for t in (now, now + 1)]
    mu_product = mu_product * mu_product.dtype.type(mu)
    root = xp.sqrt(exp_avg_sq / (1 - beta2**now)) + eps
    p = p - lr * (1 - mu) / (1 - float(mu_product)) * (down / root)
    p = p - lr * ahead / (1 - float(mu_product) * ahead) * (exp_avg / root)
    return p, exp_avg, exp_avg_sq, mu_product, step + 1


radam = define_rule(
    "radam(p, grad, exp_avg, exp_avg_sq, step, lr; beta1, beta2, eps, weight_decay, decoupled, maximize)"
    " -> p, exp_avg, exp_avg_sq, step",
    examples=[
        case(small, small(), small(), square, count, rate, decoupled=False, **betas),
        case(small, small(), small(), square, late, rate, decoupled=False, **betas | {"weight_decay": 0.1}),
        case(
            small,
            small(),
            small(),
            square,
            late,
            rate,
            decoupled=True,
            **betas | {"weight_decay": 0.1, "maximize": True},
        ),
    ],
    doc="Adam that leaves the second moment out of its first steps, while too few gradients estimate it, and scales "
    "the others by how many do. Liu et al. 2020 (arXiv:1908.03265), algorithm 2.",
)


@kernel(radam)
def _(xp, p, grad, exp_avg, exp_avg_sq, step, lr, beta1, beta2, eps, weight_decay, decoupled, maximize):
    now, lr = float(step) + 1, float(lr)
    p, _, exp_avg, exp_avg_sq = moments(
        p, grad, exp_avg, exp_avg_sq, lr, beta1, beta2, weight_decay, decoupled, maximize
    )
    fix1, fix2 = 1 - beta1**now, 1 - beta2**now
    most = 2 / (1 - beta2) - 1
    length = most - 2 * now * beta2**now / fix2  # the number of gradients that the second moment averages
    update = exp_avg / fix1 * lr
    if length > 5:
        rectified = math.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
        update = update * (math.sqrt(fix2) / (xp.sqrt(exp_avg_sq) + eps)) * rectified
    return p - update, exp_avg, exp_avg_sq, step + 1


def lamb_parts(p, grad, exp_avg, exp_avg_sq, step, lr, beta1, beta2, eps, weight_decay, decoupled, corrected, maximize):
    """lamb in other ops, which find the norms of tensors of which each rank has a part."""
    now = step + 1
    down = descent_gradient(p, grad, 0.0 if decoupled else weight_decay, maximize)
    exp_avg, exp_avg_sq = running_mean(exp_avg, down, 1 - beta1), beta2 * exp_avg_sq + (1 - beta2) * down * down
    fix1, fix2 = [1 - beta ** now.double() if corrected else now / now for beta in (beta1, beta2)]
    update = exp_avg / fix1 / ((exp_avg_sq / fix2).sqrt() + eps)
    ours, its = [total(a.double() * a.double(), axis=None, keepdims=False).sqrt() for a in (p, update)]
    trust = where((ours > 0) & (its > 0), ours / its, 1.0)
    if decoupled and weight_decay:
        update = update + weight_decay * p
    return p - cast(lr * trust, dtype=p.spec.dtype) * update, exp_avg, exp_avg_sq, now


lamb = define_rule(
    "lamb(p, grad, exp_avg, exp_avg_sq, step, lr; beta1, beta2, eps, weight_decay, decoupled, corrected, maximize)"
    " -> p, exp_avg, exp_avg_sq, step",
    sharding=None,  # a norm needs the whole array
    on_ranks=lambda **_: lamb_parts,
    examples=[
        case(small, small(), small(), square, count, rate, decoupled=True, corrected=True, **betas),
        case(
            small,
            small(),
            small(),
            square,
            late,
            rate,
            decoupled=False,
            corrected=False,
            **betas | {"weight_decay": 0.1},
        ),
        case(
            small,
            small(),
            small(),
            square,
            late,
            rate,
            decoupled=True,
            corrected=True,
            **betas | {"weight_decay": 0.1, "maximize": True},
        ),
        case(empty, empty(), empty(), empty(), count, rate, decoupled=True, corrected=True, **betas),
    ],
    doc="Adam whose step a is as long as the parameter: p - lr * norm(p) / norm(a) * (a + weight_decay * p), and with "
    "a norm of 0 the quotient is 1. You et al. 2020 (arXiv:1904.00962), algorithm 2, the decay outside the norm.",
)


@kernel(lamb)
def _(xp, p, grad, exp_avg, exp_avg_sq, step, lr, beta1, beta2, eps, weight_decay, decoupled, corrected, maximize):
    now = float(step) + 1
    down = descent_gradient(p, grad, 0.0 if decoupled else weight_decay, maximize)
    exp_avg, exp_avg_sq = running_mean(exp_avg, down, 1 - beta1), beta2 * exp_avg_sq + (1 - beta2) * down * down
    fix1, fix2 = (1 - beta1**now, 1 - beta2**now) if corrected else (1.0, 1.0)
    update = exp_avg / fix1 / (xp.sqrt(exp_avg_sq) / math.sqrt(fix2) + eps)
    ours, its = [xp.sqrt(xp.sum(xp.square(a), dtype="float64")) for a in (p, update)]
    with silent():
        trust = xp.where((ours > 0) & (its > 0), ours / its, 1.0)
    if decoupled and weight_decay:
        update = update + weight_decay * p
    return p - (float(lr) * trust).astype(p.dtype) * update, exp_avg, exp_avg_sq, step + 1


def row_labels(p, *_, **attrs):
    """The rows may be on several ranks; the elements of one row stay together."""
    row = (0, *[None] * (p.ndim - 1)) if p.ndim else ()
    return [row, row, row, row, (), (), row, row, row, ()]


some_rows = Maker((6, 1), -2.0, 2.0, "float64", layout=lambda a: a.clip(0))
sparse_settings = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8}

sparse_adam = define_rule(
    "sparse_adam(p, grad, exp_avg, exp_avg_sq, step, lr; beta1, beta2, eps, maximize) -> p, exp_avg, exp_avg_sq, step",
    sharding=row_labels,
    examples=[
        case(small, small(), small(), square, count, rate, **sparse_settings, maximize=False),
        case(floats(6, 1), some_rows, floats(6, 1), positive(6, 1), count, rate, **sparse_settings, maximize=True),
        case(empty, empty(), empty(), empty(), count, rate, **sparse_settings, maximize=False),
    ],
    doc="Adam of the rows, along the first axis, whose gradient is not 0: other rows and their moments stay.",
)


@kernel(sparse_adam)
def _(xp, p, grad, exp_avg, exp_avg_sq, step, lr, beta1, beta2, eps, maximize):
    found = grad != 0
    rows = xp.any(found, axis=tuple(range(1, grad.ndim)), keepdims=True) if grad.ndim > 1 else found
    now, down = float(step) + 1, -grad if maximize else grad
    exp_avg = xp.where(rows, running_mean(exp_avg, down, 1 - beta1), exp_avg)
    exp_avg_sq = xp.where(rows, running_mean(exp_avg_sq, down * down, 1 - beta2), exp_avg_sq)
    size = float(lr) * math.sqrt(1 - beta2**now) / (1 - beta1**now)
    return xp.where(rows, p - size * (exp_avg / (xp.sqrt(exp_avg_sq) + eps)), p), exp_avg, exp_avg_sq, step + 1
